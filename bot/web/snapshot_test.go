package web

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/bot"
	"nudge/memory"
)

// undelivered is a server over a store in which a turn has ended, or waits, and nothing was delivered.
func undelivered(t *testing.T, say string, script agenttest.Script) (*Server, memory.Store) {
	t.Helper()
	store := emptyStore(t)
	remove := agenttest.Tool("delete", agent.Effectful, agent.PolicyAsk, func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: "gone"}, nil
	})
	ag, err := agent.New(agent.Config{
		Store: store, Model: &agenttest.Model{T: t, Script: script}, Spec: agent.ModelSpec{Name: "scripted", Window: 100_000, MaxOutput: 1000},
		Tools: []agent.Tool{remove},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ag.Receive(t.Context(), agent.Message{
		Keys: []string{"k"}, ID: "k", Session: home, Address: home, Provenance: agent.Human, From: me, At: time.Now(), Text: say,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ag.WaitIdle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ag.Close(t.Context())
	s, err := New(Config{Listen: "127.0.0.1:0", Store: store, Person: me})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, store
}

// see is what a fresh tab gets.
func see(t *testing.T, s *Server) snapshot {
	t.Helper()
	c, leave := s.enter(home)
	defer leave()
	r, first, err := s.firstSight(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	_, data, _ := strings.Cut(first, "data: ")
	var shot snapshot
	if err := json.Unmarshal([]byte(data), &shot); err != nil {
		t.Fatal(err)
	}
	return shot
}

func kindsOf(lines []line) []agent.Kind {
	var kinds []agent.Kind
	for _, l := range lines {
		kinds = append(kinds, l.Kind)
	}
	return kinds
}

// TestSnapshotMeetsOutbox shows what is both in the journal and about to be said: once, and by the name by which it
// will be said.
func TestSnapshotMeetsOutbox(t *testing.T) {
	s, store := undelivered(t, "hello", func(model.Request) model.Answer { return agenttest.Say("hello yourself") })
	shot := see(t, s)
	if kinds := kindsOf(shot.Lines); !slices.Equal(kinds, []agent.Kind{agent.Said, agent.Final, agent.SettledMark}) {
		t.Fatalf("the snapshot shows %v", kinds)
	}
	if shot.Working || shot.Turn != "" {
		t.Errorf("an ended turn is told as %+v", shot)
	}
	var names []string
	hub := bot.NewHub(bot.Config{Store: store})
	adapter := &listener{said: make(chan bot.Delivery, 10)}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- hub.Serve(ctx, nil, adapter) }()
	for range 2 {
		names = append(names, (<-adapter.said).Key)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if shown := []string{shot.Lines[1].Parcel, shot.Lines[2].Parcel}; !slices.Equal(shown, names) {
		t.Errorf("shown as %q, said as %q", shown, names)
	}
}

// listener is an adapter that only notes what is said.
type listener struct{ said chan bot.Delivery }

func (l *listener) Platform() string         { return "web" }
func (l *listener) Serves(string) bool       { return true }
func (l *listener) Abilities() bot.Abilities { return bot.Abilities{} }
func (l *listener) Listen(ctx context.Context, _ bot.Receiver) error {
	<-ctx.Done()
	return nil
}

func (l *listener) Say(_ context.Context, d bot.Delivery) (string, error) {
	l.said <- d
	return "", nil
}

func TestSnapshotOfCard(t *testing.T) {
	hidden := "harmless \u202egnp.exe"
	arguments, err := json.Marshal(map[string]string{"x": hidden})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := undelivered(t, "delete it", func(model.Request) model.Answer { return agenttest.Do(agenttest.Call(1, "delete", string(arguments))) })
	shot := see(t, s)
	cards := 0
	for _, l := range shot.Lines {
		if l.Kind != agent.Approval {
			continue
		}
		cards++
		if l.Parcel == "" || strings.Contains(l.Shown, "\u202e") || !strings.Contains(l.Shown, `\u{202E}`) || !slices.Equal(l.MayDecide, []string{"web:me"}) {
			t.Errorf("the card is shown as %+v", l)
		}
		var raw map[string]string
		if err := json.Unmarshal(l.Arguments, &raw); err != nil || raw["x"] != hidden {
			t.Errorf("the arguments for an edit are %s", l.Arguments)
		}
	}
	if cards != 1 || shot.Working || shot.Turn == "" {
		t.Errorf("%d cards, turn %q, working %v", cards, shot.Turn, shot.Working)
	}
}

// A line of which the page is to make no link says so, as it is said and when it was put aside, and no other does.
func TestLinesWithoutLinksSaySo(t *testing.T) {
	s, _ := undelivered(t, "hello", func(model.Request) model.Answer { return agenttest.Say("hello yourself") })
	for i, tainted := range []bool{true, false} {
		r := agent.Reply{Kind: agent.Notice, Address: home, Session: home, Text: "see https://docs.test", Tainted: tainted}
		d := bot.Delivery{Reply: bot.Hide(r, nil), Key: "00" + string(rune('1'+i))}
		if data, err := lineOf(d.Reply, d.Key).encoded(); err != nil || strings.Contains(string(data), `"no_links":true`) != tainted {
			t.Errorf("tainted %t: it is said as %s, %v", tainted, data, err)
		}
		if _, err := s.browser.Say(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	var kept []line
	for _, l := range see(t, s).Lines {
		if l.Kind == agent.Notice {
			kept = append(kept, l)
		}
	}
	if len(kept) != 2 || !kept[0].NoLinks || kept[1].NoLinks {
		t.Errorf("put aside were %+v", kept)
	}
}
