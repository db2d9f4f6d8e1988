package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
)

// circling runs a turn whose n-th step makes the n-th calls, answered by results(n); it answers at the end of the steps.
// It returns how the turn was settled and what the model read.
func circling(t testing.TB, steps int, calls func(n int) []model.Call, results func(n int) string) (agent.Reply, []agent.Reply, *agenttest.Model) {
	t.Helper()
	n := 0
	look := agenttest.Tool("look", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: results(n)}, nil
	})
	look.Schema = []byte(`{"type":"object"}`)
	poke := look
	poke.Name, poke.Effect = "poke", agent.Effectful
	w, m := fresh(t, func(model.Request) model.Answer {
		if n++; n > steps {
			return agenttest.Say("done")
		}
		return agenttest.Do(calls(n)...)
	}, look, poke)
	w.Config.Limits = agent.Limits{Steps: 400, Errors: 3, Repeats: agent.DefaultRepeats}
	w.Restart()
	w.Say("go")
	said := w.Rest()
	w.Kill()
	return agenttest.Only(said, agent.SettledMark)[0], said, m
}

// warnedAt is the first step whose request carries the warning; 0 when none does.
func warnedAt(m *agenttest.Model) int {
	for i, req := range m.Requests() {
		if last := req.Messages[len(req.Messages)-1].Text; strings.Contains(last, "[the same calls") {
			return i + 1
		}
	}
	return 0
}

func TestATurnThatGoesInCirclesIsWarnedAndEnded(t *testing.T) {
	one := func(arguments ...string) func(int) []model.Call {
		return func(n int) []model.Call { return []model.Call{agenttest.Call(n, "look", arguments[n%len(arguments)])} }
	}
	constant := func(int) string { return "no new output" }
	clock := func(n int) string { return fmt.Sprint(n) }
	for _, c := range []struct {
		name    string
		calls   func(n int) []model.Call
		results func(n int) string
		steps   int // that the model would take
		warned  int // step
		ended   int // steps; 0 when the turn completes
	}{
		{"one call", one(`{"id":"j1"}`), constant, 50, 4, 6},
		{"keys in another order", one(`{"a":1,"b":2}`, `{"b":2,"a":1}`), constant, 30, 4, 6},
		{"a cycle of two", one(`{"q":"x"}`, `{"p":"y"}`), constant, 40, 7, 12},
		{"a cycle of three", one(`{"q":"x"}`, `{"p":"y"}`, `{"z":1}`), constant, 40, 10, 18},
		{"two at once, in either order", func(n int) []model.Call {
			return []model.Call{agenttest.Call(2*n, "look", fmt.Sprintf(`{"x":%d}`, n%2)), agenttest.Call(2*n+1, "look", fmt.Sprintf(`{"x":%d}`, (n+1)%2))}
		}, constant, 40, 4, 6},
		{"with effects", func(n int) []model.Call { return []model.Call{agenttest.Call(n, "poke", `{}`)} }, constant, 40, 4, 6},
		{"a clock", one(`{"cmd":"date +%S"}`), clock, 62, 11, 20},
		{"two clocks", one(`{"a":1}`, `{"b":1}`), clock, 62, 21, 40},
		{"polling with progress", one(`{"id":"j1"}`), func(n int) string { return fmt.Sprint(10*n, "%") }, 6, 0, 0},
		{"slow polling", one(`{"id":"j1"}`), func(n int) string { return fmt.Sprint(10*(n/2), "%") }, 9, 0, 0},
		{"the same after other work", func(n int) []model.Call {
			if n%2 == 0 {
				return []model.Call{agenttest.Call(n, "look", `{"tests":true}`)}
			}
			return []model.Call{agenttest.Call(n, "poke", fmt.Sprintf(`{"edit":%d}`, n))}
		}, constant, 60, 0, 0},
		{"not quite a cycle", func(n int) []model.Call {
			return []model.Call{agenttest.Call(n, "look", fmt.Sprintf(`{"x":%d}`, n*n%5%3))}
		}, constant, 60, 4, 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			settled, said, m := circling(t, c.steps, c.calls, c.results)
			reason, steps := agent.Completed, c.steps+1
			if c.ended > 0 {
				reason, steps = agent.Repeated, c.ended
			}
			if settled.Reason != reason || settled.Steps != steps {
				t.Errorf("settled %s after %d steps, want %s after %d", settled.Reason, settled.Steps, reason, steps)
			}
			if got := warnedAt(m); got != c.warned {
				t.Errorf("warned in the request of step %d, want %d", got, c.warned)
			}
			if notices := agenttest.Only(said, agent.Notice); c.ended > 0 && (len(notices) != 1 || !strings.HasPrefix(notices[0].Text, "I stopped: I ")) {
				t.Errorf("said %s", agenttest.Lines(said))
			}
		})
	}
}

// Whatever few calls a model makes again and again, in whatever order, it is ended; with something new in every
// third step it never is.
func TestCirclesOfAnyShapeEnd(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		different := rapid.IntRange(1, 4).Draw(r, "different")
		picks := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, different-1), 1, 3), 5*different*2+different, 60).Draw(r, "picks")
		fresh := rapid.Bool().Draw(r, "fresh")
		settled, _, _ := circling(t, len(picks), func(n int) []model.Call {
			var calls []model.Call
			for i, x := range picks[n-1] {
				if fresh && n%3 == 0 {
					x = 100 + n
				}
				calls = append(calls, agenttest.Call(10*n+i, "look", fmt.Sprintf(`{"x":%d}`, x)))
			}
			return calls
		}, func(int) string { return "constant" })
		most := 0 // the steps that rounds over all sets of calls may have
		seen := map[string]bool{}
		for _, p := range picks {
			seen[fmt.Sprint(p)] = true
		}
		most = different + agent.DefaultRepeats*len(seen)
		switch {
		case fresh && settled.Reason != agent.Completed:
			r.Errorf("settled %s after %d steps though there was something new", settled.Reason, settled.Steps)
		case !fresh && len(picks) > most && settled.Reason != agent.Repeated:
			r.Errorf("settled %s after %d steps of %d sets of calls", settled.Reason, settled.Steps, len(seen))
		}
	})
}

func TestRepeatsAreCountedFromThePersonsWordsOn(t *testing.T) {
	n, words := 0, 0
	var w *agenttest.World
	look := agenttest.Tool("look", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: "nothing"}, nil
	})
	w, _ = fresh(t, func(model.Request) model.Answer {
		if n++; n == 4 && words == 0 {
			words++
			w.Say("try once more")
		}
		return agenttest.Do(agenttest.Call(n, "look", `{}`))
	}, look)
	w.Config.Limits = agent.Limits{Steps: 40, Repeats: agent.DefaultRepeats}
	w.Restart()
	w.Say("go")
	settled := agenttest.Only(w.Rest(), agent.SettledMark)[0]
	// Three rounds, the words come in at the fourth answer, whose call is not run; then six.
	if settled.Reason != agent.Repeated || settled.Steps != 4+agent.DefaultRepeats {
		t.Errorf("settled %s after %d steps", settled.Reason, settled.Steps)
	}
}
