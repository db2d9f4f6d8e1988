package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"nudge/agent"
	"nudge/agent/hook"
)

// HookCommands are the hooks as the agent asks them, in the order of the file. Each is named after its place there and
// its program, such as "hook 2 (guard)". dir is where they run: the data directory.
func (c Config) HookCommands(dir string) []agent.Hook {
	var hooks []agent.Hook
	for i, written := range c.Hooks {
		name := fmt.Sprintf("hook %d", i+1)
		if len(written.Run) > 0 {
			name += fmt.Sprintf(" (%s)", filepath.Base(written.Run[0]))
		}
		hooks = append(hooks, hook.Command(name, agent.HookPoint(written.At), written.Run, dir, written.Timeout.Std()))
	}
	return hooks
}

func checkHook(h Hook, at *place, f *faults) {
	if h.At == "" {
		f.add(at.key("at"), "hook.at", `is needed: where in a step the hook is asked, such as "before_tool"`)
	}
	checkRun(h.Run, at, "hook.run", f)
	for i, part := range h.Run {
		if strings.ContainsRune(part, 0) {
			f.add(at.key("run").item(i), "hook.run", "has a NUL in it, which no program can be given")
		}
	}
	if h.Timeout.Std() > hook.MaxTimeout {
		f.add(at.key("timeout"), "hook.timeout", "must be at most one minute, since every step waits for it")
	}
}
