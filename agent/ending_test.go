package agent_test

import (
	"context"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
)

// A tool that ends turns ends one with its result in words and its checked arguments as data; one that fails does not.
func TestAToolEndsTheTurn(t *testing.T) {
	answer := agenttest.Tool("submit", agent.Read, "", func(_ context.Context, in agent.Invocation) (agent.Result, error) {
		var arguments struct{ X string }
		if err := in.Decode(&arguments); err != nil {
			return agent.Result{}, err
		}
		return agent.Result{Text: "The answer is " + arguments.X, Failed: arguments.X == "wrong"}, nil
	})
	answer.EndsTurn = true
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "submit", `{"x":"wrong"}`), agenttest.Call(2, "submit", `{"y":1}`)), answer)
	w.Say("go")
	same(t, w.Rest(), `
		final done
		settled completed 2 steps 2 calls`)
	again, m := fresh(t, once(agenttest.Call(1, "look", `{}`), agenttest.Call(1, "submit", ` {"x": "42"}`)), answer, d.tool("look", agent.Effectful, ""))
	again.Say("go")
	said := again.Rest()
	same(t, said, `
		final The answer is 42
		settled completed 1 steps 2 calls`)
	if data := string(said[0].Data); data != `{"x": "42"}` && data != `{"x":"42"}` {
		t.Errorf("the data is %q", data)
	}
	if len(m.Requests()) != 1 || d.count("look") != 1 {
		t.Errorf("%d requests, look ran %d times", len(m.Requests()), d.count("look"))
	}
}

// The data of a turn that a tool ended are the arguments that ran, also where a person edited them on the card, after a
// restart.
func TestTheDataAreWhatRan(t *testing.T) {
	d := &deeds{}
	submit := d.tool("submit", agent.Effectful, agent.PolicyAsk)
	submit.EndsTurn = true
	w, _ := fresh(t, once(agenttest.Call(1, "submit", `{"x":"asked"}`)), submit)
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0].ID
	w.Restart()
	edit := agent.Decision{Card: card, Verdict: agent.Edit, Arguments: []byte(`{"x":"edited"}`)}
	if _, err := w.Pass(agent.Message{Provenance: agent.Decided, Decision: &edit}); err != nil {
		t.Fatal(err)
	}
	finals := agenttest.Only(w.Rest(), agent.Final)
	if len(finals) != 1 {
		t.Fatalf("said %s", agenttest.Lines(w.Said()))
	}
	if data := string(finals[0].Data); data != `{"x":"edited"}` {
		t.Errorf("the data are %s", data)
	}
}
