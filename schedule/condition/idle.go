package condition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nudge/schedule"
)

// idle is true of a person who has said nothing for a while.
type idle struct {
	person string
	after  time.Duration
	silent func(ctx context.Context, person string) (time.Time, error)
	now    func() time.Time
}

func newIdle(spec schedule.Spec, env Env) (schedule.Condition, error) {
	if env.Silent == nil {
		return nil, errors.New("heartbeat.condition.kind: idle cannot be used here: nobody knows when people spoke")
	}
	return idle{after: spec.After, silent: env.Silent, now: env.Now}, nil
}

func (i idle) Check(ctx context.Context, _ string) (schedule.Finding, error) {
	if err := ctx.Err(); err != nil {
		return schedule.Finding{}, fmt.Errorf("check idle: %w", err)
	}
	since, err := i.silent(ctx, i.person)
	if err != nil {
		return schedule.Finding{}, fmt.Errorf("check idle: %w", err)
	}
	silence := i.now().Sub(since)
	said := fmt.Sprintf("nothing was said since %s, for %s", since.UTC().Format(time.RFC3339), silence.Round(time.Second))
	return schedule.Finding{True: silence >= i.after, Evidence: said, Public: true}, nil
}
