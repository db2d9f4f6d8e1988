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
	hold  func(ctx context.Context) (leave func(), err error) // nil for none
	again func() (argv []string, err error)                   // looks the command up anew; nil where nothing can have changed
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
	c.name, c.hold = spec.Command, env.Hold
	c.again = func() ([]string, error) {
		argv, _, err := env.Preset(spec.Command, spec.Parameters)
		return argv, err
	}
	return c, nil
}

// ask runs the program, with what it was found to be.
func (c command) ask(ctx context.Context) (outcome process.Outcome, err error) {
	argv := c.argv
	if c.hold != nil {
		leave, err := c.hold(ctx)
		if err != nil {
			return outcome, err
		}
		defer leave()
		if argv, err = c.again(); err != nil {
			return outcome, err
		}
	}
	return c.run(ctx, process.Spec{Argv: argv, Dir: c.dir, Limit: schedule.MaxEvidence})
}

func (c command) Check(ctx context.Context, _ string) (schedule.Finding, error) {
	if c.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit)
		defer cancel()
	}
	outcome, err := c.ask(ctx)
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
