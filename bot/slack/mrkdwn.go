package slack

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"nudge/bot/markdown"
)

// escaping is what Slack asks for, and all that it asks for. It also takes the power from everything that could notify
// somebody or show another address than the real one, since all of that stands between < and >.
// See https://docs.slack.dev/messaging/formatting-message-text#escaping.
var escaping = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escape(text string) string { return escaping.Replace(text) }

// apart is a space that is not seen. Slack takes a mark for markup only if no letter touches it from outside.
const apart = "\u200b"

const (
	mostQuotes = 3  // quotes inside each other that are shown; Slack itself shows one
	mostIndent = 24 // blanks in front of a list inside lists
)

// Slack's markup around a stretch of text. None of what is Inline reaches over the end of a line in Slack.
var (
	boldMark   = markdown.Mark{Enter: "*", Leave: "*", Inline: true}
	italicMark = markdown.Mark{Enter: "_", Leave: "_", Inline: true}
	strikeMark = markdown.Mark{Enter: "~", Leave: "~", Inline: true}
	codeMark   = markdown.Mark{Enter: "`", Leave: "`", Inline: true, Code: true}
	blockMark  = markdown.Mark{Enter: fence + "\n", Leave: "\n" + fence, Code: true, Alone: true}
	quoteMark  = markdown.Mark{Enter: "&gt; ", Line: "&gt; "}
)

// rendered turns Markdown into Slack's own markup. The Markdown is a model's and not trusted: whatever it holds, nobody is
// notified by what comes out, and each link shows where it leads or a label that does not pretend to lead elsewhere. Only
// marks and links are written as markup; all words are escaped on their way into the text, and so exactly once.
//
// What Slack has no markup for is shown in another way: headings in bold, lists with bullets, tables in columns or, where
// they are too wide, as one record for each row. HTML, and entities such as &amp;, are text. Markdown that is too long or
// too deep to be read is shown as it is.
func rendered(source string) *markdown.Text {
	tree, read, ok := markdown.Parse(source)
	if !ok {
		return verbatim(source)
	}
	r := &renderer{out: &markdown.Text{Escape: escape, Size: length}, source: read}
	r.blocks(tree)
	return r.out
}

// mrkdwn is rendered as one string.
func mrkdwn(source string) string { return rendered(source).String() }

// renderer walks over Markdown.
type renderer struct {
	out    *markdown.Text
	source []byte

	quotes, indent       int
	bold, italic, strike bool // what the words are marked as

	last   rune // what was written last; 0 at the beginning of a line or after a blank
	ticks  int  // backticks at the end of what was written
	begins bool // a line begins here
	closed bool // markup was closed here
}

// blocks renders what stands below each other in a container.
func (r *renderer) blocks(container ast.Node) {
	for n := container.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			r.lines(r.gap(n))
		}
		r.line()
		r.block(n)
	}
}

func (r *renderer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		r.marked(boldMark, &r.bold, n)
	case *ast.ThematicBreak:
		r.out.Whole("———")
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		r.codeBlock(n)
	case *ast.Blockquote:
		r.quote(n)
	case *ast.List:
		r.list(n)
	case *east.Table:
		r.table(n)
	case *ast.LinkReferenceDefinition:
	default:
		r.inlines(n)
	}
}

// lines ends the line.
func (r *renderer) lines(n int) {
	r.out.Lines(n)
	r.line()
}

// gap is how many lines end before a block that follows another: two where the source has an empty line, or else one.
func (r *renderer) gap(n ast.Node) int {
	before := r.source[:max(0, n.Pos())]
	before = before[:max(0, bytes.LastIndexByte(before, '\n'))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	if len(bytes.Trim(line, "> \t")) > 0 {
		return 1
	}
	return 2
}

// line tells that a line begins.
func (r *renderer) line() { r.last, r.ticks, r.begins, r.closed = 0, 0, true, false }

// codeBlock shows lines as they are.
func (r *renderer) codeBlock(n ast.Node) {
	r.own(n)
	r.verbatim(string(n.Lines().Value(r.source)))
}

// verbatim shows text as a block of code. Three backticks in it would end the block.
func (r *renderer) verbatim(text string) {
	r.out.Open(blockMark)
	r.out.Write(unfenced(strings.TrimSuffix(text, "\n")))
	r.out.Close()
}

// unfenced parts backticks, so that no three of them are a fence to Slack.
func unfenced(text string) string {
	if !strings.Contains(text, fence) {
		return text
	}
	var b strings.Builder
	ticks := 0
	for _, c := range text {
		if c != '`' {
			ticks = 0
		} else if ticks++; ticks > 2 {
			b.WriteString(apart)
			ticks = 1
		}
		b.WriteRune(c)
	}
	return b.String()
}

// own gives a list's item that begins with something that stands alone a line of its own, so that its bullet is seen.
func (r *renderer) own(n ast.Node) {
	if n.PreviousSibling() == nil && n.Parent().Kind() == ast.KindListItem {
		r.out.Whole("")
		r.out.Lines(1)
	}
}

func (r *renderer) quote(n ast.Node) {
	if r.quotes == mostQuotes {
		r.blocks(n)
		return
	}
	r.quotes++
	r.out.Open(quoteMark)
	r.blocks(n)
	r.out.Close()
	r.quotes--
}

func (r *renderer) list(list *ast.List) {
	number := list.Start
	for n := list.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			r.lines(r.gap(n))
		}
		bullet, indent := "• ", "  "
		if list.IsOrdered() {
			bullet = fmt.Sprintf("%d%c ", number, list.Marker)
			indent = strings.Repeat(" ", len(bullet))
			number++
		}
		r.item(n, bullet, indent)
	}
}

// item renders one item of a list. A box takes the place of a bullet. Lists inside many others are indented no further.
func (r *renderer) item(n ast.Node, bullet, indent string) {
	if box := boxOf(n); box != "" {
		bullet = strings.TrimPrefix(bullet, "• ") + box + " "
	}
	if r.indent+len(indent) > mostIndent {
		r.out.Write(bullet)
		r.blocks(n)
		return
	}
	r.indent += len(indent)
	r.out.Open(markdown.Mark{Enter: bullet, Again: indent, Line: indent})
	r.blocks(n)
	r.out.Close()
	r.indent -= len(indent)
}

// boxOf is the box of an item that is a task.
func boxOf(item ast.Node) string {
	if first := item.FirstChild(); first != nil {
		if box, ok := first.FirstChild().(*east.TaskCheckBox); ok {
			return map[bool]string{true: "☑", false: "☐"}[box.IsChecked]
		}
	}
	return ""
}
