package config

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"nudge/agent"
	"nudge/agent/tool/command"
)

// Presets are the commands as the tool run_command takes them.
func (c Config) Presets() []command.Preset {
	var presets []command.Preset
	for _, written := range c.Commands {
		preset := written.preset()
		if preset.Timeout == 0 {
			preset.Timeout = c.Limits.ToolTimeout.Std()
		}
		presets = append(presets, preset)
	}
	return presets
}

func (c Command) preset() command.Preset {
	preset := command.Preset{
		Name: c.Name, Run: c.Run, Parameters: map[string]command.Parameter{},
		Effect: agent.Effect(c.Effect), Policy: agent.Policy(c.Approve), Timeout: time.Duration(c.Timeout), Box: c.Box,
	}
	for name, parameter := range c.Parameters {
		preset.Parameters[name] = command.Parameter{Pattern: parameter.Pattern, Choices: parameter.Choices, Description: parameter.Description}
	}
	return preset
}

// checkCommand asks the tool itself, first for each part alone, so that the part at fault is known. What the tool says
// may quote the file, and so is not passed on.
func checkCommand(c Command, at *place, names map[string]*place, f *faults) {
	before := len(f.list)
	checkName(c.Name, at, "command.name", names, f)
	checkRun(c.Run, at, "command.run", f)
	whole := c.preset()
	if len(f.list) == before && !accepted(command.Preset{Name: whole.Name, Run: []string{"x"}}) {
		f.add(at.key("name"), "command.name", "wants 1 to 64 letters, digits, _ or -")
	}
	for _, name := range slices.Sorted(maps.Keys(whole.Parameters)) {
		checkParameter(name, whole.Parameters[name], at.key("parameters").key(name), f)
	}
	if f.in("command") || accepted(whole) {
		return // of what was found wrong, no more is said
	}
	f.add(at.key("run"), "command.run", "wants a program without parameters, then arguments in which each of the parameters stands as {name}, and no other")
}

func checkParameter(name string, parameter command.Parameter, at *place, f *faults) {
	key := dotted("command.parameters", shown(name))
	if _, err := regexp.Compile(parameter.Pattern); err != nil {
		f.add(at, key, "has a pattern that is no regular expression")
		return
	}
	alone := func(parameter command.Parameter) bool {
		return accepted(command.Preset{Name: "x", Run: []string{"x", "{" + name + "}"}, Parameters: map[string]command.Parameter{name: parameter}})
	}
	switch named := alone(command.Parameter{}); {
	case named && parameter.Choices != nil && parameter.Pattern != "":
		f.add(at, key, "has a pattern and choices; take one of the two out")
	case named && parameter.Choices != nil && !alone(parameter):
		f.add(at, key, "wants at least one choice, and none of them twice or with a NUL in it")
	case !named:
		f.add(at, key, `wants another name: a small letter, then small letters, digits and _, and not "name"`)
	}
}

func accepted(preset command.Preset) bool {
	_, err := command.New([]command.Preset{preset}, command.Place{})
	return err == nil
}
