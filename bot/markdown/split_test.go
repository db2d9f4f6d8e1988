package markdown

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"pgregory.net/rapid"
)

// Marks that can be told from all words.
var (
	testBold  = Mark{Enter: "«", Leave: "»", Inline: true}
	testQuote = Mark{Enter: "▌", Line: "▌"}
	testItem  = Mark{Enter: "●", Again: "○", Line: "○"}
	testCode  = Mark{Enter: "╔\n", Leave: "\n╝", Code: true, Alone: true}
	testTable = Mark{Enter: "╔\n", Again: "╔\n◆\n", Leave: "\n╝", Code: true, Alone: true}
)

const ofMarks = "«»▌●○╔╝◆"

// bare is what of a text are words, without blanks.
func bare(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune(ofMarks, r) {
			return -1
		}
		return r
	}, text)
}

func drawWords(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{"word ", "a sentence. ", "x", "&<>", "👩‍👩‍👧", "🇩🇪", "e\u0301", "👍🏽", "한", "文。", "\n", "  "}),
		rapid.Map(rapid.IntRange(1, 150), func(n int) string { return strings.Repeat("y", n) }),
		rapid.StringMatching(`[a-zÀ-ž ]{0,20}`),
	), 1, 12).Draw(t, "words"), "")
}

func drawText(t *rapid.T) *Text {
	out := &Text{Escape: strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace}
	open := 0
	for range rapid.IntRange(1, 25).Draw(t, "pieces") {
		switch rapid.IntRange(0, 8).Draw(t, "what") {
		case 0:
			if open < 4 && (out.in == nil || !out.in.Code) {
				marks := []Mark{testBold, testQuote, testItem, testCode, testTable}
				if out.in != nil && out.in.Inline {
					marks = marks[:1]
				}
				out.Open(rapid.SampledFrom(marks).Draw(t, "mark"))
				open++
			}
		case 1:
			if open > 0 {
				out.Close()
				open--
			}
		case 2:
			out.Lines(rapid.IntRange(1, 3).Draw(t, "lines"))
		case 3:
			out.Fixed(rapid.StringMatching(`[a-z&]{1,40}`).Draw(t, "fixed"))
		case 4:
			out.Keep()
		default:
			out.Write(drawWords(t))
		}
	}
	for ; open > 0; open-- {
		out.Close()
	}
	return out
}

func TestPartsAreTheWholeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		limit := rapid.IntRange(64, 400).Draw(t, "limit")
		parts := text.Split(limit)
		for _, part := range parts {
			if n := utf8.RuneCountInString(part); n > limit {
				t.Fatalf("a part of %d characters, and %d are allowed:\n%s", n, limit, part)
			}
			if fault := unbalanced(part); fault != "" {
				t.Fatalf("%s in\n%s", fault, part)
			}
		}
		if got, want := bare(strings.Join(parts, "")), bare(text.String()); got != want {
			t.Fatalf("the parts say\n%s\nand the text\n%s", got, want)
		}
		if whole := text.String(); len(parts) == 1 && utf8.RuneCountInString(whole) <= limit && parts[0] != whole {
			t.Fatalf("a text that fits became\n%s\nand is\n%s", parts[0], whole)
		}
		if again := text.Split(limit); !slices.Equal(again, parts) {
			t.Fatal("the text is split in another way the second time")
		}
	})
}

// unbalanced tells which marks of a part are open at its end, or at the end of a line.
func unbalanced(part string) string {
	code, bold := 0, 0
	for _, r := range part {
		switch r {
		case '╔':
			code++
		case '╝':
			code--
		case '«':
			bold++
		case '»':
			bold--
		case '\n':
			if bold != 0 {
				return "emphasis reaches over the end of a line"
			}
		}
		if code < 0 || code > 1 || bold < 0 {
			return "something is left that was not entered"
		}
	}
	if code != 0 || bold != 0 {
		return "something is not left"
	}
	return ""
}

func clusters(text string) []string {
	var out []string
	for g := graphemes.FromString(text); g.Next(); {
		out = append(out, g.Value())
	}
	return out
}

func TestCharactersAreKeptWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.SampledFrom([]string{"👩‍👩‍👧", "🇩🇪", "🇫🇷", "e\u0301", "👍🏽", "한", "각", "a", "नि", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "7️⃣"}), 50, 400).Draw(t, "units")
		text := &Text{}
		whole := strings.Join(units, "")
		text.Write(whole)
		var got []string
		for _, part := range text.Split(64) {
			got = append(got, clusters(part)...)
		}
		if want := clusters(whole); !slices.Equal(got, want) {
			t.Fatalf("%d characters became %d", len(want), len(got))
		}
	})
}

// TestWhereATextIsCut has texts of which the first part must end in a certain way.
func TestWhereATextIsCut(t *testing.T) {
	long := func(unit string, n int) string { return strings.TrimSpace(strings.Repeat(unit, n/len(unit)+1)[:n]) }
	for _, c := range []struct {
		name string
		text func(*Text)
		want string // what the first of the parts of 100 characters ends with
	}{
		{"between paragraphs", func(t *Text) { t.Write(long("p ", 70)); t.Lines(2); t.Write(long("A sentence. ", 80)) }, "p p"},
		{"a paragraph that is too short", func(t *Text) {
			t.Write("p.")
			t.Lines(2)
			t.Write("One. " + long("x ", 60) + " Two. " + long("Y ", 80))
		}, "Two."},
		{"after a line", func(t *Text) { t.Write(long("a. ", 60) + "\n" + long("b. ", 80)) }, "a."},
		{"after a sentence", func(t *Text) { t.Write(long("x ", 60) + "is it? " + long("y ", 80)) }, "is it?"},
		{"after a sentence without blanks", func(t *Text) { t.Write(strings.Repeat("文", 50) + "。" + strings.Repeat("字", 80)) }, "。"},
		{"after a word", func(t *Text) { t.Write(long("word ", 200)) }, "word"},
		{"in a long word", func(t *Text) { t.Write("short " + strings.Repeat("z", 300)) }, "zzz"},
		{"before what is whole", func(t *Text) { t.Write("x "); t.Fixed(strings.Repeat("f", 99)) }, "x"},
		{"what is whole and too long", func(t *Text) { t.Fixed(strings.Repeat("f", 150)) }, strings.Repeat("f", 100)},
		{"a head is kept", func(t *Text) {
			t.Write(long("x ", 80))
			t.Lines(1)
			t.Write("head")
			t.Keep()
			t.Lines(1)
			t.Write(strings.Repeat("r", 40))
		}, "x"},
		{"a character that is longer than a message", func(t *Text) { t.Write("e" + strings.Repeat("\u0301", 300)) }, "\u0301"},
	} {
		text := &Text{}
		c.text(text)
		parts := text.Split(100)
		if len(parts) < 2 || !strings.HasSuffix(parts[0], c.want) {
			t.Errorf("%s: %q, want %q at the end of the first", c.name, parts, c.want)
		}
		for _, part := range parts {
			if utf8.RuneCountInString(part) > 100 || part == "" {
				t.Errorf("%s: a part of %d", c.name, utf8.RuneCountInString(part))
			}
		}
	}
}

func TestMarkupIsEnteredAgain(t *testing.T) {
	text := &Text{}
	text.Open(testQuote)
	text.Open(testBold)
	text.Write(strings.Repeat("word ", 40) + "\nnext")
	text.Close()
	text.Close()
	for i, part := range text.Split(100) {
		if !strings.HasPrefix(part, "▌«word") || !strings.HasSuffix(part, "»") || strings.Contains(part, "«»") {
			t.Errorf("part %d is %q", i, part)
		}
	}
	if got := text.String(); !strings.HasSuffix(got, "word»\n▌«next»") {
		t.Errorf("the text ends with %q", got[len(got)-30:])
	}

	table := &Text{}
	table.Open(testTable)
	table.Write("◆\n" + strings.Repeat("a row\n", 40))
	table.Close()
	for i, part := range table.Split(100) {
		if !strings.HasPrefix(part, "╔\n◆\na row") || !strings.HasSuffix(part, "a row\n╝") {
			t.Errorf("part %d of the table is %q", i, part)
		}
	}
}

func TestCodeKeepsItsBlanks(t *testing.T) {
	code := "if x {\n\tfor  y {\n\n\t\tz()   // " + strings.Repeat("long  ", 30) + "\n\t}\n}"
	text := &Text{}
	text.Open(testCode)
	text.Write(code)
	text.Close()
	if got := text.String(); got != "╔\n"+code+"\n╝" {
		t.Errorf("code became %q", got)
	}
	var bodies []string
	for _, part := range text.Split(80) {
		bodies = append(bodies, strings.TrimSuffix(strings.TrimPrefix(part, "╔\n"), "\n╝"))
	}
	// Only ends of lines are left out at a cut.
	if got := strings.ReplaceAll(strings.Join(bodies, ""), "\n", ""); got != strings.ReplaceAll(code, "\n", "") {
		t.Errorf("the parts hold %q", got)
	}
}

func TestColumns(t *testing.T) {
	table := Table{Head: []string{"a", "long one"}, Rows: [][]string{{"日本", "x"}, {"y"}, {}}}
	head, rule, rows, ok := table.Columns(40)
	if got := strings.Join(append([]string{head, rule}, rows...), "\n"); !ok || got != "a    | long one\n-----|---------\n日本 | x\ny    |\n     |" {
		t.Errorf("the table is\n%s", got)
	}
	if _, _, _, ok := table.Columns(14); ok {
		t.Error("a table that is too wide is laid out")
	}
}
