package agent

import (
	"context"
	"errors"
	"fmt"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// candidate is one of the models that may answer.
type candidate struct {
	Fallback
	tokens *compact.Calibrated
}

// candidates are the models of a config, the first one first.
func candidates(c Config) []candidate {
	var all []candidate
	for _, f := range append([]Fallback{{c.Model, c.Spec, c.Counter}}, c.Fallbacks...) {
		if f.Counter == nil {
			f.Counter = compact.NewCounter(compact.Estimate)
		}
		all = append(all, candidate{f, compact.NewCalibrated(f.Counter)})
	}
	return all
}

// model is the one that is asked in this turn: the first, until it does not answer. The next turn tries it again.
func (a *actor) model() *candidate {
	return &a.models[min(a.state.turn.model, len(a.models)-1)]
}

// fallback is the number of the model to ask next, after the present one failed in a way in which another may not.
func (a *actor) fallback(ctx context.Context, cause error) (next int, ok bool) {
	var fault *model.Error
	if ctx.Err() != nil || !errors.As(cause, &fault) {
		return 0, false
	}
	now := a.state.turn.model
	for next := now + 1; next < len(a.models); next++ {
		if fault.Fault != model.FaultTooLong || a.models[next].Spec.Window > a.model().Spec.Window {
			return next, true
		}
	}
	return 0, false
}

// fallBack lets another model answer from here on in this turn, and tells the person.
func (a *actor) fallBack(ctx context.Context, asked *modelAskedEntry, next int, cause error) error {
	t, from, to := a.state.turn, a.model().Spec.Name, a.models[next].Spec.Name
	e := modelFallbackEntry{Turn: t.id, Run: t.run, Step: asked.Step, Next: next, From: from, To: to, Reason: cause.Error()}
	e.Charge, e.Unknown = owing(ctx, asked, cause)
	a.spend(asked.Day, e.Charge-asked.Reserve)
	if err := a.add(e); err != nil {
		return err
	}
	if t.provenance != Heartbeat {
		a.say(Reply{Kind: Notice, Text: fmt.Sprintf("%s did not answer: %s. %s goes on instead.", from, sayOf(cause), to)})
	}
	return a.commit()
}

// modelFallbackEntry closes a model call that another model answers instead.
type modelFallbackEntry struct {
	Turn    string `json:"turn"`
	Run     string `json:"run"`
	Step    int    `json:"step"`
	Next    int    `json:"next"` // of the candidates, counted from 0
	From    string `json:"from"`
	To      string `json:"to"`
	Charge  Money  `json:"charge,omitempty"`
	Unknown bool   `json:"unknown,omitempty"` // the provider may have counted tokens that nobody knows of
	Reason  string `json:"reason"`
}

func (modelFallbackEntry) kind() string { return kindFallback }

// fellBack takes the entry into the state.
func (t *turn) fellBack(e *modelFallbackEntry) {
	if e.Unknown {
		t.uncount()
	}
	t.asked = nil
	t.spent += e.Charge
	t.model = max(e.Next, 0)
	t.sentTokens, t.sentBytes = 0, 0 // another model counts in another way
}
