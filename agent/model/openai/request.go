package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// wireRequest is a request as it is sent. What stays the same from one request to the next stands before the
// messages and what may change stands after them, so that a longer conversation begins with the bytes of the shorter
// one and the provider's cache hits.
type wireRequest struct {
	Model               string         `json:"model"`
	Stream              bool           `json:"stream,omitempty"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
	Tools               []wireTool     `json:"tools,omitempty"`
	Messages            []wireMessage  `json:"messages"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
}

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

// encode writes a request. The same request gives the same bytes.
func (c *Client) encode(ctx context.Context, req model.Request) ([]byte, error) {
	wire := wireRequest{Model: c.model, Stream: c.stream}
	if c.stream {
		wire.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return nil, err
		}
		wire.Tools = append(wire.Tools, tool)
	}
	messages, err := c.encodeMessages(ctx, req)
	if err != nil {
		return nil, err
	}
	wire.Messages = messages
	if limit := max(req.MaxOutput, 0); c.profile.MaxTokensField == maxCompletionTokens {
		wire.MaxCompletionTokens = limit
	} else {
		wire.MaxTokens = limit
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(wire); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func encodeTool(t model.Tool) (wireTool, error) {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if !wire.IsObject(string(schema)) {
		return wireTool{}, fmt.Errorf("encode tool %q: its schema is not a JSON object", t.Name)
	}
	return wireTool{Type: "function", Function: wireFunction{
		Name: t.Name, Description: t.Description, Parameters: schema,
	}}, nil
}

// encodeMessages writes the conversation. Messages of a user that follow each other become one, and an assistant's
// that says nothing is left out: many servers refuse both.
func (c *Client) encodeMessages(ctx context.Context, req model.Request) ([]wireMessage, error) {
	out := make([]wireMessage, 0, len(req.Messages)+1)
	if strings.TrimSpace(req.System) != "" {
		out = append(out, wireMessage{Role: roleSystem, Content: &req.System})
	}
	for i, m := range req.Messages {
		switch m.Role {
		case model.User:
			out = appendUser(out, m.Text)
		case model.Assistant:
			if len(m.Calls) > 0 || strings.TrimSpace(m.Text) != "" {
				out = append(out, c.encodeAssistant(m))
			}
		case model.ToolRole:
			out = append(out, wireMessage{Role: roleTool, Content: &m.Text, ToolCallID: m.CallID})
		default:
			return nil, fmt.Errorf("encode message %d: unknown role %q", i, m.Role)
		}
	}
	if c.profile.StrictRoles {
		return takeTurns(ctx, out), nil
	}
	return out, nil
}

func appendUser(out []wireMessage, text string) []wireMessage {
	if n := len(out); n > 0 && out[n-1].Role == roleUser {
		out[n-1].Content = joined(out[n-1].Content, &text)
		return out
	}
	return append(out, wireMessage{Role: roleUser, Content: &text})
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

func (c *Client) encodeAssistant(m model.Message) wireMessage {
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
