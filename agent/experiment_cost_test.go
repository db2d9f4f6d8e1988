package agent_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/compact"
	"nudge/agent/model"
)

// bytePairs counts tokens offline, as OpenAI's newer models do.
var bytePairs = compact.NewCounter(compact.O200k)

// What a token costs in the experiments: $2 for a million in and $12 for a million out.
var priceIn, priceOut = agent.PerMillion(2), agent.PerMillion(12)

func costOf(u model.Usage) agent.Money {
	return agent.Money(u.In)*priceIn + agent.Money(u.Out)*priceOut
}

// meter is a scripted model that reports the byte-pair tokens of what it was really sent and of what it answers.
type meter struct {
	*agenttest.Model

	mu     sync.Mutex
	usages []model.Usage // of its answers, in order
}

// weigh makes a script report its usage.
func (m *meter) weigh(script agenttest.Script) agenttest.Script {
	return func(req model.Request) model.Answer {
		answer := script(req)
		answer.Usage = model.Usage{
			In:    compact.Tokens(bytePairs, req.System, req.Tools, req.Messages),
			Out:   compact.MessageTokens(bytePairs, model.Message{Role: model.Assistant, Text: answer.Text, Calls: answer.Calls, Reasoning: answer.Reasoning}),
			Known: true,
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.usages = append(m.usages, answer.Usage)
		return answer
	}
}

// first is what the first request and its answer had.
func (m *meter) first() model.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usages[0]
}

// sum is what all of them had.
func (m *meter) sum() model.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := model.Usage{Known: true}
	for _, u := range m.usages {
		sum.In, sum.Out = sum.In+u.In, sum.Out+u.Out
	}
	return sum
}

// priced makes a world with a metered model, whose tokens cost what they do in the experiments.
func priced(t testing.TB, limits agent.Limits, script agenttest.Script, tools ...agent.Tool) (*agenttest.World, *meter) {
	t.Helper()
	m := &meter{}
	w, scripted := fresh(t, m.weigh(script), tools...)
	m.Model = scripted
	w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = priceIn, priceOut
	w.Config.Counter, w.Config.Limits = bytePairs, limits
	w.Restart()
	return w, m
}

// guards are the limits on repetition with which an experiment is done: first without, then with.
var guards = []struct {
	name    string
	repeats int
}{{"off", 0}, {"on", agent.DefaultRepeats}}

// goingOn is how many tokens another system was seen to read for a model that repeats one call before it was ended by hand.
const goingOn = 1_290_000

// Without compaction the tokens of a runaway grow nearly with the square of its steps. Each step adds a third of what
// the prompt has to begin with.
func runawayExperiment(t *testing.T) {
	turn := func(steps, window, repeats int) (agent.Reply, *meter) {
		var m *meter
		look := agenttest.Tool("look", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
			first := m.first()
			return agent.Result{Text: strings.Repeat(" word", first.In/3-first.Out-compact.MessageTokens(bytePairs, model.Message{}))}, nil
		})
		var w *agenttest.World
		w, m = priced(t, agent.Limits{Steps: steps, Repeats: repeats}, runaway("look"), look)
		w.Config.Spec.Window = window
		w.Restart()
		w.Say("go")
		settled := only(t, w.Rest(), agent.SettledMark)
		w.Kill()
		return settled, m
	}
	out := table{{"guard", "compaction", "limit", "ended", "steps", "tokens in", "cost", "50 → 100"}}
	for _, c := range []struct {
		guard, compaction string
		window, repeats   int
		least, most       float64 // of the tokens at 100 steps ÷ those at 50
	}{
		{"off", "none", 1 << 20, 0, 3.5, 4.1},
		{"off", "window of 4,000", 4000, 0, 1, 2.3},
		{"on", "none", 1 << 20, agent.DefaultRepeats, 1, 1},
	} {
		before := 0
		for _, steps := range []int{50, 100} {
			settled, m := turn(steps, c.window, c.repeats)
			times := ""
			if before > 0 {
				ratio := float64(settled.TokensIn) / float64(before)
				if times = fmt.Sprintf("× %.2f", ratio); ratio < c.least || ratio > c.most {
					t.Errorf("guard %s, compaction %s: 100 steps read %.2f times the tokens of 50, want %.1f to %.1f", c.guard, c.compaction, ratio, c.least, c.most)
				}
			}
			before = settled.TokensIn
			want, reason := steps, agent.StepLimit
			if c.repeats > 0 {
				want, reason = agent.DefaultRepeats, agent.Repeated
			}
			if settled.Steps != want || settled.Reason != reason || m.sum().In != settled.TokensIn {
				t.Errorf("guard %s, compaction %s, limit %d: settled %+v", c.guard, c.compaction, steps, *settled.Totals)
			}
			out.row(c.guard, c.compaction, steps, settled.Reason, settled.Steps, thousands(settled.TokensIn), dollars(settled.CostUSD), times)
		}
	}
	t.Logf("\n%s", &out)

	settled, _ := turn(100, 1<<20, agent.DefaultRepeats)
	until := table{{"tokens in until one call repeated is stopped", "other systems", "ratio"}}
	until.row(thousands(settled.TokensIn), thousands(goingOn)+" and going", fmt.Sprintf("1/%d", goingOn/settled.TokensIn))
	if settled.TokensIn*40 > goingOn {
		t.Errorf("%d tokens were read until the model was stopped", settled.TokensIn)
	}
	t.Logf("\n%s", &until)
}

// Three budgets, each spent to within one step and never passed; a model that repeats itself ends before.
func budgetsExperiment(t *testing.T) {
	const most = 100 // tokens of an answer
	out := table{{"guard", "budget", "ended", "steps", "spent", "left", "next step"}}
	for _, budget := range []float64{0.02, 0.05, 0.1} {
		spent := map[string]float64{}
		for _, guard := range guards {
			d := &deeds{}
			w, m := priced(t, agent.Limits{Cost: agent.USD(budget), Repeats: guard.repeats}, func(req model.Request) model.Answer {
				answer := agenttest.Do(agenttest.Call(len(req.Messages), "look", `{}`))
				answer.Text = strings.Repeat(" word", req.MaxOutput-compact.MessageTokens(bytePairs, model.Message{Calls: answer.Calls}))
				return answer
			}, d.tool("look", agent.Read, ""))
			w.Config.Spec.MaxOutput = most
			w.Restart()
			w.Say("go")
			settled := only(t, w.Rest(), agent.SettledMark)
			charged := costOf(m.sum()).USD()
			requests := m.Requests()
			// The next request would have grown by as much as the last one did, and its answer may be as long as answers may.
			last, before := m.usages[len(m.usages)-1], m.usages[len(m.usages)-2]
			next := costOf(model.Usage{In: last.In + (last.In - before.In), Out: most}).USD()
			left := budget - settled.CostUSD
			out.row(guard.name, fmt.Sprintf("$%.2f", budget), settled.Reason, settled.Steps, dollars(settled.CostUSD), dollars(left), dollars(next))
			if left < 0 || charged > budget || settled.CostUSD != charged || len(requests) != settled.Steps {
				t.Errorf("of $%.2f $%.6f were spent and $%.6f charged", budget, settled.CostUSD, charged)
			}
			reason := agent.Budget
			if guard.repeats > 0 {
				reason = agent.Repeated
			}
			if settled.Reason != reason || reason == agent.Budget && left > next {
				t.Errorf("of $%.2f $%.6f are left after %s, and a step costs at most $%.6f", budget, left, settled.Reason, next)
			}
			spent[guard.name] = settled.CostUSD
			w.Kill()
		}
		if spent["on"] >= spent["off"] {
			t.Errorf("of $%.2f the guard leaves $%.6f spent, without it $%.6f", budget, spent["on"], spent["off"])
		}
	}
	t.Logf("\n%s", &out)
}

// A call that cannot succeed stops the turn early and says why, instead of burning its steps.
func permanentExperiment(t *testing.T) {
	const steps = 12
	const why = "there is no account with the number 4711; accounts that were closed are not kept, and nobody can open them again"
	out := table{{"errors in a row", "guard", "ended", "steps", "tokens in", "cost", "÷ ours", "the person reads"}}
	type end struct {
		errors int
		guard  string
		said   []agent.Reply
		agent.Reply
	}
	var ends []end
	for _, limit := range []int{0, 3} {
		for _, guard := range guards {
			fail := agenttest.Tool("fail", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
				return agent.Result{}, errors.New(why)
			})
			w, _ := priced(t, agent.Limits{Steps: steps, Errors: limit, Repeats: guard.repeats}, runaway("fail"), fail)
			w.Say("What is on account 4711?")
			said := w.Rest()
			ends = append(ends, end{limit, guard.name, said, only(t, said, agent.SettledMark)})
			w.Kill()
		}
	}
	ours := ends[len(ends)-1]
	known := agenttest.Tool("fail", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{}, fmt.Errorf("%s: %w", why, agent.ErrPermanent)
	})
	w, _ := priced(t, agent.Limits{Steps: steps}, runaway("fail"), known)
	w.Say("What is on account 4711?")
	said := w.Rest()
	ends = append(ends, end{guard: "off, the tool says that no call can succeed", said: said, Reply: only(t, said, agent.SettledMark)})
	w.Kill()
	for i, want := range []struct {
		reason agent.StopReason
		steps  int
		says   string
	}{
		{agent.StepLimit, steps, "after 12 steps"}, {agent.Repeated, agent.DefaultRepeats, "round in circles"},
		{agent.TooManyErrs, 3, why}, {agent.TooManyErrs, 3, why}, {agent.TooManyErrs, 1, "fail failed for good: " + why},
	} {
		e := ends[i]
		notice := only(t, e.said, agent.Notice).Text
		limit := "no limit"
		if e.errors > 0 {
			limit = fmt.Sprint(e.errors)
		}
		out.row(limit, e.guard, e.Reason, e.Steps, thousands(e.TokensIn), dollars(e.CostUSD), fmt.Sprintf("× %.1f", e.CostUSD/ours.CostUSD), notice)
		if e.Reason != want.reason || e.Steps != want.steps || !strings.Contains(notice, want.says) {
			t.Errorf("errors %d, guard %s: settled %s after %d steps and said %q", e.errors, e.guard, e.Reason, e.Steps, notice)
		}
	}
	if ratio := ends[0].CostUSD / ours.CostUSD; ratio < 5 {
		t.Errorf("without limits it costs %.1f times as much, want 5", ratio)
	}
	t.Logf("\n%s", &out)
}

// What many distinct steps read with a window of 8,000 tokens, against what they read when nothing is left out; the
// summaries of what goes count. A provider that caches the prefix shared with the request before asks a tenth for it.
func longWorkExperiment(t *testing.T) {
	const window = 8000
	type work struct {
		in, asked int     // tokens of all requests; summaries
		breaks    int     // requests that do not begin with the one before
		cached    float64 // USD, with what is cached at a tenth
	}
	do := func(steps, window int, effect agent.Effect) work {
		note := agenttest.Tool("work", effect, "", func(_ context.Context, in agent.Invocation) (agent.Result, error) {
			return agent.Result{Text: strings.Repeat("entry of "+string(in.Arguments)+" is as it should be\n", 25)}, nil
		})
		n := 0
		w, m := priced(t, agent.Limits{Steps: steps + 1, Repeats: agent.DefaultRepeats}, func(req model.Request) model.Answer {
			if keep, yes := asksForSummary(req); yes {
				return agenttest.Say("Entries were gone through one by one, and each was as it should be.\n" + keep)
			}
			if n++; n > steps {
				return agenttest.Say("done")
			}
			return agenttest.Do(agenttest.Call(n, "work", fmt.Sprintf(`{"x":"%d"}`, n)))
		}, note)
		w.Config.Spec.Window = window
		w.Restart()
		w.Say("Go through all the entries.")
		settled := only(t, w.Rest(), agent.SettledMark)
		w.Kill()
		if settled.Reason != agent.Completed || settled.Steps != steps+1 || settled.TokensIn != m.sum().In {
			t.Errorf("%d steps in a window of %d: settled %+v, the provider counted %+v", steps, window, *settled.Totals, m.sum())
		}
		did := work{in: m.sum().In}
		var before model.Request
		for i, req := range m.Requests() {
			u := m.usages[i]
			shared := 0
			if _, summary := asksForSummary(req); summary {
				did.asked++
			} else {
				whole := false
				if shared, whole = sharedTokens(before, req); i > 0 && !whole {
					did.breaks++
				}
				before = req
			}
			did.cached += (float64(u.In-shared)+float64(shared)/10)*priceIn.USD() + float64(u.Out)*priceOut.USD()
		}
		return did
	}
	out := table{{"steps", "that", "tokens in, uncompacted", "compacted", "÷", "summaries", "new prefixes", "cost with a cache, uncompacted", "compacted", "÷"}}
	for _, long := range []struct {
		steps int
		most  float64 // of the uncompacted tokens
	}{{100, 0.45}, {400, 0.13}} {
		steps, most := long.steps, long.most
		all := do(steps, 1<<20, agent.Read) // an effect makes no difference while nothing is left out
		for _, c := range []struct {
			effect agent.Effect
			does   string
		}{{agent.Read, "read"}, {agent.Effectful, "have an effect"}} {
			less := do(steps, window, c.effect)
			ratio := float64(less.in) / float64(all.in)
			out.row(steps, c.does, thousands(all.in), thousands(less.in), fmt.Sprintf("%.3f", ratio), less.asked, less.breaks,
				fmt.Sprintf("$%.3f", all.cached), fmt.Sprintf("$%.3f", less.cached), fmt.Sprintf("%.2f", less.cached/all.cached))
			if ratio > most {
				t.Errorf("%d steps that %s read %.3f of the uncompacted tokens, want at most %.2f", steps, c.does, ratio, most)
			}
			if less.cached >= all.cached {
				t.Errorf("%d steps that %s cost $%.4f with a cache, uncompacted $%.4f", steps, c.does, less.cached, all.cached)
			}
			if all.breaks != 0 || (c.effect == agent.Effectful) != (less.asked > 0) {
				t.Errorf("%d steps that %s: uncompacted %+v, compacted %+v", steps, c.does, all, less)
			}
		}
	}
	t.Logf("\n%s", &out)
}

// sharedTokens is how many tokens of a request are those with which the request before it began, to the whole message;
// the flag tells whether that is all of the one before.
func sharedTokens(before, req model.Request) (tokens int, whole bool) {
	if before.System != req.System || !reflect.DeepEqual(before.Tools, req.Tools) {
		return 0, false
	}
	n := 0
	for n < len(before.Messages) && n < len(req.Messages) && reflect.DeepEqual(before.Messages[n], req.Messages[n]) {
		n++
	}
	return compact.Tokens(bytePairs, req.System, req.Tools, req.Messages[:n]), n == len(before.Messages)
}
