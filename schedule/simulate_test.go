package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// byTime is a condition that is a function of the time: false, true, or failing in the middle of the night.
type byTime struct{ now func() time.Time }

func (c byTime) Check(context.Context, string) (Finding, error) {
	at := c.now().UTC()
	if at.Hour() == 3 {
		return Finding{}, errors.New("it is night")
	}
	return Finding{True: at.Hour()/2%2 == 0, Evidence: at.Format(time.TimeOnly)}, nil
}

func (r *rig) simulate(s Simulation) (all []Decision) {
	r.t.Helper()
	err := r.store.View(r.t.Context(), func(tx memory.Tx) (err error) {
		s.Past, err = Recall(tx, s.Heartbeats, r.now())
		return err
	})
	if err == nil {
		err = s.Run(r.t.Context(), func(d Decision) error { all = append(all, d); return nil })
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// TestSimulationIsTheClock lets twelve days pass for two zones, and plays the same stretch through
// beforehand: both decide each tick alike.
func TestSimulationIsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Zone = func(person string) string {
			return map[string]string{"a": "Europe/Berlin", "b": "America/New_York"}[person]
		}
		r.config.Conditions = func(Heartbeat) (Condition, error) { return byTime{r.now}, nil }
		var beats []Heartbeat
		for name, change := range map[string]func(*Heartbeat){
			"change":   func(h *Heartbeat) { h.Cron = "*/30 * * * *" },
			"true":     func(h *Heartbeat) { h.Cron = "15 */2 * * *"; h.Condition.On = OnTrue },
			"cooldown": func(h *Heartbeat) { h.Cron, h.Condition.Cooldown = "0 * * * *", 7*time.Hour },
			"fixed":    func(h *Heartbeat) { h.Cron, h.Condition.On = "30 1,2 * * *", OnTrue },
			"counted":  func(h *Heartbeat) { h.Cron, h.MaxTicks = "0 12 * * *", 5 },
			"ends":     func(h *Heartbeat) { h.Cron, h.Until = "0 * * * *", r.now().Add(1000*time.Hour) },
			"interval": func(h *Heartbeat) { h.Cron = "@every 50m" },
		} {
			h := beat(name, "played")
			h.For = []string{"a", "b"}
			change(&h)
			beats = append(beats, h)
		}
		r.save(beats...)
		r.start()
		stretch := 12 * 24 * time.Hour
		before := r.store.Count()
		played := r.simulate(Simulation{
			Heartbeats: beats, From: r.now().Add(1), To: r.now().Add(stretch), Zone: r.config.Zone,
			Conditions: func(_ Heartbeat, now func() time.Time) (Condition, error) { return byTime{now}, nil },
		})
		r.expect("writes of a simulation", r.store.Count()-before, 0)
		r.pass(stretch)
		r.stop()
		by := map[string][]string{}
		for _, d := range played {
			by[d.Heartbeat] = append(by[d.Heartbeat], fmt.Sprint(d.Tick, d.Zone, d.Word, strings.Split(d.Reason, "; the owners")[0]))
		}
		for _, h := range beats {
			report := r.why(h.Name)
			got := by[h.Name]
			r.expect("ticks of "+h.Name, len(got), report.Counters.Ticks)
			var want []string
			for _, o := range slices.Backward(report.Outcomes) {
				want = append(want, fmt.Sprint(o.Tick, o.Zone, o.Word, o.Reason))
			}
			got = got[max(0, len(got)-len(want)):]
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: played\n%s\nwas\n%s", h.Name, strings.Join(got[:min(5, len(got))], "\n"), strings.Join(want[:min(5, len(want))], "\n"))
			}
		}
	})
}

func TestSimulationTellsChangesOfTheClocks(t *testing.T) {
	r := newRig(t)
	h := beat("night", "no")
	h.Cron, h.Zone = "30 2 * * *", "Europe/Berlin"
	for from, want := range map[string]string{
		"2027-03-27T12:00:00Z": "2027-03-28 03:00:00 CEST  Europe/Berlin  clock   the clocks go forward by 1h, to 03:00 CEST\n2027-03-28 03:00:00 CEST  night  slept   the condition was false",
		"2027-10-30T12:00:00Z": "2027-10-31 02:30:00 CEST  night  slept   the condition was false\n2027-10-31 02:00:00 CET  Europe/Berlin  clock   the clocks go back by 1h, to 02:00 CET",
	} {
		start := instant(t, from)
		var lines []string
		for _, d := range r.simulate(Simulation{
			Heartbeats: []Heartbeat{h}, From: start, To: start.Add(24 * time.Hour),
			Conditions: func(h Heartbeat, _ func() time.Time) (Condition, error) { return r.condition(h) },
		}) {
			lines = append(lines, d.String())
		}
		r.expect("from "+from, strings.Join(lines, "\n"), want)
	}
}

// TestSimulationGoesOn replays what was recorded and goes on from what is remembered, snoozes included.
func TestSimulationGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, paused := beat("disk", "yes"), beat("rests", "yes")
		r.save(h, paused)
		r.update(func(tx memory.Tx) error { return Pause(tx, "rests", "ann asked for it") })
		r.start()
		r.pass(150 * time.Second)
		r.stop()
		from := r.now().Add(-150 * time.Second)
		paused.Paused = "ann asked for it"
		run := func() string {
			var words []string
			for _, d := range r.simulate(Simulation{
				Heartbeats: []Heartbeat{h, paused}, From: from.Add(1), To: from.Add(6 * time.Minute),
				Conditions: func(h Heartbeat, _ func() time.Time) (Condition, error) { return r.condition(h) },
			}) {
				words = append(words, fmt.Sprintf("%s %s %s %v", d.Tick.Format("04:05"), d.Heartbeat, d.Word, d.Recorded))
			}
			return strings.Join(words, ", ")
		}
		r.expect("decisions", run(), "00:00 rests slept false, 01:00 disk woke true, 02:00 disk slept true, 03:00 disk slept false, 04:00 disk slept false, 05:00 disk slept false, 06:00 disk slept false")
		r.update(func(tx memory.Tx) error {
			return SnoozeOne(tx, "terminal:ann", "disk", from.Add(5*time.Minute+30*time.Second), r.now())
		})
		h.Condition.On = OnTrue
		r.expect("with a snooze", run(), "00:00 rests slept false, 01:00 disk woke true, 02:00 disk slept true, 03:00 disk slept false, 04:00 disk slept false, 05:00 disk slept false, 05:30 disk woke false, 06:00 disk woke false")
	})
}

// TestSimulationKeepsTheBudget plays a day of quiet hours and a cap, which all heartbeats of a person share.
func TestSimulationKeepsTheBudget(t *testing.T) {
	r := newRig(t)
	quiet, err := ParseQuiet("22:00-07:00")
	if err != nil {
		t.Fatal(err)
	}
	var beats []Heartbeat
	for _, name := range []string{"a", "b"} {
		h := beat(name, "yes")
		h.Cron, h.Condition.On = "0 */3 * * *", OnTrue
		beats = append(beats, h)
	}
	var words []string
	start := instant(t, "2027-06-01T00:00:00Z")
	for _, d := range r.simulate(Simulation{
		Heartbeats: beats, From: start, To: start.Add(24 * time.Hour), Budget: Budget{Quiet: quiet, DailyCap: 7},
		Zone:       func(string) string { return "Europe/Berlin" },
		Conditions: func(h Heartbeat, _ func() time.Time) (Condition, error) { return r.condition(h) },
	}) {
		words = append(words, d.Word)
	}
	r.expect("words", strings.Join(words, " "), "quiet quiet quiet quiet woke woke woke woke woke woke woke capped capped capped quiet quiet")
}
