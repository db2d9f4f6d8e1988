package markdown

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOutline(t *testing.T) {
	many := ""
	for i := range 30 {
		many += fmt.Sprintf("## Part %d\n\nwords\n\n", i)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"headings and an ending", "# Report\n\nIntro.\n\n## Costs ##\n\n- a\n\n### Rent\n\n#### Deep\n\n## Staff\n\nIn short,\nall is well.\n",
			"What it holds:\n\n- Costs\n  - Rent\n- Staff\n\nIt ends: In short, all is well."},
		{"no title", "# One\n\na\n\n# Two\n\n- b", "What it holds:\n\n- One\n- Two"},
		{"code is no heading", "```sh\n# comment\n## other\n```\n\n- x", ""},
		{"a fence in a longer fence", "````\n```\n# a\n```\n# b\n````\n- x", ""},
		{"a fence that is never closed", "Words.\n\n```\n# a\n\nmore", ""},
		{"one heading says nothing", "## Alone\n\n| a | b |", ""},
		{"a list is no ending", "words\n\n- one\n- two", ""},
		{"nor is what follows it without a gap", "words\n\n- one\ntwo", ""},
		{"a paragraph after code", "```\nx\n```\nSo it works.\n", ""},
		{"a paragraph after code and a gap", "```\nx\n```\n\nSo it works.\n", "It ends: So it works."},
		{"other ends of lines", "# A\r\n\r\n# B\r\n\r\nDone.\r\n", "What it holds:\n\n- A\n- B\n\nIt ends: Done."},
		{"a hash is no heading", "#tag\n\n#other\n\n1. x", ""},
		{"a long ending", strings.Repeat("words ", 100), ""},
	} {
		if got := Outline(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Outline(many); strings.Count(got, "\n- Part") != mostHeadings || !strings.Contains(got, "- … and more") {
		t.Errorf("of thirty headings: %s", got)
	}
}

func FuzzOutline(f *testing.F) {
	f.Add("# a\n\n## b\n\n```\n# c\n")
	f.Add("~~~\n~~~~\n# x\n\n\x00\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := Outline(text)
		if limit := (mostHeadings+2)*(longestTitle+8) + longestEnding + 64; utf8.RuneCountInString(got) > limit {
			t.Errorf("an outline of %d characters", utf8.RuneCountInString(got))
		}
	})
}
