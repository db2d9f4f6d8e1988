package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/model/modeltest"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/schedule"
)

// dataFileHas reports whether words are anywhere in the data file.
func (p place) dataFileHas(words string) bool {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, "data", "nudge.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	return bytes.Contains(data, []byte(words))
}

func TestASessionIsErasedWhileItRuns(t *testing.T) {
	const session, canary = "terminal:local:dm:ann", "osprey-9034"
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		if strings.Contains(req.Last().Content, "slowly") {
			begun <- struct{}{}
			<-goOn
		}
		return modeltest.Reply{Text: "re: " + req.Last().Content}
	})
	defer close(goOn)
	p := newPlace(t, server, "")
	holder := p.chat()
	holder.say("one " + canary)
	holder.until("settled")
	if out, status := p.run("sessions", "export", session); status != 0 || !strings.Contains(out, canary) {
		t.Errorf("sessions export (status %d) printed:\n%s", status, out)
	}
	if out, status := p.run("sessions", "erase", session); status != exitWrong || !strings.Contains(out, "--yes") {
		t.Errorf("sessions erase (status %d) printed:\n%s", status, out)
	}
	holder.say("slowly " + canary)
	<-begun
	out, status := p.run("sessions", "erase", "--yes", session)
	if status != 0 || !strings.Contains(out, "erased "+session+": ") || !strings.Contains(out, "2 turns") || !strings.Contains(out, "nothing of it is left in the data file") {
		t.Fatalf("sessions erase --yes (status %d) printed:\n%s", status, out)
	}
	if settled := holder.until("settled"); settled.Reason != string(agent.Cancelled) {
		t.Errorf("the turn that ran ended with %s", settled.raw)
	}
	if out, status := p.run("sessions", "erase", "--yes", session); status != exitFailed || !strings.Contains(out, "there is no such session") {
		t.Errorf("once more (status %d) printed:\n%s", status, out)
	}
	holder.say("two")
	if final := holder.until("final"); final.Text != "re: two" || final.Session != session+"~2" {
		t.Errorf("what was said next was answered %s", final.raw)
	}
	requests := server.Requests()
	for _, m := range requests[len(requests)-1].Messages {
		if strings.Contains(m.Content, canary) {
			t.Errorf("the model was sent %q", m.Content)
		}
	}
	if out, status := p.run("check"); status != 0 {
		t.Errorf("check (status %d) printed:\n%s", status, out)
	}
	holder.end()
	if out, status := p.run("compact"); status != 0 || p.dataFileHas(canary) {
		t.Errorf("after compact (status %d) bytes are left:\n%s", status, out)
	}
}

// execute runs a command in this process, at a terminal if there are words to be typed at it.
func (p place) execute(typed string, args ...string) (out string, status int) {
	p.t.Helper()
	var printed strings.Builder
	a := &app{in: strings.NewReader(typed), out: &printed, errs: &printed, remote: &remoteCommand{Terminal: typed != ""}}
	status = a.run(context.Background(), append([]string{"--config", p.config, "--data", filepath.Join(p.dir, "data")}, args...))
	return printed.String(), status
}

// newArchive is a place whose data file holds a session of ann's, and what else there is of her.
func newArchive(t *testing.T, config string) place {
	t.Helper()
	p := newPlace(t, nil, config)
	if err := os.MkdirAll(filepath.Join(p.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(filepath.Join(p.dir, "data", "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	err = store.Update(context.Background(), func(tx memory.Tx) error {
		lines := []memory.Entry{
			{Kind: "turn_started", At: at, Data: []byte(`{"turn":"t1","provenance":"human","person":{"id":"terminal:ann"},"address":"terminal:local:dm:ann"}`)},
			{Kind: "message", At: at, Data: []byte(`{"turn":"t1","provenance":"human","from":"terminal:ann","text":"my token is token-of-a-test, plover-1172"}`)},
			{Kind: "run_stopped", At: at, Data: []byte(`{"turn":"t1","reason":"completed","say":"so it is"}`)},
		}
		for _, session := range []string{"terminal:local:dm:ann", "terminal:local:dm:ann~2", "wake:mine:terminal:ann"} {
			if _, err := tx.Journal().Append(session, lines...); err != nil {
				return err
			}
		}
		if err := agent.Greet(tx, agent.Person{ID: "terminal:ann", Name: "Ann", Zone: "Europe/Berlin"}); err != nil {
			return err
		}
		beats := []schedule.Heartbeat{
			{Name: "mine", By: "terminal:ann", For: []string{"terminal:ann"}},
			{Name: "ours", For: []string{"terminal:ann", "terminal:zoe"}},
			{Name: "theirs", For: []string{"terminal:zoe"}},
		}
		for _, b := range beats {
			b.Cron, b.Prompt, b.Condition = "0 9 * * *", "look at "+b.Name, schedule.Spec{Kind: "file", Path: "file-" + b.Name, Test: "exists"}
			if err := schedule.Save(tx, b, at); err != nil {
				return err
			}
		}
		for person, text := range map[string]string{"terminal:ann": "the plover-1172 has landed", "terminal:zoe": "theirs alone"} {
			card, err := schedule.AddCard(tx, schedule.Card{
				Person: person, Heartbeat: "ours", Address: "terminal:local:dm:ann", Session: "terminal:local:dm:ann", Text: text, Tick: at, Told: at,
			})
			if err != nil {
				return err
			}
			if _, err := schedule.Judge(tx, card.ID, person, schedule.Less, "", at, time.UTC); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestErasingAsksOnATerminal(t *testing.T) {
	p := newArchive(t, "")
	for _, typed := range []string{"n\n", "\n", "nay\n", " "} {
		out, status := p.execute(typed, "sessions", "erase", "terminal:local:dm:ann")
		if status != exitFailed || !strings.Contains(out, "Erase session terminal:local:dm:ann for good? [y/N] ") || !strings.Contains(out, "nothing was erased") {
			t.Errorf("%q (status %d) printed:\n%s", typed, status, out)
		}
	}
	if out, status := p.execute("y\n", "sessions", "erase", "terminal:local:dm:ann"); status != 0 || !strings.Contains(out, "3 journal lines") || !p.dataFileHas("plover-1172") {
		t.Errorf("the first (status %d) printed:\n%s", status, out)
	}
	for _, session := range []string{"terminal:local:dm:ann~2", "wake:mine:terminal:ann"} {
		if out, status := p.execute("Yes\n", "sessions", "erase", session); status != 0 {
			t.Errorf("%s (status %d) printed:\n%s", session, status, out)
		}
	}
	if p.dataFileHas("plover-1172") {
		t.Error("bytes of what was erased are left")
	}
}

// exported is the document of a person, made as `nudge export` makes it.
func (p place) exported(person, format string) (out string, status int) {
	p.t.Helper()
	var printed strings.Builder
	a := &app{in: strings.NewReader(""), out: &printed, errs: &printed, configFile: p.config, dataDir: filepath.Join(p.dir, "data")}
	cmd := a.exportCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{person, "--format", format})
	err := cmd.ExecuteContext(context.Background())
	if err != nil {
		return err.Error(), exitFailed
	}
	return printed.String(), 0
}

func TestExportOfAPerson(t *testing.T) {
	t.Setenv("NUDGE_TEST_TOKEN", "token-of-a-test")
	p := newArchive(t, "[web]\napi_token_env = \"NUDGE_TEST_TOKEN\"\n")
	out, status := p.exported("ann", "json")
	if status != 0 {
		t.Fatalf("it failed: %s", out)
	}
	var doc struct {
		Person, Name, Zone string
		Exported           time.Time
		Sessions           []struct {
			Session string
			Lines   []struct{ Kind, Text string }
		}
		Said, Mail, Cards, Spent []any
		Heartbeats               []map[string]any
		Told                     []struct{ Heartbeat, Text, Said string }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if doc.Person != "terminal:ann" || doc.Name != "Ann" || doc.Zone != "Europe/Berlin" || doc.Exported.IsZero() || len(doc.Sessions) != 3 {
		t.Errorf("the document is\n%s", out)
	}
	if doc.Said == nil || doc.Mail == nil || doc.Cards == nil || doc.Spent == nil {
		t.Errorf("a list is missing in\n%s", out)
	}
	if len(doc.Told) != 1 || doc.Told[0].Said != "less" || doc.Heartbeats[1]["at_most"] != "every 2 days" {
		t.Errorf("what was told is %+v, of %v", doc.Told, doc.Heartbeats)
	}
	if len(doc.Heartbeats) != 2 || doc.Heartbeats[0]["made_by_you"] != true || doc.Heartbeats[0]["condition"] == nil || doc.Heartbeats[1]["condition"] != nil {
		t.Errorf("the heartbeats are %v", doc.Heartbeats)
	}
	text, _ := p.exported("terminal:ann", "text")
	for _, part := range []string{"# What is kept of terminal:ann", "## Session terminal:local:dm:ann~2", "From 2026-11-30 10:00 to", "## Heartbeats", "> look at ours", "(you asked for less: at most every 2 days)",
		"## Told to you unasked", "**ours**, 2026-11-30 10:00\n> the plover-1172 has landed", "You said, 2026-11-30 10:00: less."} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	for _, hidden := range []string{"token-of-a-test", "terminal:zoe", "theirs", "file-ours"} {
		if strings.Contains(out, hidden) || strings.Contains(text, hidden) {
			t.Errorf("%q is in\n%s\n%s", hidden, out, text)
		}
	}
	if !strings.Contains(out, "my token is [secret], plover-1172") || !strings.Contains(text, "my token is [secret], plover-1172") {
		t.Errorf("what surrounds a secret is missing in\n%s", out)
	}
	for _, person := range []string{"nobody", "slack:T1:U1", "an"} {
		if out, status := p.exported(person, "json"); status == 0 || !strings.Contains(out, "nothing is kept of ") {
			t.Errorf("of %s (status %d) %s", person, status, out)
		}
	}
}

// TestAuditText: what was said stands behind the line, and nothing in the arguments is moved for it.
func TestAuditText(t *testing.T) {
	l := agent.AuditLine{Did: "deny", Tool: "write_file", Shown: json.RawMessage(`{"content":"a  : b"}`), Card: "c1", Text: "not\n now"}
	if got, want := auditText(l), `deny  write_file  {"content":"a  : b"}  card c1: not now`; !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end with %q", got, want)
	}
}

// TestLocalZone: the zone of this machine is told by its abbreviation, not as "Local".
func TestLocalZone(t *testing.T) {
	at := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	text := agent.SessionExport{Session: "terminal:local:dm:ann", Began: at, LastUsed: at}.Markdown(time.Local)
	if want := ", " + at.Local().Format("MST") + ".\n"; !strings.Contains(text, want) {
		t.Errorf("%q has no %q", text, want)
	}
}
