package anthropic

import (
	"encoding/json"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// event is one event of a stream.
type event struct {
	Type    wire.Text       `json:"type"`
	Index   wire.Scalar     `json:"index"`
	Message *wholeMessage   `json:"message"`
	Block   *part           `json:"content_block"`
	Delta   *delta          `json:"delta"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// wholeMessage is an answer in one piece, or the empty one that a stream starts with.
type wholeMessage struct {
	Type    wire.Text       `json:"type"`
	Model   wire.Text       `json:"model"`
	Content []part          `json:"content"`
	Stop    wire.Text       `json:"stop_reason"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// part is a block of an answer, or its beginning.
type part struct {
	Type      wire.Text       `json:"type"`
	Text      wire.Text       `json:"text"`
	Thinking  wire.Text       `json:"thinking"`
	Signature wire.Text       `json:"signature"`
	Data      wire.Text       `json:"data"`
	ID        wire.Text       `json:"id"`
	Name      wire.Text       `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// delta is a piece of a block, or what changed in the message.
type delta struct {
	Type      wire.Text `json:"type"`
	Text      wire.Text `json:"text"`
	JSON      wire.Text `json:"partial_json"`
	Thinking  wire.Text `json:"thinking"`
	Signature wire.Text `json:"signature"`
	Stop      wire.Text `json:"stop_reason"`
}

// usage is what was counted. A count that is missing was not counted again: the one before still holds.
type usage struct {
	In      *wire.Tokens `json:"input_tokens"` // without what the cache read or wrote
	Written *wire.Tokens `json:"cache_creation_input_tokens"`
	Read    *wire.Tokens `json:"cache_read_input_tokens"`
	Out     *wire.Tokens `json:"output_tokens"`
}

// update takes in a later count. Counts are running totals and are never added up.
func (u *usage) update(later usage) {
	for _, c := range []struct{ held, later **wire.Tokens }{
		{&u.In, &later.In}, {&u.Written, &later.Written}, {&u.Read, &later.Read}, {&u.Out, &later.Out},
	} {
		if *c.later != nil {
			*c.held = *c.later
		}
	}
}

// counted returns the usage, and whether it can be believed. Nothing in and nothing out means that nobody counted.
func (u usage) counted() (model.Usage, bool) {
	count := func(t *wire.Tokens) int {
		if t == nil {
			return 0
		}
		return int(*t)
	}
	in, written, read, out := count(u.In), count(u.Written), count(u.Read), count(u.Out)
	if in < 0 || written < 0 || read < 0 || out < 0 {
		return model.Usage{}, false
	}
	in += written + read
	if in == 0 && out == 0 {
		return model.Usage{}, true
	}
	return model.Usage{In: in, Out: out, Cached: read, Known: true}, true
}
