package openai

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/agent/model/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-AAAABBBBCCCCDDDD0001"

// driver runs the suite against this package.
type driver struct{ cfg Config }

func (d driver) Start(t *testing.T, play modeltest.Script) (model.Model, func() [][]byte) {
	server := modeltest.NewServer(t, func(n int, _ modeltest.ChatRequest) modeltest.Reply { return play(n).Reply() })
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
		"streamed": {Stream: true},
		"whole":    {},
		"all quirks": {Stream: true, Profile: Profile{
			MaxTokensField: maxCompletionTokens, TextToolCalls: true, EchoReasoning: true, StrictRoles: true,
		}},
	} {
		t.Run(name, func(t *testing.T) { modeltest.Run(t, driver{cfg}) })
	}
}

func TestLine(t *testing.T) {
	modeltest.RunLine(t, modeltest.Line{
		Connect: func(c modeltest.Connection) (model.Model, error) {
			return New(Config{BaseURL: c.BaseURL, Model: c.Model, Key: c.Key, Stream: true, CallTimeout: c.CallTimeout, IdleTimeout: c.IdleTimeout, HTTP: c.HTTP})
		},
		BaseURL: "https://llm.test/v1", Path: "chat/completions", Prefix: "sk-",
		Says: func(text string) string { return delta1(`"content":` + quoted(text)) }, Ends: ended("stop"),
		Whole: func(text string) string { return message(`"content":` + quoted(text)) },
		Error: func(text string) string { return `{"error":{"message":` + quoted(text) + `}}` },
	})
}

// writer is how a client with a profile writes its requests.
func writer(t testing.TB, profile Profile) modeltest.Writer {
	c := mustNew(t, Config{BaseURL: "https://llm.test/v1", Model: "m", Stream: true, Profile: profile})
	return modeltest.Writer{Encode: c.encode, Kept: func(memo *model.Memo) *wire.Beginning { return &c.keptIn(memo).Beginning }}
}

func TestSplices(t *testing.T) {
	for name, profile := range map[string]Profile{"plain": {}, "strict roles": {StrictRoles: true}, "echo": {EchoReasoning: true}} {
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

// with returns a client whose provider answers so.
func (c canned) with(t testing.TB, profile Profile) *Client {
	return mustNew(t, Config{BaseURL: "https://llm.test/v1", Model: "test-model", Key: testKey, Stream: true, Profile: profile, HTTP: c.HTTP()})
}

func streamed(line string) canned  { return canned{modeltest.Streamed(line)} }
func wholeBody(body string) canned { return canned{modeltest.Whole(body)} }

// message is the body of a whole answer, and asStream the same as a stream; both are written by hand here so that the
// tests do not believe the code.
func message(fields string) string {
	return `{"model":"m","choices":[{"index":0,"message":{"role":"assistant",` + fields + `},"finish_reason":"stop"}]}`
}

func delta1(fields string) string {
	return `data: {"model":"m","choices":[{"index":0,"delta":{` + fields + `},"finish_reason":null}]}` + "\n\n"
}

func ended(reason string) string {
	return `data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\ndata: [DONE]\n\n"
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

// wires are the inputs of testdata/wire.json.
type wires struct {
	CallsWithoutIndex         string      `json:"calls_without_index"`
	CallsWithoutIndexInPieces string      `json:"calls_without_index_in_pieces"`
	CallsWithOneIndex         string      `json:"calls_with_one_index"`
	Framing                   []string    `json:"framing"`
	ChoicesMissing            string      `json:"choices_missing"`
	Parts                     []string    `json:"parts"`
	PartsStreamed             string      `json:"parts_streamed"`
	TextCalls                 [][2]string `json:"text_calls"`
	Thinking                  [][2]string `json:"thinking"`
	Reasoning                 string      `json:"reasoning"`
	Pages                     []struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	} `json:"pages"`
	Errors [][3]json.RawMessage `json:"errors"`
}

func readWires(t testing.TB) wires {
	t.Helper()
	raw, err := os.ReadFile("testdata/wire.json")
	if err != nil {
		t.Fatal(err)
	}
	var w wires
	if err := json.Unmarshal(raw, &w); err != nil {
		t.Fatalf("read testdata/wire.json: %v", err)
	}
	return w
}

func TestFraming(t *testing.T) {
	all := readWires(t).Framing
	for i, wire := range all {
		for name, reader := range map[string]io.Reader{
			"at once": strings.NewReader(wire), "byte by byte": iotest.OneByteReader(strings.NewReader(wire)),
			"with the end": iotest.DataErrReader(strings.NewReader(wire)),
		} {
			c := streamed("")
			c.Body = reader
			answer := answerOf(t, c.with(t, Profile{}), hi)
			if answer.Text != "Grüße 👋" || answer.Finish != model.FinishStop {
				t.Errorf("wire %d %s: answer is %+v", i, name, answer)
			}
		}
	}
}

func TestLongLine(t *testing.T) {
	text := strings.Repeat("x", 8<<20-200)
	answer := answerOf(t, streamed(delta1(`"content":"`+text+`"`)+ended("stop")).with(t, Profile{}), hi)
	if answer.Text != text {
		t.Errorf("a line of 8 MiB gave %d bytes", len(answer.Text))
	}
}

func TestChoicesMissing(t *testing.T) {
	wire := readWires(t).ChoicesMissing
	totals := strings.ReplaceAll(wire, `"finish_reason":null}]}`, `"finish_reason":null}],"usage":{"prompt_tokens":11,"completion_tokens":1}}`)
	if totals == wire {
		t.Fatal("the variant is the same as the wire")
	}
	for _, w := range []string{wire, totals} {
		answer := answerOf(t, streamed(w).with(t, Profile{}), hi)
		if want := (model.Usage{In: 11, Out: 2, Known: true}); answer.Text != "ok" || answer.Usage != want || answer.Model != "test-model" {
			t.Errorf("answer is %+v", answer)
		}
	}
}

func TestUsage(t *testing.T) {
	for raw, want := range map[string]*model.Usage{
		`null`: {}, `{}`: {}, `{"prompt_tokens":0,"completion_tokens":0}`: {}, `{"prompt_tokens":null,"completion_tokens":"3"}`: {},
		`{"prompt_tokens":5.0,"completion_tokens":0}`:                                            {In: 5, Known: true},
		`{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}`:  {In: 9, Out: 1, Cached: 4, Known: true},
		`{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":null}`:                 {In: 9, Out: 1, Known: true},
		`{"prompt_tokens":9,"completion_tokens":1,"prompt_cache_hit_tokens":12}`:                 {In: 9, Out: 1, Cached: 9, Known: true},
		`{"prompt_tokens":100000000,"completion_tokens":1}`:                                      {In: 100000000, Out: 1, Known: true},
		`{"prompt_tokens":100000001,"completion_tokens":1}`:                                      nil,
		`{"prompt_tokens":-1,"completion_tokens":1}`:                                             nil,
		`{"prompt_tokens":1,"completion_tokens":1e300}`:                                          nil,
		`{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":-4}}`: nil,
		`{"prompt_tokens":1.5,"completion_tokens":1}`:                                            nil,
		`{"prompt_tokens":99999999999999999999999999999,"completion_tokens":1}`:                  nil,
	} {
		body := strings.TrimSuffix(message(`"content":"ok"`), "}") + `,"usage":` + raw + "}"
		client := wholeBody(body).with(t, Profile{})
		if want == nil {
			if fault := faultOf(t, client); fault.Fault != model.FaultMalformed || !fault.Began {
				t.Errorf("usage %s: fault is %+v, want malformed", raw, fault)
			}
		} else if got := answerOf(t, client, hi).Usage; got != *want {
			t.Errorf("usage %s: got %+v, want %+v", raw, got, *want)
		}
	}
}

func TestNoUsageAfterUsage(t *testing.T) {
	wire := `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}` + "\n\n" + ended("stop")
	if got := answerOf(t, streamed(wire).with(t, Profile{}), hi).Usage; got != (model.Usage{In: 3, Out: 1, Known: true}) {
		t.Errorf("usage is %+v; nobody counted after somebody had", got)
	}
}

func TestParts(t *testing.T) {
	w := readWires(t)
	for i, want := range []string{"Hello world", "", "I can't help with that."} {
		if got := answerOf(t, wholeBody(w.Parts[i]).with(t, Profile{}), hi); got.Text != want {
			t.Errorf("body %d: text is %q, want %q", i, got.Text, want)
		}
	}
	got := answerOf(t, streamed(w.PartsStreamed).with(t, Profile{}), hi)
	if got.Text != "Hello world" || got.Reasoning != "hm" {
		t.Errorf("stream: answer is %+v", got)
	}
	for _, odd := range []string{`[1,null,"a",{"type":5,"text":"b"},[],{"type":"text","text":{"x":1}}]`, `{"x":1}`, `7`, `true`} {
		want := ""
		if odd[0] == '[' {
			want = "ab"
		}
		if got := answerOf(t, wholeBody(message(`"content":`+odd)).with(t, Profile{}), hi); got.Text != want {
			t.Errorf("content %s: text is %q, want %q", odd, got.Text, want)
		}
	}
}

func TestEmptyAnswer(t *testing.T) {
	for _, content := range []string{`""`, `null`, `"  \n"`} {
		for _, c := range []canned{
			wholeBody(message(`"content":` + content)), streamed(delta1(`"content":`+content) + ended("stop")), streamed(ended("tool_calls")),
		} {
			if got := answerOf(t, c.with(t, Profile{}), hi); got.Text != "" || got.Calls != nil || got.Finish != model.FinishStop {
				t.Errorf("content %s: answer is %+v", content, got)
			}
		}
	}
}

func TestReasoning(t *testing.T) {
	w := readWires(t)
	got := answerOf(t, wholeBody(w.Reasoning).with(t, Profile{}), hi)
	if got.Reasoning != "need clock" || got.Text != "" || len(got.Calls) != 1 || got.Finish != model.FinishCalls {
		t.Fatalf("answer is %+v", got)
	}
	got = answerOf(t, streamed(delta1(`"reasoning":" a ","reasoning_content":" a "`)+delta1(`"reasoning":"b"`)+
		delta1(`"content":"<think>no</think>hi"`)+ended("stop")).with(t, Profile{}), hi)
	if got.Reasoning != " a b" || got.Text != "hi" {
		t.Errorf("answer is %+v", got)
	}
}

func TestNew(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no address": {Model: "m"},
		"field":      {BaseURL: "https://llm.test/v1", Model: "m", Profile: Profile{MaxTokensField: "tokens"}},
	} {
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestParseProfile(t *testing.T) {
	p, err := ParseProfile(" text_tool_calls,max_completion_tokens , echo_reasoning,no_stream,strict_roles,")
	want := Profile{MaxTokensField: maxCompletionTokens, TextToolCalls: true, EchoReasoning: true, NoStream: true, StrictRoles: true}
	if err != nil || p != want {
		t.Errorf("got %+v, %v", p, err)
	}
	if p, err := ParseProfile(""); err != nil || p != (Profile{}) {
		t.Errorf("empty: got %+v, %v", p, err)
	}
	_, err = ParseProfile("no_stream,magic")
	if err == nil || !strings.Contains(err.Error(), `"magic"`) || !strings.Contains(err.Error(), "strict_roles") {
		t.Errorf("unknown quirk: error is %v", err)
	}
}
