package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
)

var lineKinds = []string{
	"message", "noted", "turn_started", "run_started", "model_asked", "model_retry", "model_call", "model_lost", "tool_call", "tool_progress",
	"tool_result", "approval_asked", "approval_decided", "question_asked", "question_answered", "steer_taken", "woke", "run_stopped",
	"model_call", "tool_result", "of_a_newer_program", "",
}

// drawLine is a line of a known or unknown kind whose fields are right, wrong, or not there.
func drawLine(rt *rapid.T) memory.Entry {
	of := func(name string, from ...any) any { return rapid.SampledFrom(from).Draw(rt, name) }
	calls := []map[string]string{}
	for range rapid.IntRange(0, 3).Draw(rt, "calls") {
		calls = append(calls, map[string]string{"id": of("id", "c1", "c2", "c3", "").(string), "name": of("name", "plan", "notify", "x").(string), "arguments": "{}"})
	}
	fields := map[string]any{
		"turn": of("turn", "t1", "t2", ""), "run": of("run", "t1.1", "t1.2"), "call": of("call", "c1", "c2", "c3", ""), "tool": of("tool", "plan", "notify", "x"),
		"card": of("card", "k1", "k2", ""), "text": of("text", "", "words", "more\nwords\n"), "step": of("step", -1, 0, 1, 1<<40), "calls": calls,
		"reason": of("reason", "completed", "waiting", "cancelled", ""), "say": of("say", "", "stopped"), "failed": of("failed", true, false),
		"provenance": of("provenance", "human", "heartbeat", "decision"), "parked": of("parked", true, false), "verdict": of("verdict", "approve", "deny", "withdrawn", ""),
		"tail": of("tail", "", "the plan"), "charge": of("charge", 0, -5, 1<<50), "unknown": of("unknown", true, false), "ended": of("ended", "", "the answer"),
		"effect": of("effect", "read", "effect", ""), "owed": of("owed", nil, []any{map[string]string{"id": "m1"}}),
		"usage": of("usage", map[string]any{"in": 10, "out": 3, "known": true}, map[string]any{"in": -1 << 50}, map[string]any{}),
		"wake":  of("wake", nil, map[string]any{"heartbeat": "disk"}), "ids": of("ids", nil, []string{"m1", "m2"}),
	}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"turn", "call", "card", "calls", "text", "reason", "usage"}), 0, 3).Draw(rt, "left out") {
		delete(fields, name)
	}
	line := memory.Entry{Kind: rapid.SampledFrom(lineKinds).Draw(rt, "kind"), At: time.Unix(int64(rapid.IntRange(-10, 1<<33).Draw(rt, "at")), 0)}
	line.Data, _ = json.Marshal(fields)
	if rapid.IntRange(0, 60).Draw(rt, "damage") == 60 {
		line.Data = rapid.SampledFrom([][]byte{nil, []byte("null"), []byte("{"), []byte(`[]`), []byte(`{"turn":7}`)}).Draw(rt, "data")
	}
	return line
}

func checkFold(rt *rapid.T, lines []memory.Entry) {
	view, err := agent.Fold(lines)
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			rt.Fatalf("the error has several lines: %v", err)
		}
		return
	}
	if fault := agenttest.Pairs(view); fault != "" {
		rt.Fatalf("after %d lines: %s", len(lines), fault)
	}
}

// Rule 3, whatever the journal says: any lines, in any order, fold to a conversation that can be sent.
func FuzzAnyJournalFolds(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(rt *rapid.T) { checkFold(rt, rapid.SliceOfN(rapid.Custom(drawLine), 0, 25).Draw(rt, "lines")) }))
}

func TestAnyJournalFolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { checkFold(rt, rapid.SliceOfN(rapid.Custom(drawLine), 0, 25).Draw(rt, "lines")) })
}

// A true journal with lines left out, doubled and moved folds too.
func TestATornJournalFolds(t *testing.T) {
	lines := record(t)
	rapid.Check(t, func(rt *rapid.T) {
		at := rapid.SliceOfN(rapid.IntRange(0, len(lines)-1), 1, 2*len(lines)).Draw(rt, "order")
		if rapid.Bool().Draw(rt, "mostly in order") {
			skip, twice := rapid.IntRange(0, len(lines)-1).Draw(rt, "skip"), rapid.IntRange(0, len(lines)-1).Draw(rt, "twice")
			at = at[:0]
			for n := range lines {
				if n == twice {
					at = append(at, n)
				}
				if n != skip {
					at = append(at, n)
				}
			}
		}
		torn := make([]memory.Entry, len(at))
		for i, n := range at {
			torn[i] = lines[n]
		}
		checkFold(rt, torn[:rapid.IntRange(0, len(torn)).Draw(rt, "end")])
	})
}

// record is the journal of a conversation with everything in it.
func record(t *testing.T) (lines []memory.Entry) {
	synctest.Test(t, func(t *testing.T) {
		f := &faults{TB: t}
		p := newFlood(f, false)
		for n := range 12 {
			p.say(0, fmt.Sprintf("w%03d", n))
			time.Sleep(1500 * time.Millisecond)
			if n%3 == 1 {
				p.world.Restart()
			}
			p.decide(n, agent.Approve)
		}
		p.world.Stop()
		p.world.Rest()
		p.world.Kill()
		err := p.store.View(context.Background(), func(tx memory.Tx) error {
			lines = nil
			return tx.Journal().Read(p.address, 0, func(e memory.Entry) error { lines = append(lines, e); return nil })
		})
		if err != nil || len(lines) < 40 || len(f.found) > 0 {
			t.Fatalf("recorded %d lines: %v %v", len(lines), err, f.found)
		}
	})
	return lines
}

// What a start reads back is what the actor had: a conversation is the same with a restart before each message as with none.
func TestARestartChangesNoRequest(t *testing.T) {
	type turn struct {
		decide agent.Verdict
		wait   time.Duration
	}
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.IntRange(0, 1000).Draw(rt, "first")
		turns := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) turn {
			return turn{
				rapid.SampledFrom([]agent.Verdict{"", agent.Approve, agent.Deny}).Draw(rt, "decide"),
				time.Duration(rapid.IntRange(0, 1500).Draw(rt, "seconds")) * time.Second,
			}
		}), 1, 4).Draw(rt, "turns")
		play := func(f *faults, restart bool) []model.Request {
			p := newFlood(f, false)
			defer func() { p.world.Kill() }()
			for n, turn := range turns {
				p.say(0, fmt.Sprintf("w%03d", first+n))
				p.world.Rest()
				for again := 0; turn.decide != "" && again < 9 && len(p.waiting()) > 0; again++ {
					if restart {
						p.world.Restart()
					}
					p.decide(100*n+again, turn.decide)
					p.world.Rest()
				}
				if restart {
					p.world.Restart()
				}
				time.Sleep(turn.wait)
			}
			var requests []model.Request
			for _, a := range p.model.all() {
				requests = append(requests, a.req)
			}
			return requests
		}
		var calm, disturbed []model.Request
		inBubble(t, rt, func(f *faults) { calm = play(f, false) })
		inBubble(t, rt, func(f *faults) { disturbed = play(f, true) })
		if len(calm) != len(disturbed) {
			rt.Fatalf("%d requests with restarts, %d without", len(disturbed), len(calm))
		}
		for i := range calm {
			if !reflect.DeepEqual(calm[i], disturbed[i]) {
				rt.Fatalf("request %d with restarts: %+v\nwithout: %+v", i, disturbed[i], calm[i])
			}
		}
	})
}
