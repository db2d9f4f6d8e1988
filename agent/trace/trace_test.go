package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/agent/tool/notify"
	"nudge/agent/trace"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret stands in prompts, arguments and results, and must stand in no trace.
const secret = "s3cret"

// script looks around and erases, which needs approval, asks a question and works slowly; corrected, it is done.
func script(req model.Request) model.Answer {
	said, results := agenttest.LastUser(req), agenttest.Results(req)
	if strings.Contains(said, "woke you") || strings.HasSuffix(said, "corrected "+secret) {
		return agenttest.Say("done " + secret)
	}
	for _, calls := range [][]model.Call{
		{agenttest.Call(1, "look", "{}"), agenttest.Call(1, "erase", `{"x":"`+secret+`"}`)},
		{agenttest.Call(1, "ask_person", `{"question":"`+secret+`?"}`)},
		{agenttest.Call(1, "slow", "{}")},
	} {
		if results[calls[0].ID] == "" {
			return agenttest.Do(calls...)
		}
	}
	return agenttest.Say("never corrected")
}

func tools(store memory.Store) []agent.Tool {
	look := agenttest.Tool("look", agent.Read, "", func(_ context.Context, in agent.Invocation) (agent.Result, error) {
		in.Progress("half " + secret)
		return agent.Result{Text: "found " + secret}, nil
	})
	erase := agenttest.Tool("erase", agent.Effectful, agent.PolicyAsk, func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{}, errors.New("cannot erase " + secret)
	})
	slow := agenttest.Tool("slow", agent.Idempotent, "", func(ctx context.Context, _ agent.Invocation) (agent.Result, error) {
		time.Sleep(10 * time.Second)
		return agent.Result{Text: "slowly done"}, ctx.Err()
	})
	return []agent.Tool{look, erase, slow, notify.Voice{Store: store}.Tool()}
}

// turn plays a turn with everything in it, in a bubble's time, and returns its id.
func turn(t *testing.T, store memory.Store) string {
	t.Helper()
	named := func(req model.Request) model.Answer {
		answer := script(req)
		answer.Model = "scripted"
		return answer
	}
	m := &agenttest.Model{T: t, Script: named, Latency: 1500 * time.Millisecond, Err: func(n int) error {
		if n == 1 {
			return &model.Error{Fault: model.FaultPassing, Say: "overloaded"}
		}
		return nil
	}}
	w := agenttest.Start(t, agent.Config{
		Store: store, Model: m, Tools: tools(store), Spec: agent.ModelSpec{
			Name: "scripted", Window: 32_000, MaxOutput: 1000, PriceIn: agent.PerMillion(1), PriceOut: agent.PerMillion(2),
		},
	})
	w.Say("go " + secret)
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	w.Decide(card.ID, agent.Approve, secret)
	w.Rest()
	w.Say("an answer " + secret)
	time.Sleep(5 * time.Second)
	w.Say("corrected " + secret)
	said := w.Rest()
	if _, err := w.Agent.Wake(context.Background(), agenttest.Ann.ID, agent.Wake{Heartbeat: "disk", Episode: "1", Prompt: secret}); err != nil {
		t.Fatal(err)
	}
	w.Kill()
	settled := agenttest.Only(said, agent.SettledMark)
	if len(settled) != 1 || settled[0].Reason != agent.Completed {
		t.Fatalf("the turn did not settle:\n%s", agenttest.Lines(w.Said()))
	}
	return settled[0].Turn
}

// played gives the turn's events and those of the wake to a test. Everything in it happens in the time of a bubble.
func played(t *testing.T, check func(t *testing.T, store memory.Store, id string)) {
	synctest.Test(t, func(t *testing.T) {
		store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "nudge.db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		check(t, store, turn(t, store))
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

func run(t *testing.T, store memory.Store, id string) []agent.Event {
	t.Helper()
	var events []agent.Event
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		events, err = trace.Run(tx, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// wakeTurn is the id of the wake's turn.
func wakeTurn(t *testing.T, store memory.Store) string {
	t.Helper()
	id := ""
	err := store.View(context.Background(), func(tx memory.Tx) error {
		return agent.Events(tx, agent.WakeSession("disk", agenttest.Ann.ID), 0, func(e agent.Event) error {
			id = e.Turn
			return nil
		})
	})
	if err != nil || id == "" {
		t.Fatalf("the wake left no trace: %v", err)
	}
	return id
}

func kinds(events []agent.Event) (kinds []string) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// TestRun has every word of the vocabulary, in the order in which things happened, and the runs of a turn one by one.
func TestRun(t *testing.T) {
	played(t, func(t *testing.T, store memory.Store, id string) {
		events := run(t, store, id)
		words := strings.Fields("run_started step model_call model_retry tool_call tool_progress tool_result approval_asked approval_decided " +
			"question_asked question_answered steer_taken run_stopped")
		for _, word := range words {
			if !slices.Contains(kinds(events), word) {
				t.Errorf("%s is missing in %v", word, kinds(events))
			}
		}
		var apart []agent.Event
		for _, suffix := range []string{".1", ".2", ".3"} {
			one := run(t, store, id+suffix)
			for _, e := range one {
				if e.Run != id+suffix {
					t.Errorf("run %s has %+v", id+suffix, e)
				}
			}
			apart = append(apart, one...)
		}
		if len(apart) != len(events) {
			t.Errorf("the runs have %d events, the turn %d", len(apart), len(events))
		}
		for i, e := range events {
			if e.Turn != id || e.Session != agenttest.Home || e.Sequence == 0 || e.Time.IsZero() || i > 0 && e.Sequence <= events[i-1].Sequence {
				t.Errorf("event %d is %+v", i, e)
			}
		}
		if woke := kinds(run(t, store, wakeTurn(t, store))); !slices.Contains(woke, "woke") || woke[len(woke)-1] != "run_stopped" {
			t.Errorf("the wake's events are %v", woke)
		}
	})
}

// TestText has a line for each event, with what a person looks for.
func TestText(t *testing.T) {
	played(t, func(t *testing.T, store memory.Store, id string) {
		events := run(t, store, id)
		var b bytes.Buffer
		if err := trace.Text(&b, append(events, run(t, store, wakeTurn(t, store))...)); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if strings.Count(text, "\n") < len(events) || !strings.HasPrefix(text, "    0.000s  run_started       "+id+".1") {
			t.Errorf("the text is\n%s", text)
		}
		for _, part := range []string{
			"step 1", "model_retry", "model_call        step 2  scripted  100 tokens in, 10 out  $0.000120  1 calls  1500.0 ms",
			"tool_call         look  (look-1)", "approval_asked    erase  (erase-1)  card ", "approval_decided  erase  (erase-1)  card ",
			"approve by terminal:ann", "question_asked    ask_person", "question_answered ask_person", "answer by terminal:ann",
			"tool_result       slow  (slow-1)", "10000.0 ms", "failed", "steer_taken       step ", "run_stopped       waiting", "run_stopped       completed", "woke              disk",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in the text:\n%s", part, text)
			}
		}
		if strings.Contains(text, secret) {
			t.Errorf("what was said is in the trace:\n%s", text)
		}
	})
	if err := trace.Text(&bytes.Buffer{}, nil); err != nil {
		t.Errorf("nothing as text: %v", err)
	}
}

// TestLines are the events as JSON, and can be read back.
func TestLines(t *testing.T) {
	played(t, func(t *testing.T, store memory.Store, id string) {
		events := run(t, store, id)
		var b bytes.Buffer
		if err := trace.Lines(&b, events); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), secret) {
			t.Errorf("what was said is in the trace:\n%s", b.String())
		}
		decoder := json.NewDecoder(&b)
		for i, want := range events {
			var got agent.Event
			if err := decoder.Decode(&got); err != nil || got != want {
				t.Errorf("line %d is %+v (%v), want %+v", i, got, err, want)
			}
		}
		if decoder.More() {
			t.Error("there are more lines than events")
		}
	})
}

// TestSpans nest model and tool calls in their runs, by the names of the conventions.
func TestSpans(t *testing.T) {
	played(t, func(t *testing.T, store memory.Store, id string) {
		var b bytes.Buffer
		spans := trace.Spans(run(t, store, id))
		if err := trace.SpanLines(&b, spans); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n != len(spans) || strings.Contains(b.String(), secret) {
			t.Errorf("%d lines for %d spans:\n%s", n, len(spans), b.String())
		}
		names, byID := map[string]int{}, map[string]trace.Span{}
		for _, s := range spans {
			names[s.Name]++
			if _, twice := byID[s.ID]; twice || s.Trace != id {
				t.Errorf("span %+v", s)
			}
			byID[s.ID] = s
		}
		for name, n := range map[string]int{
			"invoke_agent nudge": 3, "chat scripted": 4, "execute_tool look": 1, "execute_tool erase": 1, "execute_tool slow": 1, "execute_tool ask_person": 1,
		} {
			if names[name] != n {
				t.Errorf("%d spans of %q, want %d: %v", names[name], name, n, names)
			}
		}
		for _, s := range spans {
			within(t, s, byID)
			attributes(t, s)
		}
	})
}

// within checks that a span lies in its parent.
func within(t *testing.T, s trace.Span, byID map[string]trace.Span) {
	t.Helper()
	if s.End.Before(s.Start) {
		t.Errorf("%s ends before it begins", s.Name)
	}
	if s.Name == "invoke_agent nudge" {
		if s.Parent != "" {
			t.Errorf("a run has the parent %s", s.Parent)
		}
		return
	}
	parent, found := byID[s.Parent]
	if !found || s.Start.Before(parent.Start) || s.End.After(parent.End) {
		t.Errorf("%s from %s to %s does not lie in %s from %s to %s", s.Name, s.Start, s.End, parent.Name, parent.Start, parent.End)
	}
}

func attributes(t *testing.T, s trace.Span) {
	t.Helper()
	want := map[string]any{"gen_ai.operation.name": "execute_tool"}
	switch {
	case s.Name == "invoke_agent nudge":
		want = map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": agenttest.Home}
		if s.Attributes["nudge.reason"] != "waiting" && s.Attributes["nudge.reason"] != "completed" {
			t.Errorf("a run stopped with %v", s.Attributes["nudge.reason"])
		}
	case s.Name == "chat scripted":
		want = map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.response.model": "scripted", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10,
		}
		if took := s.End.Sub(s.Start); took < 1500*time.Millisecond {
			t.Errorf("a model call took %s", took)
		}
	case s.Name == "execute_tool erase":
		want["nudge.failed"], want["gen_ai.tool.call.id"] = true, "erase-1"
	case s.Name == "execute_tool slow":
		want["nudge.failed"], want["gen_ai.tool.name"] = false, "slow"
		if took := s.End.Sub(s.Start); took != 10*time.Second {
			t.Errorf("the slow tool took %s", took)
		}
	}
	for key, value := range want {
		if s.Attributes[key] != value {
			t.Errorf("%s: %s is %v, want %v", s.Name, key, s.Attributes[key], value)
		}
	}
}

// TestUnknownID says that there is no such run.
func TestUnknownID(t *testing.T) {
	played(t, func(t *testing.T, store memory.Store, id string) {
		for _, wrong := range []string{"", "nothing", "nothing.1", id + ".9", id + ".", id + ".1.1", id[1:], ".", strings.Repeat("x", 5000)} {
			err := store.View(context.Background(), func(tx memory.Tx) error {
				events, err := trace.Run(tx, wrong)
				if err == nil {
					t.Errorf("%.20q has %d events", wrong, len(events))
				}
				return err
			})
			if err == nil || !strings.Contains(err.Error(), "there is no run or turn") {
				t.Errorf("%.20q: %v", wrong, err)
			}
		}
	})
}

// full is a disk that takes nothing more.
type full struct{}

var errFull = errors.New("the disk is full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWritersFail(t *testing.T) {
	events := []agent.Event{{Kind: "run_started", Turn: "t1", Run: "t1.1"}}
	for name, err := range map[string]error{
		"text": trace.Text(full{}, events), "lines": trace.Lines(full{}, events), "spans": trace.SpanLines(full{}, trace.Spans(events)),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSpansOfWhatWasCutOff has a span for a run that never stopped.
func TestSpansOfWhatWasCutOff(t *testing.T) {
	at := time.Now()
	spans := trace.Spans([]agent.Event{
		{Kind: "run_stopped", Turn: "t1", Run: "t1.0", Time: at}, {Kind: "run_started", Turn: "t1", Run: "t1.1", Time: at},
	})
	if len(spans) != 1 || spans[0].ID != "t1.1" || !spans[0].End.Equal(at) {
		t.Errorf("the spans are %+v", spans)
	}
}
