package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
)

// only is the one reply of a kind among those given.
func only(t *testing.T, said []agent.Reply, kind agent.Kind) agent.Reply {
	t.Helper()
	of := agenttest.Only(said, kind)
	if len(of) != 1 {
		t.Fatalf("said\n%swant one %s", agenttest.Lines(said), kind)
	}
	return of[0]
}

// After every limit but the daily one the turn goes on when its person says so, with as much again, however that is
// said and after a restart too; its totals go on counting.
func TestATurnThatALimitEndedGoesOnWithAsMuchAgain(t *testing.T) {
	grants := map[string]func(w *agenttest.World, card string){
		"words":   func(w *agenttest.World, _ string) { w.Say(" continue.") },
		"approve": func(w *agenttest.World, card string) { w.Decide(card, agent.Approve, "") },
		"answer":  func(w *agenttest.World, card string) { w.Decide(card, agent.AnswerIt, agent.ChoiceContinue) },
		"restart": func(w *agenttest.World, card string) {
			w.Restart()
			w.Decide(card, agent.Approve, "")
		},
	}
	for _, c := range []struct {
		reason      agent.StopReason
		limits      agent.Limits
		tool        string
		first, both int // steps
		exact       bool
	}{
		{agent.StepLimit, agent.Limits{Steps: 3}, "look", 3, 6, true},
		{agent.ToolLimit, agent.Limits{ToolCalls: 3}, "look", 4, 8, true}, // the fourth call is counted, though not run
		{agent.TokenLimit, agent.Limits{Tokens: 3000}, "look", 10, 20, false},
		{agent.Budget, agent.Limits{Cost: agent.USD(0.008)}, "look", 8, 16, false},
		{agent.TimedOut, agent.Limits{TurnTimeout: 20 * time.Second}, "slow", 3, 6, true},
		{agent.TooManyErrs, agent.Limits{Errors: 3}, "nosuch", 3, 6, true},
		{agent.Repeated, agent.Limits{Repeats: 4}, "look", 4, 8, true},
	} {
		for how, grant := range grants {
			t.Run(string(c.reason)+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := &deeds{}
					w, m := fresh(t, runaway(c.tool), d.tool("look", agent.Read, ""), d.slow("slow", agent.Read, 7*time.Second))
					w.Config.Limits = c.limits
					w.Config.Spec.MaxOutput = 100
					w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
					w.Restart()
					w.Say("go")
					said := w.Rest()
					offer, ended := only(t, said, agent.Notice), only(t, said, agent.SettledMark)
					if len(offer.Choices) != 1 || offer.Choices[0] != agent.ChoiceContinue || offer.ID == "" || !strings.Contains(offer.Text, "Say continue") {
						t.Fatalf("offered %+v", offer)
					}
					if ended.Reason != c.reason || c.exact && ended.Steps != c.first || !c.exact && ended.Steps < c.first {
						t.Fatalf("settled %+v, want %s after %d steps", ended.Totals, c.reason, c.first)
					}
					time.Sleep(time.Hour)
					grant(w, offer.ID)
					said = w.Rest()
					again := only(t, said, agent.SettledMark)
					if again.Turn != ended.Turn || again.Reason != c.reason || c.exact && again.Steps != c.both {
						t.Errorf("went on as %s to %+v, want %s to %d steps", again.Turn, again.Totals, ended.Turn, c.both)
					}
					if gained := again.Steps - ended.Steps; !c.exact && (gained < ended.Steps/3 || gained > ended.Steps) {
						t.Errorf("after %d steps another %d were made", ended.Steps, gained)
					}
					if last := m.Requests()[ended.Steps]; !strings.Contains(agenttest.LastUser(last), "lets you go on") {
						t.Errorf("the model read %q", agenttest.LastUser(last))
					}
					if c.limits.Cost > 0 && again.CostUSD > 2*c.limits.Cost.USD() {
						t.Errorf("spent $%.6f", again.CostUSD)
					}
					w.Kill()
				})
			})
		}
	}
}

// A provider that was down is asked again.
func TestATurnWhoseModelFailedIsTriedAgain(t *testing.T) {
	w, m := fresh(t, func(model.Request) model.Answer { return agenttest.Say("done") })
	m.Err = func(n int) error {
		if n == 1 {
			return &model.Error{Fault: model.FaultRefused, Say: "the provider has no credit"}
		}
		return nil
	}
	w.Say("go")
	if say := only(t, w.Rest(), agent.Notice).Text; !strings.HasSuffix(say, "Say continue to try again.") {
		t.Errorf("said %q", say)
	}
	w.Say("Continue")
	same(t, agenttest.Only(w.Rest(), agent.Final, agent.SettledMark), `
		final done
		settled completed 2 steps 0 calls`)
}

func TestAnOfferIsItsPersonsAndIsOvertakenByOtherWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		w, _ := fresh(t, runaway("look"), d.tool("look", agent.Read, ""))
		w.Config.Limits = agent.Limits{Steps: 2, Question: time.Hour}
		w.Restart()
		w.Say("go")
		offer := only(t, w.Rest(), agent.Notice)

		bob := agent.Person{ID: "slack:T1:U2", Name: "bob"}
		decide := func(card string, who agent.Person, d agent.Decision) []agent.Reply {
			d.Card = card
			if _, err := w.Pass(agent.Message{Provenance: agent.Decided, From: who, Decision: &d}); err != nil {
				t.Fatal(err)
			}
			return w.Rest()
		}
		if said := decide(offer.ID, bob, agent.Decision{Verdict: agent.Approve}); len(said) != 1 || said[0].Kind != agent.Fault {
			t.Errorf("another person's click said %s", agenttest.Lines(said))
		}
		if said := decide(offer.ID, agenttest.Ann, agent.Decision{Verdict: agent.AnswerIt, Text: "dance"}); len(said) != 1 || said[0].Kind != agent.Fault {
			t.Errorf("another answer said %s", agenttest.Lines(said))
		}
		w.Say("enough")
		same(t, w.Rest(), `
		decided withdrawn
		final all right
		settled completed 1 steps 0 calls`)
		if said := decide(offer.ID, agenttest.Ann, agent.Decision{Verdict: agent.Approve}); len(said) != 1 || !strings.Contains(said[0].Text, "withdrawn") {
			t.Errorf("a late click said %s", agenttest.Lines(said))
		}

		w.Say("go on and on")
		offer = only(t, w.Rest(), agent.Notice)
		same(t, decide(offer.ID, agenttest.Ann, agent.Decision{Verdict: agent.Deny, Text: "no need"}), `
		decided deny no need`)
		w.Say("continue") // which now are words like any others
		offer = only(t, w.Rest(), agent.Notice)

		time.Sleep(2 * time.Hour)
		said := decide(offer.ID, agenttest.Ann, agent.Decision{Verdict: agent.Approve})
		if len(agenttest.Only(said, agent.SettledMark)) != 0 || !strings.Contains(agenttest.Lines(said), "expired") {
			t.Errorf("after its time it said %s", agenttest.Lines(said))
		}
		w.Kill()
	})
}

// Nothing is offered where nobody can grant it: after the daily cap, an allowance that buys no step, a Stop.
func TestNothingIsOfferedThatCannotBeGranted(t *testing.T) {
	for name, limits := range map[string]agent.Limits{
		"daily":   {DailyCost: agent.USD(0.02), Cost: agent.USD(1)},
		"useless": {Cost: agent.USD(0.0001)},
	} {
		w, _ := fresh(t, runaway("fail"), agenttest.Tool("fail", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
			return agent.Result{}, errors.New("no")
		}))
		w.Config.Limits = limits
		w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
		w.Restart()
		w.Say("go")
		said := w.Rest()
		if n := only(t, said, agent.Notice); n.Choices != nil || only(t, said, agent.SettledMark).Reason != agent.Budget {
			t.Errorf("%s: said %s", name, agenttest.Lines(said))
		}
		w.Kill()
	}
	d := &deeds{begun: make(chan string, 1)}
	w, _ := fresh(t, once(agenttest.Call(1, "slow", `{}`)), d.slow("slow", agent.Read, time.Hour))
	w.Say("go")
	<-d.begun
	w.Stop()
	if n := only(t, w.Rest(), agent.Notice); n.IsCard() {
		t.Errorf("a Stop offers %+v", n)
	}
}

// Words that were to be in a request which a limit did not allow get one receipt, also when the turn is let go on.
func TestWordsBeforeALimitGetOneReceipt(t *testing.T) {
	w, _ := fresh(t, func(req model.Request) model.Answer {
		if len(agenttest.Results(req)) == 0 && agenttest.LastUser(req) == "" || strings.HasSuffix(agenttest.LastUser(req), "go") {
			return agenttest.Do(agenttest.Call(1, "ask_person", `{"question":"which?"}`))
		}
		return agenttest.Say("done")
	})
	w.Config.Limits = agent.Limits{Steps: 1}
	w.Restart()
	w.Say("go")
	w.Rest()
	w.Say("rather blue")
	w.Rest()
	w.Say("continue")
	w.Rest()
	receipts := map[string]string{}
	for _, r := range w.Said(agent.SteerMark) {
		receipts[r.Text] += r.State + " "
	}
	if got := receipts["rather blue"]; got != "stored next_turn " {
		t.Errorf("the receipts of the answer are %q", got)
	}
}
