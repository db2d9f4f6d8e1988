package web

import (
	"context"
	"slices"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/bot"
)

// A card of the hub's own, which no journal has, is there for a tab that comes in later, and once.
func TestATabShowsWhoAsksToBeLetIn(t *testing.T) {
	store := emptyStore(t)
	hub := bot.NewHub(bot.Config{Store: store, Grace: time.Millisecond})
	ag, err := agent.New(agent.Config{
		Store: store, Model: &agenttest.Model{T: t, Script: func(model.Request) model.Answer { return agenttest.Say("done") }}, Spec: agent.ModelSpec{MaxOutput: 1000},
		Outgoing: hub.Outgoing,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Serve(context.Background(), ag); err != nil { // with nobody to listen to it ends at once
		t.Fatal(err)
	}
	eve := agent.Person{ID: "slack:T1:U9", Name: "eve"}
	got, err := hub.Receive(t.Context(), bot.Event{Keys: []string{"k"}, From: eve, Address: eve.ID.Home(), Text: "let me in", At: time.Now()})
	if err != nil || got != bot.Refused {
		t.Fatalf("admission %d, %v", got, err)
	}
	ag.Close(t.Context())
	s, err := New(Config{Listen: "127.0.0.1:0", Store: store, Person: me})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	cards := slices.DeleteFunc(see(t, s).Lines, func(l line) bool { return !l.IsCard() })
	if len(cards) != 1 || !slices.Equal(cards[0].Choices, []string{"Allow", "Ignore"}) || cards[0].ID == "" {
		t.Errorf("the tab shows %+v", cards)
	}
}
