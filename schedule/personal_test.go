package schedule

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// silence is a condition that is about each person by themselves: true of those who are silent.
type silence struct {
	mu     sync.Mutex
	silent map[string]bool
	built  int // how often it was built: once for each look
	fails  error
}

func (s *silence) set(silent bool, people ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, person := range people {
		s.silent[person] = silent
	}
}

func (s *silence) looks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.built
}

func (s *silence) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

func (s *silence) build(Heartbeat) (Condition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.built++
	return silences{s, ""}, nil
}

type silences struct {
	of     *silence
	person string
}

func (s silences) For(person string) Condition { return silences{s.of, person} }

func (s silences) Check(context.Context, string) (Finding, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.person == "" {
		return Finding{}, errors.New("nobody was named")
	}
	return Finding{True: s.of.silent[s.person], Evidence: s.person + " was silent"}, s.of.fails
}

const carl = "terminal:carl"

// checkIn is a heartbeat about the silence of each of Ann and Bob, every minute.
func checkIn(r *rig) (h Heartbeat, s *silence) {
	s = &silence{silent: map[string]bool{}}
	r.config.Conditions = s.build
	h = beat("check in", "")
	h.For, h.Condition = []string{ann, bob}, Spec{Kind: "idle", After: time.Hour}
	return h, s
}

// TestEachPersonsSilence: who is silent is woken, once while that lasts, whatever the others do. There is one look a tick.
func TestEachPersonsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		r.save(h)
		r.start()
		restart := func() { r.stop(); r.start() }
		tick := func(reason string, wokeA, wokeB int) {
			t.Helper()
			r.pass(time.Minute)
			r.expect("reason", r.last("check in").Reason, reason)
			r.expect("wakes", r.woken("check in"), fmt.Sprint(map[string]int{ann: wokeA, bob: wokeB}))
			r.check(reason)
			restart()
		}
		r.pass(time.Minute)
		r.expect("nobody is silent", r.last("check in").Reason, "the condition was false")
		s.set(true, ann)
		r.pass(time.Minute)
		r.expect("a is silent", r.last("check in"), fmt.Sprint(Outcome{r.now().Truncate(time.Minute).UTC(), "UTC", Woke, "the condition was true: woke " + ann + "; the condition was false (" + bob + ")"}))
		s.set(true, bob)
		tick("the condition was true: woke "+bob+"; the condition was still true, and had woken already ("+ann+")", 1, 1)
		tick("the condition was still true, and had woken already", 1, 1)
		s.set(false, ann)
		tick("the condition was false ("+ann+"); the condition was still true, and had woken already ("+bob+")", 1, 1)
		s.set(true, ann)
		tick("the condition was true: woke "+ann+"; the condition was still true, and had woken already ("+bob+")", 2, 1)
		s.set(false, ann, bob)
		tick("the condition was false", 2, 1)
		s.set(true, ann, bob)
		tick("the condition was true: woke "+ann+", "+bob, 3, 2)
		r.stop()
		r.expect("looks", s.looks(), 8)
		episodes := map[string]bool{}
		for _, w := range r.allWakes() {
			episodes[w.Person+w.Episode] = true
			r.expect("evidence", w.Evidence, w.Person+" was silent")
		}
		r.expect("episodes", len(episodes), 5)
		r.expect("ticks that woke", r.why("check in").Counters.Wakes, 4)
		r.expect("ticks that count", r.why("check in").State.Zones["UTC"].Woke, 4)
	})
}

// TestEachPersonsCooldown counts from when that person was woken.
func TestEachPersonsCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		h.Condition.On, h.Condition.Cooldown = OnTrue, 5*time.Minute
		h.MaxTicks = 4
		r.save(h)
		r.start()
		s.set(true, ann)
		r.pass(2 * time.Minute)
		s.set(true, bob)
		r.pass(9*time.Minute + time.Second)
		r.stop()
		var at []string
		for _, w := range r.allWakes() {
			at = append(at, fmt.Sprint(w.Person, " ", w.Tick.Sub(r.now()).Round(time.Minute)))
		}
		r.expect("wakes", at, []string{ann + " -10m0s", bob + " -8m0s", ann + " -5m0s", bob + " -3m0s"})
		r.expect("ended", r.why("check in").Heartbeat.Ended, "it has woken as often as max_ticks allows: 4")
		r.check("in the end")
	})
}

// TestEachPersonsRunFails: a run that fails is tried again for its person only, and the owners hear of it once.
func TestEachPersonsRunFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		h.For = append(h.For, carl)
		h.Cron = "@every 6h"
		broken := map[string]bool{ann: true, bob: true}
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return Ended{OK: !broken[w.Person], Reason: "no answer"}, nil
		}
		r.save(h)
		r.start()
		s.set(true, ann, bob, carl)
		r.pass(6*time.Hour + time.Minute + time.Second) // the first and one more
		r.expect("wakes", r.woken("check in"), map[string]int{ann: 2, bob: 2, carl: 1})
		r.expect("outcomes", r.words("check in"), "failed failed")
		r.check("a run failed")
		r.pass(10 * time.Minute)
		r.expect("alarms", r.allAlarms(), `heartbeat "check in": the runs that it wakes failed 3 times in a row: the run for `+ann+`: no answer`)
		set := func(person string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			broken[person] = false
		}
		set(ann)
		r.pass(time.Hour)
		if strings.Contains(r.allAlarms(), "again") {
			t.Errorf("the runs of b still fail, and the owners were told: %s", r.allAlarms())
		}
		set(bob)
		r.pass(time.Hour)
		r.stop()
		if !strings.HasSuffix(r.allAlarms(), "its runs end well again") || strings.Count(r.allAlarms(), "\n") != 1 {
			t.Errorf("alarms: %s", r.allAlarms())
		}
		r.expect("wakes of c", r.woken("check in")[carl], 1)
		r.check("in the end")
		episodes := map[string]bool{}
		for _, w := range r.allWakes() {
			episodes[w.Person+w.Episode] = true
		}
		r.expect("episodes", len(episodes), 3)
	})
}

// TestACheckOfEachPersonFails: that is one failure, whoever it is about.
func TestACheckOfEachPersonFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		r.save(h)
		s.set(true, ann)
		s.fail(errors.New("nobody knows"))
		r.start()
		r.pass(4 * time.Minute)
		s.fail(nil)
		r.pass(2 * time.Minute)
		r.stop()
		r.expect("outcomes", r.words("check in"), "failed failed failed failed woke slept")
		r.expect("alarms", r.allAlarms(), `heartbeat "check in": its check failed 3 times in a row: the check failed: nobody knows`+"\n"+`heartbeat "check in": its check works again`)
	})
}

// TestEachPersonsSnooze brings back what that person would have heard, when it ends; the others wait for their ticks.
func TestEachPersonsSnooze(t *testing.T) {
	for name, snoozed := range map[string][]string{"one": {ann}, "all": {ann, bob}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				h, s := checkIn(r)
				h.Cron = "@every 6h"
				r.save(h)
				for i, person := range snoozed {
					r.snooze(person, 7*time.Hour+time.Duration(i)*30*time.Minute)
				}
				r.start()
				s.set(true, ann)
				r.pass(6 * time.Hour)
				if reason := r.last("check in").Reason; !strings.Contains(reason, ann+" snoozed until ") || len(r.woken("check in")) > 0 {
					t.Errorf("at the tick: %s", reason)
				}
				s.set(true, bob)
				r.pass(time.Hour)
				r.expect("woken when the first snooze ends", r.woken("check in"), map[string]int{ann: 1})
				r.expect("its reason", r.last("check in").Reason, "the condition was true: woke "+ann)
				r.pass(30 * time.Minute)
				want := map[string]int{ann: 1}
				if len(snoozed) > 1 {
					want[bob] = 1
				}
				r.expect("woken when the second ends", r.woken("check in"), want)
				r.pass(4*time.Hour + 30*time.Minute)
				r.expect("woken after the next tick", r.woken("check in"), map[string]int{ann: 1, bob: 1})
				r.stop()
				r.check("in the end")
			})
		})
	}
}

// TestASnoozeIsLiftedForOne: it comes at once then.
func TestASnoozeIsLiftedForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		h.Cron = "@every 6h"
		r.save(h)
		r.snooze(ann, 24*time.Hour)
		r.start()
		s.set(true, ann)
		r.pass(7 * time.Hour)
		r.snooze(ann, 0)
		r.pass(time.Minute)
		r.expect("woken", r.woken("check in"), map[string]int{ann: 1})
		r.stop()
		r.check("in the end")
	})
}

// TestAWokenRunSaysNothingToOneWhoSnoozed: only they are woken again.
func TestAWokenRunSaysNothingToOneWhoSnoozed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		h.Cron = "@every 6h"
		first := true
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			if w.Person != ann || !first {
				return Ended{OK: true}, nil
			}
			first = false
			return Ended{OK: true}, r.store.Update(context.Background(), func(tx memory.Tx) error {
				if err := SnoozeAll(tx, ann, r.now().Add(time.Hour), r.now()); err != nil {
					return err
				}
				_, err := Budget{}.Admit(tx, Unasked{Person: ann, Zone: time.UTC, Heartbeat: w.Heartbeat, Key: "k", Episode: w.Episode, Text: "Hello."}, r.now())
				return err
			})
		}
		r.save(h)
		r.start()
		s.set(true, ann, bob)
		r.pass(6 * time.Hour)
		if reason := r.last("check in").Reason; !strings.Contains(reason, "nothing was said to "+ann+", who had snoozed") {
			t.Errorf("reason: %s", reason)
		}
		r.pass(time.Hour)
		r.expect("woken", r.woken("check in"), map[string]int{ann: 2, bob: 1})
		r.pass(6 * time.Hour)
		r.stop()
		r.expect("woken in the end", r.woken("check in"), map[string]int{ann: 2, bob: 1})
		r.check("in the end")
	})
}

// TestOneAsksForTheirOwnSilence.
func TestOneAsksForTheirOwnSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		h.Cron = "@every 6h"
		r.save(h)
		r.start()
		s.set(true, ann, bob)
		r.pass(time.Hour)
		r.update(func(tx memory.Tx) error { return Ask(tx, "check in", ann, "", r.now()) })
		r.expect("woken", r.woken("check in"), map[string]int{ann: 1})
		r.expect("reason", r.last("check in").Reason, "asked for: woke "+ann)
		s.set(false, bob)
		r.update(func(tx memory.Tx) error { return Ask(tx, "check in", bob, "", r.now()) })
		if reason := r.last("check in").Reason; !strings.Contains(reason, "asked for by "+bob+": the condition was false") {
			t.Errorf("reason: %s", reason)
		}
		r.pass(5 * time.Hour)
		r.expect("woken by the tick", r.woken("check in"), map[string]int{ann: 2})
		r.stop()
		r.check("in the end")
	})
}

// TestWhatWasRememberedOfAllTogether by an earlier version counts for each: nobody who heard of it hears of it again.
func TestWhatWasRememberedOfAllTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		h.For = append(h.For, carl)
		r.save(h)
		r.update(func(tx memory.Tx) error {
			return tableStates.Table(tx).Put("check in", []byte(`{"seq":0,"counters":{"ticks":0},"zones":{"UTC":{"true":true,"episode":"before","last_wake":"1999-12-31T00:00:00Z","woke":1,"owed":["terminal:bob"]}}}`))
		})
		s.set(true, ann, bob, carl)
		r.start()
		r.pass(time.Minute)
		r.stop()
		r.expect("woken", r.woken("check in"), map[string]int{bob: 1})
		r.expect("ticks that count", r.why("check in").State.Zones["UTC"].Woke, 2)
		r.check("in the end")
	})
}

// TestWhoIsGoneIsNotRemembered: the state holds those only of whom there is something to remember.
func TestWhoIsGoneIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, s := checkIn(r)
		h.By = carl
		r.save(h)
		s.set(true, ann)
		r.start()
		r.pass(time.Minute)
		r.expect("remembered", len(r.why("check in").State.Zones["UTC"].People), 1)
		r.update(func(tx memory.Tx) error { _, _, err := ForgetHeartbeats(tx, ann); return err })
		r.expect("remembered after", len(r.why("check in").State.Zones["UTC"].People), 0)
		r.pass(time.Minute)
		r.stop()
		r.expect("woken", r.woken("check in"), map[string]int{ann: 1})
	})
}

// silentBy is a condition of each person's own that is a function of the person and the time.
type silentBy struct {
	now    func() time.Time
	person string
}

func (s silentBy) For(person string) Condition { return silentBy{s.now, person} }

func (s silentBy) Check(context.Context, string) (Finding, error) {
	at := s.now().UTC()
	if at.Hour() == 3 {
		return Finding{}, errors.New("it is night")
	}
	sum := fnv.New32()
	_, _ = fmt.Fprint(sum, s.person, at.Unix()/7200)
	return Finding{True: sum.Sum32()%3 > 0, Evidence: s.person}, nil
}

// TestSimulationOfEachPerson: the clock and the simulation decide alike, with a snooze in between.
func TestSimulationOfEachPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Conditions = func(Heartbeat) (Condition, error) { return silentBy{now: r.now}, nil }
		r.config.Budget = budget(t, "22:00-07:00", 0, "")
		r.config.Zone = func(person string) string {
			return map[string]string{ann: "Europe/Berlin", bob: "Europe/Berlin", carl: "America/New_York"}[person]
		}
		r.config.Timers = map[string]func(context.Context, memory.Tx, memory.DueRow) error{
			DigestPrefix: func(_ context.Context, tx memory.Tx, row memory.DueRow) error {
				_, err := r.config.Budget.TakeDigest(tx, row, time.UTC, r.now())
				return err
			},
		}
		var beats []Heartbeat
		for name, change := range map[string]func(*Heartbeat){
			"change":   func(*Heartbeat) {},
			"true":     func(h *Heartbeat) { h.Condition.On = OnTrue },
			"cooldown": func(h *Heartbeat) { h.Condition.On, h.Condition.Cooldown = OnTrue, 5*time.Hour },
			"counted":  func(h *Heartbeat) { h.MaxTicks = 12 },
		} {
			h := beat(name, "")
			h.Cron, h.For, h.Condition = "20 * * * *", []string{ann, bob, carl}, Spec{Kind: "idle", After: time.Hour}
			change(&h)
			beats = append(beats, h)
		}
		r.save(beats...)
		for i, person := range []string{ann, carl} {
			r.snooze(person, 40*time.Hour+time.Duration(i)*time.Hour+7*time.Minute)
		}
		r.start()
		stretch := 6 * 24 * time.Hour
		played := r.simulate(Simulation{
			Heartbeats: beats, From: r.now().Add(1), To: r.now().Add(stretch), Zone: r.config.Zone, Budget: r.config.Budget,
			Conditions: func(_ Heartbeat, now func() time.Time) (Condition, error) { return silentBy{now: now}, nil },
		})
		r.pass(stretch)
		r.stop()
		r.check("in the end")
		for _, h := range beats {
			var got []string
			for _, d := range played {
				if d.Heartbeat == h.Name {
					got = append(got, fmt.Sprint(d.Tick, " ", d.Zone, " ", d.Word, ": ", strings.Split(d.Reason, "; the owners")[0]))
				}
			}
			report := r.why(h.Name)
			r.expect("ticks of "+h.Name, len(got), report.Counters.Ticks)
			for _, o := range report.Outcomes {
				if was := fmt.Sprint(o.Tick, " ", o.Zone, " ", o.Word, ": ", o.Reason); !slices.Contains(got, was) {
					t.Errorf("%s: not played: %s", h.Name, was)
				}
			}
		}
	})
}
