package heartbeat_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/tool/heartbeat"
	"nudge/schedule"
)

// checking is the tool with checks, of which the clock takes all but those of the command "gone".
func checking(t *testing.T, checks heartbeat.Checks) agent.Tool {
	checks.Build = func(h schedule.Heartbeat) (schedule.Condition, error) {
		if h.Condition.Command == "gone" || h.By != "terminal:ann" {
			return nil, errors.New("heartbeat.condition.command: there is no such command")
		}
		return nil, nil
	}
	return heartbeat.Tools(heartbeat.Config{Store: open(t), Checks: checks})[0]
}

func waitingFor(condition map[string]any) map[string]any {
	return map[string]any{"condition": condition}
}

// TestSchemaNamesWhatCanBeChecked and nothing else.
func TestSchemaNamesWhatCanBeChecked(t *testing.T) {
	for _, test := range []struct {
		checks heartbeat.Checks
		has    []string
		lacks  []string
	}{
		{heartbeat.Checks{}, []string{`["always","file","idle"]`}, []string{"command", "url", "http"}},
		{heartbeat.Checks{Addresses: true}, []string{`["always","file","idle","http"]`, `"url":`, `"select":`, `"status":`}, []string{"command"}},
		{heartbeat.Checks{Commands: []string{"builds", "disk"}}, []string{`["always","file","idle","command"]`, `"command":{"enum":["builds","disk"]}`}, []string{"url", "parameters"}},
		{heartbeat.Checks{Commands: []string{"builds"}, Parameters: true}, []string{`"parameters":`}, nil},
	} {
		tool := checking(t, test.checks)
		if _, err := agent.CompileSchema(tool.Schema); err != nil {
			t.Errorf("%+v: %v", test.checks, err)
		}
		said := string(tool.Schema) + tool.Description
		for _, words := range test.has {
			if !strings.Contains(said, words) {
				t.Errorf("%s is not in %s", words, said)
			}
		}
		for _, words := range test.lacks {
			if strings.Contains(said, words) {
				t.Errorf("%s is in %s", words, said)
			}
		}
	}
}

// TestCardOfChecks says in words what is looked at.
func TestCardOfChecks(t *testing.T) {
	create := checking(t, heartbeat.Checks{})
	for want, condition := range map[string]map[string]any{
		"The check, without a model: the command `builds` ends with 0. When that becomes so, I look":           {"kind": "command", "command": "builds"},
		"the command `builds` with branch \"ma in\", depth \"2\" ends with 0. At each of these times":          {"kind": "command", "command": "builds", "on": "true", "parameters": map[string]any{"depth": "2", "branch": "ma in"}},
		"The check, without a model: https://ci.test/api?a=b changes at builds[0].state. When that becomes so": {"kind": "http", "url": "https://ci.test/api?a=b", "select": "builds[0].state"},
		"https://ci.test/ changes. ":                                      {"kind": "http", "url": "https://ci.test/"},
		"https://ci.test/ answers with status 503. ":                      {"kind": "http", "url": "https://ci.test/", "status": 503},
		"https://ci.test/ changes at a, where it answers with status 404": {"kind": "http", "url": "https://ci.test/", "status": 404, "select": "a"},
		`changes at "[\"a\nApproved already\"]". `:                        {"kind": "http", "url": "https://ci.test/", "select": "[\"a\nApproved already\"]"},
	} {
		got := create.Card(agent.Invocation{Person: agenttest.Ann, Arguments: arguments(t, waitingFor(condition))})
		if !strings.Contains(got, want) {
			t.Errorf("%v:\n%s\nwant %q", condition, got, want)
		}
	}
}

// TestWhatTheClockWouldRefuse is refused before anybody is asked, and when the call runs.
func TestWhatTheClockWouldRefuse(t *testing.T) {
	create := checking(t, heartbeat.Checks{})
	for want, condition := range map[string]map[string]any{
		"there is no such command":           {"kind": "command", "command": "gone"},
		"heartbeat.condition.run: is empty":  {"kind": "command"},
		"heartbeat.condition.url: must":      {"kind": "http", "url": "file:///etc/passwd"},
		"heartbeat.condition.status: is no":  {"kind": "http", "url": "https://ci.test", "status": 7},
		"heartbeat.condition.command: does ": {"kind": "always", "command": "builds"},
	} {
		in := agent.Invocation{Person: agenttest.Ann, Arguments: arguments(t, waitingFor(condition))}
		if _, _, err := create.Judge(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", condition, err, want)
		}
		if result, err := create.Run(context.Background(), in); err == nil {
			t.Errorf("%v ran: %+v", condition, result)
		}
	}
}

// TestWhoMustAgree is the person, unless what is looked at asks more; and what an address is told goes out.
func TestWhoMustAgree(t *testing.T) {
	create := checking(t, heartbeat.Checks{Addresses: true, Policy: func(spec schedule.Spec) agent.Policy {
		return map[string]agent.Policy{"always": agent.PolicyNo, "command": agent.PolicySecond, "http": agent.PolicyOwner}[spec.Kind]
	}})
	if !create.Labels.WayOut {
		t.Error("the tool is said to send nothing out")
	}
	for _, test := range []struct {
		condition map[string]any
		want      agent.Policy
		out       bool
	}{
		{map[string]any{"kind": "always"}, agent.PolicyAsk, false},
		{map[string]any{"kind": "command", "command": "builds"}, agent.PolicySecond, false},
		{map[string]any{"kind": "http", "url": "https://ci.test/"}, agent.PolicyOwner, true},
	} {
		in := agent.Invocation{Person: agenttest.Ann, Arguments: arguments(t, waitingFor(test.condition))}
		if policy, _, err := create.Judge(in); policy != test.want || err != nil {
			t.Errorf("%v: policy %s, error %v, want %s", test.condition, policy, err, test.want)
		}
		if labels := create.LabelsOf(in); labels.WayOut != test.out || !labels.Lasting {
			t.Errorf("%v: labels %+v", test.condition, labels)
		}
	}
}
