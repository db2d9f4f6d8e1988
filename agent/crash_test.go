package agent_test

import (
	"context"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory/memorytest"
)

// Calls that a crash left without a result get one each; nothing with effects is run again; what the
// person says next comes after the results.
func TestACrashBetweenCallAndResult(t *testing.T) {
	d := &deeds{}
	faulty := memorytest.NewFaulty(open(t))
	m := &agenttest.Model{T: t, Script: func(req model.Request) model.Answer {
		if len(agenttest.Results(req)) == 0 && agenttest.LastUser(req) == "pay it" {
			return agenttest.Do(agenttest.Call(1, "lookup", `{}`), agenttest.Call(1, "pay", `{}`), agenttest.Call(1, "note", `{}`))
		}
		return agenttest.Say("noted")
	}}
	pay := d.tool("pay", agent.Effectful, "")
	run := pay.Run
	pay.Run = func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
		faulty.FailAt(faulty.Count()+1, false) // the result cannot be kept
		return run(ctx, in)
	}
	w := agenttest.Start(t, agent.Config{
		Store: faulty, Model: m, Spec: agent.ModelSpec{MaxOutput: 1000},
		Tools: []agent.Tool{d.tool("lookup", agent.Read, ""), pay, d.tool("note", agent.Effectful, "")},
	})
	w.Say("pay it")
	w.Rest()
	w.Kill()
	faulty.Revive()
	w.Restart()
	w.Say("hello?")
	w.Rest()
	if d.all() != "lookup pay" {
		t.Errorf("ran: %s", d.all())
	}
	requests := m.Requests()
	last := requests[len(requests)-1].Messages
	var texts []string
	for _, msg := range last {
		texts = append(texts, string(msg.Role)+" "+msg.Text)
	}
	view := strings.Join(texts, "\n")
	for _, part := range []string{"tool lookup done", "tool interrupted, outcome unknown", "may or may not have taken effect", "tool not run, not started"} {
		if !strings.Contains(view, part) {
			t.Errorf("%q is not in what the model read:\n%s", part, view)
		}
	}
	if strings.Index(view, "user hello?") < strings.Index(view, "not started") {
		t.Errorf("the person's words do not come after the results:\n%s", view)
	}
	if notices := w.Said(agent.Notice); len(notices) != 1 || !strings.Contains(notices[0].Text, "outcome is unknown") {
		t.Errorf("the person was told %s", agenttest.Lines(notices))
	}
}
