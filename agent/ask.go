package agent

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"nudge/agent/model"
)

// prepare makes the next request, which carries words, pays for it and journals that the model is asked.
func (a *actor) prepare(ctx context.Context, words []letter) (*modelAskedEntry, model.Request, error) {
	asked, release, err := a.reserve(words, a.notes(ctx))
	if err != nil {
		return nil, model.Request{}, err
	}
	defer release()
	request, err := a.request(ctx, asked)
	if err != nil {
		return nil, request, a.unasked(asked, err)
	}
	if err := a.see(asked.Step); err != nil {
		return nil, request, err
	}
	if asked.Reserve > 0 {
		return asked, request, a.commit() // a call that a crash loses is paid for
	}
	return asked, request, a.commitSoon()
}

// reserve checks the limits, takes the words that the next request shall carry and notes that the model is asked. What it
// may cost is held back until release is called. notes are put behind what was said.
func (a *actor) reserve(words []letter, notes string) (asked *modelAskedEntry, release func(), err error) {
	t := a.state.turn
	e := modelAskedEntry{Turn: t.id, Run: t.run, Step: t.steps + 1, Tail: notes, Notes: notes != ""}
	if a.state.plan != "" && !a.state.planned {
		e.Tail, e.Plan = join(e.Tail, "[your plan so far:\n"+a.state.plan+"]"), true
	}
	if a.Limits.Repeats > 0 {
		e.Tail = join(e.Tail, t.repeats.warning())
	}
	release, err = a.allot(&e, a.estimate(words, e.Tail), a.model().Spec.MaxOutput)
	if err != nil {
		return nil, nil, err
	}
	if err = a.carry(words, false); err == nil {
		err = a.add(e)
	}
	if err != nil {
		release()
	}
	return t.asked, release, err
}

// allot checks the turn's limits for one call of the model, whose answer may have most tokens, and holds back what it may
// cost until release is called, by when asked must be journaled. Where a limit is reached the error is the halt.
func (a *actor) allot(asked *modelAskedEntry, input, most int) (release func(), err error) {
	t, spec := a.state.turn, a.model().Spec
	day, err := a.moneyDay(t.person)
	if err != nil {
		return nil, err
	}
	var why *halt
	asked.Day = day.key(t.person.ID)
	release, err = a.hold(asked.Day, func(spent Money) Money {
		var allowed allowance
		allowed, why = a.Limits.allow(t, spec, input, spent)
		asked.Input, asked.Output = allowed.input, min(allowed.output, most)
		asked.Reserve = spec.cost(model.Usage{In: asked.Input, Out: asked.Output})
		return asked.Reserve
	})
	if err != nil {
		return nil, err
	}
	if why != nil {
		release()
		if why.final {
			why.say += " " + day.goesOn(now(), t.person.zone())
		}
		return nil, why
	}
	a.spendSince(day.began, asked.Day, asked.Reserve)
	return release, nil
}

// estimate is how many tokens the next request has, rather too many than too few: what the provider counted last
// and one token for every two bytes that are new.
func (a *actor) estimate(words []letter, tail string) int {
	t := a.state.turn
	bytes := a.state.bytes + len(tail) + weighWords(words)
	if t.sentTokens > 0 {
		return t.sentTokens + (bytes-t.sentBytes)/2
	}
	return (bytes + weighTools(a.box().offered(t)) + len(a.system()) + 512) / 2
}

// unanswered is why the model gave no answer: its error, or the cause with which the run's context ended.
type unanswered struct{ cause error }

func (u *unanswered) Error() string { return u.cause.Error() }
func (u *unanswered) Unwrap() error { return u.cause }

// ask gets the model's answer and journals it; the entry is committed with what comes of it. Passing errors are
// tried again; what is final is an unanswered.
func (a *actor) ask(ctx context.Context, asked *modelAskedEntry, request model.Request) error {
	who := a.model()
	began, foreign := time.Now(), a.foreign(request.Tools)
	for try := 1; ; try++ {
		answer, err := who.Model.Answer(ctx, request, nil)
		if err == nil {
			who.tokens.Learn(request, answer.Usage.In)
			return a.keepAnswer(asked, answer, foreign, time.Since(began))
		}
		wait, ok := retry(err, try)
		if ok && ctx.Err() == nil {
			if ok, err := a.noteTry(asked, wait, err); err != nil {
				return err
			} else if ok && sleep(ctx, wait) {
				continue
			}
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &unanswered{err}
	}
}

// noteTry journals that a call of the model failed and is tried again. It reports false when that cannot be paid for.
func (a *actor) noteTry(asked *modelAskedEntry, wait time.Duration, cause error) (ok bool, err error) {
	entry := modelRetryEntry{Turn: asked.Turn, Run: asked.Run, Step: asked.Step, Wait: wait, Reason: cause.Error()}
	ok = true
	if answerBegan(cause) {
		ok, err = a.chargeTry(asked, entry)
	} else {
		err = a.add(entry)
	}
	if ok && err == nil {
		a.progress("", "the model's provider does not answer; trying again in "+wait.Round(time.Second).String())
	}
	return ok, err
}

// keepAnswer journals the model's answer and settles what was reserved for it.
func (a *actor) keepAnswer(asked *modelAskedEntry, answer model.Answer, foreign []string, took time.Duration) error {
	entry := modelCallEntry{
		Turn: asked.Turn, Run: asked.Run, Step: asked.Step, Model: answer.Model, Finish: answer.Finish, Usage: answer.Usage,
		Cost: a.model().Spec.cost(answer.Usage), Took: took, Summary: asked.Summary, Tainted: a.tainted() || len(foreign) > 0, Foreign: foreign,
	}
	if !answer.Usage.Known {
		entry.Cost = asked.Reserve // unknown is not free
	}
	a.spend(asked.Day, entry.Cost-asked.Reserve)
	if a.state.turn.model == 0 {
		entry.Ratio = math.Round(a.model().tokens.Ratio()*1000) / 1000
	}
	if !asked.Summary {
		entry.Text, entry.Reasoning, entry.Calls = answer.Text, answer.Reasoning, answer.Calls
		a.fresh = true
		if len(answer.Calls) > 0 && answer.Text != "" {
			a.progress("", answer.Text)
		}
	}
	return a.add(entry)
}

// unasked takes back a model call that was reserved and not made, for a reason that it returns.
func (a *actor) unasked(asked *modelAskedEntry, why error) error {
	a.spend(asked.Day, -asked.Reserve)
	e := modelLostEntry{Turn: asked.Turn, Run: asked.Run, Step: asked.Step, Unsent: true, Reason: "it was not sent: " + why.Error()}
	if err := a.add(e); err != nil {
		return err
	}
	return why
}

// noAnswer says what becomes of a turn whose model call failed or was cut off: another model is asked, or it is a halt.
// Errors of ours are returned as they are.
func (a *actor) noAnswer(ctx context.Context, asked *modelAskedEntry, err error) error {
	var failed *unanswered
	if !errors.As(err, &failed) {
		return err
	}
	if a.ctx.Err() != nil {
		return errCut // closing: the next start sees a lost call
	}
	if next, ok := a.fallback(ctx, failed.cause); ok {
		return a.fallBack(ctx, asked, next, failed.cause)
	}
	charge, unknown := owing(ctx, asked, failed.cause)
	if err := a.lose(asked, charge, unknown, failed.Error()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errCut
	}
	var fault *model.Error
	if errors.As(failed.cause, &fault) && fault.Fault == model.FaultTooLong {
		return &halt{reason: ContextLimit, say: "This conversation has become too long for the model. Begin a fresh one with the command new; this one can still be looked at."}
	}
	return &halt{
		reason: ModelError, say: "I could not get an answer from the model: " + sayOf(failed.cause) + ".",
		refused: refusesAll(fault),
	}
}

// refusesAll reports whether a provider would refuse other requests too. Of a bad one only that itself is at fault.
func refusesAll(fault *model.Error) bool {
	return fault != nil && fault.Fault == model.FaultRefused && fault.Status != http.StatusBadRequest && fault.Status != http.StatusUnprocessableEntity
}

// owing is what a model call that has no answer costs: nothing, or all that was reserved where the provider may charge for
// it, and nobody knows how much.
func owing(ctx context.Context, asked *modelAskedEntry, cause error) (charge Money, unknown bool) {
	if ctx.Err() != nil || answerBegan(cause) {
		return asked.Reserve, true
	}
	return 0, false
}

// lose closes a model call that has no answer.
func (a *actor) lose(asked *modelAskedEntry, charge Money, unknown bool, reason string) error {
	a.spend(asked.Day, charge-asked.Reserve)
	return a.add(modelLostEntry{Turn: asked.Turn, Run: a.state.turn.run, Step: asked.Step, Charge: charge, Unknown: unknown, Reason: reason})
}

// answerBegan reports whether a model call failed after its answer had begun.
func answerBegan(err error) bool {
	var fault *model.Error
	return errors.As(err, &fault) && fault.Began
}

// sayOf is what a person reads of a model's error.
func sayOf(err error) string {
	var fault *model.Error
	if errors.As(err, &fault) && fault.Say != "" {
		return strings.TrimSuffix(fault.Say, ".")
	}
	return "it failed"
}
