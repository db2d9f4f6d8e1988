package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/memorytest"
)

var (
	sharedAnn = agent.Person{ID: "slack:T1:U1", Name: "Ann Canary"}
	sharedBob = agent.Person{ID: "slack:T1:U2", Name: "Bob"}
)

// forgetAnn says whom to forget.
var forgetAnn = agent.Forgetting{
	Accounts: []agent.PersonID{sharedAnn.ID},
	Own: func(session string) bool {
		return strings.HasPrefix(session, sharedAnn.ID.Home()) || agent.WakeOwner(session) == sharedAnn.ID
	},
}

// says has a person say something in a conversation.
func says(t *testing.T, w *agenttest.World, who agent.Person, address, text string) {
	t.Helper()
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(address+string(who.ID)+text)))
	m := agent.Message{Keys: []string{key}, ID: key[:12], Provenance: agent.Human, From: who, Address: address, Text: text}
	if _, err := w.Pass(m); err != nil {
		t.Fatal(err)
	}
	w.Rest()
}

// shared is a world in which Ann and Bob have talked in a thread, and Ann alone.
func shared(t *testing.T, store memory.Store) (*agenttest.World, *agenttest.Model) {
	t.Helper()
	script := func(req model.Request) model.Answer {
		last := agenttest.LastUser(req)
		at := strings.LastIndex(last, "deploy ")
		if at < 0 {
			return agenttest.Say("noted: " + last)
		}
		users := 0
		for _, m := range req.Messages {
			if m.Role == model.User {
				users++
			}
		}
		id := fmt.Sprintf("c%d", users)
		for _, m := range req.Messages {
			if m.Role == model.ToolRole && m.CallID == id {
				return agenttest.Say("the tool said " + m.Text)
			}
		}
		return agenttest.Do(model.Call{ID: id, Name: "deploy", Arguments: fmt.Sprintf(`{"x":%q}`, last[at:])})
	}
	m := &agenttest.Model{T: t, Script: script}
	d := &deeds{}
	w := agenttest.Start(t, agent.Config{
		Store: store, Model: m, Spec: agent.ModelSpec{Name: "scripted", Window: 1 << 20, MaxOutput: 1000}, Owners: []agent.PersonID{sharedBob.ID},
		Tools: []agent.Tool{d.tool("deploy", agent.Effectful, agent.PolicyAsk)},
	})
	says(t, w, sharedAnn, sharedAnn.ID.Home(), "private canary-7421")
	says(t, w, sharedBob, thread, "Bob was here first")
	says(t, w, sharedAnn, thread, "canary-7421 in the thread")
	says(t, w, sharedBob, thread, "Bob goes on")
	says(t, w, sharedAnn, thread, "deploy canary-7421")
	for _, r := range w.Said(agent.Approval) {
		decide(t, w, sharedAnn, thread, r.ID, "never canary-7421")
	}
	says(t, w, sharedBob, thread, "Bob has the last word")
	return w, m
}

func decide(t *testing.T, w *agenttest.World, who agent.Person, address, card, reason string) {
	t.Helper()
	m := agent.Message{
		Keys: []string{"deny " + card + reason}, Provenance: agent.Decided, From: who, Address: address,
		Decision: &agent.Decision{Card: card, Verdict: agent.Deny, Text: reason},
	}
	if _, err := w.Pass(m); err != nil {
		t.Fatal(err)
	}
	w.Rest()
}

func audit(t *testing.T, store memory.Store) (lines []agent.AuditLine) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		lines, err = agent.Audit(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestForgettingTakesWordsOutOfSharedSessions(t *testing.T) {
	w, m := shared(t, open(t))
	store := w.Config.Store
	if traces(t, store, canary) == "" || traces(t, store, "Ann Canary") == "" {
		t.Fatal("there is nothing to forget")
	}
	before, lines := audit(t, store), count(t, store, thread)
	if len(before) != 1 || before[0].By != sharedAnn.ID || before[0].Text != "never canary-7421" || before[0].Did != "deny" || before[0].Digest == "" || len(before[0].Shown) == 0 {
		t.Fatalf("the audit before: %+v", before)
	}
	removed, err := w.Agent.Forget(context.Background(), forgetAnn, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(removed.Sessions) != 1 || removed.Shared != 1 || removed.Blanked < 5 || removed.Known != 1 {
		t.Errorf("removed %+v", removed)
	}
	w.Rest()
	for _, words := range []string{canary, "Ann Canary: ", `"name":"Ann Canary"`, string(sharedAnn.ID)} {
		if left := traces(t, store, words); left != "" {
			t.Errorf("left of %q: %s", words, left)
		}
	}
	if n := count(t, store, thread); n != lines {
		t.Errorf("the thread has %d lines, had %d", n, lines)
	}
	for _, words := range []string{"Bob was here first", "Bob goes on", "Bob has the last word"} {
		if traces(t, store, words) == "" {
			t.Errorf("%q went too", words)
		}
	}
	if found := problems(t, store); len(found) > 0 {
		t.Errorf("a check finds %q", found)
	}
	after := audit(t, store)
	if len(after) != 1 {
		t.Fatalf("the audit after: %+v", after)
	}
	was, is := before[0], after[0]
	if is.By != agent.PersonID(removed.Opaque) || is.Asked != is.By || is.Text != "" || is.Shown != nil || !is.At.Equal(was.At) || is.Tool != was.Tool || is.Did != was.Did || is.Digest != was.Digest {
		t.Errorf("the audit after: %+v, was %+v", is, was)
	}
	// The thread goes on, from what is left.
	w.Restart()
	says(t, w, sharedBob, thread, "and now?")
	requests := m.Requests()
	if request := fmt.Sprint(requests[len(requests)-1].Messages); strings.Contains(request, canary) || !strings.Contains(request, "Bob goes on") {
		t.Errorf("the model reads %s", request)
	}
}

// What was read of a person in a thread, and all that the model made of it, goes with them: results, what was
// remembered, what it said and wrote to them, plans, summaries, checkpoints, saved results, what was said of it to
// others, and what lies in the outbox.
func TestForgettingTakesWhatWasReadOfThem(t *testing.T) {
	const inFile, inNote, inWords, inCall, inPlan = "a diagnosis in a file", "a diagnosis in a note", "in other words she is ill", "an argument about illness", "a step towards health"
	agent.CheckpointAfter(t, 1)
	for name, c := range map[string]struct{ window, length int }{"long results": {1 << 20, 60 << 10}, "summaries": {4000, 3000}} {
		t.Run(name, func(t *testing.T) {
			summaries := 0
			script := func(req model.Request) model.Answer {
				if keep, yes := asksForSummary(req); yes {
					summaries++
					return agenttest.Say(inWords + ", " + inFile + ", " + inNote + "\n" + keep)
				}
				last := agenttest.LastUser(req)
				switch n := len(agenttest.Results(req)); {
				case strings.Contains(last, "quote it"):
					return agenttest.Say("It says:\n" + inFile + "\nand that is all.")
				case !strings.Contains(last, "look"):
					return agenttest.Say("fine")
				case n == 0:
					return agenttest.Do(agenttest.Call(1, "look", `{"x":"`+inCall+`"}`), agenttest.Call(2, "plan", `{"items":[{"text":"`+inPlan+`","done":false}]}`))
				}
				answer := agenttest.Say(inWords)
				answer.Reasoning = "thinking: " + inWords
				return answer
			}
			look := labelled("look", inFile+"\n"+strings.Repeat("word ", c.length/5), agent.Read, agent.Labels{Private: true, Own: true}, nil)
			look.Policy = agent.PolicyNo
			page := labelled("read_page", "", agent.Read, agent.Labels{}, nil)
			page.Pages = true
			w := agenttest.Start(t, agent.Config{
				Store: open(t), Model: &agenttest.Model{T: t, Script: script}, Spec: agent.ModelSpec{Name: "scripted", Window: c.window, MaxOutput: 500}, Tools: []agent.Tool{look, page},
				Recall: func(_ context.Context, r agent.Recalling) []string {
					if r.Person.ID != sharedAnn.ID {
						return nil
					}
					return []string{inNote}
				},
			})
			store := w.Config.Store
			says(t, w, sharedBob, thread, "Bob was here first")
			says(t, w, sharedAnn, thread, "look")
			for _, r := range w.Said(agent.Approval) {
				m := agent.Message{Keys: []string{r.ID}, Provenance: agent.Decided, From: sharedAnn, Address: thread, Decision: &agent.Decision{Card: r.ID, Verdict: agent.Approve}}
				if _, err := w.Pass(m); err != nil {
					t.Fatal(err)
				}
				w.Rest()
			}
			says(t, w, sharedBob, thread, "Bob says quote it")
			for n := range 8 {
				says(t, w, sharedBob, thread, fmt.Sprint("Bob goes on ", n, strings.Repeat(" and on", 400)))
			}
			if c.window < 1<<20 && summaries == 0 {
				t.Fatal("nothing was summed up")
			}
			for _, words := range []string{inFile, inNote, inWords, inCall, inPlan} {
				if traces(t, store, words) == "" {
					t.Fatalf("there is no %q to begin with", words)
				}
			}
			lines := count(t, store, thread)
			unsaid := agent.Reply{Kind: agent.Final, Session: thread, Turn: turnOf(t, store, thread, sharedAnn.ID), Text: inWords, Address: thread}
			if err := store.Update(t.Context(), func(tx memory.Tx) error { return agent.Send(tx, unsaid) }); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Agent.Forget(t.Context(), forgetAnn, nil); err != nil {
				t.Fatal(err)
			}
			for _, words := range []string{inFile, inNote, inWords, inCall, inPlan} {
				if left := traces(t, store, words); left != "" {
					t.Errorf("left of %q: %s", words, left)
				}
			}
			for _, words := range []string{"Bob was here first", "and that is all.", "Bob goes on 3"} {
				if traces(t, store, words) == "" {
					t.Errorf("%q went too", words)
				}
			}
			if found := problems(t, store); len(found) > 0 || count(t, store, thread) < lines {
				t.Errorf("of %d lines %d are left, and a check finds %q", lines, count(t, store, thread), found)
			}
			w.Restart()
			says(t, w, sharedBob, thread, "and now?")
		})
	}
}

// turnOf is the newest turn of a person's in a session.
func turnOf(t testing.TB, store memory.Store, session string, person agent.PersonID) (turn string) {
	t.Helper()
	for _, line := range journalData(t, store, session, "turn_started") {
		var begun struct {
			Turn   string       `json:"turn"`
			Person agent.Person `json:"person"`
		}
		if json.Unmarshal([]byte(line), &begun) == nil && begun.Person.ID == person {
			turn = begun.Turn
		}
	}
	return turn
}

// A card of the person's that waits for somebody else runs nothing any more, whoever decides it.
func TestForgettingWithdrawsWhatWaits(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "launch", `{"x":"canary-7421"}`)), d.tool("launch", agent.Effectful, agent.PolicyOwner))
	w.Config.Owners = []agent.PersonID{sharedBob.ID}
	w.Restart()
	says(t, w, sharedAnn, thread, "launch canary-7421")
	cards := w.Said(agent.Approval)
	if len(cards) == 0 {
		t.Fatal("nothing was asked")
	}
	card := cards[0].ID
	if _, err := w.Agent.Forget(context.Background(), forgetAnn, nil); err != nil {
		t.Fatal(err)
	}
	m := agent.Message{Keys: []string{"late"}, Provenance: agent.Decided, From: sharedBob, Address: thread, Decision: &agent.Decision{Card: card, Verdict: agent.Approve}}
	if _, err := w.Pass(m); err != nil && !errors.Is(err, agent.ErrUnknownCard) {
		t.Fatal(err)
	}
	w.Rest()
	if d.count("launch") > 0 {
		t.Error("it ran for somebody who was forgotten")
	}
	if left := traces(t, w.Config.Store, canary); left != "" {
		t.Errorf("left: %s", left)
	}
	for _, line := range audit(t, w.Config.Store) {
		if line.Card == card && line.Did != string(agent.Withdrawn) {
			t.Errorf("the card: %+v", line)
		}
	}
	if found := problems(t, w.Config.Store); len(found) > 0 {
		t.Errorf("a check finds %q", found)
	}
}

// Killed before or after any commit, all is there or nothing is, and forgetting again forgets the rest.
func TestForgettingSurvivesACrashAtEveryCommit(t *testing.T) {
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			store := open(t)
			faulty := memorytest.NewFaulty(store)
			w, _ := shared(t, faulty)
			says(t, w, sharedAnn, thread, "deploy canary-7421 again") // waits
			faulty.FailAt(faulty.Count()+n, after)
			_, err := w.Agent.Forget(context.Background(), forgetAnn, nil)
			crashed := err != nil
			w.Kill()
			faulty.Revive()
			left := traces(t, store, "private canary-7421") != ""
			if inThread := traces(t, store, "canary-7421 in the thread") != ""; left != inThread {
				t.Fatalf("crash %d, after %t: of her own session all is left: %t, of the thread: %t", n, after, left, inThread)
			}
			if !crashed && left {
				t.Fatalf("crash %d, after %t: it was said to be done and was not", n, after)
			}
			w.Restart()
			w.Rest()
			if _, err := w.Agent.Forget(context.Background(), forgetAnn, nil); err != nil {
				t.Fatalf("crash %d, after %t: again: %v", n, after, err)
			}
			w.Rest()
			if left := traces(t, store, canary); left != "" {
				t.Fatalf("crash %d, after %t: left: %s", n, after, left)
			}
			if found := problems(t, store); len(found) > 0 {
				t.Fatalf("crash %d, after %t: a check finds %q", n, after, found)
			}
			w.Kill()
			if !crashed {
				if n < 2 {
					t.Fatalf("only %d commits", n)
				}
				return
			}
		}
	}
}

// What was erased keeps its decisions in the audit, without words.
func TestTheAuditOutlivesASession(t *testing.T) {
	w, _ := shared(t, open(t))
	w.Kill()
	before := audit(t, w.Config.Store)
	eraseAtRest(t, w.Config.Store, thread)
	after := audit(t, w.Config.Store)
	if len(after) != len(before) || after[0].Digest != before[0].Digest || after[0].By != sharedAnn.ID || after[0].Text != "" || after[0].Shown != nil {
		t.Errorf("the audit after: %+v", after)
	}
}

// What runs for the person is stopped first, in their own sessions and in those with others.
func TestForgettingStopsWhatRuns(t *testing.T) {
	for _, where := range []string{sharedAnn.ID.Home(), thread} {
		d := &deeds{begun: make(chan string, 1)}
		w, _ := fresh(t, once(agenttest.Call(1, "dig", `{"x":"canary-7421"}`)), d.slow("dig", agent.Effectful, time.Hour))
		m := agent.Message{Keys: []string{"dig"}, ID: "m1", Provenance: agent.Human, From: sharedAnn, Address: where, Text: "dig for canary-7421"}
		if _, err := w.Pass(m); err != nil {
			t.Fatal(err)
		}
		<-d.begun
		if _, err := w.Agent.Forget(context.Background(), forgetAnn, nil); err != nil {
			t.Fatal(err)
		}
		w.Rest()
		if left := traces(t, w.Config.Store, canary); left != "" {
			t.Errorf("in %s is left: %s", where, left)
		}
		if found := problems(t, w.Config.Store); len(found) > 0 {
			t.Errorf("in %s a check finds %q", where, found)
		}
		w.Kill()
	}
}
