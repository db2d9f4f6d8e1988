package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// TestJitter wakes many people for several days: each at the same time after the tick, spread over the time that is
// allowed, and never past a tenth of the interval.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Jitter = 30 * time.Second
		var mu sync.Mutex
		after := map[string]map[time.Duration]bool{}
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			mu.Lock()
			defer mu.Unlock()
			key := w.Heartbeat + " " + w.Person
			if after[key] == nil {
				after[key] = map[time.Duration]bool{}
			}
			after[key][time.Since(w.Tick)] = true
			return Ended{OK: true}, nil
		}
		daily, often, once, instant := beat("daily", "yes"), beat("often", "yes"), beat("once", "yes"), beat("instant", "yes")
		for i := range 100 {
			daily.For = append(daily.For, fmt.Sprint("person", i))
		}
		often.For, once.For, instant.For = daily.For, daily.For, daily.For
		instant.Cron = "@at " + r.now().Add(30*time.Hour).Format(time.RFC3339)
		daily.Cron, once.Cron = "0 9 * * *", "0 9 * * *"
		daily.Condition.On, often.Condition.On = OnTrue, OnTrue
		once.MaxTicks = 1
		often.Until = r.now().Add(5 * time.Minute)
		r.save(daily, often, once, instant)
		r.start()
		r.pass(3 * 24 * time.Hour)
		r.stop()
		times := map[string]map[time.Duration]bool{"daily": {}, "often": {}, "once": {}, "instant": {}}
		for key, each := range after {
			if len(each) != 1 {
				t.Errorf("%s was woken %v after the ticks", key, slices.Collect(maps.Keys(each)))
			}
			for late := range each {
				var name, person string
				_, _ = fmt.Sscan(key, &name, &person)
				times[name][late] = true
			}
		}
		for name, most := range map[string]time.Duration{"daily": 30 * time.Second, "often": 6 * time.Second, "once": 1, "instant": 1} {
			for late := range times[name] {
				if late < 0 || late >= most {
					t.Errorf("%s woke somebody %s after the tick, want less than %s", name, late, most)
				}
			}
		}
		if len(times["daily"]) < 90 || len(times["often"]) < 90 {
			t.Errorf("%d and %d different times for 100 people", len(times["daily"]), len(times["often"]))
		}
	})
}

// TestJitterKeepsOutOfQuietHours: who would be woken a moment after the quiet hours began is not, though the tick was before.
func TestJitterKeepsOutOfQuietHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Jitter = time.Hour
		r.config.Budget = budget(t, "22:00-07:00", 0, "")
		h := beat("late", "yes")
		h.Cron, h.Condition.On, h.For = "45 21 * * *", OnTrue, nil
		for i := range 50 {
			h.For = append(h.For, fmt.Sprint("person", i))
		}
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			if r.now().UTC().Hour() != 21 {
				t.Errorf("%s was woken at %s", w.Person, r.now())
			}
			return Ended{OK: true}, nil
		}
		r.save(h)
		r.start()
		r.pass(24 * time.Hour)
		r.stop()
		if n := len(r.woken("late")); n == 0 || n == 50 {
			t.Errorf("%d of 50 were woken before the quiet hours", n)
		}
	})
}

func TestUseOfEachPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h := beat("disk", "yes")
		h.Condition.On, h.For = OnTrue, []string{"ann", "bob"}
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			return Ended{OK: true, ModelCalls: 1, TokensIn: len(w.Person), TokensOut: map[string]int{"ann": 1, "bob": 5}[w.Person], CostUSD: 0.25}, nil
		}
		r.save(h)
		r.start()
		r.pass(3*time.Minute + time.Second)
		r.stop()
		report := r.why("disk")
		r.expect("use", report.Used, []Use{{"bob", 3, 3, 9, 15, 0.75}, {"ann", 3, 3, 9, 3, 0.75}})
		r.expect("sum", report.Counters, Counters{Ticks: 3, Wakes: 3, ModelCalls: 6, TokensIn: 18, TokensOut: 18, CostUSD: 1.5})
		r.update(func(tx memory.Tx) error { _, _, err := ForgetHeartbeats(tx, "ann"); return err })
		r.expect("after ann was forgotten", r.why("disk").Used, []Use{{"bob", 3, 3, 9, 15, 0.75}})
		r.update(func(tx memory.Tx) error { return Remove(tx, "disk") })
		r.update(func(tx memory.Tx) error { return Save(tx, h, r.now()) })
		r.expect("of another of that name", len(r.why("disk").Used), 0)
	})
}
