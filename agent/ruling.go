package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"nudge/agent/model"
)

// longestRuling is how long any hook may take: a little longer than the time after which a hook's own is up.
const longestRuling = HookTimeout + 5*time.Second

// hookEntry is what a hook ruled, or that it could not. A hook that let everything be leaves none.
type hookEntry struct {
	Turn    string    `json:"turn"`
	Run     string    `json:"run,omitempty"`
	Step    int       `json:"step,omitempty"`
	Hook    string    `json:"hook"`
	At      HookPoint `json:"at"`
	Call    string    `json:"call,omitempty"`
	Ruling  Ruling    `json:"ruling,omitzero"`   // without the messages
	Changed bool      `json:"changed,omitempty"` // the messages were replaced, for one call of the model
	Fault   string    `json:"fault,omitempty"`
}

func (hookEntry) kind() string { return kindHook }

// rule asks one hook and journals what it ruled. It reports false when the hook has not decided, which refuses what it
// was asked about; when ctx has ended the error is errCut.
func (a *actor) rule(ctx context.Context, h Hook, q HookQuestion) (r Ruling, ok bool, err error) {
	if err := a.commit(); err != nil { // a hook may take long, and a Stop must find the turn
		return r, false, err
	}
	r, fault := askHook(ctx, h, q)
	if fault != nil && ctx.Err() != nil {
		return r, false, errCut
	}
	e := hookEntry{Turn: q.Turn, Run: q.Run, Step: q.Step, Hook: h.Name, At: h.At, Call: q.call, Ruling: r, Changed: r.Messages != nil}
	e.Ruling.Messages = nil
	if fault != nil {
		a.Log.Warn("a hook could not decide, which refuses", "hook", h.Name, "session", a.session, "error", fault)
		e.Fault = fault.Error()
		return Ruling{}, false, a.add(e)
	}
	if r.isZero() {
		return r, true, nil
	}
	return r, true, a.add(e)
}

// askHook has a hook rule within its time, whatever it does.
func askHook(ctx context.Context, h Hook, q HookQuestion) (Ruling, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestRuling, fmt.Errorf("it did not decide within %s", longestRuling))
	defer cancel()
	r, err := within(ctx, 0, func() (Ruling, error) { return h.Rule(ctx, q) })
	switch {
	case errors.Is(err, errLeftBehind):
		return Ruling{}, context.Cause(ctx)
	case err != nil:
		return Ruling{}, err
	}
	if err := r.Fits(h.At); err != nil {
		return Ruling{}, err
	}
	return r, nil
}

// hooksAt are the hooks of one point, in the order in which they are asked.
func (a *actor) hooksAt(at HookPoint) []Hook {
	return slices.DeleteFunc(slices.Clone(a.Hooks), func(h Hook) bool { return h.At != at })
}

// question is what hooks are told of the turn.
func (a *actor) question(at HookPoint, step int) HookQuestion {
	t := a.state.turn
	return HookQuestion{At: at, Session: a.session, Turn: t.id, Run: t.run, Step: step, Person: t.person.ID, Provenance: t.provenance}
}

// stops is the halt that a hook brings about; nil when it does not.
func (h Hook) stops(r Ruling, ok bool) error {
	switch {
	case !ok:
		return &halt{reason: Failed, say: fmt.Sprintf("I stopped: the check %s could not decide whether I may go on.", h.Name)}
	case r.Stop != "":
		return &halt{reason: Failed, say: oneLine(r.Stop)}
	}
	return nil
}

// gate asks the hooks before or after a step whether the turn may go on.
func (a *actor) gate(ctx context.Context, q HookQuestion) error {
	for _, h := range a.hooksAt(q.At) {
		r, ok, err := a.rule(ctx, h, q)
		if err != nil {
			return err
		}
		if err := h.stops(r, ok); err != nil {
			return err
		}
	}
	return nil
}

// stepDone asks the hooks about what the model said in the last step, unless they were.
func (a *actor) stepDone(ctx context.Context) error {
	t := a.state.turn
	if len(a.hooksAt(AfterStep)) == 0 || t.steps == 0 || a.judged.turn == t.id && a.judged.step == t.steps {
		return nil
	}
	q := a.question(AfterStep, t.steps)
	for _, m := range slices.Backward(a.state.view) {
		if m.Role != model.Assistant {
			continue
		}
		q.Text = m.Text
		for _, c := range m.Calls {
			q.Calls = append(q.Calls, c.Name)
		}
		break
	}
	if err := a.gate(ctx, q); err != nil {
		return err
	}
	a.judged.turn, a.judged.step = t.id, t.steps
	return nil
}

// verdict is what hooks make of a call: not to be run, with what the model reads instead.
type verdict struct {
	Text   string
	Failed bool
}

// permit asks the hooks about a call that is about to run. Without an error and a verdict, it may run.
func (a *actor) permit(ctx context.Context, w *work, q HookQuestion) (instead *verdict, err error) {
	w.about(&q)
	for _, h := range a.hooksAt(BeforeTool) {
		r, ok, err := a.rule(ctx, h, q)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return &verdict{fmt.Sprintf("not run: the check %s could not decide about it", h.Name), true}, nil
		case r.Refuse != "":
			return &verdict{"not run: " + r.Refuse, true}, nil
		case r.Answer != nil:
			return &verdict{*r.Answer, false}, nil
		case r.Stop != "":
			return nil, h.stops(r, ok)
		}
	}
	return nil, nil
}

// review lets the hooks rewrite what came of calls that ran. What they have not decided when the run is cut off is
// withheld.
func (a *actor) review(ctx context.Context, works []*work) error {
	if len(a.hooksAt(AfterTool)) == 0 {
		return nil
	}
	t := a.state.turn
	for _, w := range works {
		if err := a.add(toolRanEntry{Turn: t.id, Run: t.run, Call: w.call.ID, Tool: w.tool.Name}); err != nil {
			return err
		}
	}
	for _, w := range works {
		if err := a.reviewOne(ctx, w, a.question(AfterTool, t.steps)); err != nil {
			return err
		}
	}
	return nil
}

func (a *actor) reviewOne(ctx context.Context, w *work, q HookQuestion) error {
	w.about(&q)
	for _, h := range a.hooksAt(AfterTool) {
		q.Result, q.Failed = w.words()
		r, ok, err := a.rule(ctx, h, q)
		switch {
		case err != nil && !errors.Is(err, errCut):
			return err
		case !ok:
			w.withheld = fmt.Sprintf("withheld: the check %s could not decide whether this result may be read; the call did run", h.Name)
			return nil
		case r.Result != nil:
			w.rewritten = r.Result
		}
	}
	return nil
}

// about tells hooks of a call.
func (w *work) about(q *HookQuestion) {
	q.Tool, q.Effect, q.Arguments, q.call = w.tool.Name, w.effect(), json.RawMessage(slices.Clone(w.in.Arguments)), w.in.Call
}
