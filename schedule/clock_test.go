package schedule

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
)

func TestTenThousandFalseTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.save(beat("disk", "no"))
		r.start()
		r.pass(time.Second)
		before := r.store.Count()
		r.pass(10_000 * time.Minute)
		r.stop()
		report := r.why("disk")
		r.expect("wakes", len(r.wakes), 0)
		r.expect("counters", report.Counters, Counters{Ticks: 10_000})
		r.expect("outcomes kept", len(report.Outcomes), kept)
		if writes := r.store.Count() - before; writes > 20_000 {
			t.Errorf("%d writes for 10,000 false ticks", writes)
		}
	})
}

func TestFalseIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.save(beat("disk", "no"))
		r.start()
		r.pass(90 * time.Second)
		r.stop()
		text := r.why("disk").String()
		for _, want := range []string{"2000-01-01 00:01:00  slept   the condition was false", "1 tick, 0 wakes, 0 model calls", "next: Saturday 1 January 2000 at 00:02 UTC"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		r.expect("wakes", len(r.wakes), 0)
		err := r.store.View(t.Context(), func(tx memory.Tx) error { _, err := Why(tx, "disc", r.now()); return err })
		if !errors.Is(err, ErrNoHeartbeat) || !strings.Contains(err.Error(), "there are: disk") {
			t.Errorf("an unknown name: %v", err)
		}
	})
}

// TestMonth lets a month pass for people in three zones: each is woken at nine of the own clock, and the condition is
// checked once for all people of a zone.
func TestMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		zones := map[string]string{"a": "Europe/Berlin", "b": "Europe/Berlin", "c": "America/New_York", "d": "Mars/Base", "e": ""}
		r.config.Zone = func(person string) string { return zones[person] }
		morning := beat("morning", "yes")
		morning.Cron, morning.Condition.On, morning.For = "0 9 * * *", OnTrue, []string{"a", "b", "c", "d", "e"}
		often := beat("often", "no")
		often.Cron, often.For = "*/20 * * * *", morning.For
		r.save(morning, often)
		r.start()
		r.pass(31 * 24 * time.Hour)
		r.stop()
		r.expect("woken", r.woken("morning"), map[string]int{"a": 31, "b": 31, "c": 31, "d": 31, "e": 31})
		r.expect("checks", r.checks["yes"], 3*31)
		r.expect("ticks", r.why("often").Counters.Ticks, 3*31*24*3)
		for _, w := range r.wakes {
			location, err := loadZone(zones[w.Person])
			if err != nil {
				location = time.UTC
			}
			if at := w.Tick.In(location); at.Hour() != 9 || at.Minute() != 0 {
				t.Fatalf("%s was woken at %v", w.Person, at)
			}
		}
	})
}

// TestIntervalIsOneCheck has people in two zones share the check of an interval.
func TestIntervalIsOneCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Zone = func(person string) string {
			return map[string]string{"a": "Europe/Berlin", "b": "Asia/Tokyo"}[person]
		}
		h := beat("disk", "yes")
		h.For = []string{"a", "b"}
		r.save(h)
		r.start()
		r.pass(61 * time.Second)
		r.stop()
		r.expect("checks", r.checks["yes"], 1)
		r.expect("woken", r.woken("disk"), map[string]int{"a": 1, "b": 1})
	})
}

// script plays findings one after the other; the last one stays.
func script(r *rig, name string, findings string) {
	i := -1
	words := strings.Fields(findings)
	r.looks[name] = func(_ context.Context, previous string) (Finding, error) {
		i = min(i+1, len(words)-1)
		switch word := words[i]; word {
		case "T":
			return Finding{True: true}, nil
		case "F":
			return Finding{}, nil
		case "E":
			return Finding{}, errors.New("no answer")
		default:
			return Finding{True: previous != "" && previous != word, State: word}, nil
		}
	}
}

func TestDecisions(t *testing.T) {
	for name, test := range map[string]struct {
		on       string
		cooldown time.Duration
		always   bool
		findings string
		words    string
		episodes int
	}{
		"false":                     {findings: "F F F", words: "slept slept slept"},
		"first seen true":           {findings: "T T T", words: "woke slept slept", episodes: 1},
		"becomes true twice":        {findings: "F T T F T", words: "slept woke slept slept woke", episodes: 2},
		"every true tick":           {on: OnTrue, findings: "T T F T", words: "woke woke slept woke", episodes: 2},
		"cool-down":                 {on: OnTrue, cooldown: 150 * time.Second, findings: "T T T T T", words: "woke slept slept woke slept", episodes: 1},
		"cool-down on change":       {cooldown: 150 * time.Second, findings: "T F T T F", words: "woke slept slept woke slept", episodes: 2},
		"an error is neither":       {findings: "T E T E F T", words: "woke failed slept failed slept woke", episodes: 2},
		"watching":                  {findings: "s1 s1 s2 s2 s1", words: "slept slept woke slept woke", episodes: 2},
		"watching with errors":      {findings: "s1 E s1 E s2", words: "slept failed slept failed woke", episodes: 1},
		"always":                    {always: true, findings: "T T T", words: "woke woke woke", episodes: 3},
		"always, whatever on says":  {always: true, on: OnChange, findings: "T T", words: "woke woke", episodes: 2},
		"watching, every true tick": {on: OnTrue, findings: "s1 s2 s2", words: "slept woke slept", episodes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				h := beat("disk", "script")
				if test.always {
					h.Condition = Spec{Kind: KindAlways}
				}
				h.Condition.On, h.Condition.Cooldown = test.on, test.cooldown
				script(r, "script", test.findings)
				r.save(h)
				r.start()
				r.pass(time.Duration(len(strings.Fields(test.findings)))*time.Minute + time.Second)
				r.stop()
				r.expect("outcomes", r.words("disk"), test.words)
				episodes := map[string]bool{}
				for _, w := range r.wakes {
					episodes[w.Episode] = true
				}
				r.expect("episodes", len(episodes), test.episodes)
			})
		})
	}
}

func TestWaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h := beat("disk", "yes")
		h.Tools, h.RunTimeout, h.BreakQuiet, h.Outside, h.Private = []string{"read_file"}, time.Minute, true, true, true
		r.save(h)
		r.start()
		r.pass(61 * time.Second)
		r.stop()
		at := time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC)
		r.expect("waking", fmt.Sprintf("%+v", r.wakes), fmt.Sprintf("%+v", []Waking{{
			Heartbeat: "disk", Person: "terminal:ann", Episode: "2000-01-01T00:01:00Z", Evidence: "seen", Prompt: h.Prompt,
			Outside: true, Private: true, Tools: h.Tools, BreakQuiet: true, Tick: at, Timeout: time.Minute,
		}}))
		r.expect("counters", r.why("disk").Counters, Counters{Ticks: 1, Wakes: 1, ModelCalls: 2, TokensIn: 100, TokensOut: 10, CostUSD: 0.5})
	})
}

// TestOverlap has a run that takes longer than the interval, next to another heartbeat that is due in the same minutes.
func TestOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		slow, other := beat("slow", "yes"), beat("other", "no")
		slow.Condition.On = OnTrue
		r.ends = func(context.Context, Waking) (Ended, error) {
			time.Sleep(150 * time.Second)
			return Ended{OK: true}, nil
		}
		r.save(slow, other)
		r.start()
		r.pass(4*time.Minute - time.Second)
		r.expect("slow", r.words("slow"), "dropped dropped woke")
		r.expect("other", r.words("other"), "slept slept slept")
		if reason := r.why("slow").Outcomes[1].Reason; !strings.Contains(reason, "overlap") {
			t.Errorf("dropped because %q", reason)
		}
		r.pass(2 * time.Second)
		r.expect("woken", r.woken("slow"), map[string]int{"terminal:ann": 2})
		r.pass(10 * time.Minute)
		r.stop()
	})
}

// TestBadChecks has conditions that hang, panic, fail and cannot be built: three in a row tell the owners once, the
// clock goes on, and the state stays unknown.
func TestBadChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.looks["hang"] = func(ctx context.Context, _ string) (Finding, error) {
			<-ctx.Done()
			return Finding{}, ctx.Err()
		}
		r.look("panic", func() (Finding, error) { panic("of the job") })
		script(r, "mends", "E E E E F E E E T")
		script(r, "twice", "E E F E E F")
		missing := beat("missing", "no")
		missing.Condition = Spec{Kind: "idle", After: time.Hour}
		r.save(beat("hang", "hang"), beat("panic", "panic"), beat("mends", "mends"), beat("twice", "twice"), missing, beat("well", "yes"))
		r.start()
		r.pass(9*time.Minute + 30*time.Second)
		r.stop()
		for name, reason := range map[string]string{"hang": "not over after 10s", "panic": "panicked: of the job", "missing": "not available"} {
			report := r.why(name)
			r.expect(name, len(report.Outcomes), 9)
			if first := report.Outcomes[0]; first.Word != Failed || !strings.Contains(first.Reason, reason) {
				t.Errorf("%s: %s %s", name, first.Word, first.Reason)
			}
			r.expect("alarms of "+name, strings.Count(r.allAlarms(), fmt.Sprintf("%q: its check failed 3 times", name)), 1)
		}
		r.expect("alarms of mends", strings.Count(r.allAlarms(), `"mends": its check failed 3 times`), 2)
		r.expect("recoveries of mends", strings.Count(r.allAlarms(), `"mends": its check works again`), 2)
		r.expect("alarms of twice", strings.Count(r.allAlarms(), `"twice"`), 0)
		r.expect("well", r.woken("well"), map[string]int{"terminal:ann": 1})
	})
}

// TestSlowCheckDelaysNobody has one check hang among very many heartbeats that are due at once.
func TestSlowCheckDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.looks["hang"] = func(ctx context.Context, _ string) (Finding, error) {
			<-ctx.Done()
			return Finding{}, ctx.Err()
		}
		list := []Heartbeat{beat("a-hanging", "hang")}
		list[0].Cron = "* * * * *"
		for i := range 600 {
			h := beat(fmt.Sprintf("b%d", i), "yes")
			h.Cron = "* * * * *"
			list = append(list, h)
		}
		r.save(list...)
		r.start()
		r.pass(time.Minute)
		r.expect("woken in the same minute", len(r.wakes), 600)
		r.stop()
		r.expect("the hanging one", r.words("a-hanging"), "")
	})
}

// TestFailedRuns has one of two people's runs fail: it is tried again with growing distance, for that person only, in
// the same episode, and the state moves on when it ended well.
func TestFailedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		fails := 4
		var tries []string
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if w.Person == "bob" {
				tries = append(tries, w.Tick.Format(time.TimeOnly))
				if fails--; fails >= 0 {
					return Ended{ModelCalls: 1}, errors.New("the model did not answer")
				}
			}
			return Ended{OK: true, ModelCalls: 1}, nil
		}
		h := beat("disk", "yes")
		h.Cron, h.For = "0 9 * * *", []string{"ann", "bob"}
		r.save(h)
		r.start()
		r.pass(10 * time.Hour)
		r.stop()
		r.expect("tries", tries, []string{"09:00:00", "09:01:00", "09:03:00", "09:07:00", "09:15:00"})
		r.expect("woken", r.woken("disk"), map[string]int{"ann": 1, "bob": 5})
		r.expect("outcomes", r.words("disk"), "failed failed failed failed woke")
		for _, w := range r.wakes {
			r.expect("episode", w.Episode, "2000-01-01T09:00:00Z")
		}
		r.expect("alarms", r.allAlarms(), `heartbeat "disk": the runs that it wakes failed 3 times in a row: the run for bob: the model did not answer`+"\n"+
			`heartbeat "disk": its runs end well again`)
		r.expect("model calls", r.why("disk").Counters.ModelCalls, 6)
	})
}

func TestBackingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.ends = func(context.Context, Waking) (Ended, error) { panic("of the run") }
		h := beat("disk", "yes")
		h.Condition = Spec{Kind: KindAlways}
		r.save(h)
		r.start()
		r.pass(24 * time.Hour)
		report := r.why("disk")
		r.stop()
		// 1 + 2 + 4 + 8 + 16 + 32 minutes, then once an hour
		if wakes := report.Counters.Wakes; wakes < 27 || wakes > 30 {
			t.Errorf("%d wakes in a day of failing runs", wakes)
		}
		if !strings.Contains(report.String(), "backing off until") {
			t.Error("backing off is not explained")
		}
		r.expect("backoff", []time.Duration{backoff(1), backoff(2), backoff(6), backoff(7), backoff(1000)},
			[]time.Duration{time.Minute, 2 * time.Minute, 32 * time.Minute, time.Hour, time.Hour})
	})
}

// TestChangeDuringFailure has the watched thing change again before the failed run was tried again: that is news for
// everybody.
func TestChangeDuringFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		script(r, "script", "s1 s2 s3 s3")
		failed := false
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if w.Person == "bob" && !failed {
				failed = true
				return Ended{Reason: "no answer"}, nil
			}
			return Ended{OK: true}, nil
		}
		h := beat("page", "script")
		h.For = []string{"ann", "bob"}
		r.save(h)
		r.start()
		r.pass(10 * time.Minute)
		r.stop()
		r.expect("woken", r.woken("page"), map[string]int{"ann": 2, "bob": 2})
	})
}

func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		thrice, until, failing := beat("thrice", "yes"), beat("until", "yes"), beat("failing", "yes")
		thrice.Condition = Spec{Kind: KindAlways}
		thrice.MaxTicks = 3
		until.Condition = Spec{Kind: KindAlways}
		until.Until = time.Now().Add(5 * time.Minute)
		failing.MaxTicks = 1
		fails := 2
		r.ends = func(_ context.Context, w Waking) (Ended, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if w.Heartbeat == "failing" && fails > 0 {
				fails--
				return Ended{Reason: "no answer"}, nil
			}
			return Ended{OK: true}, nil
		}
		r.save(thrice, until, failing)
		r.start()
		r.pass(20 * time.Minute)
		r.stop()
		r.expect("thrice", r.words("thrice"), "woke woke woke")
		r.expect("until", r.words("until"), "woke woke woke woke woke")
		r.expect("failing", r.words("failing"), "failed failed slept woke")
		for name, reason := range map[string]string{"thrice": "max_ticks allows: 3", "until": "no tick is left until 2000-01-01T00:05:00Z", "failing": "max_ticks allows: 1"} {
			report := r.why(name)
			if !strings.Contains(report.String(), "ended: ") || !strings.Contains(report.Heartbeat.Ended, reason) || len(report.Next) > 0 {
				t.Errorf("%s:\n%s", name, report)
			}
		}
		r.expect("due rows", len(r.dueKeys()), 0)
	})
}

func (r *rig) dueKeys() (keys []string) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) error {
		return tx.Due().Scan(func(row memory.DueRow) error { keys = append(keys, row.Key); return nil })
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return keys
}

// TestRestart: a bot that was down for a day and a half makes up for the last missed tick where that is not too old,
// a second apart, and once.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		down := instant(t, "2026-11-28T20:01:00Z")
		r.set(down)
		always := func(name, cron, last string) Heartbeat {
			h := beat(name, "yes")
			h.Cron, h.Zone, h.Grace, h.Condition = cron, "UTC", 12*time.Hour, Spec{Kind: KindAlways}
			r.update(func(tx memory.Tx) error { return Save(tx, h, instant(t, last)) })
			return h
		}
		always("d8", "0 8 * * *", "2026-11-28T08:00:00Z")
		always("q5", "*/5 * * * *", "2026-11-28T20:00:00Z")
		always("e1930", "30 19 * * *", "2026-11-28T19:30:00Z")
		skip := always("skip", "0 8 * * *", "2026-11-28T08:00:00Z")
		skip.Missed = MissedSkip
		r.update(func(tx memory.Tx) error { return Save(tx, skip, instant(t, "2026-11-28T08:00:00Z")) })
		r.start() // finds the zones
		r.stop()
		always("new", "0 8 * * *", "2026-11-30T09:00:00Z")
		r.set(instant(t, "2026-11-30T10:57:00Z"))
		r.start()
		r.pass(30 * time.Second)
		var fired []string
		for _, w := range r.wakes {
			fired = append(fired, w.Heartbeat+" "+w.Tick.Format(time.RFC3339))
		}
		r.expect("fired", len(fired), 2)
		r.expect("d8", r.woken("d8"), map[string]int{"terminal:ann": 1})
		r.expect("q5", r.woken("q5"), map[string]int{"terminal:ann": 1})
		r.expect("outcomes of e1930", r.words("e1930"), "slept")
		r.expect("outcomes of skip", r.words("skip"), "slept slept")
		if reason := r.why("e1930").Outcomes[0].Reason; !strings.Contains(reason, "missed: 15h27m0s late") {
			t.Errorf("e1930 slept because %s", reason)
		}
		r.stop()
		r.set(r.now().Add(time.Minute))
		r.start()
		r.pass(time.Second)
		r.expect("fired by a second restart", len(r.wakes), 2)
		r.stop()
		r.expect("next of e1930", r.why("e1930").Next[0].Format(time.RFC3339), "2026-11-30T19:30:00Z")
	})
}

// TestWallClock: the machine sleeps, and the clock is set back and forward.
func TestWallClock(t *testing.T) {
	for name, test := range map[string]struct {
		from  string
		first time.Duration // passes before the wall clock is changed
		to    string
	}{
		"sleep":   {"2026-11-30T07:00:00Z", 10 * time.Minute, "2026-11-30T08:42:00Z"},
		"back":    {"2026-11-30T07:59:00Z", 65 * time.Second, "2026-11-30T07:59:50Z"},
		"forward": {"2026-11-30T07:00:00Z", 30 * time.Minute, "2026-11-30T09:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.set(instant(t, test.from))
				h := beat("daily", "yes")
				h.Cron, h.Grace, h.Condition = "0 8 * * *", 2*time.Hour, Spec{Kind: KindAlways}
				r.save(h)
				r.start()
				r.pass(test.first)
				r.set(instant(t, test.to))
				r.pass(time.Minute)
				r.expect("woken", r.woken("daily"), map[string]int{"terminal:ann": 1})
				r.pass(time.Hour)
				r.expect("woken", r.woken("daily"), map[string]int{"terminal:ann": 1})
				r.stop()
			})
		})
	}
}

// TestCrashAtEveryWrite kills the program at each write of a tick and starts it again: every claimed tick has one
// outcome, nothing is woken twice but in one episode, and what is true is told.
func TestCrashAtEveryWrite(t *testing.T) {
	for n := range 10 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(n+1, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { crashAt(t, n+1, after) })
			})
		}
	}
}

func crashAt(t *testing.T, n int, after bool) {
	r := newRig(t)
	store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "data"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r.store = memorytest.NewFaulty(store)
	r.config.Store = r.store
	script(r, "script", "F T")
	r.save(beat("disk", "script"))
	r.store.FailAt(r.store.Count()+n, after)
	r.start()
	r.pass(5 * time.Minute)
	r.stop()
	r.store.Revive()
	r.start()
	r.pass(5*time.Minute + time.Second)
	r.stop()
	ticks, episodes := map[string]int{}, map[string]bool{}
	for _, outcome := range r.why("disk").Outcomes {
		ticks[outcome.Tick.String()]++
	}
	for tick, count := range ticks {
		r.expect("outcomes of "+tick, count, 1)
	}
	for _, w := range r.wakes {
		episodes[w.Episode] = true
	}
	r.expect("episodes", len(episodes), 1)
	if len(r.wakes) > 2 {
		t.Errorf("%d wakes", len(r.wakes))
	}
	for name, zone := range r.why("disk").State.Zones {
		if !zone.Claim.IsZero() || !zone.True || zone.Pending {
			t.Errorf("zone %s is left with %+v", name, zone)
		}
	}
}

// TestKilledInARun: a tick that a killed program left open is taken up again, in the same episode.
func TestKilledInARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h := beat("disk", "yes")
		h.Cron = "@every 10m"
		r.ends = func(ctx context.Context, _ Waking) (Ended, error) {
			r.store.FailAt(r.store.Count()+1, false)
			return Ended{OK: true}, nil
		}
		r.save(h)
		r.start()
		r.pass(11 * time.Minute)
		r.stop()
		r.store.Revive()
		r.ends = nil
		r.start()
		r.expect("after the restart", r.words("disk"), Woke)
		r.pass(10 * time.Minute)
		r.stop()
		r.expect("later", r.words("disk"), "woke slept")
		first, again := r.wakes[0], r.wakes[1]
		if first.Again || !again.Again {
			t.Errorf("the wakes: %+v", r.wakes)
		}
		again.Again = false
		r.expect("the same", fmt.Sprint(again), fmt.Sprint(first))
	})
}

// TestStop: Run waits for the run that was begun, and leaves the tick to the next start.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.ends = func(ctx context.Context, _ Waking) (Ended, error) {
			<-ctx.Done()
			time.Sleep(5 * time.Second)
			return Ended{ModelCalls: 1}, ctx.Err()
		}
		r.save(beat("disk", "yes"))
		r.start()
		r.pass(61 * time.Second)
		began := time.Now()
		r.stop()
		r.expect("waited", time.Since(began), 5*time.Second)
		r.expect("outcomes", r.words("disk"), "")
		r.ends = nil
		r.start()
		r.stop()
		r.expect("outcomes after the next start", r.words("disk"), Woke)
		r.expect("model calls", r.why("disk").Counters.ModelCalls, 2)
	})
}

func TestRunNeedsItsConfig(t *testing.T) {
	if err := NewClock(Config{}).Run(t.Context()); err == nil {
		t.Error("a clock without a store ran")
	}
}

// TestOnly: a clock that serves one person leaves the others alone, and their due rows as they are.
func TestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Only = func(person string) bool { return person == "ann" }
		mine, shared, other := beat("mine", "yes"), beat("shared", "yes"), beat("other", "yes")
		mine.For, shared.For, other.For = []string{"ann"}, []string{"bob", "ann"}, []string{"bob"}
		r.save(mine, shared, other)
		before := r.dueRow(heartbeatKey("other", ""))
		r.start()
		r.pass(10 * time.Minute)
		r.stop()
		r.expect("mine", r.woken("mine"), map[string]int{"ann": 1})
		r.expect("shared", r.woken("shared"), map[string]int{"ann": 1})
		r.expect("other", r.woken("other"), map[string]int{})
		r.expect("ticks of other", r.why("other").Counters.Ticks, 0)
		r.expect("due row of other", r.dueRow(heartbeatKey("other", "")), before)
	})
}

func (r *rig) dueRow(key string) (row memory.DueRow) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) (err error) {
		row, _, err = tx.Due().Get(key)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return row
}

// TestTimers: rows of other kinds fire once, a row may move itself, and one that fails holds nothing up.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		fired, fails := 0, 2
		r.config.Fired = func() { fired++ }
		r.config.Timers = map[string]func(context.Context, memory.Tx, memory.DueRow) error{
			"timer/": func(_ context.Context, tx memory.Tx, row memory.DueRow) error {
				return tx.Table("fired").Put(row.Key+row.At.Format(time.TimeOnly), row.Data)
			},
			"again/": func(_ context.Context, tx memory.Tx, row memory.DueRow) error {
				row.At = row.At.Add(time.Hour)
				return tx.Due().Put(row)
			},
			"bad/": func(_ context.Context, tx memory.Tx, row memory.DueRow) error {
				if fails--; fails >= 0 {
					return errors.New("not yet")
				}
				return tx.Table("fired").Put(row.Key, nil)
			},
		}
		r.save(beat("disk", "no"))
		r.update(func(tx memory.Tx) error {
			for _, key := range []string{"timer/a", "timer/b", "again/c", "bad/d", "foreign/e"} {
				if err := tx.Due().Put(memory.DueRow{Key: key, At: time.Now().Add(90 * time.Second), Data: []byte("x")}); err != nil {
					return err
				}
			}
			return nil
		})
		r.start()
		r.pass(5 * time.Minute)
		r.stop()
		var keys []string
		_ = r.store.View(t.Context(), func(tx memory.Tx) error {
			return tx.Table("fired").Scan("", func(key string, _ []byte) error { keys = append(keys, key); return nil })
		})
		r.expect("fired", keys, []string{"bad/d", "timer/a00:01:30", "timer/b00:01:30"})
		r.expect("left", r.dueKeys(), []string{"foreign/e", "heartbeat/disk/UTC", "again/c"})
		if fired == 0 {
			t.Error("nobody was told")
		}
		r.expect("ticks of the heartbeat", r.why("disk").Counters.Ticks, 5)
	})
}

// TestMove: a person who moved falls due by the new zone's clock.
func TestMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		zone := "Europe/Berlin"
		r.config.Zone = func(string) string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return zone
		}
		h := beat("morning", "yes")
		h.Cron, h.Condition = "0 9 * * *", Spec{Kind: KindAlways}
		r.save(h)
		r.start()
		r.pass(24 * time.Hour)
		r.mu.Lock()
		zone = "America/New_York"
		r.mu.Unlock()
		r.pass(24 * time.Hour)
		r.stop()
		var at []string
		for _, w := range r.wakes {
			at = append(at, w.Tick.Format(time.RFC3339))
		}
		r.expect("woken", at, []string{"2000-01-01T08:00:00Z", "2000-01-02T14:00:00Z"})
		r.expect("due rows", r.dueKeys(), []string{"heartbeat/morning/America/New_York"})
	})
}

// TestStoreFails: a store that fails for a while is tried again.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.save(beat("disk", "no"))
		r.start()
		r.pass(90 * time.Second)
		r.store.FailAt(r.store.Count()+1, false)
		r.pass(10 * time.Minute)
		r.store.Revive()
		r.pass(3 * time.Minute)
		r.stop()
		if got := r.words("disk"); !strings.HasPrefix(got, "slept slept slept") {
			t.Errorf("outcomes: %s", got)
		}
	})
}

// TestTickAndRetryTogether: after a sleep of the machine a tick and the row that brings a failed run back are due at
// once, the tick first. They are one look.
func TestTickAndRetryTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		fails := 2
		r.ends = func(context.Context, Waking) (Ended, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			fails--
			return Ended{OK: fails < 0}, nil
		}
		h := beat("disk", "yes")
		h.Cron = "@every 90s"
		r.save(h)
		r.start()
		r.pass(151 * time.Second)
		r.expect("before the sleep", r.words("disk"), "failed failed")
		r.set(r.now().Add(150 * time.Second))
		r.pass(70 * time.Second)
		r.stop()
		r.expect("after it", r.words("disk"), "failed failed slept woke slept")
	})
}
