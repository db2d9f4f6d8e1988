package schedule

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// TestGone: who cannot be reached is woken for no more by any heartbeat, which is paused if it was for nobody else, until they
// are heard of.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		alone, both, later := beat("alone", "yes"), beat("both", "yes"), beat("later", "yes")
		for _, h := range []*Heartbeat{&alone, &both, &later} {
			h.Condition.On = OnTrue
		}
		both.For = []string{"terminal:ann", "terminal:bob"}
		r.save(alone, both)
		r.start()
		r.pass(61 * time.Second)
		var paused []string
		r.update(func(tx memory.Tx) (err error) {
			paused, err = Lose(tx, "terminal:ann", "both", "user\n left", r.now())
			return err
		})
		r.expect("paused", paused, []string{"alone"})
		r.save(later) // made while she is gone
		r.pass(5 * time.Minute)
		r.expect("alone", r.woken("alone"), map[string]int{"terminal:ann": 1})
		r.expect("both", r.woken("both"), map[string]int{"terminal:ann": 1, "terminal:bob": 6})
		r.expect("later", len(r.woken("later")), 0)
		r.expect("later slept", r.why("later").Outcomes[0].Reason, "terminal:ann cannot be reached")
		first := r.why("both").Outcomes[5]
		if first.Word != Failed || !strings.Contains(first.Reason, "terminal:ann cannot be reached since 2000-01-01T00:01:01Z: user left") {
			t.Errorf("the tick that said it is %+v", first)
		}
		if text := r.why("alone").String(); !strings.Contains(text, "paused: nobody can be reached: terminal:ann cannot be reached since") {
			t.Errorf("why says\n%s", text)
		}
		if text := r.why("both").String(); !strings.Contains(text, "terminal:ann: cannot be reached since 2000-01-01T00:01:01Z: user left") {
			t.Errorf("why says\n%s", text)
		}
		for _, want := range []bool{true, false} {
			r.update(func(tx memory.Tx) error {
				found, err := Found(tx, "terminal:ann", r.now())
				r.expect("found", found, want)
				return err
			})
		}
		r.pass(2 * time.Minute)
		r.stop()
		for _, name := range []string{"alone", "both", "later"} {
			if r.woken(name)["terminal:ann"] < 2 && name != "later" || r.woken(name)["terminal:ann"] == 0 {
				t.Errorf("%s woke for ann %d times since she was heard of", name, r.woken(name)["terminal:ann"])
			}
		}
	})
}

// TestFoundLeavesOtherPausesAlone: a pause that somebody asked for is not ended by their writing.
func TestFoundLeavesOtherPausesAlone(t *testing.T) {
	r := newRig(t)
	r.save(beat("disk", "no"))
	r.update(func(tx memory.Tx) error { return Pause(tx, "disk", "ann asked for it") })
	r.update(func(tx memory.Tx) error { _, err := Lose(tx, "terminal:ann", "disk", "left", r.now()); return err })
	r.update(func(tx memory.Tx) error { _, err := Found(tx, "terminal:ann", r.now()); return err })
	r.expect("paused", r.why("disk").Heartbeat.Paused, "ann asked for it")
}

// TestGoneBeforeTheRunHasEnded: what a run says may come back as undeliverable while it still runs.
func TestGoneBeforeTheRunHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.ends = func(ctx context.Context, w Waking) (Ended, error) {
			err := r.store.Update(ctx, func(tx memory.Tx) error {
				_, err := Lose(tx, w.Person, w.Heartbeat, "left", r.now())
				return err
			})
			return Ended{OK: true}, err
		}
		r.save(beat("disk", "yes"))
		r.start()
		r.pass(5 * time.Minute)
		r.stop()
		r.expect("outcomes", r.words("disk"), "failed")
		r.expect("wakes", len(r.wakes), 1)
	})
}
