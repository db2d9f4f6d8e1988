package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"nudge/agent/model"
)

// chunk is a piece of a stream, or a whole answer: the two differ in whether a choice has a delta or a message.
type chunk struct {
	Model   text            `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	// Of an error that some servers send without an object around it.
	Object  text `json:"object"`
	Type    text `json:"type"`
	Message text `json:"message"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   *delta          `json:"delta"`
	Message *delta          `json:"message"`
	Finish  text            `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
}

type delta struct {
	Content          content     `json:"content"`
	Refusal          text        `json:"refusal"`
	ReasoningContent text        `json:"reasoning_content"`
	Reasoning        text        `json:"reasoning"`
	ToolCalls        []callDelta `json:"tool_calls"`
}

// callDelta is a tool call or a piece of one. Index is a pointer because a missing index is not index 0.
type callDelta struct {
	Index    *int `json:"index"`
	ID       text `json:"id"`
	Function struct {
		Name      text      `json:"name"`
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

// text is a string, or empty if something else stood in its place.
type text string

// UnmarshalJSON takes anything.
func (t *text) UnmarshalJSON(raw []byte) error {
	*t = ""
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*t = text(s)
	}
	return nil
}

// scalar is a string, or a number as text, or empty.
type scalar string

// UnmarshalJSON takes anything.
func (s *scalar) UnmarshalJSON(raw []byte) error {
	var t text
	if err := t.UnmarshalJSON(raw); err != nil {
		return err
	}
	*s = scalar(t)
	if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		*s = scalar(raw)
	}
	return nil
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
		return (*text)(a).UnmarshalJSON(raw)
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
		var t text
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
	Type     text    `json:"type"`
	Text     text    `json:"text"`
	Refusal  text    `json:"refusal"`
	Thinking content `json:"thinking"`
}

// tokens is a count. One that no model can have used is negative.
type tokens int

// maxTokenCount is far above what any window holds.
const maxTokenCount = 100_000_000

// UnmarshalJSON takes any number; anything else counts as none.
func (t *tokens) UnmarshalJSON(raw []byte) error {
	*t = 0
	var n scalar
	if err := n.UnmarshalJSON(raw); err != nil || len(raw) == 0 || raw[0] == '"' || n == "" {
		return err
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f < 0 || f > maxTokenCount || f != math.Trunc(f) {
		*t = -1
		return nil
	}
	*t = tokens(f)
	return nil
}

type usage struct {
	In      tokens `json:"prompt_tokens"`
	Out     tokens `json:"completion_tokens"`
	Details *struct {
		Cached tokens `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit tokens `json:"prompt_cache_hit_tokens"`
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
