package agent

import (
	"context"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// compactedEntry is what was left out of what is sent from here on. What was said stays in the journal.
type compactedEntry struct {
	Turn   string         `json:"turn"`
	Run    string         `json:"run"`
	Change compact.Change `json:"change"`
	Level  compact.Level  `json:"level"`
	Before int            `json:"before"` // tokens of the request, counted
	After  int            `json:"after"`
}

func (compactedEntry) kind() string { return kindCompacted }

// fit makes the conversation shorter when the next request, which carries words too, would come near the end of the
// model's window.
func (a *actor) fit(ctx context.Context, words []letter) error {
	t, who := a.state.turn, a.model()
	if a.stuck >= compact.MaxStuck {
		return nil // it gained nothing twice; the provider decides whether it still fits
	}
	// A token is a byte at least, so a request far from the window need not be counted.
	if bytes := a.state.bytes + weighTools(a.box().offered(t)) + len(a.system()) + weighWords(words); bytes < who.Spec.Window/2-who.Spec.MaxOutput {
		return nil
	}
	used := compact.Tokens(who.tokens, a.system(), a.box().offered(t), a.state.view)
	for _, l := range words {
		used += compact.MessageTokens(who.tokens, model.Message{Role: model.User, Text: a.saying(l)})
	}
	in := compact.Input{
		Count: who.tokens, Messages: a.state.view, Marks: a.state.marks,
		Window: who.Spec.Window, Reserve: who.Spec.MaxOutput, Used: used, Stuck: a.stuck, Tools: a.box().names(),
	}
	out, changed := compact.Compact(in)
	a.stuck = out.Stuck
	if !changed {
		return nil
	}
	if out.Level == compact.Dropped && out.Lost && a.state.asksForSummary() {
		with, good, err := a.summarize(ctx, in, out)
		if err != nil {
			return err
		}
		if good {
			out, a.state.dull = with, 0
		} else if a.state.dull++; a.state.dull <= maxDull && used+who.Spec.MaxOutput <= who.Spec.Window {
			return nil // nothing goes without a summary while there is room
		}
	}
	a.progress("", out.Note)
	a.Log.Debug("compacted a conversation", "session", a.session, "before", out.Counts.Before, "after", out.Counts.After, "fits", out.Fits)
	return a.add(compactedEntry{
		Turn: t.id, Run: t.run, Change: out.Change, Level: out.Level, Before: out.Counts.Before, After: out.Counts.After,
	})
}

// weighWords is about how many bytes words come to.
func weighWords(words []letter) int {
	n := 0
	for _, l := range words {
		n += len(l.Text) + len(l.From.Name) + 64
		for _, f := range l.Files {
			n += len(f.line())
		}
		if l.Note != nil {
			n += len(l.Note.words())
		}
	}
	return n
}

// compacted takes a compaction into the view.
func (s *state) compacted(e *compactedEntry) {
	count := len(s.view)
	s.view = compact.Apply(s.view, e.Change)
	s.marks = compact.ApplyMarks(s.marks, count, e.Change)
	s.weighAll()
	s.planned = false
	if s.turn != nil {
		s.turn.sentTokens, s.turn.sentBytes = 0, 0 // what the provider counted was another request
	}
}

// weighAll works out anew what the messages of the view come to together.
func (s *state) weighAll() {
	s.bytes, s.origin = 0, compact.Origin{}
	for i, m := range s.view {
		s.bytes += weigh(m)
		s.origin = s.origin.With(s.marks[i].Origin)
	}
}

// weigh is about how many bytes a message has in a request.
func weigh(m model.Message) int {
	bytes := len(m.Text) + len(m.Reasoning) + 16
	for _, c := range m.Calls {
		bytes += len(c.Name) + len(c.Arguments) + 48
	}
	return bytes
}
