package agent

import "fmt"

// mend closes what a crash left open in a session that was just read: a lost model call is paid for, calls that had
// begun are repeated or declared unknown, by their effect, and the turn goes on in a new run.
func (a *actor) mend() error {
	if err := a.mendParked(); err != nil {
		return err
	}
	t := a.state.turn
	if t == nil || t.waiting {
		return nil
	}
	if t.asked != nil {
		if err := a.lose(t.asked, t.asked.Reserve, true, "the program ended while the model was asked"); err != nil {
			return err
		}
	}
	if t.restarts >= maxRestarts {
		return a.giveUp()
	}
	if err := a.beginRun(whyRestart); err != nil {
		return err
	}
	for _, c := range t.batch {
		if !c.uncertain() || c.card != nil && c.card.Unknown && c.card.verdict == "" {
			continue // what can be is simply run again, and nobody is asked twice
		}
		if err := a.mendCall(c); err != nil {
			return err
		}
	}
	return nil
}

// uncertain reports whether a call with effects has begun and nobody knows its outcome.
func (c *call) uncertain() bool { return c.begun && !c.done && c.effect == Effectful }

// maxRestarts is how many times a turn is taken up again after the program ended in the middle of it.
const maxRestarts = 3

// whyRestart begins a run after the program ended in the middle of one.
const whyRestart = "restart"

// giveUp ends a turn in whose middle the program keeps ending.
func (a *actor) giveUp() error {
	say := fmt.Sprintf("I gave this up: the program ended %d times while I worked on it. Say it again to have me try once more.", maxRestarts+1)
	for _, c := range a.state.turn.batch {
		if c.uncertain() && !c.ran {
			say += " " + unknownLine(c.Name)
		}
	}
	_, err := a.settle(&halt{reason: Failed, say: say}, answer{})
	return err
}

// mendCall says what became of a call with effects that a crash cut off. Where its outcome is unknown the turn's person
// says whether it is run again; where nobody watches it is not.
func (a *actor) mendCall(c *call) error {
	t := a.state.turn
	switch {
	case c.ran:
		return a.answer(c, resultLost, true)
	case t.provenance == Heartbeat || a.box().prepare(t, c) != nil:
		a.tellUnknown(c.Name, t.address)
		return a.leave(c)
	}
	return a.askUnknown(c)
}

// The choices about a call whose outcome is unknown.
const (
	ChoiceAgain = "Run again"
	ChoiceLeave = "Leave it"
)

// askUnknown tells the person that nobody knows what became of a call, and asks whether to run it again.
func (a *actor) askUnknown(c *call) error {
	t := a.state.turn
	k := cardEntry{
		Turn: t.id, Run: t.run, Card: newID(""), Call: c.ID, Tool: c.Name, Arguments: c.arguments, Policy: PolicyAsk, Asked: t.person.ID,
		Unknown: true, Address: t.address, Expires: now().Add(a.Limits.Question),
	}
	if c.card != nil {
		k.Arguments, k.Policy = c.card.Arguments, c.card.Policy
	}
	k.Digest = a.digest(c.tool, a.invocation(c, k.Arguments))
	if err := a.add(k); err != nil {
		return err
	}
	return a.register(k, shownUnknown(k, a.session))
}

// shownUnknown is a card about a call whose outcome is unknown.
func shownUnknown(k cardEntry, session string) Reply {
	return Reply{
		Kind: Notice, Session: session, Turn: k.Turn, Run: k.Run, ID: k.Card, Text: unknownLine(k.Tool), Tool: k.Tool, Arguments: k.Arguments,
		Choices: []string{ChoiceAgain, ChoiceLeave}, Deadline: &k.Expires,
	}
}

// leave answers a call whose outcome stays unknown, and the calls after it, which are not begun on that ground.
func (a *actor) leave(c *call) error {
	if err := a.answer(c, interrupted, true); err != nil {
		return err
	}
	for _, later := range a.state.turn.open() {
		if err := a.withdraw(later, notStarted, Person{}); err != nil {
			return err
		}
	}
	return nil
}

// unknownCall is the call of the batch whose outcome nobody knows and nobody has decided about; nil when there is none.
func (t *turn) unknownCall() *call {
	for _, c := range t.batch {
		if !c.done && c.card != nil && c.card.Unknown && c.card.verdict == "" {
			return c
		}
	}
	return nil
}

// notStarted is what the model reads of calls after one whose outcome is unknown.
const notStarted = "not run, not started: an earlier call was interrupted and its outcome is unknown"

// interrupted is what the model reads of a call with effects that a crash cut off.
const interrupted = "interrupted, outcome unknown: the program ended while this ran, so it may or may not have taken effect. It was not run again. Say so, and check before repeating it."

// resultLost is what the model reads of a call that ran and whose result went with the program.
const resultLost = "it ran, and its result was lost when the program ended. It was not run again. Look for what it did before repeating it."

// unknownLine is what a person reads of it.
func unknownLine(tool string) string {
	return fmt.Sprintf("I was interrupted while %s ran, and its outcome is unknown: it may or may not have taken effect. I have not run it again.", tool)
}

// tellUnknown tells the person, unasked, that nobody knows what became of a call.
func (a *actor) tellUnknown(tool, address string) {
	a.say(Reply{Kind: Notice, Address: address, Text: unknownLine(tool)})
}

// open are the calls of the batch that have not begun and have no result.
func (t *turn) open() []*call {
	var open []*call
	for _, c := range t.batch {
		if !c.begun && !c.done {
			open = append(open, c)
		}
	}
	return open
}
