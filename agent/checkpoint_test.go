package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
)

// A session loaded from its newest checkpoint is the one that its whole journal tells, whatever has happened in it.
func TestACheckpointIsWhatTheJournalTells(t *testing.T) {
	agent.CheckpointAfter(t, 1)
	checkpoints := 0
	rapid.Check(t, func(rt *rapid.T) {
		shared, moves := rapid.Bool().Draw(rt, "shared"), drawMoves(rt)
		inBubble(t, rt, func(f *faults) {
			p := newFlood(f, shared)
			for n := range 8 { // enough of a journal for its conversation
				p.say(n, fmt.Sprintf("early%d", n))
				p.world.Rest()
			}
			p.play(moves)
			err := p.store.View(context.Background(), func(tx memory.Tx) error {
				whole, short, at, err := agent.Loads(tx, p.address)
				if whole != short {
					f.Errorf("from the checkpoint %d:\n%s\nfrom the start:\n%s", at, short, whole)
				}
				if at > 0 {
					checkpoints++
				}
				return err
			})
			if err != nil {
				f.Errorf("load: %v", err)
			}
		})
	})
	if checkpoints < 10 {
		t.Errorf("only %d of the conversations had a checkpoint", checkpoints)
	}
}

// After a checkpoint the model is sent what it would have been sent without, and late clicks get their true answers.
func TestASessionGoesOnFromItsCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent.CheckpointAfter(t, 4000)
		d := &deeds{}
		w, m := fresh(t, func(req model.Request) model.Answer {
			if strings.HasSuffix(agenttest.LastUser(req), "delete it") && len(agenttest.Results(req)) == 0 {
				return agenttest.Do(agenttest.Call(len(req.Messages), "delete", `{"x":"y"}`))
			}
			return agenttest.Say("all right")
		}, d.tool("delete", agent.Effectful, agent.PolicyAsk))
		w.Say("delete it")
		card := only(t, w.Rest(), agent.Approval)
		w.Decide(card.ID, agent.Deny, "not yet")
		w.Rest()
		for n := range 30 {
			w.Say(fmt.Sprintf("words %d", n))
			w.Rest()
		}
		before := m.Requests()[len(m.Requests())-1]
		w.Restart()
		w.Say("Again?")
		w.Rest()
		after := m.Requests()[len(m.Requests())-1]
		if !begins(after.Messages, before.Messages) || after.System != before.System {
			t.Error("after the checkpoint the request does not begin with the one before")
		}
		if at := checkpointIn(t, w); at == 0 {
			t.Fatal("there is no checkpoint")
		}
		time.Sleep(time.Hour)
		w.Decide(card.ID, agent.Approve, "")
		if said := w.Rest(); len(said) != 1 || !strings.Contains(said[0].Text, "already denied by ann") || len(d.done) != 0 {
			t.Errorf("a late click said %s", agenttest.Lines(said))
		}
		w.Kill()
	})
}

func checkpointIn(t *testing.T, w *agenttest.World) (at uint64) {
	t.Helper()
	err := w.Config.Store.View(t.Context(), func(tx memory.Tx) (err error) {
		_, _, at, err = agent.Loads(tx, agenttest.Home)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}
