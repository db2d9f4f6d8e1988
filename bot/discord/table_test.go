package discord

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestTables lays tables out as people can read them.
func TestTables(t *testing.T) {
	wide := strings.Repeat("long words ", 8)
	for name, c := range map[string]struct{ text, want string }{
		"narrow": {
			"Look:\n\n| Name | **Size** |\n|:--|--:|\n| `a` | 1 |\n| [b](https://b.example) | 20 |\n\nDone.",
			"Look:\n\n```\nName | Size\n-----|-----\na    | 1\nb    | 20\n```\n\nDone.",
		},
		"wide": {
			"| Name | About |\n|--|--|\n| **a** | " + wide + "|\n| b | |",
			"**Name:** **a**\n**About:** " + strings.TrimSpace(wide) + "\n\n**Name:** b",
		},
		"in code":  {"```\n| a | b |\n|--|--|\n| 1 | 2 |\n```", "```\n| a | b |\n|--|--|\n| 1 | 2 |\n```"},
		"no table": {"a | b\nc | d", "a | b\nc | d"},
		"two":      {"|a|\n|-|\n|1|\n\n|b|\n|-|\n|2|", "```\na\n-\n1\n```\n\n```\nb\n-\n2\n```"},
	} {
		if got := strings.Join(messages(rendered(c.text)), "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestTablesKeepTheirWords draws tables between other words: each word stands there once, in order, whatever is around it.
func TestTablesKeepTheirWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		word := func() string {
			n++
			return fmt.Sprintf("%sq%dw", strings.Repeat("x", rapid.IntRange(0, 30).Draw(t, "length")), n)
		}
		var b strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "words") {
				fmt.Fprintf(&b, "%s %s.\n\n", word(), word())
				continue
			}
			columns := rapid.IntRange(1, 5).Draw(t, "columns")
			for row := range rapid.IntRange(2, 6).Draw(t, "rows") {
				for range columns {
					fmt.Fprintf(&b, "| %s ", word())
				}
				b.WriteString("|\n")
				if row == 0 {
					b.WriteString(strings.Repeat("|--", columns) + "|\n")
				}
			}
			b.WriteString("\n")
		}
		all := strings.Join(messages(rendered(b.String())), "\n")
		for i := 1; i <= n; i++ {
			if !strings.Contains(all, fmt.Sprintf("q%dw", i)) {
				t.Fatalf("word %d of %q is missing in %q", i, b.String(), all)
			}
		}
	})
}

// FuzzTabled lays out anything: what has no table stays as it is, and each message fits.
func FuzzTabled(f *testing.F) {
	for _, text := range []string{"|a|\n|-|\n|1|", "| a\n|--|--\n", "> |a|\n> |-|\n> |1|", "- |a|\n  |-|\n", "|a|\n|-|\n|`|`|", "|\xff|\n|-|\n||", "a\n|-\n|"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := tabled(text)
		if !strings.Contains(text, "|") && got != text {
			t.Errorf("%q becomes %q", text, got)
		}
		for _, part := range messages(rendered(text)) {
			if utf8.RuneCountInString(part) > textLimit {
				t.Errorf("a part of %q has %d characters", text, utf8.RuneCountInString(part))
			}
		}
	})
}
