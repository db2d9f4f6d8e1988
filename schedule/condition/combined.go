package condition

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"nudge/schedule"
)

// combined is true when all, or when any, of its parts are.
//
// When one of the parts watches for a change, the whole does: its State holds those of the parts. A part that is just
// true or false then counts in an any when it becomes true, unless every true tick is to wake. A change that one
// part of an all saw is held until the others are true as well.
type combined struct {
	kind  string
	parts []schedule.Condition
	level bool
}

func newCombined(spec schedule.Spec, env Env, level bool) (schedule.Condition, error) {
	c := combined{kind: spec.Kind, level: level}
	for i, inner := range spec.Of {
		part, err := build(inner, env, level)
		if err != nil {
			return nil, fmt.Errorf("heartbeat.condition.of[%d]: %w", i, err)
		}
		c.parts = append(c.parts, part)
	}
	return c, nil
}

func (c combined) Check(ctx context.Context, previous string) (schedule.Finding, error) {
	before := c.split(previous)
	found := make([]schedule.Finding, len(c.parts))
	watches := false
	var seen []string
	public := true
	for i, part := range c.parts {
		finding, err := part.Check(ctx, before[i])
		if err != nil {
			return schedule.Finding{}, fmt.Errorf("check %s: %w", c.kind, err)
		}
		found[i] = finding
		watches = watches || finding.State != ""
		if finding.True && finding.Evidence != "" {
			seen, public = append(seen, finding.Evidence), public && finding.Public
		}
	}
	whole := schedule.Finding{Evidence: evidence(strings.Join(seen, "\n")), Public: public && len(seen) > 0}
	if !watches {
		whole.True = c.holds(found)
		return whole, nil
	}
	return c.watched(whole, found, before)
}

func (c combined) holds(found []schedule.Finding) bool {
	for _, finding := range found {
		if finding.True != (c.kind == "all") {
			return finding.True
		}
	}
	return c.kind == "all"
}

// isTrue and isFalse stand for a part that has no State of its own.
const (
	isTrue  = "true"
	isFalse = "false"
)

func (c combined) watched(whole schedule.Finding, found []schedule.Finding, before []string) (schedule.Finding, error) {
	states := make([]string, len(found))
	for i := range found {
		states[i] = found[i].State
		if states[i] != "" {
			continue
		}
		states[i] = isFalse
		if found[i].True {
			states[i] = isTrue
		}
		if c.kind == "any" && !c.level && before[i] == isTrue {
			found[i].True = false
		}
	}
	whole.True = c.holds(found)
	for i := range found {
		if c.kind == "all" && !whole.True && found[i].State != "" && before[i] != "" && found[i].True {
			states[i] = before[i]
		}
	}
	state, err := json.Marshal(states)
	if err != nil {
		return schedule.Finding{}, fmt.Errorf("check %s: write its state: %w", c.kind, err)
	}
	whole.State = string(state)
	return whole, nil
}

// split gives the states of the parts; none is known when the description was another one.
func (c combined) split(previous string) []string {
	var states []string
	if err := json.Unmarshal([]byte(previous), &states); err != nil || len(states) != len(c.parts) {
		return make([]string, len(c.parts))
	}
	return states
}
