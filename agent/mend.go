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
	if err := a.beginRun("restart"); err != nil {
		return err
	}
	if t.asked != nil {
		if err := a.lose(t.asked, t.asked.Reserve, true, "the program ended while the model was asked"); err != nil {
			return err
		}
	}
	var unknown []string
	for _, c := range t.batch {
		if c.begun && !c.done && c.ran {
			if err := a.answer(c, resultLost, true); err != nil {
				return err
			}
			continue
		}
		if c.begun && !c.done && c.effect == Effectful {
			unknown = append(unknown, c.Name)
			if err := a.answer(c, interrupted, true); err != nil {
				return err
			}
		}
	}
	if unknown == nil {
		return nil // reads that had begun are simply run again
	}
	for _, c := range t.open() {
		if err := a.answer(c, "not run, not started: an earlier call was interrupted and its outcome is unknown", true); err != nil {
			return err
		}
	}
	for _, name := range unknown {
		a.tellUnknown(name, t.address)
	}
	return nil
}

// interrupted is what the model reads of a call with effects that a crash cut off.
const interrupted = "interrupted, outcome unknown: the program ended while this ran, so it may or may not have taken effect. It was not run again. Say so, and check before repeating it."

// resultLost is what the model reads of a call that ran and whose result went with the program.
const resultLost = "it ran, and its result was lost when the program ended. It was not run again. Look for what it did before repeating it."

// tellUnknown tells the person, unasked, that nobody knows what became of a call.
func (a *actor) tellUnknown(tool, address string) {
	a.say(Reply{Kind: Notice, Address: address, Text: fmt.Sprintf(
		"I was interrupted while %s ran, and its outcome is unknown: it may or may not have taken effect. I have not run it again.", tool)})
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
