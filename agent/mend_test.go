package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory/memorytest"
)

// cutOffWorld is a world that was killed in the middle of pay, the second of three calls, and started again.
func cutOffWorld(t *testing.T, d *deeds) (*agenttest.World, *agenttest.Model) {
	t.Helper()
	faulty := memorytest.NewFaulty(open(t))
	pay := d.tool("pay", agent.Effectful, "")
	run := pay.Run
	pay.Run = func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
		if d.count("pay") == 0 {
			faulty.FailAt(faulty.Count()+1, false) // the result cannot be kept
		}
		return run(ctx, in)
	}
	m := &agenttest.Model{T: t, Script: func(req model.Request) model.Answer {
		results := agenttest.Results(req)
		if len(results) == 0 && strings.HasSuffix(agenttest.LastUser(req), "pay it") {
			return agenttest.Do(agenttest.Call(1, "lookup", `{}`), agenttest.Call(1, "pay", `{"x":"7"}`), agenttest.Call(1, "note", `{}`))
		}
		return agenttest.Say("pay: " + results["pay-1"])
	}}
	w := agenttest.Start(t, agent.Config{
		Store: faulty, Model: m, Spec: agent.ModelSpec{MaxOutput: 1000},
		Tools: []agent.Tool{d.tool("lookup", agent.Read, ""), pay, d.tool("note", agent.Effectful, "")},
	})
	w.Say("pay it")
	w.Rest()
	w.Kill()
	faulty.Revive()
	w.Restart()
	return w, m
}

// A call whose outcome is unknown waits for its person: it is run again, under the same key, or left, with what comes
// after it.
func TestACallOfUnknownOutcomeWaitsForItsPerson(t *testing.T) {
	for _, c := range []struct {
		name   string
		decide func(w *agenttest.World, card string)
		ran    string
		final  string // begins so
	}{
		{"again", func(w *agenttest.World, card string) { w.Decide(card, agent.AnswerIt, "run again") }, "lookup pay pay note", `pay: pay done with {"x":"7"}`},
		{"approve", func(w *agenttest.World, card string) { w.Decide(card, agent.Approve, "") }, "lookup pay pay note", `pay: pay done`},
		{"leave", func(w *agenttest.World, card string) { w.Decide(card, agent.AnswerIt, agent.ChoiceLeave) }, "lookup pay", "pay: interrupted, outcome unknown"},
		{"deny", func(w *agenttest.World, card string) { w.Decide(card, agent.Deny, "no") }, "lookup pay", "pay: interrupted, outcome unknown"},
		{"words", func(w *agenttest.World, _ string) { w.Say("look into it first") }, "lookup pay", "pay: "},
		{"time", func(*agenttest.World, string) {}, "lookup pay", ""},
		{"restart, then again", func(w *agenttest.World, card string) { w.Restart(); w.Rest(); w.Decide(card, agent.Approve, "") }, "lookup pay pay note", "pay: pay done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &deeds{}
				w, m := cutOffWorld(t, d)
				said := w.Rest()
				card := only(t, said, agent.Notice)
				if !strings.Contains(card.Text, "outcome is unknown") || fmt.Sprint(card.Choices) != "[Run again Leave it]" || card.Tool != "pay" || len(agenttest.Only(said, agent.SettledMark)) != 0 {
					t.Fatalf("said %+v", said)
				}
				if len(m.Requests()) != 1 {
					t.Errorf("the model was asked before the person")
				}
				time.Sleep(time.Minute)
				c.decide(w, card.ID)
				w.Rest()
				if c.ran != d.all() {
					t.Errorf("ran %s, want %s", d.all(), c.ran)
				}
				finals := w.Said(agent.Final)
				if c.final == "" {
					if len(finals) != 0 {
						t.Errorf("said %s", agenttest.Lines(finals))
					}
				} else if len(finals) != 1 || !strings.HasPrefix(finals[0].Text, c.final) {
					t.Errorf("said %s", agenttest.Lines(w.Said()))
				}
				w.Decide(card.ID, agent.Approve, "")
				w.Rest()
				if n := d.count("pay"); c.name != "time" && n > 1+strings.Count(c.ran, "pay pay") {
					t.Errorf("a second decision ran it %d times", n)
				}
				w.Kill()
			})
		})
	}
}

// A turn in whose middle the program ends again and again is given up, in words.
func TestATurnThatEndsTheProgramIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := fresh(t, func(model.Request) model.Answer { return agenttest.Say("done") })
		m.Latency = time.Hour
		w.Say("go")
		synctest.Wait()
		time.Sleep(time.Second)
		for range 3 {
			w.Restart()
			time.Sleep(time.Second)
			if said := w.Said(); len(said) != 0 {
				t.Fatalf("said %s", agenttest.Lines(said))
			}
		}
		w.Restart()
		said := w.Rest()
		if n := only(t, said, agent.Notice); !strings.Contains(n.Text, "ended 4 times") || only(t, said, agent.SettledMark).Reason != agent.Failed {
			t.Errorf("said %s", agenttest.Lines(said))
		}
		if n := len(m.Requests()); n != 4 {
			t.Errorf("the model was asked %d times", n)
		}
		m.Latency = 0
		w.Say("go")
		if final := only(t, w.Rest(), agent.Final); final.Text != "done" {
			t.Errorf("said %s", final.Text)
		}
		w.Kill()
	})
}
