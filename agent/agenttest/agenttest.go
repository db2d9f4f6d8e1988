// Package agenttest has what tests of the agent and of what stands above it need: a scripted model, and a [World]
// in which an agent runs, is killed and starts again over the same store.
//
// A [Script] is a function of the request, so a restart can ask again and gets the same answer.
package agenttest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/model"
	"nudge/memory"
)

// Script answers a request.
type Script func(req model.Request) model.Answer

// Model is a model that follows a script. It checks of every request that each call has exactly one result, right
// after it, in order.
type Model struct {
	T       testing.TB
	Script  Script
	Latency time.Duration // of an answer, in the time of the test

	mu       sync.Mutex
	requests []model.Request
	Err      func(n int) error // if set, may fail the n-th call, counted from 1
}

// Answer follows the script.
func (m *Model) Answer(ctx context.Context, req model.Request, _ func(string)) (model.Answer, error) {
	req.Messages = append([]model.Message(nil), req.Messages...)
	m.mu.Lock()
	m.requests = append(m.requests, req)
	n, fail := len(m.requests), m.Err
	m.mu.Unlock()
	if fault := Pairs(req.Messages); fault != "" {
		m.T.Errorf("request %d: %s", n, fault)
	}
	if m.Latency > 0 {
		timer := time.NewTimer(m.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return model.Answer{}, context.Cause(ctx)
		}
	}
	if ctx.Err() != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	if fail != nil {
		if err := fail(n); err != nil {
			return model.Answer{}, err
		}
	}
	answer := m.Script(req)
	if !answer.Usage.Known {
		answer.Usage = model.Usage{In: 100, Out: 10, Known: true}
	}
	return answer, nil
}

// Requests are those made so far.
func (m *Model) Requests() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]model.Request(nil), m.requests...)
}

// Pairs says what is wrong with the calls and results of a conversation; "" when nothing is.
func Pairs(messages []model.Message) string {
	var want []string
	for i, msg := range messages {
		if msg.Role == model.ToolRole {
			if len(want) == 0 || want[0] != msg.CallID {
				return fmt.Sprintf("message %d is a result of %q where %q was due", i, msg.CallID, want)
			}
			want = want[1:]
			continue
		}
		if len(want) > 0 {
			return fmt.Sprintf("message %d (%s) stands where results of %q were due", i, msg.Role, want)
		}
		for _, c := range msg.Calls {
			want = append(want, c.ID)
		}
	}
	if len(want) > 0 {
		return fmt.Sprintf("no results of %q", want)
	}
	return ""
}

// Say answers in words.
func Say(text string) model.Answer { return model.Answer{Text: text, Finish: model.FinishStop} }

// Call is a tool call; its id is its tool's name and number.
func Call(n int, tool, arguments string) model.Call {
	return model.Call{ID: fmt.Sprintf("%s-%d", tool, n), Name: tool, Arguments: arguments}
}

// Do asks for tools.
func Do(calls ...model.Call) model.Answer {
	return model.Answer{Calls: calls, Finish: model.FinishCalls}
}

// Results are the results since the last user message, by call.
func Results(req model.Request) map[string]string {
	results := map[string]string{}
	for _, msg := range req.Messages {
		switch msg.Role {
		case model.User:
			clear(results)
		case model.ToolRole:
			results[msg.CallID] = msg.Text
		}
	}
	return results
}

// LastUser is the newest user message.
func LastUser(req model.Request) string {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if req.Messages[i].Role == model.User {
			return req.Messages[i].Text
		}
	}
	return ""
}

// World is an agent over a store, with somebody who reads what it says.
type World struct {
	T      testing.TB
	Config agent.Config
	Agent  *agent.Agent
	// Outbox, if set, is the store from which what was said is taken; it spares Config.Store from being asked.
	Outbox memory.Store

	mu   sync.Mutex
	said []agent.Reply
	next int
}

// Ann is the person who talks in tests.
var Ann = agent.Person{ID: "terminal:ann", Name: "ann", Zone: "Europe/Berlin"}

// Home is where Ann talks.
const Home = "terminal:local:dm:ann"

// Start makes a World and starts its agent.
func Start(t testing.TB, c agent.Config) *World {
	if c.Spec.Window == 0 {
		c.Spec.Window = 1 << 20 // scripts look for what was said; what a small window leaves out they would ask for again
	}
	w := &World{T: t, Config: c}
	w.Restart()
	t.Cleanup(w.Kill)
	return w
}

// Kill ends the agent at once, as if the process had.
func (w *World) Kill() {
	if w.Agent == nil {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	w.Agent.Close(ended)
	w.Agent = nil
}

// Restart kills the agent and starts another over the same store.
func (w *World) Restart() {
	w.T.Helper()
	w.Kill()
	ag, err := agent.New(w.Config)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Agent = ag
	if err := ag.Resume(context.Background(), func(string) bool { return true }); err != nil {
		w.T.Logf("resume: %v", err)
	}
}

// Receive gives a message of Ann's to the agent. key makes a redelivery known.
func (w *World) Receive(key, text string) (bool, error) {
	return w.Pass(agent.Message{Keys: []string{key}, ID: key, Provenance: agent.Human, Text: text})
}

// Say is Receive with a key of its own, which must be taken.
func (w *World) Say(text string) {
	w.T.Helper()
	w.next++
	if fresh, err := w.Receive(fmt.Sprintf("say-%d", w.next), text); err != nil || !fresh {
		w.T.Fatalf("say %q: fresh %v, error %v", text, fresh, err)
	}
}

// Decide gives Ann's decision about a card.
func (w *World) Decide(card string, verdict agent.Verdict, text string) {
	w.T.Helper()
	w.next++
	_, err := w.Pass(agent.Message{
		Keys: []string{fmt.Sprintf("decide-%d", w.next)}, Provenance: agent.Decided, Decision: &agent.Decision{Card: card, Verdict: verdict, Text: text},
	})
	if err != nil {
		w.T.Fatalf("%s %s: %v", verdict, card, err)
	}
}

// Stop is Ann's Stop.
func (w *World) Stop() {
	w.T.Helper()
	w.next++
	if _, err := w.Pass(agent.Message{Keys: []string{fmt.Sprintf("stop-%d", w.next)}, Provenance: agent.Human, Stop: true}); err != nil {
		w.T.Fatalf("stop: %v", err)
	}
}

// Pass fills in what messages of Ann's have in common and gives one to the agent.
func (w *World) Pass(m agent.Message) (bool, error) {
	if m.From.ID == "" {
		m.From = Ann
	}
	if m.Address == "" {
		m.Address = Home
	}
	if m.Session == "" {
		m.Session = m.Address
	}
	m.At = time.Now()
	return w.Agent.Receive(context.Background(), m)
}

// Rest waits until nothing runs and takes what was said out of the outbox.
func (w *World) Rest() []agent.Reply {
	w.T.Helper()
	if err := w.Agent.WaitIdle(context.Background(), nil); err != nil {
		w.T.Fatal(err)
	}
	var fresh []agent.Reply
	store := w.Outbox
	if store == nil {
		store = w.Config.Store
	}
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		fresh = nil
		var ids []uint64
		err := tx.Outbox().List(0, func(p memory.Parcel) error {
			r, err := agent.ReadReply(p)
			fresh, ids = append(fresh, r), append(ids, p.ID)
			return err
		})
		if err != nil {
			return err
		}
		return tx.Outbox().Remove(ids...)
	})
	if err != nil {
		w.T.Logf("read the outbox: %v", err)
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fresh...)
	return fresh
}

// Said is everything that was taken out of the outbox, of the given kinds or of all.
func (w *World) Said(kinds ...agent.Kind) []agent.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Only(w.said, kinds...)
}

// Only are the replies of the given kinds, or all.
func Only(replies []agent.Reply, kinds ...agent.Kind) []agent.Reply {
	var only []agent.Reply
	for _, r := range replies {
		for _, k := range kinds {
			if r.Kind == k {
				only = append(only, r)
			}
		}
		if len(kinds) == 0 {
			only = append(only, r)
		}
	}
	return only
}

// Lines shows replies in short, for comparison and for messages of tests.
func Lines(replies []agent.Reply) string {
	var b strings.Builder
	for _, r := range replies {
		fmt.Fprintf(&b, "%s", r.Kind)
		for _, part := range []string{r.Tool, r.State, string(r.Decision), r.Text} {
			if part != "" {
				fmt.Fprintf(&b, " %s", part)
			}
		}
		if r.Step > 0 {
			fmt.Fprintf(&b, " step %d", r.Step)
		}
		if r.Totals != nil {
			fmt.Fprintf(&b, " %s %d steps %d calls", r.Reason, r.Steps, r.ToolCalls)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Tool is a tool with the given effect and policy that does nothing but call run.
func Tool(name string, effect agent.Effect, policy agent.Policy, run func(ctx context.Context, in agent.Invocation) (agent.Result, error)) agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name: name, Description: "Does " + name + ".", Effect: effect, Policy: policy,
			Schema: []byte(`{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}`),
		},
		Run: run,
	}
}
