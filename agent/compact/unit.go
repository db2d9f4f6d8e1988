package compact

import "nudge/agent/model"

// unit is a stretch of messages that goes or stays as a whole: one message, or an assistant's with the results of
// its calls.
type unit struct {
	from, to int // messages, the last not included
	user     bool
	note     bool // in place of what was left out before
	pinned   bool
	exchange int // that it is part of, counted from 0
}

// units cuts a conversation wherever that parts no call from its result. marks has one for each message.
func units(messages []model.Message, marks []Mark) []unit {
	begins := beginnings(messages, marks)
	var out []unit
	exchange := 0
	for i, m := range messages {
		if n := len(out); n > 0 && isResult(m) {
			out[n-1].to = i + 1
			out[n-1].pinned = out[n-1].pinned || marks[i].Pinned
			continue
		}
		if begins(i) && i > 0 {
			exchange++
		}
		out = append(out, unit{
			from: i, to: i + 1, user: m.Role == model.User, note: marks[i].Left != nil,
			pinned: marks[i].Pinned, exchange: exchange,
		})
	}
	return out
}

// isResult reports whether a message answers a call, in an imported conversation possibly as the user's.
func isResult(m model.Message) bool { return m.Role == model.ToolRole || m.CallID != "" }

// beginnings reports which messages begin an exchange: those that are marked so or, when none is, every user
// message that is not a note.
func beginnings(messages []model.Message, marks []Mark) func(i int) bool {
	marked := false
	for _, mark := range marks {
		marked = marked || mark.Begins
	}
	return func(i int) bool {
		if marked {
			return marks[i].Begins
		}
		return messages[i].Role == model.User && marks[i].Left == nil
	}
}
