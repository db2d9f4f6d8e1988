package openai

import (
	"strings"
	"unicode"
)

// prose takes a model's text as it comes and parts what it says from what it thinks aloud between <think> tags, of
// which there are these rules: a closer without an opener makes all before it thought; after an opener, later stray
// closers are text; an opener that is never closed hides the rest; in code, tags are text.
type prose struct {
	lex      lexer
	holdCall bool   // nothing is told from the first call markup on, since it may be taken as a call
	pending  string // what cannot be judged yet
	thinking bool
	tagged   bool // an opener, or a closer without one, has been

	text    []byte
	thought strings.Builder
	solid   int // where the white space at the end of text begins
	heldAt  int // what is told ends here; -1 if nothing is held
	told    int // what has been told ends here
	toldAny bool
}

func newProse(holdCall bool) *prose { return &prose{holdCall: holdCall, heldAt: -1} }

// feed takes in a piece and returns what may be told of it: never a part of a tag, and no white space at either end.
func (p *prose) feed(piece string, final bool) string {
	s := p.pending + piece
	for s != "" {
		n := p.step(s, final)
		if n == 0 {
			break
		}
		s = s[n:]
	}
	p.pending = s
	return p.tell()
}

func (p *prose) step(s string, final bool) int {
	if p.thinking {
		return p.think(s, final)
	}
	kind, n := p.lex.next(s, final)
	switch {
	case n == 0:
		return 0
	case kind == openThink:
		p.thinking, p.tagged = true, true
	case kind == closeThink && !p.tagged:
		p.tagged = true
		p.thought.Write(p.text)
		p.text, p.solid, p.told, p.toldAny, p.heldAt = nil, 0, 0, false, -1
	case kind == callMarkup && p.heldAt < 0 && (p.holdCall || p.solid == 0):
		p.heldAt = p.solid
		p.add(s[:n])
	default:
		p.add(s[:n])
	}
	return n
}

// think consumes thought up to the next closer. Code does not count here: thoughts are full of marks without a pair.
func (p *prose) think(s string, final bool) int {
	i := strings.IndexByte(s, '<')
	switch {
	case i < 0:
		i = len(s)
	case i == 0:
		var l lexer
		kind, n := l.tag(s, final)
		switch {
		case n == 0:
			return 0
		case kind == closeThink:
			p.thinking, p.lex.midLine = false, false
			return n
		}
		i = n
	}
	p.thought.WriteString(s[:i])
	return i
}

func (p *prose) add(s string) {
	if t := strings.TrimRightFunc(s, unicode.IsSpace); t != "" {
		p.solid = len(p.text) + len(t)
	}
	p.text = append(p.text, s...)
}

func (p *prose) tell() string {
	end := p.solid
	if p.heldAt >= 0 {
		end = p.heldAt
	}
	if end <= p.told {
		return ""
	}
	piece := string(p.text[p.told:end])
	p.told = end
	if !p.toldAny {
		piece = strings.TrimLeftFunc(piece, unicode.IsSpace)
		p.toldAny = piece != ""
	}
	return piece
}

// whole returns the text without white space around it. It is good once the final piece was fed.
func (p *prose) whole() string { return strings.TrimSpace(string(p.text)) }

// untold returns what of the final text has not been told.
func (p *prose) untold(final string) string {
	told := strings.TrimLeftFunc(string(p.text[:p.told]), unicode.IsSpace)
	if rest, ok := strings.CutPrefix(final, told); ok {
		return rest
	}
	return ""
}
