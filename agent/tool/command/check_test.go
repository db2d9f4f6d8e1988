package command_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/tool/command"
)

// TestChecks are the presets that only read, with their programs, patterns and policies.
func TestChecks(t *testing.T) {
	checks, err := command.NewChecks([]command.Preset{
		{Name: "builds", Run: []string{"ci", "--branch={branch}"}, Parameters: map[string]command.Parameter{"branch": {Pattern: "[a-z]+"}}, Effect: agent.Read, Policy: agent.PolicySecond, Timeout: time.Second},
		{Name: "disk", Run: []string{"df"}, Effect: agent.Read},
		{Name: "boxed", Run: []string{"df"}, Effect: agent.Read, Box: true},
		{Name: "again", Run: []string{"touch", "x"}, Effect: agent.Idempotent},
		{Name: "deploy", Run: []string{"deploy"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := checks.Names(); !slices.Equal(got, []string{"builds", "disk"}) || !checks.Parameters() {
		t.Errorf("the checks are %v, parameters %v", got, checks.Parameters())
	}
	argv, limit, err := checks.Find("builds", map[string]string{"branch": "main"})
	if err != nil || !slices.Equal(argv, []string{"ci", "--branch=main"}) || limit != time.Second {
		t.Errorf("found %q for %s, error %v", argv, limit, err)
	}
	for _, test := range []struct {
		name   string
		values map[string]string
		want   string
	}{
		{"builds", map[string]string{"branch": "--force"}, "must match [a-z]+"},
		{"builds", nil, `the parameter "branch" is missing`},
		{"disk", map[string]string{"path": "/"}, `it has no parameter "path"`},
		{"deploy", nil, `there is no command "deploy" that only reads; there are builds, disk`},
		{"again", nil, "that only reads"},
		{"boxed", nil, "that only reads"},
		{"", nil, "that only reads"},
	} {
		if argv, _, err := checks.Find(test.name, test.values); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q with %v: %q, error %v, want %q", test.name, test.values, argv, err, test.want)
		}
	}
	for name, want := range map[string]agent.Policy{"builds": agent.PolicySecond, "disk": agent.PolicyAsk, "deploy": agent.PolicyOwner} {
		if got := checks.Policy(name); got != want {
			t.Errorf("the policy of %s is %s, want %s", name, got, want)
		}
	}
	if _, _, err := (command.Checks{}).Find("disk", nil); err == nil || !strings.Contains(err.Error(), "nor any other") {
		t.Errorf("of none: %v", err)
	}
	if _, err := command.NewChecks([]command.Preset{{Name: "no program"}}); err == nil {
		t.Error("a preset that cannot be right was taken")
	}
}
