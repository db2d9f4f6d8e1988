package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"nudge/agent/compact"
)

// batch runs the calls of the last answer: those that only read side by side at once, the others in the order asked
// for, none before an earlier one that a person has not decided about. All cards of the batch go out together.
func (a *actor) batch(ctx context.Context) (outcome, error) {
	if err := a.attend(ctx); err != nil {
		return again, err
	}
	if a.fresh {
		a.fresh = false
		if err := a.judge(); err != nil {
			return again, err
		}
	}
	if err := a.perform(ctx, a.reads()...); err != nil {
		return again, err
	}
	if err := a.share(); err != nil {
		return again, err
	}
	for a.ctx.Err() == nil {
		c := a.state.turn.next()
		if c == nil {
			return again, a.stepDone(ctx)
		}
		if err := a.attend(ctx); err != nil {
			return again, err
		}
		if undecided, err := a.runCall(ctx, c); err != nil {
			return again, err
		} else if undecided {
			return a.pause()
		}
	}
	return settled, a.commit() // closing: the next start goes on from the journal
}

// runCall runs a call whose turn it is, unless it was answered in words or a person has yet to decide about it.
func (a *actor) runCall(ctx context.Context, c *call) (undecided bool, err error) {
	if !c.done && c.card == nil {
		// What the call's policy depends on may have changed since the batch was judged.
		if err := a.judgeCall(c); err != nil {
			return false, err
		}
	}
	switch {
	case c.done:
		return false, nil
	case c.card != nil && c.card.verdict == "":
		return true, nil
	}
	return false, a.perform(ctx, c)
}

// next is the first call, in the order asked for, that has no result.
func (t *turn) next() *call {
	for _, c := range t.batch {
		if !c.done {
			return c
		}
	}
	return nil
}

// judge decides what becomes of each call of a new batch: answered in words, asked about, or left to run. A batch over the
// limit is a halt: none of it runs.
func (a *actor) judge() error {
	open := a.state.turn.open()
	limit, used := a.Limits.ToolCalls, a.state.turn.used().toolCalls
	if limit > 0 && len(open) > 0 && used+len(open) > limit {
		for _, c := range open {
			text := fmt.Sprintf("not run: %d calls were asked for and %d of the turn's %d are left, so none of them was run", len(open), max(limit-used, 0), limit)
			if err := a.answer(c, text, true); err != nil {
				return err
			}
		}
		return &halt{reason: ToolLimit, say: fmt.Sprintf("I stopped at the limit of %d tool calls for one turn; the last %d asked for were not run.", limit, len(open))}
	}
	a.shown = nil
	for _, c := range open {
		if err := a.judgeCall(c); err != nil {
			return err
		}
	}
	a.gather()
	return nil
}

func (a *actor) judgeCall(c *call) error {
	if err := a.box().prepare(a.state.turn, c); err != nil {
		return a.answer(c, err.Error(), true)
	}
	c.rule = nil
	policy, err := a.policy(c, c.arguments)
	switch {
	case err != nil:
		return a.answer(c, "not run: "+err.Error(), true)
	case c.Name == askPerson:
		return a.askCard(c, policy, true)
	case policy == PolicyAsk:
		if c.rule, err = a.ruleFor(c); err != nil || c.rule != nil {
			return err
		}
		return a.askCard(c, policy, false)
	case policy != PolicyNo:
		return a.askCard(c, policy, false)
	}
	return nil
}

// invocation is a call as its tool gets it.
func (a *actor) invocation(c *call, arguments json.RawMessage) Invocation {
	t := a.state.turn
	return Invocation{
		Session: a.session, Turn: t.id, Call: c.ID, Key: t.id + "/" + strconv.Itoa(t.steps) + "/" + c.ID,
		Person: t.person, Address: t.address, Wake: t.wake, Arguments: arguments, Progress: func(string) {},
		Tainted: a.tainted(), Given: a.state.gave(t.person.ID), origin: a.state.sent(),
	}
}

// effectOf is what running a call can change.
func effectOf(tool *Tool, in Invocation) Effect {
	if tool.EffectOf != nil {
		return tool.EffectOf(in)
	}
	return tool.Effect
}

// labelsOf says which way a call moves what it touches.
func labelsOf(tool *Tool, in Invocation) Labels {
	if tool.LabelsOf != nil {
		return tool.LabelsOf(in)
	}
	return tool.Labels
}

// reads are the calls that may run side by side at once, each of them once.
func (a *actor) reads() []*call {
	var reads []*call
	twins := a.twins()
	for _, c := range a.state.turn.batch {
		if first, ok := twins[c]; ok && first == c && !c.done {
			reads = append(reads, c)
		}
	}
	return reads
}

// twins gives, for each call of the batch that only reads, the first one that reads the same.
func (a *actor) twins() map[*call]*call {
	twins, firsts := map[*call]*call{}, map[string]*call{}
	for _, c := range a.state.turn.batch {
		if !a.onlyReads(c) {
			continue
		}
		key := c.Name + " " + string(c.arguments)
		if firsts[key] == nil {
			firsts[key] = c
		}
		twins[c] = firsts[key]
	}
	return twins
}

// onlyReads reports whether a call changes nothing and nobody is asked about it.
func (a *actor) onlyReads(c *call) bool {
	return c.card == nil && a.box().prepare(a.state.turn, c) == nil && effectOf(c.tool, a.invocation(c, c.arguments)) == Read && a.free(c)
}

// share gives calls that read the same as another of the step its result.
func (a *actor) share() error {
	twins := a.twins()
	for _, c := range a.state.turn.open() {
		if first := twins[c]; first != nil && first != c && first.done {
			if err := a.answerAs(c, first.result, first.failed, first.origin); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer gives a call a result in words, without running it.
func (a *actor) answer(c *call, text string, failed bool) error {
	return a.answerAs(c, text, failed, compact.Origin{})
}

// answerAs is answer with what the words have in them.
func (a *actor) answerAs(c *call, text string, failed bool, origin compact.Origin) error {
	t := a.state.turn
	return a.add(toolResultEntry{Turn: t.id, Run: t.run, Call: c.ID, Tool: c.Name, Text: text, Failed: failed, Size: len(text), Origin: origin})
}

// withdraw answers a call that is not going to run; if a person was asked about it, the card says so.
func (a *actor) withdraw(c *call, text string, by Person) error {
	if k := c.card; k != nil && k.verdict == "" {
		err := a.close(k, decidedEntry{Verdict: Withdrawn, By: by.ID, Name: by.Name, Text: text})
		if err != nil || c.done { // of one whose outcome is unknown that is what the model reads
			return err
		}
	}
	switch {
	case c.ran && !c.done:
		return a.answer(c, resultLost, true)
	case c.begun && !c.done && c.effect != Read: // it is not going to run again, but it may have run
		return a.answer(c, interrupted, true)
	}
	return a.answer(c, text, false)
}
