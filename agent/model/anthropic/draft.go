package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// What one answer may hold.
const (
	maxBlocks = 1024
	maxCalls  = 256
)

// draft is an answer as far as it has come: a [wire.Draft].
type draft struct {
	asked string // the model's name, as it is configured
	said  func(string)

	speech   speech
	blocks   []*written
	calls    int
	stop     string
	stopped  bool // the message's end has come
	usage    usage
	outKnown bool // the tokens of the answer were counted after it was written
	model    string
	began    bool
}

// written is a block of an answer as far as it has come.
type written struct {
	kind  string
	index string // as the provider numbered it

	id, name string
	json     strings.Builder
	whole    string // arguments that came as an object rather than as text

	thinking, signature   strings.Builder
	data                  string
	afterText, afterCalls int // what of the answer stood before it
}

func newDraft(asked string, said func(string)) *draft {
	if said == nil {
		said = func(string) {}
	}
	return &draft{asked: asked, said: said}
}

// Began is of [wire.Draft].
func (d *draft) Began() bool { return d.began }

// Finished is of [wire.Draft].
func (d *draft) Finished() bool { return d.stopped && d.stop != "" }

// Whole is of [wire.Draft].
func (d *draft) Whole(body []byte) *model.Error {
	var m wholeMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return wire.Malformed(wire.Unreadable(err, body))
	}
	if p, ok := wire.ErrorIn(m.Error); ok {
		return p.InAnswer()
	}
	switch {
	case m.Type == "error":
		return wire.ParseError(body).InAnswer()
	case m.Content == nil:
		return wire.Malformed(wire.Unreadable(errors.New("it has no content"), body))
	}
	if fault := d.start(m); fault != nil {
		return fault
	}
	for _, p := range m.Content {
		if fault := d.open("", p); fault != nil {
			return fault
		}
	}
	d.stop, d.stopped = string(m.Stop), true
	if d.stop == "" {
		d.stop = "end_turn" // what came whole cannot have been cut off
	}
	return d.count(m.Usage, true)
}

// Event is of [wire.Draft]. An event that was cut off is the last.
func (d *draft) Event(ev wire.Event) (last bool, fault *model.Error) {
	if ev.Name == "error" {
		return false, wire.ParseError(ev.Data).InAnswer()
	}
	var e event
	if err := json.Unmarshal(ev.Data, &e); err != nil {
		if ev.Cut {
			return true, nil
		}
		return false, wire.Malformed(wire.Unreadable(err, ev.Data))
	}
	if p, ok := wire.ErrorIn(e.Error); ok {
		return false, p.InAnswer()
	}
	if e.Type == "" {
		e.Type = wire.Text(ev.Name)
	}
	switch e.Type {
	case "error":
		return false, wire.ParseError(ev.Data).InAnswer()
	case "message_start":
		if e.Message != nil {
			return false, d.start(*e.Message)
		}
	case "content_block_start":
		if e.Block != nil {
			return false, d.open(string(e.Index), *e.Block)
		}
	case "content_block_delta":
		if e.Delta != nil {
			return false, d.add(string(e.Index), *e.Delta)
		}
	case "message_delta":
		if e.Delta != nil && e.Delta.Stop != "" {
			d.stop = string(e.Delta.Stop)
		}
		return false, d.count(e.Usage, true)
	case "message_stop":
		d.stopped = true
		return true, nil
	}
	return false, nil
}

// start takes in what is said of the message before its content.
func (d *draft) start(m wholeMessage) *model.Error {
	d.began = true
	if m.Model != "" {
		d.model = string(m.Model)
	}
	return d.count(m.Usage, false)
}

// count takes in a usage. Final says whether it counts the answer and not only what stood before it.
func (d *draft) count(u *usage, final bool) *model.Error {
	if u == nil {
		return nil
	}
	d.usage.update(*u)
	d.outKnown = d.outKnown || final && u.Out != nil
	if _, ok := d.usage.counted(); !ok {
		return wire.Malformed(errors.New("the usage cannot be true"))
	}
	return nil
}

// open begins a block, which may be whole already.
func (d *draft) open(index string, p part) *model.Error {
	d.began = true
	w := &written{
		kind: string(p.Type), index: index, id: string(p.ID), name: string(p.Name), data: string(p.Data),
		afterText: d.speech.solid, afterCalls: d.calls,
	}
	w.thinking.WriteString(string(p.Thinking))
	w.signature.WriteString(string(p.Signature))
	switch w.kind {
	case kindText:
		d.tell(string(p.Text))
	case kindCall:
		d.calls++
		w.whole = compact(p.Input)
		d.speech.pause()
	default:
		d.speech.pause()
	}
	d.blocks = append(d.blocks, w)
	if len(d.blocks) > maxBlocks || d.calls > maxCalls {
		return wire.Malformed(errors.New("it has too many content blocks or tool calls"))
	}
	return nil
}

// compact returns an object without its white space; "" for anything else. Digits stay as they were.
func compact(input json.RawMessage) string {
	var out bytes.Buffer
	if !wire.IsObject(string(input)) || json.Compact(&out, input) != nil {
		return ""
	}
	return out.String()
}

// add takes in a piece of a block.
func (d *draft) add(index string, piece delta) *model.Error {
	if piece.Type == "text_delta" {
		d.began = true
		d.tell(string(piece.Text))
		return nil
	}
	w := d.find(index)
	switch piece.Type {
	case "input_json_delta":
		if w == nil || w.kind == kindText || w.kind == kindThinking {
			return wire.Malformed(errors.New("a piece of a tool call came without its beginning"))
		}
		w.json.WriteString(string(piece.JSON))
	case "thinking_delta":
		if w != nil {
			w.thinking.WriteString(string(piece.Thinking))
		}
	case "signature_delta":
		if w != nil {
			w.signature.WriteString(string(piece.Signature))
		}
	}
	return nil
}

// find returns the block that has a number; the last, if the provider gave it twice.
func (d *draft) find(index string) *written {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if d.blocks[i].index == index {
			return d.blocks[i]
		}
	}
	return nil
}

func (d *draft) tell(piece string) {
	if told := d.speech.add(piece); told != "" {
		d.said(told)
	}
}

// Answer is of [wire.Draft].
func (d *draft) Answer() (model.Answer, *model.Error) {
	out := model.Answer{Text: d.speech.String(), Reasoning: packThoughts(d.thoughts(), d.asked), Model: d.model}
	if d.outKnown {
		out.Usage, _ = d.usage.counted() // it was looked at when it came
	}
	var cut bool
	out.Finish, cut = finishOf(d.stop)
	if out.Finish == model.FinishFilter {
		return out, nil // what the model began to do before it refused is not done
	}
	calls, ok := d.wholeCalls(cut)
	if !ok {
		return model.Answer{}, wire.Malformed(errors.New("a tool call has no name"))
	}
	out.Calls = calls
	if out.Finish == model.FinishStop && len(calls) > 0 {
		out.Finish = model.FinishCalls
	}
	return out, nil
}

// finishOf says how an answer ended, and whether its last block may be cut. A turn that the provider paused is not
// done, but its blocks are.
func finishOf(stop string) (finish model.Finish, cut bool) {
	switch stop {
	case "max_tokens", "model_context_window_exceeded":
		return model.FinishLength, true
	case "pause_turn":
		return model.FinishLength, false
	case "refusal":
		return model.FinishFilter, true
	}
	return model.FinishStop, false
}

// wholeCalls returns the calls, each with an id of its own. Of an answer that was cut, only those are sure that have
// text that is complete or something after them: a whole answer shows a cut call as one with fewer arguments. It reports
// whether each call has a name.
func (d *draft) wholeCalls(cut bool) ([]model.Call, bool) {
	var out []model.Call
	for i, w := range d.blocks {
		if w.kind != kindCall {
			continue
		}
		text := w.json.String()
		if cut && !wire.IsObject(text) && (text != "" || i == len(d.blocks)-1) {
			continue
		}
		if w.name == "" {
			return nil, false
		}
		switch {
		case strings.TrimSpace(text) != "":
		case w.whole != "":
			text = w.whole
		default:
			text = "{}"
		}
		out = append(out, model.Call{ID: w.id, Name: w.name, Arguments: text})
	}
	wire.NameCalls(out)
	return out, true
}

func (d *draft) thoughts() []thought {
	var out []thought
	for _, w := range d.blocks {
		if w.kind == kindThinking || w.kind == kindRedacted {
			out = append(out, thought{
				Type: w.kind, Thinking: w.thinking.String(), Signature: w.signature.String(), Data: w.data,
				AfterText: w.afterText, AfterCalls: w.afterCalls,
			})
		}
	}
	return out
}
