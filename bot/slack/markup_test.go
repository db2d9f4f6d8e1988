package slack

import (
	"html"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestMrkdwn(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		// What Slack would read as its own.
		{"if a < b && b > c:", "if a &lt; b &amp;&amp; b &gt; c:"},
		{"hello <!channel> <@U0ALICE> <!subteam^S1> <#C1>", "hello &lt;!channel&gt; &lt;@U0ALICE&gt; &lt;!subteam^S1&gt; &lt;#C1&gt;"},
		{"`x<y`", "`x&lt;y`"},
		{"&lt;b&gt;", "&amp;lt;b&amp;gt;"},
		{"<https://evil.example|bank.example>", "&lt;https://evil.example|bank.example&gt;"},
		{"```\n<!here>\n```", "```\n&lt;!here&gt;\n```"},
		{"| <!here> | b |\n|---|---|\n| c | d |", "```\n&lt;!here&gt; | b\n--------|--\nc       | d\n```"},
		// Links.
		{"[docs](https://example.org/?a=1&b=2)", "<https://example.org/?a=1&amp;b=2|docs>"},
		{"[bank.example](https://evil.example)", "https://evil.example"},
		{"[https://bank.example/login](https://evil.example)", "https://evil.example"},
		{"[bank。example](https://evil.example)", "https://evil.example"},
		{"[log in at bank.example now](https://evil.example)", "log in at bank.example now (https://evil.example)"},
		{"[example.org](https://www.example.org/x)", "<https://www.example.org/x|example.org>"},
		{"[a|b](https://x.example/<|>)", "<https://x.example/%3C%7C%3E|a∣b>"},
		{"[x](javascript:alert(1))", "x (javascript:alert(1))"},
		{"[x](<!channel>)", "x (!channel)"},
		{"[<!channel>](https://x.example)", "<https://x.example|&lt;!channel&gt;>"},
		{"[read me](docs/a.md)", "read me (docs/a.md)"},
		{"see https://example.org/a_b_c*d* now", "see https://example.org/a_b_c*d* now"},
		{"**https://example.org/x**", "*https://example.org/x*"},
		{"<https://example.org>", "https://example.org"},
		{"![alt](https://example.org/a.png)", "alt"},
		// Marks.
		{"**Status:**OK", "*Status:*" + apart + "OK"},
		{"***x***", "*_x_*"},
		{"_i_ and *i*", "_i_ and _i_"},
		{"__b__ and **b *i* b**", "*b* and *b _i_ b*"},
		{"~~no~~", "~no~"},
		{"2 * 3 * 4 = 24 and 2*3*4", "2 * 3 * 4 = 24 and 2*3*4"},
		{"snake_case_name", "snake_case_name"},
		{"**open and *shut", "**open and *shut"},
		{`\*no\*`, "*no*"},
		{"``a ` b``", "`a ˋ b`"},
		{"`a **b** c`", "`a **b** c`"},
		// Lines.
		{"# Title", "*Title*"},
		{"## A **bold** `title` ##", "*A bold `title`*"},
		{"* a\n* b\n  - c", "• a\n• b\n  • c"},
		{"1. a\n2. b", "1. a\n2. b"},
		{"> quoted **b**", "&gt; quoted *b*"},
		{"---", "———"},
		{"```go\na **b** <c>\n```", "```\na **b** &lt;c&gt;\n```"},
		{"~~~\na ``` b\n~~~", "```\na ``" + apart + "` b\n```"},
		{"```\nnever closed", "```\nnever closed\n```"},
		{"- x:\n  ```\n  code\n  ```", "• x:\n```\ncode\n```"},
		{"| a | long one |\n|:--|--:|\n| 1 \\| 2 | x |\nafter", "```\na     | long one\n------|---------\n1 | 2 | x\n```\nafter"},
	} {
		if got := mrkdwn(c.in); got != c.want {
			t.Errorf("%q\n gives %q,\n want  %q", c.in, got, c.want)
		}
	}
}

func TestPlain(t *testing.T) {
	names := func(user string) string { return map[string]string{"U1": "Ann"}[user] }
	for _, c := range []struct{ in, want string }{
		{"&lt;div&gt; &amp; <https://example.org|example.org> <@U0ALICE|alice>", "<div> & https://example.org @alice"},
		{"<@U0BOT> hi", "hi"},
		{"<@U0BOT|nudge>: hi", "hi"},
		{"hey <@U0BOT> do it", "hey do it"},
		{"hey <@U0BOT>", "hey"},
		{"&amp;lt;", "&lt;"},
		{"&lt;@U0BOT&gt;", "<@U0BOT>"},
		{"<@U1> and <@U2>", "@Ann and @U2"},
		{"<#C1|general> <#C2> <!here> <!subteam^S1|@team> <!date^1^{date}|then>", "#general #C2 @here @team then"},
		{"<mailto:a@b.example|a@b.example> <https://x.example/?a=1&amp;b=2>", "a@b.example https://x.example/?a=1&b=2"},
		{"<https://x.example|the docs>", "the docs (https://x.example)"},
		{"a < b", "a < b"},
		{"<>", "<>"},
	} {
		if got := plain(c.in, "U0BOT", names); got != c.want {
			t.Errorf("%q gives %q, want %q", c.in, got, c.want)
		}
	}
}

// anyMarkdown draws text that is likely to hold Markdown and Slack's markup, whole and broken.
func anyMarkdown() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"**", "*", "_", "__", "~~", "`", "```", "```go\n", "\n```\n", "\n", "\n\n", " ", "# ", "- ", "> ", "|", "|---|---|\n", "[", "](", ")",
			"<", ">", "&", "&amp;", "<!channel>", "<@U1>", "https://x.example/", "\\", "word", "👩‍👩‍👧", "🇩🇪🇫🇷", "e\u0301", "👍🏽", "\r\n", "~~~\n",
		}),
		rapid.StringN(0, 20, -1),
		rapid.Map(rapid.IntRange(1, 300), func(n int) string { return strings.Repeat("x", n) }),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 60), func(p []string) string { return strings.Join(p, "") })
}

// harmless checks that markup holds no mention, and no link but to the web or to mail.
func harmless(markup string) string {
	for rest := markup; ; {
		open := strings.IndexByte(rest, '<')
		if open < 0 {
			break
		}
		shut := strings.IndexByte(rest[open:], '>')
		if shut < 0 {
			return "a < is never closed"
		}
		target, label, ok := strings.Cut(rest[open+1:open+shut], "|")
		if _, _, safe := safeTarget(html.UnescapeString(target)); !ok || !safe || label == "" || strings.Contains(label, "|") {
			return "there is a link " + rest[open:open+shut+1]
		}
		rest = rest[open+shut+1:]
	}
	for i, r := range markup {
		if r == '&' && !strings.HasPrefix(markup[i:], "&amp;") && !strings.HasPrefix(markup[i:], "&lt;") && !strings.HasPrefix(markup[i:], "&gt;") {
			return "there is a bare &"
		}
	}
	return ""
}

func TestNothingInMarkupNotifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if fault := harmless(mrkdwn(anyMarkdown().Draw(t, "markdown"))); fault != "" {
			t.Fatal(fault)
		}
	})
}

// visible is what a person sees of a text wherever it is cut: no blanks, no fences.
func visible(text string) string {
	text = strings.ReplaceAll(text, fence, "")
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

func checkSplit(t interface {
	Fatalf(format string, args ...any)
	Helper()
}, text string, limit int) {
	t.Helper()
	parts := split(text, limit)
	for _, part := range parts {
		if n := length(part); n > limit || n == 0 {
			t.Fatalf("a part of %d characters:\n%q", n, part)
		}
		if strings.Count(part, fence)%2 == 1 {
			t.Fatalf("a fence is left open:\n%q", part)
		}
		if strings.TrimSpace(part) == "" {
			t.Fatalf("a part says nothing: %q", part)
		}
		if !utf8.ValidString(part) && utf8.ValidString(text) {
			t.Fatalf("a character is cut:\n%q", part)
		}
	}
	if got, want := visible(strings.Join(parts, "")), visible(text); got != want && strings.Trim(want, "`") != "" {
		t.Fatalf("the parts say\n%q\nand the text\n%q", got, want)
	}
}

func TestPartsAreTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := mrkdwn(anyMarkdown().Draw(t, "markdown"))
		limit := rapid.IntRange(64, 500).Draw(t, "limit")
		checkSplit(t, text, limit)
		for _, part := range split(text, limit) {
			for _, entity := range []string{"&a", "&am", "&amp", "&l", "&lt", "&g", "&gt", "&"} {
				if strings.HasSuffix(part, entity) {
					t.Fatalf("an entity is cut:\n%q", part)
				}
			}
		}
	})
}

func TestLinksAreKeptWhole(t *testing.T) {
	link := "<https://example.org/a/long/path?and=a&amp;query|a label of four words>"
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.SampledFrom([]string{"x", "x ", "word ", "y\n"}).Draw(t, "filling"), rapid.IntRange(0, 150).Draw(t, "before")) + link + " end"
		parts := split(text, 100)
		if !strings.Contains(strings.Join(parts, "\x00"), link) {
			t.Fatalf("the link is cut: %q", parts)
		}
	})
}

func TestSplit(t *testing.T) {
	code := strings.Repeat("x := 1 // the same again\n", 25)
	text := strings.Repeat("word ", 760) + "\n```\n" + code + "```\n" + "the end"
	parts := split(text, textLimit)
	if len(parts) != 2 || !strings.HasSuffix(parts[0], "\n```") || !strings.HasPrefix(parts[1], "```\n") {
		t.Errorf("a fence across the limit gives %d parts: %.60q … %.60q", len(parts), parts[0][len(parts[0])-30:], parts[len(parts)-1])
	}
	checkSplit(t, text, textLimit)

	long := strings.Repeat("x", 10_000)
	if parts := split(long, textLimit); len(parts) != 3 || strings.Join(parts, "") != long {
		t.Errorf("a long line gives %d parts", len(parts))
	}
	family := "👩‍👩‍👧"
	for _, unit := range []string{family, "&amp;", "🇩🇪", "e\u0301", "👍🏽", "한"} {
		for shift := range 8 {
			text := strings.Repeat("a", shift) + strings.Repeat(unit, 200)
			for _, part := range split(text, 101) {
				if rest := strings.ReplaceAll(strings.TrimLeft(part, "a"), unit, ""); rest != "" {
					t.Errorf("a %q is cut: %q is left", unit, rest)
				}
			}
		}
	}
	paragraphs := strings.Repeat("p", 2500) + "\n\n" + strings.Repeat("q", 2500)
	if parts := split(paragraphs, textLimit); len(parts) != 2 || length(parts[0]) != 2500 {
		t.Errorf("paragraphs are cut at %d", length(parts[0]))
	}
	if parts := split("intro\n"+strings.Repeat("z", 85)+"\n```\nsome code that is longer than the rest\n```", 100); len(parts) != 2 || strings.Contains(parts[0], fence) {
		t.Errorf("a fence is opened at the end of a message: %q", parts)
	}
	if parts := split("", textLimit); len(parts) != 0 {
		t.Errorf("nothing gives %q", parts)
	}
}

func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyMarkdown().Draw(t, "text")
		joined := ""
		for _, piece := range pieces(text, 50) {
			if n := length(piece); n > 50 || n == 0 {
				t.Fatalf("a piece of %d characters", n)
			}
			joined += piece
		}
		if strings.TrimRight(joined, " ") != strings.TrimRight(text, " ") && strings.TrimSpace(strings.TrimPrefix(text, joined)) != "" {
			t.Fatalf("%q became %q", text, joined)
		}
	})
}

func FuzzMarkup(f *testing.F) {
	for _, seed := range []string{"**a** <b> & `c`", "```go\nx\n```", "| a | b |\n|---|---|\n| 1 | 2 |", "[x](https://y.example)", "\xff*\xfe_", "&lt;<@U1|x>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\uFFFD") // replies come out of JSON
		if fault := harmless(mrkdwn(text)); fault != "" {
			t.Fatal(fault)
		}
		checkSplit(t, mrkdwn(text), 64)
		checkSplit(t, text, 64)
		plain(text, "U0BOT", func(string) string { return "" })
	})
}
