package demo

import (
	"slices"
	"strconv"
	"strings"
)

var (
	waitWords = phrase(`(?:wait|sleep|pause|hold on)(?: for)?(?: about)? (?P<n>` + numberWord + `|half a)\s*(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?: please)?`)
	waitBare  = phrase(`(?:wait|sleep|pause)(?: a (?:bit|moment|while|little))?`)
	diskWords = phrase(`(?:.*\b(?:how full|how much (?:room|space)|free space|disk (?:space|usage|free)|space left|storage)\b.*|(?:check|show|look at)(?: me)?(?: the)? disks?|(?:how is|how's) (?:the|my) disk(?: doing)?|df|disk)`)
	runWords  = phrase(`(?P<verb>run|execute|start|call|use)(?: the)?(?: command| preset)? (?P<name>` + "`[^`]+`|\"[^\"]+\"|" + `[\p{L}\p{N}_.-]+)(?: command| preset)?(?P<rest>(?:\s+.*)?)`)
	pairs     = expression(`([\p{L}_][\p{L}\p{N}_-]*)\s*(?:=|:| )\s*("[^"]*"|` + "`[^`]*`" + `|[^\s,]+)`)
)

// presets are the commands that may be run, as far as the schema lists them.
func (r *reading) presets() []string {
	return schemaOf(r.tools["run_command"]).property("name").names()
}

// preset finds the command with a name, or one that has it in its own. Without a list every name is taken.
func (r *reading) preset(name string) string {
	list := r.presets()
	if list == nil {
		return name
	}
	for _, p := range list {
		if strings.EqualFold(p, name) {
			return p
		}
	}
	i := slices.IndexFunc(list, func(p string) bool { return strings.Contains(strings.ToLower(p), strings.ToLower(name)) })
	if i < 0 {
		return ""
	}
	return list[i]
}

// running runs a command by its name.
func (r *reading) running(name string, parameters map[string]any) act {
	preset := name
	if r.offers("run_command") {
		preset = r.preset(name)
	}
	if preset == "" {
		list := "none"
		if all := r.presets(); len(all) > 0 {
			list = strings.Join(all, ", ")
		}
		return func(t *turn) {
			t.fail("There is no command \"%s\" here that I may run. There is: %s.", oneLine(name), list)
		}
	}
	arguments := map[string]any{"name": preset}
	for key, value := range parameters {
		arguments[key] = value
	}
	return func(t *turn) { t.perform("run_command", arguments) }
}

func waitIntent(r *reading, c clause) act {
	if waitBare.MatchString(c.plain) {
		return saying("How long? Say it as \"wait\" with a number of seconds.")
	}
	m := groups(waitWords, c.plain)
	if m == nil {
		return nil
	}
	unit := map[byte]int{'s': 1, 'm': 60, 'h': 3600}[strings.ToLower(m["unit"])[0]]
	seconds := number(m["n"]) * unit
	if strings.EqualFold(m["n"], "half a") {
		seconds = unit / 2
	}
	return r.running("wait", map[string]any{"seconds": r.parameter("seconds", strconv.Itoa(seconds))})
}

// parameter writes a command's parameter as its schema wants it: numbers as numbers unless it says text. Seconds
// are a number if nothing is said of them.
func (r *reading) parameter(name, value string) any {
	kind, _ := schemaOf(r.tools["run_command"]).property(name).Type.(string)
	n, err := strconv.Atoi(value)
	if err == nil && (kind == "integer" || kind == "number" || kind == "" && name == "seconds") {
		return n
	}
	return value
}

func diskIntent(r *reading, c clause) act {
	if !diskWords.MatchString(c.plain) {
		return nil
	}
	name := "disk"
	if r.preset(name) == "" && r.preset("df") != "" {
		name = "df"
	}
	return r.running(name, nil)
}

func commandIntent(r *reading, c clause) act {
	m := groups(runWords, c.plain)
	if m == nil {
		return nil
	}
	known := r.presets() != nil && r.preset(unquote(m["name"])) != ""
	if !known && !strings.EqualFold(m["verb"], "run") && !strings.EqualFold(m["verb"], "execute") {
		return nil // "call Bob" is no command
	}
	parameters := map[string]any{}
	rest := strings.TrimPrefix(m["rest"], "with ")
	for _, pair := range pairs.FindAllStringSubmatch(rest, -1) {
		parameters[pair[1]] = r.parameter(pair[1], unquote(pair[2]))
	}
	delete(parameters, "name")
	return r.running(unquote(m["name"]), parameters)
}
