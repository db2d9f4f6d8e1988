package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// A request is sent in three parts. What stays the same from one request to the next stands before the messages and
// what may change stands after them, so that a longer conversation begins with the bytes of the shorter.
type (
	wireHead struct {
		Model    string     `json:"model"`
		Stream   bool       `json:"stream,omitempty"`
		Tools    []wireTool `json:"tools,omitempty"`
		System   []block    `json:"system,omitempty"`
		Messages []message  `json:"messages"` // none
	}
	wireTail struct {
		ToolChoice *toolChoice `json:"tool_choice,omitempty"`
		MaxTokens  int         `json:"max_tokens"`
	}
)

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

	begins int // the index of the answer that it begins with; 0 if there is none
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

// cacheMark marks the end of the conversation for the cache, as the end of what stays the same is marked. It moves on with
// the conversation; the provider finds what it kept at the mark of the request before.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

const (
	kindText     = "text"
	kindThinking = "thinking"
	kindRedacted = "redacted_thinking"
	kindCall     = "tool_use"
	kindResult   = "tool_result"
)

func textBlock(text string) block { return block{Type: kindText, Text: text} }

// kept is what a client keeps of a conversation.
type kept struct {
	wire.Beginning
	ids ids
	by  *Client
}

// Size is of [model.Kept].
func (k *kept) Size() int { return k.Beginning.Size() + k.ids.size() }

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
	tools, tail := req.Tools, wireTail{MaxTokens: req.MaxOutput}
	if tail.MaxTokens <= 0 {
		tail.MaxTokens = c.maxOutput
	}
	if len(tools) == 0 {
		if tools = toolsOfThePast(req.Messages); len(tools) > 0 {
			tail.ToolChoice = &toolChoice{Type: "none"}
		}
	}
	if err := k.Open(req.System, tools, func() (any, error) { return c.encodeHead(req.System, tools) }); err != nil {
		return nil, err
	}
	messages, stoodIn, err := takeTurns(ctx, req.Messages, k.Resume(req.Messages), &k.ids, c.model)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		if err := k.Add(&messages[i], messages[i].begins); err != nil {
			return nil, err
		}
	}
	end := wire.End{Tail: tail, Asks: !stoodIn}
	if !c.profile.NoCache {
		end.Mark = cacheMark
	}
	return k.Close(end)
}

func (c *Client) encodeHead(system string, tools []model.Tool) (wireHead, error) {
	head := wireHead{Model: c.model, Stream: c.stream, Messages: []message{}}
	for _, t := range tools {
		tool, err := encodeTool(t)
		if err != nil {
			return head, err
		}
		head.Tools = append(head.Tools, tool)
	}
	if strings.TrimSpace(system) != "" {
		head.System = []block{textBlock(system)}
		if !c.profile.NoCache {
			head.System[0].CacheControl = &cacheControl{Type: "ephemeral"}
		}
	}
	return head, nil
}

func encodeTool(t model.Tool) (wireTool, error) {
	schema, err := wire.SchemaOf(t)
	if err == nil {
		schema, err = withType(schema)
	}
	return wireTool{Name: t.Name, Description: t.Description, InputSchema: schema}, err
}

// withType adds the type to a schema without one, which the provider refuses.
func withType(schema json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(schema, &fields); err != nil || fields["type"] != nil {
		return schema, err
	}
	const typed = `{"type":"object"`
	rest := bytes.TrimPrefix(bytes.TrimLeft(schema, " \t\r\n"), []byte("{"))
	if len(fields) > 0 {
		return append([]byte(typed+","), rest...), nil
	}
	return append([]byte(typed), rest...), nil
}

// toolsOfThePast returns the tools that a conversation tells of, to be declared where none is on offer: the provider
// refuses to read of tools that it was not told about.
func toolsOfThePast(messages []model.Message) []model.Tool {
	var out []model.Tool
	told := map[string]bool{}
	for i := range messages {
		if messages[i].Role != model.Assistant {
			continue
		}
		for _, call := range messages[i].Calls {
			if name := plain(call.Name, maxName); !told[name] {
				told[name] = true
				out = append(out, model.Tool{Name: name})
			}
		}
	}
	return out
}
