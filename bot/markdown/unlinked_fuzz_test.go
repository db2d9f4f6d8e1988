package markdown_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"nudge/bot/bottest"
	"nudge/bot/markdown"
)

// linksIn finds what GitHub makes links of: those of CommonMark, as another reader of it has them, and addresses, names that begin
// with www, and mail in what is neither a link nor code.
func linksIn(markdown string) (links []string) {
	source := []byte(markdown)
	var plain strings.Builder
	_ = ast.Walk(goldmark.DefaultParser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Type() == ast.TypeBlock {
			plain.WriteByte('\n')
		}
		switch n := n.(type) {
		case *ast.Link:
			links = append(links, string(n.Destination))
		case *ast.Image:
			links = append(links, string(n.Destination))
		case *ast.AutoLink:
			links = append(links, string(n.URL(source)))
		case *ast.CodeSpan, *ast.CodeBlock, *ast.FencedCodeBlock:
			plain.WriteByte(' ')
			return ast.WalkSkipChildren, nil
		case *ast.Emphasis:
			plain.WriteByte(' ')
		case *ast.Text:
			if entering {
				plain.Write(n.Value(source))
			}
			if n.SoftLineBreak() {
				plain.WriteByte('\n')
			}
		}
		return ast.WalkContinue, nil
	})
	return append(links, autolinks.FindAllString(plain.String(), -1)...)
}

var autolinks = regexp.MustCompile(`(?i)\b(?:https?|ftp)://\S+|\bwww\.\S+|[\w.+-]+@[a-zA-Z0-9](?:[\w-]*[a-zA-Z0-9])?\.[a-zA-Z0-9]+`)

// words is a text without all that may be added to it or taken from it: blanks, backticks, and what hides signs from Markdown.
func words(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("`ˋ\\", r) {
			return -1
		}
		return r
	}, markdown.Clean(text))
}

// FuzzUnlinked takes the links out of anything: another reader of Markdown finds none, and no word is lost.
func FuzzUnlinked(f *testing.F) {
	for _, seed := range bottest.Linking {
		f.Add(seed)
		f.Add("**a `b` " + seed + "** c_")
	}
	f.Add("main.go v1.2 e.g. file.txt")
	f.Fuzz(func(t *testing.T, source string) {
		if utf8.RuneCountInString(source) > markdown.Longest {
			return
		}
		got := markdown.Unlinked(source)
		if links := linksIn(got); len(links) > 0 {
			t.Errorf("%q becomes %q, with the links %q", source, got, links)
		}
		if before, after := words(source), words(got); before != after {
			t.Errorf("%q becomes %q: words are lost", source, got)
		}
		shown := markdown.Defanged(got)
		if at := schemed.FindString(shown); at != "" {
			t.Errorf("%q is shown as %q, which has the address %q", source, shown, at)
		}
		if before, after := unbracketed.Replace(words(got)), unbracketed.Replace(words(shown)); before != after {
			t.Errorf("%q is shown as %q: words are lost", source, shown)
		}
	})
}

var (
	schemed     = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://\S`)
	unbracketed = strings.NewReplacer("[", "", "]", "", "。", ".", "．", ".", "｡", ".")
)
