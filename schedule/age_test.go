package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// check runs [Check] and fails the test when it finds anything.
func (r *rig) check(when string) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) error {
		return Check(tx, func(problem string) { r.t.Errorf("%s: %s", when, problem) })
	})
	if err != nil {
		r.t.Error(err)
	}
}

// rows are the keys of a table.
func (r *rig) rows(table string) (keys []string) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) error {
		keys = nil
		return tx.Table(table).Scan("", func(key string, _ []byte) error { keys = append(keys, key); return nil })
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return keys
}

// sweep forgets what ended before the age, in steps of two, and gives the names.
func (r *rig) sweep() (names []string) {
	r.t.Helper()
	for more := true; more; {
		r.update(func(tx memory.Tx) error {
			swept, err := SweepEnded(tx, r.now().Add(-KeptFor), 2)
			for _, h := range swept {
				names = append(names, h.Name)
			}
			more = len(swept) == 2
			return err
		})
	}
	slices.Sort(names)
	return names
}

// later is a heartbeat that is not due every minute, so that a test can let months pass.
func later(name, look string) Heartbeat {
	h := beat(name, look)
	h.Cron, h.Zone = "0 */6 * * *", "UTC"
	return h
}

// TestOutcomesAge: how many outcomes are kept of heartbeats that tick often and seldom, after more than a year.
func TestOutcomesAge(t *testing.T) {
	want := map[string]int{"@every 6h": kept, "0 9 * * *": 90, "0 9 * * 1": 13, "0 9 1 * *": keptAnyway, "0 9 1 1 *": 2}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for cron := range want {
			h := later(strings.ReplaceAll(cron, "/", "-"), "no")
			h.Cron, h.Zone = cron, "Europe/Berlin"
			r.save(h)
		}
		r.start()
		for range 14 {
			r.pass(31 * 24 * time.Hour)
			r.check("meanwhile")
		}
		r.stop()
		for cron, want := range want {
			report := r.why(strings.ReplaceAll(cron, "/", "-"))
			if got := len(report.Outcomes); got < want || got > want+1 {
				t.Errorf("%s: %d outcomes are kept, want %d", cron, got, want)
			}
			if ticks := report.Counters.Ticks; ticks < 2 || uint64(ticks) != report.State.Seq {
				t.Errorf("%s: %d ticks are counted, and %d numbered", cron, ticks, report.State.Seq)
			}
			for i, o := range report.Outcomes {
				if old := report.Outcomes[0].Tick.Sub(o.Tick) > KeptFor; old && i >= keptAnyway {
					t.Errorf("%s: outcome %d is of %s", cron, i, o.Tick)
				}
			}
		}
	})
}

// TestEndedHeartbeatsAge: what ended is forgotten in time, with all that is kept of it, unless the config would begin it anew.
func TestEndedHeartbeatsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		inChat, call := later("in chat", "yes"), reminder("08:00")
		inChat.By = ann
		enough, takenOut, goesOn := later("enough", "yes"), later("taken out", "no"), later("goes on", "no")
		enough.MaxTicks, enough.Condition = 3, Spec{Kind: KindAlways}
		config := []Heartbeat{enough, takenOut, goesOn}
		r.save(inChat, call)
		r.reconcile(config...)
		r.start()
		r.pass(24 * time.Hour)
		r.update(func(tx memory.Tx) error {
			return errors.Join(End(tx, "in chat", "stopped in a conversation", r.now()), changeAttention(tx, ann, r.now(), func(a *Attention) {
				for _, h := range []string{"in chat", "goes on"} {
					a.taste(h).Told = 1
				}
			}))
		})
		r.reconcile(enough, goesOn)
		r.check("what has ended")
		r.pass(KeptFor - time.Hour)
		r.expect("forgotten too early", r.sweep(), []string{"call", "enough"}) // which ended a day before
		r.pass(2 * time.Hour)
		r.expect("forgotten in time", r.sweep(), []string{"in chat", "taken out"})
		r.check("what was forgotten")
		r.expect("forgotten again", len(r.sweep()), 0)
		r.expect("heartbeats", r.rows(string(tableHeartbeats)), []string{"enough", "goes on"})
		r.expect("states", r.rows(string(tableStates)), []string{"enough", "goes on"})
		r.expect("uses", r.rows(string(tableUse)), []string{"enough/" + ann})
		r.expect("outcomes of what stays", len(r.why("enough").Outcomes), 0)
		r.expect("counters of what stays", r.why("enough").Counters.Wakes, 3)
		r.update(func(tx memory.Tx) error {
			a, err := LoadAttention(tx, ann)
			if a.Tastes["in chat"] != nil || a.Tastes["goes on"] == nil {
				t.Errorf("what was made of heartbeats: %v", a.Tastes)
			}
			return err
		})
		woken := r.woken("enough")[ann]
		r.reconcile(enough, goesOn)
		r.pass(24 * time.Hour)
		r.expect("wakes of what had ended", r.woken("enough")[ann], woken)
		r.stop()
		r.check("in the end")
	})
}

// reconcile takes over a config.
func (r *rig) reconcile(config ...Heartbeat) {
	r.t.Helper()
	if err := Reconcile(context.Background(), r.store, config, r.now()); err != nil {
		r.t.Fatal(err)
	}
	if r.clock != nil {
		r.clock.Look()
		synctest.Wait()
	}
}

// TestWhatBeginsAgainIsNotForgotten: a reminder that was snoozed, and a heartbeat that was made again.
func TestWhatBeginsAgainIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h := beat("disk", "no")
		h.By = ann
		r.save(h)
		r.update(func(tx memory.Tx) error { return End(tx, "disk", "done", r.now()) })
		r.check("one that ended")
		r.expect("rows of what ended", len(r.rows(string(tableEnded))), 1)
		r.save(h)
		r.check("one that began again")
		r.expect("rows of what ended", len(r.rows(string(tableEnded))), 0)
		r.pass(2 * KeptFor)
		r.expect("forgotten", len(r.sweep()), 0)
		r.update(func(tx memory.Tx) error {
			stale := Heartbeat{Name: "disk", EndedAt: r.now().Add(-2 * KeptFor)}
			return errors.Join(End(tx, "disk", "done", r.now()), tx.Table(tableEnded).Put(stale.endedKey(), nil))
		})
		r.expect("forgotten for an end that was taken back", len(r.sweep()), 0)
		r.check("one that ended again")
		r.update(func(tx memory.Tx) error { return Remove(tx, "disk") })
		r.check("one that was taken away")
		r.expect("rows of what ended", len(r.rows(string(tableEnded))), 0)
	})
}

// TestWhatAnEarlierVersionEnded is dated at the next start: by its last tick, or by when it was made.
func TestWhatAnEarlierVersionEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, name := range []string{"ticked", "never", "unreadable"} {
			h := later(name, "no")
			h.By = ann
			if name == "never" {
				h.Cron = "@every 9999h"
			}
			r.save(h)
		}
		r.start()
		r.pass(30 * 24 * time.Hour)
		r.stop()
		r.expect("ticks", r.why("unreadable").State.Seq, 120)
		r.update(func(tx memory.Tx) error {
			for _, name := range []string{"ticked", "never", "unreadable"} {
				h, _, err := find(tx, name)
				if err != nil {
					return err
				}
				h.Ended = "stopped in a conversation" // and no more, as it was
				row, err := json.Marshal(h)
				if err = errors.Join(err, tableHeartbeats.Table(tx).Put(name, row), rest(tx, name, func(*Heartbeat) {}), tx.Table(tableEnded).Delete(h.endedKey())); err != nil {
					return err
				}
			}
			return tableTicks.Table(tx).Put(tickKey("unreadable", 120), []byte("{"))
		})
		r.reconcile()
		var dated []string
		r.update(func(tx memory.Tx) error {
			dated = nil
			list, err := List(tx)
			for _, h := range list {
				dated = append(dated, fmt.Sprint(h.Name, " ", r.now().Sub(h.EndedAt).Round(time.Hour)))
			}
			return err
		})
		r.expect("ages", dated, []string{"never 720h0m0s", "ticked 0s", "unreadable 720h0m0s"})
		r.pass(KeptFor - 29*24*time.Hour)
		r.expect("forgotten first", r.sweep(), []string{"never", "unreadable"})
		r.pass(30 * 24 * time.Hour)
		r.expect("forgotten then", r.sweep(), []string{"ticked"})
		r.check("in the end")
		r.expect("outcomes", len(r.rows(string(tableTicks))), 0)
	})
}
