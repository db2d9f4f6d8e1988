package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// maxCalls is how many calls one answer may hold.
const maxCalls = 256

// markupNotice stands for an answer that was nothing but calls written as text, where those are not taken as calls.
const markupNotice = "(The model wrote a tool call as text, so it was not run. If this model always does that, add text_tool_calls to its profile.)"

// draft is an answer as far as it has come.
type draft struct {
	offered []model.Tool
	asText  bool // calls written as text are taken as calls
	said    func(string)

	prose   *prose
	slots   slots
	thought strings.Builder // what came in fields of its own
	finish  string
	usage   model.Usage
	model   string
	began   bool
}

func newDraft(offered []model.Tool, p Profile, said func(string)) *draft {
	if said == nil {
		said = func(string) {}
	}
	asText := p.TextToolCalls && len(offered) > 0
	return &draft{offered: offered, asText: asText, said: said, prose: newProse(asText)}
}

// Began is of [wire.Draft].
func (d *draft) Began() bool { return d.began }

// Finished is of [wire.Draft]: after the finish only the usage can be missing.
func (d *draft) Finished() bool { return d.finish != "" }

// Whole is of [wire.Draft].
func (d *draft) Whole(body []byte) *model.Error {
	var c chunk
	if err := json.Unmarshal(body, &c); err != nil {
		return wire.Malformed(wire.Unreadable(err, body))
	}
	if f, ok := c.fault(body); ok {
		return f.InAnswer()
	}
	if len(c.Choices) == 0 || c.Choices[0].Message == nil && c.Choices[0].Delta == nil {
		return wire.Malformed(wire.Unreadable(errors.New("it has no choices"), body))
	}
	d.began = true
	if fault := d.take(c); fault != nil {
		return fault
	}
	if d.finish == "" {
		d.finish = "stop" // what came whole cannot have been cut off
	}
	return nil
}

// Event is of [wire.Draft]. An event that was cut off is the last.
func (d *draft) Event(ev wire.Event) (last bool, fault *model.Error) {
	switch {
	case string(ev.Data) == "[DONE]":
		return true, nil
	case ev.Name == "error":
		return false, wire.ParseError(ev.Data).InAnswer()
	}
	var c chunk
	if err := json.Unmarshal(ev.Data, &c); err != nil {
		if ev.Cut {
			return true, nil
		}
		return false, wire.Malformed(wire.Unreadable(err, ev.Data))
	}
	if f, ok := c.fault(ev.Data); ok {
		return false, f.InAnswer()
	}
	return false, d.take(c)
}

// take takes in a chunk. Of several choices, which nobody asked for, only the first counts.
func (d *draft) take(c chunk) *model.Error {
	if c.Model != "" {
		d.model = string(c.Model)
	}
	if c.Usage != nil {
		used, ok := c.Usage.counted()
		if !ok {
			return wire.Malformed(errors.New("the usage cannot be true"))
		}
		if used.Known {
			d.usage = used // some servers send running totals: the last counts, and they are never added up
		}
	}
	for _, ch := range c.Choices {
		if ch.Index == 0 {
			return d.takeChoice(ch)
		}
	}
	return nil
}

func (d *draft) takeChoice(ch choice) *model.Error {
	if f, ok := wire.ErrorIn(ch.Error); ok {
		return f.InAnswer()
	}
	d.began = true
	part, whole := ch.Delta, false
	if part == nil {
		part, whole = ch.Message, true
	}
	if part != nil {
		d.thought.WriteString(part.reasoned())
		d.tell(d.prose.feed(part.Content.text+string(part.Refusal), false))
		for _, call := range part.ToolCalls {
			if whole {
				d.slots.addWhole(call)
			} else {
				d.slots.add(call)
			}
		}
	}
	if len(d.slots.all) > maxCalls {
		return wire.Malformed(errors.New("it has too many tool calls"))
	}
	if ch.Finish == "error" {
		return wire.ProviderError{Message: "the answer ended with finish_reason error"}.InAnswer()
	}
	if ch.Finish != "" {
		d.finish = string(ch.Finish)
	}
	return nil
}

func (d *draft) tell(piece string) {
	if piece != "" {
		d.said(piece)
	}
}

// Answer is of [wire.Draft].
func (d *draft) Answer() (model.Answer, *model.Error) {
	d.tell(d.prose.feed("", true))
	out := model.Answer{
		Text: d.prose.whole(), Reasoning: d.thought.String(), Usage: d.usage, Model: d.model, Finish: finishOf(d.finish),
	}
	if out.Reasoning == "" {
		out.Reasoning = strings.TrimSpace(d.prose.thought.String())
	}
	cutOff := out.Finish == model.FinishLength || out.Finish == model.FinishFilter
	calls, ok := d.slots.calls(cutOff)
	if !ok {
		return model.Answer{}, wire.Malformed(errors.New("a tool call has no name"))
	}
	out.Calls = calls
	if len(d.slots.all) == 0 {
		if fault := d.takeTextCalls(&out, cutOff); fault != nil {
			return model.Answer{}, fault
		}
	}
	d.tell(d.prose.untold(out.Text))
	switch {
	case cutOff:
	case len(out.Calls) > 0:
		out.Finish = model.FinishCalls
	default:
		out.Finish = model.FinishStop
	}
	return out, nil
}

// takeTextCalls handles calls that were written as text: they become calls where the profile says so, and markup
// alone never is an answer.
func (d *draft) takeTextCalls(out *model.Answer, cutOff bool) *model.Error {
	if d.prose.heldAt < 0 {
		return nil
	}
	if d.asText {
		found := findCalls(out.Text, d.offered)
		if found.cut && !cutOff {
			return &model.Error{
				Fault: model.FaultPassing, Began: true, Say: "the model's answer broke off in the middle of a tool call",
				Err: errors.New("a call written as text has no end"),
			}
		}
		out.Text, out.Calls = found.text, found.calls
		return nil
	}
	if found := findCalls(out.Text, nil); found.text == "" && (found.cut || len(found.calls) > 0) {
		out.Text = markupNotice
	}
	return nil
}

func finishOf(reason string) model.Finish {
	switch reason {
	case "length", "max_tokens", "max_output_tokens", "MAX_TOKENS":
		return model.FinishLength
	case "content_filter", "safety", "SAFETY":
		return model.FinishFilter
	}
	return model.FinishStop
}
