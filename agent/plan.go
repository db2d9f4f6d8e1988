package agent

import (
	"context"
	"encoding/json"
	"strings"
)

// The names of tools whose results the session's state knows.
const (
	planTool   = "plan"
	notifyTool = "notify"
)

// undone stands before an item of the plan that is not done.
const undone = "☐ "

type planArguments struct {
	Items []struct {
		Text string `json:"text"`
		Done bool   `json:"done"`
	} `json:"items"`
}

// planTools is the checklist. Its state is the latest call's arguments, so the journal has it and nothing else need.
func planTools() Tool {
	return Tool{
		Spec: Spec{
			Name:        planTool,
			Description: "Write or update your checklist, whole. Use it first when the work has several parts, and after each part.",
			Schema: json.RawMessage(`{"type":"object","properties":{"items":{"type":"array","maxItems":50,"items":{"type":"object",` +
				`"properties":{"text":{"type":"string"},"done":{"type":"boolean"}},"required":["text","done"],"additionalProperties":false}}},` +
				`"required":["items"],"additionalProperties":false}`),
			Effect: Idempotent,
		},
		Run: func(_ context.Context, in Invocation) (Result, error) {
			var plan planArguments
			if err := in.Decode(&plan); err != nil {
				return Result{}, err
			}
			text := plan.String()
			in.Progress(text)
			return Result{Text: text}, nil
		},
	}
}

// String is the checklist in words.
func (p planArguments) String() string {
	if len(p.Items) == 0 {
		return "the plan is empty"
	}
	lines := make([]string, len(p.Items))
	for i, item := range p.Items {
		box := undone
		if item.Done {
			box = "☑ "
		}
		lines[i] = box + item.Text
	}
	return strings.Join(lines, "\n")
}

// noticeOf is the text of a notify call.
func noticeOf(arguments string) string {
	var call struct{ Text string }
	if json.Unmarshal([]byte(arguments), &call) != nil {
		return ""
	}
	return call.Text
}
