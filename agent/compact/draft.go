package compact

import (
	"math"
	"slices"
	"sort"
	"strings"

	"nudge/agent/model"
)

// draft is a compaction under way.
type draft struct {
	count    Counter
	messages []model.Message // the input's
	marks    []Mark          // one for each
	units    []unit
	tail     int // first message of the exchanges that are kept
	fresh    int // first message of the steps that are kept
	newest   int // first message of the last step
	request  int // first message of the last exchange
	words    int // last words of the user

	room, start, enough, target int     // tokens
	beside                      int     // tokens of the request that are not of messages
	scale                       float64 // from counted tokens to used ones
	stuck                       int
	tools                       []string // whose names the note may tell; nil for all

	tokens   []int // of each message as it is now, 0 when dropped
	sum      int   // of those
	note     int   // tokens of the note
	replaced map[int]Replaced
	dropped  []bool
	lined    []bool // results that are replaced by a line
	left     Left   // what was dropped
}

func newDraft(in Input) *draft {
	d := &draft{
		count: in.Count, messages: in.Messages, stuck: in.Stuck, tools: in.Tools, request: -1, words: -1,
		replaced: map[int]Replaced{}, tokens: make([]int, len(in.Messages)),
		dropped: make([]bool, len(in.Messages)), lined: make([]bool, len(in.Messages)),
	}
	d.marks = make([]Mark, len(in.Messages))
	copy(d.marks, in.Marks)
	d.units = units(in.Messages, d.marks)
	for i, m := range in.Messages {
		d.tokens[i] = MessageTokens(in.Count, m)
		d.sum += d.tokens[i]
	}
	d.measure(in)
	d.divide(in.Keep)
	return d
}

// measure settles how many tokens there may be, and what is used besides the messages.
func (d *draft) measure(in Input) {
	d.room = in.room()
	d.start, d.enough, d.target = d.room*startShare/100, d.room*enoughShare/100, d.room*targetShare/100
	d.scale = 1
	switch {
	case in.Used <= 0:
	case in.Used >= d.sum:
		d.beside = in.Used - d.sum
	default:
		d.scale = float64(in.Used) / float64(d.sum)
	}
}

// room is how many tokens a request may have.
func (in Input) room() int {
	window := in.Window
	if window <= 0 {
		window = AssumedWindow
	}
	return max(window-max(in.Reserve, 0), window/2)
}

// divide finds what is kept: the last exchanges, and the last steps.
func (d *draft) divide(keep int) {
	if keep <= 0 {
		keep = keptExchanges
	}
	if len(d.units) == 0 {
		return
	}
	last := d.units[len(d.units)-1].exchange
	steps := 0
	for _, u := range slices.Backward(d.units) {
		if u.exchange > last-keep {
			d.tail = u.from
		}
		if u.exchange == last {
			d.request = u.from
		}
		if u.user && !u.note && d.words < 0 {
			d.words = u.from
		}
		if !u.user && steps < keep {
			steps++
			d.fresh = u.from
			if steps == 1 {
				d.newest = u.from
			}
		}
	}
}

// total is how many tokens the request has as it is now.
func (d *draft) total() int { return d.whole(d.sum + d.note) }

// whole is how many tokens a request has whose messages were counted so.
func (d *draft) whole(counted int) int {
	return d.beside + int(math.Ceil(float64(counted)*d.scale))
}

// stays reports whether a unit is never left out.
func (d *draft) stays(u unit) bool {
	return u.pinned || u.note || u.from == d.request || u.from == d.words
}

// noteResults turns results of repeatable reads among some messages into a line each, oldest first, until the request
// is small enough.
func (d *draft) noteResults(from, to, goal int) {
	for _, u := range d.units {
		for i := max(u.from, from); i < min(u.to, to); i++ {
			if d.total() <= goal {
				return
			}
			m, cut := d.current(i)
			if !isResult(m) || !d.marks[i].Repeatable || d.marks[i].Pinned || d.dropped[i] {
				continue
			}
			cut += len(m.Text)
			line := resultLine(callOf(d.messages[u.from], m.CallID), cut)
			if len(line) >= len(m.Text) {
				continue
			}
			if d.replace(i, Replaced{Text: line, Cut: cut, Line: true}) {
				d.lined[i] = true
			}
		}
	}
}

// replace gives a message other texts, if that gains anything. Those are valid UTF-8, so that a journal keeps them.
func (d *draft) replace(i int, r Replaced) bool {
	r.At, r.Text = i, strings.ToValidUTF8(r.Text, "\ufffd")
	for n := range r.Arguments {
		r.Arguments[n] = strings.ToValidUTF8(r.Arguments[n], "\ufffd")
	}
	tokens := MessageTokens(d.count, r.of(d.messages[i]))
	if tokens >= d.tokens[i] {
		return false
	}
	d.sum += tokens - d.tokens[i]
	d.tokens[i] = tokens
	d.replaced[i] = r
	return true
}

// current is a message as it is now, and how many bytes are left out of it.
func (d *draft) current(i int) (m model.Message, cut int) {
	if r, ok := d.replaced[i]; ok {
		return r.of(d.messages[i]), r.Cut
	}
	return d.messages[i], d.marks[i].Cut
}

// dropExchanges leaves out whole exchanges before those that are kept, oldest first.
func (d *draft) dropExchanges() {
	for at := 0; at < len(d.units) && d.units[at].from < d.tail && d.total() > d.target; {
		exchange := d.units[at].exchange
		for ; at < len(d.units) && d.units[at].exchange == exchange; at++ {
			if !d.stays(d.units[at]) {
				d.drop(d.units[at])
			}
		}
	}
}

// dropSteps leaves out steps among some messages, oldest first, until the request is small enough.
func (d *draft) dropSteps(from, to, goal int) {
	for _, u := range d.units {
		if d.total() <= goal {
			return
		}
		if u.from >= from && u.from < to && !u.user && !d.stays(u) {
			d.drop(u)
		}
	}
}

// dropWords leaves out what users said in the exchanges that are kept, oldest first, if there is no other way.
func (d *draft) dropWords() {
	for _, u := range d.units {
		if d.total() <= d.start {
			return
		}
		if u.from >= d.tail && u.user && !d.stays(u) {
			d.drop(u)
		}
	}
}

// drop leaves a unit out. The first one takes the notes of earlier compactions with it, so that there is one note.
func (d *draft) drop(u unit) {
	if d.left.Messages == 0 {
		for _, old := range d.units {
			if old.note && !old.pinned {
				d.left.merge(*d.marks[old.from].Left)
				d.remove(old)
			}
		}
	}
	d.remove(u)
	for i := u.from; i < u.to; i++ {
		d.left.add(d.messages[i], d.marks[i].Cut, d.tools)
	}
	d.note = MessageTokens(d.count, model.Message{Role: model.User, Text: d.left.words()})
}

func (d *draft) remove(u unit) {
	for i := u.from; i < u.to; i++ {
		d.dropped[i] = true
		d.sum -= d.tokens[i]
		d.tokens[i] = 0
	}
}

// removed are the messages that are left out, as they were sent last, results that became a line as that. Of an earlier
// note only the summary counts; it stands there as a result, since no person said it.
func (d *draft) removed() []model.Message {
	var out []model.Message
	for i, dropped := range d.dropped {
		m, _ := d.current(i)
		left := d.marks[i].Left
		switch {
		case !dropped:
		case left == nil:
			out = append(out, m)
		case left.Summary != "":
			out = append(out, model.Message{Role: model.ToolRole, Text: left.Summary})
		}
	}
	return out
}

// loses reports whether anything is left out that cannot be had again.
func (d *draft) loses() bool {
	for i, m := range d.messages {
		switch {
		case !d.dropped[i] || d.marks[i].Left != nil:
		case isResult(m) && !d.marks[i].Repeatable, !isResult(m) && strings.TrimSpace(m.Text) != "":
			return true
		}
	}
	return false
}

// shortenLongest takes the middle out of the longest messages, when what is left is still too much: first of results
// that can be had again, then of everything but what stays. When each has little left, the kept steps go after all
// but for the last, then older words of users. What stays loses something only if it does not fit the room at all.
func (d *draft) shortenLongest() {
	repeatable := func(i int) bool {
		return isResult(d.messages[i]) && d.marks[i].Repeatable && !d.marks[i].Pinned
	}
	free := func(i int) bool { return !d.marks[i].Pinned && i != d.request && i != d.words }
	all := func(int) bool { return true }
	for _, try := range []func(){
		func() { d.level(repeatable, d.enough, d.room/fairPart) },
		func() { d.level(free, d.enough, d.room/fairPart) },
		func() { d.noteResults(d.fresh, d.newest, d.enough) },
		func() { d.dropSteps(d.fresh, d.newest, d.enough) },
		func() { d.dropWords() },
		func() { d.level(free, d.enough, leastCap) },
	} {
		if d.total() > d.start {
			try()
		}
	}
	if d.total() > d.room {
		d.level(all, d.start, leastCap)
	}
}

// level shortens the longest of some messages to one length, but no message to less than least tokens, so that the
// request gets as small as a goal if it can.
func (d *draft) level(may func(i int) bool, goal, least int) {
	var among []int
	longest := least
	for i, tokens := range d.tokens {
		if tokens > least && may(i) {
			among = append(among, i)
			longest = max(longest, tokens)
		}
	}
	fits := func(limit int) bool {
		sum := d.sum + d.note
		for _, i := range among {
			sum -= max(d.tokens[i]-limit, 0)
		}
		return d.whole(sum) <= goal
	}
	tooLong := sort.Search(longest-least, func(n int) bool { return !fits(least + n) })
	limit := max(least+tooLong-1, least)
	for _, i := range among {
		if d.tokens[i] <= limit {
			continue
		}
		m, cut := d.current(i)
		d.replace(i, shorten(d.count, m, limit, cut))
	}
}

// change is what the draft does, in the form that is kept.
func (d *draft) change() Change {
	c := Change{Dropped: spans(d.dropped)}
	for i := range d.messages {
		if r, ok := d.replaced[i]; ok && !d.dropped[i] {
			c.Replaced = append(c.Replaced, r)
		}
	}
	if d.left.Messages > 0 {
		c.Note, c.Left = d.left.words(), d.left
	}
	return c
}

// counts tells what the draft does to a request of so many tokens.
func (d *draft) counts(before int) Counts {
	c := Counts{Before: before, After: d.total()}
	for i := range d.messages {
		_, replaced := d.replaced[i]
		switch {
		case d.dropped[i] && d.marks[i].Left == nil:
			c.Messages++
		case d.dropped[i]:
		case d.lined[i]:
			c.Results++
		case replaced:
			c.Shortened++
		}
	}
	return c
}
