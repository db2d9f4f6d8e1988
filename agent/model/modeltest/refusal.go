package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Refusal says why Anthropic's Messages API would refuse the request; "" if it would not.
func (r MessagesRequest) Refusal() string {
	switch {
	case r.Model == "":
		return "model: field required"
	case r.MaxTokens < 1:
		return "max_tokens: must be at least 1"
	case len(r.Messages) == 0:
		return "messages: at least one message is required"
	}
	for _, t := range r.Tools {
		if why := t.refusal(); why != "" {
			return why
		}
	}
	check := turnCheck{offers: len(r.Tools) > 0, seen: map[string]bool{}}
	check.blocks("system", r.System)
	for i, m := range r.Messages {
		check.message(i, m)
	}
	if r.Messages[len(r.Messages)-1].Role != "user" {
		check.refuse("the conversation must end with a user message")
	}
	if check.marks > 4 {
		check.refuse("a maximum of 4 blocks with cache_control may be provided, found %d", check.marks)
	}
	return check.why
}

var wireID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (t MessagesTool) refusal() string {
	var schema struct {
		Type string `json:"type"`
	}
	if !wireID.MatchString(t.Name) || json.Unmarshal(t.InputSchema, &schema) != nil || schema.Type != "object" {
		return fmt.Sprintf("tools: %q is not a tool", t.Name)
	}
	return ""
}

// turnCheck goes through a conversation and keeps the first reason to refuse it.
type turnCheck struct {
	why    string
	offers bool
	last   string          // who spoke last
	calls  []string        // of the last message, in order
	seen   map[string]bool // the ids of all calls
	marks  int             // blocks with cache_control
}

func (c *turnCheck) refuse(format string, args ...any) {
	if c.why == "" {
		c.why = fmt.Sprintf(format, args...)
	}
}

func (c *turnCheck) message(i int, m BlockMessage) {
	at := fmt.Sprintf("messages.%d", i)
	switch {
	case m.Role != "user" && m.Role != "assistant":
		c.refuse("%s: unexpected role %q", at, m.Role)
	case i == 0 && m.Role != "user":
		c.refuse("%s: first message must use the user role", at)
	case m.Role == c.last:
		c.refuse("%s: roles must alternate", at)
	case len(m.Content) == 0:
		c.refuse("%s: all messages must have non-empty content", at)
	}
	c.last = m.Role
	c.results(at, m)
	c.blocks(at, m.Content)
	c.calls = nil
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			c.call(at, m.Role, b)
		}
	}
}

// results checks that each call of the message before has its result at the front of this one, and nothing else has.
func (c *turnCheck) results(at string, m BlockMessage) {
	got := map[string]bool{}
	for i, b := range m.Content {
		if b.Type != "tool_result" {
			continue
		}
		if i != len(got) || m.Role != "user" || got[b.ToolUseID] {
			c.refuse("%s: tool_result blocks must come first, once each", at)
		}
		got[b.ToolUseID] = true
	}
	for _, id := range c.calls {
		if !got[id] {
			c.refuse("%s: tool_use %s was found without its tool_result", at, id)
		}
		delete(got, id)
	}
	for id := range got {
		c.refuse("%s: unexpected tool_use_id %s", at, id)
	}
}

func (c *turnCheck) call(at, role string, b Block) {
	switch {
	case role != "assistant" || !wireID.MatchString(b.ID) || b.Name == "":
		c.refuse("%s: tool_use %q is not well formed", at, b.ID)
	case c.seen[b.ID]:
		c.refuse("%s: tool_use ids must be unique", at)
	case !strings.HasPrefix(string(b.Input), "{"):
		c.refuse("%s: input should be an object", at)
	case !c.offers:
		c.refuse("%s: requests with tool_use or tool_result blocks must define tools", at)
	}
	c.seen[b.ID] = true
	c.calls = append(c.calls, b.ID)
}

func (c *turnCheck) blocks(at string, all []Block) {
	for _, b := range all {
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				c.refuse("%s: text content blocks must contain non-whitespace text", at)
			}
		case "thinking":
			if b.Signature == "" || b.CacheControl != nil {
				c.refuse("%s: invalid signature or cache_control in thinking block", at)
			}
		case "redacted_thinking":
			if b.Data == "" || b.CacheControl != nil {
				c.refuse("%s: invalid data or cache_control in redacted_thinking block", at)
			}
		case "tool_use", "tool_result":
		default:
			c.refuse("%s: unexpected block %q", at, b.Type)
		}
		if b.CacheControl != nil {
			c.marks++
			if string(b.CacheControl) != `{"type":"ephemeral"}` {
				c.refuse("%s: cache_control is %s", at, b.CacheControl)
			}
		}
	}
}
