// Package heartbeat has the tools with which a conversation makes and ends heartbeats.
//
// Making one always shows a card, which says in words when it falls due, the next three instants in the person's own time,
// and what may not be as it was meant; a run that a heartbeat woke can make none. A reminder is a heartbeat of one instant
// whose words are fixed, so that it needs no model when it comes.
package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// Config is what the tools need.
type Config struct {
	Store memory.Store
	// Budget is what the card holds the times against: quiet hours.
	Budget schedule.Budget
	// Changed is called after a heartbeat was made or ended.
	Changed func()
	// Checks are what conditions can look at besides files and silence.
	Checks Checks
}

// Tools returns create_heartbeat and stop_heartbeat.
func Tools(c Config) []agent.Tool {
	return []agent.Tool{c.create(), c.stop()}
}

func (c Config) stop() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "stop_heartbeat",
			Description: "End a heartbeat that was made in a conversation.",
			Schema:      json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`),
			Effect:      agent.Idempotent,
			Labels:      agent.Labels{Lasting: true},
		},
		Useful: func(ctx context.Context, person agent.PersonID, _ string) bool {
			has := false
			err := c.Store.View(ctx, func(tx memory.Tx) (err error) {
				has, err = schedule.HasMade(tx, string(person))
				return err
			})
			return err != nil || has
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
				Commit: func(tx memory.Tx) error { return schedule.End(tx, args.Name, "stopped in a conversation", time.Now()) },
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
