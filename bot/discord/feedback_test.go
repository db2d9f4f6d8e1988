package discord

import (
	"testing"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
)

// TestWhatComesOnceHasNoLess: there is nothing of a reminder to have less of.
func TestWhatComesOnceHasNoLess(t *testing.T) {
	for once, want := range map[bool]int{true: 1, false: 2} {
		rows := feedbackRows(agent.Reply{Kind: agent.Notify, ID: "n00c0ffee", Heartbeat: "call", Text: "Call Bob.", Once: once})
		if buttons, is := rows[0].(discordgo.ActionsRow); !is || len(buttons.Components) != want || len(rows) != 2 {
			t.Errorf("once %v: %+v", once, rows)
		}
	}
}
