package hook

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/model"
)

func text(value string) *string { return &value }

// points are those that there are.
var points = []agent.HookPoint{agent.BeforeStep, agent.BeforeModel, agent.BeforeTool, agent.AfterTool, agent.AfterStep}

// parts are rulings of one field each, with the points that they belong to.
var parts = []struct {
	field  string
	ruling agent.Ruling
	at     []agent.HookPoint
}{
	{"stop", agent.Ruling{Stop: "no"}, []agent.HookPoint{agent.BeforeStep, agent.BeforeModel, agent.BeforeTool, agent.AfterStep}},
	{"system", agent.Ruling{System: text("")}, []agent.HookPoint{agent.BeforeModel}},
	{"messages", agent.Ruling{Messages: []model.Message{{Role: model.User, Text: "hi"}}}, []agent.HookPoint{agent.BeforeModel}},
	{"append", agent.Ruling{Append: "x"}, []agent.HookPoint{agent.BeforeModel}},
	{"hide", agent.Ruling{Hide: []string{"plan"}}, []agent.HookPoint{agent.BeforeModel}},
	{"refuse", agent.Ruling{Refuse: "no"}, []agent.HookPoint{agent.BeforeTool}},
	{"answer", agent.Ruling{Answer: text("")}, []agent.HookPoint{agent.BeforeTool}},
	{"result", agent.Ruling{Result: text("")}, []agent.HookPoint{agent.AfterTool}},
}

func TestEveryFieldHasItsPoints(t *testing.T) {
	if fields := reflect.TypeFor[agent.Ruling]().NumField(); fields != len(parts) {
		t.Errorf("a ruling has %d fields, of which %d are known here", fields, len(parts))
	}
	for _, part := range parts {
		for _, at := range points {
			err := part.ruling.Fits(at)
			if slices.Contains(part.at, at) {
				if err != nil {
					t.Errorf("%s at %s: %v", part.field, at, err)
				}
				continue
			}
			if want := fmt.Sprintf("the ruling has %q, which a hook at %s cannot rule", part.field, at); err == nil || err.Error() != want {
				t.Errorf("%s at %s gives %v; want %s", part.field, at, err, want)
			}
		}
	}
	for _, at := range points {
		if err := (agent.Ruling{}).Fits(at); err != nil {
			t.Errorf("nothing at %s: %v", at, err)
		}
	}
	if err := (agent.Ruling{}).Fits("before_lunch"); err == nil || err.Error() != `there is no point "before_lunch"` {
		t.Errorf("an unknown point gives %v", err)
	}
	if err := (agent.Ruling{Refuse: "no", Answer: text("yes")}).Fits(agent.BeforeTool); err == nil || !strings.Contains(err.Error(), `both "refuse" and "answer"`) {
		t.Errorf("a refusal with an answer gives %v", err)
	}
}

func TestRulingsAreRead(t *testing.T) {
	for printed, want := range map[string]agent.Ruling{
		"":                          {},
		" \r\n\t":                   {},
		"{}":                        {},
		"\n {\"stop\": \"no\"} \n":  {Stop: "no"},
		`{"hide":[]}`:               {Hide: []string{}},
		`{"system":"","append":""}`: {System: text("")},
		`{"refuse":"null {}"}`:      {Refuse: "null {}"},
		`{"answer":"\u00e9\n"}`:     {Answer: text("é\n")},
		`{"result":"<&>"}`:          {Result: text("<&>")},
		`{"messages":[{"role":"assistant","calls":[{"id":"1","name":"plan","arguments":"{\"A\":null,\"A\":1}"}]},{"role":"tool","call_id":"1","text":"ok"}]}`: {Messages: []model.Message{
			{Role: model.Assistant, Calls: []model.Call{{ID: "1", Name: "plan", Arguments: `{"A":null,"A":1}`}}},
			{Role: model.ToolRole, CallID: "1", Text: "ok"},
		}},
	} {
		if got, err := decode([]byte(printed)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %+v, %v; want %+v", printed, got, err, want)
		}
	}
}

// bad lists what is no ruling, with a part of the error.
var bad = []struct{ name, printed, want string }{
	{"a word", "yes", "not one JSON object: invalid character 'y'"},
	{"half an object", `{"stop":"n`, "not one JSON object: unexpected end of JSON input"},
	{"two objects", `{} {}`, "not one JSON object: invalid character '{' after"},
	{"an object and a remark", "{}\nok", "not one JSON object: invalid character 'o' after"},
	{"a remark and an object", "ok\n{}", "not one JSON object"},
	{"a list", `[{"stop":"no"}]`, "JSON, but not an object"},
	{"null", "null", "JSON, but not an object"},
	{"a text", `"{}"`, "JSON, but not an object"},
	{"a mark in front", "\xef\xbb\xbf{}", "not one JSON object"},
	{"not text", "{\"stop\":\"\xff\"}", "not UTF-8"},
	{"a NUL", "\x00", "not one JSON object"},
	{"an unknown field", `{"deny":"no"}`, `unknown field "deny"`},
	{"a field in capitals", `{"Stop":"no"}`, `unknown field "Stop"`},
	{"a field that folds to another", `{"\u017ftop":"no"}`, `unknown field "ſtop"`},
	{"an unknown field inside", `{"messages":[{"role":"user","content":"hi"}]}`, `unknown field "content"`},
	{"a field in capitals inside", `{"messages":[{"Role":"user"}]}`, `unknown field "Role"`},
	{"a long field", `{"` + strings.Repeat("x", 1000) + `":1}`, `unknown field "` + strings.Repeat("x", 40) + `…"`},
	{"a field of two lines", `{"a\nb":1}`, `unknown field "a b"`},
	{"a field twice", `{"refuse":"no","refuse":"yes"}`, `the field "refuse" stands there twice`},
	{"a field twice in disguise", `{"refuse":"no","ref\u0075se":"yes"}`, `the field "refuse" stands there twice`},
	{"a field twice inside", `{"messages":[{"role":"user","text":"a","text":"b"}]}`, `the field "text" stands there twice`},
	{"a null", `{"refuse":null}`, "there is a null in it"},
	{"a null inside", `{"hide":["plan",null]}`, "there is a null in it"},
	{"another type", `{"stop":true}`, "cannot unmarshal bool into Go struct field Ruling.stop"},
	{"one in place of a list", `{"hide":"plan"}`, "cannot unmarshal string into Go struct field Ruling.hide"},
	{"arguments that are no text", `{"messages":[{"role":"assistant","calls":[{"id":"1","name":"x","arguments":{}}]}]}`, "cannot unmarshal object"},
	{"no reason to stop", `{"stop":""}`, `an empty "stop"`},
	{"no reason to refuse", `{"refuse":" \n"}`, `an empty "refuse"`},
	{"no conversation", `{"messages":[]}`, `an empty "messages"`},
	{"deep", strings.Repeat("[", MaxOutput), "exceeded max depth"},
	{"deep in an object", `{"stop":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}", "cannot unmarshal array"},
}

func TestWhatIsNoRuling(t *testing.T) {
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			got, err := decode([]byte(c.printed))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is read as %+v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestRulingsComeBack writes any ruling as JSON and reads it.
func TestRulingsComeBack(t *testing.T) {
	word := rapid.StringOf(rapid.RuneFrom(nil, unicode.L, unicode.Z, unicode.S, unicode.P, unicode.Cc))
	maybe := rapid.Ptr(word, true)
	rapid.Check(t, func(t *rapid.T) {
		want := agent.Ruling{
			System: maybe.Draw(t, "system"), Append: word.Draw(t, "append"), Answer: maybe.Draw(t, "answer"), Result: maybe.Draw(t, "result"),
		}
		for name, reason := range map[string]*string{"stop": &want.Stop, "refuse": &want.Refuse} {
			*reason = word.Filter(func(s string) bool { return s == "" || strings.TrimSpace(s) != "" }).Draw(t, name)
		}
		if hidden := rapid.SliceOf(word).Draw(t, "hide"); len(hidden) > 0 {
			want.Hide = hidden
		}
		for _, said := range rapid.SliceOf(word).Draw(t, "messages") {
			want.Messages = append(want.Messages, model.Message{Role: model.User, Text: said})
		}
		printed, err := json.MarshalIndent(want, "", rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decode(printed); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is read as %+v, %v", printed, got, err)
		}
	})
}

// FuzzDecode feeds any bytes: they are a ruling that says all that was written, or an error of one short line.
func FuzzDecode(f *testing.F) {
	for _, c := range bad {
		if len(c.printed) < 20_000 {
			f.Add([]byte(c.printed))
		}
	}
	for _, part := range parts {
		printed, err := json.Marshal(part.ruling)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(printed)
	}
	f.Add([]byte(`{"messages":[{"role":"assistant","text":"a","reasoning":"b","calls":[{"id":"1","name":"x","arguments":"{}"}]}],"hide":["a"]}`))
	f.Fuzz(func(t *testing.T, printed []byte) {
		got, err := decode(printed)
		if err != nil {
			if said := err.Error(); !reflect.DeepEqual(got, agent.Ruling{}) || strings.ContainsAny(said, "\n\r") || len(said) > 500 {
				t.Fatalf("%q gives %+v and the error %q", printed, got, said)
			}
			return
		}
		if strings.TrimSpace(string(printed)) == "" {
			if !reflect.DeepEqual(got, agent.Ruling{}) {
				t.Fatalf("nothing is read as %+v", got)
			}
			return
		}
		var written map[string]any
		if err := json.Unmarshal(printed, &written); err != nil {
			t.Fatalf("%q is read as %+v, but is no object: %v", printed, got, err)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var kept map[string]any
		if err := json.Unmarshal(again, &kept); err != nil {
			t.Fatal(err)
		}
		for field, value := range written {
			if empty := value == "" || reflect.DeepEqual(value, []any{}); empty {
				continue // omitted when empty, and nothing by that
			}
			if field != "messages" && !reflect.DeepEqual(kept[field], value) {
				t.Fatalf("%q lost %s: it is read as %s", printed, field, again)
			}
		}
		if reread, err := decode(again); err != nil || len(reread.Messages) != len(got.Messages) || reread.Stop != got.Stop || reread.Refuse != got.Refuse {
			t.Fatalf("%q is read as %s, and that as %+v, %v", printed, again, reread, err)
		}
	})
}
