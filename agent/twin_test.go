package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
)

// The same read asked for twice in a step runs once and both calls have its result; what has an effect is never merged.
func TestReadsOfOneStepThatAreTheSameRunOnce(t *testing.T) {
	d := &deeds{}
	tool := func(name string, effect agent.Effect, policy agent.Policy) agent.Tool {
		tool := d.tool(name, effect, policy)
		tool.Schema = []byte(`{"type":"object"}`)
		return tool
	}
	fail := agenttest.Tool("fail", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		d.do("fail")
		return agent.Result{}, errors.New("the moon is in the way")
	})
	w, m := fresh(t, once(
		agenttest.Call(1, "look", `{"a":1,"b":2}`), agenttest.Call(2, "look", `{"b":2, "a":1}`), agenttest.Call(3, "look", `{"a":1}`), agenttest.Call(4, "look", `{"a":1,"b":2}`),
		agenttest.Call(1, "write", `{"a":1}`), agenttest.Call(2, "write", `{"a":1}`),
		agenttest.Call(1, "set", `{"a":1}`), agenttest.Call(2, "set", `{"a":1}`),
		agenttest.Call(1, "ask", `{"a":1}`), agenttest.Call(2, "ask", `{"a":1}`),
		agenttest.Call(1, "fail", `{}`), agenttest.Call(2, "fail", ` `),
	), tool("look", agent.Read, ""), tool("write", agent.Effectful, ""), tool("set", agent.Idempotent, ""), tool("ask", agent.Read, agent.PolicyAsk), fail)
	w.Say("go")
	for range 2 {
		for _, card := range agenttest.Only(w.Rest(), agent.Approval) {
			w.Decide(card.ID, agent.Approve, "")
		}
	}
	w.Rest()
	for tool, want := range map[string]int{"look": 2, "write": 2, "set": 2, "ask": 2, "fail": 1} {
		if got := d.count(tool); got != want {
			t.Errorf("%s ran %d times, want %d", tool, got, want)
		}
	}
	for call, want := range map[string]string{
		"look-1": `look done with {"a":1,"b":2}`, "look-2": `look done with {"a":1,"b":2}`, "look-3": `look done with {"a":1}`, "look-4": `look done with {"a":1,"b":2}`,
		"fail-1": "the moon is in the way", "fail-2": "the moon is in the way",
	} {
		if got := resultOf(t, m, call); got != want {
			t.Errorf("%s gave %q, want %q", call, got, want)
		}
	}
	if settled := agenttest.Only(w.Said(), agent.SettledMark); len(settled) != 1 || settled[0].ToolCalls != 12 || fmt.Sprint(settled[0].Reason) != "completed" {
		t.Errorf("said %s", agenttest.Lines(w.Said()))
	}
}
