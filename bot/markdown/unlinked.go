package markdown

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// addressed finds the beginnings of addresses as no platform may make a link of them, also where a backslash is to hide them
// from Markdown.
var addressed = regexp.MustCompile(`(?i)(?:[a-z][a-z0-9+.-]*\\?:\\?/\\?/|mailto\\?:|www\.)`)

// Unlinked is Markdown without links and images: their words stay, and the address stands behind them as code, where all of
// it can be read and nothing follows it. It is for texts that somebody else than the model may have had a hand in, whose
// links could carry away what nobody was asked about, or lead elsewhere than they say. Code that every platform takes for
// code stays as it is.
func Unlinked(text string) string {
	text = Clean(text)
	if !addressed.MatchString(text) && !strings.Contains(text, "](") && !strings.Contains(text, "]:") {
		return text
	}
	var out strings.Builder
	at := 0
	for _, code := range codeIn(text) {
		out.WriteString(unlinked(text[at:code.from]))
		out.WriteString(text[code.from:code.to])
		at = code.to
	}
	out.WriteString(unlinked(text[at:]))
	return out.String()
}

// linking is what makes links, as it may stand. A backtick that begins no code could take the one away that does.
var linking = strings.NewReplacer("`", "ˋ", "](", "] (", "]:", "] :")

// unlinked is Unlinked for what is no code.
func unlinked(text string) string {
	var out strings.Builder
	for {
		found := addressed.FindStringIndex(text)
		if found == nil {
			out.WriteString(linking.Replace(text))
			return out.String()
		}
		address := addressOf(text[found[0]:], found[1]-found[0])
		before := text[:found[0]]
		if slashes := len(before) - len(strings.TrimRight(before, "\\")); slashes%2 == 1 {
			before = before[:len(before)-1] // it would take the backtick for a word
		}
		out.WriteString(linking.Replace(before))
		out.WriteString("`" + strings.ReplaceAll(address, "\\", "") + "`")
		text = text[found[0]+len(address):]
	}
}

// addressOf is the address with which a text begins, whose first bytes are known to belong to it: not what ends a sentence behind
// it, and not the brackets that stand around it.
func addressOf(text string, known int) string {
	const ends = "*_~.,;:!?'\\"
	end := len(text)
	for i, r := range text[known:] {
		inWords := strings.HasPrefix(text[known+i:], "](") // the words of a link that look like another
		if inWords || unicode.IsSpace(r) || strings.ContainsRune("<>\"`|", r) {
			end = known + i
			break
		}
	}
	address := strings.TrimRight(text[:end], ends)
	open, closed := strings.Count(address, "("), strings.Count(address, ")")
	for {
		switch {
		case strings.HasSuffix(address, ")") && closed > open:
			closed--
		case !strings.HasSuffix(address, "]"):
			if address == "" {
				return text[:1]
			}
			return address
		}
		address = strings.TrimRight(address[:len(address)-1], ends)
	}
}

// extent is the bytes from one place of a text to another.
type extent struct{ from, to int }

// codeIn finds the code in a text, with its marks, that is code to whoever reads it: spans between single backticks in one
// line, and blocks between fences of three that have none inside. What only some platforms take for code is not among it.
func codeIn(text string) (found []extent) {
	tree, source, ok := Parse(text)
	if !ok {
		return nil
	}
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			if s, ok := spanAt(n, source); ok {
				found = append(found, s)
			}
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock:
			if s, ok := fenceAt(n, source); ok {
				found = append(found, s)
			}
		}
		return ast.WalkContinue, nil
	})
	slices.SortFunc(found, func(a, b extent) int { return a.from - b.from })
	return found
}

func spanAt(n *ast.CodeSpan, source []byte) (s extent, ok bool) {
	first, isText := n.FirstChild().(*ast.Text)
	last, alsoText := n.LastChild().(*ast.Text)
	if !isText || !alsoText {
		return s, false
	}
	s = extent{first.Segment.Start, last.Segment.Stop}
	for s.from > 0 && source[s.from-1] == ' ' {
		s.from--
	}
	for s.to < len(source) && source[s.to] == ' ' {
		s.to++
	}
	inside := source[s.from:s.to]
	if s.from < 1 || s.to >= len(source) || source[s.from-1] != '`' || source[s.to] != '`' || bytes.ContainsAny(inside, "`\n") {
		return s, false
	}
	s.from, s.to = s.from-1, s.to+1
	alone := (s.from == 0 || source[s.from-1] != '`') && (s.to == len(source) || source[s.to] != '`')
	return s, alone
}

func fenceAt(n *ast.FencedCodeBlock, source []byte) (s extent, ok bool) {
	lines := n.Lines()
	if lines.Len() == 0 {
		return s, false
	}
	s = extent{lineStart(source, lines.At(0).Start), lines.At(lines.Len() - 1).Stop}
	inside := source[s.from:s.to]
	if s.from == 0 || bytes.Contains(inside, []byte("`")) {
		return s, false
	}
	s.from = lineStart(source, s.from-1)
	end := s.to + max(bytes.IndexByte(source[s.to:], '\n'), 0)
	if end == s.to {
		end = len(source)
	}
	opening, closing := bytes.TrimSpace(source[s.from:lineStart(source, s.from+bytes.IndexByte(source[s.from:], '\n')+1)]), bytes.TrimSpace(source[s.to:end])
	s.to = end
	return s, bytes.HasPrefix(opening, []byte("```")) && bytes.Count(opening, []byte("`")) == 3 && !bytes.ContainsAny(opening, "[<:") && string(closing) == "```"
}

// lineStart is where the line begins that a place is in.
func lineStart(source []byte, at int) int { return bytes.LastIndexByte(source[:at], '\n') + 1 }
