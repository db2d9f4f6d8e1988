package anthropic

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/agent/model/wire"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // conversations are made up here that warn at every turn
	goleak.VerifyTestMain(m)
}

const testKey = "sk-ant-test-AAAABBBBCCCCDDDD0001"

// driver runs the suite against this package.
type driver struct{ cfg Config }

func (d driver) Start(t *testing.T, play modeltest.Script) (model.Model, func() [][]byte) {
	server := modeltest.NewMessagesServer(t, func(n int, _ modeltest.MessagesRequest) modeltest.Reply { return play(n).MessagesReply() })
	cfg := d.cfg
	cfg.BaseURL, cfg.Model, cfg.Key, cfg.HTTP = server.URL(), "test-model", testKey, server.Client()
	return mustNew(t, cfg), func() [][]byte {
		var bodies [][]byte
		for _, r := range server.Requests() {
			bodies = append(bodies, r.Body)
		}
		return bodies
	}
}

func TestContract(t *testing.T) {
	for name, cfg := range map[string]Config{
		"streamed": {Stream: true}, "whole": {}, "all quirks": {Stream: true, Profile: Profile{NoStream: true, NoCache: true, Bearer: true}},
	} {
		t.Run(name, func(t *testing.T) { modeltest.Run(t, driver{cfg}) })
	}
}

func TestLine(t *testing.T) {
	modeltest.RunLine(t, modeltest.Line{
		Connect: func(c modeltest.Connection) (model.Model, error) {
			return New(Config{BaseURL: c.BaseURL, Model: c.Model, Key: c.Key, Stream: true, CallTimeout: c.CallTimeout, IdleTimeout: c.IdleTimeout, HTTP: c.HTTP})
		},
		BaseURL: "https://llm.test", Path: "v1/messages", Prefix: "sk-ant-",
		Begins: began, Says: func(text string) string { return says("0", text) }, Ends: ended("end_turn"),
		Whole: func(text string) string {
			return `{"type":"message","model":"m","content":[{"type":"text","text":` + quoted(text) + `}],"stop_reason":"end_turn"}`
		},
		Error: func(text string) string { return anError("authentication_error", text) },
	})
}

// writer is how a client with a profile writes its requests.
func writer(t testing.TB, profile Profile) modeltest.Writer {
	c := mustNew(t, Config{Model: "m", Stream: true, Profile: profile})
	return modeltest.Writer{Encode: c.encode, Kept: func(memo *model.Memo) *wire.Beginning { return &c.keptIn(memo).Beginning }}
}

func TestSplices(t *testing.T) {
	for name, profile := range map[string]Profile{"plain": {}, "no cache": {NoCache: true}} {
		t.Run(name, func(t *testing.T) { modeltest.RunSplices(t, writer(t, profile)) })
	}
}

func BenchmarkSpliced(b *testing.B) { modeltest.BenchmarkSpliced(b, writer(b, Profile{})) }
func BenchmarkWhole(b *testing.B)   { modeltest.BenchmarkWhole(b, writer(b, Profile{})) }

func mustNew(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// canned is a provider without a network.
type canned struct{ *modeltest.Canned }

// client returns a client whose provider answers so.
func (c canned) client(t testing.TB) *Client {
	return mustNew(t, Config{BaseURL: "https://llm.test", Model: "test-model", Key: testKey, Stream: true, HTTP: c.HTTP()})
}

func streamed(parts ...string) canned { return canned{modeltest.Streamed(parts...)} }
func wholeBody(body string) canned    { return canned{modeltest.Whole(body)} }

// What a stream is made of is written by hand here, so that the tests do not believe the code.
const (
	began   = `event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}` + "\n\n"
	stopped = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

func ended(reason string) string {
	return `event: message_delta` + "\n" + `data: {"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":9}}` + "\n\n" + stopped
}

// blockOf is a block of a stream: what it starts with, and its deltas.
func blockOf(index, start string, deltas ...string) string {
	var out strings.Builder
	out.WriteString(`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":` + index + `,"content_block":{` + start + `}}` + "\n\n")
	for _, d := range deltas {
		out.WriteString(deltaOf(index, d))
	}
	out.WriteString(`event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":` + index + `}` + "\n\n")
	return out.String()
}

func deltaOf(index, d string) string {
	return `event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":` + index + `,"delta":{` + d + `}}` + "\n\n"
}

func says(index, text string) string {
	return blockOf(index, `"type":"text","text":""`, `"type":"text_delta","text":`+quoted(text))
}

func calls(index, id, name string, input ...string) string {
	var deltas []string
	for _, piece := range input {
		deltas = append(deltas, `"type":"input_json_delta","partial_json":`+quoted(piece))
	}
	return blockOf(index, `"type":"tool_use","id":"`+id+`","name":"`+name+`","input":{}`, deltas...)
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

var weather = model.Tool{Name: "weather", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}

var hi = model.Request{Messages: []model.Message{{Role: model.User, Text: "hi"}}, Tools: []model.Tool{weather}}

func answerOf(t *testing.T, c *Client, req model.Request) model.Answer {
	return modeltest.AnswerOf(t, c, req)
}
func faultOf(t *testing.T, c *Client) *model.Error { return modeltest.FaultOf(t, c, hi) }

// TestDocumentedStream reads a stream as the provider's own pages show it.
func TestDocumentedStream(t *testing.T) {
	wire := began + "event: ping\ndata: {\"type\": \"ping\"}\n\n" +
		blockOf("0", `"type":"text","text":""`, `"type":"text_delta","text":"Okay"`, `"type":"text_delta","text":", let's see 👋"`) +
		calls("1", "toolu_01T1", "weather", "", `{"city":`, ` "San`, ` Francisco, CA"`, `}`) + ended("tool_use")
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with the end": iotest.DataErrReader,
	} {
		for _, end := range []string{"\n", "\r\n", "\r"} {
			in := streamed()
			in.Body = cut(strings.NewReader(strings.ReplaceAll(wire, "\n", end)))
			got := answerOf(t, in.client(t), hi)
			if got.Text != "Okay, let's see 👋" || got.Finish != model.FinishCalls || got.Model != "m" || len(got.Calls) != 1 ||
				got.Calls[0] != (model.Call{ID: "toolu_01T1", Name: "weather", Arguments: `{"city": "San Francisco, CA"}`}) ||
				got.Usage != (model.Usage{In: 3, Out: 9, Known: true}) {
				t.Errorf("%s, lines ending in %q: answer is %+v", name, end, got)
			}
		}
	}
}

// TestCutAnywhere: wherever a stream ends before the message does, there is no answer.
func TestCutAnywhere(t *testing.T) {
	wire := began + says("0", "I will pay.") + calls("1", "c1", "weather", `{"city":"Oslo"}`) + ended("tool_use")
	whole := len(wire) - len("\n\n") // the last event may lack its blank line
	for n := 1; n < whole; n++ {
		for name, body := range map[string]io.Reader{
			"end": strings.NewReader(wire[:n]), "broken line": io.MultiReader(strings.NewReader(wire[:n]), iotest.ErrReader(io.ErrUnexpectedEOF)),
		} {
			in := streamed()
			in.Body = body
			fault := faultOf(t, in.client(t))
			sure := n >= len(began) || n < len(began)-2 // in between, the first event lacks its blank line
			if fault.Fault != model.FaultPassing || sure && fault.Began != (n >= len(began)) {
				t.Fatalf("%s after %d bytes, %q: fault is %+v", name, n, wire[max(0, n-20):n], fault)
			}
		}
	}
	if got := answerOf(t, streamed(wire[:whole]).client(t), hi); len(got.Calls) != 1 {
		t.Errorf("without the last blank line: answer is %+v", got)
	}
}

func TestStops(t *testing.T) {
	whole := calls("1", "c1", "weather", `{"city":"Oslo"}`)
	half := calls("2", "c2", "weather", `{"city":"Os`)
	none := calls("2", "c2", "weather", "")
	for _, c := range []struct {
		reason, content string
		finish          model.Finish
		calls           string
	}{
		{"end_turn", "", model.FinishStop, ""},
		{"stop_sequence", "", model.FinishStop, ""},
		{"something_new", "", model.FinishStop, ""},
		{"tool_use", "", model.FinishStop, ""},
		{"tool_use", whole, model.FinishCalls, "c1"},
		{"end_turn", whole, model.FinishCalls, "c1"},
		{"tool_use", whole + none, model.FinishCalls, "c1c2"},
		{"max_tokens", "", model.FinishLength, ""},
		{"max_tokens", whole + half, model.FinishLength, "c1"},
		{"max_tokens", whole + none, model.FinishLength, "c1"},
		{"max_tokens", none + says("3", "x"), model.FinishLength, "c2"},
		{"max_tokens", half + says("3", "x"), model.FinishLength, ""},
		{"model_context_window_exceeded", whole + half, model.FinishLength, "c1"},
		{"pause_turn", whole, model.FinishLength, "c1"},
		{"refusal", whole, model.FinishFilter, ""},
	} {
		got := answerOf(t, streamed(began, says("0", "hm"), c.content, ended(c.reason)).client(t), hi)
		ids := ""
		for _, call := range got.Calls {
			ids += call.ID
		}
		if got.Finish != c.finish || ids != c.calls || !strings.HasPrefix(got.Text, "hm") {
			t.Errorf("%s: answer is %+v, want %s and the calls %q", c.reason, got, c.finish, c.calls)
		}
	}
}

// TestWholeAnswerCut: a whole answer shows a call that was cut as a call with fewer arguments.
func TestWholeAnswerCut(t *testing.T) {
	call := func(id, input string) string {
		return `{"type":"tool_use","id":"` + id + `","name":"weather","input":` + input + `}`
	}
	for stop, want := range map[string]int{`"max_tokens"`: 1, `"tool_use"`: 2, `null`: 2} {
		body := `{"type":"message","model":"m","content":[` + call("c1", "{}") + `,` + call("c2", `{ "city": "Os" }`) + `],"stop_reason":` + stop + `}`
		got := answerOf(t, wholeBody(body).client(t), hi)
		if len(got.Calls) != want || got.Calls[0].Arguments != "{}" {
			t.Errorf("%s: answer is %+v", stop, got)
		}
		if want == 2 && got.Calls[1].Arguments != `{"city":"Os"}` {
			t.Errorf("%s: arguments are %s", stop, got.Calls[1].Arguments)
		}
	}
}

func TestCalls(t *testing.T) {
	got := answerOf(t, streamed(began,
		blockOf("0", `"type":"tool_use","id":"c1","name":"weather","input":{"city": "A"}`), // whole at its start, as some servers do
		calls("1", "c1", "weather", `{"city":`, `1729876543210987654}`),
		calls("2", "", "weather", "not json"),
		blockOf("3", `"type":"server_tool_use","id":"s1","name":"web_search","input":{}`, `"type":"input_json_delta","partial_json":"{"`),
		ended("tool_use")).client(t), hi)
	want := []model.Call{
		{ID: "c1", Name: "weather", Arguments: `{"city":"A"}`},
		{ID: "call_1", Name: "weather", Arguments: `{"city":1729876543210987654}`},
		{ID: "call_2", Name: "weather", Arguments: "not json"},
	}
	if len(got.Calls) != 3 || got.Calls[0] != want[0] || got.Calls[1] != want[1] || got.Calls[2] != want[2] {
		t.Errorf("calls are %+v", got.Calls)
	}
	for name, wire := range map[string]string{
		"piece without a beginning": deltaOf("0", `"type":"input_json_delta","partial_json":"{"`),
		"piece of a text":           says("0", "a") + deltaOf("0", `"type":"input_json_delta","partial_json":"{"`),
		"no name":                   calls("0", "c1", "", "{}"),
		"too many":                  strings.Repeat(calls("0", "c1", "weather", "{}"), maxCalls+1),
		"too many blocks":           strings.Repeat(says("0", "a"), maxBlocks+1),
	} {
		if fault := faultOf(t, streamed(began, wire, ended("tool_use")).client(t)); fault.Fault != model.FaultMalformed || !fault.Began {
			t.Errorf("%s: fault is %+v", name, fault)
		}
	}
}

func TestText(t *testing.T) {
	for want, wire := range map[string]string{
		"a b":     says("0", " \n a ") + says("1", "b \n"),
		"a\n\nb":  says("0", "a \n") + calls("1", "c1", "weather") + says("2", "\n") + says("3", "\nb"),
		"a\n\nbc": says("0", "a") + blockOf("1", `"type":"new_kind","x":1`) + says("2", "bc"),
		"ab":      says("0", "a") + deltaOf("7", `"type":"text_delta","text":"b"`) + deltaOf("0", `"type":"citations_delta","citation":{}`),
		"":        blockOf("0", `"type":"text","text":" "`),
	} {
		if got := answerOf(t, streamed(began, wire, ended("end_turn")).client(t), hi); got.Text != want {
			t.Errorf("text is %q, want %q", got.Text, want)
		}
	}
}

func TestUsage(t *testing.T) {
	start := func(u string) string {
		return `data: {"type":"message_start","message":{"model":"m","content":[],"usage":` + u + `}}` + "\n\n"
	}
	end := func(u string) string {
		return `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + u + `}` + "\n\n" + stopped
	}
	for _, c := range []struct {
		start, end string
		want       *model.Usage
	}{
		{`{"input_tokens":3,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}`, `{"output_tokens":9}`,
			&model.Usage{In: 15, Out: 9, Cached: 7, Known: true}},
		{`{"input_tokens":3,"cache_read_input_tokens":7,"output_tokens":1}`, `{"input_tokens":3,"cache_read_input_tokens":7,"output_tokens":9}`,
			&model.Usage{In: 10, Out: 9, Cached: 7, Known: true}}, // totals, not more of the same
		{`{"input_tokens":8834,"output_tokens":0}`, `{"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":9}`,
			&model.Usage{In: 8849, Out: 9, Cached: 8831, Known: true}},
		{`{"input_tokens":3,"cache_read_input_tokens":null,"output_tokens":1}`, `{"input_tokens":null,"output_tokens":0}`, &model.Usage{In: 3, Known: true}},
		{`{"input_tokens":3,"output_tokens":1}`, `null`, &model.Usage{}}, // nobody counted what was written
		{`{"input_tokens":3,"output_tokens":1}`, `{}`, &model.Usage{}},
		{`{"input_tokens":0,"output_tokens":0}`, `{"output_tokens":0}`, &model.Usage{}},
		{`null`, `null`, &model.Usage{}},
		{`{"input_tokens":"3"}`, `{"output_tokens":"9"}`, &model.Usage{}},
		{`{"input_tokens":-1}`, `{"output_tokens":9}`, nil},
		{`{"input_tokens":3,"cache_read_input_tokens":-7}`, `{"output_tokens":9}`, nil},
		{`{"input_tokens":3}`, `{"output_tokens":1e300}`, nil},
		{`{"input_tokens":100000001}`, `{"output_tokens":9}`, nil},
		{`{"input_tokens":3}`, `{"output_tokens":1.5}`, nil},
	} {
		client := streamed(start(c.start), says("0", "ok"), end(c.end)).client(t)
		if c.want == nil {
			if fault := faultOf(t, client); fault.Fault != model.FaultMalformed || !fault.Began {
				t.Errorf("%s %s: fault is %+v", c.start, c.end, fault)
			}
		} else if got := answerOf(t, client, hi).Usage; got != *c.want {
			t.Errorf("%s %s: got %+v, want %+v", c.start, c.end, got, *c.want)
		}
	}
}

func TestNew(t *testing.T) {
	good := Config{Model: "m", Key: " " + testKey + "\n"}
	for base, want := range map[string]string{
		"": DefaultBaseURL + "/v1/messages", " https://llm.test/a/ ": "https://llm.test/a/v1/messages",
		"https://llm.test/v1/": "https://llm.test/v1/messages", "https://llm.test/v1?k=v": "https://llm.test/v1/messages?k=v",
	} {
		for _, bearer := range []bool{false, true} {
			in := wholeBody(`{"content":[]}`)
			cfg := good
			cfg.BaseURL, cfg.Profile.Bearer, cfg.HTTP = base, bearer, &http.Client{Transport: in}
			answerOf(t, mustNew(t, cfg), hi)
			r := in.Requests[0]
			plain, token := testKey, ""
			if bearer {
				plain, token = "", "Bearer "+testKey
			}
			if r.URL.String() != want || r.Header.Get("X-Api-Key") != plain || r.Header.Get("Authorization") != token || r.Header.Get("Anthropic-Version") != "2023-06-01" {
				t.Errorf("base %q: url %q, headers %v", base, r.URL, r.Header)
			}
		}
	}
	for name, change := range map[string]func(*Config){
		"output": func(c *Config) { c.MaxOutput = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestParseProfile(t *testing.T) {
	p, err := ParseProfile(" no_stream,bearer , no_cache,")
	if err != nil || p != (Profile{NoStream: true, NoCache: true, Bearer: true}) {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err = ParseProfile("no_stream,magic"); err == nil || !strings.Contains(err.Error(), `"magic"`) || !strings.Contains(err.Error(), "no_cache") {
		t.Errorf("unknown quirk: error is %v", err)
	}
}
