package schedule

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"nudge/memory"
)

// A tick is claimed in one transaction and has its outcome in another. One that is cut off in between, when the program stops or
// is killed, is left open: its claim is in the store and nobody carries it out. The next start brings it back as if it had not been
// claimed: it comes, is too late or makes way for a later one as any missed tick does. That its runs may have begun is all that
// makes it another: these are taken on, whatever has become of the condition and was said of being spoken to.

const stoppedReason = "the program stopped before the tick was over"

// recover brings back the ticks that were left open, of all heartbeats: whoever serves their people takes them up.
func (c *Clock) recover(ctx context.Context) error {
	open, err := c.leftOpen(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	err = c.config.Store.Update(ctx, func(tx memory.Tx) error {
		for _, name := range open {
			if err := c.recoverOne(tx, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("bring back the ticks that were left open: %w", err)
	}
	return nil
}

// leftOpen lists the heartbeats that have an open tick.
func (c *Clock) leftOpen(ctx context.Context) (names []string, err error) {
	err = c.config.Store.View(ctx, func(tx memory.Tx) error {
		names = nil
		return tableStates.Table(tx).Scan("", func(name string, value []byte) error {
			if bytes.Contains(value, []byte(`"claim":`)) {
				names = append(names, name)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for ticks that were left open: %w", err)
	}
	return names, nil
}

func (c *Clock) recoverOne(tx memory.Tx, name string) error {
	h, found, err := find(tx, name)
	if err != nil || !found {
		return err
	}
	state, err := loadState(tx, h)
	if err != nil {
		return err
	}
	now := c.wall()
	for zoneName, zone := range state.Zones {
		switch {
		case zone.Claim.IsZero() || c.isGoing(heartbeatKey(name, zoneName)):
		case c.config.Troubled:
			err = state.leave(tx, name, zoneName, "; nothing that was cut off is taken up, since the program stops too often", now)
		case h.resting() != "" || zone.Row == "":
			err = state.leave(tx, name, zoneName, "", now)
		default:
			zone.Over = zone.Over && zone.Row != heartbeatKey(name, zoneName)
			err = tx.Due().Put(memory.DueRow{Key: zone.Row, At: zone.Claim})
		}
		if err != nil {
			return err
		}
	}
	if state.finished() {
		if err := End(tx, name, state.overReason(h), now); err != nil {
			return err
		}
	}
	return state.save(tx, name)
}

// wasCutOff reports whether the row that is claimed brings back a tick that was cut off.
func (c *claiming) wasCutOff(zone *Zone) bool {
	return !c.isGoing(c.row.zone) && !zone.Claim.IsZero() && zone.Claim.Equal(c.row.At) && zone.Row == c.row.Key
}

// leave records of a zone's tick that was left open that nobody knows how it ended, and why it is not taken up.
func (c *claiming) leave(zone string, z *Zone, why string) error {
	if z.Claim.IsZero() || c.isGoing(zone) {
		return nil
	}
	return c.state.leave(c.tx, c.row.name, zone, why, c.now)
}

func (s *State) leave(tx memory.Tx, name, zone, why string, now time.Time) error {
	z := s.Zones[zone]
	err := s.record(tx, name, Outcome{Tick: z.Claim, Zone: zone, Word: Unknown, Reason: stoppedReason + why}, now)
	z.endClaim()
	return err
}

// keepOut lets no tick that is open come back once it is cut off, and reports whether one is.
func (s *State) keepOut() (any bool) {
	for _, zone := range s.Zones {
		any = any || zone.Row != ""
		zone.Row = ""
	}
	return any
}

// hasBegun reports whether runs of the tick, or of a part, may have begun before it was cut off.
func (t *tick) hasBegun() bool {
	begun := t.before.Begun
	for _, part := range t.parts {
		begun = begun || part.before.Begun
	}
	return begun
}

// goesOn is what was found by a tick whose runs may have begun of an earlier state: they are about that one, and what has changed
// since is found again.
func (t *tick) goesOn(f Finding) Finding {
	if t.before.Begun && f.True && f.State != "" {
		f.State = t.before.Found
	}
	return f
}

// sleeps is the verdict of a tick that wakes nobody. Whether it did before it was cut off is not known.
func (t *tick) sleeps(f Finding, reason string) verdict {
	v := asleep(f, reason)
	if t.before.Begun {
		v.word = Unknown
	}
	return v
}
