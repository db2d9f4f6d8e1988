package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
)

// canary is in everything that is said and must go.
const canary = "canary-7421"

// traces tells what a store still has of words once it is compacted; "" when nothing.
func traces(t testing.TB, store memory.Store, words string) string {
	t.Helper()
	path := filepath.Join(memorytest.Dir(t), "copy.db")
	if _, err := store.(*bolt.Store).Backup(context.Background(), path, false, nil); err != nil {
		t.Fatalf("copy the store: %v", err)
	}
	if _, _, err := bolt.Compact(path, bolt.Options{}); err != nil {
		t.Fatalf("compact the copy: %v", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(words))
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("%q", data[max(at-150, 0):min(at+150, len(data))])
}

func eraseAtRest(t testing.TB, store memory.Store, session string) (removed agent.Erased) {
	t.Helper()
	err := store.Update(context.Background(), func(tx memory.Tx) (err error) {
		removed, err = agent.EraseSession(tx, session)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return removed
}

// count is how many entries a session has.
func count(t testing.TB, store memory.Store, session string) int {
	t.Helper()
	return len(journal(t, store, session))
}

// A session at rest goes from every place, and no other session does.
func TestEraseAtRest(t *testing.T) {
	d := &deeds{}
	long := agenttest.Tool("look", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: strings.Repeat(canary+"\n", 5000)}, nil
	})
	page := agenttest.Tool("page", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) { return agent.Result{}, nil })
	page.Pages = true
	works := once(agenttest.Call(1, "look", `{}`), agenttest.Call(2, "deploy", `{"x":"`+canary+`"}`))
	script := func(req model.Request) model.Answer {
		if agenttest.LastUser(req) == "stays" {
			return agenttest.Say("hello")
		}
		return works(req)
	}
	w, _ := fresh(t, script, long, page, d.tool("deploy", agent.Effectful, agent.PolicyAsk))
	w.Say("go " + canary)
	if _, err := w.Pass(agent.Message{Keys: []string{"other"}, Provenance: agent.Human, Text: "stays", Address: agenttest.Home + ":other"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Agent.WaitIdle(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	w.Kill()
	err := w.Config.Store.Update(context.Background(), func(tx memory.Tx) error {
		_, err := tx.Inbox().Put(agenttest.Home, []byte(`{"provenance":"human","text":"`+canary+`"}`))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	others := count(t, w.Config.Store, agenttest.Home+":other")
	if traces(t, w.Config.Store, canary) == "" {
		t.Fatal("the canary is nowhere to begin with")
	}
	removed := eraseAtRest(t, w.Config.Store, agenttest.Home)
	if removed.Entries == 0 || removed.Turns != 1 || len(removed.Cards) != 1 || removed.Mail != 1 || removed.Parcels < 2 || removed.Results != 1 {
		t.Errorf("removed %+v", removed)
	}
	if found := problems(t, w.Config.Store); len(found) > 0 {
		t.Errorf("a check finds %q", found)
	}
	if left := traces(t, w.Config.Store, canary); left != "" {
		t.Errorf("left: %s", left)
	}
	if n := count(t, w.Config.Store, agenttest.Home+":other"); n != others || n == 0 {
		t.Errorf("another session has %d entries, had %d", n, others)
	}
	if again := eraseAtRest(t, w.Config.Store, agenttest.Home); again.Entries+again.Turns+len(again.Cards)+again.Mail+again.Parcels+again.Results > 0 {
		t.Errorf("once more removed %+v", again)
	}
	w.Restart()
	w.Rest()
	for _, r := range w.Said() {
		if r.Session == agenttest.Home {
			t.Errorf("after a restart it said %+v", r)
		}
	}
}

// A parked call that is owed goes with its session, and is not run.
func TestEraseOwed(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "deploy", `{"x":"`+canary+`"}`)), d.tool("deploy", agent.Effectful, agent.PolicySecond))
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0].ID
	w.Kill()
	// As a decision that was taken up, before the call ran.
	decided := fmt.Sprintf(`{"card":%q,"call":"deploy-1","tool":"deploy","verdict":"approve","by":"terminal:bob"}`, card)
	err := w.Config.Store.Update(context.Background(), func(tx memory.Tx) error {
		_, err := tx.Journal().Append(agenttest.Home, memory.Entry{Kind: "approval_decided", At: time.Now(), Data: []byte(decided)})
		return errors.Join(err, tx.Table("waiting").Delete(card), tx.Due().Remove("timer/card/"+card), tx.Table("owed").Put(agenttest.Home, nil))
	})
	if found := problems(t, w.Config.Store); err != nil || len(found) > 0 {
		t.Fatalf("to begin with: %q, %v", found, err)
	}
	eraseAtRest(t, w.Config.Store, agenttest.Home)
	if found := problems(t, w.Config.Store); len(found) > 0 {
		t.Errorf("a check finds %q", found)
	}
	w.Restart()
	w.Rest()
	if d.all() != "" {
		t.Errorf("ran %q", d.all())
	}
}

// A session in the middle of a turn is stopped, and its actor writes nothing back; what is said next meets a model that
// knows nothing.
func TestEraseWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{begun: make(chan string, 1)}
		w, m := fresh(t, once(agenttest.Call(1, "wait", `{}`)), d.slow("wait", agent.Effectful, time.Minute))
		w.Say("go " + canary)
		<-d.begun
		bob := agent.Message{Keys: []string{"bob"}, Provenance: agent.Human, From: agent.Person{ID: "web:bob", Name: "bob"}, Text: "and this begins no turn"}
		if _, err := w.Pass(bob); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		removed, err := w.Agent.Erase(context.Background(), agenttest.Home, nil)
		if err != nil || removed.Entries == 0 || removed.Turns != 1 || time.Since(began) > 5*time.Second {
			t.Fatalf("removed %+v after %s: %v", removed, time.Since(began), err)
		}
		if n := count(t, w.Config.Store, agenttest.Home); n > 0 {
			t.Errorf("it has %d entries", n)
		}
		said := w.Rest()
		if n := count(t, w.Config.Store, agenttest.Home); n > 0 {
			t.Errorf("at rest it has %d entries", n)
		}
		if len(said) != 1 || said[0].Kind != agent.SettledMark || said[0].Reason != agent.Cancelled {
			t.Errorf("left in the outbox: %s", agenttest.Lines(said))
		}
		if found := problems(t, w.Config.Store); len(found) > 0 {
			t.Errorf("a check finds %q", found)
		}
		m.Script = func(model.Request) model.Answer { return agenttest.Say("hello") }
		w.Say("who am I?")
		w.Rest()
		requests := m.Requests()
		if last := requests[len(requests)-1]; len(last.Messages) != 1 || strings.Contains(last.Messages[0].Text, canary) {
			t.Errorf("the model is sent %+v", last.Messages)
		}
		if found := problems(t, w.Config.Store); len(found) > 0 {
			t.Errorf("at the end a check finds %q", found)
		}
	})
}

// A session that rests keeps its state in memory for a while; after an erasure that is not used.
func TestEraseForgetsWhatRestsInMemory(t *testing.T) {
	w, m := fresh(t, func(req model.Request) model.Answer { return agenttest.Say("re: " + agenttest.LastUser(req)) })
	w.Say(canary)
	w.Rest()
	length := count(t, w.Config.Store, agenttest.Home)
	if _, err := w.Agent.Erase(context.Background(), agenttest.Home, nil); err != nil {
		t.Fatal(err)
	}
	// Another journal, by chance as long as the one that is gone.
	err := w.Config.Store.Update(context.Background(), func(tx memory.Tx) error {
		for range length {
			if _, err := tx.Journal().Append(agenttest.Home, memory.Entry{Kind: "of a later version", At: time.Now(), Data: []byte("{}")}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Say("hello")
	w.Rest()
	requests := m.Requests()
	if last := requests[len(requests)-1]; len(last.Messages) != 1 {
		t.Errorf("the model is sent %+v", last.Messages)
	}
}

// An erasure that is called off leaves a session that goes on, and what is said to it is answered.
func TestEraseCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{}, 1)
		stubborn := agenttest.Tool("stubborn", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
			begun <- struct{}{}
			time.Sleep(time.Second) // whatever its context says
			return agent.Result{Text: "done"}, nil
		})
		w, m := fresh(t, once(agenttest.Call(1, "stubborn", `{}`)), stubborn)
		w.Say("go")
		<-begun
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		time.AfterFunc(100*time.Millisecond, func() { w.Say("meanwhile") })
		if removed, err := w.Agent.Erase(ctx, agenttest.Home, nil); !errors.Is(err, context.DeadlineExceeded) || removed.Entries > 0 {
			t.Fatalf("removed %+v: %v", removed, err)
		}
		if finals := agenttest.Only(w.Rest(), agent.Final); len(finals) != 1 {
			t.Errorf("to what came meanwhile it said %s", agenttest.Lines(w.Said()))
		}
		m.Script = func(model.Request) model.Answer { return agenttest.Say("hello") }
		w.Say("still there?")
		if finals := agenttest.Only(w.Rest(), agent.Final); len(finals) != 1 {
			t.Errorf("said %s", agenttest.Lines(w.Said()))
		}
		if found := problems(t, w.Config.Store); len(found) > 0 || count(t, w.Config.Store, agenttest.Home) == 0 {
			t.Errorf("a check finds %q", found)
		}
	})
}

// What goes on in the transaction of an erasure can take it back.
func TestEraseTakenBack(t *testing.T) {
	w, _ := fresh(t, func(model.Request) model.Answer { return agenttest.Say("hello") })
	w.Say("hello")
	w.Rest()
	before, back := count(t, w.Config.Store, agenttest.Home), errors.New("take it back")
	_, err := w.Agent.Erase(context.Background(), agenttest.Home, func(memory.Tx, agent.Erased) error { return back })
	if n := count(t, w.Config.Store, agenttest.Home); !errors.Is(err, back) || n != before {
		t.Errorf("%d entries of %d, %v", n, before, err)
	}
	w.Say("and now")
	if finals := agenttest.Only(w.Rest(), agent.Final); len(finals) != 1 {
		t.Errorf("said %s", agenttest.Lines(w.Said()))
	}
}

// Erasures of one session at once, while it runs and is talked to, wait for each other, and leave a session that answers.
func TestErasuresAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{begun: make(chan string, 100)}
		w, _ := fresh(t, once(agenttest.Call(1, "wait", `{}`)), d.slow("wait", agent.Read, 3*time.Second))
		w.Say("go")
		<-d.begun
		done := make(chan error, 8)
		for i := range cap(done) {
			go func() {
				time.Sleep(time.Duration(i) * time.Millisecond / 2)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i%2*5000)*time.Millisecond)
				defer cancel()
				_, err := w.Agent.Erase(ctx, agenttest.Home, nil)
				if errors.Is(err, context.DeadlineExceeded) {
					err = nil
				}
				done <- err
			}()
		}
		for range cap(done) / 2 {
			time.Sleep(time.Millisecond / 3)
			w.Say("more")
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.Rest()
		if found := problems(t, w.Config.Store); len(found) > 0 {
			t.Errorf("a check finds %q", found)
		}
		w.Say("last")
		if finals := agenttest.Only(w.Rest(), agent.Final); len(finals) != 1 {
			t.Errorf("said %s", agenttest.Lines(w.Said()))
		}
	})
}

// Whoever waits for a wake hears that it has ended, also of one that is not being worked on.
func TestEraseOfAWakeAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fresh(t, func(model.Request) model.Answer { panic("a fault of the model's client") })
		woken := make(chan agent.Totals, 1)
		go func() {
			totals, _ := w.Agent.Wake(context.Background(), agenttest.Ann.ID, agent.Wake{Heartbeat: "disk", Prompt: "look"})
			woken <- totals
		}()
		synctest.Wait() // the session has failed, and is left alone for a while
		if _, err := w.Agent.Erase(context.Background(), agent.WakeSession("disk", agenttest.Ann.ID), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case totals := <-woken:
			if totals.Reason != agent.Cancelled {
				t.Errorf("the wake came to %+v", totals)
			}
		default:
			t.Error("the wake is still waited for")
		}
		time.Sleep(time.Minute)
	})
}

func TestEraseOfAWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{begun: make(chan string, 1)}
		w, _ := fresh(t, once(agenttest.Call(1, "wait", `{}`)), d.slow("wait", agent.Read, time.Hour))
		woken := make(chan agent.Totals, 1)
		go func() {
			totals, err := w.Agent.Wake(context.Background(), agenttest.Ann.ID, agent.Wake{Heartbeat: "disk", Prompt: "look"})
			if err != nil {
				t.Error(err)
			}
			woken <- totals
		}()
		<-d.begun
		session := agent.WakeSession("disk", agenttest.Ann.ID)
		if removed, err := w.Agent.Erase(context.Background(), session, nil); err != nil || removed.Turns != 1 {
			t.Errorf("removed %+v: %v", removed, err)
		}
		if totals := <-woken; totals.Reason != agent.Cancelled {
			t.Errorf("the wake came to %+v", totals)
		}
		w.Rest()
		if found := problems(t, w.Config.Store); len(found) > 0 || count(t, w.Config.Store, session) > 0 {
			t.Errorf("a check finds %q", found)
		}
	})
}

// erase erases the flood's session, with or without an agent that runs, until that is done.
func (p *flood) erase(running bool) {
	defer p.revive()
	if !running {
		p.world.Kill()
		eraseAtRest(p.f, p.store, p.address)
	} else {
		for {
			_, err := p.world.Agent.Erase(context.Background(), p.address, nil)
			if err == nil {
				break
			}
			select {
			case <-p.faulty.Crashed():
				p.revive()
			default:
				p.f.Fatalf("erase: %v", err)
			}
		}
	}
	err := p.store.View(context.Background(), func(tx memory.Tx) error {
		there, err := agent.HasSession(tx, p.address)
		if there {
			p.f.Errorf("something of the session is left, or back")
		}
		return errors.Join(err, agent.Check(tx, func(problem string) { p.f.Errorf("after an erasure: %s", problem) }))
	})
	if err != nil {
		p.f.Errorf("look at what is left: %v", err)
	}
	if !running {
		p.world.Restart()
	}
}

// An erasure at any point of any conversation leaves records that agree, and nothing of what was said.
func TestEraseAtAnyPoint(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shared, moves, running := rapid.Bool().Draw(rt, "shared"), drawMoves(rt), rapid.Bool().Draw(rt, "running")
		before := rapid.SliceOfN(rapid.IntRange(0, len(moves)), 0, 2).Draw(rt, "erased before too")
		inBubble(t, rt, func(f *faults) {
			p := newFlood(f, shared)
			defer func() { p.world.Kill() }()
			for n, m := range moves {
				if slices.Contains(before, n) {
					p.erase(!running)
				}
				switch m.Kind {
				case "say":
					id := fmt.Sprintf("w%03d", n)
					p.pass(agent.Message{Provenance: agent.Human, From: p.people[m.Who%len(p.people)], ID: id, Text: canary + " " + id + "."}, id)
				case "stop":
					p.pass(agent.Message{Provenance: agent.Human, From: p.people[0], Stop: true}, fmt.Sprint("stop-", n))
				case "approve", "deny":
					p.decide(n, agent.Verdict(m.Kind))
				case "restart":
					p.world.Restart()
				case "crash":
					p.faulty.FailAt(p.faulty.Count()+m.At, m.After)
				}
				time.Sleep(m.Wait)
				p.revive()
			}
			p.faulty.FailAt(0, false)
			p.erase(running)
			p.world.Rest()
			if n := count(f, p.store, p.address); n > 0 {
				f.Errorf("at rest the session has %d entries again", n)
			}
			if left := traces(f, p.store, canary); left != "" {
				f.Errorf("left: %s", left)
			}
			p.said = nil
			p.say(0, "end")
			p.world.Rest()
			lines := journal(f, p.store, p.address)
			p.checkNothingOpen(lines)
		})
	})
}
