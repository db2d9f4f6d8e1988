package config

import (
	"context"
	"strings"
	"testing"

	"nudge/agent"
)

func TestHookCommands(t *testing.T) {
	c, err := load(t, `
[[hook]]
at = "before_tool"
run = ["/no/such/guard", "--strict"]
[[hook]]
at = "after_step"
run = ["watch"]
`)
	if err != nil {
		t.Fatal(err)
	}
	hooks := c.HookCommands(t.TempDir())
	if len(hooks) != 2 || hooks[0].Name != "hook 1 (guard)" || hooks[0].At != agent.BeforeTool || hooks[1].Name != "hook 2 (watch)" || hooks[1].At != agent.AfterStep {
		t.Fatalf("got %+v", hooks)
	}
	_, err = hooks[0].Rule(context.Background(), agent.HookQuestion{At: agent.BeforeTool})
	if err == nil || !strings.HasPrefix(err.Error(), `ask hook 1 (guard): start "/no/such/guard": `) {
		t.Errorf("a program that is not there: %v", err)
	}
	if hooks := Default().HookCommands("/data"); hooks != nil {
		t.Errorf("without a file there are %+v", hooks)
	}
}

// TestEveryPointCanBeConfigured keeps the words of the file those of the agent.
func TestEveryPointCanBeConfigured(t *testing.T) {
	for _, at := range []agent.HookPoint{agent.BeforeStep, agent.BeforeModel, agent.BeforeTool, agent.AfterTool, agent.AfterStep} {
		c, err := load(t, strings.Replace(guard, "before_tool", string(at), 1))
		if err != nil || c.HookCommands("")[0].At != at {
			t.Errorf("%s: %v", at, err)
		}
	}
}
