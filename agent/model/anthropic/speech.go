package anthropic

import (
	"strings"
	"unicode"
)

// speech is the text of an answer as it comes. It has no white space at either end, and what was said before and after
// a thought or a call are two paragraphs.
type speech struct {
	text  []byte
	solid int  // where the white space at the end begins
	told  int  // what has been told ends here
	gap   bool // what comes next begins a paragraph
}

// pause ends a paragraph, if one has begun.
func (s *speech) pause() { s.gap = true }

// add takes in a piece and returns what may be told now.
func (s *speech) add(piece string) string {
	if s.gap || len(s.text) == 0 {
		if piece = strings.TrimLeftFunc(piece, unicode.IsSpace); piece == "" {
			return ""
		}
		if len(s.text) > 0 {
			s.text = append(s.text[:s.solid], "\n\n"...)
		}
		s.gap = false
	}
	if solid := strings.TrimRightFunc(piece, unicode.IsSpace); solid != "" {
		s.solid = len(s.text) + len(solid)
	}
	s.text = append(s.text, piece...)
	if s.told >= s.solid {
		return ""
	}
	told := string(s.text[s.told:s.solid])
	s.told = s.solid
	return told
}

// String returns the whole text.
func (s *speech) String() string { return string(s.text[:s.solid]) }
