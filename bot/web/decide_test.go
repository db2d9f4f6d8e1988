package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"nudge/agent"
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
