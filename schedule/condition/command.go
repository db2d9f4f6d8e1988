package condition

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"nudge/schedule"
	"nudge/schedule/process"
)

// command is true when a program ends with 0 and false when it ends with 1.
type command struct {
	name  string // for people
	argv  []string
	dir   string
	limit time.Duration // 0 where the check's own time is the only bound
	run   func(ctx context.Context, spec process.Spec) (process.Outcome, error)
}

func newCommand(spec schedule.Spec, env Env) (schedule.Condition, error) {
	c := command{argv: spec.Run, dir: env.Dir, run: env.Run}
	switch {
	case spec.Command == "" && env.Confined:
		return nil, errors.New("heartbeat.condition.run: a program can be set in the config only")
	case spec.Command == "":
		c.name = filepath.Base(spec.Run[0])
		return c, nil
	case env.Preset == nil:
		return nil, errors.New("heartbeat.condition.command: there are no prepared commands here")
	}
	var err error
	if c.argv, c.limit, err = env.Preset(spec.Command, spec.Parameters); err != nil {
		return nil, fmt.Errorf("heartbeat.condition.command: %w", err)
	}
	c.name = spec.Command
	return c, nil
}

func (c command) Check(ctx context.Context, _ string) (schedule.Finding, error) {
	if c.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit)
		defer cancel()
	}
	outcome, err := c.run(ctx, process.Spec{Argv: c.argv, Dir: c.dir, Limit: schedule.MaxEvidence})
	if err != nil {
		return schedule.Finding{}, fmt.Errorf("check a command: %w", err)
	}
	switch {
	case outcome.TimedOut:
		return schedule.Finding{}, fmt.Errorf("check command %s: it took too long and was killed", c.name)
	case outcome.Cancelled:
		return schedule.Finding{}, fmt.Errorf("check command %s: it was stopped: %w", c.name, context.Canceled)
	case outcome.Signal != "":
		return schedule.Finding{}, fmt.Errorf("check command %s: a signal ended it: %s", c.name, outcome.Signal)
	case outcome.Exit != 0 && outcome.Exit != 1:
		return schedule.Finding{}, fmt.Errorf("check command %s: exit status %d is neither 0 (true) nor 1 (false)", c.name, outcome.Exit)
	}
	return schedule.Finding{True: outcome.Exit == 0, Evidence: evidence(string(outcome.Output))}, nil
}
