package openai

import (
	"net/http"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
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
	f.Fuzz(func(t *testing.T, line []byte, asText bool) {
		modeltest.AnswerToAnything(t, line, func(http *http.Client) model.Model {
			return mustNew(t, Config{BaseURL: "https://llm.test", Model: "m", Key: testKey, Stream: true, Profile: Profile{TextToolCalls: asText}, HTTP: http})
		})
	})
}
