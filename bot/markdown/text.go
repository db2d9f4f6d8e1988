package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/sentences"
)

// Mark is markup around a stretch of a [Text].
type Mark struct {
	Enter string // written where the stretch begins
	// Again is written instead of Enter where the stretch goes on in another message. One that is long, such as the head of a
	// table, gives way to Enter where messages are short. If it is "", Enter is written again.
	Again string
	Line  string // written in front of each further line
	Leave string // written where the stretch ends, or is interrupted
	// Inline markup does not reach over the end of a line: it is left there, and entered again.
	Inline bool
	// Code keeps the blanks in it when it is cut.
	Code bool
	// Alone markup stands outside of all that is open around it, and without its lines' beginnings.
	Alone bool
}

func (m Mark) again() string {
	if m.Again == "" {
		return m.Enter
	}
	return m.Again
}

// Text is marked-up text that can be cut into messages. It is written from front to back: words with [Text.Write], what
// is markup already with [Text.Whole], markup around both with [Text.Open] and [Text.Close]. The zero value works. A Text
// that is written no more may be read by several goroutines.
type Text struct {
	// Escape makes of words what may be sent. nil leaves them as they are.
	Escape func(string) string
	// Size is how long a text is as the platform counts. nil counts characters.
	Size func(string) int

	units []unit
	in    *stretch
}

// unit is what is cut only if there is no other way.
type unit struct {
	text   string // as it is sent
	words  string // what text was made of; "" if it is markup
	fixed  bool   // not cut unless it fits no message
	within *stretch
	rest   bool // what is left of one that was cut
	gap    gap  // behind it
	size   int
}

// gap is what stands between two units, and is left out where they stand in different messages.
type gap struct {
	blank string
	lines int
	ends  bool // a sentence
	tight bool // no message should end here
}

// stretch is a Mark with its place.
type stretch struct {
	Mark
	parent *stretch
	first  int // the number of the first unit in it
	depth  int
}

func (t *Text) escape(words string) string {
	if t.Escape == nil {
		return words
	}
	return t.Escape(words)
}

func (t *Text) size(text string) int {
	if t.Size == nil {
		return utf8.RuneCountInString(text)
	}
	return t.Size(text)
}

// Open opens markup around what is written until it is closed.
func (t *Text) Open(m Mark) {
	s := &stretch{Mark: m, parent: t.in, first: len(t.units)}
	if s.parent != nil {
		s.depth = s.parent.depth + 1
	}
	t.in = s
}

// Close closes the markup that was opened last. Markup with nothing in it is shown all the same unless it is inline.
func (t *Text) Close() {
	if t.in.first == len(t.units) && !t.in.Inline {
		t.Whole("")
	}
	t.in = t.in.parent
}

// Write writes words. Blanks in it may give way to the end of a message unless they are code; \n ends a line.
func (t *Text) Write(words string) {
	for words != "" {
		line, rest, more := strings.Cut(words, "\n")
		switch {
		case t.in != nil && t.in.Code:
			t.code(line)
		default:
			for sentence := sentences.FromString(line); sentence.Next(); {
				t.prose(sentence.Value())
			}
		}
		if more {
			t.newline()
		}
		words = rest
	}
}

// newline ends a line that may be empty.
func (t *Text) newline() {
	if n := len(t.units); t.in != nil && t.in.Code && (n == 0 || t.units[n-1].within != t.in) {
		t.Whole("") // code may begin with an empty line
	}
	if n := len(t.units); n > 0 {
		t.units[n-1].gap.lines++
		t.units[n-1].gap.blank = ""
	}
}

func blank(r rune) bool { return r == ' ' || r == '\t' }

// prose writes a sentence, or the beginning of one.
func (t *Text) prose(sentence string) {
	for sentence != "" {
		n := strings.IndexFunc(sentence, blank)
		if n < 0 {
			n = len(sentence)
		}
		if n > 0 {
			t.word(sentence[:n])
		}
		sentence = sentence[n:]
		rest := strings.TrimLeftFunc(sentence, blank)
		t.blank(sentence[:len(sentence)-len(rest)])
		sentence = rest
	}
	if n := len(t.units); n > 0 {
		last := &t.units[n-1]
		last.gap.ends = ends(last.words, last.gap.blank != "")
	}
}

// ends reports whether a word ends a sentence. Some stops do so without a blank behind them.
func ends(word string, blank bool) bool {
	word = strings.TrimRightFunc(word, func(r rune) bool { return unicode.In(r, unicode.Pe, unicode.Pf) || r == '"' || r == '\'' })
	r, _ := utf8.DecodeLastRuneInString(word)
	return strings.ContainsRune("。！？", r) || blank && strings.ContainsRune(".!?…", r)
}

// code writes a line of code. Blanks belong to the words before them.
func (t *Text) code(line string) {
	for line != "" {
		n := len(line) - len(strings.TrimLeftFunc(line, blank))
		if end := strings.IndexFunc(line[n:], blank); end >= 0 {
			n += end
			n += len(line[n:]) - len(strings.TrimLeftFunc(line[n:], blank))
		} else {
			n = len(line)
		}
		t.word(line[:n])
		line = line[n:]
	}
}

// longestWord is how many bytes a unit of words has. Longer words are made of several, so that cutting one is cheap.
const longestWord = 1024

func (t *Text) word(words string) {
	for len(words) > longestWord {
		n := 0
		for g := graphemes.FromString(words); n < longestWord/2 && g.Next(); {
			n = g.End()
		}
		t.add(unit{text: t.escape(words[:n]), words: words[:n], gap: gap{tight: true}})
		words = words[n:]
	}
	if words != "" {
		t.add(unit{text: t.escape(words), words: words})
	}
}

func (t *Text) add(u unit) {
	u.within, u.size = t.in, t.size(u.text)
	t.units = append(t.units, u)
}

func (t *Text) blank(blanks string) {
	if n := len(t.units); n > 0 {
		t.units[n-1].gap.blank += blanks
	} else if blanks != "" {
		t.Whole("")
		t.units[0].gap.blank = blanks
	}
}

// Fixed writes words that are not cut unless they fit no message, such as an address.
func (t *Text) Fixed(words string) {
	t.add(unit{text: t.escape(words), words: words, fixed: true})
}

// Whole writes markup, as it is. It is not cut unless it fits no message.
func (t *Text) Whole(markup string) {
	t.add(unit{text: markup, fixed: true})
}

// Lines ends the line, and leaves n-1 lines empty. At the beginning of the text it does nothing.
func (t *Text) Lines(n int) {
	if at := len(t.units); at > 0 {
		g := &t.units[at-1].gap
		g.lines = max(g.lines, n)
		g.blank = ""
	}
}

// Keep keeps what comes next in the same message as what came last, if there is any other place to cut at.
func (t *Text) Keep() {
	if at := len(t.units); at > 0 {
		t.units[at-1].gap.tight = true
	}
}

// String is the whole text.
func (t *Text) String() string {
	w := writer{text: t}
	for i := range t.units {
		w.unit(i, &t.units[i])
	}
	return w.end()
}

// writer writes units into one message.
type writer struct {
	text  *Text
	room  int // what a message may hold; 0 for anything
	out   strings.Builder
	size  int
	begun bool
	in    *stretch
	gap   gap // behind the last unit
}

func (w *writer) put(text string) {
	w.out.WriteString(text)
	if w.room > 0 {
		w.size += w.text.size(text)
	}
}

// unit writes the markup and the gap that stand before a unit, and the unit.
func (w *writer) unit(number int, u *unit) {
	shared := common(w.in, u.within)
	if w.begun && w.gap.lines > 0 {
		for shared != nil && shared.Inline {
			shared = shared.parent
		}
	}
	w.leave(shared)
	if w.begun {
		for range w.gap.lines - 1 {
			w.put("\n" + strings.TrimRight(prefix(shared), " "))
		}
		if w.gap.lines > 0 {
			w.put("\n" + prefix(shared))
		}
		w.put(w.gap.blank)
	}
	w.enter(shared, u, number)
	w.put(u.text)
	w.gap, w.begun, w.in = u.gap, true, u.within
}

// leave leaves all markup inside a stretch.
func (w *writer) leave(until *stretch) {
	for ; w.in != until; w.in = w.in.parent {
		w.put(w.in.Leave)
	}
}

// enter enters the markup from a stretch down to the one that a unit is in.
func (w *writer) enter(from *stretch, u *unit, number int) {
	if u.within == from {
		return
	}
	var chain []*stretch
	for s := u.within; s != from && s != nil; s = s.parent {
		chain = append(chain, s)
		if s.Alone {
			break
		}
	}
	for i := len(chain) - 1; i >= 0; i-- {
		s := chain[i]
		switch again := s.again(); {
		case s.first == number && !u.rest:
			w.put(s.Enter)
		case w.room > 0 && w.text.size(again) > w.room/4:
			w.put(s.Enter)
		default:
			w.put(again)
		}
	}
}

// end leaves what is open and gives what was written.
func (w *writer) end() string {
	w.leave(nil)
	return w.out.String()
}

// common is the innermost stretch that two others are in, or are. What stands alone has nothing in common with what is
// around it.
func common(a, b *stretch) *stretch {
	for a != b {
		switch {
		case a == nil || b == nil:
			return nil
		case a.depth >= b.depth:
			a = a.parentOrAlone()
		default:
			b = b.parentOrAlone()
		}
	}
	return a
}

func (s *stretch) parentOrAlone() *stretch {
	if s.Alone {
		return nil
	}
	return s.parent
}

// prefix is what stands in front of a line inside a stretch.
func prefix(s *stretch) string {
	text := ""
	for ; s != nil; s = s.parentOrAlone() {
		text = s.Line + text
	}
	return text
}
