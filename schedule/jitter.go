package schedule

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// spreadOver is the time over which a tick's people are woken: the most that the clock allows, and a tenth of the time to
// the next tick. What wakes but once, as a reminder does, comes on the dot.
func (t *tick) spreadOver(most time.Duration) time.Duration {
	if most <= 0 || t.heartbeat.MaxTicks == 1 {
		return 0
	}
	timed, err := t.heartbeat.timed(t.zone)
	if err != nil || !timed.Once().IsZero() {
		return 0
	}
	if next := timed.Next(t.at); !next.IsZero() {
		most = min(most, next.Sub(t.at)/10)
	}
	return most
}

// jitter is how long after the tick a person is woken: always the same share of the spread for the same heartbeat and person.
func (t *tick) jitter(person string) time.Duration {
	if t.spread <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(t.heartbeat.Name + "\x00" + person))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(t.spread))
}

// wakeAt is the instant at which a person is woken: at the tick and its jitter, or now where that is past.
func (c *Clock) wakeAt(t *tick, person string) time.Time {
	at, now := t.at.Add(t.jitter(person)), c.wall()
	if at.Before(now) {
		return now
	}
	return at
}

// inTurn are people in the order in which they are woken, with their instants.
func (c *Clock) inTurn(t *tick, people []string) []turn {
	turns := make([]turn, len(people))
	for i, person := range people {
		turns[i] = turn{person, c.wakeAt(t, person)}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.person, b.person)) })
	return turns
}

// turn is when a person is woken.
type turn struct {
	person string
	at     time.Time
}

// until waits for an instant of the wall clock; false when ctx ends before.
func (c *Clock) until(ctx context.Context, at time.Time) bool {
	wait := at.Sub(c.wall())
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
