package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

func encoded(t testing.TB, cfg Config, req model.Request) []byte {
	t.Helper()
	cfg.Model = "m"
	body, err := mustNew(t, cfg).encode(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join(body, nil)
}

const mark = `,"cache_control":{"type":"ephemeral"}`

func TestRequestBytes(t *testing.T) {
	req := model.Request{
		System: "Be <kind> & true.", MaxOutput: 100,
		Tools: []model.Tool{
			{Name: "now"}, {Name: "weather", Description: "a < b", Schema: json.RawMessage(`{ "type": "object", "x": "<" }`)},
			{Name: "any", Schema: json.RawMessage(` {}`)}, {Name: "typeless", Schema: json.RawMessage(`{"properties":{}}`)},
		},
		Messages: []model.Message{
			{Role: model.User, Text: "hi"}, {Role: model.User, Text: "you there?"}, {Role: model.Assistant, Text: " \n", Reasoning: "hm"},
			{Role: model.User, Text: "go"}, {Role: model.User, Text: " "},
			{Role: model.Assistant, Text: "Looking.", Reasoning: "hm", Calls: []model.Call{
				{ID: "c1", Name: "now", Arguments: ""}, {ID: "c2", Name: "weather", Arguments: `{"id": 1729876543210987654}`}, {ID: "c3", Name: "now", Arguments: `{"a":1}{"a":2}`},
			}},
			{Role: model.ToolRole, CallID: "c1", Text: "noon"}, {Role: model.ToolRole, CallID: "c2", Text: " "}, {Role: model.ToolRole, CallID: "c3", Text: "error"},
			{Role: model.User, Text: "and?"},
			{Role: model.Assistant, Text: "done"}, {Role: model.Assistant, Text: "really"},
			{Role: model.User, Text: "thanks"},
		},
	}
	const tools = `"tools":[{"name":"now","input_schema":{"type":"object","properties":{}}},` +
		`{"name":"weather","description":"a < b","input_schema":{"type":"object","x":"<"}},{"name":"any","input_schema":{"type":"object"}},` +
		`{"name":"typeless","input_schema":{"type":"object","properties":{}}}],`
	rest := func(mark string) string {
		return tools + `"system":[{"type":"text","text":"Be <kind> & true."` + mark + `}],"messages":[` +
			`{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"you there?"},{"type":"text","text":"go"}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"c1","name":"now","input":{}},` +
			`{"type":"tool_use","id":"c2","name":"weather","input":{"id":1729876543210987654}},{"type":"tool_use","id":"c3","name":"now","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"noon"},{"type":"tool_result","tool_use_id":"c2"},` +
			`{"type":"tool_result","tool_use_id":"c3","content":"error"},{"type":"text","text":"and?"}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"done"},{"type":"text","text":"really"}]},` +
			`{"role":"user","content":[{"type":"text","text":"thanks"` + mark + `}]}],"max_tokens":100}`
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"streamed": {Config{Stream: true}, `{"model":"m","stream":true,` + rest(mark)},
		"whole":    {Config{}, `{"model":"m",` + rest(mark)},
		"quirks":   {Config{Stream: true, Profile: Profile{NoStream: true, NoCache: true}}, `{"model":"m",` + rest("")},
	} {
		if got := string(encoded(t, c.cfg, req)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestOutputLimit(t *testing.T) {
	for _, c := range []struct{ configured, asked, want int }{{0, 0, 4096}, {0, -1, 4096}, {9000, 0, 9000}, {9000, 7, 7}} {
		got := string(encoded(t, Config{MaxOutput: c.configured}, model.Request{MaxOutput: c.asked}))
		if want := fmt.Sprintf(`"max_tokens":%d}`, c.want); !strings.HasSuffix(got, want) {
			t.Errorf("configured %d, asked %d: %s", c.configured, c.asked, got)
		}
	}
}

// TestStandIns: what the provider would refuse to see missing is made up for, in so many words.
func TestStandIns(t *testing.T) {
	call := model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "c1", Name: "now"}}}
	const used, unanswered = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"now","input":{}}]}`,
		`{"type":"tool_result","tool_use_id":"c1","content":"(There is no result.)"}`
	for name, c := range map[string]struct {
		in   []model.Message
		want string
	}{
		"nothing":        {nil, `{"role":"user","content":[{"type":"text","text":"(Go on.)"}]}`},
		"begins with us": {[]model.Message{{Role: model.Assistant, Text: "Hello"}, {Role: model.User, Text: "hi"}}, `{"role":"user","content":[{"type":"text","text":"(The conversation goes on.)"}]},{"role":"assistant","content":[{"type":"text","text":"Hello"}]},{"role":"user","content":[{"type":"text","text":"hi"}]}`},
		"ends with us":   {[]model.Message{{Role: model.User, Text: "hi"}, {Role: model.Assistant, Text: "Hello"}}, `{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"Hello"}]},{"role":"user","content":[{"type":"text","text":"(Go on.)"}]}`},
		"no result":      {[]model.Message{{Role: model.User, Text: "hi"}, call, {Role: model.User, Text: "well?"}}, `{"role":"user","content":[{"type":"text","text":"hi"}]},` + used + `,{"role":"user","content":[` + unanswered + `,{"type":"text","text":"well?"}]}`},
		"late result":    {[]model.Message{{Role: model.User, Text: "hi"}, call, {Role: model.User, Text: "well?"}, {Role: model.ToolRole, CallID: "c1", Text: "noon"}}, `{"role":"user","content":[{"type":"text","text":"hi"}]},` + used + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"noon"},{"type":"text","text":"well?"}]}`},
		"orphan":         {[]model.Message{{Role: model.ToolRole, CallID: "gone", Text: "late"}, {Role: model.User, Text: "hi"}}, `{"role":"user","content":[{"type":"text","text":"hi"}]}`},
	} {
		var sent struct {
			Messages json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(encoded(t, Config{Profile: Profile{NoCache: true}}, model.Request{Messages: c.in}), &sent); err != nil {
			t.Fatal(err)
		}
		if got := string(sent.Messages); got != "["+c.want+"]" {
			t.Errorf("%s: got\n%s\nwant\n[%s]", name, got, c.want)
		}
	}
}

// TestToolsOfThePast: a conversation that tells of calls declares them even if none may be made now.
func TestToolsOfThePast(t *testing.T) {
	turn := func(id string) []model.Message {
		return []model.Message{{Role: model.Assistant, Calls: []model.Call{{ID: id, Name: "now"}}}, {Role: model.ToolRole, CallID: id, Text: "noon"}}
	}
	got := string(encoded(t, Config{}, model.Request{Messages: append(turn("c1"), turn("c2")...)}))
	if strings.Count(got, `"input_schema"`) != 1 || !strings.Contains(got, `"tools":[{"name":"now",`) || !strings.Contains(got, `,"tool_choice":{"type":"none"},"max_tokens"`) {
		t.Errorf("got %s", got)
	}
	if got := string(encoded(t, Config{}, hi)); strings.Contains(got, "tool_choice") {
		t.Errorf("got %s", got)
	}
	if got := string(encoded(t, Config{}, model.Request{Messages: hi.Messages})); strings.Contains(got, "tool") {
		t.Errorf("got %s", got)
	}
}

// TestIDs: ids that other providers gave are made plain and unique, and their results follow them.
func TestIDs(t *testing.T) {
	long := strings.Repeat("x", 100)
	ids := []string{"call_1", "functions.now:0", "functions.now_0", "", "é", "call_1", "call_1_2", long, long + "y", "call_1"}
	var req model.Request
	for _, id := range ids {
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Calls: []model.Call{{ID: id, Name: "a b.c"}}},
			model.Message{Role: model.ToolRole, CallID: id, Text: "r"})
	}
	if why := refusal(t, req); why != "" {
		t.Error(why)
	}
	var sent modeltest.MessagesRequest
	if err := json.Unmarshal(encoded(t, Config{}, req), &sent); err != nil {
		t.Fatal(err)
	}
	if first := sent.Messages[1].Content[0]; first.ID != "call_1" || first.Name != "a_b_c" {
		t.Errorf("the first call is %+v", first)
	}
	for i := range ids {
		if got := sent.Messages[2*i+2].Content; len(got) != 1 || got[0].Content != "r" || got[0].ToolUseID != sent.Messages[2*i+1].Content[0].ID {
			t.Errorf("the result of %q is %+v", ids[i], got)
		}
	}
}

// TestSameIDTwice: of two calls with one id, the first result is the first call's.
func TestSameIDTwice(t *testing.T) {
	got := string(encoded(t, Config{Profile: Profile{NoCache: true}}, model.Request{Messages: []model.Message{
		{Role: model.Assistant, Calls: []model.Call{{ID: "c1", Name: "now"}, {ID: "c1", Name: "now"}}},
		{Role: model.ToolRole, CallID: "c1", Text: "one"}, {Role: model.ToolRole, CallID: "c1", Text: "two"}, {Role: model.ToolRole, CallID: "c1", Text: "three"},
	}}))
	const want = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one"},{"type":"tool_result","tool_use_id":"c1_2","content":"two"}]}]`
	if !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

// refusal says why the provider would refuse a request.
func refusal(t testing.TB, req model.Request) string {
	t.Helper()
	body := encoded(t, Config{Stream: true}, req)
	var sent modeltest.MessagesRequest
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	if why := sent.Refusal(); why != "" {
		return fmt.Sprintf("%s: %s", why, body)
	}
	return ""
}

func aMessage(t *rapid.T) model.Message {
	m := model.Message{Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant, model.ToolRole}).Draw(t, "role")}
	m.Text = rapid.SampledFrom([]string{"", " \n", "a", "<b>", "é\u2028\n\nc"}).Draw(t, "text")
	switch m.Role {
	case model.Assistant:
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			m.Calls = append(m.Calls, model.Call{ID: rapid.SampledFrom([]string{"c1", "c2", "c:3", ""}).Draw(t, "id"), Name: "f", Arguments: m.Text})
		}
		m.Reasoning = rapid.SampledFrom([]string{"", "hm", `{"model":"m"}`, `{"model":7}`, "[]"}).Draw(t, "reasoning")
		if rapid.Bool().Draw(t, "thoughts") {
			m.Reasoning = packThoughts(rapid.SliceOfN(rapid.Custom(aThought), 1, 3).Draw(t, "thought"), "m")
		}
	case model.ToolRole:
		m.CallID = rapid.SampledFrom([]string{"c1", "c2", "c:3", "gone", ""}).Draw(t, "call")
	}
	return m
}

func aThought(t *rapid.T) thought {
	return thought{
		Type:     rapid.SampledFrom([]string{kindThinking, kindRedacted, "odd"}).Draw(t, "type"),
		Thinking: rapid.SampledFrom([]string{"", "hm"}).Draw(t, "thinking"), Signature: rapid.SampledFrom([]string{"", "s"}).Draw(t, "signature"),
		Data:      rapid.SampledFrom([]string{"", "d"}).Draw(t, "data"),
		AfterText: rapid.IntRange(-2, 9).Draw(t, "text"), AfterCalls: rapid.IntRange(-2, 4).Draw(t, "calls"),
	}
}

// TestAnyConversation: whatever the conversation, the provider takes it, and every word of the user and of the
// assistant is in it, in order. Blanks may go: a thought may stand on either side of one, and no text is blank.
func TestAnyConversation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		req := model.Request{System: rapid.SampledFrom([]string{"", " ", "s"}).Draw(rt, "system"), Messages: rapid.SliceOfN(rapid.Custom(aMessage), 0, 8).Draw(rt, "messages")}
		if rapid.Bool().Draw(rt, "tools") {
			req.Tools = hi.Tools
		}
		for i := range req.Messages {
			if m := &req.Messages[i]; m.Role != model.ToolRole && strings.TrimSpace(m.Text) != "" {
				m.Text = fmt.Sprintf("word%dé end%d", i, i)
			}
		}
		if why := refusal(t, req); why != "" {
			rt.Fatal(why)
		}
		var sent modeltest.MessagesRequest
		if err := json.Unmarshal(encoded(t, Config{}, req), &sent); err != nil {
			rt.Fatal(err)
		}
		said := map[string]string{}
		for _, m := range sent.Messages {
			for _, b := range m.Content {
				said[m.Role] += strings.ReplaceAll(b.Text, " ", "")
			}
		}
		for _, m := range req.Messages {
			if m.Role == model.ToolRole || strings.TrimSpace(m.Text) == "" {
				continue
			}
			_, after, ok := strings.Cut(said[string(m.Role)], strings.ReplaceAll(m.Text, " ", ""))
			if !ok {
				rt.Fatalf("%q was lost or moved: %+v", m.Text, sent.Messages)
			}
			said[string(m.Role)] = after
		}
	})
}

// TestPrefix: a conversation that goes on begins with the bytes that it had, but for the marks for the cache.
func TestPrefix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ask := model.Message{Role: model.User, Text: "so?"}
		req := model.Request{System: "s", Tools: hi.Tools, MaxOutput: 9}
		req.Messages = append(rapid.SliceOfN(rapid.Custom(aMessage), 0, 6).Draw(rt, "messages"), ask)
		longer := req
		longer.Messages = append(append([]model.Message(nil), req.Messages...), model.Message{Role: model.Assistant, Text: "x"}, aMessage(rt))
		longer.MaxOutput = 5
		short, long := encoded(t, Config{Stream: true}, req), encoded(t, Config{Stream: true}, longer)
		if again := encoded(t, Config{Stream: true}, req); !bytes.Equal(short, again) {
			rt.Fatalf("%s\n%s", short, again)
		}
		end := bytes.LastIndex(short, []byte(mark+`}]}],"max_tokens"`))
		if end < 0 || !bytes.HasPrefix(long, append(short[:end:end], `}]},{"role":"assistant"`...)) {
			rt.Fatalf("%s\n%s", short, long)
		}
		if n := bytes.Count(long, []byte(mark)); n != 2 {
			rt.Fatalf("%d marks: %s", n, long)
		}
	})
}
