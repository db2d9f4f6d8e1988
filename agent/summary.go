package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// maxDull is how many summaries of a turn may be no good before none is asked for any more.
const maxDull = 2

// summarize asks the model for a summary of what a compaction leaves out, and puts it into the note that stands there.
// It reports false when there is none to be had: no money, no answer, or one that lost what must be kept.
func (a *actor) summarize(ctx context.Context, in compact.Input, out compact.Output) (compact.Output, bool, error) {
	who := a.model()
	parts, err := compact.SummaryParts(who.tokens, out.Removed, in.Window)
	if err != nil {
		return out, false, nil //nolint:nilerr // what cannot be summarized is left out without
	}
	summary := ""
	for _, part := range parts {
		request := compact.SummaryRequest(who.tokens, summary, part, in.Window)
		answer, err := a.askSummary(ctx, request)
		var refused *noSummary
		if errors.As(err, &refused) {
			a.Log.Debug("no summary of a conversation", "session", a.session, "why", refused.Error())
			return out, false, nil
		}
		if err != nil {
			return out, false, err
		}
		summary = answer.Text
	}
	with, err := compact.Summarize(in, out, summary)
	if err != nil {
		a.Log.Debug("a summary of a conversation is no good", "session", a.session, "error", err)
	}
	return with, err == nil, nil
}

// noSummary says why there is no summary; the turn goes on without.
type noSummary struct{ why string }

func (n *noSummary) Error() string { return n.why }

// askSummary makes one model call for a summary. It is paid for like any other and is no step of the turn.
func (a *actor) askSummary(ctx context.Context, request model.Request) (model.Answer, error) {
	t, who := a.state.turn, a.model()
	asked := modelAskedEntry{Turn: t.id, Run: t.run, Step: t.steps + 1, Day: today(t.person, now()), Summary: true}
	input := (len(request.System) + len(request.Messages[0].Text) + 512) / 2
	var why *halt
	release, err := a.hold(asked.Day, func(spent Money) Money {
		var allowed allowance
		allowed, why = a.Limits.allow(t, who.Spec, input, spent)
		asked.Input, asked.Output = allowed.input, min(allowed.output, request.MaxOutput)
		asked.Reserve = Money(asked.Input)*who.Spec.PriceIn + Money(asked.Output)*who.Spec.PriceOut
		return asked.Reserve
	})
	if err != nil {
		return model.Answer{}, err
	}
	defer release()
	if why != nil || asked.Output < request.MaxOutput/2 {
		return model.Answer{}, &noSummary{"the limits leave no room for it"}
	}
	a.spend(asked.Day, asked.Reserve)
	if err := a.add(asked); err != nil {
		return model.Answer{}, err
	}
	if err := a.commit(); err != nil {
		return model.Answer{}, err
	}
	request.MaxOutput = asked.Output
	began := time.Now()
	answer, err := who.Model.Answer(ctx, request, nil)
	if err != nil {
		charge, unknown := Money(0), false
		if ctx.Err() != nil || answerBegan(err) {
			charge, unknown = asked.Reserve, true
		}
		if err := a.lose(&asked, charge, unknown, err.Error()); err != nil {
			return answer, err
		}
		return answer, &noSummary{err.Error()}
	}
	if err := a.answered(&asked, answer, time.Since(began)); err != nil {
		return answer, err
	}
	if len(answer.Calls) > 0 || answer.Finish == model.FinishLength {
		return answer, &noSummary{fmt.Sprintf("the answer has %d calls and ended with %s", len(answer.Calls), answer.Finish)}
	}
	return answer, nil
}
