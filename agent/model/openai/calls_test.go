package openai

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/agent/model/wire"
)

func TestStreamedCalls(t *testing.T) {
	w := readWires(t)
	for name, c := range map[string]struct{ wire, first, second string }{
		"no index":            {w.CallsWithoutIndex, "Oslo", "Lima"},
		"no index, in pieces": {w.CallsWithoutIndexInPieces, "Oslo", "Lima"},
		"one index":           {w.CallsWithOneIndex, "A", "B"},
	} {
		want := []model.Call{
			{ID: "c1", Name: "weather", Arguments: `{"city":"` + c.first + `"}`},
			{ID: "c2", Name: "weather", Arguments: `{"city":"` + c.second + `"}`},
		}
		got := answerOf(t, streamed(c.wire).with(t, Profile{}), hi)
		if !reflect.DeepEqual(got.Calls, want) || got.Finish != model.FinishCalls {
			t.Errorf("%s: answer is %+v", name, got)
		}
	}
}

// toolDelta is one piece of a call on the wire; index -1 means none.
func toolDelta(index int, id, name, args string) string {
	var at string
	if index >= 0 {
		at = fmt.Sprintf(`"index":%d,`, index)
	}
	return fmt.Sprintf(`{%s"id":%s,"function":{"name":%s,"arguments":%s}}`, at, quoted(id), quoted(name), quoted(args))
}

func TestCallSlots(t *testing.T) {
	call := func(id, name, args string) model.Call { return model.Call{ID: id, Name: name, Arguments: args} }
	for name, c := range map[string]struct {
		deltas []string
		want   []model.Call
	}{
		"interleaved": {
			[]string{toolDelta(0, "a", "f", "{"), toolDelta(1, "b", "g", "{"), toolDelta(0, "", "", "}"), toolDelta(1, "", "", "}")},
			[]model.Call{call("a", "f", "{}"), call("b", "g", "{}")},
		},
		"id and name in every piece": {
			[]string{toolDelta(0, "a", "f", `{"x"`), toolDelta(0, "a", "f", `:1`), toolDelta(0, "a", "f", `}`), toolDelta(0, "a", "f", "")},
			[]model.Call{call("a", "f", `{"x":1}`)},
		},
		"one id for two indexes": {
			[]string{toolDelta(0, "a", "f", `{"x":1}`), toolDelta(1, "a", "f", `{"x":2}`)},
			[]model.Call{call("a", "f", `{"x":1}`), call("call_1", "f", `{"x":2}`)},
		},
		"no ids, one index": {
			[]string{toolDelta(0, "", "f", `{"x":1}`), toolDelta(0, "", "f", `{"x":2}`)},
			[]model.Call{call("call_1", "f", `{"x":1}`), call("call_2", "f", `{"x":2}`)},
		},
		"no ids, name in every piece": {
			[]string{toolDelta(0, "", "f", `{"x"`), toolDelta(0, "", "f", `:1}`), toolDelta(0, "", "f", "\n")},
			[]model.Call{call("call_1", "f", `{"x":1}`+"\n")},
		},
		"no ids, no index, no arguments": {
			[]string{toolDelta(-1, "", "f", ""), toolDelta(-1, "", "g", "")},
			[]model.Call{call("call_1", "f", ""), call("call_2", "g", "")},
		},
		"made ids keep clear of given ones": {
			[]string{toolDelta(0, "", "f", "{}"), toolDelta(1, "call_1", "g", "{}"), toolDelta(2, "", "h", "{}")},
			[]model.Call{call("call_2", "f", "{}"), call("call_1", "g", "{}"), call("call_3", "h", "{}")},
		},
		"id comes late": {
			[]string{toolDelta(0, "", "f", "{"), toolDelta(0, "a", "", "}")},
			[]model.Call{call("a", "f", "{}")},
		},
		"two objects stay two": { // what follows refuses them; taking the first would run something that nobody asked for
			[]string{toolDelta(0, "a", "f", `{"x":1}`), toolDelta(0, "", "", `{"x":2}`)},
			[]model.Call{call("a", "f", `{"x":1}{"x":2}`)},
		},
		"nothing": {[]string{`{}`, `{"type":"function"}`}, nil},
	} {
		var wire strings.Builder
		for _, d := range c.deltas {
			wire.WriteString(delta1(`"tool_calls":[` + d + `]`))
		}
		got := answerOf(t, streamed(wire.String()+ended("tool_calls")).with(t, Profile{}), hi)
		if !reflect.DeepEqual(got.Calls, c.want) {
			t.Errorf("%s: calls are %+v, want %+v", name, got.Calls, c.want)
		}
	}
}

// TestArguments: whatever stands for arguments comes out as text, in one piece and streamed, with its digits.
func TestArguments(t *testing.T) {
	for raw, want := range map[string]string{
		`"arguments":""`: "", `"arguments":"  \n"`: "  \n", `"arguments":null`: "", `"x":1`: "", `"arguments":"null"`: "null",
		`"arguments":"{}"`: "{}", `"arguments":"not json"`: "not json",
		`"arguments":{ "id": 1729876543210987654, "n": [1.0, "a\u003c"] }`: `{"id":1729876543210987654,"n":[1.0,"a\u003c"]}`,
		`"arguments":"\"{\\\"items\\\":[\\\"a\\\"]}\""`:                    `"{\"items\":[\"a\"]}"`,
	} {
		call := `"tool_calls":[{"id":"c1","index":0,"function":{"name":"weather",` + raw + `}}]`
		for kind, c := range map[string]canned{"whole": wholeBody(message(call)), "streamed": streamed(delta1(call) + ended("stop"))} {
			got := answerOf(t, c.with(t, Profile{}), hi)
			if len(got.Calls) != 1 || got.Calls[0].Arguments != want || got.Finish != model.FinishCalls {
				t.Errorf("%s %s: answer is %+v, want arguments %q", kind, raw, got, want)
			}
		}
	}
}

func TestWholeCalls(t *testing.T) {
	body := message(`"content":null,"tool_calls":[` + strings.Join([]string{
		toolDelta(-1, "", "a", "{}"), toolDelta(-1, "x", "b", `{"n":1}`), toolDelta(-1, "x", "b", `{"n":2}`), toolDelta(-1, "x", "b", `{"n":1}`),
	}, ",") + `]`)
	want := []model.Call{
		{ID: "call_1", Name: "a", Arguments: "{}"}, {ID: "x", Name: "b", Arguments: `{"n":1}`}, {ID: "call_2", Name: "b", Arguments: `{"n":2}`},
	}
	if got := answerOf(t, wholeBody(body).with(t, Profile{}), hi); !reflect.DeepEqual(got.Calls, want) {
		t.Errorf("calls are %+v, want %+v", got.Calls, want)
	}
}

func TestCallWithoutName(t *testing.T) {
	c := streamed(delta1(`"tool_calls":[`+toolDelta(0, "a", "", "{}")+`]`) + ended("tool_calls"))
	if fault := faultOf(t, c.with(t, Profile{})); fault.Fault != model.FaultMalformed || !fault.Began {
		t.Errorf("fault is %+v, want malformed", fault)
	}
}

func TestTooManyCalls(t *testing.T) {
	calls := strings.TrimSuffix(strings.Repeat(toolDelta(-1, "", "f", "{}")+",", maxCalls+1), ",")
	if fault := faultOf(t, wholeBody(message(`"tool_calls":[`+calls+`]`)).with(t, Profile{})); fault.Fault != model.FaultMalformed {
		t.Errorf("fault is %+v, want malformed", fault)
	}
}

// TestCutCalls: no call of an answer that broke off is handed out, and none that the output limit cut.
func TestCutCalls(t *testing.T) {
	calls := delta1(`"tool_calls":[`+toolDelta(0, "a", "weather", `{"city":"A"}`)+`]`) + delta1(`"tool_calls":[`+toolDelta(1, "b", "weather", `{"ci`)+`]`)
	for name, wire := range map[string]string{
		"no end": calls, "closed": calls + "data: [DONE]\n\n", "in the middle of an event": calls + `data: {"choices":[{"delta":{"content":"x`,
	} {
		if fault := faultOf(t, streamed(wire).with(t, Profile{})); fault.Fault != model.FaultPassing || !fault.Began {
			t.Errorf("%s: fault is %+v, want a passing one that began", name, fault)
		}
	}
	for _, reason := range []string{"length", "content_filter"} {
		got := answerOf(t, streamed(calls+ended(reason)).with(t, Profile{}), hi)
		if len(got.Calls) != 1 || got.Calls[0].ID != "a" || got.Finish == model.FinishCalls || got.Finish == model.FinishStop {
			t.Errorf("%s: answer is %+v", reason, got)
		}
	}
	empty := delta1(`"tool_calls":[`+toolDelta(0, "a", "weather", ``)+`]`) + ended("length")
	if got := answerOf(t, streamed(empty).with(t, Profile{}), hi); len(got.Calls) != 0 || got.Finish != model.FinishLength {
		t.Errorf("a call that was cut before its arguments: answer is %+v", got)
	}
}

// TestSlotsAnySplit: however a server cuts and mixes the pieces, the calls come out as they were.
func TestSlotsAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		withIndex := rapid.Bool().Draw(t, "with index")
		var want []model.Call
		var queues [][]callDelta
		for i := range rapid.IntRange(1, 4).Draw(t, "calls") {
			args, _ := json.Marshal(map[string]string{"x": rapid.String().Draw(t, "x")})
			c := model.Call{ID: fmt.Sprint("id", i), Name: "f", Arguments: string(args)}
			want = append(want, c)
			var queue []callDelta
			for rest, first := c.Arguments, true; rest != ""; first = false {
				n := rapid.IntRange(1, len(rest)).Draw(t, "n")
				var d callDelta
				d.Function.Arguments, rest = arguments(rest[:n]), rest[n:]
				if withIndex {
					d.Index = &i
				}
				if first {
					d.ID, d.Function.Name = wire.Text(c.ID), wire.Text(c.Name)
				}
				queue = append(queue, d)
			}
			queues = append(queues, queue)
		}
		var s slots
		for at := 0; at < len(queues); {
			q := at // without an index, the pieces of one call follow each other; else each begins after the one before
			if withIndex && at > 0 && rapid.Bool().Draw(t, "earlier") {
				q = rapid.IntRange(0, at).Draw(t, "which")
			}
			if len(queues[q]) > 0 {
				s.add(queues[q][0])
				queues[q] = queues[q][1:]
			}
			if len(queues[at]) == 0 {
				at++
			}
		}
		if got, ok := s.calls(false); !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

var readFile = []model.Tool{{
	Name:   "read_file",
	Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"},"any":{}}}`),
}}

func TestTextCalls(t *testing.T) {
	req := model.Request{Messages: hi.Messages, Tools: readFile}
	quirk := Profile{TextToolCalls: true}
	for _, row := range readWires(t).TextCalls {
		var wire strings.Builder
		for _, r := range row[0] {
			wire.WriteString(delta1(`"content":` + quoted(string(r))))
		}
		c := streamed(wire.String() + ended("stop"))
		switch row[1] {
		case "retry":
			if fault := modeltest.FaultOf(t, c.with(t, quirk), req); fault.Fault != model.FaultPassing || !fault.Began {
				t.Errorf("%q: fault is %+v", row[0], fault)
			}
			continue
		case "text":
			if got := answerOf(t, c.with(t, quirk), req); got.Text != row[0] || got.Calls != nil {
				t.Errorf("%q: answer is %+v", row[0], got)
			}
			continue
		}
		got := answerOf(t, c.with(t, quirk), req)
		want := []model.Call{{ID: "call_1", Name: "read_file", Arguments: `{"path":"a.md"}`}}
		if !reflect.DeepEqual(got.Calls, want) || got.Text != "" || got.Finish != model.FinishCalls {
			t.Errorf("%q: answer is %+v", row[0], got)
		}
		plain := answerOf(t, wholeBody(message(`"content":`+quoted(row[0]))).with(t, Profile{}), req)
		if plain.Calls != nil || plain.Text != markupNotice {
			t.Errorf("%q without the quirk: answer is %+v", row[0], plain)
		}
		native := answerOf(t, wholeBody(message(`"content":`+quoted(row[0])+`,"tool_calls":[`+toolDelta(0, "n", "read_file", "{}")+`]`)).with(t, quirk), req)
		if len(native.Calls) != 1 || native.Calls[0].ID != "n" {
			t.Errorf("%q beside a native call: answer is %+v", row[0], native)
		}
		none := answerOf(t, wholeBody(message(`"content":`+quoted(row[0]))).with(t, quirk), model.Request{Messages: hi.Messages})
		if none.Calls != nil {
			t.Errorf("%q with no tools offered: answer is %+v", row[0], none)
		}
	}
}

func TestFindCalls(t *testing.T) {
	const hermes = `<tool_call>{"name":"read_file","arguments":{"path":"a"}}</tool_call>`
	for s, want := range map[string]struct {
		text string
		args []string
		cut  bool
	}{
		"one " + hermes + " two\n" + hermes:                                     {"one  two", []string{`{"path":"a"}`, `{"path":"a"}`}, false},
		"`" + hermes + "` is a call":                                            {"`" + hermes + "` is a call", nil, false},
		"~~~\n" + hermes + "\n~~~":                                              {"~~~\n" + hermes + "\n~~~", nil, false},
		"- x\n    ```\n" + hermes:                                               {"- x\n    ```\n" + hermes, nil, false},
		hermes + "\n`" + hermes + "`":                                           {"`" + hermes + "`", []string{`{"path":"a"}`}, false},
		"The tag <tool_call> is used":                                           {"The tag <tool_call> is used", nil, false},
		"<TOOL_CALL>{\"name\":\"read_file\",\"parameters\":\"{}\"}</tool_call>": {"", []string{"{}"}, false},
		`<tool_call>{"name":"read_file"}`:                                       {"", []string{"{}"}, false},
		`<tool_call>{"name":"read_file"} and more`:                              {`<tool_call>{"name":"read_file"} and more`, nil, false},
		`<tool_call>{"name":"read_file","arguments":{"path":"a`:                 {"", nil, true},
		"ok <tool_call>":                                                        {"ok", nil, true},
		"<tool_call><func":                                                      {"", nil, true},
		"<tool_call>read_f":                                                     {"", nil, true},
		"<tool_call>read_file":                                                  {"", nil, true},
		"<tool_call>write":                                                      {"<tool_call>write", nil, false},
		"<function=read_file>":                                                  {"", nil, true},
		"<function=read_fi":                                                     {"", nil, true},
		"<function=other>{}":                                                    {"<function=other>{}", nil, false},
		"<function=read_file></function>":                                       {"", []string{"{}"}, false},
		"<function=read_file><parameter=lines>7</parameter><parameter=path>7</parameter><parameter=any>x\"y</parameter></function>": {"", []string{`{"lines":7,"path":"7","any":"x\"y"}`}, false},
		"<function=read_file><parameter=lines>7</parameter>":                                                                        {"", nil, true},
		"<function=read_file><parameter=lines>7</parameter><p":                                                                      {"", nil, true},
		"<tool_call>read_file<arg_key>lines</arg_key><arg_value>12</arg_value>":                                                     {"", nil, true},
		"<tool_call>read_file\n<arg_key>lines</arg_key>\n<arg_value>12</arg_value>\n</tool_call>":                                   {"", []string{`{"lines":12}`}, false},
		"<tool_call>read_file<arg_key>lines</arg_key>12</tool_call>":                                                                {"<tool_call>read_file<arg_key>lines</arg_key>12</tool_call>", nil, false},
		"<tool_call>read_file</tool_call>":                                                                                          {"", []string{"{}"}, false},
		"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"</tool_call>\"}}</tool_call>":                                 {"", []string{`{"path":"</tool_call>"}`}, false},
	} {
		got := findCalls(s, readFile)
		var args []string
		for _, c := range got.calls {
			args = append(args, c.Arguments)
		}
		if got.text != want.text || !reflect.DeepEqual(args, want.args) || got.cut != want.cut {
			t.Errorf("%q: got %+v, want %+v", s, got, want)
		}
	}
}

// TestTextCallHeld: text before a call is told, the call is not, and text after it follows.
func TestTextCallHeld(t *testing.T) {
	wire := ""
	for _, piece := range []string{"I look. <tool", `_call>{"name":"read_file","arguments":{}}`, "</tool_call> Wait."} {
		wire += delta1(`"content":` + quoted(piece))
	}
	var pieces []string
	c := streamed(wire+ended("stop")).with(t, Profile{TextToolCalls: true})
	got, err := c.Answer(t.Context(), model.Request{Messages: hi.Messages, Tools: readFile}, func(s string) { pieces = append(pieces, s) })
	if err != nil || len(got.Calls) != 1 || got.Text != "I look.  Wait." {
		t.Fatalf("answer is %+v, %v", got, err)
	}
	if want := []string{"I look.", "  Wait."}; !reflect.DeepEqual(pieces, want) {
		t.Errorf("said %q, want %q", pieces, want)
	}
}
