package agent_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
)

// Whatever a tool returns, what is kept and sent is text, and the session goes on.
func TestWhatToolsReturnCanBeSent(t *testing.T) {
	outputs := []string{strings.Repeat("x🏷", 1_000_000)}
	for _, row := range []string{"YQBiAGM=", "/f7/gMMoZW5k", "8J+PtyB0YWcg8J+P", "G1szMW1yZWQbWzBtDWhpZGRlbg==", "77u/Ym9t"} {
		raw, err := base64.StdEncoding.DecodeString(row)
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, string(raw))
	}
	n := 0
	dump := agenttest.Tool("dump", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		n++
		return agent.Result{Text: outputs[n-1]}, nil
	})
	w, m := fresh(t, func(req model.Request) model.Answer {
		if len(agenttest.Results(req)) > 0 {
			return agenttest.Say("next")
		}
		return agenttest.Do(model.Call{ID: fmt.Sprint("c", len(req.Messages)), Name: "dump", Arguments: "{}"})
	}, dump)
	for range outputs {
		w.Say("go on")
		w.Rest()
		w.Restart()
	}
	if n != len(outputs) {
		t.Fatalf("%d of %d outputs were returned", n, len(outputs))
	}
	requests := m.Requests()
	for _, msg := range requests[len(requests)-1].Messages {
		if !utf8.ValidString(msg.Text) || strings.ContainsRune(msg.Text, 0) || len(msg.Text) > 33<<10 {
			t.Errorf("%d bytes were sent: %.60q", len(msg.Text), msg.Text)
		}
		if body, err := json.Marshal(msg); err != nil || !json.Valid(body) {
			t.Errorf("a message cannot be written as JSON: %v", err)
		}
	}
}

// An answer that says nothing is asked for again, twice, and is never sent back.
func TestAnEmptyAnswerIsAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		replies []string
		want    string
	}{
		{"found", []string{"", "  \n", "found it"}, "final found it\nsettled completed 4 steps 1 calls"},
		{"nothing", []string{"", "", "", ""}, "notice The model gave no answer. Say it again in other words, or ask for something smaller.\nsettled completed 4 steps 1 calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deeds{}
			n := 0
			w, m := fresh(t, func(req model.Request) model.Answer {
				if len(req.Messages) == 1 {
					return agenttest.Do(agenttest.Call(1, "search", `{}`))
				}
				if n++; n > len(c.replies) {
					return agenttest.Say("again")
				}
				return agenttest.Say(c.replies[n-1])
			}, d.tool("search", agent.Effectful, ""))
			w.Say("search")
			same(t, w.Rest(), c.want)
			if d.all() != "search" {
				t.Errorf("ran: %s", d.all())
			}
			n = 99
			w.Say("and now?")
			w.Rest()
			requests := m.Requests()
			for _, msg := range requests[len(requests)-1].Messages {
				if msg.Role == model.Assistant && len(msg.Calls) == 0 && strings.TrimSpace(msg.Text) == "" {
					t.Errorf("an empty answer was sent back")
				}
				if msg.Role == model.User && !strings.HasSuffix(msg.Text, "search") && !strings.HasSuffix(msg.Text, "and now?") {
					t.Errorf("the model was told %q, which nobody said", msg.Text)
				}
			}
			if len(requests[3].Tools) == 0 {
				t.Errorf("the tools were not offered again")
			}
		})
	}
}

// Three messages at one instant make one conversation in their order, and delay no other session.
func TestMessagesAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faults{TB: t}
		p := newFlood(f, false)
		p.model.script = func(req model.Request) model.Answer { return agenttest.Say("re " + agenttest.LastUser(req)) }
		p.model.latency = 200 * time.Millisecond
		began := time.Now()
		for _, id := range []string{"m1", "m2", "m3"} {
			p.say(0, id)
		}
		p.world.Rest()
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("the answers took %s", took)
		}
		asked := p.model.all()
		var said []string
		for _, m := range asked[len(asked)-1].req.Messages {
			if m.Role == model.User {
				said = append(said, m.Text)
			}
		}
		order := strings.Join(said, " ")
		if a, b, c := strings.Index(order, "m1."), strings.Index(order, "m2."), strings.Index(order, "m3."); a < 0 || b < a || c < b {
			t.Errorf("the model read %q", order)
		}
		p.said = nil // checked above; the last request has them
		p.checkReceipts(journal(t, p.store, p.address))
		p.checkTurns(journal(t, p.store, p.address))
		if len(f.found) > 0 {
			t.Errorf("%s", strings.Join(f.found, "\n"))
		}
		p.world.Kill()
	})
	synctest.Test(t, func(t *testing.T) {
		w, m := fresh(t, func(req model.Request) model.Answer { return agenttest.Say("re " + agenttest.LastUser(req)) })
		m.Latency = 200 * time.Millisecond
		began := time.Now()
		for n, address := range []string{agenttest.Home, agenttest.Home + ":side", agenttest.Home, agenttest.Home + ":other"} {
			if _, err := w.Pass(agent.Message{Keys: []string{fmt.Sprint(n)}, Provenance: agent.Human, Address: address, Text: "go"}); err != nil {
				t.Fatal(err)
			}
		}
		w.Rest()
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("the sessions took %s together", took)
		}
		w.Kill()
	})
}

// What is said after a Stop, while a tool that does not listen still ends, is answered; what was said before is kept.
func TestWordsAfterAStopBeginATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := agenttest.Tool("deaf", agent.Effectful, "", func(context.Context, agent.Invocation) (agent.Result, error) {
			time.Sleep(time.Minute)
			return agent.Result{Text: "late"}, nil
		})
		w, m := fresh(t, func(req model.Request) model.Answer {
			if strings.HasSuffix(agenttest.LastUser(req), "go") {
				return agenttest.Do(agenttest.Call(1, "deaf", `{}`))
			}
			return agenttest.Say("re: " + agenttest.LastUser(req))
		}, deaf)
		w.Say("go")
		time.Sleep(time.Second)
		w.Say("before")
		w.Stop()
		time.Sleep(time.Second)
		w.Say("after")
		same(t, w.Rest(), `
		steer stored before
		steer stored after
		steer next_turn before
		notice Stopped. I have kept what you said last and read it with your next message.
		settled cancelled 1 steps 1 calls
		steer next_turn after
		final re: after
		settled completed 1 steps 0 calls`)
		if requests := m.Requests(); !strings.Contains(fmt.Sprint(requests[len(requests)-1].Messages), "before") {
			t.Errorf("the words before the Stop were not read")
		}
		time.Sleep(time.Hour) // the deaf one ends
		w.Kill()
	})
}
