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
)

// asksForSummary reports whether a request is one for a summary of a conversation, and what it must keep.
func asksForSummary(req model.Request) (keep string, yes bool) {
	text := agenttest.LastUser(req)
	if len(req.Tools) > 0 || !strings.Contains(text, "Record:\n<<<") {
		return "", false
	}
	_, keep, _ = strings.Cut(text, "Keep word for word:\n")
	return keep, true
}

// talk says long things to an agent whose window is small, and the facts first. It returns how the summaries were asked for
// and the world after it.
func talk(t *testing.T, summary func(keep string) model.Answer, limits agent.Limits) (asked int, w *agenttest.World, m *agenttest.Model) {
	t.Helper()
	w, m = fresh(t, func(req model.Request) model.Answer {
		if keep, yes := asksForSummary(req); yes {
			asked++
			answer := summary(keep)
			answer.Usage = model.Usage{In: 1000, Out: 50, Known: true}
			return answer
		}
		return agenttest.Say("all right")
	})
	w.Config.Spec.Window, w.Config.Spec.MaxOutput, w.Config.Limits = 4000, 500, limits
	w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(1), agent.PerMillion(1)
	w.Restart()
	w.Say("We plan a party.")
	w.Rest()
	w.Say("The order number is ORD-99812 and it goes to dock/7b.")
	w.Rest()
	for i := range 12 {
		w.Say(fmt.Sprintf("part %d: %s", i, strings.Repeat("word ", 300)))
		w.Rest()
	}
	return asked, w, m
}

func kept(w *agenttest.World, m *agenttest.Model, words string) bool {
	w.Say("What was the order number?")
	w.Rest()
	requests := m.Requests()
	for _, msg := range requests[len(requests)-1].Messages {
		if strings.Contains(msg.Text, words) {
			return true
		}
	}
	return false
}

// What was said long ago is summed up when it goes, with its names; the summaries are paid for and are no steps.
func TestOldWordsLeaveASummary(t *testing.T) {
	asked, w, m := talk(t, func(keep string) model.Answer { return agenttest.Say("They talked.\n" + keep) }, agent.Limits{Steps: 3})
	if asked == 0 || !kept(w, m, "ORD-99812") {
		t.Errorf("%d summaries were asked for; the number is gone", asked)
	}
	asked, steps, tokens := 0, 0, 0
	for _, r := range w.Said(agent.SettledMark) {
		steps += r.Steps
		tokens += r.TokensIn
	}
	for _, req := range m.Requests() {
		if _, yes := asksForSummary(req); yes {
			asked++
		}
	}
	if requests := len(m.Requests()); steps != requests-asked || tokens != 100*steps+1000*asked {
		t.Errorf("%d requests, %d of them for summaries, count as %d steps and %d tokens", requests, asked, steps, tokens)
	}
}

// A summary that is no good, or none at all, does not keep the conversation from going on, and is not asked for without end.
func TestASummaryThatIsNoGoodIsLeftOut(t *testing.T) {
	for name, answer := range map[string]model.Answer{
		"forgetful": agenttest.Say("They talked."),
		"empty":     agenttest.Say(""),
		"a call":    agenttest.Do(agenttest.Call(1, "nosuch", `{}`)),
		"cut off":   {Text: "They talked of ORD-99812 and dock/7b", Finish: model.FinishLength},
	} {
		asked, w, m := talk(t, func(string) model.Answer { return answer }, agent.Limits{})
		if asked == 0 || asked > 2*12 {
			t.Errorf("%s: %d summaries were asked for", name, asked)
		}
		if kept(w, m, "They talked") {
			t.Errorf("%s: a bad summary stands in the conversation", name)
		}
		for _, r := range w.Said(agent.SettledMark) {
			if r.Reason != agent.Completed {
				t.Errorf("%s: a turn was settled with %s", name, r.Reason)
			}
		}
		w.Kill()
	}
}

// A summary is within the limits like any other call: without money for it there is none.
func TestASummaryIsPaidFromTheTurnsMoney(t *testing.T) {
	limits := agent.Limits{Cost: agent.USD(0.0035)}
	asked, w, _ := talk(t, func(keep string) model.Answer { return agenttest.Say("They talked.\n" + keep) }, limits)
	for _, r := range w.Said(agent.SettledMark) {
		if r.CostUSD > limits.Cost.USD() {
			t.Errorf("a turn spent $%.6f", r.CostUSD)
		}
	}
	if asked != 0 {
		t.Errorf("%d summaries were asked for", asked)
	}
}

// A Stop, or the end of the program, in the middle of a summary: the call is paid for as unknown, and the turn ends or goes on.
func TestASummaryIsCutOff(t *testing.T) {
	for _, how := range []string{"stop", "kill"} {
		synctest.Test(t, func(t *testing.T) {
			w, m := fresh(t, func(req model.Request) model.Answer {
				if keep, yes := asksForSummary(req); yes {
					return agenttest.Say("They talked.\n" + keep)
				}
				return agenttest.Say("all right")
			})
			w.Config.Spec.Window, w.Config.Spec.MaxOutput = 4000, 500
			w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(1), agent.PerMillion(1)
			w.Config.Model = slowSummaries{m}
			w.Restart()
			for i := range 30 {
				w.Say(fmt.Sprintf("part %d: %s", i, strings.Repeat("word ", 300)))
				synctest.Wait()
				requests := m.Requests()
				if _, yes := asksForSummary(requests[len(requests)-1]); yes {
					break
				}
				w.Rest()
			}
			if how == "kill" {
				w.Config.Model = m
				w.Restart()
			} else {
				w.Stop()
			}
			said := agenttest.Only(w.Rest(), agent.SettledMark)
			last := said[len(said)-1]
			want := map[string]agent.StopReason{"kill": agent.Completed, "stop": agent.Cancelled}[how]
			if last.Reason != want || !last.Unknown || last.CostUSD < 0.001 {
				t.Errorf("%s: settled %+v", how, last.Totals)
			}
			if steps := map[string]int{"kill": 1, "stop": 0}[how]; last.Steps != steps {
				t.Errorf("%s: %d steps, want %d", how, last.Steps, steps)
			}
			w.Kill()
		})
	}
}

// slowSummaries takes an hour for each summary.
type slowSummaries struct{ *agenttest.Model }

func (m slowSummaries) Answer(ctx context.Context, req model.Request, said func(string)) (model.Answer, error) {
	answer, err := m.Model.Answer(ctx, req, said)
	if _, yes := asksForSummary(req); !yes {
		return answer, err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return model.Answer{}, context.Cause(ctx)
	}
	return answer, err
}
