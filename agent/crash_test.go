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

// crashScript reads twice, writes and deletes in one batch, asks the person, and answers with what the results say.
func crashScript(req model.Request) model.Answer {
	results := agenttest.Results(req)
	words := func(calls ...string) string {
		var parts []string
		for _, c := range calls {
			first, _, _ := strings.Cut(results[c], ":")
			parts = append(parts, first)
		}
		return strings.Join(parts, "; ")
	}
	switch {
	case results["ask_person-1"] != "":
		return agenttest.Say("result: " + words("read-1", "write-1", "delete-1", "ask_person-1"))
	case results["delete-1"] != "":
		return agenttest.Do(agenttest.Call(1, "ask_person", `{"question":"which?"}`))
	}
	return agenttest.Do(agenttest.Call(1, "read", `{"x":"1"}`), agenttest.Call(2, "read", `{"x":"2"}`),
		agenttest.Call(1, "write", `{"x":"w"}`), agenttest.Call(1, "delete", `{"x":"d"}`))
}

// crashRun has the scripted conversation, in which the n-th commit crashes, before it or after it; 0 for none. After a
// crash the agent is started again and whatever was not acknowledged is sent again, as a platform would.
type crashRun struct {
	world  *agenttest.World
	model  *agenttest.Model
	faulty *memorytest.Faulty
	deeds  *deeds
}

func newCrashRun(t *testing.T, n int, after bool, priced bool, latency time.Duration) *crashRun {
	spec := agent.ModelSpec{MaxOutput: 1000}
	if priced {
		spec.PriceIn, spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
	}
	d := &deeds{}
	store := open(t)
	r := &crashRun{faulty: memorytest.NewFaulty(store), deeds: d, model: &agenttest.Model{T: t, Script: crashScript, Latency: latency}}
	r.world = agenttest.Start(t, agent.Config{
		Store: r.faulty, Model: r.model,
		Tools:  []agent.Tool{d.tool("read", agent.Read, ""), d.tool("write", agent.Effectful, ""), d.tool("delete", agent.Effectful, agent.PolicyAsk)},
		Spec:   spec,
		Limits: agent.Limits{Steps: 20, ToolCalls: 50, Errors: 3},
	})
	r.world.Outbox = store
	if n > 0 {
		r.faulty.FailAt(n, after)
	}
	return r
}

// until does something again until it is acknowledged and nothing runs, starting again after a crash.
func (r *crashRun) until(t *testing.T, do func() error) {
	t.Helper()
	for try := 0; try < 3; try++ {
		err := do()
		r.world.Rest()
		select {
		case <-r.faulty.Crashed():
			r.world.Kill()
			r.faulty.Revive()
			r.world.Restart()
			leaveUnknown(r.world)
			if err == nil {
				return // acknowledged before the crash
			}
		default:
			if err != nil {
				t.Fatalf("it failed without a crash: %v", err)
			}
			return
		}
	}
	t.Fatal("three crashes in a row")
}

func (r *crashRun) converse(t *testing.T) {
	t.Helper()
	r.until(t, func() error { _, err := r.world.Receive("first", "go"); return err })
	cards := r.world.Said(agent.Approval)
	if len(cards) == 0 {
		t.Fatalf("no card was shown; said:\n%s", agenttest.Lines(r.world.Said()))
	}
	r.until(t, func() error {
		_, err := r.world.Pass(agent.Message{
			Keys: []string{"click"}, Provenance: agent.Decided, Decision: &agent.Decision{Card: cards[0].ID, Verdict: agent.Approve},
		})
		return err
	})
	if len(r.world.Said(agent.Ask)) == 0 {
		t.Fatalf("no question was asked; said:\n%s", agenttest.Lines(r.world.Said()))
	}
	r.until(t, func() error { _, err := r.world.Receive("answer", "the second"); return err })
}

// Where nothing is paid, writes wait for what comes soon after: a model that answers at once has them made together, a slow
// one apart.
func TestACrashAtAnyCommitLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Run("priced", func(t *testing.T) { crashAtEachCommit(t, true, 0, 11) })
	t.Run("free", func(t *testing.T) { crashAtEachCommit(t, false, 0, 7) })
	t.Run("free and slow", func(t *testing.T) { crashAtEachCommit(t, false, time.Second, 11) })
}

func crashAtEachCommit(t *testing.T, priced bool, latency time.Duration, least int) {
	// The time is a bubble's, so that the same writes are made together each time.
	var calm *crashRun
	synctest.Test(t, func(t *testing.T) {
		calm = newCrashRun(t, 0, false, priced, latency)
		calm.converse(t)
		calm.world.Kill()
	})
	commits := calm.faulty.Count()
	want := agenttest.Only(calm.world.Said(), agent.Final)
	settled := agenttest.Only(calm.world.Said(), agent.SettledMark)[0]
	if len(want) != 1 || !strings.HasPrefix(want[0].Text, "result: read done") || calm.deeds.all() != "read read write delete" {
		t.Fatalf("the undisturbed run said %s and ran %s", agenttest.Lines(want), calm.deeds.all())
	}
	if commits < least {
		t.Fatalf("only %d commits were seen", commits)
	}
	t.Logf("%d commits", commits)
	for n := 1; n <= commits; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after %v", n, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newCrashRun(t, n, after, priced, latency)
					r.converse(t)
					r.check(t, len(calm.model.Requests()), want[0].Text, settled)
					r.world.Kill()
				})
			})
		}
	}
}

func (r *crashRun) check(t *testing.T, requests int, want string, settled agent.Reply) {
	t.Helper()
	for _, name := range []string{"write", "delete"} {
		if n := r.deeds.count(name); n > 1 {
			t.Errorf("%s ran %d times", name, n)
		}
	}
	finals := r.world.Said(agent.Final)
	if len(finals) != 1 {
		t.Fatalf("%d answers; said:\n%s", len(finals), agenttest.Lines(r.world.Said()))
	}
	unknown := strings.Contains(finals[0].Text, "interrupted, outcome unknown")
	if !unknown && finals[0].Text != want {
		t.Errorf("the answer is %q, want %q", finals[0].Text, want)
	}
	told := false
	for _, n := range r.world.Said(agent.Notice) {
		told = told || strings.Contains(n.Text, "outcome is unknown")
	}
	if unknown != told {
		t.Errorf("an outcome is unknown: %v, the person was told so: %v", unknown, told)
	}
	for _, kind := range []agent.Kind{agent.Approval, agent.Ask, agent.SettledMark} {
		if n := len(r.world.Said(kind)); n != 1 && !unknown {
			t.Errorf("%d of %s; said:\n%s", n, kind, agenttest.Lines(r.world.Said()))
		}
	}
	// A model call that was journaled and has no answer is charged its reserve, whether it was made or not.
	totals := r.world.Said(agent.SettledMark)[0].Totals
	switch lost := len(r.model.Requests()) - requests; {
	case lost > 1:
		t.Errorf("%d more model calls than undisturbed", lost)
	case settled.CostUSD == 0: // what nobody pays for need not be told
	case lost == 1 && !totals.Unknown:
		t.Errorf("a lost model call is not marked: %+v", totals)
	case totals.Unknown && totals.CostUSD <= settled.CostUSD:
		t.Errorf("a lost model call is charged nothing: %+v", totals)
	case !totals.Unknown && totals.CostUSD != settled.CostUSD:
		t.Errorf("the cost is %v, undisturbed %v", totals.CostUSD, settled.CostUSD)
	}
}

// Calls that a crash left without a result get one each; nothing with effects is run again; what the
// person says next comes after the results.
func TestACrashBetweenCallAndResult(t *testing.T) {
	d := &deeds{}
	faulty := memorytest.NewFaulty(open(t))
	m := &agenttest.Model{T: t, Script: func(req model.Request) model.Answer {
		if len(agenttest.Results(req)) == 0 && agenttest.LastUser(req) == "pay it" {
			return agenttest.Do(agenttest.Call(1, "lookup", `{}`), agenttest.Call(1, "pay", `{}`), agenttest.Call(1, "note", `{}`))
		}
		return agenttest.Say("noted")
	}}
	pay := d.tool("pay", agent.Effectful, "")
	run := pay.Run
	pay.Run = func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
		faulty.FailAt(faulty.Count()+1, false) // the result cannot be kept
		return run(ctx, in)
	}
	w := agenttest.Start(t, agent.Config{
		Store: faulty, Model: m, Spec: agent.ModelSpec{MaxOutput: 1000},
		Tools: []agent.Tool{d.tool("lookup", agent.Read, ""), pay, d.tool("note", agent.Effectful, "")},
	})
	w.Say("pay it")
	w.Rest()
	w.Kill()
	faulty.Revive()
	w.Restart()
	w.Say("hello?")
	w.Rest()
	if d.all() != "lookup pay" {
		t.Errorf("ran: %s", d.all())
	}
	requests := m.Requests()
	last := requests[len(requests)-1].Messages
	var texts []string
	for _, msg := range last {
		texts = append(texts, string(msg.Role)+" "+msg.Text)
	}
	view := strings.Join(texts, "\n")
	for _, part := range []string{"tool lookup done", "tool interrupted, outcome unknown", "may or may not have taken effect", "tool not run, not started"} {
		if !strings.Contains(view, part) {
			t.Errorf("%q is not in what the model read:\n%s", part, view)
		}
	}
	if strings.Index(view, "user hello?") < strings.Index(view, "not started") {
		t.Errorf("the person's words do not come after the results:\n%s", view)
	}
	if notices := w.Said(agent.Notice); len(notices) != 1 || !strings.Contains(notices[0].Text, "outcome is unknown") {
		t.Errorf("the person was told %s", agenttest.Lines(notices))
	}
}
