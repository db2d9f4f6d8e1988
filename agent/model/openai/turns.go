package openai

import (
	"context"
	"log/slog"
	"strings"
)

// What is put where a strict chat template wants somebody to speak and nobody did.
const (
	userStandIn      = "(The conversation goes on.)"
	assistantStandIn = "(Go on.)"
)

// takeTurns makes a conversation fit templates that want user and assistant to alternate, beginning with the user,
// tool calls and their results aside. Every text of a user survives, in order. Results without their call are left
// out: as anything but a result they would speak with a person's voice.
//
// A conversation that is resumed begins with an answer to what was sent before.
func takeTurns(ctx context.Context, in []wireMessage, resumed bool) []wireMessage {
	out := make([]wireMessage, 0, len(in))
	open := map[string]bool{} // the calls of the last assistant message
	last := ""
	if resumed {
		last = roleUser // or a result, which comes to the same
	}
	for _, m := range in {
		if len(out) > 0 {
			last = out[len(out)-1].Role
		}
		switch m.Role {
		case roleUser:
			out = appendTurnOfUser(out, last, m)
			clear(open)
		case roleAssistant:
			out = appendTurnOfAssistant(out, last, m)
			clear(open)
			for _, call := range m.ToolCalls {
				open[call.ID] = true
			}
		case roleTool:
			if !open[m.ToolCallID] {
				slog.WarnContext(ctx, "a tool result without its call was not sent to the model", "call", m.ToolCallID)
				continue
			}
			out = append(out, m)
		}
	}
	return out
}

func appendTurnOfUser(out []wireMessage, last string, m wireMessage) []wireMessage {
	switch last {
	case roleUser:
		return appendUser(out, m)
	case roleTool:
		text := assistantStandIn
		out = append(out, wireMessage{Role: roleAssistant, Content: &text})
	case roleAssistant:
		// Calls that nobody answered cannot be sent; the orphans among the results are gone by now.
		out[len(out)-1].ToolCalls = nil
		if prev := &out[len(out)-1]; prev.Content == nil || strings.TrimSpace(*prev.Content) == "" {
			text := assistantStandIn
			prev.Content = &text
		}
	}
	return append(out, m)
}

func appendTurnOfAssistant(out []wireMessage, last string, m wireMessage) []wireMessage {
	switch last {
	case "":
		text := userStandIn
		out = append(out, wireMessage{Role: roleUser, Content: &text})
	case roleAssistant:
		prev := out[len(out)-1]
		m.Content, m.begins = joined(prev.Content, m.Content), prev.begins
		out = out[:len(out)-1]
	}
	return append(out, m)
}
