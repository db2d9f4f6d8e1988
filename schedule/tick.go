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

// maxReason is how many bytes a verdict's reason has at most.
const maxReason = 300

// tick is a claimed tick of a heartbeat for the people of one zone. One goroutine owns it.
type tick struct {
	key       string // of the heartbeat's due row for the zone
	heartbeat Heartbeat
	zone      string
	people    []string
	size      int           // how many people the heartbeat has in the zone
	at        time.Time     // the instant for which it is due
	retry     bool          // brings a failed run back
	held      bool          // brings back what a snooze held back
	asked     bool          // wakes people because they asked for it
	cut       bool          // was cut off, and is taken up again
	took      time.Time     // the end of the snooze after which it comes; zero for none
	again     bool          // when it had its outcome, another was to come out of turn
	late      bool          // makes up for a missed tick
	before    Zone          // what was remembered when it was claimed
	spread    time.Duration // the time over which its people are woken
	person    string        // whom a part is about; "" for what has parts or needs none
	parts     []*tick       // one for each person, where the condition is about each by themselves
}

// take decides whom the tick may wake, checks its condition and wakes.
func (c *Clock) take(ctx context.Context, t *tick) verdict {
	if by := t.heartbeat.By; by != "" && c.config.Admits != nil && !c.config.Admits(by) {
		return verdict{word: Slept, reason: clip(by+", who made it, is not let in any more", maxReason)}
	}
	if t.asked {
		return c.takeAsked(ctx, t)
	}
	if t.held && len(t.before.Owed) > 0 {
		t.people = t.owed()
	}
	if !t.hasBegun() {
		snoozed, err := c.allSnoozed(ctx, t)
		if err != nil {
			return verdict{word: Failed, reason: unreadable}
		}
		if snoozed != nil {
			return t.passOver(snoozed)
		}
	}
	if t.parts != nil {
		return c.takeParts(ctx, t)
	}
	finding, err := c.check(ctx, t)
	if err != nil {
		return checkFailed(err)
	}
	return c.act(ctx, t, finding)
}

// checkFailed is the verdict of a tick whose check came to nothing.
func checkFailed(err error) verdict {
	reason := clip(err.Error(), maxReason)
	return verdict{word: Failed, reason: reason, change: func(z *Zone, _ []string) []string { return z.checkFailed(reason) }}
}

// act wakes those who are to hear of what was found, as far as they may be spoken to.
func (c *Clock) act(ctx context.Context, t *tick, f Finding) verdict {
	t.spread = t.spreadOver(c.config.Jitter)
	f = t.goesOn(f)
	people, wake, reason := t.toHear(f, c.wall())
	if len(people) == 0 && !wake {
		return t.sleeps(f, reason)
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
	r := round{finding: f, runs: runs, back: back, owed: !wake, refused: c.noteRefusal(runs), at: c.wall()}
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

// seeOwn looks again at what is watched after runs that changed something: what they did themselves is no reason to wake
// them again.
func (c *Clock) seeOwn(ctx context.Context, t *tick, r *round) {
	changed := slices.ContainsFunc(r.runs, func(r run) bool { return r.ended.OK && r.ended.Changed })
	if !changed || r.finding.State == "" || ctx.Err() != nil {
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
	if t.person != "" { // what a run changed itself
		found, err := lookForParts(ctx, c.config.Log, h, c.config.Conditions, []*tick{t})
		if err != nil {
			return Finding{}, err
		}
		return found[0], nil
	}
	return lookOnce(ctx, c.config.Log, h, c.config.Conditions, t.before.Digest)
}

// lookOnce builds a heartbeat's condition and checks it.
func lookOnce(ctx context.Context, log *slog.Logger, h Heartbeat, build func(Heartbeat) (Condition, error), previous string) (Finding, error) {
	return look(ctx, log, h, build, func(ctx context.Context, condition Condition) (Finding, error) {
		found, err := condition.Check(ctx, previous)
		found.Evidence = clip(found.Evidence, MaxEvidence)
		return found, err
	})
}

// lookForParts builds the condition of a heartbeat that is about each person by themselves, and checks it for each.
func lookForParts(ctx context.Context, log *slog.Logger, h Heartbeat, build func(Heartbeat) (Condition, error), parts []*tick) ([]Finding, error) {
	return look(ctx, log, h, build, func(ctx context.Context, condition Condition) ([]Finding, error) {
		found := make([]Finding, len(parts))
		for i, part := range parts {
			own, err := personally(condition, part.person)
			if err != nil {
				return nil, err
			}
			if found[i], err = own.Check(ctx, part.before.Digest); err != nil {
				return nil, err
			}
			found[i].Evidence = clip(found[i].Evidence, MaxEvidence)
		}
		return found, nil
	})
}

// look builds a heartbeat's condition and has it checked within its time.
func look[T any](ctx context.Context, log *slog.Logger, h Heartbeat, build func(Heartbeat) (Condition, error), check func(context.Context, Condition) (T, error)) (found T, err error) {
	limit := h.Condition.Limit()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = protect(log, "the condition", func() error {
		condition, err := build(h)
		if err != nil {
			return fmt.Errorf("the condition cannot be built: %w", err)
		}
		found, err = check(limited, condition)
		return err
	})
	switch {
	case err == nil:
		return found, nil
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return found, fmt.Errorf("the check was not over after %s", shortDuration(limit))
	}
	return found, fmt.Errorf("the check failed: %w", err)
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

// openEpisode notes the stretch in which the condition is true before anybody hears of it, so that a program that
// stopped goes on in the same one.
func (c *Clock) openEpisode(ctx context.Context, t *tick) error {
	return c.config.Store.Update(ctx, func(tx memory.Tx) error {
		h, found, err := find(tx, t.heartbeat.Name)
		if err != nil || !found || !h.Condition.same(t.heartbeat.Condition) {
			return err
		}
		state, err := loadState(tx, h)
		if err != nil {
			return err
		}
		zone := state.Zones[t.zone]
		if zone == nil || !zone.Claim.Equal(t.at) {
			return nil
		}
		zone = t.remembered(zone)
		zone.Episode, zone.Pending, zone.Found, zone.Done, zone.Begun = t.before.Episode, true, t.before.Found, t.before.Done, true
		return state.save(tx, t.heartbeat.Name)
	})
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
		Heartbeat: h.Name, Person: person, Episode: t.before.Episode, Evidence: f.Evidence, Public: f.Public, Outside: h.Outside, Private: h.Private, Prompt: h.Prompt, Text: h.Text,
		Tools: slices.Clone(h.Tools), BreakQuiet: h.BreakQuiet, Asked: t.asked, Again: t.cut, Tick: t.at, Timeout: h.RunTimeout,
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
