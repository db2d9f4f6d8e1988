package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
)

// ailing is a model that fails with what it is told, and answers with its name once that is nothing.
type ailing struct {
	name   string
	fails  []error // of the calls in turn
	asked  int
	calls  []model.Call // that it asks for before it answers
	limits []int
}

func (m *ailing) Answer(_ context.Context, req model.Request, _ func(string)) (model.Answer, error) {
	m.asked++
	m.limits = append(m.limits, req.MaxOutput)
	if len(m.fails) > 0 {
		err := m.fails[0]
		m.fails = m.fails[1:]
		if err != nil {
			return model.Answer{}, err
		}
	}
	answer := agenttest.Say("says " + m.name)
	if len(agenttest.Results(req)) < len(m.calls) {
		answer = agenttest.Do(m.calls...)
	}
	answer.Model, answer.Usage = m.name, model.Usage{In: 100, Out: 10, Known: true}
	return answer, nil
}

func TestFallbacksAnswerInOrderAndThePersonIsTold(t *testing.T) {
	refused := &model.Error{Fault: model.FaultRefused, Status: 401, Say: "the provider does not accept the key"}
	passing := &model.Error{Fault: model.FaultPassing, Status: 503, Say: "the provider is overloaded"}
	broken := &model.Error{Fault: model.FaultMalformed, Say: "what came back was no answer"}
	long := &model.Error{Fault: model.FaultTooLong, Say: "the request is too long"}
	began := &model.Error{Fault: model.FaultMalformed, Began: true, Say: "the answer broke off"}
	for _, c := range []struct {
		name          string
		first, second []error
		want          string
		asked         [3]int
		reason        agent.StopReason
		steps         int
	}{
		{"all is well", nil, nil, "says one", [3]int{1, 0, 0}, agent.Completed, 1},
		{"refused", []error{refused}, nil, "says two", [3]int{1, 1, 0}, agent.Completed, 1},
		{"malformed", []error{broken}, nil, "says two", [3]int{1, 1, 0}, agent.Completed, 1},
		{"passing, tried again first", []error{passing, passing, passing}, nil, "says two", [3]int{3, 1, 0}, agent.Completed, 1},
		{"passing once", []error{passing}, nil, "says one", [3]int{2, 0, 0}, agent.Completed, 1},
		{"two fail", []error{refused}, []error{broken}, "says three", [3]int{1, 1, 1}, agent.Completed, 1},
		{"too long for the small ones", []error{long}, nil, "says three", [3]int{1, 0, 1}, agent.Completed, 1},
		{"broke off", []error{began}, nil, "says two", [3]int{1, 1, 0}, agent.Completed, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				models := [3]*ailing{{name: "one", fails: c.first}, {name: "two", fails: c.second}, {name: "three"}}
				spec := func(n int, price float64) agent.ModelSpec {
					return agent.ModelSpec{Name: models[n].name, Window: 8000, MaxOutput: 100, PriceIn: agent.PerMillion(price), PriceOut: agent.PerMillion(price)}
				}
				config := agent.Config{Store: open(t), Model: models[0], Spec: spec(0, 2), Limits: agent.Limits{Steps: 20, Cost: agent.USD(1)}}
				config.Fallbacks = []agent.Fallback{{Model: models[1], Spec: spec(1, 20)}, {Model: models[2], Spec: spec(2, 200)}}
				config.Fallbacks[1].Spec.Window = 100000
				w := agenttest.Start(t, config)
				w.Say("go")
				said := w.Rest()
				final, settled := only(t, said, agent.Final), only(t, said, agent.SettledMark)
				if final.Text != c.want || settled.Reason != c.reason || settled.Steps != c.steps {
					t.Errorf("said %s", agenttest.Lines(said))
				}
				told := agenttest.Lines(agenttest.Only(said, agent.Notice))
				for i, m := range models {
					if m.asked != c.asked[i] {
						t.Errorf("%s was asked %d times, want %d", m.name, m.asked, c.asked[i])
					}
					if i > 0 && (m.asked > 0) != strings.Contains(told, m.name+" goes on instead") {
						t.Errorf("%s was asked %d times and the person was told %q", m.name, m.asked, told)
					}
				}
				price := map[string]float64{"says one": 2, "says two": 20, "says three": 200}[c.want]
				cost := 110 * price / 1e6
				if exact := c.name != "broke off"; exact && settled.CostUSD != cost || !exact && (settled.CostUSD <= cost || !settled.Unknown) {
					t.Errorf("it cost $%.6f, want $%.6f", settled.CostUSD, cost)
				}
				events := 0
				err := config.Store.View(t.Context(), func(tx memory.Tx) error {
					events = 0
					return agent.Events(tx, agenttest.Home, 0, func(e agent.Event) error {
						if e.Kind == "model_retry" && strings.Contains(e.Reason, "did not answer") {
							events++
						}
						return nil
					})
				})
				if err != nil || events != strings.Count(told, "goes on instead") {
					t.Errorf("the trace tells of %d, the person was told %q; %v", events, told, err)
				}
				models[0].fails = nil
				w.Say("again")
				if again := only(t, w.Rest(), agent.Final); again.Text != "says one" {
					t.Errorf("the next turn %s", again.Text)
				}
				w.Kill()
			})
		})
	}
}

// The model that stands in goes on for the rest of the turn, also after a restart; its own prices count against the limit.
func TestAFallbackKeepsItsTurnAndTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &model.Error{Fault: model.FaultRefused, Say: "no credit"}
		first := &ailing{name: "one", fails: []error{refused}}
		second := &ailing{name: "two", calls: []model.Call{agenttest.Call(1, "ask_person", `{"question":"which?"}`)}}
		config := agent.Config{
			Store: open(t), Model: first, Spec: agent.ModelSpec{Name: "one", MaxOutput: 1000, PriceIn: agent.PerMillion(0.1), PriceOut: agent.PerMillion(0.1)},
			Fallbacks: []agent.Fallback{{Model: second, Spec: agent.ModelSpec{Name: "two", Window: 1 << 20, MaxOutput: 1000, PriceIn: agent.PerMillion(10), PriceOut: agent.PerMillion(10)}}},
			Limits:    agent.Limits{Cost: agent.USD(0.015)},
		}
		w := agenttest.Start(t, config)
		w.Say("go")
		w.Rest()
		w.Restart()
		w.Say("this one")
		said := w.Rest()
		if only(t, said, agent.Final).Text != "says two" || first.asked != 1 || second.asked != 2 {
			t.Errorf("said %s; asked %d and %d times", agenttest.Lines(said), first.asked, second.asked)
		}
		if got := second.limits[0]; got >= 1000 || got < 500 {
			t.Errorf("for $0.015 at $10 a million the answer may have %d tokens", got)
		}
		w.Kill()
	})
}

// When nobody answers, the last one's reason is what the person reads.
func TestWhenNoModelAnswersThePersonReadsWhy(t *testing.T) {
	first := &ailing{name: "one", fails: []error{&model.Error{Fault: model.FaultRefused, Say: "no credit"}}}
	second := &ailing{name: "two", fails: []error{&model.Error{Fault: model.FaultRefused, Say: "no such model"}}}
	w := agenttest.Start(t, agent.Config{
		Store: open(t), Model: first, Spec: agent.ModelSpec{Name: "one", MaxOutput: 100},
		Fallbacks: []agent.Fallback{{Model: second, Spec: agent.ModelSpec{Name: "two", Window: 1 << 20, MaxOutput: 100}}},
	})
	w.Say("go")
	same(t, w.Rest(), `
		notice one did not answer: no credit. two goes on instead.
		notice I could not get an answer from the model: no such model. Say continue to try again.
		settled model_error 1 steps 0 calls`)
}
