package schedule

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// snooze keeps a person from being spoken to for a while; 0 lifts that.
func (r *rig) snooze(person string, d time.Duration) {
	r.t.Helper()
	r.update(func(tx memory.Tx) error {
		until := time.Time{}
		if d > 0 {
			until = r.now().Add(d)
		}
		return SnoozeAll(tx, person, until, r.now())
	})
}

// judge keeps a card and judges it.
func (r *rig) judge(heartbeat, person string, said Feedback, span Span) (j Judged) {
	r.t.Helper()
	r.update(func(tx memory.Tx) error {
		c, err := AddCard(tx, Card{Person: person, Heartbeat: heartbeat, Tick: r.now(), Told: r.now()})
		if err == nil {
			j, err = Judge(tx, c.ID, person, said, span, r.now(), time.UTC)
		}
		return err
	})
	return j
}

func (r *rig) allWakes() []Waking {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wakes)
}

func (r *rig) checked(look string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checks[look]
}

// last is the newest outcome.
func (r *rig) last(name string) Outcome {
	r.t.Helper()
	outcomes := r.why(name).Outcomes
	if len(outcomes) == 0 {
		r.t.Fatalf("%s has no outcome", name)
	}
	return outcomes[0]
}

func (r *rig) says(name, word, reason string) {
	r.t.Helper()
	if got := r.last(name); got.Word != word || !strings.Contains(got.Reason, reason) {
		r.t.Errorf("%s: %s, %s; want %s, %s", name, got.Word, got.Reason, word, reason)
	}
}

func TestASnoozedTickMakesNoCheckAndComesBack(t *testing.T) {
	for _, kind := range []string{"change", "true", "always"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				daily := beat("daily", "yes")
				daily.Cron, daily.Condition.On = "0 9 * * *", kind
				if kind == "always" {
					daily.Condition = Spec{Kind: KindAlways}
				}
				r.save(daily)
				r.start()
				r.pass(8 * time.Hour)
				r.snooze(ann, 2*time.Hour+30*time.Minute)
				r.pass(90 * time.Minute) // 09:30
				r.says("daily", Slept, "snoozed until Saturday 1 January 2000 at 10:30 UTC")
				r.expect("checks", r.checked("yes"), 0)
				r.expect("wakes", len(r.allWakes()), 0)
				r.expect("model calls", r.why("daily").Counters.ModelCalls, 0)
				if z := r.why("daily").State.Zones["UTC"]; z.True || z.Episode != "" || z.Pending {
					t.Errorf("the condition's state was moved on: %+v", z)
				}
				r.pass(59*time.Minute + 59*time.Second)
				r.expect("wakes before the snooze ends", len(r.allWakes()), 0)
				r.pass(time.Second)
				r.expect("wakes when it ends", r.woken("daily"), map[string]int{ann: 1})
				r.expect("instant", r.allWakes()[0].Tick.Format(time.TimeOnly), "10:30:00")
				r.pass(24 * time.Hour)
				want := map[string]int{"change": 1, "true": 2, "always": 2}[kind]
				r.expect("wakes on the next day", len(r.allWakes()), want)
				r.stop()
			})
		})
	}
}

func TestALiftedSnoozeBringsBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		daily, other := beat("daily", "yes"), beat("other", "yes")
		daily.Cron, other.Cron = "0 9 * * *", "0 9 * * *"
		r.save(daily, other)
		r.start()
		r.update(func(tx memory.Tx) error { return SnoozeOne(tx, ann, "daily", r.now().Add(40*time.Hour), r.now()) })
		r.pass(10 * time.Hour)
		r.expect("woken by the other", r.woken("other"), map[string]int{ann: 1})
		r.expect("woken by the snoozed", len(r.woken("daily")), 0)
		r.snooze(ann, time.Hour) // shorter, and of all: that of daily goes on
		r.pass(30 * time.Minute)
		r.expect("woken by the snoozed", len(r.woken("daily")), 0)
		r.snooze(ann, 0)
		r.pass(time.Second)
		r.expect("woken when it is lifted", r.woken("daily"), map[string]int{ann: 1})
		r.expect("woken by the other", r.woken("other"), map[string]int{ann: 1})
		r.stop()
	})
}

func TestOthersAreWokenAndTheSnoozedIsOwed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *Heartbeat, r *rig)
		want   map[string]int // after the snooze ended
		later  map[string]int // and another day
	}{
		"change":     {func(*Heartbeat, *rig) {}, map[string]int{ann: 1, bob: 1}, map[string]int{ann: 1, bob: 1}},
		"true":       {func(h *Heartbeat, _ *rig) { h.Condition.On = OnTrue }, map[string]int{ann: 1, bob: 1}, map[string]int{ann: 2, bob: 2}},
		"always":     {func(h *Heartbeat, _ *rig) { h.Condition = Spec{Kind: KindAlways} }, map[string]int{ann: 1, bob: 1}, map[string]int{ann: 2, bob: 2}},
		"cool-down":  {func(h *Heartbeat, _ *rig) { h.Condition.On, h.Condition.Cooldown = OnTrue, 30*time.Hour }, map[string]int{ann: 1, bob: 1}, map[string]int{ann: 1, bob: 1}},
		"one wake":   {func(h *Heartbeat, _ *rig) { h.MaxTicks = 1 }, map[string]int{ann: 1, bob: 1}, map[string]int{ann: 1, bob: 1}},
		"no more so": {func(_ *Heartbeat, r *rig) { r.look("yes", onceTrue(r)) }, map[string]int{ann: 1}, map[string]int{ann: 1}},
		"file":       {func(_ *Heartbeat, r *rig) { r.looks["yes"] = changing() }, map[string]int{ann: 1, bob: 1}, map[string]int{ann: 1, bob: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				daily := beat("daily", "yes")
				daily.Cron, daily.For = "0 9 * * *", []string{ann, bob}
				c.change(&daily, r)
				r.save(daily)
				r.start()
				if name == "file" {
					r.pass(24 * time.Hour) // the first look
				}
				r.pass(8 * time.Hour)
				r.snooze(bob, 3*time.Hour)
				r.pass(2 * time.Hour)
				r.expect("woken while bob has snoozed", r.woken("daily"), map[string]int{ann: 1})
				r.says("daily", Woke, ann+"; "+bob+" snoozed until ")
				r.pass(time.Hour)
				r.expect("woken after that", r.woken("daily"), c.want)
				if c.want[bob] == 1 && name != "always" {
					r.expect("episodes", r.allWakes()[1].Episode, r.allWakes()[0].Episode)
				}
				r.pass(24 * time.Hour)
				r.expect("woken a day later", r.woken("daily"), c.later)
				r.stop()
			})
		})
	}
}

// TestAChangeThatTheSnoozedHearFirst is told to the others in their turn.
func TestAChangeThatTheSnoozedHearFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		looked := 0
		r.looks["yes"] = func(_ context.Context, previous string) (Finding, error) {
			state := []string{"a", "b", "c", "c", "c"}[looked]
			looked++
			return Finding{True: previous != "" && state != previous, State: state}, nil
		}
		daily := beat("daily", "yes")
		daily.Cron, daily.For = "0 9 * * *", []string{ann, bob}
		r.save(daily)
		r.start()
		r.pass(32 * time.Hour)
		r.snooze(bob, 3*time.Hour)
		r.pass(2 * time.Hour)
		r.expect("woken for b", r.woken("daily"), map[string]int{ann: 1})
		r.pass(time.Hour)
		r.expect("woken when the snooze ends, for c", r.woken("daily"), map[string]int{ann: 1, bob: 1})
		r.pass(24 * time.Hour)
		r.expect("woken in their turn", r.woken("daily"), map[string]int{ann: 2, bob: 2})
		r.pass(24 * time.Hour)
		r.expect("woken for nothing", r.woken("daily"), map[string]int{ann: 2, bob: 2})
		r.stop()
	})
}

// onceTrue is true at the first look only.
func onceTrue(r *rig) func() (Finding, error) {
	looked := 0
	return func() (Finding, error) {
		looked++
		return Finding{True: looked == 1}, nil
	}
}

// changing is a watch that has seen a change at its second look.
func changing() func(context.Context, string) (Finding, error) {
	looked := 0
	return func(_ context.Context, previous string) (Finding, error) {
		looked++
		state := "a"
		if looked > 1 {
			state = "b"
		}
		return Finding{True: previous != "" && state != previous, State: state}, nil
	}
}

func TestLessLetsThePersonBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		daily := beat("daily", "yes")
		daily.Cron, daily.Condition, daily.For = "0 9 * * *", Spec{Kind: KindAlways}, []string{ann, bob}
		r.save(daily)
		r.start()
		r.pass(10 * time.Hour)
		j := r.judge("daily", ann, Less, "")
		r.expect("cool-down", j.Leeway[0].Least, 48*time.Hour)
		r.update(func(tx memory.Tx) error { // as the run's card would have it
			a, err := LoadAttention(tx, ann)
			a.taste("daily").Woke = r.now().Add(-time.Hour)
			return errorsOf(err, a.save(tx, ann, r.now()))
		})
		r.pass(24 * time.Hour)
		r.says("daily", Woke, ann+" asked for less of this, and is let be until Monday 3 January 2000 at 09:00 UTC")
		if text := r.why("daily").String(); !strings.Contains(text, "\n"+ann+": at most every 2 days, so not before Monday 3 January 2000 at 09:00 UTC\n") {
			t.Errorf("why does not tell it:\n%s", text)
		}
		r.expect("woken on the second day", r.woken("daily"), map[string]int{ann: 1, bob: 2})
		r.pass(24 * time.Hour)
		r.expect("woken on the third day", r.woken("daily"), map[string]int{ann: 2, bob: 3})
		r.pass(24 * time.Hour)
		r.expect("woken on the fourth day", r.woken("daily"), map[string]int{ann: 2, bob: 4})
		r.judge("daily", ann, Useful, "")
		r.pass(24 * time.Hour)
		r.pass(24 * time.Hour)
		if text := r.why("daily").String(); !strings.Contains(text, "\n"+ann+": useful once\n") {
			t.Errorf("why does not tell it:\n%s", text)
		}
		r.expect("woken after useful", r.woken("daily"), map[string]int{ann: 4, bob: 6})
		r.stop()
	})
}

func errorsOf(one, two error) error {
	if one != nil {
		return one
	}
	return two
}

func TestLessIsACooldownOfAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var seen sync.Map
		seen.Store("true", true)
		r.look("yes", func() (Finding, error) {
			is, _ := seen.Load("true")
			return Finding{True: is == true}, nil
		})
		r.save(beat("disk", "yes"))
		r.start()
		r.pass(time.Minute)
		r.judge("disk", ann, Less, "") // an hour
		seen.Store("true", false)
		r.pass(time.Minute)
		seen.Store("true", true)
		r.pass(30 * time.Minute)
		r.says("disk", Slept, "asked for less of this, and is let be until Saturday 1 January 2000 at 01:01 UTC")
		r.expect("wakes", len(r.allWakes()), 1)
		r.pass(29 * time.Minute)
		r.expect("wakes when the cool-down is over", len(r.allWakes()), 2)
		r.pass(2 * time.Hour)
		r.expect("wakes for the same episode", len(r.allWakes()), 2)
		r.stop()
	})
}

// TestASnoozeDuringARun holds back what the run would say, which comes when the snooze ends.
func TestASnoozeDuringARun(t *testing.T) {
	for _, people := range [][]string{{ann}, {ann, bob}} {
		for _, kind := range []string{"change", "always"} {
			t.Run(fmt.Sprint(len(people), " ", kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					r.ends = func(ctx context.Context, w Waking) (Ended, error) {
						if w.Person == ann && len(r.woken("daily")) > 0 && r.woken("daily")[ann] == 1 {
							if err := SnoozeIn(ctx, r.store, ann, r.now().Add(2*time.Hour), r.now()); err != nil {
								return Ended{}, err
							}
						}
						err := r.store.Update(ctx, func(tx memory.Tx) error {
							hold, err := Budget{}.Admit(tx, Unasked{Person: w.Person, Zone: time.UTC, Heartbeat: w.Heartbeat, Episode: w.Episode}, r.now())
							if hold.Holds() != (w.Person == ann && r.woken("daily")[ann] == 1) {
								t.Errorf("%s: held back until %s", w.Person, hold.Until)
							}
							return err
						})
						return Ended{OK: true, ModelCalls: 1}, err
					}
					daily := beat("daily", "yes")
					daily.Cron, daily.For = "0 9 * * *", people
					if kind == "always" {
						daily.Condition = Spec{Kind: KindAlways}
					}
					r.save(daily)
					r.start()
					r.pass(9 * time.Hour)
					r.says("daily", Woke, "nothing was said to "+ann+", who had snoozed")
					if z := r.why("daily").State.Zones["UTC"]; len(people) == 1 && (z.True || z.Woke > 0 || !z.LastWake.IsZero()) {
						t.Errorf("the condition's state was moved on: %+v", z)
					}
					r.pass(2 * time.Hour)
					want := map[string]int{}
					for _, person := range people {
						want[person] = 1
					}
					want[ann] = 2
					r.expect("woken when the snooze ends", r.woken("daily"), want)
					r.pass(6 * time.Hour)
					r.expect("woken later that day", r.woken("daily"), want)
					if a := r.attention(ann); a.Tastes["daily"].Withheld != "" {
						t.Errorf("left: %+v", a.Tastes["daily"])
					}
					r.stop()
				})
			})
		}
	}
}

// SnoozeIn is [SnoozeAll] in a transaction of its own.
func SnoozeIn(ctx context.Context, store memory.Store, person string, until, now time.Time) error {
	return store.Update(ctx, func(tx memory.Tx) error { return SnoozeAll(tx, person, until, now) })
}

func (r *rig) attention(person string) (a Attention) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) (err error) {
		a, err = LoadAttention(tx, person)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func TestWhoCannotBeLookedUpIsNotWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.save(beat("disk", "yes"))
		r.update(func(tx memory.Tx) error { return tableAttention.Table(tx).Put(ann, []byte("{")) })
		r.start()
		r.pass(time.Minute)
		r.says("disk", Failed, unreadable)
		r.expect("wakes", len(r.allWakes()), 0)
		r.stop()
	})
}

// TestHoldWalk lets people snooze, judge and lift at random while conditions come and go, with stops of the clock. Nobody is
// woken while they want to be left alone, and what is still so in the end has been told to everybody.
func TestHoldWalk(t *testing.T) {
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { holdWalk(t, rand.New(rand.NewPCG(seed, 2))) })
		})
	}
}

func holdWalk(t *testing.T, random *rand.Rand) {
	r := newRig(t)
	var mu sync.Mutex
	is, told := false, map[string]bool{}
	fate := rand.New(rand.NewPCG(random.Uint64(), 3)) // of runs; guarded by mu
	r.look("maybe", func() (Finding, error) {
		mu.Lock()
		defer mu.Unlock()
		return Finding{True: is}, nil
	})
	r.ends = func(_ context.Context, w Waking) (Ended, error) {
		if hold := r.attention(w.Person).Hold(w.Heartbeat, w.Tick, r.now()); hold.Holds() {
			t.Errorf("%s is woken at %s, and wants to be let be until %s", w.Person, r.now(), hold.Until)
		}
		mu.Lock()
		defer mu.Unlock()
		if fails := fate.IntN(8) == 0; fails {
			return Ended{Reason: "at random"}, nil
		}
		if told[w.Person] {
			t.Errorf("%s is told twice of the same episode", w.Person)
		}
		told[w.Person] = true
		return Ended{OK: true}, nil
	}
	people := []string{ann, bob, "terminal:cy"}
	h := beat("disk", "maybe")
	h.Cron, h.For = "*/10 * * * *", people
	r.save(h)
	r.start()
	for range 90 {
		person := people[random.IntN(len(people))]
		switch random.IntN(8) {
		case 0:
			r.snooze(person, time.Duration(random.IntN(180))*time.Minute)
		case 1:
			r.snooze(person, 0)
		case 2:
			r.judge("disk", person, Less, "")
		case 3:
			r.judge("disk", person, Useful, "")
		case 4:
			mu.Lock()
			// What ends while everybody has snoozed is not seen, so it ends only while somebody looks.
			if is = !is; !is && r.unseen(people) {
				is = true
			}
			mu.Unlock()
			r.pass(10 * time.Minute)
			mu.Lock()
			if !is {
				told = map[string]bool{}
			}
			mu.Unlock()
		case 5:
			r.stop()
			r.start()
		}
		r.pass(time.Duration(random.IntN(40)) * time.Minute)
	}
	mu.Lock()
	is = true
	mu.Unlock()
	r.pass(8 * 24 * time.Hour)
	for _, person := range people {
		mu.Lock()
		if !told[person] {
			t.Errorf("%s was never told: %+v; %s", person, r.attention(person), r.why("disk"))
		}
		mu.Unlock()
	}
	if problems := r.problems(); len(problems) > 0 {
		t.Error(problems)
	}
	r.stop()
}

// unseen reports whether all people have snoozed for the next tick.
func (r *rig) unseen(people []string) bool {
	return !slices.ContainsFunc(people, func(person string) bool {
		return r.attention(person).SnoozedBy("disk", r.now().Add(10*time.Minute)).IsZero()
	})
}

func (r *rig) problems() (found []string) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) error {
		return Check(tx, func(problem string) { found = append(found, problem) })
	})
	if err != nil {
		r.t.Error(err)
	}
	return found
}
