package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// verdict is what became of a tick.
type verdict struct {
	word   string
	reason string
	used   Ended     // the sum over all woken runs
	runs   []run     // of those who were woken
	wakes  bool      // somebody was woken
	well   []string  // whose runs ended well
	held   time.Time // when the first snooze ends for which somebody was passed over; zero when none was
	// withheld is what the digests of people who were held back shall tell.
	withheld []withholding
	// change changes what is remembered and gives what the owners must hear; it may be nil. silenced are those of well who
	// were not told what they should have been.
	change func(z *Zone, silenced []string) []string
}

// asleep is the verdict of a tick that wakes nobody.
func asleep(f Finding, reason string) verdict {
	return verdict{word: Slept, reason: reason, change: func(z *Zone, _ []string) []string { return z.slept(f) }}
}

// round is what a tick did once it was known whom to wake.
type round struct {
	finding Finding
	runs    []run
	back    []held // were held back
	owed    bool   // those were woken who were owed something, and the condition's state is not moved on
	own     bool   // the finding's state holds what the runs changed themselves
	refused string // what the owners must hear of a run that the model refused
	at      time.Time
}

// sumUp makes one verdict of all runs.
func (t *tick) sumUp(r round) verdict {
	v := verdict{word: Woke, wakes: true, held: firstSnooze(r.back)}
	v.runs = r.runs
	for _, run := range r.runs {
		v.used.add(run.ended)
		if run.ended.OK {
			v.well = append(v.well, run.person)
		} else if v.reason == "" {
			v.reason = clip(fmt.Sprintf("the run for %s: %s", run.person, run.ended.Reason), maxReason)
		}
	}
	switch {
	case len(v.well) == len(r.runs):
		v.reason = t.wokeReason(v.well, r)
		v.change = func(z *Zone, silenced []string) []string { return t.allWell(z, r, v.well, silenced) }
	default:
		v.word = Failed
		v.change = func(z *Zone, silenced []string) []string {
			z.heard(without(v.well, silenced))
			if slices.ContainsFunc(r.runs, func(r run) bool { return r.ended.Refused }) {
				return z.refused(r.refused)
			}
			return z.runFailed(v.reason, r.at)
		}
	}
	return v
}

func (t *tick) wokeReason(well []string, r round) string {
	reason := "woke " + strings.Join(well, ", ")
	switch {
	case r.owed:
		reason = "the condition was still true: woke " + strings.Join(well, ", ") + ", who had been held back"
	case !t.heartbeat.Condition.Always():
		reason = "the condition was true: " + reason
	}
	if len(r.back) > 0 {
		reason += "; " + t.inWords(r.back)
	}
	if r.own {
		reason += "; what was changed meanwhile counts as seen"
	}
	return clip(reason, maxReason)
}

// allWell notes that all runs ended well. If none of them told its person what it should have, nothing is moved on.
func (t *tick) allWell(z *Zone, r round, well, silenced []string) []string {
	switch {
	case r.owed:
		return z.caughtUp(without(well, silenced))
	case len(silenced) > 0 && len(silenced) == len(well):
		if t.heartbeat.Condition.Always() {
			z.owe(silenced)
		}
		return z.wentWell()
	}
	return z.endedWell(r.finding, append(t.owing(r.back), silenced...), r.at)
}

// finish records the tick's outcome, though ctx may have ended, and tells the owners what they must hear. A tick that did not end
// well since ctx has ended was cut off: it stays open, and the next start brings it back.
func (c *Clock) finish(ctx context.Context, t *tick, v verdict) {
	if ctx.Err() != nil && v.word == Failed {
		c.config.Log.Debug("tick cut off", "heartbeat", t.heartbeat.Name, "zone", t.zone, "reason", v.reason)
		c.release(t.key)
		return
	}
	ctx = context.WithoutCancel(ctx)
	var said []string
	err := c.config.Store.Update(ctx, func(tx memory.Tx) (err error) {
		if said, err = t.settle(tx, v, c.wall()); err != nil {
			return err
		}
		return c.noteWithheld(tx, v)
	})
	c.release(t.key)
	if err != nil {
		// The claim stays in the store: the next start brings the tick back, or the next tick records this one as unknown.
		c.config.Log.Error("record the outcome of a tick", "heartbeat", t.heartbeat.Name, "outcome", v.word, "error", err)
		return
	}
	c.config.Log.Debug("tick", "heartbeat", t.heartbeat.Name, "zone", t.zone, "outcome", v.word, "reason", v.reason)
	if t.again || len(v.withheld) > 0 {
		c.Look() // a row that was put may stand before all others
	}
	for _, text := range said {
		if c.config.Alarm == nil {
			continue
		}
		text = fmt.Sprintf("heartbeat %q: %s", t.heartbeat.Name, text)
		_ = protect(c.config.Log, "the alarm", func() error { c.config.Alarm(ctx, t.heartbeat.Name, text); return nil })
	}
}

// settle writes what became of the tick. A heartbeat that was removed or whose zone was taken away in the meantime
// gets no more than its outcome, if that.
func (t *tick) settle(tx memory.Tx, v verdict, now time.Time) (said []string, err error) {
	name := t.heartbeat.Name
	h, found, err := find(tx, name)
	if err != nil || !found {
		return nil, err
	}
	state, err := loadState(tx, h)
	if err != nil {
		return nil, err
	}
	silenced, until, err := t.noteWoken(tx, v, now)
	if err != nil {
		return nil, err
	}
	if len(silenced) > 0 {
		v.held = earlier(v.held, until)
		v.reason = clip(v.reason+"; nothing was said to "+strings.Join(silenced, ", ")+", who had snoozed", maxReason)
	}
	if err := v.unreached(tx); err != nil {
		return nil, err
	}
	if h.By != t.heartbeat.By { // the name is another's by now, who is not to read what has become of this
		if zone := state.Zones[t.zone]; zone != nil && zone.Claim.Equal(t.at) {
			zone.endClaim()
		}
		return nil, state.save(tx, name)
	}
	if t.cut {
		v.reason = clip(v.reason+"; taken up again, since the program had stopped", maxReason)
	}
	if err := state.record(tx, name, Outcome{Tick: t.at, Zone: t.zone, Word: v.word, Reason: v.reason}, now); err != nil {
		return nil, err
	}
	state.Counters.add(v)
	if err := noteUse(tx, name, v.runs); err != nil {
		return nil, fmt.Errorf("note what the runs of heartbeat %s used: %w", name, err)
	}
	if zone := state.Zones[t.zone]; zone != nil && zone.Claim.Equal(t.at) {
		if said, err = t.settleZone(tx, h, state, zone, v, silenced, now); err != nil {
			return nil, fmt.Errorf("settle a tick of heartbeat %s: %w", name, err)
		}
	}
	return said, state.save(tx, name)
}

func (t *tick) settleZone(tx memory.Tx, h Heartbeat, state *State, zone *Zone, v verdict, silenced []string, now time.Time) (said []string, err error) {
	before := zone.again()
	zone.endClaim()
	t.came(zone)
	if h.Condition.same(t.heartbeat.Condition) {
		if v.change != nil {
			said = v.change(zone, silenced)
		}
		t.hold(zone, v.held, silenced)
	}
	if h.MaxTicks > 0 && zone.Woke >= h.MaxTicks {
		zone.Over = true
		if err := tx.Due().Remove(heartbeatKey(h.Name, t.zone)); err != nil {
			return nil, err
		}
	}
	if state.finished() && h.resting() == "" {
		h.end(state.overReason(h), now)
		if err := h.put(tx); err != nil {
			return nil, err
		}
	}
	zone.tidyPeople(h.For)
	row, again := retryKey(h.Name, t.zone), t.comesAgain(zone, now)
	t.again = !again.IsZero() && h.resting() == ""
	switch {
	case t.again:
		return said, tx.Due().Put(memory.DueRow{Key: row, At: again})
	case zone.again().IsZero() && !before.IsZero():
		return said, tx.Due().Remove(row)
	}
	return said, nil
}

// hold notes when a snooze ends for which somebody was passed over: of a tick that has parts, of those to whom nothing was said,
// since the parts have noted the others.
func (t *tick) hold(zone *Zone, until time.Time, silenced []string) {
	if t.parts == nil {
		zone.Held = earlier(zone.Held, until)
		return
	}
	for _, person := range silenced {
		own := zone.person(person)
		own.Held = earlier(own.Held, until)
	}
}

// add sums up what runs used.
func (e *Ended) add(other Ended) {
	e.ModelCalls += other.ModelCalls
	e.TokensIn += other.TokensIn
	e.TokensOut += other.TokensOut
	e.CostUSD += other.CostUSD
}

func (c *Counters) add(v verdict) {
	if v.wakes {
		c.Wakes++
	}
	c.ModelCalls += v.used.ModelCalls
	c.TokensIn += v.used.TokensIn
	c.TokensOut += v.used.TokensOut
	c.CostUSD += v.used.CostUSD
}
