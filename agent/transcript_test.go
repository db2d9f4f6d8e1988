package agent_test

import (
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/memory"
)

// TestTranscriptOfCalls: what ran is read again with its arguments, as it was shown when it began: also those that a person
// edited.
func TestTranscriptOfCalls(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "look", `{"x":"1"}`), agenttest.Call(1, "act", `{"x":"asked"}`)),
		d.tool("look", agent.Read, ""), d.tool("act", agent.Effectful, agent.PolicyAsk))
	w.Say("go")
	said := w.Rest()
	edit := agent.Decision{Card: agenttest.Only(said, agent.Approval)[0].ID, Verdict: agent.Edit, Arguments: []byte(`{"x":"edited"}`)}
	if _, err := w.Pass(agent.Message{Provenance: agent.Decided, Decision: &edit}); err != nil {
		t.Fatal(err)
	}
	w.Rest()
	want := []string{`look {"x":"1"}`, `act {"x":"edited"}`}
	var read []string
	err := w.Config.Store.View(t.Context(), func(tx memory.Tx) error {
		lines, err := agent.Transcript(tx, agenttest.Home, 0)
		for _, l := range agenttest.Only(lines, agent.Progress) {
			read = append(read, l.Text)
		}
		return err
	})
	if err != nil || strings.Join(read, "|") != strings.Join(want, "|") {
		t.Errorf("read again: %q, error %v; want %q", read, err, want)
	}
}
