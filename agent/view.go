package agent

import (
	"slices"
	"strings"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// The view is the conversation as a model reads it. It only grows at its end, so that what a provider has cached of it holds;
// compaction alone leaves something out.

// rewrite puts other arguments into a call of the newest answer, which has not been sent back yet.
func (s *state) rewrite(c *call, arguments string) {
	c.Arguments = arguments
	answer := &s.view[len(s.view)-1]
	answer.Calls = slices.Clone(answer.Calls)
	for i := range answer.Calls {
		if answer.Calls[i].ID == c.ID {
			answer.Calls[i].Arguments = arguments
		}
	}
}

// say adds a message to the view.
func (s *state) say(m model.Message) {
	s.sayMarked(m, compact.Mark{})
}

// sayUser adds words that nobody said but that the model must take up.
func (s *state) sayUser(text string) {
	s.say(model.Message{Role: model.User, Text: text})
}

// sayMarked is say with what compaction must know of the message.
func (s *state) sayMarked(m model.Message, mark compact.Mark) {
	s.view = append(s.view, m)
	s.marks = append(s.marks, mark)
	s.origin = s.origin.With(mark.Origin)
	s.bytes += weigh(m)
}

// append puts words at the end of the view's last message, which has not been sent yet; plan says that the plan is among
// them.
func (s *state) append(tail string, plan bool) {
	if tail == "" || len(s.view) == 0 {
		return
	}
	last := &s.view[len(s.view)-1]
	last.Text = strings.TrimRight(last.Text, "\n") + "\n\n" + tail
	s.bytes += len(tail) + 2
	s.planned = s.planned || plan
	if plan {
		s.marksLast(s.planOrigin)
	}
}

// marksLast notes that something of an origin was put at the end of the view's last message.
func (s *state) marksLast(o compact.Origin) {
	if len(s.marks) == 0 {
		return
	}
	last := &s.marks[len(s.marks)-1]
	last.Origin = last.Origin.With(o)
	s.origin = s.origin.With(o)
}
