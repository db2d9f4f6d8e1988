package agent_test

import (
	"context"
	"flag"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
)

// TestMain has each property checked forty times with the race detector, under which everything takes several times as long.
// Without it, and with NUDGE_SWEEP=all, it is rapid's hundred; -rapid.checks says another number.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := sweepsAll() || !raced()
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		if err := flag.Set("rapid.checks", "40"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// deeds counts what tools did in the world outside, which no restart undoes.
type deeds struct {
	mu    sync.Mutex
	done  []string
	begun chan string // gets the name of each slow tool that begins, if not nil
}

func (d *deeds) do(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, name)
}

func (d *deeds) count(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, did := range d.done {
		if did == name {
			n++
		}
	}
	return n
}

func (d *deeds) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.done, " ")
}

func (d *deeds) tool(name string, effect agent.Effect, policy agent.Policy) agent.Tool {
	return agenttest.Tool(name, effect, policy, func(_ context.Context, in agent.Invocation) (agent.Result, error) {
		d.do(name)
		return agent.Result{Text: name + " done with " + string(in.Arguments)}, nil
	})
}

// slow is a tool that runs until its context ends or a minute has passed.
func (d *deeds) slow(name string, effect agent.Effect, takes time.Duration) agent.Tool {
	return agenttest.Tool(name, effect, agent.PolicyNo, func(ctx context.Context, _ agent.Invocation) (agent.Result, error) {
		d.do(name)
		if d.begun != nil {
			d.begun <- name
		}
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
			return agent.Result{Text: name + " done"}, nil
		case <-ctx.Done():
			return agent.Result{}, ctx.Err()
		}
	})
}

func open(t testing.TB) memory.Store {
	t.Helper()
	store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// leaveUnknown lets everything come to rest, and leaves calls alone whose outcome is unknown.
func leaveUnknown(w *agenttest.World) {
	for _, r := range agenttest.Only(w.Rest(), agent.Notice) {
		if len(r.Choices) > 1 {
			w.Decide(r.ID, agent.AnswerIt, agent.ChoiceLeave)
			w.Rest()
		}
	}
}

// fresh makes a world over a new store.
func fresh(t testing.TB, script agenttest.Script, tools ...agent.Tool) (*agenttest.World, *agenttest.Model) {
	t.Helper()
	m := &agenttest.Model{T: t, Script: script}
	w := agenttest.Start(t, agent.Config{
		Store: open(t), Model: m, Tools: tools, Spec: agent.ModelSpec{Name: "scripted", Window: 1 << 20, MaxOutput: 1000},
		Limits: agent.Limits{Steps: 20, ToolCalls: 50, Errors: 3},
	})
	return w, m
}

// once asks for calls and says done when each has its result.
func once(calls ...model.Call) agenttest.Script {
	return func(req model.Request) model.Answer {
		results := agenttest.Results(req)
		for _, c := range calls {
			if _, ok := results[c.ID]; !ok {
				return agenttest.Do(calls...)
			}
		}
		return agenttest.Say("done")
	}
}

// same compares what was said, in short, with what should have been.
func same(t *testing.T, got []agent.Reply, want string) {
	t.Helper()
	if lines := agenttest.Lines(got); strings.TrimSpace(lines) != strings.TrimSpace(strings.ReplaceAll(want, "\n\t\t", "\n")) {
		t.Errorf("said:\n%s\nwant:\n%s", lines, strings.TrimSpace(strings.ReplaceAll(want, "\n\t\t", "\n")))
	}
}

// resultOf is the result of a call in the newest request.
func resultOf(t *testing.T, m *agenttest.Model, call string) string {
	t.Helper()
	requests := m.Requests()
	for _, msg := range requests[len(requests)-1].Messages {
		if msg.Role == model.ToolRole && msg.CallID == call {
			return msg.Text
		}
	}
	t.Fatalf("no result of %s was sent", call)
	return ""
}
