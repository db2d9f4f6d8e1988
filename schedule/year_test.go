package schedule

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// TestYear lets a year pass for a thousand heartbeats of people in four zones, with quiet hours and jitter: the oracle knows
// when each falls due, and every run that is not in quiet hours is there once. With NUDGE_LONG all are due every day; with
// the race detector it is 15 weeks of 300, in which all the zones change their clocks.
func TestYear(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago"}
	specs := []string{"%d %d * * 1", "%d %d * * 4", "%d %d 1 * *", "%d %d 31 * *", "%d %d 13 * 5", "%d %d 1,15 * *", "%d %d 29 2 *"}
	days, beats, rare := 366, 1000, 49
	if raced {
		days, beats = 15*7, 300
	}
	if os.Getenv("NUDGE_LONG") != "" {
		rare = 1
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Jitter = 30 * time.Second
		r.config.Budget = budget(t, "22:00-07:00", 0, "")
		zoneOf := func(person string) string { return zones[number(person)%len(zones)] }
		r.config.Zone = zoneOf
		r.config.Timers = map[string]func(context.Context, memory.Tx, memory.DueRow) error{
			DigestPrefix: func(context.Context, memory.Tx, memory.DueRow) error { return nil },
		}
		woken := map[string][]time.Time{}
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			woken[w.Heartbeat] = append(woken[w.Heartbeat], w.Tick)
			if inQuiet(t, r.now(), zoneOf(w.Person)) {
				t.Errorf("%s woke somebody in quiet hours, at %s", w.Heartbeat, r.now())
			}
			return Ended{OK: true}, nil
		}
		began := r.now()
		clocks := map[string]wallClock{}
		for _, zone := range zones {
			clocks[zone] = newWallClock(t, zone, began.Add(-24*time.Hour), began.Add(time.Duration(days)*24*time.Hour+time.Minute))
		}
		runsOf, want := map[string][]time.Time{}, map[string][]time.Time{}
		var list []Heartbeat
		for i := range beats {
			person := fmt.Sprint(i)
			h := Heartbeat{Name: "beat " + person, For: []string{person}, Prompt: "Look.", Condition: Spec{Kind: KindAlways}}
			spec := specs[i%len(specs)]
			if i%rare == 0 {
				spec = "%d %d * * *"
			}
			h.Cron = fmt.Sprintf(spec, i%2*30, i%24)
			key := h.Cron + zoneOf(person)
			if _, known := runsOf[key]; !known {
				c := clocks[zoneOf(person)]
				for _, minute := range c.runs(readWanted(h.Cron), true, 24*60) {
					if at := c.at(minute); !inQuiet(t, at, zoneOf(person)) {
						runsOf[key] = append(runsOf[key], at)
					}
				}
			}
			want[h.Name] = runsOf[key]
			list = append(list, h)
		}
		r.save(list...)
		r.start()
		r.pass(time.Duration(days) * 24 * time.Hour)
		r.stop()
		runs := 0
		for _, h := range list {
			runs += len(want[h.Name])
			if !slices.EqualFunc(woken[h.Name], want[h.Name], time.Time.Equal) {
				t.Errorf("%s, %q in %s: woke %d times, want %d", h.Name, h.Cron, zoneOf(h.For[0]), len(woken[h.Name]), len(want[h.Name]))
			}
		}
		t.Logf("%d runs", runs)
	})
}

// inQuiet reports whether clocks in a zone show a time from 22:00 to 07:00.
func inQuiet(t *testing.T, at time.Time, zone string) bool {
	location, err := loadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	hour := at.In(location).Hour()
	return hour >= 22 || hour < 7
}
