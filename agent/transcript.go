package agent

import (
	"strings"

	"nudge/memory"
)

// Said is the kind of what a person said, in a transcript. It is never sent.
const Said Kind = "said"

// Transcript is what a conversation looks like to its people, oldest first, the newest limit lines of it: what was
// said to the session, what it said, cards and what became of them. Answers to chat commands and receipts are not in
// it.
func Transcript(tx memory.Tx, session string, limit int) ([]Reply, error) {
	var lines []Reply
	asked := askedWith{}
	err := tx.Journal().Read(session, 0, func(line memory.Entry) error {
		e, err := decode(line)
		if err != nil || e == nil {
			return err
		}
		asked.note(e)
		if r, ok := shown(e); ok {
			if call, ok := e.(*toolCallEntry); ok {
				r.Text = asked.line(call)
			}
			at := line.At
			r.Session, r.At = session, &at
			lines = append(lines, r)
		}
		return nil
	})
	if limit > 0 && len(lines) > limit {
		lines = lines[len(lines)-limit:]
	}
	return lines, err
}

// askedWith holds the arguments of calls that have not begun, by the call's id.
type askedWith map[string]string

func (a askedWith) note(e entry) {
	switch e := e.(type) {
	case *modelCallEntry:
		for _, c := range e.Calls {
			a[c.ID] = c.Arguments
		}
	case *decidedEntry:
		if e.Arguments != nil {
			a[e.Call] = string(e.Arguments)
		}
	}
}

// line is a call that begins, as it was shown then.
func (a askedWith) line(e *toolCallEntry) string {
	arguments := a[e.Call]
	if e.Arguments != "" {
		arguments = e.Arguments
	}
	return oneLine(strings.TrimSpace(e.Tool + " " + arguments))
}

// shown is an entry as people see it; entries that they do not see give false.
func shown(e entry) (Reply, bool) {
	switch e := e.(type) {
	case *messageEntry:
		text := e.Text
		if !e.Mark.IsZero() {
			_, text, _ = strings.Cut(text, "\n")
		}
		r := Reply{Kind: Said, Turn: e.Turn, By: string(e.From), Text: text}
		if len(e.IDs) > 0 {
			r.ID = e.IDs[len(e.IDs)-1]
		}
		return r, e.Provenance == Human
	case *notedEntry:
		return Reply{Kind: Notify, ID: e.Note.Card, Heartbeat: e.Heartbeat, Text: e.Note.Text, Once: e.Note.Once, Tainted: e.originOf().Outside != ""}, e.Heartbeat != "" || e.Digest
	case *modelCallEntry:
		kind := Final
		if len(e.Calls) > 0 {
			kind = Progress
		}
		return Reply{Kind: kind, Turn: e.Turn, Run: e.Run, Text: e.Text, Tainted: e.Tainted}, e.Text != ""
	case *toolCallEntry:
		return Reply{Kind: Progress, Turn: e.Turn, Run: e.Run, Tool: e.Tool, Text: e.Tool}, true
	case *progressEntry:
		return Reply{Kind: Progress, Turn: e.Turn, Run: e.Run, Tool: e.Tool, Text: e.Line}, true
	case *cardEntry:
		return shownCard(e), !e.Resumes // the line that ended the turn shows it
	case *decidedEntry:
		return e.mark(), true
	case *stoppedEntry:
		r := Reply{Kind: Notice, Turn: e.Turn, Run: e.Run, Text: e.Say, Tainted: e.Tainted}
		if e.Offer != "" {
			r.ID, r.Choices = e.Offer, []string{ChoiceContinue}
		}
		return r, e.Say != ""
	}
	return Reply{}, false
}

func shownCard(e *cardEntry) Reply {
	if e.Unknown {
		return shownUnknown(*e, "")
	}
	if !e.Question {
		return Reply{Kind: Approval, Turn: e.Turn, Run: e.Run, ID: e.Card, Tool: e.Tool, Arguments: e.Arguments, Expires: &e.Expires, Parked: e.Parked, Always: e.always(), Open: e.Open, Why: e.Why}
	}
	r := Reply{Kind: Ask, Turn: e.Turn, Run: e.Run, ID: e.Card, Deadline: &e.Expires, Tainted: e.Origin.Outside != "" || len(e.Origin.Speakers) > 0}
	var q questionArguments
	if err := (Invocation{Arguments: e.Arguments}).Decode(&q); err == nil {
		r.Text, r.Choices = q.Question, q.Choices
	}
	return r
}
