package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nudge/agent"
)

// Checks are the presets that a heartbeat can be told to check with: those that only read. It may be used concurrently.
type Checks struct{ presets map[string]prepared }

// NewChecks makes checks of those among some presets that can be ones. A preset in a box is none: where the box cannot be
// made, its exit status says the same as the program's for false. A preset that cannot be right is an error that names it.
func NewChecks(presets []Preset) (Checks, error) {
	c := Checks{map[string]prepared{}}
	for _, preset := range presets {
		p, err := prepare(preset)
		if err != nil {
			return Checks{}, err
		}
		if p.Effect == agent.Read && !p.Box {
			c.presets[p.Name] = p
		}
	}
	return c, nil
}

// Names lists the checks, in a fixed order.
func (c Checks) Names() []string { return slices.Sorted(maps.Keys(c.presets)) }

// Parameters reports whether some of the checks have parameters.
func (c Checks) Parameters() bool {
	return slices.ContainsFunc(c.Names(), func(name string) bool { return len(c.presets[name].Parameters) > 0 })
}

// Find gives a check's program with values in the places of its parameters, and how long it may take. The error says in
// one sentence what there is instead, or what is wrong with the values.
func (c Checks) Find(name string, values map[string]string) (argv []string, limit time.Duration, err error) {
	p, known := c.presets[name]
	switch {
	case !known && len(c.presets) == 0:
		return nil, 0, fmt.Errorf("there is no command %q that only reads, nor any other", name)
	case !known:
		return nil, 0, fmt.Errorf("there is no command %q that only reads; there are %s", name, strings.Join(c.Names(), ", "))
	}
	argv, err = p.argv(values)
	return argv, p.Timeout, err
}

// In is Find for programs that run for a person where [New] runs them.
func (c Checks) In(at Place, person agent.PersonID) func(name string, values map[string]string) (argv []string, limit time.Duration, err error) {
	return func(name string, values map[string]string) (argv []string, limit time.Duration, err error) {
		argv, limit, err = c.Find(name, values)
		if err != nil {
			return nil, 0, err
		}
		p := c.presets[name]
		if p.Obeys() && at.Outside != nil && at.Outside(person) {
			return nil, 0, fmt.Errorf("the command %q does not look while files are in the workspace that others may have written: it may do what they say, and nobody is asked", name)
		}
		dir, err := at.Dir(person)
		if err == nil {
			err = p.stays(argv, values, dir, at.Closed)
		}
		return argv, limit, err
	}
}

// Policy says who must agree before the command of that name runs; agent.PolicyOwner for one that is not known.
func (c Checks) Policy(name string) agent.Policy {
	if p, known := c.presets[name]; known {
		return p.Policy
	}
	return agent.PolicyOwner
}
