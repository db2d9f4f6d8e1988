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
)

func ptr(s string) *string { return &s }

// hooked runs a turn of one call of look and an answer under hooks. It returns what was said, how often look ran, and the model.
func hooked(t *testing.T, hooks ...agent.Hook) ([]agent.Reply, *deeds, *agenttest.Model) {
	t.Helper()
	d := &deeds{}
	w, m := fresh(t, once(agenttest.Call(1, "look", `{"x":"y"}`)), d.tool("look", agent.Effectful, ""))
	w.Config.Hooks = hooks
	w.Restart()
	w.Say("go")
	said := w.Rest()
	w.Kill()
	return said, d, m
}

func ruling(at agent.HookPoint, r agent.Ruling, err error) agent.Hook {
	return agent.Hook{Name: "guard", At: at, Rule: func(context.Context, agent.HookQuestion) (agent.Ruling, error) { return r, err }}
}

func TestHooksRuleAtTheirPoints(t *testing.T) {
	calm := "final done\nsettled completed 2 steps 1 calls"
	for _, c := range []struct {
		name string
		hook agent.Hook
		said string
		ran  int
		read string // result of the call; "" when it never came so far
	}{
		{"let be at before_step", ruling(agent.BeforeStep, agent.Ruling{}, nil), calm, 1, `look done with {"x":"y"}`},
		{"stop at before_step", ruling(agent.BeforeStep, agent.Ruling{Stop: "Not on Sundays."}, nil), "notice Not on Sundays.\nsettled failed 0 steps 0 calls", 0, ""},
		{"stop at before_model", ruling(agent.BeforeModel, agent.Ruling{Stop: "Too secret."}, nil), "notice Too secret.\nsettled failed 0 steps 0 calls", 0, ""},
		{"stop at before_tool", ruling(agent.BeforeTool, agent.Ruling{Stop: "Hands off."}, nil), "notice Hands off.\nsettled failed 1 steps 1 calls", 0, ""},
		{"stop at after_step", ruling(agent.AfterStep, agent.Ruling{Stop: "Enough."}, nil), "notice Enough.\nsettled failed 1 steps 1 calls", 1, ""},
		{"refuse", ruling(agent.BeforeTool, agent.Ruling{Refuse: "it is y"}, nil), "final done\nsettled completed 2 steps 1 calls", 0, "not run: it is y"},
		{"answer", ruling(agent.BeforeTool, agent.Ruling{Answer: ptr("canned")}, nil), calm, 0, "canned"},
		{"answer with nothing", ruling(agent.BeforeTool, agent.Ruling{Answer: ptr("")}, nil), calm, 0, "<nothing>"},
		{"rewrite", ruling(agent.AfterTool, agent.Ruling{Result: ptr("[secret]")}, nil), calm, 1, "[secret]"},
		{"undecided at before_step", ruling(agent.BeforeStep, agent.Ruling{}, errors.New("boom /etc/x")), "notice I stopped: the check guard could not decide whether I may go on.\nsettled failed 0 steps 0 calls", 0, ""},
		{"undecided at before_model", ruling(agent.BeforeModel, agent.Ruling{}, errors.New("boom")), "notice I stopped: the check guard could not decide whether I may go on.\nsettled failed 0 steps 0 calls", 0, ""},
		{"undecided at before_tool", ruling(agent.BeforeTool, agent.Ruling{}, errors.New("boom /etc/x")), calm, 0, "not run: the check guard could not decide about it"},
		{"undecided at after_tool", ruling(agent.AfterTool, agent.Ruling{}, errors.New("boom")), calm, 1, "withheld: the check guard could not decide whether this result may be read; the call did run"},
		{"undecided at after_step", ruling(agent.AfterStep, agent.Ruling{}, errors.New("boom")), "notice I stopped: the check guard could not decide whether I may go on.\nsettled failed 1 steps 1 calls", 1, ""},
		{"out of place", ruling(agent.BeforeStep, agent.Ruling{Refuse: "no"}, nil), "notice I stopped: the check guard could not decide whether I may go on.\nsettled failed 0 steps 0 calls", 0, ""},
		{"two minds", ruling(agent.BeforeTool, agent.Ruling{Refuse: "no", Answer: ptr("yes")}, nil), calm, 0, "not run: the check guard could not decide about it"},
		{"no sense", ruling(agent.BeforeModel, agent.Ruling{Messages: []model.Message{{Role: model.ToolRole, CallID: "gone", Text: "x"}}}, nil),
			"notice I stopped: the check guard could not decide whether I may go on.\nsettled failed 0 steps 0 calls", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			said, d, m := hooked(t, c.hook)
			same(t, said, c.said)
			if len(d.done) != c.ran {
				t.Errorf("the call ran %d times, want %d", len(d.done), c.ran)
			}
			requests := m.Requests()
			if c.read != "" && (len(requests) != 2 || resultOf(t, m, "look-1") != strings.TrimSuffix(c.read, "<nothing>")) {
				t.Errorf("%d requests, the model read %q", len(requests), resultOf(t, m, "look-1"))
			}
		})
	}
}

// What a hook changes of a request is for that one call of the model: the next one is asked anew.
func TestAHookChangesOneRequest(t *testing.T) {
	asked := 0
	hook := agent.Hook{Name: "guard", At: agent.BeforeModel, Rule: func(_ context.Context, q agent.HookQuestion) (agent.Ruling, error) {
		if asked++; asked > 1 {
			return agent.Ruling{}, nil
		}
		if q.Request == nil || q.Request.System == "" || len(q.Request.Messages) != 1 || len(q.Request.Tools) != 3 || q.Step != 1 || q.Person != agenttest.Ann.ID {
			t.Errorf("asked %+v", q)
		}
		q.Request.Messages[0].Text = "a hook that scribbles in its copy"
		return agent.Ruling{System: ptr("Be brief."), Append: "[mind the gap]", Hide: []string{"look"}}, nil
	}}
	_, d, m := hooked(t, hook)
	requests := m.Requests()
	first, second := requests[0], requests[1]
	if first.System != "Be brief." || !strings.HasSuffix(first.Messages[0].Text, "go\n\n[mind the gap]") || len(first.Tools) != 2 {
		t.Errorf("the first request is %+v", first)
	}
	if second.System == "Be brief." || !strings.HasSuffix(second.Messages[0].Text, "go") || len(second.Tools) != 3 {
		t.Errorf("the second request is %+v", second)
	}
	// The call of a tool that was hidden is like that of one that is not there; the scripted model gives up after it.
	if got := resultOf(t, m, "look-1"); len(d.done) != 0 || !strings.Contains(got, `there is no tool "look"; the tools are ask_person, plan`) {
		t.Errorf("it ran %d times and the model read %q", len(d.done), got)
	}
}

// Hooks of one point are asked in order, and one sees what the one before has made of it; the first that refuses ends the asking.
func TestHooksOfOnePointAreAskedInOrder(t *testing.T) {
	add := func(what string) agent.Hook {
		return agent.Hook{Name: what, At: agent.AfterTool, Rule: func(_ context.Context, q agent.HookQuestion) (agent.Ruling, error) {
			return agent.Ruling{Result: ptr(q.Result + what)}, nil
		}}
	}
	_, _, m := hooked(t, add("+a"), add("+b"), ruling(agent.BeforeTool, agent.Ruling{}, nil), ruling(agent.BeforeTool, agent.Ruling{Answer: ptr("canned")}, nil))
	if got := resultOf(t, m, "look-1"); got != "canned" {
		t.Errorf("the model read %q, for what a hook answered is no result of a call that ran", got)
	}
	_, _, m = hooked(t, add("+a"), add("+b"))
	if got := resultOf(t, m, "look-1"); got != `look done with {"x":"y"}+a+b` {
		t.Errorf("the model read %q", got)
	}
}

// A hook that never returns, or panics, has not decided; a Stop in the meantime ends the turn as a Stop.
func TestAHookThatHangsOrPanicsRefuses(t *testing.T) {
	for _, at := range []agent.HookPoint{agent.BeforeStep, agent.BeforeModel, agent.BeforeTool, agent.AfterTool, agent.AfterStep} {
		for _, how := range []string{"hangs", "panics", "stop"} {
			t.Run(fmt.Sprint(at, " ", how), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					leave := make(chan struct{})
					d := &deeds{}
					w, _ := fresh(t, once(agenttest.Call(1, "look", `{}`)), d.tool("look", agent.Effectful, ""))
					w.Config.Hooks = []agent.Hook{{Name: "guard", At: at, Rule: func(context.Context, agent.HookQuestion) (agent.Ruling, error) {
						if how == "panics" {
							panic("boom")
						}
						<-leave
						return agent.Ruling{}, nil
					}}}
					w.Restart()
					w.Say("go")
					if how == "stop" {
						synctest.Wait()
						time.Sleep(time.Second)
						w.Stop()
						synctest.Wait()
						if at == agent.AfterTool {
							close(leave) // what ran is looked at before anything else
						}
					}
					settled := only(t, w.Rest(), agent.SettledMark)
					want := agent.Failed
					switch {
					case how == "stop":
						want = agent.Cancelled
					case at == agent.BeforeTool, at == agent.AfterTool:
						want = agent.Completed
					}
					if settled.Reason != want {
						t.Errorf("settled %s, want %s", settled.Reason, want)
					}
					if ran := len(d.done); (at == agent.AfterTool || at == agent.AfterStep) != (ran == 1) {
						t.Errorf("the call ran %d times", ran)
					}
					if settled.CostUSD != 0 || settled.Unknown {
						t.Errorf("settled %+v", settled.Totals)
					}
					if how != "stop" || at != agent.AfterTool {
						close(leave)
					}
					w.Kill()
				})
			})
		}
	}
}

// A call that was approved is looked at right before it runs, also one that was parked.
func TestHooksLookAtApprovedCalls(t *testing.T) {
	for _, policy := range []agent.Policy{agent.PolicyAsk, agent.PolicySecond} {
		d := &deeds{}
		w, m := fresh(t, once(agenttest.Call(1, "del", `{"x":"y"}`)), d.tool("del", agent.Effectful, policy))
		asked := 0
		w.Config.Hooks = []agent.Hook{{Name: "guard", At: agent.BeforeTool, Rule: func(_ context.Context, q agent.HookQuestion) (agent.Ruling, error) {
			asked++
			if q.Tool != "del" || string(q.Arguments) != `{"x":"y"}` || q.Effect != agent.Effectful || q.Turn == "" {
				t.Errorf("asked %+v", q)
			}
			return agent.Ruling{Refuse: "y is holy"}, nil
		}}}
		w.Restart()
		w.Say("go")
		card := only(t, w.Rest(), agent.Approval)
		if asked != 0 {
			t.Errorf("the hook was asked before the person")
		}
		by := agenttest.Ann
		if policy == agent.PolicySecond {
			by = agent.Person{ID: "terminal:bob", Name: "bob"}
		}
		if _, err := w.Pass(agent.Message{Provenance: agent.Decided, From: by, Decision: &agent.Decision{Card: card.ID, Verdict: agent.Approve}}); err != nil {
			t.Fatal(err)
		}
		w.Rest()
		requests := m.Requests()
		read := fmt.Sprint(requests[len(requests)-1].Messages)
		if asked != 1 || len(d.done) != 0 || !strings.Contains(read, "not run: y is holy") {
			t.Errorf("%s: asked %d times, ran %d times, the model read %s", policy, asked, len(d.done), read)
		}
		w.Kill()
	}
}

// While a hook thinks, a call that needed no approval can become one that does: then it does not run.
func TestACallThatIsNoLongerFreeDoesNotRun(t *testing.T) {
	for _, later := range []agent.Policy{agent.PolicyNo, agent.PolicyAsk, agent.PolicyOwner} {
		d, policy := &deeds{}, agent.PolicyNo
		put := d.tool("put", agent.Effectful, agent.PolicyNo)
		put.Judge = func(agent.Invocation) (agent.Policy, string, error) { return policy, "", nil }
		w, m := fresh(t, once(agenttest.Call(1, "put", `{"x":"y"}`)), put)
		w.Config.Hooks = []agent.Hook{{Name: "slow", At: agent.BeforeTool, Rule: func(context.Context, agent.HookQuestion) (agent.Ruling, error) {
			policy = later
			return agent.Ruling{}, nil
		}}}
		w.Restart()
		w.Say("go")
		w.Rest()
		requests := m.Requests()
		read := fmt.Sprint(requests[len(requests)-1].Messages)
		if free := later == agent.PolicyNo; len(d.done) > 0 != free || strings.Contains(read, "look again and ask anew") == free {
			t.Errorf("became %s: ran %d times, the model read %s", later, len(d.done), read)
		}
		w.Kill()
	}
}

// An answer waits for the hooks, whatever comes between: a Stop, the end of the turn's time or of the program. None of them
// lets it out unseen, and a restart asks the hooks, not the model again.
func TestAnAnswerIsNotLetOutPastAHook(t *testing.T) {
	for _, how := range []string{"stop", "time", "kill"} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			w, m := fresh(t, func(model.Request) model.Answer { return agenttest.Say("the secret is 42") })
			w.Config.Limits.TurnTimeout = 30 * time.Second
			w.Config.Hooks = []agent.Hook{{Name: "guard", At: agent.AfterStep, Rule: func(ctx context.Context, q agent.HookQuestion) (agent.Ruling, error) {
				if asked++; asked == 1 {
					<-ctx.Done()
					return agent.Ruling{}, context.Cause(ctx)
				}
				return agent.Ruling{Stop: "That is a secret."}, nil
			}}}
			w.Restart()
			w.Say("go")
			synctest.Wait()
			want := map[string]string{
				"stop": "notice Stopped.\nsettled cancelled 1 steps 0 calls",
				"time": "notice I stopped: this turn has worked for 30s, which is as long as one may. Say continue to let me go on, or say what to do instead.\nsettled timeout 1 steps 0 calls",
				"kill": "notice That is a secret.\nsettled failed 1 steps 0 calls",
			}[how]
			switch how {
			case "stop":
				w.Stop()
			case "kill":
				w.Restart()
			}
			same(t, w.Rest(), want)
			if n := len(m.Requests()); n != 1 {
				t.Errorf("%s: the model was asked %d times", how, n)
			}
			w.Kill()
		})
	}
}

// A parked call whose hook was cut off by the end of the program does not run unseen.
func TestAParkedCallWaitsForItsHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		w, _ := fresh(t, once(agenttest.Call(1, "del", `{"x":"y"}`)), d.tool("del", agent.Effectful, agent.PolicySecond))
		asked := 0
		w.Config.Hooks = []agent.Hook{{Name: "guard", At: agent.BeforeTool, Rule: func(ctx context.Context, _ agent.HookQuestion) (agent.Ruling, error) {
			if asked++; asked == 1 {
				<-ctx.Done()
				return agent.Ruling{}, context.Cause(ctx)
			}
			return agent.Ruling{}, nil
		}}}
		w.Restart()
		w.Say("go")
		card := only(t, w.Rest(), agent.Approval)
		bob := agent.Person{ID: "terminal:bob", Name: "bob"}
		if _, err := w.Pass(agent.Message{Provenance: agent.Decided, From: bob, Decision: &agent.Decision{Card: card.ID, Verdict: agent.Approve}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.Kill()
		if len(d.done) != 0 {
			t.Errorf("it ran %d times before the hook had decided", len(d.done))
		}
		w.Restart()
		w.Rest()
		if len(d.done) != 1 || asked != 2 {
			t.Errorf("after the restart it ran %d times; asked %d times", len(d.done), asked)
		}
		w.Kill()
	})
}

// The hooks see what is sent to make a summary, too.
func TestHooksSeeRequestsForSummaries(t *testing.T) {
	w, m := fresh(t, func(req model.Request) model.Answer { return agenttest.Say("all right") })
	w.Config.Spec.Window, w.Config.Spec.MaxOutput = 4000, 500
	summaries := 0
	w.Config.Hooks = []agent.Hook{{Name: "guard", At: agent.BeforeModel, Rule: func(_ context.Context, q agent.HookQuestion) (agent.Ruling, error) {
		if q.Summary {
			summaries++
		}
		messages := q.Request.Messages
		for i := range messages {
			messages[i].Text = strings.ReplaceAll(messages[i].Text, "hush-hush", "[secret]")
		}
		return agent.Ruling{Messages: messages}, nil
	}}}
	w.Restart()
	for i := range 12 {
		w.Say(fmt.Sprintf("part %d is hush-hush: %s", i, strings.Repeat("word ", 300)))
		w.Rest()
	}
	for i, req := range m.Requests() {
		if text := fmt.Sprint(req.Messages); strings.Contains(text, "hush-hush") {
			t.Errorf("request %d was sent as it was", i+1)
		}
	}
	if summaries == 0 {
		t.Error("no summary was asked for")
	}
}

// A hook that makes requests smaller does not make the next one's price a surprise.
func TestATrimmingHookDoesNotPassTheCap(t *testing.T) {
	n := 0
	spec := agent.ModelSpec{MaxOutput: 200, PriceIn: agent.PerMillion(9), PriceOut: agent.PerMillion(3)}
	l := &ledger{f: &faults{TB: t}, price: spec, bytes: 3, turns: map[string]agent.Money{}}
	d := &deeds{}
	w := agenttest.Start(t, agent.Config{
		Store: open(t), Model: full{l, "text"}, Spec: spec, Tools: []agent.Tool{d.tool("look", agent.Read, "")}, Limits: agent.Limits{Cost: agent.USD(0.05), Steps: 200},
		Hooks: []agent.Hook{{Name: "trim", At: agent.BeforeModel, Rule: func(_ context.Context, q agent.HookQuestion) (agent.Ruling, error) {
			if n++; n%15 == 0 {
				return agent.Ruling{}, nil
			}
			return agent.Ruling{Messages: q.Request.Messages[:1]}, nil
		}}},
	})
	w.Say("go")
	settled := only(t, w.Rest(), agent.SettledMark)
	if spent := l.turns["all"].USD(); spent > 0.05 || settled.Reason != agent.Budget {
		t.Errorf("spent $%.6f of $0.05, settled %s after %d steps", spent, settled.Reason, settled.Steps)
	}
}

// A call that ran and whose result a crash took while hooks looked at it is not called unknown, and is not run again.
func TestAResultLostWhileHooksLookIsSaidToBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		w, m := fresh(t, once(agenttest.Call(1, "look", `{}`)), d.tool("look", agent.Effectful, ""))
		leave := make(chan struct{})
		w.Config.Hooks = []agent.Hook{{Name: "guard", At: agent.AfterTool, Rule: func(context.Context, agent.HookQuestion) (agent.Ruling, error) {
			<-leave
			return agent.Ruling{}, nil
		}}}
		w.Restart()
		w.Say("go")
		synctest.Wait()
		w.Config.Hooks = nil
		w.Restart()
		w.Rest()
		close(leave)
		got := resultOf(t, m, "look-1")
		if len(d.done) != 1 || !strings.HasPrefix(got, "withheld") && !strings.HasPrefix(got, "it ran, and its result was lost") {
			t.Errorf("it ran %d times and the model read %q", len(d.done), got)
		}
		if said := w.Said(agent.Notice); len(said) != 0 {
			t.Errorf("the person was told %s", agenttest.Lines(said))
		}
		w.Kill()
	})
}

// What a hook adds is paid for out of the room for the answer, and ends the turn where there is none left.
func TestWhatAHookAddsIsWithinTheLimits(t *testing.T) {
	w, m := fresh(t, func(model.Request) model.Answer { return agenttest.Say("done") })
	w.Config.Limits = agent.Limits{Tokens: 2000}
	words := 200
	w.Config.Hooks = []agent.Hook{{Name: "guard", At: agent.BeforeModel, Rule: func(context.Context, agent.HookQuestion) (agent.Ruling, error) {
		return agent.Ruling{Append: strings.Repeat("w", words)}, nil
	}}}
	w.Restart()
	w.Say("go")
	w.Rest()
	if most := m.Requests()[0].MaxOutput; most > 2000-words/2 {
		t.Errorf("the answer may have %d tokens", most)
	}
	words = 4000
	w.Say("go")
	same(t, w.Rest(), `
		notice I stopped: what a check adds to the request leaves no room for an answer.
		settled budget 0 steps 0 calls`)
}
