package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent/model"
	"nudge/agent/model/anthropic"
	"nudge/agent/model/openai"
)

// listener is a transport that hears what is sent and answers nothing.
type listener struct{ heard string }

// RoundTrip is of http.RoundTripper.
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	l.heard = string(body)
	return nil, errors.Join(err, errors.New("nobody is there"))
}

// client is a model and what it sends.
type client struct {
	name string
	model.Model
	*listener
}

// clients returns one of each kind that writes requests in its own way.
func clients(t *testing.T) []client {
	t.Helper()
	var out []client
	add := func(name string, to func(*http.Client) (model.Model, error)) {
		l := &listener{}
		m, err := to(&http.Client{Transport: l})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, client{name, m, l})
	}
	for _, quirks := range []string{"", "strict_roles", "echo_reasoning", "echo_reasoning,strict_roles,max_completion_tokens"} {
		add("openai "+quirks, func(h *http.Client) (model.Model, error) {
			p, err := openai.ParseProfile(quirks)
			return must(openai.New(openai.Config{BaseURL: "https://llm.test/v1", Model: "m", Profile: p, HTTP: h, Stream: true})), err
		})
	}
	for name, quirks := range map[string]string{"m": "", "n": "no_cache"} {
		add("anthropic "+quirks, func(h *http.Client) (model.Model, error) {
			p, err := anthropic.ParseProfile(quirks)
			return must(anthropic.New(anthropic.Config{BaseURL: "https://llm.test", Model: name, Profile: p, HTTP: h})), err
		})
	}
	slices.SortFunc(out, func(a, b client) int { return strings.Compare(a.name, b.name) })
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// sends returns what a client sends for a request, or the error that keeps it from sending.
func (c client) sends(t *rapid.T, req model.Request) string {
	c.heard = ""
	_, err := c.Answer(t.Context(), req, nil)
	if c.heard == "" {
		return fmt.Sprint("nothing: ", err)
	}
	return c.heard
}

var (
	texts     = rapid.SampledFrom([]string{"", " \n", "a", "<b>", "é\u2028\n\nc", `"q"`})
	callIDs   = rapid.SampledFrom([]string{"c1", "c1", "c2", "c1_2", "c:3", "c_3", ""})
	arguments = rapid.SampledFrom([]string{"", "{}", `{ "a": "<" }`, "[1]", `{"a`})
	thoughts  = rapid.SampledFrom([]string{"", "hm",
		`{"model":"m","thoughts":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d","after_text":1,"after_calls":1}]}`})
)

func aCall(t *rapid.T) model.Call {
	return model.Call{ID: callIDs.Draw(t, "id"), Name: rapid.SampledFrom([]string{"f", "g", "a b"}).Draw(t, "name"), Arguments: arguments.Draw(t, "arguments")}
}

// aMessage returns any message, that of a role which there is not now and then.
func aMessage(t *rapid.T) model.Message {
	switch rapid.IntRange(0, 30).Draw(t, "role") % 10 {
	case 0, 1, 2:
		return model.Message{Role: model.User, Text: texts.Draw(t, "text")}
	case 3, 4, 5, 6:
		return model.Message{Role: model.Assistant, Text: texts.Draw(t, "text"), Reasoning: thoughts.Draw(t, "reasoning"),
			Calls: rapid.SliceOfN(rapid.Custom(aCall), 0, 3).Draw(t, "calls")}
	case 7, 8, 9:
		return model.Message{Role: model.ToolRole, Text: texts.Draw(t, "text"), CallID: callIDs.Draw(t, "id")}
	}
	return model.Message{Role: "robot"}
}

// aTurn returns messages as they mostly come: somebody asks, and an assistant answers or calls and gets most results.
func aTurn(t *rapid.T) []model.Message {
	out := []model.Message{{Role: model.User, Text: "ask " + texts.Draw(t, "text")}}
	for range rapid.IntRange(0, 3).Draw(t, "steps") {
		m := model.Message{Role: model.Assistant, Text: texts.Draw(t, "text"), Reasoning: thoughts.Draw(t, "reasoning"),
			Calls: rapid.SliceOfN(rapid.Custom(aCall), 1, 3).Draw(t, "calls")}
		out = append(out, m)
		for _, c := range m.Calls {
			if rapid.IntRange(0, 9).Draw(t, "result") > 0 {
				out = append(out, model.Message{Role: model.ToolRole, CallID: c.ID, Text: texts.Draw(t, "text")})
			}
		}
	}
	return append(out, model.Message{Role: model.Assistant, Text: "done"})
}

var toolSets = [][]model.Tool{
	nil, {{Name: "f"}}, {{Name: "f", Description: "<d>"}}, {{Name: "f"}, {Name: "g", Schema: json.RawMessage(`{ "x": 1 }`)}},
	{{Name: "f"}, {Name: "g", Schema: json.RawMessage(`{ "x": 2 }`)}}, {{Name: "f", Schema: json.RawMessage(`[`)}},
}

// goOn makes of a request the next one. What it changes, it changes in place.
func goOn(t *rapid.T, req *model.Request) {
	n := len(req.Messages)
	at := rapid.IntRange(0, max(n-1, 0)).Draw(t, "at")
	switch what := rapid.IntRange(0, 15).Draw(t, "what"); {
	case what < 6:
		req.Messages = append(req.Messages, rapid.SliceOfN(rapid.Custom(aMessage), 0, 3).Draw(t, "more")...)
	case what < 9:
		req.Messages = append(req.Messages, aTurn(t)...)
	case what == 9:
		req.Tools = rapid.SampledFrom(toolSets).Draw(t, "tools")
	case what == 10:
		req.System = texts.Draw(t, "system")
	case what == 11:
		req.MaxOutput = rapid.IntRange(-1, 2).Draw(t, "limit")
	case n == 0:
	case what == 12:
		req.Messages = req.Messages[:at]
	case what == 13:
		req.Messages = append([]model.Message{{Role: model.User, Text: "summary"}}, req.Messages[at:]...)
	case what == 14:
		req.Messages[at] = aMessage(t)
	default:
		if calls := req.Messages[at].Calls; len(calls) > 0 {
			calls[0] = aCall(t)
		} else {
			req.Messages[at].Text = strings.Clone(req.Messages[at].Text + texts.Draw(t, "text"))
		}
	}
}

// TestMemo: however a conversation goes on, and whoever is asked, a request is the same with a memo as without.
func TestMemo(t *testing.T) {
	all := clients(t)
	rapid.Check(t, func(rt *rapid.T) {
		var req model.Request
		memo := &model.Memo{}
		asked := rapid.SampledFrom(all).Draw(rt, "asked")
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			if rapid.IntRange(0, 9).Draw(rt, "switch") == 0 {
				asked = rapid.SampledFrom(all).Draw(rt, "asked")
			}
			goOn(rt, &req)
			want := asked.sends(rt, req)
			spliced := req
			spliced.Memo = memo
			if got := asked.sends(rt, spliced); got != want {
				rt.Fatalf("%s sends with the memo\n%s\nwithout\n%s", asked.name, got, want)
			}
		}
	})
}

type heap int

func (h heap) Size() int { return int(h) }

func TestMemoSize(t *testing.T) {
	for memo, want := range map[*model.Memo]int{nil: 0, {}: 0, {Kept: heap(7)}: 7} {
		if got := memo.Size(); got != want {
			t.Errorf("size is %d, want %d", got, want)
		}
	}
}
