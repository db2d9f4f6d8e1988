package compact

import (
	"slices"

	"nudge/agent/model"
)

// Mark is what is known of a message besides what the model reads. The zero value is a message of no special kind.
type Mark struct {
	Pinned     bool `json:"pinned,omitempty"`     // stays as it is as long as it fits: a loaded skill, the first request
	Repeatable bool `json:"repeatable,omitempty"` // a tool's result that can be fetched again at any time, by a call that changed nothing
	Begins     bool `json:"begins,omitempty"`     // a user message that begins an exchange

	Cut  int   `json:"cut,omitempty"`  // bytes that are left out of the text, of a message that was compacted
	Left *Left `json:"left,omitempty"` // what the message stands for, of a note in place of messages; not to be changed

	Origin Origin `json:"origin,omitzero"` // what the message has in it; a note has what the messages had that it stands for
}

// Left counts what a note stands for, all earlier notes in its place included.
type Left struct {
	Messages int            `json:"messages"`
	Bytes    int            `json:"bytes"`
	Calls    map[string]int `json:"calls,omitempty"`   // by the tool's name
	Summary  string         `json:"summary,omitempty"` // of what was left out by then
}

// Span is the messages From to To, the latter not included.
type Span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Replaced says what a message has instead of its texts. Everything else of it stays.
type Replaced struct {
	At          int      `json:"at"`
	Text        string   `json:"text"`
	Arguments   []string `json:"arguments,omitempty"`   // of its calls in order; none when they stay
	Thoughtless bool     `json:"thoughtless,omitempty"` // what the model thought is gone
	Cut         int      `json:"cut"`                   // bytes left out of it, those of earlier compactions included
	Line        bool     `json:"line,omitempty"`        // nothing of the text is left but a line that says so
}

// of is the message as it is after the replacement.
func (r Replaced) of(m model.Message) model.Message {
	m.Text = r.Text
	if r.Thoughtless {
		m.Reasoning = ""
	}
	if len(r.Arguments) > 0 {
		m.Calls = slices.Clone(m.Calls)
		for i := range min(len(m.Calls), len(r.Arguments)) {
			m.Calls[i].Arguments = r.Arguments[i]
		}
	}
	return m
}

// Change is what a compaction does to a conversation, small enough for an entry of a journal. All indexes are of the
// conversation before it, in rising order. Applied to the same conversation it gives the same one.
type Change struct {
	Replaced []Replaced `json:"replaced,omitempty"`
	Dropped  []Span     `json:"dropped,omitempty"`
	// Note stands where the first dropped message was, said as by the user.
	Note string `json:"note,omitempty"`
	Left Left   `json:"left,omitzero"`
}

// Apply gives the conversation after a change; messages themselves are not changed, and share what is not replaced.
// What a change says of messages that are not there is passed over.
func Apply(messages []model.Message, change Change) []model.Message {
	out := make([]model.Message, 0, len(messages)+1)
	change.walk(len(messages), func(i int, replaced *Replaced) {
		switch {
		case i < 0:
			out = append(out, model.Message{Role: model.User, Text: change.Note})
		case replaced != nil:
			out = append(out, replaced.of(messages[i]))
		default:
			out = append(out, messages[i])
		}
	})
	return out
}

// ApplyMarks gives the marks of the conversation after a change to one of count messages. Marks that are missing at the
// end count as zero.
func ApplyMarks(marks []Mark, count int, change Change) []Mark {
	out := make([]Mark, 0, count+1)
	change.walk(count, func(i int, replaced *Replaced) {
		var mark Mark
		switch {
		case i < 0:
			left := change.Left
			mark.Left, mark.Origin = &left, change.origin(marks)
		case i < len(marks):
			mark = marks[i]
		}
		if replaced != nil {
			mark.Cut = replaced.Cut
			if replaced.Line {
				mark.Origin = Origin{}
			}
		}
		out = append(out, mark)
	})
	return out
}

// walk names what the new conversation consists of, in order: indexes of the old one, and -1 for the note.
func (c Change) walk(count int, emit func(i int, replaced *Replaced)) {
	dropped, replaced, noted := c.Dropped, c.Replaced, false
	for i := range count {
		for len(dropped) > 0 && dropped[0].To <= i {
			dropped = dropped[1:]
		}
		for len(replaced) > 0 && replaced[0].At < i {
			replaced = replaced[1:]
		}
		switch {
		case len(dropped) > 0 && dropped[0].From <= i:
			if !noted && c.Note != "" {
				emit(-1, nil)
			}
			noted = true
		case len(replaced) > 0 && replaced[0].At == i:
			emit(i, &replaced[0])
		default:
			emit(i, nil)
		}
	}
}

// spans are the indexes for which a flag is set.
func spans(flags []bool) []Span {
	var out []Span
	for i, set := range flags {
		switch {
		case !set:
		case len(out) > 0 && out[len(out)-1].To == i:
			out[len(out)-1].To++
		default:
			out = append(out, Span{i, i + 1})
		}
	}
	return slices.Clip(out)
}
