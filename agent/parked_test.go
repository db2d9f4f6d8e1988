package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/memorytest"
	"nudge/schedule"
)

var bob = agent.Person{ID: "slack:T1:U2", Name: "bob"}

// parkedScript deploys, which somebody else must agree to, and tells what it hears of that.
func parkedScript(req model.Request) model.Answer {
	if strings.HasPrefix(agenttest.LastUser(req), "[bob approved") {
		return agenttest.Say("told: " + agenttest.LastUser(req))
	}
	if strings.Contains(agenttest.LastUser(req), "and now?") {
		return agenttest.Say("asked")
	}
	return once(agenttest.Call(1, "deploy", `{"x":"v2"}`))(req)
}

// byBob is a decision of bob's about a card.
func byBob(t *testing.T, w *agenttest.World, key, card string, verdict agent.Verdict, text string) error {
	t.Helper()
	_, err := w.Pass(agent.Message{
		Keys: []string{key}, From: bob, Address: "slack:T1:dm:U2", Provenance: agent.Decided,
		Decision: &agent.Decision{Card: card, Verdict: verdict, Text: text},
	})
	return err
}

func TestADeniedParkedCallReachesTheModel(t *testing.T) {
	d := &deeds{}
	w, m := fresh(t, parkedScript, d.tool("deploy", agent.Effectful, agent.PolicySecond))
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	if err := byBob(t, w, "click", card.ID, agent.Deny, "because of the audit"); err != nil {
		t.Fatal(err)
	}
	notices := agenttest.Only(w.Rest(), agent.Notice)
	if len(notices) != 1 || !strings.Contains(notices[0].Text, "bob denied this call: because of the audit") || notices[0].Address != agenttest.Home || !notices[0].Tainted {
		t.Errorf("the person is told %s", agenttest.Lines(notices))
	}
	w.Say("and now?")
	w.Rest()
	requests := m.Requests()
	var view strings.Builder
	for _, msg := range requests[len(requests)-1].Messages {
		view.WriteString(msg.Text + "\n")
	}
	if !strings.Contains(view.String(), "bob denied this call: because of the audit") || d.all() != "" {
		t.Errorf("the model reads:\n%s\nand %q ran", view.String(), d.all())
	}
}

// So many calls of one person wait for others at once, and no more until some are decided. Other people's do not count.
func TestSoManyCallsWaitForOthers(t *testing.T) {
	d := &deeds{}
	script := func(req model.Request) model.Answer {
		if len(agenttest.Results(req)) > 0 {
			return agenttest.Say("done")
		}
		var calls []model.Call
		for i := range 20 {
			calls = append(calls, agenttest.Call(i+1, "deploy", fmt.Sprintf(`{"x":"v%d"}`, i)))
		}
		return agenttest.Do(calls...)
	}
	w, m := fresh(t, script, d.tool("deploy", agent.Effectful, agent.PolicySecond))
	asks := func(from agent.Person, address, key string) (asked int) {
		if _, err := w.Pass(agent.Message{Keys: []string{key}, ID: key, From: from, Address: address, Session: address, Provenance: agent.Human, Text: "go " + key}); err != nil {
			t.Fatal(err)
		}
		return len(agenttest.Only(w.Rest(), agent.Approval))
	}
	for i := range 5 {
		if n := asks(agenttest.Ann, agenttest.Home, fmt.Sprint("a", i)); n != 20 {
			t.Fatalf("of batch %d were %d asked about", i, n)
		}
	}
	if n := asks(agenttest.Ann, agenttest.Home, "more"); n != 0 {
		t.Errorf("%d more were asked about", n)
	}
	requests := m.Requests()
	if read := fmt.Sprint(requests[len(requests)-1].Messages); strings.Count(read, "not run: 100 calls of this person's wait") != 20 {
		t.Errorf("the model reads %s", read)
	}
	if n := asks(bob, "slack:T1:dm:U2", "other"); n != 20 {
		t.Errorf("of somebody else's %d were asked about", n)
	}
	first := ""
	err := w.Config.Store.View(t.Context(), func(tx memory.Tx) error {
		return agent.WaitingCards(tx, func(c agent.WaitingCard) error {
			if first == "" && c.Person == agenttest.Ann.ID {
				first = c.Reply.ID
			}
			return nil
		})
	})
	if err != nil || byBob(t, w, "one", first, agent.Deny, "no") != nil {
		t.Fatalf("deny %q: %v", first, err)
	}
	w.Rest()
	if n := asks(agenttest.Ann, agenttest.Home, "again"); n != 20 {
		t.Errorf("after one was decided %d were asked about", n)
	}
}

func TestStopReachesAParkedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{begun: make(chan string, 9)}
		deploy := d.slow("deploy", agent.Effectful, time.Minute)
		deploy.Policy = agent.PolicySecond
		w, _ := fresh(t, parkedScript, deploy)
		w.Say("go")
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		if err := byBob(t, w, "click", card.ID, agent.Approve, ""); err != nil {
			t.Fatal(err)
		}
		<-d.begun
		began := time.Now()
		w.Stop()
		said := w.Rest()
		finals := agenttest.Only(said, agent.Final)
		if took := time.Since(began); took > 50*time.Millisecond || len(finals) != 1 || !strings.Contains(finals[0].Text, "the person stopped it") {
			t.Errorf("after %s it says %s", took, agenttest.Lines(said))
		}
		w.Kill()
	})
}

// Whatever commit crashes, an approved parked call runs at most once and its person hears of it without asking.
func TestACrashAroundAParkedCall(t *testing.T) {
	run := func(t *testing.T, n int, after bool) (w *agenttest.World, d *deeds, commits int) {
		store := open(t)
		faulty := memorytest.NewFaulty(store)
		d = &deeds{}
		w = agenttest.Start(t, agent.Config{
			Store: faulty, Model: &agenttest.Model{T: t, Script: parkedScript}, Spec: agent.ModelSpec{MaxOutput: 1000},
			Tools: []agent.Tool{d.tool("deploy", agent.Effectful, agent.PolicySecond)},
		})
		w.Outbox = store
		w.Say("go")
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		before := faulty.Count()
		if n > 0 {
			faulty.FailAt(before+n, after)
		}
		for range 3 {
			err := byBob(t, w, "click", card.ID, agent.Approve, "")
			w.Rest()
			select {
			case <-faulty.Crashed():
				w.Kill()
				faulty.Revive()
				w.Restart()
				w.Rest()
			default:
			}
			if err == nil {
				break
			}
		}
		return w, d, faulty.Count() - before
	}
	calm, _, commits := run(t, 0, false)
	if len(calm.Said(agent.Final)) != 2 || commits < 4 {
		t.Fatalf("undisturbed it says, in %d commits:\n%s", commits, agenttest.Lines(calm.Said()))
	}
	for n := 1; n <= commits; n++ {
		for _, after := range []bool{false, true} {
			w, d, _ := run(t, n, after)
			told := len(w.Said(agent.Final)) == 2
			for _, notice := range w.Said(agent.Notice) {
				told = told || strings.Contains(notice.Text, "outcome is unknown")
			}
			if d.count("deploy") > 1 || !told {
				t.Errorf("commit %d after %v: deploy ran %d times, and the person hears:\n%s", n, after, d.count("deploy"), agenttest.Lines(w.Said()))
			}
		}
	}
}

func TestAnExpiredCardCannotBeApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		w, _ := fresh(t, once(agenttest.Call(1, "delete", `{}`)), d.tool("delete", agent.Effectful, agent.PolicyAsk))
		w.Say("go")
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		time.Sleep(80 * time.Hour) // and no clock has noticed
		w.Decide(card.ID, agent.Approve, "")
		same(t, w.Rest(), `
		decided delete expire
		notice It had expired at Tuesday 2000-01-04 09:00 CET, which counts as denied.
		final done
		settled completed 2 steps 1 calls`)
		if d.all() != "" {
			t.Errorf("ran: %s", d.all())
		}
		w.Kill()
	})
}

// TestWhatADecisionTellsWhereItIsTyped has a card decided in a place where it does not stand. Where others read along they are
// told that it was decided, and nothing of what it asks; the decider alone is told that too.
func TestWhatADecisionTellsWhereItIsTyped(t *testing.T) {
	const secret = "a private diagnosis"
	decisions := map[string]agent.Decision{
		"approve": {Verdict: agent.Approve}, "deny": {Verdict: agent.Deny},
		"edit": {Verdict: agent.Edit, Arguments: []byte(`{"x":"nothing"}`)}, "always": {Verdict: agent.Always},
	}
	for name, decision := range decisions {
		for place, mayTell := range map[string]bool{"slack:T1:C1:1700.1": false, "slack:T1:C1:": false, "slack:T1:dm:U2": true} {
			t.Run(name+" in "+place, func(t *testing.T) {
				d := &deeds{}
				asked, by := agent.PolicySecond, bob
				if name == "edit" || name == "always" { // a parked call takes neither
					asked, by = agent.PolicyAsk, agenttest.Ann
				}
				w, _ := fresh(t, once(agenttest.Call(1, "deploy", `{"x":"`+secret+`"}`)), d.tool("deploy", agent.Effectful, asked))
				w.Say("go")
				card := agenttest.Only(w.Rest(), agent.Approval, agent.Ask)[0]
				decision := decision
				decision.Card = card.ID
				if _, err := w.Pass(agent.Message{Keys: []string{"typed"}, From: by, Address: place, Provenance: agent.Decided, Decision: &decision}); err != nil {
					t.Fatal(err)
				}
				marks := slices.DeleteFunc(agenttest.Only(w.Rest(), agent.DecidedMark), func(r agent.Reply) bool { return r.Address != place })
				if len(marks) != 1 || marks[0].Decision != decision.Verdict || marks[0].ID != card.ID {
					t.Fatalf("the place is told %+v", marks)
				}
				if told := strings.Contains(fmt.Sprintf("%+v %s", marks[0], marks[0].Arguments), secret); told != mayTell {
					t.Errorf("the place is told %+v", marks[0])
				}
			})
		}
	}
}

func TestWhoMayDecide(t *testing.T) {
	store := open(t)
	ag, err := agent.New(agent.Config{Store: store, Owners: []agent.PersonID{"slack:T1:U9"}})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Update(t.Context(), func(tx memory.Tx) error {
		_, err := schedule.Link(tx, "slack:T1:U1", "discord:7", time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		policy agent.Policy
		by     agent.PersonID
		want   bool
	}{
		{agent.PolicyAsk, "slack:T1:U1", true}, {agent.PolicyAsk, "slack:T1:U9", false}, {agent.PolicyAsk, "", false},
		{agent.PolicyOwner, "slack:T1:U9", true}, {agent.PolicyOwner, "terminal:ann", true}, {agent.PolicyOwner, "web:me", true}, {agent.PolicyOwner, "slack:T1:U1", false},
		{agent.PolicySecond, "slack:T1:U2", true}, {agent.PolicySecond, "slack:T1:U1", false}, {agent.PolicySecond, "", false},
		{agent.PolicySecond, "discord:7", false}, {agent.PolicySecond, "discord:8", true}, {agent.PolicyAsk, "discord:7", false},
	} {
		err := store.View(t.Context(), func(tx memory.Tx) error {
			got, err := ag.MayDecide(tx, agent.WaitingCard{Person: "slack:T1:U1", Policy: test.policy}, test.by)
			if got != test.want {
				t.Errorf("under %s %q may decide: %v, want %v", test.policy, test.by, got, test.want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestALateAnswerWaitsForItsTime: when somebody else decides while the person must not be spoken to, no turn is opened; their
// session notes it, and the digest is given it once.
func TestALateAnswerWaitsForItsTime(t *testing.T) {
	for _, held := range []bool{true, false} {
		d := &deeds{}
		w, m := fresh(t, parkedScript, d.tool("deploy", agent.Effectful, agent.PolicySecond))
		var late []agent.Late
		w.Config.Unasked = func(_ memory.Tx, l agent.Late) (bool, error) {
			late = append(late, l)
			return held, nil
		}
		w.Restart()
		w.Say("go")
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		before := len(m.Requests())
		if err := byBob(t, w, "click", card.ID, agent.Approve, ""); err != nil {
			t.Fatal(err)
		}
		finals := agenttest.Only(w.Rest(), agent.Final)
		if told := len(finals) == 1; told == held || (len(m.Requests()) == before) != held {
			t.Errorf("held back %v: said %s with %d requests", held, agenttest.Lines(finals), len(m.Requests())-before)
		}
		if len(late) != 1 || late[0].Person.ID != agenttest.Ann.ID || !strings.HasPrefix(late[0].Text, "bob approved the call of deploy with") {
			t.Errorf("to be told late: %+v", late)
		}
		w.Say("and now?")
		w.Rest()
		var view strings.Builder
		for _, msg := range m.Requests()[len(m.Requests())-1].Messages {
			view.WriteString(msg.Text + "\n")
		}
		if !strings.Contains(view.String(), "[bob approved the call of deploy with") || strings.Contains(view.String(), "Tell the person what") == held {
			t.Errorf("held back %v: the session reads\n%s", held, view.String())
		}
	}
}
