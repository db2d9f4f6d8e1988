package modeltest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"nudge/agent/model"
)

const (
	messages     = "/v1/messages"
	wantMessage  = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`
	wantMessages = `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`
)

// postMessages sends a request with the headers that the API wants.
func postMessages(t *testing.T, s *MessagesServer, path, body string) (int, string, error) {
	t.Helper()
	client := *s.Client()
	from := client.Transport
	client.Transport = headers(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Anthropic-Version", "2023-06-01")
		r.Header.Set("Content-Type", "application/json")
		return from.RoundTrip(r)
	})
	return postTo(t, t.Context(), &client, s.URL()+path, body)
}

type headers func(*http.Request) (*http.Response, error)

func (f headers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestMessagesServer(t *testing.T) {
	s := NewMessagesServer(t, func(n int, req MessagesRequest) Reply {
		if req.Messages[0].Content[0].Text != "hi" {
			t.Errorf("request %d is %+v", n, req)
		}
		return Reply{
			Text: "Grüße", Reasoning: "hm", Calls: []model.Call{{ID: "c1", Name: "now", Arguments: `{"a":1}`}},
			Usage: model.Usage{In: 9, Out: 2, Cached: 3, Known: true},
		}
	})
	status, whole, err := postMessages(t, s, messages, wantMessage)
	if err != nil || status != 200 || !strings.Contains(whole, `"text":"Grüße"`) || !strings.Contains(whole, `"input":{"a":1}`) ||
		!strings.Contains(whole, `"stop_reason":"tool_use"`) || !strings.Contains(whole, `"thinking":"hm"`) ||
		!strings.Contains(whole, `"cache_creation_input_tokens":3,"cache_read_input_tokens":3,"input_tokens":3,"output_tokens":2`) {
		t.Errorf("whole: %d %s, %v", status, whole, err)
	}
	status, stream, err := postMessages(t, s, messages, wantMessages)
	if err != nil || status != 200 || strings.Count(stream, "event: content_block_stop\n") != 3 || !strings.HasSuffix(stream, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n") {
		t.Errorf("streamed: %d %s, %v", status, stream, err)
	}
	if got := s.Requests(); len(got) != 2 || string(got[0].Body) != wantMessage || string(got[1].Body) != wantMessages {
		t.Errorf("requests are %+v", got)
	}
	for path, body := range map[string]string{"/v1/models": wantMessage, messages: "not json", messages + "/": "{}"} {
		if status, _, err := postMessages(t, s, path, body); err != nil || status < 400 {
			t.Errorf("%s %s: %d, %v", path, body, status, err)
		}
	}
	if status, _, err := postTo(t, t.Context(), s.Client(), s.URL()+messages, wantMessage); err != nil || status != 400 {
		t.Errorf("without the version: %d, %v", status, err)
	}
	if status, body, err := postMessages(t, s, messages, `{"model":"m"}`); err != nil || status != 400 || !strings.Contains(body, "max_tokens") {
		t.Errorf("refused: %d %s, %v", status, body, err)
	}
}

func TestMessagesServerBreaksOff(t *testing.T) {
	s := NewMessagesServer(t, func(int, MessagesRequest) Reply { return Reply{Text: "hello", BreakOff: true} })
	for _, body := range []string{wantMessage, wantMessages} {
		_, got, err := postMessages(t, s, messages, body)
		if err == nil || got == "" || strings.Contains(got, "message_stop") || strings.HasSuffix(got, "}") {
			t.Errorf("got %q, %v; want a broken line", got, err)
		}
	}
}

// TestRefusal breaks each rule of the API once, beside a request that keeps them all.
func TestRefusal(t *testing.T) {
	const (
		tools  = `"tools":[{"name":"now","input_schema":{"type":"object"}}],`
		ask    = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
		call   = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"now","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"noon"},{"type":"text","text":"so?"}]}`
		say    = `{"role":"assistant","content":[{"type":"text","text":"ok"}]}`
	)
	of := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	request := func(messages ...string) string {
		return `{"model":"m",` + tools + `"max_tokens":9,"messages":[` + strings.Join(messages, ",") + `]}`
	}
	marked := strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 5)
	for body, want := range map[string]string{
		request(ask, call, result, of(`{"type":"thinking","thinking":"","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"ok"}`), ask): "",
		`{"max_tokens":9}`: "model",
		`{"model":"m"}`:    "max_tokens",
		request():          "at least one message",
		strings.Replace(request(ask), `"type":"object"`, `"x":1`, 1): "is not a tool",
		strings.Replace(request(ask), `"now"`, `"a b"`, 1):           "is not a tool",
		strings.Replace(request(ask, call, result), tools, "", 1):    "must define tools",
		request(say, ask): "first message",
		request(ask, ask): "alternate",
		request(ask, say): "end with a user",
		request(strings.Replace(ask, "user", "system", 1)): "unexpected role",
		request(ask, of(""), ask):                          "non-empty content",
		request(ask, call, ask):                            "without its tool_result",
		request(ask, say, result):                          "unexpected tool_use_id",
		request(ask, call, strings.Replace(result, `"so?"},`, "", 1), call, result):                                            "unique",
		request(ask, strings.Replace(call, `"c1"`, `"c:1"`, 1), strings.Replace(result, `"c1"`, `"c:1"`, 1)):                   "not well formed",
		request(ask, strings.Replace(call, `{}`, `"{}"`, 1), result):                                                           "an object",
		request(ask, call, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"c1"}]}`): "come first",
		request(strings.Replace(ask, "hi", ` \n`, 1)):                                                                          "non-whitespace",
		request(ask, of(`{"type":"thinking","thinking":"hm"}`), ask):                                                           "signature",
		request(ask, of(`{"type":"redacted_thinking"}`), ask):                                                                  "redacted",
		request(ask, of(`{"type":"image"}`), ask):                                                                              "unexpected block",
		request(`{"role":"user","content":[` + strings.TrimSuffix(marked, ",") + `]}`):                                         "maximum of 4",
		request(`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"x"}}]}`):                         "cache_control is",
	} {
		var req MessagesRequest
		if err := json.Unmarshal([]byte(body), &req); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got := req.Refusal(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: refused because %q, want %q", body, got, want)
		}
	}
}
