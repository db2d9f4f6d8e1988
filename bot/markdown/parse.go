package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// What is parsed. Longer or deeper Markdown is not worth the time that it takes: a parser's work grows with the square of
// some of it.
const (
	longest = 64 << 10 // bytes
	deepest = 24       // quotes, lists and brackets inside each other
	openest = 1500     // marks that may open or close something
)

// reader reads CommonMark with GitHub's tables, task lists and strikethrough. It differs where models do, whose readers are
// people: HTML is text, stars close behind punctuation (see emphasis), and a table ends at a line without a bar.
var reader = parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	),
	parser.WithInlineParsers(
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(address{}, 150),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewRawHTMLParser(), 400),
		util.Prioritized(emphasis{}, 500),
	),
	parser.WithParagraphTransformers(
		util.Prioritized(parser.LinkReferenceParagraphTransformer, 100),
		util.Prioritized(table{extension.NewTableParagraphTransformer()}, 200),
	),
	parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
)

// Parse reads Markdown. The tree refers to the source that is returned with it: the text with all line ends as \n and without
// what is no character. ok is false when the text is longer, nested deeper or marked more often than is read; it is to be shown
// as it is then.
func Parse(markdown string) (tree ast.Node, source []byte, ok bool) {
	markdown = Clean(markdown)
	if len(markdown) > longest || tooDeep(markdown) {
		return nil, nil, false
	}
	source = []byte(markdown)
	return reader.Parse(text.NewReader(source)), source, true
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD")

// Clean gives a text with all line ends as \n and without what is no character.
func Clean(text string) string {
	return lineEnds.Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// tooDeep reports whether a text may be nested deeper, or has more marks in one paragraph, than is parsed. It looks at signs
// only, so it is quick, and may be wrong about code.
func tooDeep(markdown string) bool {
	brackets, marks := 0, 0
	for line := range strings.Lines(markdown) {
		if strings.TrimSpace(line) == "" {
			brackets, marks = 0, 0
			continue
		}
		if containers(line) > deepest {
			return true
		}
		for i := range len(line) {
			switch line[i] {
			case '[':
				brackets++
			case ']':
				brackets = max(0, brackets-1)
			case '*', '_', '~', '`', '<', '!':
				marks++
			}
			if brackets > 4*deepest || marks > openest {
				return true
			}
		}
	}
	return false
}

// containers is how many quotes and lists a line begins at most. One that is only indented counts its indentation: two
// columns at least are needed for each list.
func containers(line string) int {
	n, columns := 0, 0
	for i := range len(line) {
		switch c := line[i]; {
		case c == ' ':
			columns++
		case c == '\t':
			columns += 4
		case c == '>', c == '-', c == '+', c == '*', c == '.', c == ')':
			n++
		case c < '0' || c > '9':
			return n
		}
	}
	return n
}
