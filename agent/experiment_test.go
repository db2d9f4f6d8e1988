package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/agent/tool/workspace"
	"nudge/memory"
	"nudge/memory/memorytest"
)

// What a loop with tools costs, where it ends and what it survives: each experiment asserts its claim and prints its
// table. See them with: go test ./agent -run Experiments -v
func TestExperiments(t *testing.T) {
	for _, experiment := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"1 plan", planExperiment},
		{"2 runaway", runawayExperiment},
		{"3 budgets", budgetsExperiment},
		{"4 recover", recoverExperiment},
		{"5 permanent error", permanentExperiment},
		{"6 duplicates", duplicatesExperiment},
		{"7 destructive", destructiveExperiment},
		{"8 restart", restartExperiment},
		{"9 stop", stopExperiment},
		{"10 overhead", overheadExperiment},
		{"10 latency", latencyExperiment},
		{"11 batches", batchesExperiment},
		{"11 exceptions", exceptionsExperiment},
		{"12 real model", realModelExperiment},
		{"prefix", prefixExperiment},
		{"long work", longWorkExperiment},
	} {
		t.Run(experiment.name, experiment.run)
	}
}

// finalOf is the answer that a turn ended with; "" when it ended without.
func finalOf(said []agent.Reply) string {
	text := ""
	for _, r := range agenttest.Only(said, agent.Final) {
		text += r.Text
	}
	return text
}

// Three steps and two tools, answered: what is read again makes each step dearer than the one before.
func planExperiment(t *testing.T) {
	price := agenttest.Tool("price", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: "one A-17 costs 3.50 EUR"}, nil
	})
	multiply := agenttest.Tool("multiply", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: "42.00"}, nil
	})
	w, m := priced(t, agent.Limits{Steps: 5, Repeats: agent.DefaultRepeats}, func(req model.Request) model.Answer {
		results := agenttest.Results(req)
		switch {
		case results["multiply-1"] != "":
			return agenttest.Say("Twelve A-17 cost " + results["multiply-1"] + " EUR.")
		case results["price-1"] != "":
			return agenttest.Do(agenttest.Call(1, "multiply", `{"x":"12 * 3.50"}`))
		}
		return agenttest.Do(agenttest.Call(1, "price", `{"x":"A-17"}`))
	}, price, multiply)
	w.Say("What do twelve A-17 cost?")
	said := w.Rest()
	same(t, said, `
		final Twelve A-17 cost 42.00 EUR.
		settled completed 3 steps 2 calls`)
	out := table{{"step", "tokens in", "tokens out", "cost"}}
	var sum model.Usage
	for i, u := range m.usages {
		out.row(i+1, u.In, u.Out, dollars(costOf(u).USD()))
		if i > 0 && u.In <= m.usages[i-1].In {
			t.Errorf("step %d read %d tokens, the one before %d", i+1, u.In, m.usages[i-1].In)
		}
		sum.In, sum.Out = sum.In+u.In, sum.Out+u.Out
	}
	out.row("turn", sum.In, sum.Out, dollars(costOf(sum).USD()))
	settled := only(t, said, agent.SettledMark)
	if settled.TokensIn != sum.In || settled.TokensOut != sum.Out || settled.CostUSD != costOf(sum).USD() {
		t.Errorf("settled with %+v, the provider counted %+v", *settled.Totals, sum)
	}
	t.Logf("\n%s", &out)
}

// A model that knows only what a result tells it gets over an error that says what to do, and over no other.
func recoverExperiment(t *testing.T) {
	out := table{{"the tool", "the model reads", "steps", "it ends with"}}
	for _, c := range []struct {
		name  string
		fail  func() error
		right bool
	}{
		{"panics", func() error { panic("nil map") }, false},
		{"says that it failed", func() error { return errors.New("something failed") }, false},
		{"says what to do", func() error { return errors.New("the date must be YYYY-MM-DD, such as 2026-05-03") }, true},
	} {
		book := agenttest.Tool("book", agent.Effectful, "", func(_ context.Context, in agent.Invocation) (agent.Result, error) {
			var with struct{ X string }
			if err := in.Decode(&with); err != nil {
				return agent.Result{}, err
			}
			if _, err := time.Parse(time.DateOnly, with.X); err != nil {
				return agent.Result{}, c.fail()
			}
			return agent.Result{Text: "booked for " + with.X}, nil
		})
		w, m := priced(t, agent.Limits{Steps: 12, Errors: 3, Repeats: agent.DefaultRepeats}, func(req model.Request) model.Answer {
			results := agenttest.Results(req)
			first, second := results["book-1"], results["book-2"]
			switch {
			case first == "":
				return agenttest.Do(agenttest.Call(1, "book", `{"x":"May 3rd, 2026"}`))
			case second != "":
				return agenttest.Say("Done: " + second + ".")
			case strings.Contains(first, "must be YYYY-MM-DD"):
				return agenttest.Do(agenttest.Call(2, "book", `{"x":"2026-05-03"}`))
			}
			return agenttest.Say("I could not book it: " + first + ".")
		}, book)
		w.Say("Book the room for May 3rd, 2026.")
		said := w.Rest()
		final, settled := finalOf(said), only(t, said, agent.SettledMark)
		out.row(c.name, resultOf(t, m.Model, "book-1"), settled.Steps, final)
		if right := final == "Done: booked for 2026-05-03."; right != c.right || settled.Reason != agent.Completed {
			t.Errorf("a tool that %s: settled %s with %q", c.name, settled.Reason, final)
		}
		if !c.right && !strings.HasPrefix(final, "I could not book it") {
			t.Errorf("a tool that %s: the person reads %q", c.name, final)
		}
		w.Kill()
	}
	t.Logf("\n%s", &out)
}

// A read asked for twice in a step runs once; what has an effect is never merged, and what is idempotent is done once
// by a system that heeds keys, however often it is told.
func duplicatesExperiment(t *testing.T) {
	out := table{{"call", "asked for", "steps", "runs", "different keys", "done outside"}}
	twice := func(name string, effect agent.Effect, runs, keys int) {
		system := newKeyed()
		w, m := priced(t, agent.Limits{Steps: 9}, once(agenttest.Call(1, name, `{"x":"A-17"}`), agenttest.Call(2, name, `{"x":"A-17"}`)), system.tool(name, effect))
		w.Say("go")
		settled := only(t, w.Rest(), agent.SettledMark)
		one, two := resultOf(t, m.Model, name+"-1"), resultOf(t, m.Model, name+"-2")
		if settled.Steps != 2 || settled.ToolCalls != 2 || system.runs != runs || len(system.done) != keys || one != two || one != name+" done" {
			t.Errorf("%s: %d steps, %d runs under %d keys, results %q and %q", name, settled.Steps, system.runs, len(system.done), one, two)
		}
		out.row(string(effect), "twice in one step", settled.Steps, system.runs, len(system.done), len(system.done))
		w.Kill()
	}
	twice("read", agent.Read, 1, 1)
	twice("write", agent.Effectful, 2, 2)

	// The first run of the tool has its effect, and what would keep its result crashes.
	cutOff := func(name string, effect agent.Effect, runs int, says string) {
		system, store := newKeyed(), open(t)
		faulty := memorytest.NewFaulty(store)
		tool := system.tool(name, effect)
		run := tool.Run
		tool.Run = func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			if system.runs == 0 {
				faulty.FailAt(faulty.Count()+1, false)
			}
			return run(ctx, in)
		}
		w, m := priced(t, agent.Limits{Steps: 9}, once(agenttest.Call(1, name, `{"x":"A-17"}`)), tool)
		w.Config.Store, w.Outbox = faulty, store
		w.Restart()
		w.Say("go")
		w.Rest()
		revive(w, faulty)
		leaveUnknown(w)
		settled := only(t, w.Said(), agent.SettledMark)
		got := resultOf(t, m.Model, name+"-1")
		if system.runs != runs || len(system.done) != 1 || !strings.Contains(got, says) {
			t.Errorf("%s: %d runs under %d keys, result %q", name, system.runs, len(system.done), got)
		}
		out.row(string(effect), "once, cut off by a crash", settled.Steps, system.runs, len(system.done), len(system.done))
		w.Kill()
	}
	cutOff("set", agent.Idempotent, 2, "set done")
	cutOff("send", agent.Effectful, 1, "outcome unknown")
	t.Logf("\n%s", &out)
}

// keyed is a system outside that does each thing once, however often it is told under one key.
type keyed struct {
	runs int
	done map[string]bool // by key
}

func newKeyed() *keyed { return &keyed{done: map[string]bool{}} }

// tool is one that tells the system; calls of it do not overlap.
func (k *keyed) tool(name string, effect agent.Effect) agent.Tool {
	return agenttest.Tool(name, effect, "", func(_ context.Context, in agent.Invocation) (agent.Result, error) {
		k.runs++
		k.done[in.Key] = true
		return agent.Result{Text: name + " done"}, nil
	})
}

// revive starts an agent again whose store has crashed.
func revive(w *agenttest.World, faulty *memorytest.Faulty) {
	<-faulty.Crashed()
	w.Kill()
	faulty.Revive()
	w.Restart()
}

// Before a file is deleted a person is asked; what the person decided is what the agent tells.
func destructiveExperiment(t *testing.T) {
	out := table{{"the person", "before", "after", "the agent says"}}
	for _, c := range []struct {
		name    string
		verdict agent.Verdict
		reason  string
		there   bool // after the decision
		says    string
	}{
		{"approves", agent.Approve, "", false, "deleted"},
		{"denies, with a reason", agent.Deny, "the audit needs it", true, "not run: ann denied this call: the audit needs it"},
		{"denies, without a word", agent.Deny, "", true, "not run: ann denied this call and gave no reason"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ledger.txt"), []byte("42\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		is := func() string {
			if _, err := os.Stat(filepath.Join(dir, "ledger.txt")); err != nil {
				return "gone"
			}
			return "there"
		}
		w, _ := priced(t, agent.Limits{Steps: 9}, func(req model.Request) model.Answer {
			if result := agenttest.Results(req)["delete_file-1"]; result != "" {
				return agenttest.Say(result)
			}
			return agenttest.Do(agenttest.Call(1, "delete_file", `{"path":"ledger.txt"}`))
		}, workspace.Tools(workspace.Config{Dirs: workspace.Dirs{Dir: dir, Shared: true}})...)
		w.Say("Delete the ledger.")
		said := w.Rest()
		same(t, said, `
		approval delete_file
		waiting`)
		card, before := only(t, said, agent.Approval), is()
		w.Decide(card.ID, c.verdict, c.reason)
		final, after := finalOf(w.Rest()), is()
		out.row(c.name, before, after, final)
		if before != "there" || (after == "there") != c.there || !strings.Contains(strings.ToLower(final), c.says) {
			t.Errorf("%s: the file was %s before and %s after, and the agent says %q", c.name, before, after, final)
		}
		w.Kill()
	}
	t.Logf("\n%s", &out)
}

// Ended after step two and started again: two tool runs over both lives, and the same cost. A crash in the moment in
// which a result is not on disk yet repeats nothing either, and the model is told that the outcome is unknown.
func restartExperiment(t *testing.T) {
	const calm, closed, crashed, unkept = "undisturbed", "closed while step 2 ran its tool", "killed with the result of step 2 on disk", "killed before it was on disk"
	out := table{{"run", "tool runs", "steps", "tokens in", "tokens out", "cost", "the result of step 2"}}
	type end struct {
		agent.Totals
		did, second string
	}
	turn := func(how string) (got end) {
		synctest.Test(t, func(t *testing.T) {
			d := &deeds{}
			store := open(t)
			faulty := memorytest.NewFaulty(store)
			second := make(chan struct{})
			step := agenttest.Tool("step", agent.Effectful, "", func(ctx context.Context, _ agent.Invocation) (agent.Result, error) {
				d.do("step")
				if d.count("step") == 2 {
					close(second)
					switch how {
					case closed:
						<-ctx.Done()
					case crashed:
						faulty.FailAt(faulty.Count()+2, false) // the commit after that of the result, before the third request
					case unkept:
						faulty.FailAt(faulty.Count()+1, false)
					}
				}
				return agent.Result{Text: "the step is done", Commit: func(tx memory.Tx) error {
					return tx.Table("step").Put(fmt.Sprint(d.count("step")), []byte("done"))
				}}, nil
			})
			w, m := priced(t, agent.Limits{Steps: 9}, func(req model.Request) model.Answer {
				if n := len(agenttest.Results(req)); n < 2 {
					return agenttest.Do(agenttest.Call(n, "step", `{}`))
				}
				return agenttest.Say("done")
			}, step)
			w.Config.Store, w.Outbox = faulty, store
			w.Restart()
			w.Say("go")
			switch <-second; how {
			case closed:
				w.Kill()
			case crashed, unkept:
				<-faulty.Crashed()
				w.Kill()
				faulty.Revive()
			}
			if how != calm {
				if n := len(m.Requests()); n != 2 {
					t.Errorf("%s: ended after %d steps, want 2", how, n)
				}
				w.Restart()
			}
			leaveUnknown(w)
			got = end{*only(t, w.Said(), agent.SettledMark).Totals, d.all(), resultOf(t, m.Model, "step-1")}
			w.Kill()
		})
		out.row(how, len(strings.Fields(got.did)), got.Steps, got.TokensIn, got.TokensOut, dollars(got.CostUSD), got.second)
		return got
	}
	undisturbed := turn(calm)
	for _, how := range []string{closed, crashed} {
		if got := turn(how); got != undisturbed || got.did != "step step" {
			t.Errorf("%s: %+v; undisturbed %+v", how, got, undisturbed)
		}
	}
	if got := turn(unkept); got.did != "step step" || got.Steps != undisturbed.Steps || !strings.HasPrefix(got.second, "interrupted, outcome unknown") {
		t.Errorf("%s: %+v; undisturbed %+v", unkept, got, undisturbed)
	}
	t.Logf("\n%s", &out)
}

// A Stop at 1.2 s ends a tool of three seconds within milliseconds, and the reason is kept.
func stopExperiment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		wait := agenttest.Tool("wait", agent.Effectful, "", func(ctx context.Context, _ agent.Invocation) (agent.Result, error) {
			timer := time.NewTimer(3 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
				return agent.Result{Text: "waited"}, nil
			case <-ctx.Done():
				cause = context.Cause(ctx)
				return agent.Result{}, ctx.Err()
			}
		})
		w, _ := priced(t, agent.Limits{Steps: 9}, once(agenttest.Call(1, "wait", `{}`)), wait)
		w.Say("go")
		time.Sleep(1200 * time.Millisecond)
		began := time.Now()
		w.Stop()
		said := w.Rest()
		took := time.Since(began)
		w.Restart()
		var kept agent.StopReason
		if err := w.Config.Store.View(context.Background(), func(tx memory.Tx) error {
			return agent.Events(tx, agenttest.Home, 0, func(e agent.Event) error {
				if e.Kind == "run_stopped" {
					kept = agent.StopReason(e.Reason)
				}
				return nil
			})
		}); err != nil {
			t.Fatal(err)
		}
		settled := only(t, said, agent.SettledMark)
		if took > 50*time.Millisecond || settled.Reason != agent.Cancelled || kept != agent.Cancelled || cause == nil {
			t.Errorf("stopped after %s with %s, kept %s; the tool's context ended with %v", took, settled.Reason, kept, cause)
		}
		out := table{{"stop said at", "ended after", "reason", "in the journal", "the tool's context"}}
		out.row("1.2 s of 3 s", took, settled.Reason, kept, cause)
		t.Logf("\n%s", &out)
		w.Kill()
	})
}

// 150 seeded batches against limits: all of a batch runs or none of it.
func batchesExperiment(t *testing.T) {
	out := table{{"turns", "ended", "batches run whole", "not run at all", "run in part"}}
	type tally struct{ turns, whole, none, part int }
	tallies := map[agent.StopReason]*tally{agent.Completed: {}, agent.ToolLimit: {}}
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 11))
		sizes := []int{1 + random.IntN(5), 1 + random.IntN(5), 1 + random.IntN(5)}
		limit := 1 + random.IntN(12)
		tools := []string{"read", "write", "nosuch"}
		d := &deeds{}
		w, m := priced(t, agent.Limits{ToolCalls: limit}, func(req model.Request) model.Answer {
			step := 0
			for _, m := range req.Messages {
				if len(m.Calls) > 0 {
					step++
				}
			}
			if step == len(sizes) {
				return agenttest.Say("done")
			}
			var calls []model.Call
			for i := range sizes[step] {
				calls = append(calls, agenttest.Call(10*step+i, tools[hashOf(seed, step, i)%3], fmt.Sprintf(`{"x":"%d.%d"}`, step, i)))
			}
			return agenttest.Do(calls...)
		}, d.tool("read", agent.Read, ""), d.tool("write", agent.Effectful, ""))
		w.Say("go")
		settled := only(t, w.Rest(), agent.SettledMark)
		fits, ran, reason := 0, 0, agent.Completed
		var known []int // calls of each batch that was asked for, but for those of no tool
		for step, size := range sizes {
			runs := 0
			for i := range size {
				if hashOf(seed, step, i)%3 < 2 {
					runs++
				}
			}
			known = append(known, runs)
			if fits += size; fits > limit {
				reason = agent.ToolLimit
				break
			}
			ran += runs
		}
		if settled.Reason != reason || settled.ToolCalls != fits || len(d.done) != ran || len(m.usages) != settled.Steps {
			t.Errorf("seed %d: %v against %d settled with %s, %d calls counted and %d run; want %s, %d and %d", seed, sizes, limit, settled.Reason, settled.ToolCalls, len(d.done), reason, fits, ran)
		}
		of := tallies[reason]
		of.turns++
		for left := len(d.done); len(known) > 0; known = known[1:] {
			switch {
			case left == 0 && len(known) == 1 && reason == agent.ToolLimit:
				of.none++
			case left >= known[0]:
				of.whole++
			default:
				of.part++
			}
			left = max(left-known[0], 0)
		}
		w.Kill()
	}
	for _, reason := range []agent.StopReason{agent.Completed, agent.ToolLimit} {
		of := tallies[reason]
		out.row(of.turns, reason, of.whole, of.none, of.part)
		if of.turns == 0 || of.part > 0 {
			t.Errorf("%s: %+v", reason, *of)
		}
	}
	t.Logf("\n%s", &out)
}

// Sixty tools that panic, each recovered from: the turn goes on to its answer.
func exceptionsExperiment(t *testing.T) {
	boom := agenttest.Tool("boom", agent.Effectful, "", func(context.Context, agent.Invocation) (agent.Result, error) { panic("boom") })
	d := &deeds{}
	n := 0
	w, m := priced(t, agent.Limits{Errors: 3}, func(req model.Request) model.Answer {
		switch len(agenttest.Results(req)) % 2 {
		case 0:
			if n++; n > 60 {
				return agenttest.Say("done")
			}
			return agenttest.Do(agenttest.Call(n, "boom", `{}`))
		}
		return agenttest.Do(agenttest.Call(n, "look", `{}`))
	}, boom, d.tool("look", agent.Read, ""))
	w.Say("go")
	same(t, w.Rest(), `
		final done
		settled completed 121 steps 120 calls`)
	if d.count("look") != 60 || !strings.Contains(resultOf(t, m.Model, "boom-60"), "failed unexpectedly") {
		t.Errorf("the work went on %d times", d.count("look"))
	}
	out := table{{"exceptions", "recovered from", "steps", "ended"}}
	out.row(60, d.count("look"), 121, agent.Completed)
	t.Logf("\n%s", &out)
}
