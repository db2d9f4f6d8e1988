package slack

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"nudge/bot/markdown"
)

// inlines renders what stands within lines. Words that follow each other are written together: what the parser took for two
// pieces can be one to Slack.
func (r *renderer) inlines(container ast.Node) {
	var words strings.Builder
	for n := container.FirstChild(); n != nil; n = n.NextSibling() {
		if literal, ok := r.literal(n); ok {
			words.WriteString(literal)
			continue
		}
		r.write(words.String())
		words.Reset()
		r.inline(n)
	}
	last := words.String()
	if container.Type() == ast.TypeBlock {
		last = strings.TrimRight(last, "\n ")
	}
	r.write(last)
}

// literal gives the words of what is nothing but words.
func (r *renderer) literal(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.Text:
		text := string(n.Value(r.source))
		if !n.IsRaw() {
			text = string(util.UnescapePunctuations([]byte(text)))
		}
		if n.SoftLineBreak() || n.HardLineBreak() {
			text += "\n"
		}
		return text, true
	case *ast.String:
		return string(n.Value), true
	case *ast.RawHTML:
		return string(n.Segments.Value(r.source)), true
	case *ast.AutoLink:
		return r.bracketed(n)
	}
	return "", false
}

func (r *renderer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Emphasis:
		r.emphasis(n)
	case *east.Strikethrough:
		r.marked(strikeMark, &r.strike, n)
	case *ast.CodeSpan:
		r.codeSpan(n)
	case *ast.AutoLink:
		r.address(string(n.Label(r.source)), n)
	case *ast.Link:
		r.hyperlink(r.plain(n), destination(n.Destination), n)
	case *ast.Image:
		r.image(n)
	case *east.TaskCheckBox: // stands in place of the bullet
	default:
		r.inlines(n)
	}
}

// emphasis renders *italic* and **bold**. What is both is bold outside, as people write it in Slack.
func (r *renderer) emphasis(n *ast.Emphasis) {
	inner, both := n.FirstChild().(*ast.Emphasis)
	both = both && n.ChildCount() == 1 && inner.Level != n.Level
	switch {
	case both && n.Level == 1:
		r.around(boldMark, &r.bold, func() { r.marked(italicMark, &r.italic, inner) })
	case n.Level == 1:
		r.marked(italicMark, &r.italic, n)
	default:
		r.marked(boldMark, &r.bold, n)
	}
}

// marked renders what is inside a node with marks around it.
func (r *renderer) marked(m markdown.Mark, holds *bool, n ast.Node) {
	r.around(m, holds, func() { r.inlines(n) })
}

// around puts marks around what render writes, unless they hold already.
func (r *renderer) around(m markdown.Mark, holds *bool, render func()) {
	if *holds {
		render()
		return
	}
	r.open(m)
	*holds = true
	render()
	*holds = false
	r.close()
}

// open opens marks, apart from what stands before them.
func (r *renderer) open(m markdown.Mark) {
	if touches(r.last) || r.closed {
		r.out.Whole(apart)
	}
	r.out.Open(m)
	r.last, r.ticks, r.begins, r.closed = 0, 0, false, false
}

func (r *renderer) close() {
	r.out.Close()
	r.last, r.ticks, r.closed = 0, 0, true
}

// touches reports whether a character keeps Slack from taking the mark beside it for one. Of what is not Latin, all does.
func touches(c rune) bool {
	switch {
	case c == 0, unicode.IsSpace(c):
		return false
	case c > unicode.MaxASCII:
		return true
	}
	return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("*_~`", c)
}

// codeSpan renders a stretch of code, which ends at the first backtick in Slack.
func (r *renderer) codeSpan(n *ast.CodeSpan) {
	var text strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			text.Write(t.Value(r.source))
		}
	}
	r.open(codeMark)
	r.out.Write(strings.NewReplacer("\n", " ", "`", "ˋ").Replace(text.String()))
	r.close()
}

// write writes words. A fence among them would begin a block, and a > at the beginning of a line a quote.
func (r *renderer) write(words string) {
	if words == "" {
		return
	}
	first, _ := utf8.DecodeRuneInString(words)
	switch {
	case r.closed && touches(first):
		r.out.Whole(apart)
	case r.begins && first == '>', r.ticks > 0 && first == '`':
		r.out.Whole(apart)
	}
	words = strings.ReplaceAll(unfenced(words), "\n>", "\n"+apart+">")
	r.out.Write(words)
	r.wrote(words)
}

// wrote remembers how what was written ends.
func (r *renderer) wrote(words string) {
	r.last, _ = utf8.DecodeLastRuneInString(words)
	r.ticks = len(words) - len(strings.TrimRight(words, "`"))
	r.begins, r.closed = r.last == '\n', false
	if unicode.IsSpace(r.last) {
		r.last = 0
	}
}

// plain is what is inside a node as words, without any markup.
func (r *renderer) plain(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.AutoLink:
			b.Write(c.Label(r.source))
		case *ast.Link:
			b.WriteString(spelled(r.plain(c), destination(c.Destination)))
		default:
			if literal, ok := r.literal(c); ok {
				b.WriteString(literal)
			} else {
				b.WriteString(r.plain(c))
			}
		}
	}
	return b.String()
}
