package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/memorytest"
)

// asked is a script that makes the call that the person's last words spell: a tool and its arguments.
func asked(req model.Request) model.Answer {
	said := agenttest.LastUser(req)
	if at := strings.LastIndexByte(said, '\n'); at >= 0 {
		said = said[at+1:]
	}
	if name, words, shared := strings.Cut(said, ": "); shared && !strings.ContainsAny(name, " {") {
		said = words
	}
	tool, arguments, _ := strings.Cut(said, " ")
	id := fmt.Sprintf("c%d", len(req.Messages))
	if len(agenttest.Results(req)) > 0 {
		return agenttest.Say("done")
	}
	return agenttest.Do(model.Call{ID: id, Name: tool, Arguments: arguments})
}

// asks says words and gives the card that comes of them; "" when none does.
func asks(w *agenttest.World, words string) string {
	w.T.Helper()
	w.Say(words)
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) == 0 {
		return ""
	}
	return cards[0].ID
}

// allowed says words, whose card it decides with always.
func allowed(t *testing.T, w *agenttest.World, words string) agent.Reply {
	t.Helper()
	card := asks(w, words)
	if card == "" {
		t.Fatalf("nobody is asked about %q", words)
	}
	w.Decide(card, agent.Always, "")
	marks := agenttest.Only(w.Rest(), agent.DecidedMark)
	if len(marks) != 1 || marks[0].Decision != agent.Always || marks[0].Rule == "" || marks[0].Always == nil {
		t.Fatalf("decided always, it says %+v", marks)
	}
	return marks[0]
}

func rulesOf(t testing.TB, store memory.Store, person agent.PersonID) (rules []agent.Rule) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		rules, err = agent.Rules(tx, person, time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func revoke(t testing.TB, store memory.Store, person agent.PersonID, id string) (ended int) {
	t.Helper()
	err := store.Update(context.Background(), func(tx memory.Tx) (err error) {
		ended, err = agent.RevokeRules(tx, person, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// consistent lets the check report what does not agree.
func consistent(t *testing.T, store memory.Store) {
	t.Helper()
	for _, problem := range problems(t, store) {
		t.Errorf("check: %s", problem)
	}
}

// eventsOf are the events of Ann's session of a kind.
func eventsOf(t testing.TB, store memory.Store, kind string) (events []agent.Event) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) error {
		events = nil
		return agent.Events(tx, agenttest.Home, 0, func(e agent.Event) error {
			if e.Kind == kind {
				events = append(events, e)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestAlwaysAllowsOneExactCall(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, asked, d.tool("delete", agent.Effectful, agent.PolicyAsk), d.tool("erase", agent.Effectful, agent.PolicyAsk))
	w.Say(`delete {"x":"a"}`)
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	if card.Always == nil || time.Until(*card.Always) > agent.RuleTime || time.Until(*card.Always) < agent.RuleTime-time.Minute {
		t.Fatalf("the card offers a rule until %v", card.Always)
	}
	w.Decide(card.ID, agent.Always, "")
	mark := agenttest.Only(w.Rest(), agent.DecidedMark)[0]
	if d.count("delete") != 1 || mark.Rule == "" || !mark.Always.Equal(*card.Always) {
		t.Fatalf("it ran %d times, and the mark is %+v", d.count("delete"), mark)
	}
	rules := rulesOf(t, w.Config.Store, agenttest.Ann.ID)
	if len(rules) != 1 || rules[0].ID != mark.Rule || rules[0].Tool != "delete" || string(rules[0].Arguments) != `{"x":"a"}` || !rules[0].Until.Equal(*card.Always) {
		t.Fatalf("the rules are %+v", rules)
	}
	if again := asks(w, `delete { "x" : "a" }`); again != "" || d.count("delete") != 2 {
		t.Errorf("the same call is asked about, or ran %d times", d.count("delete"))
	}
	w.Restart()
	if again := asks(w, `delete {"x":"a"}`); again != "" || d.count("delete") != 3 {
		t.Errorf("after a restart the same call is asked about, or ran %d times", d.count("delete"))
	}
	calls := eventsOf(t, w.Config.Store, "tool_call")
	want := "allowed by rule " + mark.Rule + " of " + string(agenttest.Ann.ID)
	if len(calls) != 3 || calls[0].Reason != "" || calls[1].Reason != want || calls[2].Reason != want {
		t.Errorf("the trace has %+v", calls)
	}
	decided := eventsOf(t, w.Config.Store, "approval_decided")
	if len(decided) != 1 || decided[0].Decision != agent.Always || !strings.HasPrefix(decided[0].Reason, "rule "+mark.Rule+" until ") {
		t.Errorf("the trace has the decisions %+v", decided)
	}
	w.Decide(card.ID, agent.Approve, "")
	if said := w.Rest(); !strings.Contains(agenttest.Lines(said), "already approved by ann") {
		t.Errorf("a second decision is told %s", agenttest.Lines(said))
	}
	consistent(t, w.Config.Store)
	for _, other := range []string{`delete {"x":"b"}`, `delete {"x":"a "}`, `delete {}`, `erase {"x":"a"}`} {
		card := asks(w, other)
		if card == "" {
			t.Errorf("nobody is asked about %s", other)
			continue
		}
		w.Decide(card, agent.Deny, "")
		w.Rest()
	}
}

// TestAskedEachTime asks about a tool that is to be asked about each time, whatever rule there was of before.
func TestAskedEachTime(t *testing.T) {
	d := &deeds{}
	tool := d.tool("delete", agent.Effectful, agent.PolicyAsk)
	w, _ := fresh(t, asked, tool)
	allowed(t, w, `delete {"x":"a"}`)
	tool.EachTime = true
	w.Config.Tools = []agent.Tool{tool}
	w.Restart()
	w.Say(`delete {"x":"a"}`)
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 1 || cards[0].Always != nil || d.count("delete") != 1 {
		t.Fatalf("it ran %d times, and the cards are %+v", d.count("delete"), cards)
	}
	w.Decide(cards[0].ID, agent.Always, "")
	if said := w.Rest(); len(agenttest.Only(said, agent.Fault)) != 1 || d.count("delete") != 1 {
		t.Errorf("decided always, it ran %d times and says %s", d.count("delete"), agenttest.Lines(said))
	}
}

// TestApprovedOnce asks about calls of which the tool says that they can be approved once only; about others a rule is offered.
func TestApprovedOnce(t *testing.T) {
	d := &deeds{}
	tool := d.tool("delete", agent.Effectful, agent.PolicyAsk)
	tool.Once = func(in agent.Invocation) bool { return strings.Contains(string(in.Arguments), "large") }
	w, _ := fresh(t, asked, tool)
	allowed(t, w, `delete {"x":"a"}`)
	w.Say(`delete {"x":"large"}`)
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 1 || cards[0].Always != nil {
		t.Fatalf("the cards are %+v", cards)
	}
	w.Decide(cards[0].ID, agent.Always, "")
	if said := w.Rest(); len(agenttest.Only(said, agent.Fault)) != 1 || d.count("delete") != 1 {
		t.Errorf("decided always, it ran %d times and says %s", d.count("delete"), agenttest.Lines(said))
	}
}

// TestRulesAreNotOffered shows the cards about which nobody may decide always, however they ask for it.
func TestRulesAreNotOffered(t *testing.T) {
	d := &deeds{}
	long := `{"x":"` + strings.Repeat("a", agent.MaxRule) + `"}`
	for name, c := range map[string]struct {
		policy  agent.Policy
		address string
		call    string
	}{
		"an owner's":                  {agent.PolicyOwner, agenttest.Home, `delete {"x":"a"}`},
		"a second person's":           {agent.PolicySecond, agenttest.Home, `delete {"x":"a"}`},
		"one in a shared place":       {agent.PolicyAsk, "slack:T1:C1:1.1", `delete {"x":"a"}`},
		"one that nobody reads whole": {agent.PolicyAsk, agenttest.Home, "delete " + long},
		"a question":                  {agent.PolicyAsk, agenttest.Home, `ask_person {"question":"?"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := fresh(t, asked, d.tool("delete", agent.Effectful, c.policy))
			if _, err := w.Pass(agent.Message{Keys: []string{"k"}, Provenance: agent.Human, Text: c.call, Address: c.address}); err != nil {
				t.Fatal(err)
			}
			cards := agenttest.Only(w.Rest(), agent.Approval, agent.Ask)
			if len(cards) == 0 || cards[0].Always != nil {
				t.Fatalf("it says %+v", cards)
			}
			by := agenttest.Ann
			if c.policy == agent.PolicySecond {
				by = bob
			}
			if _, err := w.Pass(agent.Message{
				Keys: []string{"d"}, From: by, Provenance: agent.Decided, Decision: &agent.Decision{Card: cards[0].ID, Verdict: agent.Always},
			}); err != nil {
				t.Fatal(err)
			}
			said := w.Rest()
			if len(agenttest.Only(said, agent.Fault)) != 1 || len(agenttest.Only(said, agent.DecidedMark)) != 0 || len(rulesOf(t, w.Config.Store, by.ID)) != 0 {
				t.Errorf("decided always, it says %s", agenttest.Lines(said))
			}
		})
	}
	if d.all() != "" {
		t.Errorf("ran: %s", d.all())
	}
}

// TestARuleIsNotLoosened changes what a rule was saved under.
func TestARuleIsNotLoosened(t *testing.T) {
	const call = `delete {"x":"a"}`
	d := &deeds{}
	depends := "one"
	tool := func() agent.Tool {
		of := d.tool("delete", agent.Effectful, agent.PolicyAsk)
		of.Digest = func(agent.Invocation) string { return depends }
		return of
	}
	w, _ := fresh(t, asked, tool())
	rule := allowed(t, w, call).Rule
	still := func(want bool, when string) {
		t.Helper()
		ran := d.count("delete")
		card := asks(w, call)
		if (card == "") != want || (d.count("delete") == ran+1) != want {
			t.Errorf("%s, the call is let run unasked: %v", when, !want)
		}
		if card != "" {
			w.Decide(card, agent.Deny, "")
			w.Rest()
		}
	}
	still(true, "as it was")
	depends = "two"
	still(false, "when what it depends on has changed")
	depends = "one"
	still(true, "when that is as it was again")
	for _, policy := range []agent.Policy{agent.PolicyOwner, agent.PolicySecond} {
		w.Config.Approve = map[string]agent.Policy{"delete": policy}
		w.Restart()
		ran := d.count("delete")
		w.Say(call)
		if said := w.Rest(); len(agenttest.Only(said, agent.Approval)) == 0 || d.count("delete") != ran {
			t.Errorf("under the policy %s it says %s", policy, agenttest.Lines(said))
		}
		for _, c := range agenttest.Only(w.Said(), agent.Approval) {
			w.Decide(c.ID, agent.Deny, "")
		}
		w.Rest()
	}
	w.Config.Approve = nil
	w.Config.Tools[0].Description += " And sends it away."
	w.Restart()
	still(false, "when the tool says something else of itself")
	w.Config.Tools[0] = tool()
	w.Restart()
	still(true, "when it says the same again")
	if n := revoke(t, w.Config.Store, agenttest.Ann.ID, "other") + revoke(t, w.Config.Store, bob.ID, rule); n != 0 {
		t.Errorf("%d rules are revoked by others", n)
	}
	still(true, "after others revoked")
	if n := revoke(t, w.Config.Store, agenttest.Ann.ID, rule); n != 1 {
		t.Errorf("%d rules are revoked", n)
	}
	still(false, "once it is revoked")
	consistent(t, w.Config.Store)
}

// TestARuleIsForItsPersonAlone lets others ask for the same call, and its person where others are.
func TestARuleIsForItsPersonAlone(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, asked, d.tool("delete", agent.Effectful, agent.PolicyAsk))
	const call = `delete {"x":"a"}`
	allowed(t, w, call)
	for i, m := range []agent.Message{
		{From: bob, Address: "slack:T1:dm:U2"},
		{From: bob, Address: agenttest.Home},
		{From: agenttest.Ann, Address: "slack:T1:C1:1.1"},
		{From: agenttest.Ann, Address: agenttest.Home, Session: "wake:ann", Provenance: agent.Heartbeat, Wake: &agent.Wake{
			Heartbeat: "h", Prompt: call, Route: agenttest.Home, Tools: []string{"delete"},
		}},
	} {
		m.Keys = []string{fmt.Sprint("k", i)}
		if m.Provenance == "" {
			m.Provenance, m.Text = agent.Human, call
		}
		if _, err := w.Pass(m); err != nil {
			t.Fatal(err)
		}
		cards := agenttest.Only(w.Rest(), agent.Approval)
		if len(cards) != 1 || d.count("delete") != 1 {
			t.Errorf("%s at %s %s: %d cards, and it ran %d times", m.From.ID, m.Address, m.Provenance, len(cards), d.count("delete"))
			continue
		}
		if (m.Wake != nil || !strings.Contains(m.Address, ":dm:")) && cards[0].Always != nil {
			t.Errorf("%s at %s %s is offered a rule", m.From.ID, m.Address, m.Provenance)
		}
		if _, err := w.Pass(agent.Message{
			Keys: []string{fmt.Sprint("d", i)}, From: m.From, Address: m.Address, Provenance: agent.Decided, Decision: &agent.Decision{Card: cards[0].ID, Verdict: agent.Deny},
		}); err != nil {
			t.Fatal(err)
		}
		w.Rest()
	}
}

func TestARuleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		w, _ := fresh(t, asked, d.tool("delete", agent.Effectful, agent.PolicyAsk))
		const call = `delete {"x":"a"}`
		card := asks(w, call)
		time.Sleep(time.Hour) // until when was said on the card, so that counts
		w.Decide(card, agent.Always, "")
		w.Rest()
		time.Sleep(agent.RuleTime - time.Hour - time.Second)
		if asks(w, call) != "" {
			t.Error("it ends early")
		}
		swept := func() (n int) {
			err := w.Config.Store.Update(t.Context(), func(tx memory.Tx) (err error) {
				n, err = agent.SweepRules(tx, time.Now(), 10)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := swept(); n != 0 {
			t.Errorf("%d are swept early", n)
		}
		time.Sleep(time.Second)
		card = asks(w, call)
		if card == "" || len(rulesOf(t, w.Config.Store, agenttest.Ann.ID)) != 0 {
			t.Error("it holds after its end")
		}
		time.Sleep(time.Second)
		if n := swept(); n != 1 {
			t.Errorf("%d are swept", n)
		}
		w.Decide(card, agent.Always, "")
		w.Rest()
		if len(rulesOf(t, w.Config.Store, agenttest.Ann.ID)) != 1 {
			t.Error("it cannot be saved again")
		}
		consistent(t, w.Config.Store)
		w.Kill()
	})
}

// TestARuleOfAClockThatWasWrong is of a clock that was ahead when the rule was saved, and was then set right: the rule would
// hold for longer than anybody has been told.
func TestARuleOfAClockThatWasWrong(t *testing.T) {
	for _, test := range []struct {
		ahead time.Duration
		holds bool
	}{{time.Minute, true}, {10 * 365 * 24 * time.Hour, false}} {
		d := &deeds{}
		w, _ := fresh(t, asked, d.tool("delete", agent.Effectful, agent.PolicyAsk))
		const call = `delete {"x":"a"}`
		allowed(t, w, call)
		err := w.Config.Store.Update(t.Context(), func(tx memory.Tx) error {
			rows := map[string]agent.Rule{}
			err := tx.Table("rule").Scan("", func(key string, data []byte) error {
				var r agent.Rule
				err := json.Unmarshal(data, &r)
				r.Saved, r.Until = r.Saved.Add(test.ahead), r.Until.Add(test.ahead)
				rows[key] = r
				return err
			})
			for key, r := range rows {
				data, _ := json.Marshal(r)
				err = errors.Join(err, tx.Table("rule").Put(key, data))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if holds := asks(w, call) == ""; holds != test.holds {
			t.Errorf("a rule of a clock that was %v ahead holds: %v", test.ahead, holds)
		}
		w.Kill()
	}
}

// TestARuleGoesWithItsSession erases the session, and with it what was allowed in it.
func TestARuleGoesWithItsSession(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, asked, d.tool("delete", agent.Effectful, agent.PolicyAsk))
	allowed(t, w, `delete {"x":"secret name"}`)
	kept, document := exportPerson(t, w.Config.Store, agenttest.Ann.ID, agenttest.Home)
	if len(kept.Rules) != 1 || !strings.Contains(document, `"rules":[{"id":"`) || !strings.Contains(kept.Markdown(time.UTC), "## Allowed without asking") {
		t.Errorf("the export has the rules %+v", kept.Rules)
	}
	removed, err := w.Agent.Erase(t.Context(), agenttest.Home, nil)
	if err != nil || removed.Rules != 1 {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	consistent(t, w.Config.Store)
	if kept, document = exportPerson(t, w.Config.Store, agenttest.Ann.ID, agenttest.Home); strings.Contains(document, "secret name") {
		t.Errorf("kept is %s", document)
	}
	if asks(w, `delete {"x":"secret name"}`) == "" {
		t.Error("it is still allowed")
	}
}

// TestCheckKnowsRules plants rules that no decision saved.
func TestCheckKnowsRules(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, asked, d.tool("delete", agent.Effectful, agent.PolicyAsk))
	allowed(t, w, `delete {"x":"a"}`)
	consistent(t, w.Config.Store)
	err := w.Config.Store.Update(t.Context(), func(tx memory.Tx) error {
		return tx.Table("rule").Scan("", func(key string, data []byte) error {
			var rule map[string]any
			if err := json.Unmarshal(data, &rule); err != nil {
				return err
			}
			rule["arguments"] = map[string]any{"x": "b"}
			wide, err := json.Marshal(rule)
			if err != nil {
				return err
			}
			return tx.Table("rule").Put(key, wide)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if problems := problems(t, w.Config.Store); len(problems) != 1 || !strings.Contains(problems[0], "which no decision has saved so") {
		t.Errorf("check reports %q", problems)
	}
	if asks(w, `delete {"x":"a"}`) == "" || d.count("delete") != 1 {
		t.Error("a rule that was tampered with allows something")
	}
}

// TestACrashAroundAlways lets each commit of a decision fail: afterwards there is a rule if and only if it was decided.
func TestACrashAroundAlways(t *testing.T) {
	run := func(t *testing.T, left []string, n int, after bool) (w *agenttest.World, d *deeds, commits int) {
		store := open(t)
		faulty := memorytest.NewFaulty(store)
		d = &deeds{}
		tool := d.tool("delete", agent.Effectful, agent.PolicyAsk)
		tool.Open = func(agent.Invocation) ([]agent.Opening, string) {
			return []agent.Opening{{Name: "x", Within: "that is short"}}, ""
		}
		w = agenttest.Start(t, agent.Config{
			Store: faulty, Model: &agenttest.Model{T: t, Script: asked}, Spec: agent.ModelSpec{MaxOutput: 1000},
			Tools: []agent.Tool{tool},
		})
		w.Outbox = store
		w.Say(`delete {"x":"a"}`)
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		before := faulty.Count()
		if n > 0 {
			faulty.FailAt(before+n, after)
		}
		for range 3 {
			_, err := w.Pass(agent.Message{Keys: []string{"click"}, Provenance: agent.Decided, Decision: &agent.Decision{Card: card.ID, Verdict: agent.Always, Open: left}})
			leaveUnknown(w)
			select {
			case <-faulty.Crashed():
				w.Kill()
				faulty.Revive()
				consistent(t, store) // no rule without its decision, nor the other way round
				w.Restart()
				leaveUnknown(w)
			default:
			}
			if err == nil {
				break
			}
		}
		return w, d, faulty.Count() - before
	}
	for _, left := range [][]string{nil, {"x"}} {
		_, _, commits := run(t, left, 0, false)
		if commits < 3 {
			t.Fatalf("undisturbed there are %d commits", commits)
		}
		for n := 1; n <= commits; n++ {
			for _, after := range []bool{false, true} {
				w, d, _ := run(t, left, n, after)
				consistent(t, w.Config.Store)
				marks := slices.DeleteFunc(agenttest.Only(w.Said(), agent.DecidedMark), func(r agent.Reply) bool { return r.Decision != agent.Always })
				rules := rulesOf(t, w.Config.Store, agenttest.Ann.ID)
				if len(marks) != 1 || len(rules) != 1 || len(rules[0].Open) != len(left) || d.count("delete") > 1 {
					t.Errorf("%q open, commit %d after %v: %d marks, the rules %+v, and it ran %d times", left, n, after, len(marks), rules, d.count("delete"))
				}
			}
		}
	}
}

// TestARevokedReadIsNotRepeated cuts off a read that a rule let run, and revokes the rule before the next start.
func TestARevokedReadIsNotRepeated(t *testing.T) {
	d := &deeds{begun: make(chan string, 9)}
	look := d.slow("look", agent.Read, time.Minute)
	look.Policy = agent.PolicyAsk
	quick := look
	quick.Run = func(context.Context, agent.Invocation) (agent.Result, error) { return agent.Result{Text: "seen"}, nil }
	w, _ := fresh(t, asked, quick)
	allowed(t, w, `look {"x":"a"}`)
	w.Config.Tools[0] = look
	w.Restart()
	w.Say(`look {"x":"a"}`)
	<-d.begun
	w.Kill()
	revoke(t, w.Config.Store, agenttest.Ann.ID, "")
	w.Restart()
	if said := w.Rest(); len(agenttest.Only(said, agent.Approval)) != 1 || d.count("look") != 1 {
		t.Errorf("after the start it ran %d times, and says %s", d.count("look"), agenttest.Lines(said))
	}
}

// TestRules compares what is asked about with a plain list of what was allowed.
func TestRules(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := &deeds{}
		store := open(t)
		people := []agent.Person{agenttest.Ann, {ID: "terminal:bob"}, {ID: "terminal:an"}}
		w := agenttest.Start(t, agent.Config{
			Store: store, Model: &agenttest.Model{T: t, Script: asked}, Spec: agent.ModelSpec{MaxOutput: 1000},
			Tools: []agent.Tool{d.tool("delete", agent.Effectful, agent.PolicyAsk), d.tool("erase", agent.Read, agent.PolicyAsk)},
		})
		defer w.Kill()
		allowed := map[string]string{} // person and call → rule
		for i := range rapid.IntRange(1, 12).Draw(r, "calls") {
			who := rapid.SampledFrom(people).Draw(r, "who")
			tool := rapid.SampledFrom([]string{"delete", "erase"}).Draw(r, "tool")
			arguments, err := json.Marshal(map[string]string{"x": rapid.SampledFrom([]string{"", "a", "A", "a ", "á", "á", "a\u200b", `a","x":"b`, rapid.StringN(0, 3, 9).Draw(r, "any")}).Draw(r, "x")})
			if err != nil {
				r.Fatal(err)
			}
			key := string(who.ID) + " " + tool + " " + string(arguments)
			home := who.ID.Home()
			did := d.count(tool)
			pass := func(m agent.Message) {
				m.From, m.Address, m.Session = who, home, home
				if _, err := w.Pass(m); err != nil {
					r.Fatal(err)
				}
			}
			pass(agent.Message{Keys: []string{fmt.Sprint("k", i)}, Provenance: agent.Human, Text: tool + " " + string(arguments)})
			cards := agenttest.Only(w.Rest(), agent.Approval)
			if (len(cards) == 0) != (allowed[key] != "") || (d.count(tool) > did) != (len(cards) == 0) {
				r.Fatalf("%s: %d cards, and allowed is %q", key, len(cards), allowed[key])
			}
			if len(cards) > 0 {
				verdict := rapid.SampledFrom([]agent.Verdict{agent.Always, agent.Approve, agent.Deny}).Draw(r, "verdict")
				pass(agent.Message{Keys: []string{fmt.Sprint("d", i)}, Provenance: agent.Decided, Decision: &agent.Decision{Card: cards[0].ID, Verdict: verdict}})
				for _, mark := range agenttest.Only(w.Rest(), agent.DecidedMark) {
					if verdict == agent.Always {
						allowed[key] = mark.Rule
					}
				}
			} else if rapid.Bool().Draw(r, "revoked") {
				if revoke(t, store, who.ID, allowed[key]) != 1 {
					r.Fatalf("%s has no rule %s", key, allowed[key])
				}
				delete(allowed, key)
			}
			if rapid.IntRange(0, 5).Draw(r, "restart") == 0 {
				w.Restart()
				w.Rest()
			}
		}
		consistent(t, store)
	})
}

// TestARuleIsLookedUpAgain revokes a rule while a hook decides about the call that it lets run.
func TestARuleIsLookedUpAgain(t *testing.T) {
	d := &deeds{}
	w, m := fresh(t, asked, d.tool("delete", agent.Effectful, agent.PolicyAsk))
	allowed(t, w, `delete {"x":"a"}`)
	w.Config.Hooks = []agent.Hook{{Name: "slow", At: agent.BeforeTool, Rule: func(context.Context, agent.HookQuestion) (agent.Ruling, error) {
		revoke(t, w.Config.Store, agenttest.Ann.ID, "")
		return agent.Ruling{}, nil
	}}}
	w.Restart()
	w.Say(`delete {"x":"a"}`)
	w.Rest()
	requests := m.Requests()
	last := requests[len(requests)-1].Messages
	if text := last[len(last)-1].Text; d.count("delete") != 1 || !strings.Contains(text, "holds no more") {
		t.Errorf("it ran %d times, and the model reads %q", d.count("delete"), text)
	}
}

// TestWeighing asks what speaks against decisions, which decides nothing.
func TestWeighing(t *testing.T) {
	d := &deeds{}
	tool := d.tool("delete", agent.Effectful, agent.PolicyAsk)
	tool.Judge = func(in agent.Invocation) (agent.Policy, string, error) {
		switch {
		case strings.Contains(string(in.Arguments), "outside"):
			return "", "", fmt.Errorf("outside is not there")
		case strings.Contains(string(in.Arguments), "everything"):
			return agent.PolicySecond, "", nil
		}
		return agent.PolicyAsk, "", nil
	}
	w, _ := fresh(t, asked, tool)
	card := asks(w, `delete {"x":"a"}`)
	weigh := func(by agent.Person, verdict agent.Verdict, arguments string) agent.Objection {
		t.Helper()
		o, err := w.Agent.Weigh(t.Context(), by, agent.Decision{Card: card, Verdict: verdict, Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Fatal(err)
		}
		if o == nil {
			return agent.Objection{}
		}
		return *o
	}
	for _, c := range []struct {
		by        agent.Person
		verdict   agent.Verdict
		arguments string
		want      string // "" when nothing speaks against it
		field     string
		final     bool
	}{
		{agenttest.Ann, agent.Approve, "", "", "", false},
		{agenttest.Ann, agent.Always, "", "", "", false},
		{agenttest.Ann, agent.Edit, "", "", "", false},
		{agenttest.Ann, agent.Edit, `{"x":"b"}`, "", "", false},
		{agenttest.Ann, agent.Edit, `{"x":7}`, "got number, want string", "x", false},
		{agenttest.Ann, agent.Edit, `{"y":"b"}`, `"y" is not known`, "y", false},
		{agenttest.Ann, agent.Edit, `{"x":"b"`, "not one JSON object", "", false},
		{agenttest.Ann, agent.Edit, `{"x":"outside"}`, "outside is not there", "", false},
		{agenttest.Ann, agent.Edit, `{"x":"everything"}`, "not yours to decide", "", false},
		{bob, agent.Deny, "", "not yours to decide", "", true},
		{bob, agent.Edit, `{"x":7}`, "not yours to decide", "", true},
	} {
		o := weigh(c.by, c.verdict, c.arguments)
		if (c.want == "") != (o.Text == "") || !strings.Contains(o.Text, c.want) || (o.Fields[c.field] == "") != (c.field == "") || o.Final != c.final {
			t.Errorf("%s %s %s by %s: %+v", c.verdict, card, c.arguments, c.by.ID, o)
		}
	}
	w.Decide(card, agent.Approve, "")
	w.Rest()
	if o := weigh(agenttest.Ann, agent.Edit, `{"x":"b"}`); !o.Final || !strings.Contains(o.Text, "already approved by ann") {
		t.Errorf("after the decision: %+v", o)
	}
	card = "unknown"
	if o := weigh(agenttest.Ann, agent.Deny, ""); !o.Final || !strings.Contains(o.Text, "do not know that card") {
		t.Errorf("of an unknown card: %+v", o)
	}
	if d.count("delete") != 1 {
		t.Errorf("it ran %d times", d.count("delete"))
	}
}
