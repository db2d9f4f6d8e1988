package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"nudge/agent/model"
)

// FuzzAnswer: any bytes give an answer that keeps its promises or an *model.Error, however they are cut on the way.
func FuzzAnswer(f *testing.F) {
	w := readWires(f)
	for _, seed := range append(append([]string{
		w.CallsWithoutIndex, w.CallsWithOneIndex, w.ChoicesMissing, w.PartsStreamed, w.Reasoning,
		"data: {\"error\":{\"code\":429}}\n\n", "\ufeff", "data", ":", "\r\r\n\n", `{"choices":[{"message":{"content":"<think>`,
	}, w.Framing...), w.Parts...) {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, wire []byte, asText bool) {
		var answers [2]model.Answer
		var faults [2]*model.Error
		for i, body := range []io.Reader{strings.NewReader(string(wire)), iotest.OneByteReader(strings.NewReader(string(wire)))} {
			in := streamed("")
			in.body = body
			c, err := New(Config{BaseURL: "https://llm.test", Model: "m", Key: testKey, Stream: true,
				Profile: Profile{TextToolCalls: asText}, HTTP: &http.Client{Transport: in}})
			if err != nil {
				t.Fatal(err)
			}
			answers[i], err = c.Answer(context.Background(), hi, func(piece string) {
				if piece == "" {
					t.Error("said nothing, aloud")
				}
			})
			if err != nil && !errors.As(err, &faults[i]) {
				t.Fatalf("error is %T", err)
			}
			checkAny(t, answers[i], faults[i])
		}
		if faults[0] == nil && faults[1] == nil && answers[0].Text != answers[1].Text || (faults[0] == nil) != (faults[1] == nil) {
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
}
