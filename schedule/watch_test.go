package schedule

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// TestStalled stops the clock, its store, and takes a row behind its back: each is found, told once, and its end too.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.save(beat("disk", "no"))
		clock := NewClock(r.config)
		if err := clock.Stalled(t.Context()); err != nil {
			t.Errorf("before it had time to run: %v", err)
		}
		r.pass(10 * time.Minute)
		if err := clock.Stalled(t.Context()); err == nil || !strings.Contains(err.Error(), "has not looked at what is due for 10m0s") {
			t.Errorf("when it was not run: %v", err)
		}
		r.start()
		ctx, cancel := context.WithCancel(t.Context())
		var told []string
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			r.clock.Watch(ctx, func(text string) { told = append(told, text) })
		}()
		hears := func(what, want string) {
			t.Helper()
			synctest.Wait()
			r.expect(what, strings.Join(told, "; "), want)
			told = nil
		}
		r.pass(time.Hour)
		hears("while it works", "")
		r.set(r.now().Add(10 * time.Hour)) // the machine slept
		if err := r.clock.Stalled(t.Context()); err != nil {
			t.Errorf("as the machine wakes up: %v", err)
		}
		r.pass(time.Hour)
		hears("after the machine slept", "")

		r.store.FailAt(r.store.Count()+1, false)
		r.pass(10 * time.Minute)
		if len(told) != 1 || !strings.Contains(told[0], "ask whether the clock works: ") {
			t.Errorf("while the store fails it told %q", told)
		}
		told = nil
		r.store.Revive()
		r.pass(10 * time.Minute)
		hears("when it works again", "the clock works again")

		r.update(func(tx memory.Tx) error {
			return tx.Due().Put(memory.DueRow{Key: "alien/1", At: r.now().Add(-time.Hour)})
		})
		r.pass(5 * time.Minute)
		hears("of a row that is nobody's", "")
		r.stop()
		r.pass(2 * time.Minute)
		hears("when it has ended", errStopped.Error())
		cancel()
		<-watched
	})
}

// TestAPassedOverRowIsFound holds the watch to the index itself: a clock that takes nothing up, though it looks, is dead.
func TestAPassedOverRowIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.save(beat("disk", "no"))
		clock := NewClock(r.config)
		clock.now = r.now
		r.pass(10 * time.Minute)
		clock.alive(r.now()) // it looked, and did nothing
		if err := clock.Stalled(t.Context()); err == nil || !strings.Contains(err.Error(), `passes over what is due, first "heartbeat/disk/UTC"`) {
			t.Errorf("a clock that does nothing: %v", err)
		}
	})
}

// TestHangingChecksDelayNobody lets many conditions hang among ten thousand that are due in the same minute.
func TestHangingChecksDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.looks["hangs"] = func(ctx context.Context, _ string) (Finding, error) {
			<-ctx.Done()
			return Finding{}, ctx.Err()
		}
		all, hanging := 10_000, 100
		if raced { // which makes each of them several times as dear
			all = 4_000
		}
		due := time.Date(2000, 1, 1, 9, 0, 0, 0, time.UTC)
		var last time.Duration
		r.looks["quick"] = func(context.Context, string) (Finding, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			last = max(last, r.now().Sub(due))
			return Finding{}, nil
		}
		var list []Heartbeat
		for i := range all {
			look := "quick"
			if i%(all/hanging) == 0 {
				look = "hangs"
			}
			h := beat(nameOf(i), look)
			h.Cron = "0 9 * * *"
			list = append(list, h)
		}
		r.save(list...)
		r.start()
		r.pass(9*time.Hour + time.Minute)
		r.stop()
		r.expect("checks", r.checks["quick"]+r.checks["hangs"], all)
		if last > time.Second {
			t.Errorf("the last check that did not hang was made %s after the tick", last)
		}
		r.expect("a check that hung", r.why(nameOf(0)).Outcomes[0].Reason, "the check was not over after 10s")
	})
}

func nameOf(i int) string { return "beat" + string(rune('a'+i%26)) + time.Duration(i).String() }
