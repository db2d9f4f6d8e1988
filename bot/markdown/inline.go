package markdown

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// emphasis reads the marks of emphasis. CommonMark lets a mark behind punctuation close only if no letter follows, so
// that **Status:**OK keeps its stars, and so does most of what is emphasised in Chinese or Japanese, where no blanks
// stand between words. Here two stars close wherever something stands before them. In return a single star inside a word
// is a star, as in 2*3*4, and a single tilde is always one.
type emphasis struct{}

func (emphasis) Trigger() []byte { return []byte{'*', '_', '~'} }

func (emphasis) IsDelimiter(b byte) bool { return b == '*' || b == '_' || b == '~' }

func (emphasis) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && (opener.Char != '~' || opener.Length == closer.Length)
}

func (emphasis) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

// strike makes what stands between tildes.
type strike struct{ emphasis }

func (strike) OnMatch(int) ast.Node { return east.NewStrikethrough() }

func (e emphasis) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	char, n := line[0], 1
	for n < len(line) && line[n] == char {
		n++
	}
	after, _ := utf8.DecodeRune(line[n:])
	if n == len(line) {
		after = ' '
	}
	here := segment.WithStop(segment.Start + n)
	block.Advance(n)
	opens, closes := flanks(char, n, before, after)
	if !opens && !closes {
		return ast.NewTextSegment(here)
	}
	var processor parser.DelimiterProcessor = e
	if char == '~' {
		processor = strike{}
	}
	d := parser.NewDelimiter(opens, closes, n, char, processor)
	d.Segment = here
	pc.PushDelimiter(d)
	return d
}

// flanks reports whether n marks between two characters can open and close a stretch.
func flanks(mark byte, n int, before, after rune) (opens, closes bool) {
	opens, closes = !unicode.IsSpace(after), !unicode.IsSpace(before)
	inWord := word(before) && word(after)
	switch {
	case n > 3, mark == '~' && n != 2:
		return false, false
	case inWord && (unicode.IsDigit(before) && unicode.IsDigit(after)):
		return false, false
	case mark == '_':
		return opens && !word(before), closes && !word(after)
	case n == 1 && mark == '*' && opens && closes && !ideograph(before) && !ideograph(after):
		// Between a letter and a bracket, say, it can be one of both only.
		return !word(before) && !inWord, !word(after) && !inWord
	}
	return opens, closes
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// ideograph reports whether a character belongs to a script that writes without blanks.
func ideograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// address reads addresses of the web that stand in the text as they are, so that no mark inside them is one.
type address struct{}

// Trigger has what may stand before an address. A blank stands for the beginning of a line as well. A bracket is not among
// them, as it may open a link.
func (address) Trigger() []byte { return []byte(" (:\"',;={}-/>|#+.?&%@^$") }

func (address) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	skip := 0
	if c := line[0]; c != 'h' && c != 'H' {
		skip = 1
	}
	if pc.IsInLinkLabel() || skip == 0 && word(block.PrecendingCharacter()) {
		return nil
	}
	n := addressLength(line[skip:])
	if n == 0 {
		return nil
	}
	if skip > 0 {
		ast.MergeOrAppendTextSegment(parent, segment.WithStop(segment.Start+skip))
	}
	block.Advance(skip + n)
	begin := segment.Start + skip
	return ast.NewAutoLink(ast.AutoLinkURL, ast.NewTextSegment(text.NewSegment(begin, begin+n)))
}

// addressLength is how many bytes of a line an address has with which it begins. What ends a sentence ends no address.
func addressLength(line []byte) int {
	if !hasScheme(line) {
		return 0
	}
	end := bytes.IndexFunc(line, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("<>\"`|", r) })
	if end < 0 {
		end = len(line)
	}
	for end > 0 {
		c := line[end-1]
		balanced := c == ')' && bytes.Count(line[:end], []byte("(")) >= bytes.Count(line[:end], []byte(")"))
		if balanced || !strings.ContainsRune("*_~.,;:!?')]}\\", rune(c)) {
			break
		}
		end--
	}
	if !hasScheme(line[:end]) {
		return 0
	}
	return end
}

func hasScheme(line []byte) bool {
	for _, scheme := range []string{"https://", "http://"} {
		if len(line) > len(scheme) && strings.EqualFold(string(line[:len(scheme)]), scheme) {
			return true
		}
	}
	return false
}

// table reads tables as the transformer does that it wraps, but leaves lines without a bar to the paragraph behind the
// table.
type table struct{ parser.ParagraphTransformer }

func (t table) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	parent, lines := node.Parent(), node.Lines()
	first := delimiterLine(lines, reader.Source())
	if first < 0 {
		return
	}
	for i := first + 1; i < lines.Len(); i++ {
		segment := lines.At(i)
		if bytes.IndexByte(segment.Value(reader.Source()), '|') < 0 {
			rest := ast.NewParagraph()
			rest.Lines().AppendAll(lines.Sliced(i, lines.Len()))
			rest.SetPos(segment.Start)
			lines.SetSliced(0, i)
			parent.InsertAfter(parent, node, rest)
			break
		}
	}
	t.ParagraphTransformer.Transform(node, reader, pc)
}

// delimiterLine is the number of the line that makes a table of the line above it; -1 if there is none.
func delimiterLine(lines *text.Segments, source []byte) int {
	for i := 1; i < lines.Len(); i++ {
		segment := lines.At(i)
		line := bytes.TrimSpace(segment.Value(source))
		if bytes.IndexByte(line, '|') >= 0 && bytes.IndexByte(line, '-') >= 0 && len(bytes.Trim(line, "|-: \t")) == 0 {
			return i
		}
	}
	return -1
}
