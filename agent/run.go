package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/agent/model"
	"nudge/memory"
)

// outcome is how a step ends.
type outcome int

const (
	again   outcome = iota // there is another step
	settled                // the turn has ended
	waits                  // the turn waits for a person
)

func now() time.Time { return time.Now().UTC() }

// run works on the turn until it is settled or waits.
func (a *actor) run() error {
	ctx, done := a.beginWork()
	defer func() { done() }()
	for {
		end, err := a.step(ctx)
		if err != nil || end != again {
			return err
		}
		if errors.Is(context.Cause(ctx), errStop) {
			// The next look at the mail finds the Stop, unless it was for what went before this turn.
			done()
			ctx, done = a.beginWork()
		}
		if a.ctx.Err() != nil {
			return a.commit() // closing: the rest is for the next start
		}
	}
}

// step is one model call and the tools that it asked for; a step that a wait or a crash cut in two goes on with
// the tools.
func (a *actor) step(ctx context.Context) (outcome, error) {
	if a.state.turn.batch != nil {
		return a.batch(ctx)
	}
	if a.state.turn.ended != "" {
		return a.settle(&halt{reason: Completed}, a.state.turn.ended)
	}
	heard, err := a.listen()
	if err != nil {
		return again, err
	}
	if why := a.cut(ctx, heard); why != nil {
		return a.halt(why)
	}
	if why, err := a.gate(ctx, a.question(BeforeStep, a.state.turn.steps+1)); err != nil || why != nil {
		return a.haltOr(why, err)
	}
	if ctx.Err() != nil {
		return again, nil // the next look at the mail tells why
	}
	words, err := a.words()
	if err != nil {
		return again, err
	}
	if err := a.fit(ctx, words); err != nil || ctx.Err() != nil {
		return again, err
	}
	asked, why, err := a.reserve(words)
	if err != nil {
		return again, err
	}
	if why != nil {
		return a.halt(why)
	}
	request, why, err := a.request(ctx, asked)
	if err != nil {
		return again, err
	}
	if why != nil || ctx.Err() != nil {
		return a.unasked(asked, why)
	}
	answer, err := a.ask(ctx, asked, request)
	if err != nil {
		return a.noAnswer(ctx, asked, err)
	}
	switch {
	case len(answer.Calls) > 0:
		return a.batch(ctx)
	case a.state.turn.provenance != Heartbeat && a.state.turn.empties > 0 && a.state.turn.empties < emptyTries:
		return again, nil
	}
	if why, err := a.stepDone(ctx); err != nil || why != nil {
		return a.haltOr(why, err)
	}
	return a.settle(&halt{reason: Completed}, answer.Text)
}

// beginRun journals that a run begins.
func (a *actor) beginRun(why string) error {
	t := a.state.turn
	return a.add(runEntry{Turn: t.id, Run: fmt.Sprintf("%s.%d", t.id, t.runs+1), Why: why})
}

// beginWork gives the context of a run: it ends with a Stop, with the turn's time, or when the agent closes.
func (a *actor) beginWork() (context.Context, func()) {
	ctx, done := a.interruptible(a.state.turn.id)
	t := a.state.turn
	ctx, expire := context.WithTimeoutCause(ctx, max(a.Limits.TurnTimeout-t.ran-now().Sub(t.runBegan), 0), errTurn)
	return ctx, func() {
		expire()
		done()
	}
}

// cut says whether the run must end here, for what was heard or because its context has.
func (a *actor) cut(ctx context.Context, heard heard) *halt {
	switch {
	case heard.stop:
		return &halt{reason: Cancelled, say: ""}
	case errors.Is(context.Cause(ctx), errTurn):
		return &halt{reason: TimedOut, say: fmt.Sprintf("I stopped: this turn has worked for %s, which is as long as one may.", a.Limits.TurnTimeout)}
	case a.state.turn.broken != "" && a.state.turn.batch == nil: // the others of the batch run
		return &halt{reason: TooManyErrs, say: "I stopped: " + a.state.turn.broken}
	case a.Limits.Errors > 0 && a.state.turn.failures >= a.Limits.Errors:
		return &halt{reason: TooManyErrs, say: fmt.Sprintf("I stopped: %d steps in a row only met errors. The last one was: %s", a.state.turn.failures, oneLine(a.state.lastResult()))}
	}
	if say := a.state.turn.repeats.ends(a.Limits.Repeats); say != "" {
		return &halt{reason: Repeated, say: say}
	}
	return nil
}

// lastResult is the newest result of a tool.
func (s *state) lastResult() string {
	for i := len(s.view) - 1; i >= 0; i-- {
		if s.view[i].Role == model.ToolRole {
			return s.view[i].Text
		}
	}
	return ""
}

// reserve checks the limits, takes the words that the next request shall carry and journals that the model is asked.
func (a *actor) reserve(words []letter) (*modelAskedEntry, *halt, error) {
	t := a.state.turn
	asked := modelAskedEntry{Turn: t.id, Run: t.run, Step: t.steps + 1, Day: today(t.person, now())}
	if a.state.plan != "" && !a.state.planned {
		asked.Tail = "[your plan so far:\n" + a.state.plan + "]"
	}
	if a.Limits.Repeats > 0 {
		asked.Tail = join(asked.Tail, t.repeats.warning())
	}
	var why *halt
	release, err := a.hold(asked.Day, func(spent Money) Money {
		var allowed allowance
		allowed, why = a.Limits.allow(t, a.model().Spec, a.estimate(words, asked.Tail), spent)
		asked.Input, asked.Output, asked.Reserve = allowed.input, allowed.output, allowed.reserve
		return asked.Reserve
	})
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if why != nil {
		return nil, why, nil
	}
	if err := a.carry(words, false); err != nil {
		return nil, nil, err
	}
	if err := a.see(t.steps + 1); err != nil {
		return nil, nil, err
	}
	a.spend(asked.Day, asked.Reserve)
	if err := a.add(asked); err != nil {
		return nil, nil, err
	}
	if asked.Reserve > 0 {
		return a.state.turn.asked, nil, a.commit() // a call that a crash loses is paid for
	}
	return a.state.turn.asked, nil, a.commitSoon()
}

// estimate is how many tokens the next request has, rather too many than too few: what the provider counted last
// and one token for every two bytes that are new.
func (a *actor) estimate(words []letter, tail string) int {
	t := a.state.turn
	bytes := a.state.bytes + len(tail)
	for _, l := range words {
		bytes += len(l.Text) + len(l.From.Name) + 64
		if l.Note != nil {
			bytes += len(l.Note.words())
		}
	}
	if t.sentTokens > 0 {
		return t.sentTokens + (bytes-t.sentBytes)/2
	}
	return (bytes + a.tools.bytes(t) + len(a.system()) + 512) / 2
}

// ask gets the model's answer and journals it; the entry is committed with what comes of it. Passing errors are
// tried again.
func (a *actor) ask(ctx context.Context, asked *modelAskedEntry, request model.Request) (model.Answer, error) {
	t, who := a.state.turn, a.model()
	began := time.Now()
	for try := 1; ; try++ {
		answer, err := who.Model.Answer(ctx, request, nil)
		if err == nil {
			who.tokens.Learn(request, answer.Usage.In)
			return answer, a.answered(asked, answer, time.Since(began))
		}
		wait, ok := retry(err, try)
		if !ok || ctx.Err() != nil {
			return model.Answer{}, err
		}
		entry := modelRetryEntry{Turn: t.id, Run: t.run, Step: asked.Step, Wait: wait, Reason: err.Error()}
		if !answerBegan(err) {
			err = a.add(entry)
		} else if paid, fault := a.chargeTry(asked, entry); paid || fault != nil {
			err = fault
		}
		if err != nil {
			return model.Answer{}, err
		}
		a.progress("", "the model's provider does not answer; trying again in "+wait.Round(time.Second).String())
		if !sleep(ctx, wait) {
			return model.Answer{}, context.Cause(ctx)
		}
	}
}

// answered journals the model's answer and settles what was reserved for it.
func (a *actor) answered(asked *modelAskedEntry, answer model.Answer, took time.Duration) error {
	t := a.state.turn
	cost := a.model().Spec.cost(answer.Usage)
	if !answer.Usage.Known {
		cost = asked.Reserve // unknown is not free
	}
	a.spend(asked.Day, cost-asked.Reserve)
	if asked.Summary {
		return a.add(modelCallEntry{
			Turn: t.id, Run: t.run, Step: asked.Step, Model: answer.Model, Finish: answer.Finish, Usage: answer.Usage, Cost: cost, Took: took, Summary: true,
		})
	}
	a.fresh = true
	if len(answer.Calls) > 0 && answer.Text != "" {
		a.progress("", answer.Text)
	}
	return a.add(modelCallEntry{
		Turn: t.id, Run: t.run, Step: asked.Step, Model: answer.Model, Text: answer.Text, Reasoning: answer.Reasoning,
		Calls: answer.Calls, Finish: answer.Finish, Usage: answer.Usage, Cost: cost, Took: took,
	})
}

// unasked takes back a model call that was reserved and not made. Without a reason the run's context has ended, and the
// next look at the mail tells why.
func (a *actor) unasked(asked *modelAskedEntry, why *halt) (outcome, error) {
	a.spend(asked.Day, -asked.Reserve)
	if err := a.add(modelLostEntry{Turn: asked.Turn, Run: asked.Run, Step: asked.Step, Unsent: true, Reason: "a check kept it from being sent"}); err != nil {
		return again, err
	}
	if why == nil {
		return again, a.commit()
	}
	return a.halt(why)
}

// noAnswer ends a run whose model call failed or was cut off.
func (a *actor) noAnswer(ctx context.Context, asked *modelAskedEntry, cause error) (outcome, error) {
	if a.state.turn.asked == nil {
		return again, cause // the answer came and could not be kept
	}
	if a.ctx.Err() != nil {
		return settled, nil // closing: the next start sees a lost call
	}
	if next, ok := a.fallback(ctx, cause); ok {
		return again, a.fallBack(asked, next, cause)
	}
	why := &halt{reason: ModelError, say: "I could not get an answer from the model: " + sayOf(cause) + "."}
	var fault *model.Error
	if errors.As(cause, &fault) && fault.Fault == model.FaultTooLong {
		why = &halt{reason: ContextLimit, say: "This conversation has become too long for the model. Begin a fresh one with the command new; this one can still be looked at."}
	}
	charge, unknown := Money(0), false
	if ctx.Err() != nil || answerBegan(cause) {
		charge, unknown = asked.Reserve, true
	}
	if ctx.Err() != nil {
		heard, err := a.listen()
		if err != nil {
			return again, err
		}
		why = a.cut(ctx, heard) // nil when the Stop was for what went before: then the model is asked again
	}
	if err := a.lose(asked, charge, unknown, cause.Error()); err != nil || why == nil {
		return again, err
	}
	return a.halt(why)
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

// halt settles the turn before its answer.
func (a *actor) halt(why *halt) (outcome, error) {
	if why.reason == Cancelled {
		return a.cancelled()
	}
	return a.settle(why, "")
}

// settle ends the turn: open calls are answered, the last reply and the marks go out, all in one transaction.
func (a *actor) settle(why *halt, final string) (outcome, error) {
	t, say := a.state.turn, why.say
	if strings.TrimSpace(final) == "" && say == "" {
		say = "The model gave no answer. Say it again in other words, or ask for something smaller."
	}
	for _, c := range t.batch {
		if c.done {
			continue
		}
		if err := a.withdraw(c, "not run: "+oneLine(say), Person{}); err != nil {
			return again, err
		}
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
	case !watched, offer != "":
	case say != "":
		a.say(Reply{Kind: Notice, Text: say})
	default:
		a.say(Reply{Kind: Final, Text: final})
	}
	totals := t.totals(why.reason)
	if watched {
		a.say(Reply{Kind: SettledMark, Totals: totals})
	}
	if err := a.add(stoppedEntry{Turn: t.id, Run: t.run, Reason: why.reason, Say: say, Offer: offer}); err != nil {
		return again, err
	}
	if err := a.keepCheckpoint(); err != nil {
		return again, err
	}
	a.also(func(tx memory.Tx) error { return tx.Table(tableOpen).Delete(a.session) })
	a.then(func() { a.tellEnded(a.session, *totals) })
	return settled, a.commit()
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
	t := a.state.turn
	var by Person
	var unread, since []letter
	for _, l := range letters {
		switch {
		case l.Stop:
			a.take(l)
			by = l.From
			unread, since = append(unread, since...), nil
		case a.steers(l):
			since = append(since, l) // what comes after the last Stop begins the next turn
		}
	}
	for _, c := range t.batch {
		if c.done {
			continue
		}
		if err := a.withdraw(c, "not run: the person stopped the turn", by); err != nil {
			return again, err
		}
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
	return a.settle(&halt{reason: Cancelled, say: say}, "")
}

// progress says in one line what is being done. It is not kept.
func (a *actor) progress(tool, line string) {
	t := a.state.turn
	if t.provenance == Heartbeat {
		return // nobody is watching
	}
	a.Live(Reply{Kind: Progress, Session: a.session, Turn: t.id, Run: t.run, Tool: tool, Text: line, Address: t.address})
}

// sleep waits and reports whether it was not cut short.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// join puts two texts after each other, either of which may be empty.
func join(a, b string) string { return strings.Trim(a+"\n\n"+b, "\n") }

// oneLine is the first line of a text, not too long.
func oneLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 200 {
		return string(runes[:199]) + "…"
	}
	return line
}
