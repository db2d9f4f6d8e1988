package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent/model"
)

// longestRuling is how long any hook may take; commands have shorter times of their own.
const longestRuling = time.Minute

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
// was asked about, or when ctx has ended, which ends the run anyway.
func (a *actor) rule(ctx context.Context, h Hook, q HookQuestion) (r Ruling, ok bool, err error) {
	if err := a.commit(); err != nil { // a hook may take long, and a Stop must find the turn
		return r, false, err
	}
	r, fault := decide(ctx, h, q)
	if fault != nil && ctx.Err() != nil {
		return r, false, nil
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

// decide has a hook rule within its time, whatever it does.
func decide(ctx context.Context, h Hook, q HookQuestion) (Ruling, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestRuling, fmt.Errorf("it did not decide within %s", longestRuling))
	defer cancel()
	type end struct {
		ruling Ruling
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- end{err: fmt.Errorf("it panicked: %v", p)}
			}
		}()
		r, err := h.Rule(ctx, q)
		ended <- end{r, err}
	}()
	select {
	case e := <-ended:
		if e.err != nil {
			return Ruling{}, e.err
		}
		if err := e.ruling.Fits(h.At); err != nil {
			return Ruling{}, err
		}
		return e.ruling, nil
	case <-ctx.Done():
		return Ruling{}, context.Cause(ctx)
	}
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

// stopped is the end of a turn that a hook brings about; nil when it does not. Where ctx has ended that counts, not
// the hook.
func stopped(ctx context.Context, h Hook, r Ruling, ok bool) *halt {
	switch {
	case !ok && ctx.Err() == nil:
		return &halt{reason: Failed, say: fmt.Sprintf("I stopped: the check %s could not decide whether I may go on.", h.Name)}
	case r.Stop != "":
		return &halt{reason: Failed, say: r.Stop}
	}
	return nil
}

// gate asks the hooks before or after a step whether the turn may go on.
func (a *actor) gate(ctx context.Context, q HookQuestion) (*halt, error) {
	for _, h := range a.hooksAt(q.At) {
		r, ok, err := a.rule(ctx, h, q)
		if err != nil {
			return nil, err
		}
		if why := stopped(ctx, h, r, ok); why != nil || !ok {
			return why, nil
		}
	}
	return nil, nil
}

// stepDone asks the hooks about what the model said in the step that ends.
func (a *actor) stepDone(ctx context.Context) (*halt, error) {
	hooks := a.hooksAt(AfterStep)
	if len(hooks) == 0 {
		return nil, nil
	}
	q := a.question(AfterStep, a.state.turn.steps)
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
	return a.gate(ctx, q)
}

// request is what the model is sent: the conversation, as the hooks let it be sent this once.
func (a *actor) request(ctx context.Context, asked *modelAskedEntry) (model.Request, *halt, error) {
	t := a.state.turn
	request := model.Request{System: a.system(), Messages: a.state.view, Tools: a.tools.offered(t), MaxOutput: asked.Output}
	was := bytesOf(request)
	for _, h := range a.hooksAt(BeforeModel) {
		q := a.question(BeforeModel, asked.Step)
		q.Request = &HookRequest{System: request.System, Messages: slices.Clone(request.Messages)}
		for _, tool := range request.Tools {
			q.Request.Tools = append(q.Request.Tools, tool.Name)
		}
		r, ok, err := a.rule(ctx, h, q)
		if err != nil {
			return request, nil, err
		}
		if why := stopped(ctx, h, r, ok); why != nil || !ok {
			return request, why, nil
		}
		request = r.change(request)
		if fault := unpaired(request.Messages); fault != "" {
			a.Log.Warn("a hook made a request that cannot be sent", "hook", h.Name, "session", a.session, "error", fault)
			return request, stopped(ctx, h, Ruling{}, false), nil
		}
	}
	// What hooks add is paid for out of the room for the answer, so that the reserve stays what it is.
	if more := (bytesOf(request) - was + 1) / 2; more > 0 {
		spec := a.model().Spec
		request.MaxOutput -= more
		if spec.PriceOut > 0 {
			request.MaxOutput = min(request.MaxOutput, asked.Output-int(Money(more)*spec.PriceIn/spec.PriceOut)-1)
		}
		if request.MaxOutput < minOutput {
			return request, &halt{reason: Budget, say: "I stopped: what a check adds to the request leaves no room for an answer."}, nil
		}
	}
	return request, nil, nil
}

// change applies the ruling of a hook to a request.
func (r Ruling) change(request model.Request) model.Request {
	if r.System != nil {
		request.System = *r.System
	}
	if r.Messages != nil {
		request.Messages = r.Messages
	}
	if r.Append != "" && len(request.Messages) > 0 {
		request.Messages = slices.Clone(request.Messages)
		last := &request.Messages[len(request.Messages)-1]
		last.Text = join(last.Text, r.Append)
	}
	if r.Hide != nil {
		request.Tools = slices.DeleteFunc(slices.Clone(request.Tools), func(tool model.Tool) bool { return slices.Contains(r.Hide, tool.Name) })
	}
	return request
}

// unpaired says what is wrong with a conversation that a hook wrote: every call has exactly one result, right after it.
func unpaired(messages []model.Message) string {
	var due []string
	for i, m := range messages {
		switch {
		case m.Role == model.ToolRole && (len(due) == 0 || due[0] != m.CallID):
			return fmt.Sprintf("message %d is a result of %q, where %q is due", i+1, m.CallID, due)
		case m.Role == model.ToolRole:
			due = due[1:]
			continue
		case len(due) > 0:
			return fmt.Sprintf("message %d stands where results of %q are due", i+1, due)
		case m.Role != model.User && m.Role != model.Assistant:
			return fmt.Sprintf("message %d has the role %q", i+1, m.Role)
		case m.Role != model.Assistant && len(m.Calls) > 0:
			return fmt.Sprintf("message %d is the user's and has calls", i+1)
		}
		for _, c := range m.Calls {
			due = append(due, c.ID)
		}
	}
	switch {
	case len(due) > 0:
		return fmt.Sprintf("there are no results of %q", due)
	case len(messages) == 0:
		return "there are no messages"
	case messages[len(messages)-1].Role == model.Assistant:
		return "the last message is the assistant's"
	}
	return ""
}

// bytesOf is about how long a request is.
func bytesOf(r model.Request) int {
	n := len(r.System)
	for _, m := range r.Messages {
		n += weigh(m)
	}
	for _, tool := range r.Tools {
		n += len(tool.Name) + len(tool.Description) + len(tool.Schema) + 64
	}
	return n
}

// permit asks the hooks about a call that is about to run. With a result the call is not run: that is what the model
// reads instead.
func (a *actor) permit(ctx context.Context, w *work, q HookQuestion) (instead *toolResultEntry, why *halt, err error) {
	w.about(&q)
	for _, h := range a.hooksAt(BeforeTool) {
		r, ok, err := a.rule(ctx, h, q)
		if err != nil || !ok && ctx.Err() != nil {
			return nil, nil, err
		}
		switch {
		case !ok:
			return &toolResultEntry{Text: fmt.Sprintf("not run: the check %s could not decide about it", h.Name), Failed: true}, nil, nil
		case r.Refuse != "":
			return &toolResultEntry{Text: "not run: " + r.Refuse, Failed: true}, nil, nil
		case r.Answer != nil:
			return &toolResultEntry{Text: *r.Answer}, nil, nil
		case r.Stop != "":
			return nil, &halt{reason: Failed, say: r.Stop}, nil
		}
	}
	return nil, nil, nil
}

// review lets the hooks rewrite what came of a call that ran. They are asked even if the run is ending: the result is
// journaled in any case.
func (a *actor) review(ctx context.Context, w *work, q HookQuestion) error {
	w.about(&q)
	ctx = context.WithoutCancel(ctx)
	for _, h := range a.hooksAt(AfterTool) {
		q.Result, q.Failed = w.words()
		r, ok, err := a.rule(ctx, h, q)
		if err != nil {
			return err
		}
		switch {
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
	q.Tool, q.Effect, q.Arguments, q.call = w.tool.Name, w.effect(), json.RawMessage(strings.Clone(string(w.in.Arguments))), w.in.Call
}
