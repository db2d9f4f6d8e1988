package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"nudge/memory"
)

// halt is the reason for which a turn ends, with what the person reads.
type halt struct {
	reason StopReason
	say    string
	final  bool // nobody can grant more
	// refused says that the model's provider does not accept the key, the credit or the request.
	refused bool
}

func (h *halt) Error() string { return string(h.reason) + ": " + h.say }

// answer is what a turn came to.
type answer struct {
	text string
	data json.RawMessage // of a tool that ends turns: its arguments
}

// halt settles the turn before its answer.
func (a *actor) halt(why *halt) (outcome, error) {
	if why.reason == Cancelled {
		return a.cancelled()
	}
	return a.settle(why, answer{})
}

// settle ends the turn: open calls are answered, the last reply and the marks go out, all in one transaction.
func (a *actor) settle(why *halt, final answer) (outcome, error) {
	t, say := a.state.turn, why.say
	if strings.TrimSpace(final.text) == "" && say == "" {
		say = "The model gave no answer. Say it again in other words, or ask for something smaller."
	}
	if err := a.withdrawAll("not run: "+oneLine(say), Person{}); err != nil {
		return again, err
	}
	for _, r := range t.owed {
		a.receive(r, NextTurn, 0)
	}
	offer, err := a.offer(why)
	if err != nil {
		return again, err
	}
	watched := t.provenance != Heartbeat
	switch {
	case !watched:
	case offer.ID != "":
		say = offer.Text
	case say != "":
		a.say(Reply{Kind: Notice, Text: say})
	default:
		a.say(Reply{Kind: Final, Text: final.text, Data: final.data, Tainted: a.tainted()})
	}
	totals := t.totals(why.reason)
	if watched {
		a.say(Reply{Kind: SettledMark, Totals: totals})
	}
	if err := a.add(stoppedEntry{Turn: t.id, Run: t.run, Reason: why.reason, Say: say, Offer: offer.ID, Tainted: a.tainted()}); err != nil {
		return again, err
	}
	if err := a.keepCheckpoint(); err != nil {
		return again, err
	}
	a.also(func(tx memory.Tx) error { return tx.Table(tableOpen).Delete(a.session) })
	totals.Say, totals.Refused, totals.Changed = say, why.refused, a.changed(t)
	a.then(func() { a.tellEnded(a.session, *totals) })
	return settled, a.commit()
}

// withdrawAll gives every call that has no result one that says why it was not run.
func (a *actor) withdrawAll(text string, by Person) error {
	for _, c := range a.state.turn.batch {
		if c.done {
			continue
		}
		if err := a.withdraw(c, text, by); err != nil {
			return err
		}
	}
	return nil
}

// pause ends the run: the turn waits for a person.
func (a *actor) pause() (outcome, error) {
	t := a.state.turn
	a.say(Reply{Kind: WaitingMark})
	if err := a.add(stoppedEntry{Turn: t.id, Run: t.run, Reason: Waiting}); err != nil {
		return again, err
	}
	return waits, a.commit()
}

// cancelled ends the turn because a person said stop.
func (a *actor) cancelled() (outcome, error) {
	letters, err := a.mail()
	if err != nil {
		return again, err
	}
	var by Person
	var stops, unread, since []letter
	for _, l := range letters {
		switch {
		case l.Stop:
			stops, by = append(stops, l), l.From
			unread, since = append(unread, since...), nil
		case a.steers(l):
			since = append(since, l) // what comes after the last Stop begins the next turn
		}
	}
	a.take(stops...)
	if err := a.withdrawAll("not run: the person stopped the turn", by); err != nil {
		return again, err
	}
	// Said before the Stop and read by nobody yet: the words are kept for the next turn, but nothing starts from
	// them now, since the person wants quiet.
	for _, l := range unread {
		if err := a.keep(l); err != nil {
			return again, err
		}
	}
	say := "Stopped."
	if len(unread) > 0 {
		say = "Stopped. I have kept what you said last and read it with your next message."
	}
	return a.settle(&halt{reason: Cancelled, say: say}, answer{})
}

// changed reports whether a turn's calls did more than read and, in a wake, speak.
func (ag *Agent) changed(t *turn) bool {
	return slices.ContainsFunc(t.acted, func(name string) bool {
		tool := ag.box().named[name]
		return tool == nil || tool.Place != InHeartbeat
	})
}
