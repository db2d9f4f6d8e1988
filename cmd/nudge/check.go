package main

import (
	"slices"

	"nudge/agent"
	"nudge/agent/tool/command"
	"nudge/agent/tool/fetch"
	"nudge/agent/tool/heartbeat"
	"nudge/cmd/nudge/config"
	"nudge/schedule"
	"nudge/schedule/condition"
)

// The tools under whose rules a heartbeat's check does what they do.
const (
	commandTool = "run_command"
	pageTool    = "fetch_page"
)

// checks are what heartbeats that were made in conversations may look at. The zero value is nothing.
type checks struct {
	commands command.Checks
	public   *fetch.Guard // nil where no pages are read
	approve  map[string]string
}

// newChecks makes those that the config allows: none by a tool that is not offered.
func newChecks(c config.Config) (made checks, err error) {
	made.approve = c.Tools.Approve
	if offers(c, commandTool) {
		made.commands, err = command.NewChecks(c.Presets())
	}
	if err == nil && offers(c, pageTool) {
		made.public, err = fetch.NewGuard(fetch.Config{Hosts: c.Fetch.Hosts})
	}
	if err != nil {
		return checks{}, inFile(c, err)
	}
	return made, nil
}

// offers reports whether the config lets a tool be offered.
func offers(c config.Config, tool string) bool {
	return !slices.Contains(c.Tools.Deny, tool) && (len(c.Tools.Only) == 0 || slices.Contains(c.Tools.Only, tool))
}

// within adds the checks to where conditions look.
func (k checks) within(env condition.Env) condition.Env {
	env.Preset = k.commands.Find
	if k.public != nil {
		env.Public = k.public
	}
	return env
}

// told are the checks as the tool that makes heartbeats offers them.
func (k checks) told(build func(schedule.Heartbeat) (schedule.Condition, error)) heartbeat.Checks {
	return heartbeat.Checks{
		Commands: k.commands.Names(), Parameters: k.commands.Parameters(), Addresses: k.public != nil, Policy: k.policy, Build: build,
	}
}

// policy says who must agree to what a condition looks at: whoever must where the tool does the same.
func (k checks) policy(spec schedule.Spec) agent.Policy {
	var asked []agent.Policy
	switch spec.Kind {
	case "command":
		asked = []agent.Policy{k.commands.Policy(spec.Command), agent.Policy(k.approve[commandTool])}
	case "http":
		asked = []agent.Policy{agent.Policy(k.approve[pageTool])}
	}
	for _, strict := range []agent.Policy{agent.PolicySecond, agent.PolicyOwner} {
		if slices.Contains(asked, strict) {
			return strict
		}
	}
	return agent.PolicyAsk
}
