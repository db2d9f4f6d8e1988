package agent_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/memorytest"
	"nudge/schedule"
)

// deploysOnce asks for one call, and tells what it hears of it.
func deploysOnce(req model.Request) model.Answer {
	if heard := agenttest.LastUser(req); strings.HasPrefix(heard, "[") {
		return agenttest.Say("told: " + heard)
	}
	return once(agenttest.Call(1, "deploy", `{"x":"v2"}`))(req)
}

// decideAs is a decision about a card by somebody, in their direct messages.
func decideAs(t *testing.T, w *agenttest.World, by agent.Person, card string, verdict agent.Verdict) {
	t.Helper()
	_, err := w.Pass(agent.Message{
		Keys: []string{string(by.ID) + string(verdict) + w.Config.Spec.Name}, From: by, Address: by.ID.Home(), Provenance: agent.Decided,
		Decision: &agent.Decision{Card: card, Verdict: verdict},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Rest()
}

// TestACardIsDecidedByTheStricterPolicy: between the card and the click the config has changed. Nobody lets a call run
// who could not have done so if it were asked now, nor who could not when it was asked; all of them can deny as before.
func TestACardIsDecidedByTheStricterPolicy(t *testing.T) {
	owner := agent.Person{ID: "slack:T1:U9", Name: "olga"}
	people := []agent.Person{agenttest.Ann, bob, owner}
	policies := []agent.Policy{agent.PolicyNo, agent.PolicyAsk, agent.PolicyOwner, agent.PolicySecond}
	may := func(p agent.Policy, by agent.Person) bool {
		switch p {
		case agent.PolicyOwner:
			return by.ID == owner.ID || by.ID == agenttest.Ann.ID // who is at a terminal
		case agent.PolicySecond:
			return by.ID != agenttest.Ann.ID
		}
		return by.ID == agenttest.Ann.ID
	}
	for was, asked := range policies {
		for is, now := range policies {
			for _, by := range people {
				if asked == agent.PolicyNo {
					continue
				}
				d := &deeds{}
				w, _ := fresh(t, deploysOnce, d.tool("deploy", agent.Effectful, asked))
				w.Config.Owners = []agent.PersonID{owner.ID}
				w.Restart()
				w.Say("go")
				card := agenttest.Only(w.Rest(), agent.Approval)[0]
				w.Config.Approve = map[string]agent.Policy{"deploy": now}
				w.Restart()
				decideAs(t, w, by, card.ID, agent.Approve)
				runs := may(policies[max(was, is)], by)
				if (d.count("deploy") == 1) != runs {
					t.Errorf("asked under %s, %s approves under %s: it ran %d times", asked, by.Name, now, d.count("deploy"))
				}
				if !runs && may(asked, by) {
					decideAs(t, w, by, card.ID, agent.Deny)
					if denied := w.Said(agent.DecidedMark); d.count("deploy") != 0 || len(denied) == 0 || denied[len(denied)-1].Decision != agent.Deny {
						t.Errorf("asked under %s, %s cannot deny it under %s", asked, by.Name, now)
					}
				}
				w.Kill()
			}
		}
	}
}

// TestAnApprovalHoldsUntilItRuns: the config has changed after the click, before the call began.
func TestAnApprovalHoldsUntilItRuns(t *testing.T) {
	for _, asked := range []agent.Policy{agent.PolicyAsk, agent.PolicyOwner} {
		for _, now := range []agent.Policy{asked, agent.PolicySecond} {
			store := open(t)
			faulty := memorytest.NewFaulty(store)
			d := &deeds{}
			w := agenttest.Start(t, agent.Config{
				Store: faulty, Model: &agenttest.Model{T: t, Script: deploysOnce}, Spec: agent.ModelSpec{MaxOutput: 1000},
				Tools: []agent.Tool{d.tool("deploy", agent.Effectful, asked)},
			})
			w.Outbox = store
			w.Say("go")
			card := agenttest.Only(w.Rest(), agent.Approval)[0]
			faulty.FailAt(faulty.Count()+2, true) // when the decision is kept
			decideAs(t, w, agenttest.Ann, card.ID, agent.Approve)
			select {
			case <-faulty.Crashed():
			default:
				t.Fatal("nothing has crashed")
			}
			if d.count("deploy") != 0 {
				t.Fatal("it ran before the crash")
			}
			w.Kill()
			faulty.Revive()
			w.Config.Approve = map[string]agent.Policy{"deploy": now}
			w.Restart()
			w.Rest()
			if runs := now == asked; (d.count("deploy") == 1) != runs {
				t.Errorf("approved under %s, it ran %d times under %s:\n%s", asked, d.count("deploy"), now, agenttest.Lines(w.Said()))
			}
			w.Kill()
		}
	}
}

// A tool that waits for its turn is told whether its call may still run: after what was approved has changed, however that was, and
// after one that nobody was asked about would be.
func TestACallStandsUntilItRuns(t *testing.T) {
	for _, policy := range []agent.Policy{agent.PolicyNo, agent.PolicyAsk, agent.PolicyOwner, agent.PolicySecond} {
		for _, changes := range []string{"", "what it depends on", "what it may come upon"} {
			var depends, judged atomic.Value
			var obeys atomic.Bool
			depends.Store("as shown")
			judged.Store(policy)
			var stood error
			tool := agenttest.Tool("deploy", agent.Effectful, policy, func(_ context.Context, in agent.Invocation) (agent.Result, error) {
				switch changes {
				case "what it depends on":
					depends.Store("other")
					judged.Store(agent.PolicySecond)
				case "what it may come upon":
					obeys.Store(true)
				}
				stood = in.Stands()
				return agent.Result{Text: "deployed"}, stood
			})
			tool.Digest = func(agent.Invocation) string { return depends.Load().(string) }
			tool.Judge = func(agent.Invocation) (agent.Policy, string, error) { return judged.Load().(agent.Policy), "", nil }
			tool.LabelsOf = func(agent.Invocation) agent.Labels { return agent.Labels{Obeys: obeys.Load()} }
			w, _ := fresh(t, deploysOnce, tool)
			w.Say("go")
			for _, card := range agenttest.Only(w.Rest(), agent.Approval) {
				by := agenttest.Ann
				if policy == agent.PolicySecond {
					by = agent.Person{ID: "terminal:bob", Name: "bob"}
				}
				decideAs(t, w, by, card.ID, agent.Approve)
				w.Rest()
			}
			if (stood != nil) != (changes != "") {
				t.Errorf("%s, changed is %q: %v", policy, changes, stood)
			}
			w.Kill()
		}
	}
}

// TestNoSecondPersonIsTheFirst by an account that is linked to theirs, or was, whenever that was done.
func TestNoSecondPersonIsTheFirst(t *testing.T) {
	link := func(t *testing.T, w *agenttest.World) {
		err := w.Config.Store.Update(t.Context(), func(tx memory.Tx) error {
			_, err := schedule.Link(tx, string(agenttest.Ann.ID), string(bob.ID), time.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	part := func(t *testing.T, w *agenttest.World) {
		err := w.Config.Store.Update(t.Context(), func(tx memory.Tx) error {
			_, err := schedule.Unlink(tx, string(bob.ID), time.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"never", "before", "after", "before and no longer", "until before"} {
		d := &deeds{}
		w, _ := fresh(t, parkedScript, d.tool("deploy", agent.Effectful, agent.PolicySecond))
		if strings.Contains(when, "before") {
			link(t, w)
		}
		if when == "until before" {
			part(t, w)
		}
		w.Say("go")
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		switch when {
		case "after":
			link(t, w)
		case "before and no longer":
			part(t, w)
		}
		decideAs(t, w, bob, card.ID, agent.Approve)
		if runs := when == "never"; (d.count("deploy") == 1) != runs {
			t.Errorf("linked %s, it ran %d times", when, d.count("deploy"))
		}
		w.Kill()
	}
}

// TestNothingRunsForWhoIsNotLetInAnyMore: their parked calls are not run, and no turn is opened for them.
func TestNothingRunsForWhoIsNotLetInAnyMore(t *testing.T) {
	for _, served := range []bool{true, false} {
		d := &deeds{}
		w, m := fresh(t, parkedScript, d.tool("deploy", agent.Effectful, agent.PolicySecond))
		w.Say("go")
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		w.Config.Serves = func(id agent.PersonID) bool { return served || id != agenttest.Ann.ID }
		w.Restart()
		before := len(m.Requests())
		decideAs(t, w, bob, card.ID, agent.Approve)
		if ran := d.count("deploy") == 1; ran != served || (len(m.Requests()) > before) != served {
			t.Errorf("let in %v: it ran %d times, with %d requests", served, d.count("deploy"), len(m.Requests())-before)
		}
		if faults := w.Said(agent.Fault); !served && (len(faults) != 1 || !strings.Contains(faults[0].Text, "no longer let in")) {
			t.Errorf("who approved is told %s", agenttest.Lines(faults))
		}
		decideAs(t, w, bob, card.ID, agent.Deny)
		if len(m.Requests()) > before && !served {
			t.Error("a denial asks the model for them")
		}
		w.Kill()
	}
}
