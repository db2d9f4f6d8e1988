package markdown

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Longest is how many characters of Markdown are read. The work grows with the square of their number where marks are
// opened and never closed, or quotes nested for ever: this many take a tenth of a second at worst.
const Longest = 16_000

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

// Parse reads Markdown. The tree refers to the source that is returned with it, which is the text as [Clean] gives it. It
// can be nested as deep as the text is long. ok is false when the text has more than [Longest] characters, which are not
// read; it is to be shown as it is then.
func Parse(markdown string) (tree ast.Node, source []byte, ok bool) {
	if utf8.RuneCountInString(markdown) > Longest {
		return nil, nil, false
	}
	source = []byte(Clean(markdown))
	return reader.Parse(text.NewReader(source)), source, true
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD")

// Clean gives a text with all line ends as \n and without what is no character.
func Clean(text string) string {
	return lineEnds.Replace(strings.ToValidUTF8(text, "\uFFFD"))
}
