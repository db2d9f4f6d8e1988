package anthropic

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
// messages and what may change stands after them, so that a longer conversation begins with the bytes of the shorter.
type wireRequest struct {
	Model      string      `json:"model"`
	Stream     bool        `json:"stream,omitempty"`
	Tools      []wireTool  `json:"tools,omitempty"`
	System     []block     `json:"system,omitempty"`
	Messages   []message   `json:"messages"`
	ToolChoice *toolChoice `json:"tool_choice,omitempty"`
	MaxTokens  int         `json:"max_tokens"`
}

type wireTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type string `json:"type"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

const (
	roleUser      = string(model.User)
	roleAssistant = string(model.Assistant)
)

// block is a piece of a message; which fields it has depends on its type. The mark for the cache comes last, so that a
// block begins the same with it and without.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Thinking     *string         `json:"thinking,omitempty"` // may be empty beside its signature, but not missing
	Signature    string          `json:"signature,omitempty"`
	Data         string          `json:"data,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	Content      string          `json:"content,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

const (
	kindText     = "text"
	kindThinking = "thinking"
	kindRedacted = "redacted_thinking"
	kindCall     = "tool_use"
	kindResult   = "tool_result"
)

func textBlock(text string) block { return block{Type: kindText, Text: text} }

// encode writes a request. The same request gives the same bytes.
func (c *Client) encode(ctx context.Context, req model.Request) ([]byte, error) {
	sent := wireRequest{Model: c.model, Stream: c.stream, MaxTokens: req.MaxOutput}
	if sent.MaxTokens <= 0 {
		sent.MaxTokens = c.maxOutput
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return nil, err
		}
		sent.Tools = append(sent.Tools, tool)
	}
	if strings.TrimSpace(req.System) != "" {
		sent.System = []block{textBlock(req.System)}
	}
	messages, err := takeTurns(ctx, req.Messages, c.model)
	if err != nil {
		return nil, err
	}
	sent.Messages = messages
	if len(sent.Tools) == 0 {
		sent.forbidTools()
	}
	if !c.profile.NoCache {
		sent.markForCache()
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(sent); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func encodeTool(t model.Tool) (wireTool, error) {
	schema := t.Schema
	if len(schema) == 0 {
		schema = anyObject
	}
	var fields map[string]json.RawMessage
	if !wire.IsObject(string(schema)) || json.Unmarshal(schema, &fields) != nil {
		return wireTool{}, fmt.Errorf("encode tool %q: its schema is not a JSON object", t.Name)
	}
	if fields["type"] == nil {
		schema = withType(schema, len(fields))
	}
	return wireTool{Name: t.Name, Description: t.Description, InputSchema: schema}, nil
}

// anyObject is the schema of a tool that says nothing of its arguments.
var anyObject = json.RawMessage(`{"type":"object","properties":{}}`)

// withType adds the type to a schema without one, which the provider refuses.
func withType(schema json.RawMessage, fields int) json.RawMessage {
	const typed = `{"type":"object"`
	rest := bytes.TrimPrefix(bytes.TrimLeft(schema, " \t\r\n"), []byte("{"))
	if fields > 0 {
		return append([]byte(typed+","), rest...)
	}
	return append([]byte(typed), rest...)
}

// forbidTools declares the tools that the conversation tells of where none is on offer: the provider refuses to read
// of tools that it was not told about.
func (r *wireRequest) forbidTools() {
	told := map[string]bool{}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			if b.Type == kindCall && !told[b.Name] {
				told[b.Name] = true
				r.Tools = append(r.Tools, wireTool{Name: b.Name, InputSchema: anyObject})
			}
		}
	}
	if len(r.Tools) > 0 {
		r.ToolChoice = &toolChoice{Type: "none"}
	}
}

// markForCache marks the end of what stays the same and the end of the conversation. The second mark moves on with the
// conversation; the provider finds what it kept at the mark of the request before.
func (r *wireRequest) markForCache() {
	if n := len(r.System); n > 0 {
		r.System[n-1].CacheControl = &cacheControl{Type: "ephemeral"}
	}
	if n := len(r.Messages); n > 0 {
		content := r.Messages[n-1].Content
		content[len(content)-1].CacheControl = &cacheControl{Type: "ephemeral"}
	}
}
