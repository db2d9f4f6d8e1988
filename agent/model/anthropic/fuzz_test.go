package anthropic

import (
	"net/http"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
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
	f.Fuzz(func(t *testing.T, line []byte) {
		answer, said, fault := modeltest.AnswerToAnything(t, line, func(http *http.Client) model.Model {
			return mustNew(t, Config{BaseURL: "https://llm.test", Model: "m", Key: testKey, Stream: true, HTTP: http})
		})
		if fault != nil {
			return
		}
		if said != answer.Text {
			t.Errorf("said %q, but the text is %q", said, answer.Text)
		}
		req := hi
		req.Messages = append(req.Messages[:1:1], model.Message{Role: model.Assistant, Text: answer.Text, Calls: answer.Calls, Reasoning: answer.Reasoning})
		if why := refusal(t, req); why != "" {
			t.Error(why)
		}
	})
}
