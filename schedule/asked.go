package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"nudge/memory"
)

// A person can ask for a tick at once. It is checked like any other and wakes those who asked, if the condition is true, and
// nobody else; nothing holds it back, since it is not unasked, and nothing that is remembered of the condition changes by it.

// ErrResting is wrapped by the error of [Ask] for a heartbeat that is paused or has ended.
var ErrResting = errors.New("it takes no ticks")

// Ask lets a heartbeat take a tick at once for one of its people, who live in a zone, "" when that is unknown. A clock that
// runs must be told by [Clock.Look] after the transaction.
func Ask(tx memory.Tx, name, person, zone string, now time.Time) error {
	h, err := Load(tx, name)
	switch {
	case err != nil:
		return err
	case h.resting() != "":
		return fmt.Errorf("run heartbeat %s: %w: it has %s", name, ErrResting, h.resting())
	case !slices.Contains(h.For, person):
		return fmt.Errorf("run heartbeat %s: it does not wake %s", name, person)
	}
	state, err := loadState(tx, h)
	if err != nil {
		return err
	}
	h.For = []string{person}
	for own := range h.byZone(func(string) string { return zone }) {
		z := state.Zones[own]
		if z == nil { // the clock has not met it yet
			z = &Zone{}
			state.Zones[own] = z
		}
		if !slices.Contains(z.Asked, person) {
			z.Asked = append(z.Asked, person)
		}
		if err := tx.Due().Put(memory.DueRow{Key: retryKey(name, own), At: now.UTC()}); err != nil {
			return fmt.Errorf("run heartbeat %s: %w", name, err)
		}
	}
	return state.save(tx, name)
}

// takeAsked carries out a tick that was asked for.
func (c *Clock) takeAsked(ctx context.Context, t *tick) verdict {
	if t.parts != nil {
		return c.takeAskedParts(ctx, t)
	}
	finding, err := c.check(ctx, t)
	switch {
	case err != nil:
		return verdict{word: Failed, reason: clip("asked for: "+err.Error(), maxReason)}
	case !finding.True:
		return verdict{word: Slept, reason: "asked for by " + strings.Join(t.people, ", ") + ": the condition was false"}
	}
	t.before.Episode = t.at.Format(time.RFC3339Nano)
	v := t.sumUp(round{finding: finding, runs: c.wakeAll(ctx, t, t.people, finding), at: c.wall()})
	v.change = nil
	if v.word == Woke {
		v.reason = clip("asked for: woke "+strings.Join(v.well, ", "), maxReason)
	}
	return v
}

// takeAskedParts does it for each who asked, where the condition is about each by themselves.
func (c *Clock) takeAskedParts(ctx context.Context, t *tick) verdict {
	verdicts := make([]verdict, len(t.parts))
	var all sync.WaitGroup
	for i, part := range t.parts {
		all.Go(func() { verdicts[i] = c.takeAsked(ctx, part) })
	}
	all.Wait()
	v := t.together(verdicts)
	v.change = nil
	return v
}
