package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/schedule"
)

// runaway asks for the given calls again and again, with ids of their own.
func runaway(tools ...string) agenttest.Script {
	return func(req model.Request) model.Answer {
		if strings.HasSuffix(agenttest.LastUser(req), "enough") {
			return agenttest.Say("all right")
		}
		var calls []model.Call
		for i, tool := range tools {
			calls = append(calls, agenttest.Call(100*len(req.Messages)+i, tool, fmt.Sprintf(`{"x":"%d"}`, i)))
		}
		return agenttest.Do(calls...)
	}
}

func TestEveryLimitStopsWithItsReasonAndOnePlainLine(t *testing.T) {
	for _, c := range []struct {
		reason agent.StopReason
		limits agent.Limits
		tools  []string
		ran    int // calls; at most, where tokens or money are short
		line   string
	}{
		{agent.StepLimit, agent.Limits{Steps: 3}, []string{"look"}, 3, "after 3 steps"},
		{agent.ToolLimit, agent.Limits{ToolCalls: 7}, []string{"look", "look", "look"}, 6, "limit of 7 tool calls"},
		{agent.ToolLimit, agent.Limits{ToolCalls: 2}, []string{"look", "nosuch", "look"}, 0, "limit of 2 tool calls"},
		{agent.TokenLimit, agent.Limits{Tokens: 4000}, []string{"look"}, 36, "of its 4000 tokens"},
		{agent.Budget, agent.Limits{Cost: agent.USD(0.01)}, []string{"look"}, 31, "of its $0.0100"},
		{agent.Budget, agent.Limits{DailyCost: agent.USD(0.01)}, []string{"look"}, 31, "It goes on tomorrow"},
		{agent.TimedOut, agent.Limits{TurnTimeout: 20 * time.Second}, []string{"slow"}, 3, "worked for 20s"},
		{agent.TooManyErrs, agent.Limits{Errors: 3}, []string{"fail"}, 3, "the moon is in the way"},
		{agent.TooManyErrs, agent.Limits{Errors: 2}, []string{"nosuch"}, 0, "there is no tool"},
	} {
		t.Run(string(c.reason)+" "+c.line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &deeds{}
				fail := agenttest.Tool("fail", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
					d.do("fail")
					return agent.Result{}, errors.New("the moon is in the way")
				})
				w, m := fresh(t, runaway(c.tools...), d.tool("look", agent.Read, ""), d.slow("slow", agent.Read, 7*time.Second), fail)
				w.Config.Limits = c.limits
				w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
				w.Restart()
				w.Say("go")
				said := w.Rest()
				notices, settled := agenttest.Only(said, agent.Notice), agenttest.Only(said, agent.SettledMark)
				if len(said) != 2 || len(notices) != 1 || len(settled) != 1 || settled[0].Reason != c.reason {
					t.Fatalf("said %s, want one notice and settled %s", agenttest.Lines(said), c.reason)
				}
				if line := notices[0].Text; !strings.Contains(line, c.line) || strings.Contains(line, "\n") {
					t.Errorf("the person reads %q, want one line with %q", line, c.line)
				}
				short := c.reason == agent.Budget || c.reason == agent.TokenLimit
				if ran := len(d.done); ran > c.ran || short && ran == 0 || !short && ran != c.ran {
					t.Errorf("%d calls ran, want %d", ran, c.ran)
				}
				if n := len(m.Requests()); n != settled[0].Steps {
					t.Errorf("%d model calls and %d steps", n, settled[0].Steps)
				}
				time.Sleep(24 * time.Hour)
				w.Say("enough") // the model checks that no call was left open
				if last := agenttest.Only(w.Rest(), agent.Final); len(last) != 1 {
					t.Errorf("the next turn said %s", agenttest.Lines(w.Said()))
				}
				w.Kill()
			})
		})
	}
}

// full is a provider whose every answer is as long as it may be, and of one kind.
type full struct {
	*ledger
	kind string
}

// Answer charges for the request, whatever is done with the answer.
func (m full) Answer(_ context.Context, req model.Request, _ func(string)) (model.Answer, error) {
	if req.MaxOutput < 64 {
		m.f.Errorf("an answer of %d tokens was asked for", req.MaxOutput)
	}
	usage := model.Usage{In: m.input(req), Out: req.MaxOutput, Known: true}
	m.turns["all"] += agent.Money(usage.In)*m.price.PriceIn + agent.Money(usage.Out)*m.price.PriceOut
	long := strings.Repeat("w", (req.MaxOutput-30)*m.bytes)
	id := fmt.Sprint("c", len(req.Messages))
	answer := agenttest.Do(model.Call{ID: id, Name: "look", Arguments: `{}`})
	switch m.kind {
	case "text":
		answer.Text = long
	case "reasoning":
		answer.Reasoning = long
	case "arguments":
		answer.Calls[0].Arguments = fmt.Sprintf(`{"x":%q}`, long)
	case "plan":
		if len(req.Messages) == 1 {
			answer.Calls[0] = model.Call{ID: id, Name: "plan", Arguments: fmt.Sprintf(`{"items":[{"text":%q,"done":false}]}`, long)}
		}
	}
	answer.Usage = usage
	return answer, nil
}

// A money limit holds to the last token, whatever it is that grows the requests, and below 64 tokens nothing is asked.
func TestACapHoldsWhateverGrows(t *testing.T) {
	for _, kind := range []string{"text", "reasoning", "arguments", "plan"} {
		for cap := 3; cap < 90; cap += 4 {
			f := &faults{TB: t}
			spec := agent.ModelSpec{MaxOutput: 1500, PriceIn: agent.PerMillion(9), PriceOut: agent.PerMillion(3)}
			m := full{&ledger{f: f, price: spec, bytes: 3, turns: map[string]agent.Money{}}, kind}
			d := &deeds{}
			limits := agent.Limits{Cost: agent.USD(float64(cap) / 1000), Steps: 30}
			w := agenttest.Start(t, agent.Config{Store: open(t), Model: m, Spec: spec, Tools: []agent.Tool{d.tool("look", agent.Read, "")}, Limits: limits})
			w.Say("go")
			settled := agenttest.Only(w.Rest(), agent.SettledMark)[0]
			if spent := m.turns["all"]; spent > limits.Cost || settled.Reason != agent.Budget || len(f.found) > 0 {
				t.Errorf("%s: ended with %s and $%.6f of $%.6f; %v", kind, settled.Reason, spent.USD(), limits.Cost.USD(), f.found)
			}
			w.Kill()
		}
	}
}

// A call that a crash lost is charged what was reserved for it, to the turn and to the day.
func TestALostCallIsChargedItsReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := fresh(t, func(model.Request) model.Answer { return agenttest.Say("done") })
		m.Latency = time.Minute
		w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
		w.Config.Limits.Cost = agent.USD(0.031) // two reserves are more
		w.Restart()
		w.Say("go")
		time.Sleep(time.Second)
		w.Restart()
		settled := agenttest.Only(w.Rest(), agent.SettledMark)[0]
		if settled.Reason != agent.Completed || settled.Steps != 2 || !settled.Unknown {
			t.Fatalf("settled with %+v", settled.Totals)
		}
		// 1,000 tokens out at $12 a million, and some in; then 100 in and 10 out.
		if lost := settled.CostUSD - 0.00032; lost < 0.012 || lost > 0.015 {
			t.Errorf("the lost call is charged $%.6f", lost)
		}
		if m.Requests()[1].MaxOutput > 1000 {
			t.Errorf("the second request may have %d tokens", m.Requests()[1].MaxOutput)
		}
		w.Config.Limits.Cost = agent.USD(0.016)
		w.Say("again")
		time.Sleep(time.Second)
		w.Restart()
		if settled := agenttest.Only(w.Rest(), agent.SettledMark)[0]; settled.Reason != agent.Budget || len(m.Requests()) != 3 {
			t.Errorf("with its budget lost, the turn made %d requests and settled with %s", len(m.Requests())-2, settled.Reason)
		}
		w.Kill()
	})
}

// What a person has spent counts by their own date.
func TestADayIsThePersonsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fresh(t, func(model.Request) model.Answer { return agenttest.Say("done") })
		w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
		w.Config.Limits.DailyCost = agent.USD(0.0155)
		w.Restart()
		says := 0
		say := func(name, zone string) agent.StopReason {
			says++
			who := agent.Person{ID: agent.PersonID("terminal:" + name), Name: name, Zone: zone}
			m := agent.Message{Keys: []string{fmt.Sprint(says)}, Provenance: agent.Human, From: who, Address: who.ID.Home(), Text: "go"}
			if _, err := w.Pass(m); err != nil {
				t.Fatal(err)
			}
			return agenttest.Only(w.Rest(), agent.SettledMark)[0].Reason
		}
		people := map[string]string{"kiri": "Pacific/Auckland", "joe": "America/Los_Angeles", "uma": ""}
		exhaust := func(name string) {
			for range 50 {
				if say(name, people[name]) == agent.Budget {
					return
				}
			}
			t.Fatalf("%s never reached the cap", name)
		}
		time.Sleep(10*time.Hour + 50*time.Minute) // it is 10:50 UTC, 23:50 in Auckland, 2:50 in Los Angeles
		for name := range people {
			exhaust(name)
		}
		for _, c := range []struct {
			after time.Duration
			works string
		}{{20 * time.Minute, "kiri"}, {13 * time.Hour, "uma"}, {8 * time.Hour, "joe"}} {
			time.Sleep(c.after)
			for name, zone := range people {
				want := agent.Budget
				if name == c.works {
					want = agent.Completed
				}
				if got := say(name, zone); got != want {
					t.Errorf("at %s UTC %s is settled with %s, want %s", time.Now().UTC().Format(time.TimeOnly), name, got, want)
				}
			}
			exhaust(c.works)
			if c.works == "uma" {
				exhaust("kiri")
			}
		}
		w.Kill()
	})
}

// A person may spend so much a day with all their accounts together; what was spent before one was unlinked counts on both sides.
func TestADaysMoneyIsThePersonsAndNotTheAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fresh(t, func(model.Request) model.Answer { return agenttest.Say("done") })
		w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
		w.Config.Limits.DailyCost = agent.USD(0.0155)
		w.Restart()
		says := 0
		say := func(id agent.PersonID) agent.StopReason {
			says++
			m := agent.Message{Keys: []string{fmt.Sprint(says)}, Provenance: agent.Human, From: agent.Person{ID: id}, Address: id.Home(), Text: "go"}
			if _, err := w.Pass(m); err != nil {
				t.Fatal(err)
			}
			return agenttest.Only(w.Rest(), agent.SettledMark)[0].Reason
		}
		spent := func(id agent.PersonID) (spent agent.Money) {
			err := w.Config.Store.View(t.Context(), func(tx memory.Tx) (err error) {
				spent, err = agent.SpentToday(tx, agent.Person{ID: id})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return spent
		}
		change := func(fn func(tx memory.Tx) error) {
			if err := w.Config.Store.Update(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}
		say("slack:T1:U1")
		say("discord:1")
		one, other := spent("slack:T1:U1"), spent("discord:1")
		change(func(tx memory.Tx) error {
			joined, err := schedule.Link(tx, "slack:T1:U1", "discord:1", time.Now())
			for _, was := range joined.Was {
				err = errors.Join(err, agent.JoinSpent(tx, was, joined.Person))
			}
			return err
		})
		for _, id := range []agent.PersonID{"slack:T1:U1", "discord:1"} {
			if got := spent(id); got != one+other || one == 0 {
				t.Errorf("linked, %s has spent $%.6f, want $%.6f", id, got.USD(), (one + other).USD())
			}
		}
		alone := 0 // turns that the second account pays for when the first has taken what it can
		for _, id := range []agent.PersonID{"slack:T1:U1", "discord:1"} {
			for alone = 0; say(id) != agent.Budget; alone++ {
				if alone == 50 {
					t.Fatal("the cap was never reached")
				}
			}
		}
		if got := spent("discord:1"); got > w.Config.Limits.DailyCost || alone > 3 {
			t.Errorf("$%.6f were spent, and the second account paid for %d turns after the first had reached the cap", got.USD(), alone)
		}
		change(func(tx memory.Tx) error {
			was, err := schedule.Unlink(tx, "discord:1", time.Now())
			return errors.Join(err, agent.PartSpent(tx, was, "discord:1"))
		})
		for _, id := range []agent.PersonID{"slack:T1:U1", "discord:1"} {
			if got := say(id); got != agent.Budget {
				t.Errorf("parted, %s is settled with %s", id, got)
			}
		}
		time.Sleep(24 * time.Hour)
		for _, id := range []agent.PersonID{"slack:T1:U1", "discord:1"} {
			if got := say(id); got != agent.Completed {
				t.Errorf("parted, on the next day %s is settled with %s", id, got)
			}
		}
		w.Kill()
	})
}
