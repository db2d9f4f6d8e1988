package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nudge/agent/compact"
	"nudge/memory"
)

// A parked call is one that somebody else than the turn's person must agree to, or that was asked for while nobody
// watched. It is answered at once, and the turn goes on without it. Once approved it is owed: it runs exactly as it was
// shown, apart from any turn, and what came of it opens a turn in its person's session.

// owed is a parked call that was approved and has no result. mendParked has given one to those with effects that were
// cut off, so this one may run.
func (s *state) owed() *card {
	for _, k := range s.cards {
		if k.owed() {
			return k
		}
	}
	return nil
}

func (k *card) owed() bool { return k.Parked && k.verdict == Approve && !k.done }

// owe keeps the session among those that the next start takes up, until nothing is owed any more.
func (a *actor) owe() {
	owes := a.state.owed() != nil
	a.also(func(tx memory.Tx) error {
		if owes {
			return tx.Table(tableOwed).Put(a.session, nil)
		}
		return tx.Table(tableOwed).Delete(a.session)
	})
}

// runParked runs exactly the call that was approved, after its turn, and opens a turn in the person's session with
// what came of it.
func (a *actor) runParked(k *card) error {
	person, err := a.personOf(k.Asked)
	if err != nil {
		return err
	}
	w, instead, err := a.readyParked(k, person)
	switch {
	case errors.Is(err, errCut):
		return nil // closing: the next start asks again
	case err != nil:
		return err
	case instead != nil:
		return a.report(k, person, toolResultEntry{Turn: k.Turn, Call: k.Call, Tool: k.Tool, Text: instead.Text, Failed: instead.Failed})
	}
	calling := toolCallEntry{Turn: k.Turn, Call: k.Call, Tool: k.Tool, Card: k.Card, Key: w.in.Key, Effect: w.effect()}
	if err := a.add(calling); err != nil {
		return err
	}
	if err := a.commit(); err != nil {
		return err
	}
	if err := a.runAlone(w); err != nil {
		return err
	}
	if a.ctx.Err() != nil && (w.err != nil || w.result.Failed) {
		return nil // closing: what was cut off is for the next start to judge
	}
	if err := a.reviewOne(a.ctx, w, parkedQuestion(AfterTool, a.session, k)); err != nil {
		return err
	}
	return a.reportResult(k, person, w)
}

// readyParked makes a parked call ready to run, or says what its person's model reads instead. There is no turn for a hook
// to stop, so a stop refuses the call.
func (a *actor) readyParked(k *card, person Person) (w *work, instead *verdict, err error) {
	w, refusal := a.parkedWork(k, person)
	if refusal != nil {
		return nil, &verdict{refusal.Error(), true}, nil
	}
	instead, err = a.permit(a.ctx, w, parkedQuestion(BeforeTool, a.session, k))
	if why, ok := errors.AsType[*halt](err); ok {
		return w, &verdict{"not run: " + why.say, true}, nil
	}
	if err != nil || instead != nil {
		return w, instead, err
	}
	if w, refusal = a.parkedWork(k, person); refusal != nil { // the hook may have taken long
		return nil, &verdict{refusal.Error(), true}, nil
	}
	return w, nil, nil
}

func parkedQuestion(at HookPoint, session string, k *card) HookQuestion {
	return HookQuestion{At: at, Session: session, Turn: k.Turn, Person: k.Asked}
}

// runAlone runs a call apart from any turn, until it ends or a Stop ends it.
func (a *actor) runAlone(w *work) error {
	ctx, done := a.interruptible("")
	defer done()
	runOne(ctx, w, a.toolTimeout(w.tool))
	if errors.Is(context.Cause(ctx), errStop) {
		return a.takeStops()
	}
	return nil
}

// reportResult reports what came of a parked call that ran.
func (a *actor) reportResult(k *card, person Person, w *work) error {
	for {
		entry, save := w.entry(a.box(), &turn{}, "")
		if save != nil {
			a.also(func(tx memory.Tx) error {
				session, err := SessionOf(tx, k.Address) // the one that reads it
				if err != nil {
					return err
				}
				return save(tx, session)
			})
		}
		a.commitResult(w)
		err := a.report(k, person, entry)
		var refused *refusal
		if !errors.As(err, &refused) {
			return err
		}
		// Nothing of the result was written: what the tool wanted kept was refused, so the call has failed.
		w.err, w.rewritten = refused.err, nil
		if err := a.reread(); err != nil {
			return err
		}
	}
}

// takeStops takes the Stops that ended a parked call; there is no turn for which they could be meant.
func (a *actor) takeStops() error {
	letters, err := a.mail()
	for _, l := range letters {
		if l.Stop {
			a.take(l)
		}
	}
	return err
}

// interruptible gives a context that a Stop ends while the session works on the given turn, "" for a parked call.
func (a *actor) interruptible(turn string) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(a.ctx)
	a.mu.Lock()
	a.running, a.stop = turn, stop
	a.mu.Unlock()
	return ctx, func() {
		a.mu.Lock()
		a.running, a.stop = "", nil
		a.mu.Unlock()
		stop(nil)
	}
}

// parkedWork makes a parked call ready to run. The error is for the model.
func (a *actor) parkedWork(k *card, person Person) (*work, error) {
	tool := a.box().named[k.Tool]
	if tool == nil {
		return nil, fmt.Errorf("not run: the tool %s is no longer there", k.Tool)
	}
	if !a.serves(k.Asked) {
		return nil, fmt.Errorf("not run: %s is no longer let in", k.Asked)
	}
	w := &work{tool: tool.Tool, in: a.parkedInvocation(k, person)}
	w.in.stands = a.unchanged(tool.Tool, w.in, k.Digest, strings.Contains(k.Why, warning))
	if err := w.in.stands(); err != nil {
		return nil, err
	}
	return w, a.stillMay(k, tool.Tool, w.in)
}

func (a *actor) parkedInvocation(k *card, person Person) Invocation {
	return Invocation{
		Session: a.session, Turn: k.Turn, Call: k.Call, Key: k.Turn + "/" + k.Card,
		Person: person, Address: k.Address, Wake: k.Wake, Arguments: k.Arguments, Progress: func(string) {},
		Tainted: a.taints(k.Origin, k.Asked), Given: a.state.gave(k.Asked), origin: k.Origin,
	}
}

// personOf is what is known of a person.
func (a *actor) personOf(id PersonID) (person Person, err error) {
	err = a.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		_, person, err = Home(tx, id)
		return err
	})
	if err != nil {
		return person, fmt.Errorf("look up %s: %w", id, err)
	}
	return person, nil
}

// serves reports whether a person is let in.
func (ag *Agent) serves(id PersonID) bool { return ag.Serves == nil || ag.Serves(id) }

// report journals what came of a parked call, and opens a turn in its person's session with it.
func (a *actor) report(k *card, person Person, entry toolResultEntry) error {
	entry.Card = k.Card
	if err := a.add(entry); err != nil {
		return err
	}
	origin := k.Origin.With(entry.Origin)
	if k.by.ID != k.Asked { // it has the name that they gave themselves
		origin = origin.With(compact.Origin{Speakers: []string{string(k.by.ID)}})
	}
	a.tellLate(k, Late{
		Person: person, Origin: origin,
		Text: fmt.Sprintf("%s approved the call of %s with %s (card %s). What came of it:\n%s", nameOf(k.by), k.Tool, k.Arguments, k.Card, entry.Text),
	})
	a.owe()
	return a.commit()
}

// Late is what a person hears of something that went on without them.
type Late struct {
	Person Person
	Text   string
	Origin compact.Origin // of the text
}

// tellLate opens a turn in the session of a parked call's person with what came of it. If somebody else decided, when the
// person must not be spoken to unasked in their direct messages, the session only notes it.
func (a *actor) tellLate(k *card, l Late) {
	opens := Message{
		Provenance: Decided, From: l.Person, At: now(), Address: k.Address, Text: "[" + l.Text + "]\nTell the person what came of it.", Origin: l.Origin,
	}
	notes := Message{Provenance: Decided, Note: &Note{Text: l.Text, Origin: l.Origin}}
	served := a.serves(k.Asked)
	var session string
	a.also(func(tx memory.Tx) (err error) {
		said := opens
		if !served {
			said = notes
		} else if a.Unasked != nil && k.by.ID != k.Asked && Direct(k.Address) {
			held, err := a.Unasked(tx, l)
			if err != nil {
				return err
			}
			if held {
				said = notes
			}
		}
		session, err = post(tx, k.Address, said)
		return err
	})
	a.then(func() { a.look(session) })
}

// mendParked closes what a crash cut off: a call with effects is declared unknown to its person and the model of
// their session, any other is run again.
func (a *actor) mendParked() error {
	for _, k := range a.state.cards {
		if !k.owed() || !k.begun || k.effect != Effectful {
			continue
		}
		if err := a.add(toolResultEntry{Turn: k.Turn, Call: k.Call, Tool: k.Tool, Card: k.Card, Text: interrupted, Failed: true}); err != nil {
			return err
		}
		a.tellUnknown(k.Tool, k.Address)
		note := Note{Text: fmt.Sprintf("the call of %s with %s that waited (card %s) was approved: %s", k.Tool, k.Arguments, k.Card, interrupted), Origin: k.Origin}
		a.send(k.Address, Message{Provenance: Decided, Note: &note})
		a.owe()
	}
	return nil
}
