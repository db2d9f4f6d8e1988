package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nudge/memory"
)

const (
	alarmAfter   = 3 // failures in a row
	firstBackoff = time.Minute
	maxBackoff   = time.Hour
	maxReason    = 300 // bytes
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

// take decides whom the tick may wake, checks its condition and wakes.
func (c *Clock) take(ctx context.Context, t *tick) verdict {
	if askers := t.askers(); t.held && len(askers) > 0 {
		return c.takeAsked(ctx, t, askers)
	}
	if t.held && len(t.before.Owed) > 0 {
		t.people = t.owed()
	}
	snoozed, err := c.allSnoozed(ctx, t)
	if err != nil {
		return verdict{word: Failed, reason: unreadable}
	}
	if snoozed != nil {
		return t.passOver(snoozed)
	}
	finding, err := c.check(ctx, t)
	if ctx.Err() != nil {
		return verdict{word: Unknown, reason: "the program was stopped before the check was over"}
	}
	if err != nil {
		reason := clip(err.Error(), maxReason)
		return verdict{word: Failed, reason: reason, change: func(z *Zone, _ []string) []string { return z.checkFailed(reason) }}
	}
	return c.act(ctx, t, finding)
}

// act wakes those who are to hear of what was found, as far as they may be spoken to.
func (c *Clock) act(ctx context.Context, t *tick, f Finding) verdict {
	t.spread = t.spreadOver(c.config.Jitter)
	people, wake, reason := t.toHear(f, c.wall())
	if len(people) == 0 && !wake {
		return asleep(f, reason)
	}
	if why := c.refusal(); why != "" {
		return asleep(f, clip("nobody was woken, since the model refuses to answer: "+why, maxReason))
	}
	free, back, err := c.free(ctx, t, people)
	switch {
	case err != nil:
		return verdict{word: Failed, reason: unreadable}
	case len(free)+len(back) == 0 && len(people) > 0:
		return asleep(f, clip(strings.Join(people, ", ")+" cannot be reached", maxReason))
	case len(free) == 0 && len(back) > 0:
		return t.holdBack(back, f, wake)
	}
	if wake {
		if err := c.openEpisode(ctx, t); err != nil {
			c.config.Log.Error("open an episode", "heartbeat", t.heartbeat.Name, "error", err)
			return verdict{word: Failed, reason: "nobody was woken: what was found could not be stored"}
		}
	}
	runs := c.wakeAll(ctx, t, free, f)
	r := round{finding: f, runs: runs, back: back, owed: !wake, refused: c.noteRefusal(runs), stopped: ctx.Err() != nil, at: c.wall()}
	c.seeOwn(ctx, t, &r)
	v := t.sumUp(r)
	v.digested(t, back, f)
	return v
}

// toHear are the people who are to hear of what was found, and whether it is the tick that wakes them; otherwise they are owed it
// since an earlier one, or reason says why nobody is woken.
func (t *tick) toHear(f Finding, now time.Time) (people []string, wake bool, reason string) {
	wake, reason = t.judge(f, now)
	switch {
	case wake && t.held && !t.owesAll():
		return t.people, false, reason // the others wait for their turn
	case wake:
		t.before.open(t.heartbeat.Condition, f, t.at, t.retry)
		return slices.DeleteFunc(slices.Clone(t.people), t.before.isDone), true, ""
	case t.owes(f, now):
		return t.owed(), false, reason
	}
	return nil, false, reason
}

// asleep is the verdict of a tick that wakes nobody.
func asleep(f Finding, reason string) verdict {
	return verdict{word: Slept, reason: reason, change: func(z *Zone, _ []string) []string { return z.slept(f) }}
}

// holdBack is the verdict of a tick all of whose people are held back, though it would have woken them or owes them.
func (t *tick) holdBack(back []held, f Finding, wake bool) verdict {
	v := t.passOver(back)
	v.digested(t, back, f)
	owe := v.change
	v.change = func(z *Zone, _ []string) []string {
		if owe != nil {
			owe(z, nil)
		}
		if wake && len(v.withheld) > 0 && !t.heartbeat.Condition.Always() {
			z.keepEpisode(t.before)
		}
		return z.slept(f)
	}
	return v
}

// seeOwn looks again at what is watched after runs that changed something: what they did themselves is no reason to wake
// them again.
func (c *Clock) seeOwn(ctx context.Context, t *tick, r *round) {
	changed := slices.ContainsFunc(r.runs, func(r run) bool { return r.ended.OK && r.ended.Changed })
	if !changed || r.finding.State == "" || r.stopped {
		return
	}
	again := *t
	again.before.Digest = r.finding.State
	if f, err := c.check(ctx, &again); err == nil && f.State != "" && f.State != r.finding.State {
		r.finding.State, r.own = f.State, true
	}
}

// check looks once, within the condition's time, as one of a bounded number of checks.
func (c *Clock) check(ctx context.Context, t *tick) (Finding, error) {
	slot, err := c.enter(ctx)
	if err != nil {
		return Finding{}, err
	}
	defer slot.leave()
	h := t.heartbeat
	h.Zone = t.zone
	return look(ctx, c.config.Log, h, c.config.Conditions, t.before.Digest)
}

// look builds a heartbeat's condition and checks it within its time.
func look(ctx context.Context, log *slog.Logger, h Heartbeat, build func(Heartbeat) (Condition, error), previous string) (finding Finding, err error) {
	limit := h.Condition.Limit()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = protect(log, "the condition", func() error {
		condition, err := build(h)
		if err != nil {
			return fmt.Errorf("the condition cannot be built: %w", err)
		}
		finding, err = condition.Check(limited, previous)
		return err
	})
	switch {
	case err == nil:
		finding.Evidence = clip(finding.Evidence, MaxEvidence)
		return finding, nil
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return Finding{}, fmt.Errorf("the check was not over after %s", shortDuration(limit))
	}
	return Finding{}, fmt.Errorf("the check failed: %w", err)
}

// protect turns a panic of foreign code into an error.
func protect(log *slog.Logger, who string, do func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			log.Error("caught a panic", "of", who, "panic", caught, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s panicked: %v", who, caught)
		}
	}()
	return do()
}

// judge decides whether what was found wakes anybody, and why not.
func (t *tick) judge(f Finding, now time.Time) (wake bool, reason string) {
	spec, z := t.heartbeat.Condition, t.before
	switch {
	case !f.True && f.State != "" && z.Digest == "":
		return false, "this was the first look: what it saw is what later looks are compared with"
	case !f.True && f.State != "":
		return false, "nothing had changed"
	case !f.True:
		return false, "the condition was false"
	case f.State == "" && z.True && !spec.Level():
		return false, "the condition was still true, and had woken already"
	case now.Before(z.Retry) && !t.retry:
		return false, fmt.Sprintf("backing off until %s after a failed run", z.Retry.UTC().Format(time.RFC3339))
	case spec.Cooldown > 0 && now.Before(z.LastWake.Add(spec.Cooldown)):
		return false, fmt.Sprintf("cooling down until %s", z.LastWake.Add(spec.Cooldown).UTC().Format(time.RFC3339))
	}
	return true, ""
}

// slept notes a look that wakes nobody.
func (z *Zone) slept(f Finding) []string {
	said := z.checkWorked()
	if !f.True {
		if f.State != "" {
			z.Digest = f.State
		} else {
			z.Owed = nil
		}
		z.True, z.Failures, z.Warned = false, 0, false
		z.close()
	}
	return said
}

// close ends what was pending.
func (z *Zone) close() {
	z.Pending, z.Found, z.Done, z.Retry = false, "", nil, time.Time{}
}

// checkFailed leaves the state as it is: a check that failed is neither true nor false.
func (z *Zone) checkFailed(reason string) []string {
	z.Errors++
	if z.Errors < alarmAfter || z.Alarmed {
		return nil
	}
	z.Alarmed = true
	return []string{fmt.Sprintf("its check failed %d times in a row: %s", z.Errors, reason)}
}

func (z *Zone) checkWorked() []string {
	z.Errors = 0
	if !z.Alarmed {
		return nil
	}
	z.Alarmed = false
	return []string{"its check works again"}
}

// openEpisode notes the stretch in which the condition is true before anybody hears of it, so that a program that
// stopped goes on in the same one.
func (c *Clock) openEpisode(ctx context.Context, t *tick) error {
	return c.config.Store.Update(ctx, func(tx memory.Tx) error {
		h, found, err := find(tx, t.heartbeat.Name)
		if err != nil || !found || !h.Condition.same(t.heartbeat.Condition) {
			return err
		}
		state, err := loadState(tx, t.heartbeat.Name)
		if err != nil {
			return err
		}
		zone := state.Zones[t.zone]
		if zone == nil || !zone.Claim.Equal(t.at) {
			return nil
		}
		zone.Episode, zone.Pending, zone.Found, zone.Done = t.before.Episode, true, t.before.Found, t.before.Done
		return state.save(tx, t.heartbeat.Name)
	})
}

// open chooses the episode: a pending one goes on unless it is about something else.
func (z *Zone) open(spec Spec, f Finding, at time.Time, retry bool) {
	goesOn := z.Pending && z.Found == f.State
	if spec.Always() {
		goesOn = z.Pending && retry
	}
	switch {
	case goesOn:
	case z.True && f.State == "" && !spec.Always():
		z.Done = nil
	default:
		z.Episode, z.Done = at.Format(time.RFC3339Nano), nil
	}
	z.Pending, z.Found = true, f.State
}

// keepEpisode lets the episode that was opened go on, though nobody was woken: what the digest tells of it is not told again.
func (z *Zone) keepEpisode(opened Zone) {
	z.Episode, z.Pending, z.Found = opened.Episode, opened.Pending, opened.Found
}

// run is how one person's run ended.
type run struct {
	person string
	ended  Ended
}

// wakeAll wakes people, each at their instant, and waits for their runs.
func (c *Clock) wakeAll(ctx context.Context, t *tick, people []string, f Finding) []run {
	runs := make([]run, len(people))
	var all sync.WaitGroup
	for i, turn := range c.inTurn(t, people) {
		person := turn.person
		runs[i] = run{person: person, ended: Ended{Reason: "stopped before the person was woken"}}
		if !c.until(ctx, turn.at) {
			continue
		}
		select {
		case c.runs <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		all.Go(func() {
			defer func() { <-c.runs }()
			runs[i].ended = c.wake(ctx, t.waking(person, f))
		})
	}
	all.Wait()
	return runs
}

func (t *tick) waking(person string, f Finding) Waking {
	h := t.heartbeat
	return Waking{
		Heartbeat: h.Name, Person: person, Episode: t.before.Episode, Evidence: f.Evidence, Prompt: h.Prompt, Text: h.Text,
		Tools: slices.Clone(h.Tools), BreakQuiet: h.BreakQuiet, Asked: t.asked, Tick: t.at, Timeout: h.RunTimeout,
	}
}

func (c *Clock) wake(ctx context.Context, waking Waking) (ended Ended) {
	err := protect(c.config.Log, "the woken run", func() error {
		var err error
		ended, err = c.config.Wake(ctx, waking)
		return err
	})
	if err != nil {
		ended.OK, ended.Reason = false, err.Error()
	}
	return ended
}

// round is what a tick did once it was known whom to wake.
type round struct {
	finding Finding
	runs    []run
	back    []held // were held back
	owed    bool   // those were woken who were owed something, and the condition's state is not moved on
	own     bool   // the finding's state holds what the runs changed themselves
	refused string // what the owners must hear of a run that the model refused
	stopped bool   // the program was
	at      time.Time
}

// sumUp makes one verdict of all runs.
func (t *tick) sumUp(r round) verdict {
	v := verdict{word: Woke, wakes: true, held: firstSnooze(r.back)}
	v.runs = r.runs
	for _, run := range r.runs {
		v.used.ModelCalls += run.ended.ModelCalls
		v.used.TokensIn += run.ended.TokensIn
		v.used.TokensOut += run.ended.TokensOut
		v.used.CostUSD += run.ended.CostUSD
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
	case r.stopped:
		v.word = Unknown
		v.reason = clip("the program was stopped: "+v.reason, maxReason)
		v.change = func(z *Zone, silenced []string) []string {
			z.heard(without(v.well, silenced))
			return z.checkWorked()
		}
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

// wentWell notes that neither the check nor a run failed.
func (z *Zone) wentWell() []string {
	said := z.checkWorked()
	if z.Warned {
		said = append(said, "its runs end well again")
	}
	z.Failures, z.Warned = 0, false
	return said
}

func (z *Zone) endedWell(f Finding, owed []string, now time.Time) []string {
	said := z.wentWell()
	z.True, z.Digest = f.State == "", f.State
	z.LastWake = now.UTC()
	z.Woke++
	z.close()
	z.Owed = owed
	return said
}

// heard notes whose runs ended well of those that did not all do so.
func (z *Zone) heard(people []string) {
	z.Done = append(z.Done, people...)
	z.Owed = without(z.Owed, people)
}

func (z *Zone) runFailed(reason string, now time.Time) []string {
	said := z.checkWorked()
	z.Failures++
	z.Retry = now.Add(backoff(z.Failures)).UTC()
	if z.Failures >= alarmAfter && !z.Warned {
		z.Warned = true
		said = append(said, fmt.Sprintf("the runs that it wakes failed %d times in a row: %s", z.Failures, reason))
	}
	return said
}

// refused notes a run that the model refused. It is not for the heartbeat to back off: nobody is woken until that is mended.
func (z *Zone) refused(tell string) []string {
	said := z.checkWorked()
	if tell != "" {
		said = append(said, tell)
	}
	return said
}

// backoff is how long to wait after so many failed runs in a row.
func backoff(failures int) time.Duration {
	wait := firstBackoff
	for range failures - 1 {
		if wait *= 2; wait >= maxBackoff {
			return maxBackoff
		}
	}
	return wait
}

// finish records the tick's outcome, though ctx may have ended, and tells the owners what they must hear.
func (c *Clock) finish(ctx context.Context, t *tick, v verdict) {
	ctx = context.WithoutCancel(ctx)
	var said []string
	err := c.config.Store.Update(ctx, func(tx memory.Tx) (err error) {
		if said, err = t.settle(tx, v, c.wall()); err != nil {
			return err
		}
		return c.noteWithheld(tx, v)
	})
	if err != nil {
		// The claim stays in the store, and the next tick records this one as unknown.
		c.config.Log.Error("record the outcome of a tick", "heartbeat", t.heartbeat.Name, "outcome", v.word, "error", err)
		return
	}
	c.config.Log.Debug("tick", "heartbeat", t.heartbeat.Name, "zone", t.zone, "outcome", v.word, "reason", v.reason)
	if v.word == Failed || v.wakes || len(v.withheld) > 0 {
		c.Look() // a row to try again may stand before all others
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
	state, err := loadState(tx, name)
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
	if err := state.record(tx, name, Outcome{Tick: t.at, Zone: t.zone, Word: v.word, Reason: v.reason}); err != nil {
		return nil, err
	}
	state.Counters.add(v)
	if err := noteUse(tx, name, v.runs); err != nil {
		return nil, fmt.Errorf("note what the runs of heartbeat %s used: %w", name, err)
	}
	if zone := state.Zones[t.zone]; zone != nil && zone.Claim.Equal(t.at) {
		if said, err = t.settleZone(tx, h, state, zone, v, silenced); err != nil {
			return nil, fmt.Errorf("settle a tick of heartbeat %s: %w", name, err)
		}
	}
	return said, state.save(tx, name)
}

func (t *tick) settleZone(tx memory.Tx, h Heartbeat, state *State, zone *Zone, v verdict, silenced []string) (said []string, err error) {
	zone.Claim = time.Time{}
	before := zone.again()
	if h.Condition.same(t.heartbeat.Condition) {
		if v.change != nil {
			said = v.change(zone, silenced)
		}
		zone.Held = earlier(zone.Held, v.held)
	}
	if h.MaxTicks > 0 && zone.Woke >= h.MaxTicks {
		zone.Over = true
		if err := tx.Due().Remove(heartbeatKey(h.Name, t.zone)); err != nil {
			return nil, err
		}
	}
	if state.finished() && h.resting() == "" {
		h.Ended = state.overReason(h)
		if err := h.put(tx); err != nil {
			return nil, err
		}
	}
	row, again := retryKey(h.Name, t.zone), zone.again()
	switch {
	case again.After(t.at) && h.resting() == "":
		return said, tx.Due().Put(memory.DueRow{Key: row, At: again})
	case again.IsZero() && !before.IsZero():
		return said, tx.Due().Remove(row)
	}
	return said, nil
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

// clip makes a text valid UTF-8 of at most so many bytes.
func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
