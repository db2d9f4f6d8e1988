package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
)

// TestFaultsOfEdits sends edits that do not fit: the answer says what does not, by argument, and nothing is decided.
func TestFaultsOfEdits(t *testing.T) {
	p := startProgram(t, nil)
	p.write("notes.md", "one")
	b := openTab(t, p.server)
	b.say("delete notes.md")
	card := b.sees(agent.Approval, "delete_file")
	if !strings.HasPrefix(card.AlwaysMeans, "From now on exactly this call and no other") || card.Always == nil {
		t.Errorf("the card says of always: %q until %v", card.AlwaysMeans, card.Always)
	}
	for _, c := range []struct{ arguments, field, want string }{
		{`{"path":7}`, "path", "got number, want string"},
		{`{"file":"notes.md"}`, "file", "not known"},
		{`{"path":"../notes.md"}`, "", "cannot be run"},
	} {
		status, answered := b.post("/api/decide", map[string]any{"id": b.newID(), "card": card.ID, "verdict": "edit", "arguments": c.arguments})
		var said struct {
			Error  string            `json:"error"`
			Fields map[string]string `json:"fields"`
		}
		if err := json.Unmarshal([]byte(answered), &said); err != nil {
			t.Fatal(err)
		}
		if status != http.StatusUnprocessableEntity || !strings.Contains(said.Error, c.want) && !strings.Contains(said.Fields[c.field], c.want) || (said.Fields[c.field] == "") != (c.field == "") {
			t.Errorf("%s gives status %d: %s", c.arguments, status, answered)
		}
	}
	if n := len(b.shown(agent.DecidedMark)); n != 0 || !p.exists("notes.md") {
		t.Errorf("%d cards are decided, and the file is there %v", n, p.exists("notes.md"))
	}
	b.must("/api/decide", map[string]any{"card": card.ID, "verdict": "always"})
	await(t, "the card is settled", func() bool { return len(b.shown(agent.DecidedMark)) == 1 })
	if mark := b.shown(agent.DecidedMark)[0]; mark.Decision != agent.Always || mark.Rule == "" || !mark.Always.Equal(*card.Always) {
		t.Errorf("the card is settled with %+v", mark)
	}
}

// deploys is a model that deploys what it is told to: the version that was said last.
func deploys(t *testing.T) *agenttest.Model {
	return &agenttest.Model{T: t, Script: func(req model.Request) model.Answer {
		said := agenttest.LastUser(req)
		version := said[strings.LastIndexByte(said, '\n')+1:]
		for _, result := range agenttest.Results(req) {
			return agenttest.Say("of " + version + " came: " + result)
		}
		return agenttest.Do(agenttest.Call(len(req.Messages), "run_command", `{"name":"deploy","env":"staging","version":"`+version+`"}`))
	}}
}

// TestAlwaysLeavesOpenWhatIsNamed asks for more than the card offers, and then for what it does.
func TestAlwaysLeavesOpenWhatIsNamed(t *testing.T) {
	p := startProgram(t, nil)
	p.end()
	p.model = deploys(t)
	p.start()
	b := openTab(t, p.server)
	b.say("v1.2")
	card := b.sees(agent.Approval, "v1.2")
	if len(card.Open) != 2 || card.Open[1].String() != "any version that matches v[0-9.<]+" || !strings.HasPrefix(card.OpenMeans, "From now on this call runs without a card, and so does each that differs from it in nothing but what is left open") {
		t.Fatalf("the card lets be open %+v, which means %q", card.Open, card.OpenMeans)
	}
	b.must("/api/decide", map[string]any{"card": card.ID, "verdict": "always", "open": []string{"version", "name"}})
	b.sees(agent.Fault, `"name" cannot be left open; what can be is env, version. Nothing was decided.`)
	if status, answered := b.post("/api/decide", map[string]any{"id": b.newID(), "card": card.ID, "verdict": "always", "open": "version"}); status != http.StatusBadRequest {
		t.Errorf("open as a text gives status %d: %s", status, answered)
	}
	if n := len(b.shown(agent.DecidedMark)); n != 0 {
		t.Fatalf("%d cards are decided", n)
	}
	b.must("/api/decide", map[string]any{"card": card.ID, "verdict": "always", "open": []string{"version"}})
	await(t, "the card is settled", func() bool { return len(b.shown(agent.DecidedMark)) == 1 })
	if mark := b.shown(agent.DecidedMark)[0]; mark.Decision != agent.Always || agent.OpenText(mark.Open) != "any version that matches v[0-9.<]+" {
		t.Errorf("the card is settled with %+v", mark)
	}
	b.say("v2.0")
	b.sees(agent.Final, "of v2.0 came: The command \"deploy\" ended with exit status 0. It wrote:\ndeployed v2.0 to staging")
	if n := len(b.shown(agent.Approval)); n != 1 {
		t.Errorf("there are %d cards", n)
	}
}
