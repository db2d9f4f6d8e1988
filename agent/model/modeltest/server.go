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

// ChatRequest is a Chat Completions request as a [Server] got it.
type ChatRequest struct {
	Model         string        `json:"model"`
	Stream        bool          `json:"stream"`
	StreamOptions StreamOptions `json:"stream_options"`
	Messages      []ChatMessage `json:"messages"`
	Tools         []ChatTool    `json:"tools"`

	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"`

	Header http.Header `json:"-"`
	Body   []byte      `json:"-"` // as it came
}

// StreamOptions is of a [ChatRequest].
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// ChatMessage is one message of a [ChatRequest]. Content is "" for null; ReasoningContent is nil if it was absent.
type ChatMessage struct {
	Role             string     `json:"role"`
	Content          string     `json:"content"`
	ReasoningContent *string    `json:"reasoning_content"`
	ToolCalls        []ChatCall `json:"tool_calls"`
	ToolCallID       string     `json:"tool_call_id"`
}

// ChatCall is a tool call of a [ChatMessage].
type ChatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// ChatTool is a tool that a [ChatRequest] offers.
type ChatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Last returns the last message; the zero message if there is none.
func (r ChatRequest) Last() ChatMessage {
	if len(r.Messages) == 0 {
		return ChatMessage{}
	}
	return r.Messages[len(r.Messages)-1]
}

// Offers says whether the request offers a tool of this name.
func (r ChatRequest) Offers(tool string) bool {
	for _, t := range r.Tools {
		if t.Function.Name == tool {
			return true
		}
	}
	return false
}

// Reply is what a [Server] or a [MessagesServer] does with one request. With Status or Body set it sends those as they are, else an
// answer, streamed if the request asks for that.
type Reply struct {
	Text      string       // sent in a few pieces when streamed
	Reasoning string       // as reasoning_content, or as a thinking block with a signature
	Calls     []model.Call // each in two pieces when streamed
	Usage     model.Usage  // reported if Known
	Finish    string       // of the wire; the one for calls or the one for an answer that is done, whichever fits, when empty

	Status int         // with Body; 200 when 0
	Header http.Header // added to whatever is sent
	Body   string      // application/json unless Header says otherwise

	Hang     bool // never ends: after the text and the calls of a stream, else before anything was sent
	BreakOff bool // drops the line: after the text and the calls of a stream, else in the middle of the body
}

// Server is a provider that speaks Chat Completions on a port of this machine. It may be used concurrently.
type Server struct {
	host[ChatRequest]
	answer func(n int, req ChatRequest) Reply
}

// NewServer starts a server and stops it when the test ends. Answer says what it does with the n-th request, counted
// from 1; it is called concurrently if requests come so.
func NewServer(t testing.TB, answer func(n int, req ChatRequest) Reply) *Server {
	t.Helper()
	s := &Server{answer: answer}
	s.open(t, s)
	s.url += "/v1"
	return s
}

// ServeHTTP is of http.Handler. What is no Chat Completions request gets the errors that a provider would give, and is
// not recorded.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req := ChatRequest{Header: r.Header.Clone(), Body: body}
	switch {
	case r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/chat/completions"):
		http.Error(w, `{"error":{"message":"no such address"}}`, http.StatusNotFound)
		return
	case json.Unmarshal(body, &req) != nil:
		http.Error(w, `{"error":{"message":"the body is not JSON"}}`, http.StatusBadRequest)
		return
	}
	n := s.record(req)
	reply := s.answer(n, req)
	out := &sender{w: w, r: r, closed: s.closed, model: req.Model, n: n}
	maps.Copy(w.Header(), reply.Header)
	switch {
	case reply.Status != 0 || reply.Body != "":
		out.raw(reply)
	case req.Stream:
		out.stream(reply, req.StreamOptions.IncludeUsage)
	default:
		out.whole(reply)
	}
}

// sender sends one reply.
type sender struct {
	w      http.ResponseWriter
	r      *http.Request
	closed <-chan struct{}
	model  string
	n      int
}

func (s *sender) raw(reply Reply) {
	if reply.Hang {
		s.hang()
		return
	}
	if s.w.Header().Get("Content-Type") == "" {
		s.w.Header().Set("Content-Type", "application/json")
	}
	if reply.Status != 0 {
		s.w.WriteHeader(reply.Status)
	}
	s.body(reply.Body, reply.BreakOff)
}

func (s *sender) whole(reply Reply) {
	if reply.Hang {
		s.hang()
		return
	}
	message := object{"role": "assistant", "content": reply.Text}
	if reply.Reasoning != "" {
		message["reasoning_content"] = reply.Reasoning
	}
	var calls []object
	for _, c := range reply.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	body := s.envelope("chat.completion", object{"index": 0, "message": message, "finish_reason": reply.finish()})
	if reply.Usage.Known {
		body["usage"] = usageOf(reply.Usage)
	}
	s.w.Header().Set("Content-Type", "application/json")
	s.body(encode(body), reply.BreakOff)
}

func (s *sender) stream(reply Reply, withUsage bool) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.delta(object{"role": "assistant", "content": ""})
	if reply.Reasoning != "" {
		s.delta(object{"reasoning_content": reply.Reasoning})
	}
	for _, piece := range pieces(reply.Text) {
		s.delta(object{"content": piece})
	}
	for i, c := range reply.Calls {
		first, rest := half(c.Arguments)
		s.delta(object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function",
			"function": object{"name": c.Name, "arguments": first}}}})
		s.delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": rest}}}})
	}
	switch {
	case reply.Hang:
		s.hang()
		return
	case reply.BreakOff:
		panic(http.ErrAbortHandler)
	}
	s.event(s.envelope("chat.completion.chunk", object{"index": 0, "delta": object{}, "finish_reason": reply.finish()}))
	if reply.Usage.Known && withUsage {
		last := s.envelope("chat.completion.chunk")
		last["usage"] = usageOf(reply.Usage)
		s.event(last)
	}
	s.write("data: [DONE]\n\n")
}

// object is a JSON object; encoding sorts its keys, so that the same reply gives the same bytes.
type object map[string]any

func (s *sender) envelope(kind string, choices ...object) object {
	if choices == nil {
		choices = []object{}
	}
	return object{"id": fmt.Sprintf("chatcmpl-%d", s.n), "object": kind, "created": 1796032800, "model": s.model, "choices": choices}
}

func (s *sender) delta(d object) {
	s.event(s.envelope("chat.completion.chunk", object{"index": 0, "delta": d, "finish_reason": nil}))
}

func (s *sender) event(body object) { s.write("data: " + encode(body) + "\n\n") }

// write sends at once. That nobody is there to read is no matter for a provider.
func (s *sender) write(text string) {
	_, _ = io.WriteString(s.w, text)
	_ = http.NewResponseController(s.w).Flush()
}

func (s *sender) body(text string, breakOff bool) {
	if breakOff {
		first, _ := half(text)
		s.write(first)
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(s.w, text)
}

func (s *sender) hang() {
	select {
	case <-s.r.Context().Done():
	case <-s.closed:
	}
}

func (r Reply) finish() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func usageOf(u model.Usage) object {
	return object{
		"prompt_tokens": u.In, "completion_tokens": u.Out, "total_tokens": u.In + u.Out,
		"prompt_tokens_details": object{"cached_tokens": u.Cached},
	}
}

func encode(v object) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf(`{"error":{"message":%q}}`, err.Error())
	}
	return string(raw)
}

// pieces cuts a text into up to three parts without splitting a character.
func pieces(text string) []string {
	if text == "" {
		return nil
	}
	first, rest := half(text)
	second, third := half(rest)
	var out []string
	for _, piece := range []string{first, second, third} {
		if piece != "" {
			out = append(out, piece)
		}
	}
	return out
}

func half(text string) (string, string) {
	runes := []rune(text)
	n := len(runes) / 2
	return string(runes[:n]), string(runes[n:])
}
