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

func (r *rig) ask(name, person string) {
	r.t.Helper()
	r.update(func(tx memory.Tx) error { return Ask(tx, name, person, "", r.now()) })
}

// TestATickThatWasAskedFor wakes who asked, though they have heard of it, have snoozed, and it is their quiet hours; and nobody
// else. Nothing that is remembered changes by it.
func TestATickThatWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Budget = Budget{Quiet: quiet(t, "22:00-07:00"), DailyCap: 1}
		daily := beat("daily", "yes")
		daily.Cron, daily.For = "0 9 * * *", []string{ann, bob}
		r.save(daily)
		r.start()
		r.pass(3 * time.Hour)
		r.snooze(ann, 48*time.Hour)
		r.ask("daily", ann)
		r.expect("woken", r.woken("daily"), map[string]int{ann: 1})
		if w := r.allWakes()[0]; !w.Asked || w.Tick.Format(time.TimeOnly) != "03:00:00" {
			t.Errorf("the wake: %+v", w)
		}
		r.says("daily", Woke, "asked for: woke "+ann)
		if z := r.why("daily").State.Zones["UTC"]; z.True || z.Episode != "" || z.Woke > 0 || len(z.Asked) > 0 {
			t.Errorf("the condition's state was moved on: %+v", z)
		}
		r.pass(6 * time.Hour)
		r.expect("woken at its own tick", r.woken("daily"), map[string]int{ann: 1, bob: 1})
		if w := r.allWakes()[1]; w.Asked {
			t.Errorf("the wake: %+v", w)
		}
		r.look("yes", func() (Finding, error) { return Finding{}, nil })
		r.ask("daily", bob)
		r.says("daily", Slept, "asked for by "+bob+": the condition was false")
		r.look("yes", func() (Finding, error) { return Finding{}, errors.New("no such host") })
		r.ask("daily", bob)
		r.says("daily", Failed, "asked for: the check failed: no such host")
		r.expect("wakes", len(r.allWakes()), 2)
		r.expect("errors in a row", r.why("daily").State.Zones["UTC"].Errors, 0)
		r.stop()
	})
}

func TestAskingIsRefused(t *testing.T) {
	ctx := context.Background()
	d := newDesk(t, beat("disk", "yes"))
	ask := func(name, person string) error {
		return d.store.Update(ctx, func(tx memory.Tx) error { return Ask(tx, name, person, "", d.now) })
	}
	if err := ask("none", ann); !errors.Is(err, ErrNoHeartbeat) {
		t.Errorf("of none: %v", err)
	}
	if err := ask("disk", bob); err == nil {
		t.Error("somebody whom it does not wake")
	}
	d.update(func(tx memory.Tx) error { return Pause(tx, "disk", "too loud") })
	if err := ask("disk", ann); !errors.Is(err, ErrResting) || fmt.Sprint(err) != "run heartbeat disk: it takes no ticks: it has paused: too loud" {
		t.Errorf("of a paused one: %v", err)
	}
}

// TestWhatWasAskedForIsNotCounted against the cap.
func TestWhatWasAskedForIsNotCounted(t *testing.T) {
	b := Budget{DailyCap: 1}
	d := newDesk(t)
	d.update(func(tx memory.Tx) error {
		for i, asked := range []bool{true, true, false, true, false} {
			hold, err := b.Admit(tx, Unasked{Person: ann, Zone: time.UTC, Heartbeat: "disk", Asked: asked}, d.now)
			if want := i == 4; hold.Holds() != want || err != nil {
				t.Errorf("message %d: %+v, %v", i, hold, err)
			}
		}
		return nil
	})
}

// TestAReportForOne of several people holds nothing of the others.
func TestAReportForOne(t *testing.T) {
	both := Report{
		Heartbeat: Heartbeat{Name: "disk", Cron: "@daily", For: []string{ann, bob}}, Used: []Use{{Person: bob}, {Person: ann}},
		Said:     []Regard{{Person: ann, Parts: []string{"useful once"}}, {Person: bob, Parts: []string{"snoozed"}}},
		State:    State{Zones: map[string]*Zone{"UTC": {Owed: []string{bob}}}},
		Outcomes: []Outcome{{Word: Woke, Reason: "woke " + bob}},
	}
	if got := fmt.Sprintf("%+v\n%s", both.For(ann), both.For(ann)); strings.Contains(got, bob) || !strings.Contains(got, "useful once") || !strings.Contains(got, Woke) {
		t.Errorf("for ann: %s", got)
	}
	if got := both.String(); !strings.Contains(got, bob) {
		t.Errorf("for an owner: %s", got)
	}
}
