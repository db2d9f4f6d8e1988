package heartbeat

import (
	"encoding/json"
	"strings"

	"nudge/agent"
	"nudge/schedule"
)

// Checks say what the conditions of heartbeats can look at that are made in a conversation, besides files and silence. The
// zero value is nothing.
type Checks struct {
	Commands   []string // the names of prepared commands that only read
	Parameters bool     // some of those have parameters
	Addresses  bool     // pages of the public internet
	// Policy says who must agree to what a condition looks at: agent.PolicyOwner and PolicySecond count, since the person
	// always must. Nil asks nobody else.
	Policy func(schedule.Spec) agent.Policy
	// Build makes the condition of a heartbeat as the clock will, so that what the clock would refuse is refused before
	// anybody is asked. Nil leaves it to the clock.
	Build func(schedule.Heartbeat) (schedule.Condition, error)
}

// schema is that of a condition. What cannot be looked at is not in it.
func (c Checks) schema() string {
	kinds, keys := []string{"always", "file", "idle"}, []string{
		`"path":{"type":"string"}`, `"test":{"enum":["exists","missing","changed","grows"]}`, `"on":{"enum":["change","true"]}`, `"after":{"type":"string"}`,
	}
	if c.Addresses {
		kinds = append(kinds, "http")
		keys = append(keys, `"url":{"type":"string"}`, `"select":{"type":"string"}`, `"status":{"type":"integer"}`)
	}
	if len(c.Commands) > 0 {
		kinds = append(kinds, "command")
		keys = append(keys, `"command":`+enum(c.Commands))
	}
	if c.Parameters {
		keys = append(keys, `"parameters":{"type":"object","additionalProperties":{"type":"string"}}`)
	}
	return `{"type":"object","properties":{"kind":` + enum(kinds) + `,` + strings.Join(keys, ",") + `},"required":["kind"],"additionalProperties":false}`
}

func enum(values []string) string {
	list, _ := json.Marshal(values) // texts always can be
	return `{"enum":` + string(list) + `}`
}

// words tell the model the kinds in short.
func (c Checks) words() string {
	words := `always, a workspace file, idle after "7d"`
	if c.Addresses {
		words += ", a url's change (select: a path into its JSON) or status"
	}
	if len(c.Commands) > 0 {
		words += ", a command's exit 0"
	}
	return words
}

// policy says who must agree to a heartbeat: its person, or who is stricter.
func (c Checks) policy(spec schedule.Spec) agent.Policy {
	if c.Policy != nil {
		if policy := c.Policy(spec); policy == agent.PolicyOwner || policy == agent.PolicySecond {
			return policy
		}
	}
	return agent.PolicyAsk
}

// check refuses a condition that cannot be built.
func (c Checks) check(h schedule.Heartbeat) error {
	if c.Build == nil {
		return nil
	}
	_, err := c.Build(h)
	return err
}

// labels of a call: what an address asks for is told to its host, at every look.
func labels(in agent.Invocation) agent.Labels {
	var args arguments
	err := in.Decode(&args)
	return agent.Labels{Lasting: true, WayOut: err != nil || args.Condition.Kind == "http"}
}
