package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// voice says what runs tell, once for a person and an episode, in one transaction, as what wakes people does.
func (r *rig) voice() func(ctx context.Context, w Waking) (Ended, error) {
	return func(ctx context.Context, w Waking) (Ended, error) {
		err := r.store.Update(ctx, func(tx memory.Tx) error {
			key := strings.Join([]string{w.Heartbeat, w.Person, w.Episode}, " ")
			_, told, err := tx.Table("told").Get(key)
			if err != nil || told {
				return err
			}
			return tx.Table("told").Put(key, []byte(w.Tick.Format(time.RFC3339)))
		})
		return Ended{OK: err == nil}, err
	}
}

// runs sets how runs end from now on.
func (r *rig) runs(ends func(ctx context.Context, w Waking) (Ended, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = ends
}

// told are the episodes of which people heard, each as heartbeat, person and episode.
func (r *rig) told() (all []string) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) error {
		return tx.Table("told").Scan("", func(key string, _ []byte) error { all = append(all, key); return nil })
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// cut kills the program at a write from now on, lets time pass, and starts it anew after a while.
func (r *rig) cut(write int, after bool, d, down time.Duration) (killed bool) {
	r.store.FailAt(r.store.Count()+write, after)
	r.pass(d)
	select {
	case <-r.store.Crashed():
		killed = true
	default:
	}
	r.stop()
	time.Sleep(down)
	r.store.Revive()
	r.start()
	return killed
}

// TestAReminderIsToldWheneverTheProgramIsKilled: at each write from its claim on, once.
func TestAReminderIsToldWheneverTheProgramIsKilled(t *testing.T) {
	for write := 1; ; write++ {
		killed := false
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(write, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					r.ends = r.voice()
					r.save(reminder("08:00"))
					r.start()
					r.pass(8*time.Hour - time.Second)
					killed = r.cut(write, after, 2*time.Second, time.Minute)
					r.pass(2 * time.Minute)
					r.expect("told", r.told(), []string{"call " + ann + " 2000-01-01T08:00:00Z"})
					r.expect("outcomes", r.words("call"), Woke)
					r.expect("ended", r.why("call").Heartbeat.Ended, "no date is left")
					r.stop()
				})
			})
		}
		if !killed {
			if write < 4 {
				t.Errorf("a reminder took %d writes, so that little was killed", write-1)
			}
			return
		}
	}
}

// TestATickThatWasStoppedIsTakenUp at the next start too, whether its check or its run was under way.
func TestATickThatWasStoppedIsTakenUp(t *testing.T) {
	for _, part := range []string{"check", "run"} {
		t.Run(part, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				stuck := true
				r.looks["stuck"] = func(ctx context.Context, _ string) (Finding, error) {
					if stuck && part == "check" {
						<-ctx.Done()
						return Finding{}, ctx.Err()
					}
					return Finding{True: true}, nil
				}
				says := r.voice()
				r.ends = func(ctx context.Context, w Waking) (Ended, error) {
					if stuck && part == "run" {
						<-ctx.Done()
						return Ended{}, ctx.Err()
					}
					return says(ctx, w)
				}
				h := reminder("08:00")
				h.Condition = Spec{Kind: "command", Run: []string{"stuck"}}
				r.save(h)
				r.start()
				r.pass(8*time.Hour + time.Second)
				r.stop()
				r.expect("outcomes of the first", r.words("call"), "")
				stuck = false
				time.Sleep(time.Hour)
				r.start()
				r.pass(time.Minute)
				r.stop()
				r.expect("told", r.told(), []string{"call " + ann + " 2000-01-01T08:00:00Z"})
				r.says("call", Woke, "taken up again, since the program had stopped")
			})
		})
	}
}

// TestACutOffTickIsNotTakenUp when it is too late, a later one is due, or somebody has changed the heartbeat since.
func TestACutOffTickIsNotTakenUp(t *testing.T) {
	for name, c := range map[string]struct {
		down   time.Duration
		cron   string
		change func(tx memory.Tx, now time.Time) error
		words  string
		reason string
	}{
		"too late": {down: 2 * time.Hour, cron: "0 8 * * *", words: "unknown", reason: "it is too late to take it up"},
		"a later":  {down: 25 * time.Minute, cron: "*/10 8 * * *", words: "unknown woke", reason: "a later one is due"},
		"paused": {down: time.Minute, cron: "0 8 * * *", words: "unknown", change: func(tx memory.Tx, now time.Time) error {
			return errors.Join(Pause(tx, "daily", "too loud"), Resume(tx, "daily", now))
		}},
		"changed": {down: time.Minute, cron: "0 8 * * *", words: "unknown", change: func(tx memory.Tx, now time.Time) error {
			h, err := Load(tx, "daily")
			h.Prompt = "Something else."
			return errors.Join(err, Save(tx, h, now))
		}},
		"in trouble": {down: time.Minute, cron: "0 8 * * *", words: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.ends = r.voice()
				h := beat("daily", "yes")
				h.Cron, h.Condition = c.cron, Spec{Kind: KindAlways}
				r.save(h)
				r.start()
				r.pass(8*time.Hour - time.Second)
				r.store.FailAt(r.store.Count()+1, true) // the claim
				r.pass(2 * time.Second)
				r.stop()
				r.store.Revive()
				r.clock = nil
				if c.change != nil {
					r.update(func(tx memory.Tx) error { return c.change(tx, r.now()) })
				}
				time.Sleep(c.down)
				r.config.Troubled = name == "in trouble"
				r.start()
				r.pass(time.Minute)
				r.expect("outcomes", r.words("daily"), c.words)
				outcomes := r.why("daily").Outcomes
				if first := outcomes[len(outcomes)-1]; !strings.Contains(first.Reason, c.reason) || first.Tick.Format(time.TimeOnly) != "08:00:00" {
					t.Errorf("the first outcome: %+v", first)
				}
				r.expect("told", len(r.told()), strings.Count(c.words, "woke"))
				r.stop()
			})
		})
	}
}

// TestWhatComesOutOfTurnIsTakenUpToo: a failed run that was to be tried again, what a snooze held back, and what was asked for.
func TestWhatComesOutOfTurnIsTakenUpToo(t *testing.T) {
	for name, begin := range map[string]func(r *rig){
		"retry": func(r *rig) {
			says := r.ends
			r.runs(func(context.Context, Waking) (Ended, error) { return Ended{Reason: "no answer"}, nil })
			r.pass(90 * time.Second)
			r.runs(says)
		},
		"snooze": func(r *rig) {
			r.snooze(ann, 2*time.Minute)
			r.pass(90 * time.Second)
		},
		"asked": func(r *rig) {
			err := r.store.Update(context.Background(), func(tx memory.Tx) error { return Ask(tx, "call", ann, "", r.now()) })
			if err != nil {
				r.t.Error(err)
			}
		},
	} {
		for _, personal := range []bool{false, true} {
			for write := range 4 {
				t.Run(fmt.Sprint(name, personal, write), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { outOfTurn(t, name, begin, personal, write+1) })
				})
			}
		}
	}
}

func outOfTurn(t *testing.T, name string, begin func(r *rig), personal bool, write int) {
	r := newRig(t)
	r.ends = r.voice()
	h := reminder("00:01")
	if name == "asked" {
		h = reminder("09:00")
	}
	if personal {
		h.Condition = Spec{Kind: "idle", After: time.Minute}
		r.config.Conditions = func(Heartbeat) (Condition, error) { return everybody{}, nil }
	}
	r.save(h)
	r.start()
	begin(r)
	r.expect("told before the kill", len(r.told()), 0)
	r.cut(write, true, time.Minute, 2*time.Hour)
	r.pass(time.Minute)
	r.expect("told", len(r.told()), 1)
	if last := r.last("call"); last.Word != Woke {
		t.Errorf("the last outcome: %+v", last)
	}
	ticks := map[time.Time]int{}
	for _, outcome := range r.why("call").Outcomes {
		if ticks[outcome.Tick]++; ticks[outcome.Tick] > 1 {
			t.Errorf("another outcome: %+v", outcome)
		}
	}
	if ended := r.why("call").Heartbeat.Ended; (ended == "") != (name == "asked") {
		t.Errorf("it has ended: %q", ended)
	}
	r.stop()
}

// everybody is a condition that is true of each person.
type everybody struct{}

func (everybody) Check(context.Context, string) (Finding, error) {
	return Finding{}, errors.New("of whom")
}
func (everybody) For(string) Condition { return trueOf{} }

type trueOf struct{}

func (trueOf) Check(context.Context, string) (Finding, error) { return Finding{True: true}, nil }

// TestAStaleRetryDoesNotSwallowWhatIsAskedFor, nor does a tick in turn that is due at the same moment or going on.
func TestAStaleRetryDoesNotSwallowWhatIsAskedFor(t *testing.T) {
	for _, when := range []string{"retry", "tick", "going"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.ends = func(_ context.Context, w Waking) (Ended, error) {
					if when == "going" && !w.Asked {
						time.Sleep(10 * time.Second)
					}
					return Ended{OK: when != "retry" || w.Asked, Reason: "no answer"}, nil
				}
				h := beat("daily", "yes")
				h.Cron, h.For = "0 9 * * *", []string{ann, bob}
				r.save(h)
				r.start()
				ask := func() { r.update(func(tx memory.Tx) error { return Ask(tx, "daily", ann, "", r.now()) }) }
				switch when {
				case "retry":
					r.pass(9*time.Hour + 59*time.Second)
					r.set(r.now().Add(time.Second)) // the retry is due, and the clock has not looked yet
				case "tick":
					r.pass(9*time.Hour - time.Second)
					r.set(r.now().Add(2 * time.Second))
				case "going":
					r.pass(9*time.Hour + time.Second)
				}
				ask()
				r.pass(30 * time.Second)
				r.stop()
				asked := 0
				for _, w := range r.allWakes() {
					if w.Asked {
						asked++
					}
				}
				r.expect("runs that were asked for", asked, 1)
				for zone, z := range r.why("daily").State.Zones {
					if len(z.Asked) > 0 {
						t.Errorf("zone %s: %+v", zone, z)
					}
				}
				r.expect("runs in turn", len(r.allWakes()) > 1, true)
			})
		})
	}
}

// TestATooLateTickDoesNotSwallowWhatASnoozeHeldBack: the program was down when the snooze ended and when the next tick was due.
func TestATooLateTickDoesNotSwallowWhatASnoozeHeldBack(t *testing.T) {
	for _, kind := range []string{"change", "always"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHerald(t, budget(t, "", 1, "20:00"))
				daily, loud := beat("daily", "yes"), beat("loud", "yes")
				daily.Cron, loud.Cron = "0 9 * * *", "@at 2000-01-01T08:00"
				if kind == "always" {
					daily.Condition = Spec{Kind: KindAlways}
				}
				h.save(daily, loud)
				h.start()
				h.pass(8*time.Hour + time.Minute)
				h.snooze(ann, 23*time.Hour) // until 07:01 of the next day
				h.pass(2 * time.Hour)
				h.says("daily", Slept, "snoozed until")
				h.stop()
				time.Sleep(30 * time.Hour) // 16:01: the tick of nine is too late
				h.start()
				h.pass(time.Minute)
				h.expect("woken", h.woken("daily"), map[string]int{ann: 1})
				h.expect("said", h.saidTo(ann), 2)
				words := h.words("daily")
				h.expect("outcomes", words, "slept slept woke")
				h.stop()
			})
		})
	}
}
