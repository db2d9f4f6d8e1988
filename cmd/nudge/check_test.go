package main

import (
	"os"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/cmd/nudge/config"
	"nudge/schedule"
	"nudge/schedule/condition"
)

// builds is a config with a prepared command that says by its exit status whether a build is red, and one that changes
// something.
const builds = `
[[command]]
name = "builds"
run = ["sh", "-c", "cat state; grep -q red state"]
effect = "read"
[[command]]
name = "deploy"
run = ["touch", "deployed"]
effect = "effect"
`

// state writes what the command of the builds looks at, in the workspace.
func (p place) state(words string) {
	p.t.Helper()
	if err := os.WriteFile(p.workspace("state"), []byte(words+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// TestABuildThatTurnsRed: what a person asks for in a conversation is checked with the command that the config prepared; it
// wakes when that says so and not before, and a command that the config has no more is an error that is told once.
func TestABuildThatTurnsRed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, builds)
	p.state("green 1")
	k := p.chat()
	k.say("tell me every weekday at nine if a build is red")
	card := k.until("approval")
	for _, words := range []string{"On Monday to Friday at 09:00", "The check, without a model: the command `builds` ends with 0. At each of these times at which that is so"} {
		if !strings.Contains(card.Text, words) {
			t.Errorf("the card does not say %q:\n%s", words, card.Text)
		}
	}
	if got := string(card.Arguments); !strings.Contains(got, `"command":"builds"`) || strings.Contains(got, "grep") {
		t.Errorf("its arguments are %s", got)
	}
	k.say("/deny " + card.ID)
	k.until("settled")

	k.say("tell me every second if builds is red")
	k.say("/approve " + k.until("approval").ID)
	k.until("settled")
	p.becomes("builds", "slept   the condition was false")
	if told := k.kinds("notify"); told != "" {
		t.Errorf("while the build was green: %s", told)
	}
	p.state("red 2")
	if told := k.until("notify"); told.Heartbeat != "builds" || !strings.Contains(told.Text, "red 2") {
		t.Errorf("it told %s", told.raw)
	}
	p.becomes("builds", "the condition was still true, and had woken already")
	k.end()

	if out, status := p.run("simulate", "--heartbeat", "builds", "--to", "3s"); status != 0 || !strings.Contains(out, "woke") && !strings.Contains(out, "still true") {
		t.Errorf("simulate ended with %d:\n%s", status, out)
	}
	if out, status := p.run("export", "terminal:ann"); status != 0 || !strings.Contains(out, `"command": "builds"`) || strings.Contains(out, "grep") {
		t.Errorf("export ended with %d:\n%s", status, out)
	}
	if out, status := p.run("check"); status != 0 {
		t.Errorf("check ended with %d:\n%s", status, out)
	}

	config, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	renamed := strings.Replace(string(config), `name = "builds"`, `name = "other"`, 1)
	if err := os.WriteFile(p.config, []byte(renamed), 0o600); err != nil {
		t.Fatal(err)
	}
	k = p.chat()
	told := k.until("notice")
	if want := `there is no command "builds" that only reads; there are other`; !strings.Contains(told.Text, want) {
		t.Errorf("it told %s, want %q", told.raw, want)
	}
	before := p.why("builds")
	eventually(t, "it failed three times more", func() bool {
		return strings.Count(p.why("builds"), "failed") >= strings.Count(before, "failed")+3
	})
	k.end()
	for _, l := range k.seen {
		if l.Kind == "notice" && l.raw != told.raw && strings.Contains(l.Text, "builds") {
			t.Errorf("it was told again: %s", l.raw)
		}
	}
}

// TestWhatNobodyMayCheckWith is refused before a card is shown: commands that change something, programs, addresses of this
// machine, and what the config turned off.
func TestWhatNobodyMayCheckWith(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, builds+"[tools]\napprove = { fetch_page = \"owner\" }\n")
	k := p.chat()
	for said, want := range map[string]string{
		"tell me if the command deploy succeeds":          "",
		"tell me when http://127.0.0.1:8484/ changes":     "only hosts on the public internet",
		"tell me when http://metadata.internal/ changes":  "only hosts on the public internet",
		"tell me when https://example.com:22/ changes":    "port 22",
		"tell me when https://ann:x@example.com/ changes": "a user or a password",
		"tell me when https://example.com/ changes at a[": "it is no path",
	} {
		k.say(said)
		if got := k.until("final"); !strings.Contains(got.Text, want) || got.Text == "" {
			t.Errorf("%s: %s, want %q", said, got.raw, want)
		}
		k.until("settled")
	}
	if cards := k.kinds("approval"); cards != "" {
		t.Errorf("cards were shown: %s", cards)
	}
	k.say("tell me when https://example.com/ changes")
	if card := k.until("approval"); !strings.Contains(card.raw, `"may_decide":["an owner"]`) {
		t.Errorf("who may not read a page alone may watch it alone: %s", card.raw)
	}
	k.end()
}

// TestChecksOfAConfig are under the rules of the tools that do the same.
func TestChecksOfAConfig(t *testing.T) {
	presets := []config.Command{
		{Name: "builds", Run: []string{"ci"}, Effect: "read", Approve: "no"}, {Name: "salaries", Run: []string{"sums"}, Effect: "read", Approve: "second"},
	}
	for _, test := range []struct {
		says     string
		tools    config.Tools
		commands int
		pages    bool
		policy   agent.Policy // of a heartbeat that checks with the first command
	}{
		{"nothing", config.Tools{}, 2, true, agent.PolicyAsk},
		{"no commands", config.Tools{Deny: []string{"run_command"}}, 0, true, agent.PolicyOwner},
		{"no pages", config.Tools{Deny: []string{"fetch_page"}}, 2, false, agent.PolicyAsk},
		{"heartbeats alone", config.Tools{Only: []string{"create_heartbeat"}}, 0, false, agent.PolicyOwner},
		{"commands for owners", config.Tools{Approve: map[string]string{"run_command": "owner"}}, 2, true, agent.PolicyOwner},
	} {
		made, err := newChecks(config.Config{Commands: presets, Tools: test.tools})
		if err != nil {
			t.Fatal(err)
		}
		told, env := made.told(nil), made.within(condition.Env{})
		if len(told.Commands) != test.commands || told.Addresses != test.pages || (env.Public != nil) != test.pages {
			t.Errorf("with %s: %+v", test.says, told)
		}
		if _, _, err := env.Preset("builds", nil); (err == nil) != (test.commands > 0) {
			t.Errorf("with %s: finding a command: %v", test.says, err)
		}
		if got := told.Policy(schedule.Spec{Kind: "command", Command: "builds"}); got != test.policy {
			t.Errorf("with %s: policy %s, want %s", test.says, got, test.policy)
		}
		if got := told.Policy(schedule.Spec{Kind: "command", Command: "salaries"}); test.commands > 0 && got != agent.PolicySecond {
			t.Errorf("with %s: the strict command has policy %s", test.says, got)
		}
	}
}
