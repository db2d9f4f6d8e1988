package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"nudge/bot/bottest/slacktest"
)

// rendering is Markdown, and what it becomes in Slack.
var rendering = []struct{ in, want string }{
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
	{"x\n\n| a | b |\n|---|---|\n| c | d |\n\ny", "x\n\n```\na | b\n--|--\nc | d\n```\n\ny"},
	{"| 名 | n |\n|---|---|\n| x | `1` |", "```\n名 | n\n---|--\nx  | 1\n```"},
	{"| **h** | l |\n|---|---|\n| [a](https://x.example) | ``` |", "```\nh                     | l\n----------------------|----\na (https://x.example) | ``" + apart + "`\n```"},
	{"| A | B |\n|---|---|\n| " + strings.Repeat("wide ", 20) + "**b** | [l](https://x.example) |\n| | 2 |",
		"*A:* " + strings.Repeat("wide ", 20) + "*b*\n*B:* <https://x.example|l>\n\n*B:* 2"},
	{"|" + strings.Repeat("wide ", 20) + "|\n|---|", strings.TrimSpace(strings.Repeat("wide ", 20))},
	// Nesting.
	{"```\na\n```\nb\n```\nc\n```\n\nd", "```\na\n```\nb\n```\nc\n```\n\nd"},
	{"- ```\n  a\n  ```\n  b\n\n> ```\n> c\n> ```\n>\n> d", "• \n```\na\n```\n  b\n\n```\nc\n```\n\n&gt; d"},
	{"> a\n>\n> b\n\n| a |\n|---|\n\n| b |\n|---|\nc", "&gt; a\n&gt;\n&gt; b\n\n```\na\n-\n```\n\n```\nb\n-\n```\nc"},
	{"~~~\na\n~~~\n# b\n```\nc\n```\n- d", "```\na\n```\n*b*\n```\nc\n```\n• d"},
	{"1. a\n   - b\n     1) c\n2. d", "1. a\n   • b\n     1) c\n2. d"},
	{"7. a\n8. b\n\n   c", "7. a\n8. b\n\n   c"},
	{"- [ ] a\n- [x] b\n1. [ ] c", "☐ a\n☑ b\n1. ☐ c"},
	{"- ```\n  x\n  ```\n- y", "• \n```\nx\n```\n• y"},
	{"> a\n> > b\n>\n> - c\n>   d", "&gt; a\n&gt; &gt; b\n&gt;\n&gt; • c\n&gt;   d"},
	{"> a\n> ```\n> b\n> ```\n> c", "&gt; a\n```\nb\n```\n&gt; c"},
	{strings.Repeat("> ", 9) + "deep", "&gt; &gt; &gt; deep"},
	{"*a\nb*", "_a_\n_b_"},
	{"a  \nb\\\nc\nd", "a\nb\nc\nd"},
	{"a\n===\n\nb\n---\nc", "*a*\n\n*b*\nc"},
	{"    x  y\n\n    z", "```\nx  y\n\nz\n```"},
	{"x\r\n\r\ny\rz", "x\n\ny\nz"},
	// Marks beside letters, and marks that are none.
	{"这是**粗体。**文字", "这是" + apart + "*粗体。*" + apart + "文字"},
	{"这是*斜体*文字", "这是" + apart + "_斜体_" + apart + "文字"},
	{"это**жирный**текст", "это" + apart + "*жирный*" + apart + "текст"},
	{"程式`code`文字", "程式" + apart + "`code`" + apart + "文字"},
	{"**a**_b_`c`", "*a*" + apart + "_b_" + apart + "`c`"},
	{"(**a**), “**b**”", "(*a*), “" + apart + "*b*" + apart + "”"},
	{"2**3 and 4**5", "2**3 and 4**5"},
	{"~5 to ~6", "~5 to ~6"},
	{"a__init__ and __all__", "a__init__ and *all*"},
	{"a * b\n* c", "a * b\n• c"},
	{"\\`\\`\\` no fence", "``" + apart + "` no fence"},
	{"``\\`", "``" + apart + "`"},
	{"\\> no quote\n\\> at all", apart + "&gt; no quote\n" + apart + "&gt; at all"},
	// HTML and entities are what was written.
	{"<b>x</b> <!-- y -->", "&lt;b&gt;x&lt;/b&gt; &lt;!-- y --&gt;"},
	{"<details>\n**x**\n</details>", "&lt;details&gt;\n*x*\n&lt;/details&gt;"},
	{"a &amp; b &nbsp;", "a &amp;amp; b &amp;nbsp;"},
	// More links.
	{"[ref][1] and [short]\n\n[1]: https://x.example/a\n[short]: <https://y.example> \"t\"", "<https://x.example/a|ref> and <https://y.example|short>"},
	{"[**b** `c`](https://x.example \"title\")", "<https://x.example|b c>"},
	{"[x](https://x.example/?a=1&amp;b=2)", "<https://x.example/?a=1&amp;b=2|x>"},
	{"[ba\u200bnk.example](https://evil.example)", "https://evil.example"},
	{"[10.0.0.1](https://evil.example)", "https://evil.example"},
	{"[bank.\u034fexample](https://evil.example)", "https://evil.example"},
	{"[bank.\ufe0fexample](https://evil.example)", "https://evil.example"},
	{"[bank.\u0323example](https://evil.example)", "https://evil.example"},
	{"[bank.\u3164example](https://evil.example)", "https://evil.example"},
	{"[bank\ufe52example](https://evil.example)", "https://evil.example"},
	{"[bank.e\u0301xample](https://evil.example)", "https://evil.example"},
	{"[caf\u0065\u0301 ❤\ufe0f](https://good.example)", "<https://good.example|caf\u0065\u0301 ❤\ufe0f>"},
	{"[https://x.example/a](https://x.example/b)", "https://x.example/b"},
	{"[https://x.example/a](https://x.example/a)", "<https://x.example/a|https://x.example/a>"},
	{"[bank.example](https://evil.example)s", "<https://evil.example|https://evil.example>s"},
	{"[x](https://bank.example@evil.example)", "<https://bank.example@evil.example|x>"},
	{"<https://x.example>abc", "<https://x.example|https://x.example>abc"},
	{"(https://x.example/a_(b)) https://x.example/_c_.", "(https://x.example/a_(b)) https://x.example/_c_."},
	{"![](https://x.example/a.png)", "https://x.example/a.png"},
	{"[![alt](https://x.example/a.png)](https://x.example)", "<https://x.example|alt>"},
	{"[a@b.example](mailto:a@b.example) <a@b.example>", "<mailto:a@b.example|a@b.example> a@b.example"},
	{"[x](https://x.example/" + strings.Repeat("y", 3000) + ")", "x (https://x.example/" + strings.Repeat("y", 3000) + ")"},
	{"[x]", "[x]"},
	{"<a1:```>", "a1:``" + apart + "`"},
	{"[\\`\\`\\`](https://x.example/```)", "<https://x.example/%60%60%60|ˋˋˋ>"},
}

func TestMrkdwn(t *testing.T) {
	for _, c := range rendering {
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

// harmless checks that Slack finds no mention in a text, no link but to the web or to mail, and nothing that is not escaped.
func harmless(markup string) string {
	r := slacktest.Read(markup)
	if r.Fault != "" {
		return r.Fault
	}
	if len(r.Calls) > 0 {
		return fmt.Sprint("it notifies ", r.Calls)
	}
	for _, link := range r.Links {
		_, host, safe := safeTarget(link.Target)
		if !safe || link.Label == "" || link.Label != link.Target && pretends(link.Label, host) {
			return fmt.Sprintf("there is a link %+v", link)
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

// words is what people see of a text wherever it is cut: no blanks and no marks.
func words(markup string) string {
	shown := strings.NewReplacer(apart, "", "•", "", "☐", "", "☑", "").Replace(slacktest.Read(markup).Shown)
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("*_~`>", r) {
			return -1
		}
		return r
	}, shown)
}

// checkMessages checks that messages can each be shown alone, and say together what the whole says.
func checkMessages(t interface {
	Fatalf(format string, args ...any)
	Helper()
}, parts []string, whole string, limit int) {
	t.Helper()
	for _, part := range parts {
		if n := length(part); n > limit || strings.TrimSpace(part) == "" {
			t.Fatalf("a message of %d characters:\n%q", n, part)
		}
		if fault := harmless(part); fault != "" {
			t.Fatalf("%s in\n%q", fault, part)
		}
	}
	if got, want := words(strings.Join(parts, "\n")), words(whole); got != want {
		t.Fatalf("the messages say\n%q\nand the text\n%q", got, want)
	}
}

func TestMessagesAreTheRenderedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Tables repeat their heads, which another test looks at.
		source := strings.ReplaceAll(anyMarkdown().Draw(t, "markdown"), "|-", "-")
		limit := rapid.IntRange(100, 600).Draw(t, "limit")
		checkMessages(t, messages(rendered(source), limit), mrkdwn(source), limit)
	})
}

func TestSplitMarkupStaysMarkup(t *testing.T) {
	sentence := "All of this is said with emphasis, in a sentence. "
	for _, c := range []struct{ name, in, begin, end string }{
		{"bold", "**" + strings.TrimSpace(strings.Repeat(sentence, 30)) + "**", "*All", "sentence.*"},
		{"a quote", "> " + strings.Repeat(sentence, 30), "&gt; All", "sentence."},
		{"an item", "- " + strings.Repeat(sentence, 30), "", "sentence."},
		{"code", "```go\n" + strings.Repeat("x := 1\n", 200) + "```", "```\nx := 1\n", "\nx := 1\n```"},
		{"a span", "`" + strings.TrimSpace(strings.Repeat("x y ", 400)) + "`", "`", "`"},
		{"a table", "| Name | N |\n|---|---|\n" + strings.Repeat("| x | 1 |\n", 120), "```\nName | N\n-----|--\nx    | 1\n", "x    | 1\n```"},
		{"records", "| Name | " + strings.Repeat("wide ", 20) + "|\n|---|---|\n" + strings.Repeat("| x | 1 |\n", 20), "*Name:* x\n*wide ", ""},
	} {
		parts := messages(rendered(c.in), 500)
		if len(parts) < 3 {
			t.Errorf("%s: %d parts", c.name, len(parts))
		}
		for i, part := range parts {
			if !strings.HasPrefix(part, c.begin) || !strings.HasSuffix(part, c.end) || length(part) > 500 {
				t.Errorf("%s: message %d is %q", c.name, i, part)
			}
		}
	}
}

// TestTooMuchMarkdown has what parsers are known to take long for, as much of it as is said in messages; and what would be
// cut a thousand times.
func TestTooMuchMarkdown(t *testing.T) {
	for _, unit := range []string{"[", ">", "1. ", "[a](", "_a*", "`a", "a|\n", "[x]: y\n", "x ", "\u0301", "&", "\n"} {
		for _, size := range []int{wholeLimit, 1 << 18} {
			begin := time.Now()
			source := strings.Repeat(unit, size/len(unit))
			for _, part := range messages(rendered(source), textLimit) {
				if n := length(part); n > textLimit {
					t.Errorf("%q: a message of %d characters", unit, n)
				}
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("%d bytes of %q take %v", size, unit, took)
			}
		}
	}
	if got := mrkdwn("**a** <!here> " + strings.Repeat("x", 1<<18)); !strings.HasPrefix(got, "**a** &lt;!here&gt; x") {
		t.Errorf("Markdown that is too long is shown as %.40q", got)
	}
}

// seeds are what fuzzing begins with, besides all that other tests render.
var seeds = []string{
	"**a** <b> & `c`", "```go\nx\n```", "| a | b |\n|---|---|\n| 1 | 2 |", "[x](https://y.example)", "\xff*\xfe_", "&lt;<@U1|x>",
	"> - 1. a\n>   ```\n>   b", "- [x] **a\nb** ~~c~~", "``` ` ``` ```", "<!date^1^{date}|x> <mailto:a@b|c>",
}

func seed(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	for _, c := range rendering {
		f.Add(c.in)
	}
}

// FuzzRender renders anything: no notification, no link that lies, nothing but what Slack reads as it was meant.
func FuzzRender(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, source string) {
		if fault := harmless(mrkdwn(source)); fault != "" {
			t.Fatalf("%s in\n%q", fault, mrkdwn(source))
		}
		if !utf8.ValidString(mrkdwn(source)) {
			t.Fatal("a character is cut")
		}
	})
}

// FuzzSplit splits anything: as Markdown, as it is, and as markup.
func FuzzSplit(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, source string) {
		source = strings.ToValidUTF8(source, "\uFFFD")
		for _, part := range messages(rendered(source), 100) {
			if fault := harmless(part); fault != "" || length(part) > 100 {
				t.Fatalf("%s in a message of %d characters:\n%q", fault, length(part), part)
			}
		}
		checkMessages(t, messages(verbatim(source), 100), verbatim(source).String(), 100)
		checkSplit(t, source, 64)
		checkSplit(t, mrkdwn(source), 64)
	})
}

// FuzzPlain reads anything that might be Slack's. What was typed comes back as it was.
func FuzzPlain(f *testing.F) {
	seed(f)
	for _, s := range []string{"&lt;div&gt; <https://example.org|example.org>", "`<@U1>` <@U1> <!here>", "<@U0BOT> x", "<", "<|>", "<#C1|a|b>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := func(user string) string { return "" }
		plain(text, "U0BOT", name)
		if got := plain(escape(text), "U0BOT", name); got != strings.TrimSpace(text) {
			t.Fatalf("%q was typed and %q is read", text, got)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	page := "## A heading\n\nSome *words* with **marks**, `code` and a [link](https://example.org/page?a=1&b=2).\n\n" +
		"- one item & more\n- another\n  1. nested\n\n```go\nfunc f() { return a < b }\n```\n\n| a | b |\n|---|---|\n| 1 | two |\n\n> quoted\n\n"
	for _, size := range []int{4000, 12_000} {
		source := strings.Repeat(page, size/len(page)+1)[:size]
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				messages(rendered(source), textLimit)
			}
		})
	}
}
