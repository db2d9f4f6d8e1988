package schedule

import (
	"fmt"
	"slices"
	"time"

	"nudge/memory"
)

// A heartbeat's own row in the due index brings its ticks in their turn. A second row brings one out of turn: for a failed run to
// be tried again, for what a snooze held back, and for people who asked for a tick. What it is to bring stays in the zone until
// the tick that does has an outcome, so that nothing of it is lost with a tick that is cut off or is not taken.

// tick claims a heartbeat's own tick, the last one that is due: those before it were missed.
func (c *claiming) tick(zone *Zone) (*tick, error) {
	h := c.row.heartbeat
	timed, err := h.timed(c.row.zone)
	if err != nil {
		return nil, c.end(err.Error())
	}
	last := timed.latest(c.row.At, c.now)
	if err := c.advance(c.row.zone, zone, timed.Next(last)); err != nil {
		return nil, err
	}
	again := c.wasCutOff(zone)
	if last.After(c.row.At) && !again {
		reason := fmt.Sprintf("missed: the clock did not run until after %s", inWords(last))
		if err := c.record(c.row.At, Slept, reason); err != nil {
			return nil, err
		}
	}
	again = again && last.Equal(c.row.At)
	late := c.now.Sub(last)
	switch {
	case c.isGoing(c.row.zone):
		return nil, c.record(last, Dropped, "overlap: the tick before was still going on")
	case h.isOver(last):
		return nil, c.passBy(zone, "; it has ended since")
	case late <= h.lateness():
		return c.takeTurn(zone, last, again)
	case again:
		return nil, c.passBy(zone, fmt.Sprintf("; it is too late to take it up: %s", late.Round(time.Second)))
	}
	if err := c.passBy(zone, laterDue); err != nil {
		return nil, err
	}
	return nil, c.record(last, Slept, fmt.Sprintf("missed: %s late", late.Round(time.Second)))
}

// laterDue is why a tick is not taken up that was cut off.
const laterDue = "; a later one is due"

// keepAgain puts the row back of what comes out of turn in a zone, after the heartbeat was saved.
func (c *claiming) keepAgain(zone string, z *Zone) error {
	again := z.again()
	switch {
	case c.isGoing(zone) || again.IsZero() && len(z.Asked) == 0:
		return nil // the end of what is going on puts it
	case len(z.Asked) > 0:
		again = c.now
	}
	return c.tx.Due().Put(memory.DueRow{Key: retryKey(c.row.name, zone), At: latest(again, c.now)})
}

// takeTurn opens a tick in turn. What comes out of turn by now comes with it, but for what people asked for.
func (c *claiming) takeTurn(zone *Zone, at time.Time, again bool) (*tick, error) {
	if !again {
		if err := c.leave(c.row.zone, zone, laterDue); err != nil {
			return nil, err
		}
	}
	// Its row may be due in the same transaction; the end of the tick puts it back for what remains.
	if len(zone.Asked) > 0 || zone.isDue(c.now) {
		if err := c.tx.Due().Remove(retryKey(c.row.name, c.row.zone)); err != nil {
			return nil, err
		}
	}
	return c.open(zone, at, false, nil), nil
}

// passBy goes on from a tick that is not taken. Of one that was cut off in turn it is then recorded that nobody knows how it ended;
// what comes out of turn is still to come.
func (c *claiming) passBy(zone *Zone, why string) error {
	row := memory.DueRow{Key: retryKey(c.row.name, c.row.zone), At: latest(zone.again(), c.now)}
	switch {
	case zone.Row == row.Key && !zone.Claim.IsZero():
		row.At = zone.Claim
	default:
		if err := c.leave(c.row.zone, zone, why); err != nil {
			return err
		}
		if len(zone.Asked) > 0 {
			row.At = c.now
		} else if zone.again().IsZero() {
			return nil
		}
	}
	return c.tx.Due().Put(row)
}

// retry claims the row of what comes out of turn. A tick in turn that is due as well goes first, and one that is going on puts the
// row back when it ends.
func (c *claiming) retry(zone *Zone) (*tick, error) {
	going := c.isGoing(c.row.zone)
	if going && zone.Claim.IsZero() { // it has just ended
		return nil, c.waitOn(zone, c.now.Add(time.Second))
	}
	if err := c.tx.Due().Remove(c.row.Key); err != nil || going {
		return nil, err
	}
	own, found, err := c.tx.Due().Get(heartbeatKey(c.row.name, c.row.zone))
	if err != nil || found && !own.At.After(c.now) {
		return nil, err
	}
	if !c.wasCutOff(zone) {
		if err := c.leave(c.row.zone, zone, ""); err != nil {
			return nil, err
		}
	}
	zone.Asked = among(zone.Asked, c.row.people[c.row.zone])
	askers := c.clock.served(zone.Asked)
	switch over := c.row.heartbeat.isOver(c.now); {
	case len(askers) > 0:
		return c.open(zone, c.row.At, true, askers), nil
	case over:
		zone.close()
		zone.Held, zone.Owed, zone.People = time.Time{}, nil, nil
		return nil, c.leave(c.row.zone, zone, "; it has ended since")
	case zone.isDue(c.now):
		if t := c.open(zone, c.row.At, true, nil); t.people != nil {
			return t, nil
		}
	}
	if err := c.leave(c.row.zone, zone, ""); err != nil {
		return nil, err
	}
	return nil, c.waitOn(zone, c.now.Add(time.Minute))
}

// waitOn puts the row of what comes out of turn off, at least until an instant, where it is for something: what comes later, or
// people whom this clock does not serve yet.
func (c *claiming) waitOn(zone *Zone, until time.Time) error {
	again := zone.again()
	if again.IsZero() && len(zone.Asked) == 0 {
		return c.tx.Due().Remove(c.row.Key)
	}
	return c.tx.Due().Put(memory.DueRow{Key: c.row.Key, At: latest(again, until)})
}

// open begins a tick: one in turn, or out of turn for those who asked, or else for what was to come out of turn.
func (c *claiming) open(zone *Zone, at time.Time, outOfTurn bool, askers []string) *tick {
	cut := c.wasCutOff(zone)
	if !cut {
		zone.endClaim()
	}
	zone.Claim, zone.Row = at.UTC(), c.row.Key
	people := c.row.people[c.row.zone]
	personal := c.row.heartbeat.Condition.Personal()
	if personal {
		zone.divide(people)
	}
	t := &tick{
		key:       heartbeatKey(c.row.name, c.row.zone),
		heartbeat: c.row.heartbeat,
		zone:      c.row.zone,
		people:    c.clock.served(people),
		size:      len(people),
		at:        zone.Claim,
		asked:     len(askers) > 0,
		cut:       cut,
		late:      c.now.Sub(at) > onTime,
		before:    *zone.clone(),
	}
	if t.asked {
		t.people = askers
	}
	t.outOfTurn(zone, c.now, outOfTurn)
	if personal {
		t.divide(zone, c.now, outOfTurn)
	}
	return t
}

// outOfTurn notes what of a zone, or of one person, comes with a tick that is claimed now.
func (t *tick) outOfTurn(zone *Zone, now time.Time, outOfTurn bool) {
	if t.asked {
		return
	}
	t.retry = outOfTurn && !zone.Retry.IsZero() && !zone.Retry.After(now)
	t.held = outOfTurn && !t.retry
	if !zone.Held.After(now) {
		t.took = zone.Held
	}
}

// came takes what came with the tick from what is to come out of turn.
func (t *tick) came(zone *Zone) {
	if t.asked {
		zone.Asked = without(zone.Asked, t.people)
		return
	}
	if zone.Held.Equal(t.took) {
		zone.Held = time.Time{}
	}
	for _, part := range t.parts {
		if own := zone.person(part.person); own.Held.Equal(part.took) {
			own.Held = time.Time{}
		}
	}
}

// comesAgain is when something comes out of turn after the tick; zero for never.
func (t *tick) comesAgain(zone *Zone, now time.Time) time.Time {
	switch {
	case len(zone.Asked) > 0:
		return now
	case t.asked: // what else was to come did not come with it
		return zone.again()
	}
	return zone.againAfter(t.at)
}

// among are those of people who are others too.
func among(people, others []string) []string {
	return slices.DeleteFunc(slices.Clone(people), func(person string) bool { return !slices.Contains(others, person) })
}
