package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

const deployConfig = `
[[command]]
name = "deploy"
run = ["echo", "deployed", "{version}", "to", "{env}", "with", "{note}"]
parameters = { env = { choices = ["staging", "production"] }, version = "v[0-9.]+", note = { description = "why" } }
`

// deployScript deploys the version that was said last, and then tells the result.
func deployScript(n int, req modeltest.ChatRequest) modeltest.Reply {
	for _, result := range results(req) {
		return modeltest.Reply{Text: "It says: " + result, Usage: usage}
	}
	said := req.Messages[len(req.Messages)-1].Content
	env, version, _ := strings.Cut(said[strings.LastIndexByte(said, '\n')+1:], " ")
	return modeltest.Reply{Calls: []model.Call{
		call(fmt.Sprint("c", n), "run_command", fmt.Sprintf(`{"name":"deploy","env":%q,"version":%q,"note":"now"}`, env, version)),
	}, Usage: usage}
}

// TestARuleWithAPattern leaves a parameter open within its pattern, kills the program, and looks at what is told of the rule
// everywhere. With another pattern it holds no more.
func TestARuleWithAPattern(t *testing.T) {
	server := modeltest.NewServer(t, deployScript)
	p := newPlace(t, server, deployConfig)
	k := p.chat()
	k.say("staging v1.2")
	card := k.until("approval")
	if want := `"open":[{"name":"env","within":"of staging, production"},{"name":"version","within":"that matches v[0-9.]+"}]`; !strings.Contains(card.raw, want) {
		t.Fatalf("the card is %s, without %s", card.raw, want)
	}
	for words, want := range map[string]string{
		"always any note":     `"note" cannot be left open; what can be is env, version. Nothing was decided.`,
		"always any name":     `"name" cannot be left open; what can be is env, version. Nothing was decided.`,
		"always with version": "After always comes nothing, or the word any and the names of what to leave open",
	} {
		k.say("/approve " + card.ID + " " + words)
		if fault := k.until("error"); !strings.Contains(fault.Text, want) {
			t.Errorf("%s is answered %s", words, fault.raw)
		}
	}
	k.say("/approve " + card.ID + " always any version")
	if d := k.until("decided"); !strings.Contains(d.raw, `"open":[{"name":"version","within":"that matches v[0-9.]+"}]`) {
		t.Errorf("decided: %s", d.raw)
	}
	k.until("settled")
	k.kill()

	k = p.chat()
	k.say("staging v2.0")
	k.until("final", func(l line) bool { return strings.Contains(l.Text, "deployed v2.0 to staging with now") })
	k.until("settled")
	k.say("production v2.0")
	k.until("approval")
	k.say("/deny")
	k.until("settled")
	k.say("/approvals")
	const rule = `run_command {"env":"staging","name":"deploy","note":"now"} with any version that matches v[0-9.]+`
	if list := k.until("notice"); !strings.Contains(list.Text, rule+" until ") {
		t.Errorf("the list says %s", list.raw)
	}
	k.end()

	audit, _ := p.run("audit", "--format", "text")
	for _, want := range []string{"always  run_command", "from then on with any version that matches v[0-9.]+", `ruled  run_command  with {"version":"v2.0"}`} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit lacks %q:\n%s", want, audit)
		}
	}
	if exported, _ := p.exported("ann", "text"); !strings.Contains(exported, strings.TrimPrefix(rule, "run_command ")) {
		t.Errorf("the export lacks the rule:\n%s", exported)
	}
	if checked, status := p.run("check"); status != 0 {
		t.Errorf("check ends with %d: %s", status, checked)
	}

	changed, err := os.ReadFile(p.config)
	if err == nil {
		err = os.WriteFile(p.config, []byte(strings.Replace(string(changed), "v[0-9.]+", "v[0-9.]*", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	k = p.chat()
	k.say("staging v2.1")
	if card := k.until("approval"); !strings.Contains(card.raw, "that matches v[0-9.]*") {
		t.Errorf("with another pattern the card is %s", card.raw)
	}
	k.say("/deny")
	k.until("settled")
	k.end()
	if out, status := p.run("forget", "ann", "--yes"); status != 0 || !strings.Contains(out, "1 rule") || p.dataFileHas("v[0-9.]+") {
		t.Errorf("forget ends with %d: %s; the words are in the data file: %v", status, out, p.dataFileHas("v[0-9.]+"))
	}
}
