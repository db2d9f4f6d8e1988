package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
)

// partakes reports whether somebody takes part in Ann's session, and whether there is something to stop in it.
func partakes(t *testing.T, store memory.Store, session string, who agent.PersonID) (part, busy bool) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		if part, err = agent.TakesPart(tx, session, who); err != nil {
			return err
		}
		busy, err = agent.Busy(tx, session)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return part, busy
}

func TestWhoTakesPart(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "send", `{}`)), d.tool("send", agent.Effectful, agent.PolicyAsk))
	const session = "slack:T1:C1:1.1"
	if part, busy := partakes(t, w.Agent.Store, session, agenttest.Ann.ID); part || busy {
		t.Errorf("before anything was said: %v, %v", part, busy)
	}
	say := func(id agent.PersonID, key string, stop bool) {
		m := agent.Message{Keys: []string{key}, Session: session, Provenance: agent.Human, From: agent.Person{ID: id, Name: string(id), Locale: "de-DE"}, Address: session, Stop: stop}
		if !stop {
			m.Text = "hello"
		}
		if _, err := w.Pass(m); err != nil {
			t.Fatal(err)
		}
		w.Rest()
	}
	say("slack:T1:U1", "one", false)
	if part, busy := partakes(t, w.Agent.Store, session, "slack:T1:U1"); !part || !busy {
		t.Errorf("while a card waits: %v, %v", part, busy)
	}
	if part, _ := partakes(t, w.Agent.Store, session, "slack:T1:U2"); part {
		t.Error("somebody who has said nothing takes part")
	}
	say("slack:T1:U2", "two", false)
	if part, _ := partakes(t, w.Agent.Store, session, "slack:T1:U2"); !part {
		t.Error("somebody whose words wait for the next turn takes no part")
	}
	say("slack:T1:U1", "three", true)
	if part, _ := partakes(t, w.Agent.Store, session, "slack:T1:U2"); !part {
		t.Error("somebody who has spoken takes no part")
	}
}

// TestLanguage tells the model the language that a person has set, where it talks with them alone.
func TestLanguage(t *testing.T) {
	w, m := fresh(t, func(model.Request) model.Answer { return agenttest.Say("ok") })
	for i, address := range []string{"slack:T1:dm:U1", "slack:T1:C1:1.1"} {
		_, err := w.Pass(agent.Message{
			Keys: []string{address}, Session: address, Provenance: agent.Human, Address: address, Text: "hello",
			From: agent.Person{ID: "slack:T1:U1", Name: "Ann", Locale: "de-DE"},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Rest()
		if told := strings.Contains(m.Requests()[i].System, "Their language is set to de-DE."); told != (i == 0) {
			t.Errorf("in %s it is told: %v", address, told)
		}
	}
}

func TestWhenAPersonLastSpoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := wakeWorld(t, func(model.Request) model.Answer { return agenttest.Say("yes") })
		spoke := func() (at time.Time) {
			t.Helper()
			err := w.Config.Store.View(t.Context(), func(tx memory.Tx) (err error) {
				at, err = agent.Spoke(tx, agenttest.Ann.ID)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		if !spoke().IsZero() {
			t.Errorf("who said nothing spoke at %v", spoke())
		}
		began := time.Now()
		w.Say("hello")
		w.Rest()
		time.Sleep(time.Hour)
		wake(t, w, disk) // what Nudge does is not the person's speaking
		w.Rest()
		if !spoke().Equal(began) {
			t.Errorf("spoke at %v, want %v", spoke(), began)
		}
		w.Say("hello again")
		w.Rest()
		if !spoke().Equal(began.Add(time.Hour)) {
			t.Errorf("spoke again at %v", spoke())
		}
		w.Kill()
	})
}
