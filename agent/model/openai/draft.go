package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"nudge/agent/model"
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

// read takes in the body of a response. Its first byte says what it is, more surely than its declared type: what
// begins with a brace is one whole answer, what begins with an angle bracket is a page for people, the rest is a stream.
func (d *draft) read(ctx context.Context, body *watched, kind string, limit int64) *model.Error {
	in := &io.LimitedReader{R: body, N: limit}
	buf := bufio.NewReaderSize(in, 64<<10)
	first, err := skipBlank(buf)
	var fault *model.Error
	switch {
	case err != nil && err != io.EOF:
		return d.brokeOff(ctx, err)
	case err == io.EOF && kind == "text/event-stream" && in.N < limit:
		return d.brokeOff(ctx, io.ErrUnexpectedEOF)
	case err == io.EOF:
		return malformed(errors.New("the body is empty"))
	case first == '<' || kind == "text/html":
		return notAnAPI(buf)
	case first == '{' || first == '[':
		fault = d.readWhole(ctx, buf)
	default:
		fault = d.readStream(ctx, body, buf, first)
	}
	if in.N == 0 && fault != nil {
		return d.asBegan(malformed(fmt.Errorf("the answer has more than %d bytes", limit)))
	}
	return fault
}

// skipBlank skips a byte order mark and white space, which some servers send to keep the line open.
func skipBlank(r *bufio.Reader) (byte, error) {
	if mark, _ := r.Peek(1); len(mark) == 1 && mark[0] == 0xEF {
		if mark, _ := r.Peek(3); string(mark) == "\ufeff" {
			_, _ = r.Discard(3)
		}
	}
	for {
		b, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		if !bytes.ContainsAny(b, " \t\r\n") {
			return b[0], nil
		}
		_, _ = r.Discard(1)
	}
}

func (d *draft) readWhole(ctx context.Context, r io.Reader) *model.Error {
	body, err := io.ReadAll(r)
	if err != nil {
		d.began = true
		return d.brokeOff(ctx, err)
	}
	var c chunk
	if err := json.Unmarshal(body, &c); err != nil {
		return malformed(unreadable(err, body))
	}
	if f, ok := c.fault(body); ok {
		return f.inAnswer(false)
	}
	if len(c.Choices) == 0 || c.Choices[0].Message == nil && c.Choices[0].Delta == nil {
		return malformed(unreadable(errors.New("it has no choices"), body))
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

func (d *draft) readStream(ctx context.Context, body *watched, r *bufio.Reader, first byte) *model.Error {
	if !bytes.ContainsRune([]byte(":deir"), rune(first)) { // the first letters of a comment and of the fields
		return notAnAPI(r)
	}
	stream := &events{from: r}
	for {
		ev, err := stream.next()
		if ctx.Err() != nil {
			err = context.Cause(ctx) // what was read ahead counts no more
		}
		switch {
		case err != nil && d.finish != "":
			return nil // the answer was whole; only its usage may have been lost
		case err != nil:
			return d.brokeOff(ctx, err)
		}
		done, fault := d.event(ev)
		switch {
		case fault != nil:
			return fault
		case done && d.finish == "":
			return d.brokeOff(ctx, errors.New("the stream ended without a finish_reason"))
		case done:
			return nil
		case d.finish != "" && body.idle > grace:
			body.idle = grace
		}
	}
}

// event takes in one event and says whether it was the last, which one that was cut off is too.
func (d *draft) event(ev event) (done bool, fault *model.Error) {
	data := bytes.TrimSpace(ev.data)
	switch {
	case len(data) == 0:
		return false, nil
	case string(data) == "[DONE]":
		return true, nil
	case ev.name == "error":
		return false, parseFault(data).inAnswer(d.began)
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if ev.cut {
			return true, nil
		}
		return false, d.asBegan(malformed(unreadable(err, data)))
	}
	if f, ok := c.fault(data); ok {
		return false, f.inAnswer(d.began)
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
			return d.asBegan(malformed(errors.New("the usage cannot be true")))
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
	if f, ok := faultIn(ch.Error); ok {
		return f.inAnswer(d.began)
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
		return d.asBegan(malformed(errors.New("it has too many tool calls")))
	}
	if ch.Finish == "error" {
		return wireFault{Message: "the answer ended with finish_reason error"}.inAnswer(true)
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

// answer returns the answer once it has come to its end.
func (d *draft) answer() (model.Answer, *model.Error) {
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
		return model.Answer{}, d.asBegan(malformed(errors.New("a tool call has no name")))
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

// asBegan marks an error with whether some of the answer had come.
func (d *draft) asBegan(fault *model.Error) *model.Error {
	fault.Began = d.began
	return fault
}

// brokeOff is the error of an answer that did not come to its end.
func (d *draft) brokeOff(ctx context.Context, err error) *model.Error {
	fault := timeFault(ctx)
	if fault == nil {
		fault = &model.Error{Fault: model.FaultPassing, Say: "the model's answer broke off before its end", Err: err}
	}
	return d.asBegan(fault)
}
