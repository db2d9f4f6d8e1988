package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// A request is sent in three parts. What stays the same from one request to the next stands before the messages and
// what may change stands after them, so that a longer conversation begins with the bytes of the shorter one and the
// provider's cache hits.
type (
	wireHead struct {
		Model         string         `json:"model"`
		Stream        bool           `json:"stream,omitempty"`
		StreamOptions *streamOptions `json:"stream_options,omitempty"`
		Tools         []wireTool     `json:"tools,omitempty"`
		Messages      []wireMessage  `json:"messages"` // the system prompt, if there is one
	}
	wireTail struct {
		MaxTokens           int `json:"max_tokens,omitempty"`
		MaxCompletionTokens int `json:"max_completion_tokens,omitempty"`
	}
)

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type wireTool struct {
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type wireMessage struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"` // null beside calls without text: some servers refuse an empty one
	ReasoningContent *string    `json:"reasoning_content,omitempty"`
	ToolCalls        []wireCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitempty"`

	begins int // the index of the answer that it begins with; 0 if there is none
}

type wireCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function callBody `json:"function"`
}

type callBody struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

const (
	roleSystem    = "system"
	roleUser      = string(model.User)
	roleAssistant = string(model.Assistant)
	roleTool      = string(model.ToolRole)
)

// kept is what a client keeps of a conversation.
type kept struct {
	wire.Beginning
	by *Client
}

// keptIn returns what the client wrote of a conversation before: nothing, if another wrote last.
func (c *Client) keptIn(memo *model.Memo) *kept {
	if memo == nil {
		return &kept{by: c}
	}
	k, ok := memo.Kept.(*kept)
	if !ok || k.by != c {
		k = &kept{by: c}
		memo.Kept = k
	}
	return k
}

// encode writes a request. The same request gives the same bytes, whatever is in its memo.
func (c *Client) encode(ctx context.Context, req model.Request) (wire.Pieces, error) {
	k := c.keptIn(req.Memo)
	if err := k.Open(req.System, req.Tools, func() (any, error) { return c.encodeHead(req) }); err != nil {
		return nil, err
	}
	messages, err := c.encodeMessages(ctx, req.Messages, k.Resume(req.Messages))
	if err != nil {
		return nil, err
	}
	for i := range messages {
		if err := k.Add(&messages[i], messages[i].begins); err != nil {
			return nil, err
		}
	}
	var tail wireTail
	if limit := max(req.MaxOutput, 0); c.profile.MaxTokensField == maxCompletionTokens {
		tail.MaxCompletionTokens = limit
	} else {
		tail.MaxTokens = limit
	}
	// An answer that comes after an answer may be joined with it.
	asks := len(messages) > 0 && messages[len(messages)-1].Role != roleAssistant
	return k.Close(wire.End{Tail: tail, Asks: asks})
}

func (c *Client) encodeHead(req model.Request) (wireHead, error) {
	head := wireHead{Model: c.model, Stream: c.stream, Messages: []wireMessage{}}
	if c.stream {
		head.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return head, err
		}
		head.Tools = append(head.Tools, tool)
	}
	if strings.TrimSpace(req.System) != "" {
		head.Messages = append(head.Messages, wireMessage{Role: roleSystem, Content: &req.System})
	}
	return head, nil
}

func encodeTool(t model.Tool) (wireTool, error) {
	schema, err := wire.SchemaOf(t)
	return wireTool{Type: "function", Function: wireFunction{Name: t.Name, Description: t.Description, Parameters: schema}}, err
}

// encodeMessages writes the conversation from an index on: 0, or that of an answer before which something was sent.
// Messages of a user that follow each other become one, and an assistant's that says nothing is left out: many servers
// refuse both.
func (c *Client) encodeMessages(ctx context.Context, in []model.Message, from int) ([]wireMessage, error) {
	out := make([]wireMessage, 0, len(in)-from)
	for i := from; i < len(in); i++ {
		switch m := &in[i]; m.Role {
		case model.User:
			out = appendUser(out, wireMessage{Role: roleUser, Content: &m.Text})
		case model.Assistant:
			if wire.Speaks(m) {
				sent := c.encodeAssistant(m)
				sent.begins = i
				out = append(out, sent)
			}
		case model.ToolRole:
			out = append(out, wireMessage{Role: roleTool, Content: &m.Text, ToolCallID: m.CallID})
		default:
			return nil, fmt.Errorf("encode message %d: unknown role %q", i, m.Role)
		}
	}
	if c.profile.StrictRoles {
		return takeTurns(ctx, out, from > 0), nil
	}
	return out, nil
}

func appendUser(out []wireMessage, m wireMessage) []wireMessage {
	if n := len(out); n > 0 && out[n-1].Role == roleUser {
		out[n-1].Content = joined(out[n-1].Content, m.Content)
		return out
	}
	return append(out, m)
}

// joined returns two texts as one, either of which may be missing.
func joined(a, b *string) *string {
	switch {
	case a == nil || *a == "":
		return b
	case b == nil || *b == "":
		return a
	}
	both := *a + "\n\n" + *b
	return &both
}

func (c *Client) encodeAssistant(m *model.Message) wireMessage {
	out := wireMessage{Role: roleAssistant}
	if m.Text != "" || len(m.Calls) == 0 {
		out.Content = &m.Text
	}
	if c.profile.EchoReasoning {
		out.ReasoningContent = &m.Reasoning
	}
	for _, call := range m.Calls {
		args := call.Arguments
		if !wire.IsObject(args) {
			args = "{}" // some servers refuse a whole conversation for one call that was written badly
		}
		out.ToolCalls = append(out.ToolCalls, wireCall{
			ID: call.ID, Type: "function", Function: callBody{Name: call.Name, Arguments: args},
		})
	}
	return out
}
