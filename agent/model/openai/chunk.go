package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// chunk is a piece of a stream, or a whole answer: the two differ in whether a choice has a delta or a message.
type chunk struct {
	Model   wire.Text       `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	// Of an error that some servers send without an object around it.
	Object  wire.Text `json:"object"`
	Type    wire.Text `json:"type"`
	Message wire.Text `json:"message"`
}

// fault returns the error that stands in a chunk, if one does. Raw is the chunk as it came.
func (c *chunk) fault(raw []byte) (wire.ProviderError, bool) {
	if f, ok := wire.ErrorIn(c.Error); ok {
		return f, true
	}
	if c.Type == "error" || c.Object == "error" || len(c.Choices) == 0 && c.Message != "" {
		return wire.ParseError(raw), true
	}
	return wire.ProviderError{}, false
}

type choice struct {
	Index   int             `json:"index"`
	Delta   *delta          `json:"delta"`
	Message *delta          `json:"message"`
	Finish  wire.Text       `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
}

type delta struct {
	Content          content     `json:"content"`
	Refusal          wire.Text   `json:"refusal"`
	ReasoningContent wire.Text   `json:"reasoning_content"`
	Reasoning        wire.Text   `json:"reasoning"`
	ToolCalls        []callDelta `json:"tool_calls"`
}

// callDelta is a tool call or a piece of one. Index is a pointer because a missing index is not index 0.
type callDelta struct {
	Index    *int      `json:"index"`
	ID       wire.Text `json:"id"`
	Function struct {
		Name      wire.Text `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

// reasoned returns what the delta has of the model's thoughts; servers that send both fields send the same in both.
func (d *delta) reasoned() string {
	switch {
	case d.ReasoningContent != "":
		return string(d.ReasoningContent)
	case d.Reasoning != "":
		return string(d.Reasoning)
	}
	return d.Content.thinking
}

// arguments are text; servers that send an object instead give its compact JSON, digits as they were.
type arguments string

// UnmarshalJSON takes anything.
func (a *arguments) UnmarshalJSON(raw []byte) error {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		*a = ""
		return nil
	case raw[0] == '"':
		return (*wire.Text)(a).UnmarshalJSON(raw)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	*a = arguments(compact.String())
	return nil
}

// content is a string or a list of parts, of which only text is for people.
type content struct {
	text     string
	thinking string
}

// UnmarshalJSON takes anything.
func (c *content) UnmarshalJSON(raw []byte) error {
	*c = content{}
	if len(raw) == 0 || raw[0] != '[' {
		var t wire.Text
		err := t.UnmarshalJSON(raw)
		c.text = string(t)
		return err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	var said, thought strings.Builder
	for _, raw := range parts {
		var p part
		if raw[0] == '"' {
			_ = p.Text.UnmarshalJSON(raw)
		} else if json.Unmarshal(raw, &p) != nil {
			continue
		}
		switch p.Type {
		case "", "text", "output_text":
			said.WriteString(string(p.Text))
		case "refusal":
			said.WriteString(string(p.Refusal))
		case "thinking":
			thought.WriteString(p.Thinking.text)
		}
	}
	c.text, c.thinking = said.String(), thought.String()
	return nil
}

// part is one part of a content. A thinking part holds parts of its own.
type part struct {
	Type     wire.Text `json:"type"`
	Text     wire.Text `json:"text"`
	Refusal  wire.Text `json:"refusal"`
	Thinking content   `json:"thinking"`
}

type usage struct {
	In      wire.Tokens `json:"prompt_tokens"`
	Out     wire.Tokens `json:"completion_tokens"`
	Details *struct {
		Cached wire.Tokens `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit wire.Tokens `json:"prompt_cache_hit_tokens"`
}

// counted returns the usage, and whether it can be believed. Nothing in and nothing out means that nobody counted.
func (u usage) counted() (model.Usage, bool) {
	cached := u.CacheHit
	if u.Details != nil && u.Details.Cached != 0 {
		cached = u.Details.Cached
	}
	if u.In < 0 || u.Out < 0 || cached < 0 {
		return model.Usage{}, false
	}
	return model.Usage{
		In: int(u.In), Out: int(u.Out), Cached: int(min(cached, u.In)), Known: u.In > 0 || u.Out > 0,
	}, true
}
