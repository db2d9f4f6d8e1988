package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"nudge/agent"
	"nudge/agent/tool/command"
	"nudge/agent/tool/diary"
	"nudge/agent/tool/fetch"
	"nudge/agent/tool/heartbeat"
	"nudge/agent/tool/notify"
	"nudge/agent/tool/script"
	"nudge/agent/tool/workspace"
)

// laterTools will come with later versions. They may be denied and given a policy already, since both only hold back.
var laterTools = []string{"remember", "recall", "forget_note", "load_skill", "delegate"}

// coreTools are those of the agent itself, whose specs are not to be had from outside.
var coreTools = []string{"ask_person", "plan"}

// judged are the names that a policy may be given for besides the tools' own, each with the tool whose calls it is for.
var judged = map[string]string{workspace.Overwrite: "write_file"}

// builtTools are the specs of all other tools, by name. Their functions are not kept, as they have no store.
var builtTools = sync.OnceValue(func() map[string]agent.Spec {
	tools := slices.Concat(workspace.Tools(workspace.Config{}), heartbeat.Tools(heartbeat.Config{}), diary.Tools(diary.Config{}), []agent.Tool{notify.Voice{}.Tool(), script.New(script.Self{})})
	// A preset must be there for the tool to be; which one doesn't matter for its name.
	if run, err := command.New([]command.Preset{{Name: "x", Run: []string{"x"}}}, command.Place{}); err == nil {
		tools = append(tools, run)
	}
	if page, err := fetch.New(fetch.Config{}); err == nil {
		tools = append(tools, page)
	}
	specs := map[string]agent.Spec{}
	for _, tool := range tools {
		specs[tool.Name] = tool.Spec
	}
	return specs
})

// toolKey is a key whose values name tools.
type toolKey struct {
	judged bool // names besides the tools' own have a meaning
	later  bool // so have tools that are not there yet
	wake   bool // tools that are offered only in conversations have none
}

var (
	onlyTools    = toolKey{}
	denyTools    = toolKey{later: true}
	approveTools = toolKey{judged: true, later: true}
	wakeTools    = toolKey{wake: true}
)

// names are those that the key may hold.
func (k toolKey) names() []string {
	names := slices.Clone(coreTools)
	for name, spec := range builtTools() {
		if !k.wake || spec.Place != agent.WithPerson {
			names = append(names, name)
		}
	}
	if k.judged {
		names = slices.AppendSeq(names, maps.Keys(judged))
	}
	slices.Sort(names)
	return names
}

// fault says what is wrong with a name, without the name; "" when nothing is.
func (k toolKey) fault(name string) string {
	names := k.names()
	switch {
	case slices.Contains(names, name) || k.later && slices.Contains(laterTools, name):
		return ""
	case slices.Contains(laterTools, name):
		return "names a tool that is not available in this version"
	case builtTools()[name].Name != "":
		return "names a tool that is not offered when a heartbeat wakes"
	case judged[name] != "":
		return fmt.Sprintf("names no tool of its own: name %s, or give it a policy as tools.approve.%s", judged[name], name)
	}
	if near, d := closest(strings.ToLower(name), names); d <= slips(near) {
		return fmt.Sprintf("names no tool; did you mean %q?", near)
	}
	return "names no tool; there are " + strings.Join(names, ", ")
}

// checkTools refuses names that would silently do nothing.
func checkTools(c *Config, at *place, f *faults) {
	for i, name := range c.Tools.Only {
		checkToolName(c, onlyTools, name, at.key("only").item(i), "tools.only", f)
	}
	for i, name := range c.Tools.Deny {
		checkToolName(c, denyTools, name, at.key("deny").item(i), "tools.deny", f)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools.Approve)) {
		checkToolName(c, approveTools, name, at.key("approve").key(name), "tools.approve."+shown(name), f)
	}
}

// checkFetch refuses what can be no host, so that a list that is to narrow does not narrow to nothing.
func checkFetch(c *Config, at *place, f *faults) {
	for i, host := range c.Fetch.Hosts {
		if fetch.CheckHost(host) != nil {
			f.add(at.key("hosts").item(i), "fetch.hosts", `wants hosts of the public internet in small letters, such as "example.com", "*.example.com" or "example.com:8443"`)
		}
	}
}

func checkToolName(c *Config, k toolKey, name string, at *place, key string, f *faults) {
	say := k.fault(name)
	if say == "" || c.bringsTool(name) {
		return
	}
	if slices.ContainsFunc(c.Commands, func(command Command) bool { return command.Name == name }) {
		say = "names a command and no tool: a command has an approve of its own, and run_command is the tool that runs them all"
	}
	f.add(at, key, "%s", say)
}
