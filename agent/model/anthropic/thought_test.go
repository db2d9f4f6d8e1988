package anthropic

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

func thinks(index, text, signature string) string {
	return blockOf(index, `"type":"thinking","thinking":"","signature":""`,
		`"type":"thinking_delta","thinking":`+quoted(text), `"type":"signature_delta","signature":"`+signature+`"`)
}

// sentBack returns the blocks in which an answer is sent back, and whether the provider takes them.
func sentBack(t *testing.T, name string, answer model.Answer) []modeltest.Block {
	t.Helper()
	req := hi
	req.Messages = append(req.Messages[:1:1], model.Message{
		Role: model.Assistant, Text: answer.Text, Calls: answer.Calls, Reasoning: answer.Reasoning,
	}, model.Message{Role: model.User, Text: "go on"})
	body, err := mustNew(t, Config{Model: name, Profile: Profile{NoCache: true}}).encode(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var sent modeltest.MessagesRequest
	if err := json.Unmarshal(bytes.Join(body, nil), &sent); err != nil {
		t.Fatal(err)
	}
	if why := sent.Refusal(); why != "" {
		t.Errorf("%s: %s", why, bytes.Join(body, nil))
	}
	if len(sent.Messages) < 3 {
		return nil
	}
	return sent.Messages[1].Content
}

// TestThoughtsGoBack: what the model thought goes back as it came and where it stood.
func TestThoughtsGoBack(t *testing.T) {
	wire := began + thinks("0", "First <look>.", "c2ln") + blockOf("1", `"type":"redacted_thinking","data":"ZGF0YQ"`) +
		says("2", "Grüße. ") + thinks("3", "", "c2lnMg") + calls("4", "c1", "weather", `{"city":"Oslo"}`) +
		thinks("5", "again", "c2lnMw") + calls("6", "c2", "weather", `{}`) + ended("tool_use")
	got := answerOf(t, streamed(wire).client(t), hi)
	want := []modeltest.Block{
		{Type: "thinking", Thinking: "First <look>.", Signature: "c2ln"}, {Type: "redacted_thinking", Data: "ZGF0YQ"}, {Type: "text", Text: "Grüße."},
		{Type: "thinking", Signature: "c2lnMg"}, {Type: "tool_use", ID: "c1", Name: "weather", Input: json.RawMessage(`{"city":"Oslo"}`)},
		{Type: "thinking", Thinking: "again", Signature: "c2lnMw"}, {Type: "tool_use", ID: "c2", Name: "weather", Input: json.RawMessage(`{}`)},
	}
	if sent := sentBack(t, "test-model", got); !reflect.DeepEqual(sent, want) {
		t.Errorf("%s was sent back as\n%+v\nwant\n%+v", got.Reasoning, sent, want)
	}
	for _, b := range sentBack(t, "another", got) {
		if strings.Contains(b.Type, "thinking") {
			t.Errorf("another model's thought was sent: %+v", b)
		}
	}
}

func TestThoughtsBetweenTexts(t *testing.T) {
	got := answerOf(t, streamed(began, says("0", "One.\n"), thinks("1", "hm", "s"), says("2", "\nTwo."), thinks("3", "cut", "s"), ended("max_tokens")).client(t), hi)
	want := []modeltest.Block{{Type: "text", Text: "One."}, {Type: "thinking", Thinking: "hm", Signature: "s"}, {Type: "text", Text: "Two."}}
	if sent := sentBack(t, "test-model", got); got.Text != "One.\n\nTwo." || !reflect.DeepEqual(sent, want) {
		t.Errorf("%q was sent back as %+v", got.Text, sent)
	}
}

// TestThoughtsThatStay: a thought without a signature is kept as plain text, and does not go back.
func TestThoughtsThatStay(t *testing.T) {
	got := answerOf(t, streamed(began, thinks("0", "One.", ""), says("1", "hi"), thinks("2", "Two.", ""), ended("end_turn")).client(t), hi)
	if got.Reasoning != "One.\n\nTwo." || got.Text != "hi" || len(sentBack(t, "test-model", got)) != 1 {
		t.Errorf("answer is %+v", got)
	}
	got = answerOf(t, streamed(began, thinks("0", "One.", ""), thinks("1", "Two.", "s"), says("2", "hi"), ended("end_turn")).client(t), hi)
	if sent := sentBack(t, "test-model", got); len(sent) != 2 || sent[0].Thinking != "Two." {
		t.Errorf("%s was sent back as %+v", got.Reasoning, sent)
	}
}

// TestThoughtsMayNotFit: places that no longer fit the text, because it was changed, lose nothing.
func TestThoughtsMayNotFit(t *testing.T) {
	for _, at := range []thought{{AfterText: 1}, {AfterText: 99}, {AfterText: -3, AfterCalls: -3}, {AfterCalls: 99}} {
		at.Type, at.Signature = kindThinking, "s"
		answer := model.Answer{Text: "é!", Reasoning: packThoughts([]thought{at}, "m"), Calls: []model.Call{{ID: "c1", Name: "weather"}}}
		text, ids := "", ""
		for _, b := range sentBack(t, "m", answer) {
			text, ids = text+b.Text, ids+b.ID
		}
		if text != "é!" || ids != "c1" {
			t.Errorf("%+v: sent the text %q and the calls %q", at, text, ids)
		}
	}
}

// TestThinkingOverTheWire: a thought makes the round through a provider that checks it.
func TestThinkingOverTheWire(t *testing.T) {
	for _, stream := range []bool{true, false} {
		server := modeltest.NewMessagesServer(t, func(n int, _ modeltest.MessagesRequest) modeltest.Reply {
			if n == 1 {
				return modeltest.Reply{Reasoning: "I should look.", Calls: []model.Call{{ID: "c1", Name: "weather", Arguments: "{}"}}}
			}
			return modeltest.Reply{Text: "Rain."}
		})
		c := mustNew(t, Config{BaseURL: server.URL(), Model: "m", Stream: stream, HTTP: server.Client()})
		first := answerOf(t, c, hi)
		req := hi
		req.Messages = append(req.Messages[:1:1], model.Message{Role: model.Assistant, Calls: first.Calls, Reasoning: first.Reasoning},
			model.Message{Role: model.ToolRole, CallID: "c1", Text: "rain"})
		if got := answerOf(t, c, req); got.Text != "Rain." {
			t.Errorf("answer is %+v", got)
		}
		sent := server.Requests()[1].Messages[1].Content
		if len(sent) != 2 || sent[0].Thinking != "I should look." || sent[0].Signature == "" {
			t.Errorf("streamed %t: the thought was sent back as %+v", stream, sent)
		}
	}
}
