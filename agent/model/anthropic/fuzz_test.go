package anthropic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"nudge/agent/model"
)

// FuzzAnswer: any bytes give an answer that keeps its promises and can be sent back, or an *model.Error, however they
// are cut on the way.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		began + says("0", " hi \n") + ended("end_turn"),
		began + thinks("0", "hm", "s") + says("1", "a") + calls("2", "c1", "weather", `{"a":`, `1}`) + calls("3", "", "weather") + ended("tool_use"),
		began + calls("0", "c1", "weather", `{"a"`) + ended("max_tokens"),
		began + "event: error\ndata: " + anError("overloaded_error", "x") + "\n\n",
		`{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"b","signature":"c"},{"type":"tool_use","id":"","name":"f","input":{"a":1}}],"usage":{"input_tokens":1}}`,
		"data: {}\n\n", "\ufeff", "data", ":", "\r\r\n\n", `{"type":"error"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		var answers [2]model.Answer
		var faults [2]*model.Error
		for i, body := range []io.Reader{strings.NewReader(string(wire)), iotest.OneByteReader(strings.NewReader(string(wire)))} {
			in := streamed()
			in.body = body
			c := mustNew(t, Config{BaseURL: "https://llm.test", Model: "m", Key: testKey, Stream: true, HTTP: &http.Client{Transport: in}})
			var said strings.Builder
			var err error
			answers[i], err = c.Answer(context.Background(), hi, func(piece string) {
				if piece == "" {
					t.Error("said nothing, aloud")
				}
				said.WriteString(piece)
			})
			if err != nil && !errors.As(err, &faults[i]) {
				t.Fatalf("error is %T", err)
			}
			if err == nil && said.String() != answers[i].Text {
				t.Errorf("said %q, but the text is %q", said.String(), answers[i].Text)
			}
			checkAny(t, answers[i], faults[i])
		}
		if (faults[0] == nil) != (faults[1] == nil) || faults[0] == nil && !reflect.DeepEqual(answers[0], answers[1]) {
			t.Errorf("at once %+v, %v; byte by byte %+v, %v", answers[0], faults[0], answers[1], faults[1])
		}
	})
}

func checkAny(t *testing.T, answer model.Answer, fault *model.Error) {
	if fault != nil {
		checkSay(t, fault)
		return
	}
	ids := map[string]bool{"": true}
	for _, c := range answer.Calls {
		if ids[c.ID] || c.Name == "" {
			t.Errorf("calls are %+v", answer.Calls)
		}
		ids[c.ID] = true
	}
	if !utf8.ValidString(answer.Text) || strings.TrimSpace(answer.Text) != answer.Text {
		t.Errorf("text is %q", answer.Text)
	}
	if u := answer.Usage; u.In < 0 || u.Out < 0 || u.Cached > u.In || u.Known != (u.In+u.Out > 0) {
		t.Errorf("usage is %+v", u)
	}
	if answer.Finish == model.FinishCalls != (len(answer.Calls) > 0) && answer.Finish != model.FinishLength {
		t.Errorf("finish is %q with %d calls", answer.Finish, len(answer.Calls))
	}
	req := hi
	req.Messages = append(req.Messages[:1:1], model.Message{Role: model.Assistant, Text: answer.Text, Calls: answer.Calls, Reasoning: answer.Reasoning})
	if why := refusal(t, req); why != "" {
		t.Error(why)
	}
}
