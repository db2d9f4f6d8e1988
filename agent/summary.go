package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nudge/agent/compact"
	"nudge/agent/model"
)

const (
	// maxDull is how many summaries in a row may be no good before one is asked for at few compactions only.
	maxDull = 2
	// dullRest is how many compactions go by without one then.
	dullRest = 8
)

// asksForSummary reports whether a summary is worth asking for at this compaction. Those left out count as no good.
func (s *state) asksForSummary() bool {
	if s.dull < maxDull || s.dull%dullRest == 0 {
		return true
	}
	s.dull++
	return false
}

// summarize asks the model for a summary of what a compaction leaves out, and puts it into the note that stands there.
// It reports false when there is none to be had: no money, no answer, or one that lost what must be kept.
func (a *actor) summarize(ctx context.Context, in compact.Input, out compact.Output) (compact.Output, bool, error) {
	who := a.model()
	parts, err := compact.SummaryParts(who.tokens, out.Removed, in.Window)
	if err != nil {
		return out, false, nil // what cannot be summarized is left out without
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

// askSummary makes one model call for a summary. It is paid for like any other, the hooks see it, and it is no step of
// the turn.
func (a *actor) askSummary(ctx context.Context, request model.Request) (model.Answer, error) {
	t, who := a.state.turn, a.model()
	asked := &modelAskedEntry{Turn: t.id, Run: t.run, Step: t.steps + 1, Summary: true}
	release, err := a.allot(asked, (bytesOf(request)+512)/2, request.MaxOutput)
	if why, ok := errors.AsType[*halt](err); ok {
		return model.Answer{}, &noSummary{why.say} // the step that follows says so to the person
	}
	if err != nil {
		return model.Answer{}, err
	}
	defer release()
	if err := a.add(*asked); err != nil {
		return model.Answer{}, err
	}
	if err := a.commit(); err != nil {
		return model.Answer{}, err
	}
	if asked.Output < request.MaxOutput/2 {
		return model.Answer{}, a.unasked(asked, &noSummary{"there is too little left for it"})
	}
	request.MaxOutput = asked.Output
	if request, err = a.shape(ctx, asked, request); err != nil {
		return model.Answer{}, a.unasked(asked, err)
	}
	began := time.Now()
	answer, err := who.Model.Answer(ctx, request, nil)
	if err != nil {
		charge, unknown := owing(ctx, asked, err)
		if err := a.lose(asked, charge, unknown, err.Error()); err != nil {
			return answer, err
		}
		if ctx.Err() != nil {
			return answer, errCut
		}
		return answer, &noSummary{err.Error()}
	}
	if err := a.keepAnswer(asked, answer, nil, time.Since(began)); err != nil {
		return answer, err
	}
	if len(answer.Calls) > 0 || answer.Finish == model.FinishLength {
		return answer, &noSummary{fmt.Sprintf("the answer has %d calls and ended with %s", len(answer.Calls), answer.Finish)}
	}
	return answer, nil
}
