package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nudge/agent"
	"nudge/agent/tool/workspace"
)

// open are the parameters of a call that a rule may leave open. The operator has declared a pattern or choices for each, the call
// gives a value for it, and no argument of the program in which it stands names something in the workspace: what lies there is
// part of the digest, and another value may name something else. depends is the digest without the arguments in which an open
// parameter stands. When a value comes to name something later, its parameter is not open any more, and what it names
// is in depends.
func (r runner) open(in agent.Invocation) (open []agent.Opening, depends string) {
	p, argv, err := r.read(in)
	if err != nil {
		return nil, ""
	}
	var given map[string]string
	if json.Unmarshal(in.Arguments, &given) != nil {
		return nil, ""
	}
	seen, err := r.look(in, p, argv)
	if err != nil || seen.large != "" {
		return nil, ""
	}
	prints := seen.prints
	closed := p.closed(prints)
	for _, name := range slices.Sorted(maps.Keys(p.Parameters)) {
		_, isGiven := given[name]
		if within := p.Parameters[name].within(); within != "" && isGiven && !closed[name] {
			open = append(open, agent.Opening{Name: name, Within: within})
		}
	}
	parts := []string{p.digest}
	for i, part := range p.Run {
		if !slices.ContainsFunc(open, func(o agent.Opening) bool { return strings.Contains(part, "{"+o.Name+"}") }) {
			parts = append(parts, fmt.Sprintf("%d:%s", i, strings.Join(prints[i], ",")))
		}
	}
	return open, strings.Join(parts, " ")
}

// closed are the parameters that stand in an argument which names something. prints are the fingerprints of what each
// argument names.
func (p prepared) closed(prints [][]string) map[string]bool {
	closed := map[string]bool{}
	for i, part := range p.Run {
		if !slices.ContainsFunc(prints[i], func(print string) bool { return print != workspace.Absent }) {
			continue
		}
		for _, place := range placeholder.FindAllString(part, -1) {
			closed[strings.Trim(place, "{}")] = true
		}
	}
	return closed
}

// within says what the operator declared of a parameter's values; "" when that is nothing.
func (p Parameter) within() string {
	switch {
	case p.Choices != nil:
		return "of " + listed(p.Choices)
	case p.Pattern == "":
		return ""
	case plainPattern.MatchString(p.Pattern):
		return "that matches " + p.Pattern
	}
	return "that matches " + strconv.Quote(p.Pattern)
}

// plainPattern is a pattern that can be read as it is written: on a line, with nothing in it that is not seen.
var plainPattern = regexp.MustCompile(`^[\pL\pN\pP\pS]+( [\pL\pN\pP\pS]+)*$`)
