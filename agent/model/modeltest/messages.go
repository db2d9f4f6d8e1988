package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"nudge/agent/model"
)

// MessagesRequest is a request of Anthropic's Messages API as a [MessagesServer] got it.
type MessagesRequest struct {
	Model      string          `json:"model"`
	Stream     bool            `json:"stream"`
	Tools      []MessagesTool  `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	System     []Block         `json:"system"`
	Messages   []BlockMessage  `json:"messages"`
	MaxTokens  int             `json:"max_tokens"`

	Header http.Header `json:"-"`
	Body   []byte      `json:"-"` // as it came
}

// MessagesTool is a tool that a [MessagesRequest] offers.
type MessagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// BlockMessage is one message of a [MessagesRequest].
type BlockMessage struct {
	Role    string  `json:"role"`
	Content []Block `json:"content"`
}

// Block is a piece of a message. Which fields count depends on its Type.
type Block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      string          `json:"content"` // of a tool_result
	CacheControl json.RawMessage `json:"cache_control"`
}

// MessagesReply returns what a [MessagesServer] does for a turn.
func (turn Turn) MessagesReply() Reply {
	fail := func(status int, kind, message string) Reply {
		return Reply{Status: status, Body: encode(object{
			"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_0123",
		})}
	}
	switch turn.End {
	case EndOverloaded:
		return fail(529, "overloaded_error", "<b>Overloaded</b>")
	case EndRefused:
		return fail(401, "authentication_error", "invalid x-api-key sk-ant-test...0001")
	case EndTooLong:
		return fail(400, "invalid_request_error", "prompt is too long: 200251 tokens > 200000 maximum")
	}
	reply := turn.Reply()
	if turn.Limit {
		reply.Finish = "max_tokens"
	}
	return reply
}

// MessagesServer is a provider that speaks Anthropic's Messages API on a port of this machine. It is as strict as
// the real one: see [MessagesRequest.Refusal]. It may be used concurrently.
type MessagesServer struct {
	host[MessagesRequest]
	answer func(n int, req MessagesRequest) Reply
}

// NewMessagesServer starts a server and stops it when the test ends. Answer says what it does with the n-th request,
// counted from 1; it is called concurrently if requests come so.
func NewMessagesServer(t testing.TB, answer func(n int, req MessagesRequest) Reply) *MessagesServer {
	t.Helper()
	s := &MessagesServer{answer: answer}
	s.open(t, s)
	return s
}

// ServeHTTP is of http.Handler. What the real provider would refuse gets its errors, and is not recorded.
func (s *MessagesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	out := &blockSender{sender{w: w, r: r, closed: s.closed}}
	refuse := func(status int, kind, why string) {
		out.raw(Reply{Status: status, Body: encode(object{"type": "error", "error": object{"type": kind, "message": why}})})
	}
	req := MessagesRequest{Header: r.Header.Clone(), Body: body}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/messages":
		refuse(http.StatusNotFound, "not_found_error", "no such address")
		return
	case r.Header.Get("Anthropic-Version") != "2023-06-01" || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		refuse(http.StatusBadRequest, "invalid_request_error", "the headers are not right")
		return
	}
	if err := json.Unmarshal(body, &req); err != nil {
		refuse(http.StatusBadRequest, "invalid_request_error", "the body cannot be read: "+err.Error())
		return
	}
	if why := req.Refusal(); why != "" {
		refuse(http.StatusBadRequest, "invalid_request_error", why)
		return
	}
	out.n, out.model = s.record(req), req.Model
	reply := s.answer(out.n, req)
	maps.Copy(w.Header(), reply.Header)
	switch {
	case reply.Status != 0 || reply.Body != "":
		out.raw(reply)
	case req.Stream:
		out.stream(reply)
	default:
		out.whole(reply)
	}
}

// blockSender sends one reply in content blocks.
type blockSender struct{ sender }

// thinkingSignature is what a thought is signed with.
const thinkingSignature = "c2lnbmF0dXJl"

func (s *blockSender) whole(reply Reply) {
	if reply.Hang {
		s.hang()
		return
	}
	content := []object{}
	if reply.Reasoning != "" {
		content = append(content, object{"type": "thinking", "thinking": reply.Reasoning, "signature": thinkingSignature})
	}
	if reply.Text != "" {
		content = append(content, object{"type": "text", "text": reply.Text})
	}
	for _, c := range reply.Calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": inputOf(c)})
	}
	body := s.message(content, reply.stopReason())
	if reply.Usage.Known {
		body["usage"] = blockUsage(reply.Usage, reply.Usage.Out)
	}
	s.w.Header().Set("Content-Type", "application/json")
	s.body(encode(body), reply.BreakOff)
}

// inputOf returns a call's arguments. The real provider never sends broken JSON in a whole answer: a call that was cut
// has an empty input.
func inputOf(c model.Call) any {
	if json.Valid([]byte(c.Arguments)) {
		return json.RawMessage(c.Arguments)
	}
	return object{}
}

func (s *blockSender) stream(reply Reply) {
	s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	start := s.message([]object{}, nil)
	if reply.Usage.Known {
		start["usage"] = blockUsage(reply.Usage, min(1, reply.Usage.Out))
	}
	s.named("message_start", object{"message": start})
	s.named("ping", object{})
	index := 0
	block := func(begin object, deltas ...object) {
		s.named("content_block_start", object{"index": index, "content_block": begin})
		for _, d := range deltas {
			s.named("content_block_delta", object{"index": index, "delta": d})
		}
		s.named("content_block_stop", object{"index": index})
		index++
	}
	if reply.Reasoning != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, append(deltas("thinking_delta", "thinking", pieces(reply.Reasoning)),
			object{"type": "signature_delta", "signature": thinkingSignature})...)
	}
	if reply.Text != "" {
		block(object{"type": "text", "text": ""}, deltas("text_delta", "text", pieces(reply.Text))...)
	}
	for _, c := range reply.Calls {
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}},
			deltas("input_json_delta", "partial_json", append([]string{""}, pieces(c.Arguments)...))...)
	}
	switch {
	case reply.Hang:
		s.hang()
		return
	case reply.BreakOff:
		panic(http.ErrAbortHandler)
	}
	last := object{"delta": object{"stop_reason": reply.stopReason(), "stop_sequence": nil}}
	if reply.Usage.Known {
		last["usage"] = blockUsage(reply.Usage, reply.Usage.Out)
	}
	s.named("message_delta", last)
	s.named("message_stop", object{})
}

func deltas(kind, field string, values []string) []object {
	var out []object
	for _, v := range values {
		out = append(out, object{"type": kind, field: v})
	}
	return out
}

// named sends an event. Its type stands in its name and in its data, as the real provider has it.
func (s *blockSender) named(kind string, body object) {
	body["type"] = kind
	s.write("event: " + kind + "\ndata: " + encode(body) + "\n\n")
}

func (s *blockSender) message(content []object, stop any) object {
	return object{
		"id": fmt.Sprintf("msg_%d", s.n), "type": "message", "role": "assistant", "model": s.model, "content": content, "stop_reason": stop, "stop_sequence": nil,
	}
}

func (r Reply) stopReason() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// blockUsage parts what was not read from the cache in two, since the real provider counts what it wrote into the
// cache apart.
func blockUsage(u model.Usage, out int) object {
	written := (u.In - u.Cached) / 2
	return object{
		"input_tokens": u.In - u.Cached - written, "cache_creation_input_tokens": written, "cache_read_input_tokens": u.Cached,
		"output_tokens": out,
	}
}
