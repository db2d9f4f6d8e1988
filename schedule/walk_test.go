package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/memory"
)

// The walk lets time pass over a reminder, a pulse and a watch on something that changes, with kills at any write, stops, snoozes,
// ticks asked for by hand and edits, and holds what came of it to the rules.

// deed is one step of the walk.
type deed struct {
	Do    string
	Name  string        // of the heartbeat
	Write int           // at which the program is killed
	After bool          // that write is kept
	For   time.Duration // how long it takes
}

var deeds = rapid.Custom(func(t *rapid.T) deed {
	return deed{
		Do:    rapid.SampledFrom([]string{"pass", "pass", "kill", "kill", "kill", "stop", "snooze", "lift", "ask", "ask", "edit", "flip", "slow", "fail"}).Draw(t, "do"),
		Name:  rapid.SampledFrom([]string{"call", "pulse", "watch"}).Draw(t, "name"),
		Write: rapid.IntRange(1, 8).Draw(t, "write"), After: rapid.Bool().Draw(t, "after"),
		For: time.Duration(rapid.SampledFrom([]int{0, 1, 59, 60, 150, 600, 1800, 5400}).Draw(t, "seconds")) * time.Second,
	}
})

// begun is a run as the journal of an agent has it.
type begun struct {
	Waking
	Begins int
	Ended  bool
}

// walk is the world around the clock, and what is known of the rules.
type walk struct {
	*rig
	fired, slow, fails bool                   // what is watched, and how runs are
	rises              int                    // how often what is watched became true
	saved              map[string][]time.Time // when each heartbeat was saved
	up                 []time.Time            // when the clock ran for sure
	asked              map[string][]time.Time // when a tick was asked for
	heard              map[string][]time.Time // when a run that was asked for ended
	problems           []string
}

func (w *walk) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func runKey(of Waking) string {
	return fmt.Sprintf("%s %s %s %t", of.Heartbeat, of.Person, of.Tick.Format(time.RFC3339Nano), of.Asked)
}

// begin is what an agent does: a run is on disk before it begins, and not begun twice for a tick.
func (w *walk) begin(ctx context.Context, of Waking) (Ended, error) {
	var run begun
	err := w.store.Update(ctx, func(tx memory.Tx) error {
		var err error
		run, err = loadRun(tx, runKey(of))
		if err != nil || run.Begins > 0 && of.Again {
			return err
		}
		run = begun{Waking: of, Begins: run.Begins + 1}
		return saveRun(tx, run)
	})
	if err != nil || run.Ended {
		return Ended{OK: err == nil}, err
	}
	w.mu.Lock()
	slow, fails := w.slow, w.fails
	w.mu.Unlock()
	if slow {
		select {
		case <-ctx.Done():
			return Ended{}, ctx.Err()
		case <-time.After(20 * time.Second):
		}
	}
	if fails && !of.Asked {
		return Ended{Reason: "no answer"}, nil
	}
	err = w.end(ctx, run)
	return Ended{OK: err == nil}, err
}

// end says what a run tells, once in an episode, unless the person has snoozed.
func (w *walk) end(ctx context.Context, run begun) error {
	return w.store.Update(ctx, func(tx memory.Tx) error {
		now, err := loadRun(tx, runKey(run.Waking))
		if err != nil || now.Ended {
			return err
		}
		now.Ended = true
		if err := saveRun(tx, now); err != nil {
			return err
		}
		key := fmt.Sprintf("%s %s %t %s", run.Heartbeat, run.Person, run.Asked, run.Episode)
		if _, told, err := tx.Table("told").Get(key); err != nil || told {
			return err
		}
		hold, err := Budget{}.Admit(tx, Unasked{
			Person: run.Person, Zone: time.UTC, Heartbeat: run.Heartbeat, Key: run.Heartbeat, Episode: run.Episode, Asked: run.Asked,
		}, w.rig.now())
		if err != nil || hold.Holds() {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if run.Asked {
			w.heard[run.Heartbeat] = append(w.heard[run.Heartbeat], w.rig.now())
		}
		return tx.Table("told").Put(key, nil)
	})
}

func loadRun(tx memory.Tx, key string) (run begun, err error) {
	data, found, err := tx.Table("run").Get(key)
	if err == nil && found {
		err = json.Unmarshal(data, &run)
	}
	return run, err
}

func saveRun(tx memory.Tx, run begun) error {
	data, err := json.Marshal(run)
	return errors.Join(err, tx.Table("run").Put(runKey(run.Waking), data))
}

// again starts the program anew; runs that were cut off go on by themselves.
func (w *walk) again() {
	w.store.Revive()
	for _, run := range w.runs() {
		if !run.Ended {
			if err := w.end(context.Background(), run); err != nil {
				w.problem("a run goes on: %v", err)
			}
		}
	}
	w.start()
}

func (w *walk) runs() (all []begun) {
	err := w.store.View(context.Background(), func(tx memory.Tx) error {
		return tx.Table("run").Scan("", func(_ string, data []byte) error {
			var run begun
			err := json.Unmarshal(data, &run)
			all = append(all, run)
			return err
		})
	})
	if err != nil {
		w.problem("read the runs: %v", err)
	}
	return all
}

func newWalk(t *testing.T) *walk {
	w := &walk{rig: newRig(t), saved: map[string][]time.Time{}, asked: map[string][]time.Time{}, heard: map[string][]time.Time{}}
	w.ends = w.begin
	w.look("fired", func() (Finding, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return Finding{True: w.fired}, nil
	})
	for _, name := range []string{"call", "pulse", "watch"} {
		w.edit(name)
	}
	w.start()
	return w
}

// edit saves a heartbeat: a reminder gets another instant.
func (w *walk) edit(name string) {
	h := beat(name, "fired")
	switch name {
	case "call":
		h = reminder("00:00")
		h.Cron, h.Grace = onceWord+w.rig.now().Add(10*time.Minute).Format(time.RFC3339), 30*time.Minute
	case "pulse":
		h.Cron, h.Condition = "@every 10m", Spec{Kind: KindAlways}
	case "watch":
		h.Cron, h.Zone, h.Grace = "0 * * * *", "UTC", 10*time.Minute
	}
	h.Prompt, h.Text = fmt.Sprint("Version ", len(w.saved[name])), ""
	w.save(h)
	w.saved[name] = append(w.saved[name], w.rig.now())
}

func (w *walk) do(d deed) {
	set := func(what *bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		*what = !*what
	}
	w.pass(time.Millisecond)
	w.up = append(w.up, w.rig.now())
	switch d.Do {
	case "pass":
		w.pass(d.For)
	case "kill":
		w.store.FailAt(w.store.Count()+d.Write, d.After)
		w.pass(d.For)
		w.stop()
		w.again()
	case "stop":
		w.stop()
		time.Sleep(d.For)
		w.again()
	case "snooze":
		w.snooze(ann, d.For+time.Second)
	case "lift":
		w.snooze(ann, 0)
	case "ask":
		w.askFor(d.Name)
	case "edit":
		w.edit(d.Name)
	case "flip":
		if set(&w.fired); w.fired {
			w.rises++
		}
	case "slow":
		set(&w.slow)
	case "fail":
		set(&w.fails)
	}
	synctest.Wait()
}

// askFor asks for a tick of what is always so.
func (w *walk) askFor(name string) {
	if name == "watch" {
		return
	}
	at := w.rig.now()
	err := w.store.Update(context.Background(), func(tx memory.Tx) error { return Ask(tx, name, ann, "", at) })
	switch {
	case err == nil:
		w.asked[name] = append(w.asked[name], at)
		w.clock.Look()
	case !errors.Is(err, ErrResting):
		w.problem("ask: %v", err)
	}
}

// rest lets everything come to its end.
func (w *walk) rest() {
	w.mu.Lock()
	w.slow, w.fails = false, false
	w.mu.Unlock()
	w.snooze(ann, 0)
	w.pass(3 * time.Hour)
	w.stop()
}

// told counts what was told of a heartbeat unasked.
func (w *walk) countTold(name string) (n int) {
	for _, key := range w.rig.told() {
		if strings.HasPrefix(key, name+" "+ann+" false ") {
			n++
		}
	}
	return n
}

// holdToRules compares what came of the walk with the rules.
func (w *walk) holdToRules() {
	for name := range w.saved {
		w.onceEach(name)
		for _, at := range w.asked[name] {
			if !slices.ContainsFunc(w.heard[name], func(heard time.Time) bool { return !heard.Before(at) }) {
				w.problem("%s: nothing came of what was asked for at %s", name, at.Format(time.TimeOnly))
			}
		}
		for zone, z := range w.why(name).State.Zones {
			if !z.Claim.IsZero() || z.Row != "" || len(z.Asked) > 0 || !z.Held.IsZero() || z.Pending && name == "watch" {
				w.problem("%s in %s is left with %+v", name, zone, *z)
			}
		}
	}
	for _, run := range w.runs() {
		if run.Begins > 1 {
			w.problem("a run began %d times: %s", run.Begins, runKey(run.Waking))
		}
	}
	w.reminded()
	w.pulses()
	if n := w.countTold("watch"); n > w.rises || w.fired && n == 0 {
		w.problem("what became true %d times was told %d times", w.rises, n)
	}
	err := w.store.View(context.Background(), func(tx memory.Tx) error {
		return Check(tx, func(problem string) { w.problem("%s", problem) })
	})
	if err != nil {
		w.problem("check: %v", err)
	}
}

// onceEach holds that no tick has two outcomes.
func (w *walk) onceEach(name string) {
	ticks := map[time.Time]bool{}
	for _, o := range w.why(name).Outcomes {
		if ticks[o.Tick] {
			w.problem("%s: a second outcome: %+v", name, o)
		}
		ticks[o.Tick] = true
	}
}

// reminded holds that the reminder was told once for each of its instants at most, and for the last one unless an outcome says why
// not.
func (w *walk) reminded() {
	report, saved := w.why("call"), w.saved["call"]
	if n := w.countTold("call"); n > len(saved) {
		w.problem("a reminder of %d instants was told %d times", len(saved), n)
	}
	if report.Heartbeat.Ended == "" {
		w.problem("the reminder has not ended: %+v, %+v", *report.State.Zones["UTC"], report.Outcomes)
	}
	last := saved[len(saved)-1].Add(10 * time.Minute).Truncate(time.Second)
	for _, o := range report.Outcomes {
		if !o.Tick.Before(last) && (o.Word == Woke && !strings.Contains(o.Reason, "asked for") || strings.Contains(o.Reason, "too late") || strings.Contains(o.Reason, "missed")) {
			return
		}
	}
	w.problem("the reminder of %s was lost: %+v", last.Format(time.TimeOnly), report.Outcomes)
}

// pulses holds that each tick has an outcome, or was passed over by one that says so. One that was due while the clock did not run
// is gone when the heartbeat was changed then.
func (w *walk) pulses() {
	outcomes := w.why("pulse").Outcomes
	for i, from := range w.saved["pulse"] {
		until := w.rig.now()
		if i+1 < len(w.saved["pulse"]) {
			until = w.saved["pulse"][i+1]
		}
		for at := from.Truncate(time.Second).Add(10 * time.Minute); at.Before(until); at = at.Add(10 * time.Minute) {
			ran := slices.ContainsFunc(w.up, func(up time.Time) bool { return up.After(at) && !up.After(until) })
			if ran && !slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.accountsFor(at) }) {
				w.problem("the pulse of %s has no outcome: %+v", at.Format(time.TimeOnly), outcomes)
				return
			}
		}
	}
}

// accountsFor reports whether an outcome is of a tick, or says that those after its own were missed.
func (o Outcome) accountsFor(at time.Time) bool {
	missed := strings.Contains(o.Reason, "did not run") || strings.Contains(o.Reason, laterDue)
	return o.Tick.Equal(at.UTC()) || missed && o.Tick.Before(at) && at.Sub(o.Tick) < 3*time.Hour
}

// TestWalk goes twenty ways at random, and with NUDGE_SWEEP=all as many as other properties are checked.
func TestWalk(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); os.Getenv("NUDGE_SWEEP") != "all" && checks.Value.String() == checks.DefValue {
		if err := flag.Set(checks.Name, "20"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) }) // which was taken once
	}
	rapid.Check(t, func(rt *rapid.T) {
		way := rapid.SliceOfN(deeds, 1, 12).Draw(rt, "way")
		var problems []string
		synctest.Test(t, func(t *testing.T) {
			w := newWalk(t)
			for _, d := range way {
				w.do(d)
			}
			w.rest()
			w.holdToRules()
			problems = w.problems
		})
		if len(problems) > 0 {
			rt.Fatal(strings.Join(problems, "\n"))
		}
	})
}
