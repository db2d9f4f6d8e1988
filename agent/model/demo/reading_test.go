package demo

import (
	"context"
	"strings"
	"testing"

	"nudge/agent/model"
)

// A turn that a limit had ended and that is let go on is still about what the person asked for.
func TestATurnThatIsLetGoOnIsAboutTheSame(t *testing.T) {
	req := model.Request{
		Tools: []model.Tool{{Name: "list_files", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
		Messages: []model.Message{
			{Role: model.User, Text: "list the files"},
			{Role: model.Assistant, Calls: []model.Call{{ID: "d1", Name: "list_files", Arguments: "{}"}}},
			{Role: model.ToolRole, CallID: "d1", Text: "notes.md 12"},
			{Role: model.Assistant, Text: "I stopped after 1 steps, which is the limit for one turn."},
			{Role: model.User, Text: "[ann lets you go on, with as much again: go on with the work.]"},
		},
	}
	answer, err := New().Answer(context.Background(), req, nil)
	if err != nil || len(answer.Calls) != 0 || !strings.Contains(answer.Text, "notes.md") {
		t.Errorf("it answers %q with %d calls, %v", answer.Text, len(answer.Calls), err)
	}
}
