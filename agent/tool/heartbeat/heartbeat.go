// Package heartbeat has the tools with which a conversation makes and ends heartbeats.
//
// Making one always shows a card, which tells the next three instants in the person's own time; a run that a
// heartbeat woke can make none.
package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// conditionSchema are the conditions that can be made in a conversation: those that run nothing.
const conditionSchema = `{"type":"object","properties":{"kind":{"enum":["always","file"]},"path":{"type":"string"},` +
	`"test":{"enum":["exists","missing","changed","grows"]},"on":{"enum":["change","true"]}},"required":["kind"],"additionalProperties":false}`

// Config is what the tools need.
type Config struct {
	Store memory.Store
	// Changed is called after a heartbeat was made or ended.
	Changed func()
}

// Tools returns create_heartbeat and stop_heartbeat.
func Tools(c Config) []agent.Tool {
	return []agent.Tool{c.create(), c.stop()}
}

type arguments struct {
	Name      string `json:"name"`
	Cron      string `json:"cron"`
	Timezone  string `json:"timezone"`
	Prompt    string `json:"prompt"`
	Until     string `json:"until"`
	Condition struct {
		Kind, Path, Test, On string
	} `json:"condition"`
}

func (c Config) create() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name: "create_heartbeat",
			Description: "Wake yourself for the person on a schedule: five cron fields or \"@every 5m\", a prompt to yourself, and the check that says whether to wake " +
				"(always, or a file of the workspace).",
			Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","pattern":"^[a-z0-9][a-z0-9_-]{0,40}$"},"cron":{"type":"string"},` +
				`"timezone":{"type":"string"},"prompt":{"type":"string","minLength":1},"condition":` + conditionSchema + `,"until":{"type":"string","format":"date-time"}},` +
				`"required":["name","cron","prompt","condition"],"additionalProperties":false}`),
			Effect: agent.Idempotent,
			Policy: agent.PolicyAsk,
			Place:  agent.WithPerson,
			// The card shows when it would wake, which is different at each call.
			EachTime: true,
		},
		Judge: func(in agent.Invocation) (agent.Policy, string, error) {
			h, _, err := c.read(in)
			if err == nil {
				_, err = c.replaced(context.Background(), h)
			}
			return agent.PolicyAsk, "", err
		},
		Card: func(in agent.Invocation) string {
			h, plan, err := c.read(in)
			if err != nil {
				return err.Error()
			}
			lines := append([]string{"The next times:"}, plan.NextThree(time.Now())...)
			if old, err := c.replaced(context.Background(), h); err == nil && old != nil {
				lines = append(lines, fmt.Sprintf("It replaces the heartbeat of that name, which is %s: %s", old.Cron, old.Prompt))
			}
			return strings.Join(append(lines, schedule.Warnings(h.Cron)...), "\n")
		},
		Run: func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			h, plan, err := c.read(in)
			if err == nil {
				_, err = c.replaced(ctx, h) // somebody may have taken the name while the card waited
			}
			if err != nil {
				return agent.Result{}, err
			}
			return agent.Result{
				Text:   fmt.Sprintf("heartbeat %s is made; the next times are %s", h.Name, strings.Join(plan.NextThree(time.Now()), ", ")),
				Commit: func(tx memory.Tx) error { return schedule.Save(tx, h, time.Now()) },
				After:  c.Changed,
			}, nil
		},
	}
}

// read makes a heartbeat of a call's arguments. Its error is for the model.
func (c Config) read(in agent.Invocation) (schedule.Heartbeat, schedule.Schedule, error) {
	var none schedule.Schedule
	var args arguments
	if err := in.Decode(&args); err != nil {
		return schedule.Heartbeat{}, none, err
	}
	h := schedule.Heartbeat{
		Name: args.Name, Cron: args.Cron, Zone: args.Timezone, Prompt: args.Prompt, For: []string{string(in.Person.ID)},
		By:        string(in.Person.ID),
		Condition: schedule.Spec{Kind: args.Condition.Kind, Path: args.Condition.Path, Test: args.Condition.Test, On: args.Condition.On},
	}
	if h.Zone == "" {
		h.Zone = in.Person.Zone
	}
	if h.Condition.Kind == "file" && !filepath.IsLocal(args.Condition.Path) {
		return h, none, errors.New("condition.path must name a file in the workspace")
	}
	if args.Until != "" {
		until, err := time.Parse(time.RFC3339, args.Until)
		if err != nil || until.Before(time.Now()) {
			return h, none, errors.New("until must be an instant in the future, such as 2027-01-31T18:00:00+01:00")
		}
		h.Until = until
	}
	if err := h.Validate(); err != nil {
		return h, none, err
	}
	plan, err := schedule.ParseCron(h.Cron, h.Zone)
	return h, plan, err
}

// replaced is the heartbeat of the person's that a new one would take the place of; nil if there is none. The error, for
// a name that somebody else's bears, is for the model.
func (c Config) replaced(ctx context.Context, h schedule.Heartbeat) (*schedule.Heartbeat, error) {
	var old schedule.Heartbeat
	err := c.Store.View(ctx, func(tx memory.Tx) (err error) {
		old, err = schedule.Load(tx, h.Name)
		return err
	})
	switch {
	case errors.Is(err, schedule.ErrNoHeartbeat):
		return nil, nil
	case err != nil:
		return nil, errors.New("the heartbeats cannot be read now")
	case old.Ended != "":
		return nil, nil
	case old.By != h.By:
		return nil, fmt.Errorf("there is a heartbeat %s already that is not theirs; take another name", h.Name)
	}
	return &old, nil
}

func (c Config) stop() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "stop_heartbeat",
			Description: "End a heartbeat that was made in a conversation.",
			Schema:      json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`),
			Effect:      agent.Idempotent,
		},
		Useful: func(ctx context.Context, person agent.PersonID, _ string) bool {
			mine, _, err := c.made(ctx, person, "")
			return err != nil || len(mine) > 0
		},
		Run: func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			var args struct{ Name string }
			if err := in.Decode(&args); err != nil {
				return agent.Result{}, err
			}
			if err := c.mayStop(ctx, in.Person.ID, args.Name); err != nil {
				return agent.Result{}, err
			}
			return agent.Result{
				Text:   fmt.Sprintf("heartbeat %s has ended", args.Name),
				Commit: func(tx memory.Tx) error { return schedule.End(tx, args.Name, "stopped in a conversation") },
				After:  c.Changed,
			}, nil
		},
	}
}

// mayStop refuses to end a heartbeat that is not the person's.
func (c Config) mayStop(ctx context.Context, person agent.PersonID, name string) error {
	mine, found, err := c.made(ctx, person, name)
	switch {
	case err != nil:
		return errors.New("the heartbeats cannot be read now")
	case found:
		return nil
	case mine == nil:
		return fmt.Errorf("there is no heartbeat %q of theirs, nor any other", name)
	}
	return fmt.Errorf("there is no heartbeat %q of theirs; theirs are %s", name, strings.Join(mine, ", "))
}

// made are the heartbeats that a person made and that have not ended, and whether one of a name is among them.
func (c Config) made(ctx context.Context, person agent.PersonID, name string) (mine []string, found bool, err error) {
	err = c.Store.View(ctx, func(tx memory.Tx) error {
		mine, found = nil, false
		all, err := schedule.List(tx)
		for _, h := range all {
			if h.By == string(person) && h.Ended == "" {
				mine = append(mine, h.Name)
				found = found || h.Name == name
			}
		}
		return err
	})
	return mine, found, err
}
