package markdown

import "github.com/clipperhouse/uax29/v2/graphemes"

// place is where a text can be cut, the best last.
type place int

const (
	anywhere    place = iota // between two units that belong together
	betweenTwo               // between two units with nothing between them
	afterWord                //
	afterPhrase              // after a sentence
	afterLine                //
	afterBlock               // before an empty line
	places
)

func (g gap) place() place {
	switch {
	case g.tight:
		return anywhere
	case g.lines > 1:
		return afterBlock
	case g.lines == 1:
		return afterLine
	case g.ends:
		return afterPhrase
	case g.blank != "":
		return afterWord
	}
	return betweenTwo
}

// fill is how full a message must be to be cut at a place: one part in so many.
var fill = [places]int{afterBlock: 2, afterLine: 4, afterPhrase: 4, afterWord: 4, betweenTwo: 4}

// Split makes messages of at most limit of the text, in order, none of them empty. It cuts at the best place that leaves
// a message well filled: between paragraphs, else after a line, a sentence or a word, and never inside a character as
// people see it. What is whole is only cut if it fits no message. Markup that is cut is left, and entered again in the
// next message; blanks and ends of lines at a cut are left out. limit must be 64 or more, and markup that is open
// together short.
func (t *Text) Split(limit int) []string {
	units := append([]unit(nil), t.units...)
	var messages []string
	for from := 0; from < len(units); {
		c := t.cutter(limit)
		next := c.fill(units, from)
		messages = append(messages, c.message())
		from = next
	}
	return messages
}

// cutter fills one message.
type cutter struct {
	writer
	limit int
	best  [places]candidate
	cut   candidate
}

// candidate is a place where a message may end.
type candidate struct {
	bytes int // of what is written
	size  int
	next  int // the unit that the next message begins with
	in    *stretch
}

func (t *Text) cutter(limit int) *cutter {
	return &cutter{writer: writer{text: t, room: limit}, limit: limit}
}

// fill writes units until the message is full, decides where it ends, and gives the unit with which the next one begins.
func (c *cutter) fill(units []unit, from int) (next int) {
	for i := from; i < len(units); i++ {
		c.unit(i, &units[i])
		if c.size+c.tail(c.in) > c.limit {
			return c.overflow(units, from, i)
		}
		here := candidate{c.out.Len(), c.size, i + 1, c.in}
		c.cut = here
		if p := units[i].gap.place(); i+1 < len(units) {
			c.best[p] = here
		}
	}
	return len(units)
}

// tail is how long the markup is that leaves a stretch.
func (c *cutter) tail(s *stretch) int {
	n := 0
	for ; s != nil; s = s.parentOrAlone() {
		n += c.text.size(s.Leave)
	}
	return n
}

// overflow decides where a message ends for which unit i was too much.
func (c *cutter) overflow(units []unit, from, i int) (next int) {
	u := &units[i]
	for p := places - 1; p > anywhere; p-- {
		if b := c.best[p]; b.bytes > 0 && b.size >= c.limit/fill[p] && !c.inside(u, b) {
			c.cut = b
			return b.next
		}
	}
	if i > from && u.fixed && c.fits(u) {
		return c.latest()
	}
	head := c.text.head(u, c.limit-(c.size-u.size+c.tail(c.in)))
	switch {
	case head != "":
	case i > from:
		return c.latest()
	default: // A character of a hundred marks, say. One message must not be empty.
		head = c.text.runes(u, c.limit-(c.size-u.size+c.tail(c.in)))
	}
	c.cutUnit(u, head)
	if u.text == "" {
		return i + 1
	}
	return i
}

// inside reports whether a message goes on with the code that a unit is in after a place: then it ends between two lines of
// that code, and not before it, so that no message is left half empty for the sake of a long block.
func (c *cutter) inside(u *unit, b candidate) bool {
	line := c.best[afterLine]
	return u.within != nil && u.within.Code && line.in == u.within && line.bytes > b.bytes
}

// fits reports whether a unit fits a message of its own.
func (c *cutter) fits(u *unit) bool {
	n := u.size + c.tail(u.within)
	for s := u.within; s != nil; s = s.parentOrAlone() {
		n += max(c.text.size(s.Enter), c.text.size(s.again()))
	}
	return n <= c.limit
}

// latest ends the message at the last place where it may end, or else where it may not.
func (c *cutter) latest() (next int) {
	var last candidate
	for _, b := range c.best[betweenTwo:] {
		if b.bytes > last.bytes {
			last = b
		}
	}
	if last.bytes > 0 {
		c.cut = last
	}
	return c.cut.next
}

// cutUnit ends the message within a unit, which was written already, and leaves the unit with the rest.
func (c *cutter) cutUnit(u *unit, head string) {
	begin := c.out.Len() - len(u.text)
	if u.words == "" {
		u.text = u.text[len(head):]
	} else {
		u.words = u.words[len(head):]
		head = c.text.escape(head)
		u.text = c.text.escape(u.words)
	}
	c.cut = candidate{bytes: begin + len(head), in: c.in}
	u.size, u.rest = c.text.size(u.text), true
}

// head is what of a unit fits into a room: whole characters as people see them, of its words if it is no markup.
func (t *Text) head(u *unit, room int) string {
	at := 0
	for g := graphemes.FromString(u.content()); g.Next(); at = g.End() {
		if room -= t.sent(u, g.Value()); room < 0 {
			break
		}
	}
	return u.content()[:at]
}

// runes is what of a unit fits into a room without regard to what people see, and at least one rune.
func (t *Text) runes(u *unit, room int) string {
	for at, r := range u.content() {
		if room -= t.sent(u, string(r)); room < 0 && at > 0 {
			return u.content()[:at]
		}
	}
	return u.content()
}

// content is what a unit can be cut in.
func (u *unit) content() string {
	if u.words == "" {
		return u.text
	}
	return u.words
}

// sent is how long a part of a unit is when it is sent.
func (t *Text) sent(u *unit, part string) int {
	if u.words != "" {
		part = t.escape(part)
	}
	return t.size(part)
}

// message is what was written up to the cut, with all markup left.
func (c *cutter) message() string {
	text := c.out.String()[:c.cut.bytes]
	for s := c.cut.in; s != nil; s = s.parentOrAlone() {
		text += s.Leave
	}
	return text
}
