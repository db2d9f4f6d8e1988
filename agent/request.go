package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nudge/agent/model"
)

// request is what the model is sent: the conversation, as the hooks let it be sent this once.
func (a *actor) request(ctx context.Context, asked *modelAskedEntry) (model.Request, error) {
	return a.shape(ctx, asked, model.Request{
		System: a.system(), Messages: a.state.view, Tools: a.box().offered(a.state.turn), MaxOutput: asked.Output, Memo: &a.state.memo,
	})
}

// shape lets the hooks change a request for this once. What they add is paid for out of the room for the answer, so that
// the reserve stays what it is.
func (a *actor) shape(ctx context.Context, asked *modelAskedEntry, request model.Request) (model.Request, error) {
	was := bytesOf(request)
	for _, h := range a.hooksAt(BeforeModel) {
		q := a.question(BeforeModel, asked.Step)
		q.Request = seen(request)
		q.Summary = asked.Summary
		r, ok, err := a.rule(ctx, h, q)
		if err != nil {
			return request, err
		}
		if err := h.stops(r, ok); err != nil {
			return request, err
		}
		request = r.change(request)
		if fault := unpaired(request.Messages); fault != "" {
			a.Log.Warn("a hook made a request that cannot be sent", "hook", h.Name, "session", a.session, "error", fault)
			return request, h.stops(Ruling{}, false)
		}
	}
	if more := (bytesOf(request) - was + 1) / 2; more > 0 {
		spec, input := a.model().Spec, asked.Input+more
		if asked.Reserve > 0 {
			request.MaxOutput = min(request.MaxOutput, buys(asked.Reserve-Money(input)*spec.PriceIn, spec.PriceOut, request.MaxOutput))
		}
		if a.Limits.Tokens > 0 {
			request.MaxOutput = min(request.MaxOutput, a.Limits.Tokens-a.state.turn.used().tokens-input)
		}
		if request.MaxOutput < minOutput {
			return request, &halt{reason: Budget, say: "I stopped: what a check adds to the request leaves no room for an answer."}
		}
	}
	return request, ctxError(ctx)
}

// ctxError is errCut once a context has ended.
func ctxError(ctx context.Context) error {
	if ctx.Err() != nil {
		return errCut
	}
	return nil
}

// seen is a copy of a request for hooks, which may scribble in it.
func seen(request model.Request) *HookRequest {
	of := &HookRequest{System: request.System, Messages: slices.Clone(request.Messages)}
	for i := range of.Messages {
		of.Messages[i].Calls = slices.Clone(of.Messages[i].Calls)
	}
	for _, tool := range request.Tools {
		of.Tools = append(of.Tools, tool.Name)
	}
	return of
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
		case m.Role == model.User && strings.TrimSpace(m.Text) == "":
			return fmt.Sprintf("message %d is the user's and says nothing", i+1)
		}
		for _, c := range m.Calls {
			if c.ID == "" || slices.Contains(due, c.ID) {
				return fmt.Sprintf("message %d has a call with the id %q, which is not its own", i+1, c.ID)
			}
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
	n := len(r.System) + weighTools(r.Tools)
	for _, m := range r.Messages {
		n += weigh(m)
	}
	return n
}
