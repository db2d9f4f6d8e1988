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
	"nudge/memory"
)

func TestATurnIsAnsweredAndSettled(t *testing.T) {
	w, m := fresh(t, func(req model.Request) model.Answer { return agenttest.Say("you said " + agenttest.LastUser(req)) })
	w.Say("hello")
	same(t, w.Rest(), `
		final you said hello
		settled completed 1 steps 0 calls`)
	system := m.Requests()[0].System
	for _, part := range []string{"ann", "Europe/Berlin", time.Now().In(zone(t, "Europe/Berlin")).Format("Monday 2006-01-02")} {
		if !strings.Contains(system, part) {
			t.Errorf("the system prompt does not tell %q: %s", part, system)
		}
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestRequestsOfOneSessionShareTheirPrefix(t *testing.T) {
	d := &deeds{}
	w, m := fresh(t, once(agenttest.Call(1, "look", `{}`)), d.tool("look", agent.Read, ""))
	w.Say("one")
	w.Rest()
	w.Restart()
	w.Say("two")
	w.Rest()
	requests := m.Requests()
	for i := 1; i < len(requests); i++ {
		before, after := requests[i-1], requests[i]
		if before.System != after.System || len(after.Messages) <= len(before.Messages) {
			t.Fatalf("request %d does not begin with request %d", i, i-1)
		}
		for j, msg := range before.Messages {
			if got := after.Messages[j]; got.Text != msg.Text || got.Role != msg.Role {
				t.Errorf("request %d, message %d: %q became %q", i, j, msg.Text, got.Text)
			}
		}
	}
}

func TestReadsRunSideBySideAndResultsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		slow, quick := d.slow("slow", agent.Read, 10*time.Second), d.slow("quick", agent.Read, time.Second)
		w, m := fresh(t, once(agenttest.Call(1, "slow", `{}`), agenttest.Call(1, "quick", `{}`), agenttest.Call(2, "slow", `{}`)), slow, quick)
		began := time.Now()
		w.Say("go")
		w.Rest()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("three reads took %s, want the 10 s of the slowest", took)
		}
		last := m.Requests()[1].Messages
		for i, id := range []string{"slow-1", "quick-1", "slow-2"} {
			if got := last[len(last)-3+i].CallID; got != id {
				t.Errorf("result %d is of %s, want %s", i, got, id)
			}
		}
		w.Kill()
	})
}

// The batch of the design: read runs; both cards go out; decided delete runs, then write, then send.
func TestABatchWaitsInOrder(t *testing.T) {
	d := &deeds{}
	w, m := fresh(t, once(
		agenttest.Call(1, "read", `{}`), agenttest.Call(1, "delete", `{"x":"a"}`), agenttest.Call(1, "write", `{"x":"b"}`), agenttest.Call(1, "send", `{}`)),
		d.tool("read", agent.Read, ""), d.tool("delete", agent.Effectful, agent.PolicyAsk),
		d.tool("write", agent.Effectful, agent.PolicyAsk), d.tool("send", agent.Effectful, ""))
	w.Say("go")
	said := w.Rest()
	same(t, said, `
		approval delete
		approval write
		waiting`)
	if d.all() != "read" {
		t.Fatalf("before any decision ran: %s", d.all())
	}
	cards := agenttest.Only(said, agent.Approval)
	w.Decide(cards[1].ID, agent.Approve, "")
	same(t, w.Rest(), `decided write approve`)
	if d.all() != "read" {
		t.Fatalf("before the first card was decided ran: %s", d.all())
	}
	w.Restart()
	w.Decide(cards[0].ID, agent.Approve, "")
	same(t, w.Rest(), `
		decided delete approve
		final done
		settled completed 2 steps 4 calls`)
	if d.all() != "read delete write send" {
		t.Errorf("ran: %s", d.all())
	}
	if n := len(m.Requests()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
	w.Decide(cards[0].ID, agent.Approve, "")
	again := w.Rest()
	if len(again) != 1 || again[0].Kind != agent.Notice || !strings.Contains(again[0].Text, "already approved by ann") {
		t.Errorf("a second approval said %s", agenttest.Lines(again))
	}
	if d.count("delete") != 1 {
		t.Errorf("delete ran %d times", d.count("delete"))
	}
}

func TestADenialReachesTheModelInWords(t *testing.T) {
	for reason, want := range map[string]string{
		"":                        "not run: ann denied this call and gave no reason",
		"ask Bob, he \"owns\" it": "not run: ann denied this call: ask Bob, he \"owns\" it",
	} {
		d := &deeds{}
		w, m := fresh(t, once(agenttest.Call(1, "delete", `{}`)), d.tool("delete", agent.Effectful, agent.PolicyAsk))
		w.Say("go")
		w.Decide(agenttest.Only(w.Rest(), agent.Approval)[0].ID, agent.Deny, reason)
		w.Rest()
		if got := resultOf(t, m, "delete-1"); got != want {
			t.Errorf("the model read %q, want %q", got, want)
		}
		if d.all() != "" {
			t.Errorf("ran: %s", d.all())
		}
	}
}

func TestAnEditRunsWhatWasEdited(t *testing.T) {
	d := &deeds{}
	w, m := fresh(t, once(agenttest.Call(1, "delete", `{"x":"a"}`)), d.tool("delete", agent.Effectful, agent.PolicyAsk))
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0].ID
	edit := func(arguments string) []agent.Reply {
		if _, err := w.Pass(agent.Message{Provenance: agent.Decided, Decision: &agent.Decision{Card: card, Verdict: agent.Edit, Arguments: []byte(arguments)}}); err != nil {
			t.Fatal(err)
		}
		return w.Rest()
	}
	bad := edit(`{"y":1}`)
	if len(bad) != 1 || bad[0].Kind != agent.Fault || !strings.Contains(bad[0].Text, "y") {
		t.Errorf("arguments that do not fit said %s", agenttest.Lines(bad))
	}
	same(t, edit(`{"x":"b"}`), `
		decided delete edit
		final done
		settled completed 2 steps 1 calls`)
	if got, want := resultOf(t, m, "delete-1"), "(ann changed the arguments to {\"x\":\"b\"})\ndelete done with {\"x\":\"b\"}"; got != want {
		t.Errorf("the model read %q, want %q", got, want)
	}
}

// What runs is what the card showed, whatever the model would say if it were asked again.
func TestWhatRunsIsWhatWasApproved(t *testing.T) {
	d := &deeds{}
	n := 0
	w, m := fresh(t, func(req model.Request) model.Answer {
		if len(agenttest.Results(req)) > 0 {
			return agenttest.Say("done")
		}
		n++
		return agenttest.Do(agenttest.Call(1, "record", map[bool]string{true: `{"x":"reviewed"}`, false: `{"x":"changed"}`}[n == 1]))
	}, d.tool("record", agent.Effectful, agent.PolicyAsk))
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	w.Restart()
	w.Decide(card.ID, agent.Approve, "")
	w.Rest()
	if got, want := resultOf(t, m, "record-1"), `record done with {"x":"reviewed"}`; got != want || n != 1 {
		t.Errorf("the model read %q after %d requests, want %q after 1", got, n, want)
	}
}

func TestAnApprovalOfWhatHasChangedRunsNothing(t *testing.T) {
	d := &deeds{}
	content := "one"
	tool := d.tool("delete", agent.Effectful, agent.PolicyAsk)
	tool.Digest = func(agent.Invocation) string { return content }
	w, m := fresh(t, once(agenttest.Call(1, "delete", `{}`)), tool)
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	content = "two"
	w.Decide(card.ID, agent.Approve, "")
	w.Rest()
	if got := resultOf(t, m, "delete-1"); !strings.Contains(got, "has changed since it was approved") || d.all() != "" {
		t.Errorf("the model read %q and %q ran", got, d.all())
	}
}

func TestOnlyTheEntitledDecide(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "delete", `{}`)), d.tool("delete", agent.Effectful, agent.PolicyAsk))
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	_, err := w.Pass(agent.Message{
		From: agent.Person{ID: "slack:T1:U2", Name: "eve"}, Address: "slack:T1:dm:U2", Provenance: agent.Decided,
		Decision: &agent.Decision{Card: card.ID, Verdict: agent.Approve},
	})
	if err != nil {
		t.Fatal(err)
	}
	said := w.Rest()
	if len(said) != 1 || said[0].Kind != agent.Fault || said[0].Address != "slack:T1:dm:U2" || d.all() != "" {
		t.Errorf("a stranger's click said %s and %q ran", agenttest.Lines(said), d.all())
	}
	if _, err := w.Pass(agent.Message{Provenance: agent.Decided, Decision: &agent.Decision{Card: "nosuchcard", Verdict: agent.Approve}}); !errors.Is(err, agent.ErrUnknownCard) {
		t.Errorf("an unknown card gave %v", err)
	}
}

func TestACardExpiresToDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		w, m := fresh(t, once(agenttest.Call(1, "delete", `{}`)), d.tool("delete", agent.Effectful, agent.PolicyAsk))
		w.Say("go")
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		time.Sleep(80 * time.Hour)
		fire(t, w)
		same(t, w.Rest(), `
		decided delete expire
		final done
		settled completed 2 steps 1 calls`)
		if got := resultOf(t, m, "delete-1"); !strings.Contains(got, "nobody decided") {
			t.Errorf("the model read %q", got)
		}
		w.Decide(card.ID, agent.Approve, "")
		late := w.Rest()
		if len(late) != 1 || !strings.Contains(late[0].Text, "expired") || d.all() != "" {
			t.Errorf("a late click said %s and %q ran", agenttest.Lines(late), d.all())
		}
		w.Kill()
	})
}

func TestAQuestionIsAnsweredByPlainWords(t *testing.T) {
	d := &deeds{}
	w, m := fresh(t, once(agenttest.Call(1, "ask_person", `{"question":"which?","choices":["a","b"]}`), agenttest.Call(1, "write", `{}`)),
		d.tool("write", agent.Effectful, ""))
	w.Say("go")
	said := w.Rest()
	same(t, said, `
		ask which?
		waiting`)
	if said[0].Choices[1] != "b" || said[0].Deadline == nil || d.all() != "" {
		t.Errorf("the question is %+v, and %q ran", said[0], d.all())
	}
	w.Restart()
	w.Say("the second")
	same(t, w.Rest(), `
		steer stored the second
		decided ask_person answer the second
		steer seen the second step 2
		final done
		settled completed 2 steps 2 calls`)
	if got := resultOf(t, m, "ask_person-1"); got != "ann answered: the second" || d.all() != "write" {
		t.Errorf("the model read %q and %q ran", got, d.all())
	}
}

func TestWordsInsteadOfADecisionWithdrawTheCard(t *testing.T) {
	d := &deeds{}
	w, m := fresh(t, once(agenttest.Call(1, "delete", `{}`)), d.tool("delete", agent.Effectful, agent.PolicyAsk))
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	w.Say("no, list it")
	w.Rest()
	last := m.Requests()[1].Messages
	if got := last[len(last)-2].Text; got != "not run: the person said: no, list it" {
		t.Errorf("the call's result is %q", got)
	}
	if got := last[len(last)-1]; got.Role != model.User || got.Text != "no, list it" {
		t.Errorf("the words came as %+v", got)
	}
	marks := w.Said(agent.DecidedMark)
	if len(marks) != 1 || marks[0].ID != card.ID || marks[0].Decision != agent.Withdrawn {
		t.Errorf("the card's marks are %s", agenttest.Lines(marks))
	}
	w.Decide(marks[0].ID, agent.Approve, "")
	w.Rest()
	if d.all() != "" {
		t.Errorf("a withdrawn call ran: %s", d.all())
	}
}

func TestACorrectionMidRunCutsWhatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{begun: make(chan string, 9)}
		calls := once(agenttest.Call(1, "slow", `{}`), agenttest.Call(1, "write", `{}`), agenttest.Call(1, "delete", `{}`))
		w, m := fresh(t, func(req model.Request) model.Answer {
			if strings.HasSuffix(agenttest.LastUser(req), "do this") {
				return agenttest.Say("I did not write")
			}
			return calls(req)
		},
			d.slow("slow", agent.Effectful, time.Minute), d.tool("write", agent.Effectful, ""), d.tool("delete", agent.Effectful, agent.PolicyAsk))
		w.Say("go")
		<-d.begun
		w.Say("wait, not that")
		w.Say("do this")
		w.Rest()
		if d.all() != "slow" {
			t.Errorf("ran: %s", d.all())
		}
		last := m.Requests()[1].Messages
		if got := last[len(last)-1].Text; got != "wait, not that\n\ndo this" {
			t.Errorf("the flood came as %q", got)
		}
		same(t, w.Said(agent.SteerMark), `
		steer stored wait, not that
		steer stored do this
		steer seen wait, not that step 2
		steer seen do this step 2`)
		w.Kill()
	})
}

func TestWordsSaidWhileTheLastAnswerIsWrittenBeginTheNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := fresh(t, func(req model.Request) model.Answer { return agenttest.Say("re: " + agenttest.LastUser(req)) })
		m.Latency = time.Second
		w.Say("one")
		time.Sleep(time.Second / 2)
		w.Say("two")
		same(t, w.Rest(), `
		steer stored two
		final re: one
		settled completed 1 steps 0 calls
		steer next_turn two
		final re: two
		settled completed 1 steps 0 calls`)
		w.Kill()
	})
}

func TestStopEndsAToolAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{begun: make(chan string, 9)}
		w, _ := fresh(t, once(agenttest.Call(1, "slow", `{}`), agenttest.Call(1, "write", `{}`)), d.slow("slow", agent.Effectful, time.Minute), d.tool("write", agent.Effectful, ""))
		w.Say("go")
		<-d.begun
		began := time.Now()
		w.Stop()
		same(t, w.Rest(), `
		notice Stopped.
		settled cancelled 1 steps 2 calls`)
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("stopping took %s", took)
		}
		w.Say("and now?")
		w.Rest()
		if d.count("write") != 1 { // the script asks again, in the new turn
			t.Errorf("ran: %s", d.all())
		}
		w.Stop()
		same(t, w.Rest(), `notice Nothing is running.`)
		w.Kill()
	})
}

func TestStopBeforeTheModelAnswersChargesTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := fresh(t, func(model.Request) model.Answer { return agenttest.Say("done") })
		m.Latency = time.Hour
		w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
		w.Restart()
		w.Say("go")
		time.Sleep(time.Second)
		w.Say("kept for later")
		w.Stop()
		said := w.Rest()
		same(t, said, `
		steer stored kept for later
		steer next_turn kept for later
		notice Stopped. I have kept what you said last and read it with your next message.
		settled cancelled 1 steps 0 calls`)
		if totals := said[len(said)-1].Totals; totals.CostUSD <= 0.012 || !totals.Unknown {
			t.Errorf("a call that was cut off is charged %+v", totals)
		}
		m.Latency = 0
		w.Say("go on")
		w.Rest()
		if got := m.Requests()[1].Messages; len(got) != 4 || got[1].Text != "kept for later" {
			t.Errorf("the next request is %+v", got)
		}
		w.Kill()
	})
}

func TestTheModelReadsBackTheArgumentsThatRan(t *testing.T) {
	d := &deeds{}
	fenced := model.Call{ID: "c1", Name: "look", Arguments: "```json\n{\"x\": \"a\"}\n```"}
	w, m := fresh(t, once(fenced), d.tool("look", agent.Read, ""))
	w.Say("go")
	w.Rest()
	if got := m.Requests()[1].Messages[1].Calls[0].Arguments; got != `{"x":"a"}` {
		t.Errorf("the model reads back %q", got)
	}
	if got := resultOf(t, m, "c1"); got != `look done with {"x":"a"}` {
		t.Errorf("the result is %q", got)
	}
}

func TestToolsFailInWords(t *testing.T) {
	boom := agenttest.Tool("boom", agent.Effectful, "", func(context.Context, agent.Invocation) (agent.Result, error) { panic("secret /etc/path") })
	fails := agenttest.Tool("fails", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{}, errors.New("the moon is in the way; try tomorrow")
	})
	w, m := fresh(t, once(
		agenttest.Call(1, "boom", `{}`), agenttest.Call(1, "fails", `{}`), agenttest.Call(1, "nosuch", `{}`), agenttest.Call(2, "fails", `{"y":1}`), agenttest.Call(3, "fails", `{`)),
		boom, fails)
	w.Say("go")
	same(t, w.Rest(), `
		final done
		settled completed 2 steps 5 calls`)
	for call, want := range map[string]string{
		"boom-1": "the tool failed unexpectedly", "fails-1": "the moon is in the way; try tomorrow",
		"nosuch-1": `there is no tool "nosuch"; the tools are boom, fails, ask_person, plan`, "fails-2": "y", "fails-3": "not one JSON object",
	} {
		got := resultOf(t, m, call)
		if !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("the result of %s is %q, want %q in it", call, got, want)
		}
	}
}

func TestAToolThatTakesTooLongIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		slow := d.slow("slow", agent.Effectful, time.Hour)
		deaf := agenttest.Tool("deaf", agent.Effectful, "", func(context.Context, agent.Invocation) (agent.Result, error) {
			time.Sleep(2 * time.Minute)
			return agent.Result{Text: "late"}, nil
		})
		w, m := fresh(t, once(agenttest.Call(1, "slow", `{}`), agenttest.Call(1, "deaf", `{}`)), slow, deaf)
		w.Say("go")
		w.Rest()
		if got := resultOf(t, m, "slow-1"); !strings.Contains(got, "longer than 1m0s") {
			t.Errorf("the slow tool's result is %q", got)
		}
		if got := resultOf(t, m, "deaf-1"); !strings.Contains(got, "did not stop when it was told to, so its outcome is unknown") {
			t.Errorf("the deaf tool's result is %q", got)
		}
		time.Sleep(time.Hour) // the deaf one ends
		w.Kill()
	})
}

func TestAParkedCallRunsOnceApprovedAndIsToldInItsPersonsSession(t *testing.T) {
	d := &deeds{}
	bob := agent.Person{ID: "slack:T1:U2", Name: "bob"}
	w, m := fresh(t, func(req model.Request) model.Answer {
		if strings.HasPrefix(agenttest.LastUser(req), "[bob approved") {
			return agenttest.Say("it was deployed")
		}
		return once(agenttest.Call(1, "deploy", `{"x":"v2"}`), agenttest.Call(1, "write", `{}`))(req)
	}, d.tool("deploy", agent.Effectful, agent.PolicySecond), d.tool("write", agent.Effectful, ""))
	w.Say("go")
	said := w.Rest()
	same(t, said, `
		approval deploy
		final done
		settled completed 2 steps 2 calls`)
	card := said[0]
	if got := resultOf(t, m, "deploy-1"); !strings.HasPrefix(got, "waiting for anyone but terminal:ann, id "+card.ID) {
		t.Errorf("the model read %q", got)
	}
	w.Decide(card.ID, agent.Approve, "")
	if refused := w.Rest(); len(refused) != 1 || refused[0].Kind != agent.Fault {
		t.Errorf("the turn's own person was told %s", agenttest.Lines(refused))
	}
	w.Restart()
	for range 2 {
		_, err := w.Pass(agent.Message{From: bob, Address: "slack:T1:dm:U2", Provenance: agent.Decided, Decision: &agent.Decision{Card: card.ID, Verdict: agent.Approve}})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Rest()
	if d.all() != "write deploy" {
		t.Errorf("ran: %s", d.all())
	}
	finals := w.Said(agent.Final)
	if last := finals[len(finals)-1]; last.Text != "it was deployed" || last.Address != agenttest.Home {
		t.Errorf("the last answer is %q to %s", last.Text, last.Address)
	}
}

func TestWhatAToolWantsKeptAndIsRefusedFailsTheCallAlone(t *testing.T) {
	keeps := func(name string, refused bool) agent.Tool {
		return agenttest.Tool(name, agent.Idempotent, "", func(context.Context, agent.Invocation) (agent.Result, error) {
			return agent.Result{Text: name + " kept", Commit: func(tx memory.Tx) error {
				if err := tx.Table("kept").Put(name, nil); err != nil || !refused {
					return err
				}
				return errors.New("the name is taken; choose another")
			}}, nil
		})
	}
	w, m := fresh(t, once(agenttest.Call(1, "good", `{}`), agenttest.Call(1, "bad", `{}`), agenttest.Call(2, "good", `{}`)), keeps("good", false), keeps("bad", true))
	w.Say("go")
	same(t, w.Rest(), `
		final done
		settled completed 2 steps 3 calls`)
	for call, want := range map[string]string{"good-1": "good kept", "bad-1": "the name is taken; choose another", "good-2": "good kept"} {
		if got := resultOf(t, m, call); got != want {
			t.Errorf("the result of %s is %q, want %q", call, got, want)
		}
	}
	err := w.Config.Store.View(context.Background(), func(tx memory.Tx) error {
		for name, want := range map[string]bool{"good": true, "bad": false} {
			if _, found, err := tx.Table("kept").Get(name); err != nil || found != want {
				t.Errorf("what %s keeps is there: %v, error %v", name, found, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A call whose time was up before it did anything says so itself; of any other it stands what it had done by then.
func TestACallThatWaitedInVain(t *testing.T) {
	for _, did := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tool := agenttest.Tool("wait", agent.Effectful, agent.PolicyNo, func(ctx context.Context, _ agent.Invocation) (agent.Result, error) {
				<-ctx.Done()
				err := errors.New("others were there all the time")
				if did {
					return agent.Result{}, err
				}
				return agent.Result{}, agent.NotRun(err)
			})
			w, m := fresh(t, inTurn("wait"), tool)
			w.Say("go")
			w.Rest()
			requests := m.Requests()
			last := requests[len(requests)-1].Messages
			want := "others were there all the time"
			if did {
				want = "it took longer than"
			}
			if text := last[len(last)-1].Text; !strings.Contains(text, want) || strings.Contains(text, "had done by then") != did {
				t.Errorf("did something: %v: the model reads %q", did, text)
			}
			w.Kill()
		})
	}
}
