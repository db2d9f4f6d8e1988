package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

func encoded(t testing.TB, cfg Config, req model.Request) []byte {
	t.Helper()
	cfg.BaseURL, cfg.Model = "https://llm.test/v1", "m"
	body, err := mustNew(t, cfg).encode(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join(body, nil)
}

func TestRequestBytes(t *testing.T) {
	req := model.Request{
		System: "Be <kind> & true.", MaxOutput: 100,
		Tools: []model.Tool{{Name: "now"}, {Name: "weather", Description: "a < b", Schema: json.RawMessage(`{ "type": "object", "x": "<" }`)}},
		Messages: []model.Message{
			{Role: model.User, Text: "hi"}, {Role: model.User, Text: "you there?"},
			{Role: model.Assistant, Text: " \n"},
			{Role: model.User, Text: "go"},
			{Role: model.Assistant, Reasoning: "hm", Calls: []model.Call{
				{ID: "c1", Name: "now", Arguments: ""}, {ID: "c2", Name: "weather", Arguments: `{"id": 1729876543210987654}`},
				{ID: "c3", Name: "now", Arguments: "[1]"}, {ID: "c4", Name: "now", Arguments: `{"a":1}{"a":2}`},
			}},
			{Role: model.ToolRole, CallID: "c1", Text: ""},
			{Role: model.Assistant, Text: "done"},
		},
	}
	const tools = `"tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}},` +
		`{"type":"function","function":{"name":"weather","description":"a < b","parameters":{"type":"object","x":"<"}}}],`
	messages := func(thought, none string) string {
		return `"messages":[{"role":"system","content":"Be <kind> & true."},{"role":"user","content":"hi\n\nyou there?\n\ngo"},` +
			`{"role":"assistant","content":null,` + thought + `"tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":"{}"}},` +
			`{"id":"c2","type":"function","function":{"name":"weather","arguments":"{\"id\": 1729876543210987654}"}},` +
			`{"id":"c3","type":"function","function":{"name":"now","arguments":"{}"}},{"id":"c4","type":"function","function":{"name":"now","arguments":"{}"}}]},` +
			`{"role":"tool","content":"","tool_call_id":"c1"},{"role":"assistant","content":"done"` + none + `}]`
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"streamed": {Config{Stream: true}, `{"model":"m","stream":true,"stream_options":{"include_usage":true},` + tools + messages("", "") + `,"max_tokens":100}`},
		"whole":    {Config{}, `{"model":"m",` + tools + messages("", "") + `,"max_tokens":100}`},
		"quirks": {Config{Stream: true, Profile: Profile{NoStream: true, EchoReasoning: true, MaxTokensField: maxCompletionTokens}},
			`{"model":"m",` + tools + messages(`"reasoning_content":"hm",`, `,"reasoning_content":""`) + `,"max_completion_tokens":100}`},
	} {
		if got := string(encoded(t, c.cfg, req)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	if got := string(encoded(t, Config{}, model.Request{MaxOutput: -1})); got != `{"model":"m","messages":[]}` {
		t.Errorf("empty request: got %s", got)
	}
}

func TestHeaders(t *testing.T) {
	for key, want := range map[string]string{" k1\n": "Bearer k1", "": "", "  ": ""} {
		server := modeltest.NewServer(t, func(int, modeltest.ChatRequest) modeltest.Reply { return modeltest.Reply{Text: "ok"} })
		answerOf(t, mustNew(t, Config{BaseURL: server.URL() + "/", Model: "m", Key: key, HTTP: server.Client()}), hi)
		got := server.Requests()[0].Header
		if got.Get("Authorization") != want || len(got.Values("Authorization")) > 1 || got.Get("Content-Type") != "application/json" {
			t.Errorf("key %q: headers are %v", key, got)
		}
	}
}

func aMessage(t *rapid.T) model.Message {
	m := model.Message{Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant, model.ToolRole}).Draw(t, "role")}
	m.Text = rapid.SampledFrom([]string{"", " ", "a", "<b>", "é\u2028"}).Draw(t, "text")
	if m.Role == model.Assistant && rapid.Bool().Draw(t, "calls") {
		m.Calls = []model.Call{{ID: rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "id"), Name: "f", Arguments: m.Text}}
	}
	if m.Role == model.ToolRole {
		m.CallID = rapid.SampledFrom([]string{"c1", "c2", "gone"}).Draw(t, "call")
	}
	return m
}

// TestPrefix: a conversation that goes on begins with the bytes that it had, up to the end of its messages.
func TestPrefix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		req := model.Request{System: "s", Tools: hi.Tools, Messages: rapid.SliceOfN(rapid.Custom(aMessage), 0, 6).Draw(rt, "messages"), MaxOutput: 9}
		longer := req
		longer.Messages = append(append([]model.Message(nil), req.Messages...), model.Message{Role: model.Assistant, Text: "x"}, aMessage(rt))
		longer.MaxOutput = 5
		short, long := encoded(t, Config{Stream: true}, req), encoded(t, Config{Stream: true}, longer)
		if again := encoded(t, Config{Stream: true}, req); !bytes.Equal(short, again) {
			rt.Fatalf("%s\n%s", short, again)
		}
		end := bytes.LastIndex(short, []byte(`],"max_tokens"`))
		if !bytes.HasPrefix(long, short[:end]) {
			rt.Fatalf("%s\n%s", short, long)
		}
	})
}

type sentMessages struct {
	Messages []modeltest.ChatMessage `json:"messages"`
}

// TestStrictRoles: whatever the conversation, the template gets turns that alternate, and every word of the user.
func TestStrictRoles(t *testing.T) {
	strict := Config{Profile: Profile{StrictRoles: true}}
	rapid.Check(t, func(rt *rapid.T) {
		req := model.Request{System: rapid.SampledFrom([]string{"", "s"}).Draw(rt, "system"), Messages: rapid.SliceOfN(rapid.Custom(aMessage), 0, 8).Draw(rt, "messages")}
		for i := range req.Messages {
			if req.Messages[i].Role == model.User {
				req.Messages[i].Text = "word" + string(rune('0'+i))
			}
		}
		var sent sentMessages
		if err := json.Unmarshal(encoded(t, strict, req), &sent); err != nil {
			rt.Fatal(err)
		}
		checkTurns(rt, req, sent.Messages)
	})
}

func checkTurns(t *rapid.T, req model.Request, sent []modeltest.ChatMessage) {
	if req.System != "" {
		sent = sent[1:]
	}
	last, open, words := "", map[string]bool{}, ""
	for _, m := range sent {
		switch m.Role {
		case "user":
			words += m.Content
			if last != "" && last != "assistant" {
				t.Fatalf("user after %s: %+v", last, sent)
			}
		case "assistant":
			clear(open)
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
			if last == "" || last == "assistant" || strings.TrimSpace(m.Content) == "" && m.ToolCalls == nil {
				t.Fatalf("assistant after %q: %+v", last, sent)
			}
		case "tool":
			if !open[m.ToolCallID] {
				t.Fatalf("a result without its call: %+v", sent)
			}
		default:
			t.Fatalf("role %q", m.Role)
		}
		last = m.Role
	}
	for _, m := range req.Messages {
		if m.Role == model.User {
			_, after, ok := strings.Cut(words, m.Text)
			if !ok {
				t.Fatalf("%q was lost or moved: %+v", m.Text, sent)
			}
			words = after
		}
	}
}

func TestStrictRolesOrphan(t *testing.T) {
	got := string(encoded(t, Config{Profile: Profile{StrictRoles: true}}, model.Request{Messages: []model.Message{
		{Role: model.User, Text: "hi"}, {Role: model.User, Text: "you there?"}, {Role: model.Assistant},
		{Role: model.ToolRole, CallID: "gone", Text: "late"}, {Role: model.User, Text: "go"},
	}}))
	if want := `{"model":"m","messages":[{"role":"user","content":"hi\n\nyou there?\n\ngo"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
