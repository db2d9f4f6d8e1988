package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nudge/agent/model"
)

// outcome is how a step ends.
type outcome int

const (
	again   outcome = iota // there is another step
	settled                // the turn has ended
	waits                  // the turn waits for a person
)

// run works on the turn until it is settled or waits.
func (a *actor) run() error {
	ctx, done := a.beginWork()
	defer func() { done() }()
	for {
		end, err := a.step(ctx)
		if err != nil || end != again {
			return err
		}
		if a.ctx.Err() != nil {
			return a.commit() // closing: the rest is for the next start
		}
		if errors.Is(context.Cause(ctx), errStop) {
			// The next look at the mail finds the Stop, unless it was for what went before this turn.
			done()
			ctx, done = a.beginWork()
		}
	}
}

// errCut says that the run's context has ended in the middle of a step. The next look at the mail tells why.
var errCut = errors.New("the run was cut off")

// step is one model call and the tools that it asked for; one that a wait or a crash cut in two goes on where it was.
func (a *actor) step(ctx context.Context) (outcome, error) {
	end, err := a.stages(ctx)
	if errors.Is(err, errCut) {
		return again, nil
	}
	if why, ok := errors.AsType[*halt](err); ok {
		return a.halt(why)
	}
	return end, err
}

// stages takes a step through its stages. A halt among the errors ends the turn.
func (a *actor) stages(ctx context.Context) (outcome, error) {
	if a.state.turn.batch != nil {
		return a.batch(ctx)
	}
	if err := a.heed(ctx); err != nil {
		return again, err
	}
	if err := a.stepDone(ctx); err != nil { // of a step whose end was cut off
		return again, err
	}
	if a.state.turn.answered() {
		return a.finish()
	}
	if err := a.gate(ctx, a.question(BeforeStep, a.state.turn.steps+1)); err != nil {
		return again, err
	}
	words, err := a.words()
	if err != nil {
		return again, err
	}
	a.survey(ctx)
	if err := a.fit(ctx, words); err != nil {
		return again, err
	}
	asked, request, err := a.prepare(ctx, words)
	if err != nil {
		return again, err
	}
	if err := a.ask(ctx, asked, request); err != nil {
		return again, a.noAnswer(ctx, asked, err)
	}
	if a.state.turn.batch != nil {
		return a.batch(ctx)
	}
	if err := a.stepDone(ctx); err != nil || !a.state.turn.answered() {
		return again, err
	}
	return a.finish()
}

// answered reports whether the turn has its answer: the model asked for nothing more, or a tool that ends turns ran.
func (t *turn) answered() bool {
	return t.ended != nil || t.said != nil && (t.empties == 0 || t.empties >= emptyTries || t.provenance == Heartbeat)
}

// finish settles a turn that has its answer.
func (a *actor) finish() (outcome, error) {
	t := a.state.turn
	if t.ended != nil {
		return a.settle(&halt{reason: Completed}, *t.ended)
	}
	return a.settle(&halt{reason: Completed}, answer{text: *t.said})
}

// beginRun journals that a run begins.
func (a *actor) beginRun(why string) error {
	t := a.state.turn
	return a.add(runEntry{Turn: t.id, Run: fmt.Sprintf("%s.%d", t.id, t.runs+1), Why: why})
}

// beginWork gives the context of a run: it ends with a Stop, with the turn's time, or when the agent closes.
func (a *actor) beginWork() (context.Context, func()) {
	t := a.state.turn
	ctx, done := a.interruptible(t.id)
	ctx, expire := context.WithTimeoutCause(ctx, max(a.Limits.TurnTimeout-t.ran-now().Sub(t.runBegan), 0), errTurn)
	return ctx, func() {
		expire()
		done()
	}
}

// heed looks at the mail and ends the turn for what was heard, or for what its limits say.
func (a *actor) heed(ctx context.Context) error {
	heard, err := a.listen()
	if err != nil {
		return err
	}
	return a.cut(ctx, heard)
}

// cut is the halt with which the turn must end here, for what was heard or because of what it came to; nil when it may
// go on.
func (a *actor) cut(ctx context.Context, heard heard) error {
	t := a.state.turn
	switch circles := t.repeats.ends(a.Limits.Repeats); {
	case heard.stop:
		return &halt{reason: Cancelled}
	case errors.Is(context.Cause(ctx), errTurn):
		return &halt{reason: TimedOut, say: fmt.Sprintf("I stopped: this turn has worked for %s, which is as long as one may.", a.Limits.TurnTimeout)}
	case t.answered(), t.batch != nil:
		return nil // what follows is about another step
	case t.broken != "":
		return &halt{reason: TooManyErrs, say: "I stopped: " + t.broken}
	case a.Limits.Errors > 0 && t.failures >= a.Limits.Errors:
		return &halt{reason: TooManyErrs, say: fmt.Sprintf("I stopped: %d steps in a row only met errors. The last one was: %s", t.failures, oneLine(a.state.lastResult()))}
	case circles != "":
		return &halt{reason: Repeated, say: circles}
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

// progress says in one line what is being done. It is not kept.
func (a *actor) progress(tool, text string) {
	if line, ok := a.progressLine(tool, text); ok {
		a.Live(line)
	}
}

// progressLine is such a line; there is none where nobody watches.
func (a *actor) progressLine(tool, text string) (line Reply, ok bool) {
	t := a.state.turn
	return Reply{Kind: Progress, Session: a.session, Turn: t.id, Run: t.run, Tool: tool, Text: text, Tainted: a.tainted(), Address: t.address}, t.provenance != Heartbeat
}

func now() time.Time { return time.Now().UTC() }
