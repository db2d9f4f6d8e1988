package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/memory"
)

func TestReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		config := func(list ...Heartbeat) error { return Reconcile(t.Context(), r.store, list, time.Now()) }
		same, changed, gone, chat := beat("same", "yes"), beat("changed", "yes"), beat("gone", "yes"), beat("chat", "yes")
		chat.By = "terminal:ann"
		r.save(chat)
		if err := config(same, changed, gone); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.pass(61 * time.Second)
		r.stop()
		row := r.dueRow(heartbeatKey("same", "UTC"))
		r.pass(30 * time.Second)
		changed.Prompt = "Another prompt."
		other := beat("other", "no")
		if err := config(same, changed, other); err != nil {
			t.Fatal(err)
		}
		r.expect("due row of same", r.dueRow(heartbeatKey("same", "UTC")), row)
		r.expect("prompt of changed", r.why("changed").Heartbeat.Prompt, changed.Prompt)
		r.expect("end of gone", r.why("gone").Heartbeat.Ended, endRemoved)
		r.expect("chat", r.why("chat").Heartbeat.resting(), "")
		r.start()
		r.pass(3 * time.Minute)
		r.expect("same condition, no second wake", r.woken("changed"), map[string]int{"terminal:ann": 1})
		r.expect("gone", r.woken("gone"), map[string]int{"terminal:ann": 1})
		r.stop()
		changed.Condition.On = OnTrue
		if err := config(same, changed, gone); err != nil {
			t.Fatal(err)
		}
		r.expect("state of another condition", *r.why("changed").State.Zones["UTC"], Zone{Woke: 1})
		r.expect("gone is back", r.why("gone").Heartbeat.resting(), "")
		r.expect("other", r.why("other").Heartbeat.Ended, endRemoved)
	})
}

func TestReconcileRefuses(t *testing.T) {
	r := newRig(t)
	chat, bad := beat("chat", "yes"), beat("bad", "yes")
	chat.By, bad.Cron = "terminal:ann", "nonsense"
	r.save(chat)
	err := Reconcile(t.Context(), r.store, []Heartbeat{beat("chat", "no"), bad, beat("good", "yes"), beat("good", "no")}, time.Now())
	for _, want := range []string{"terminal:ann made a heartbeat", "heartbeat.cron", `"good" stands twice`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	r.expect("good", r.why("good").Heartbeat.Condition.Run[0], "yes")
	r.expect("chat", r.why("chat").Heartbeat.Condition.Run[0], "yes")
}

func TestSaveRefuses(t *testing.T) {
	r := newRig(t)
	r.save(beat("disk", "no"))
	stolen := beat("disk", "yes")
	stolen.By = "terminal:eve"
	if err := r.store.Update(t.Context(), func(tx memory.Tx) error { return Save(tx, stolen, time.Now()) }); err == nil || !strings.Contains(err.Error(), "the config made one") {
		t.Errorf("somebody else's name: %v", err)
	}
	clock := NewClock(r.config)
	if err := clock.Add(t.Context(), Heartbeat{}); err == nil || !strings.Contains(err.Error(), "heartbeat.name") {
		t.Errorf("an empty heartbeat: %v", err)
	}
}

func TestPauseAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.save(beat("disk", "no"))
		r.start()
		r.pass(150 * time.Second)
		r.update(func(tx memory.Tx) error { return Pause(tx, "disk", "on leave") })
		r.expect("due rows", len(r.dueKeys()), 0)
		r.pass(time.Hour)
		report := r.why("disk")
		if !strings.Contains(report.String(), "paused: on leave") || len(report.Next) > 0 {
			t.Errorf("paused:\n%s", report)
		}
		r.save(beat("disk", "no"))
		r.pass(time.Hour)
		r.expect("ticks while paused", r.why("disk").Counters.Ticks, 2)
		r.update(func(tx memory.Tx) error { return Resume(tx, "disk", time.Now()) })
		r.pass(150 * time.Second)
		r.expect("outcomes", r.words("disk"), "slept slept slept slept")
		r.update(func(tx memory.Tx) error { return End(tx, "disk", "done", r.now()) })
		err := r.store.Update(t.Context(), func(tx memory.Tx) error { return Resume(tx, "disk", time.Now()) })
		if err == nil || !strings.Contains(err.Error(), "done") {
			t.Errorf("resume one that has ended: %v", err)
		}
		r.stop()
	})
}

// TestAddingWritesLittle: one row for the heartbeat and one for when it falls due, however many others there are, and the clock
// looks at no more than what falls due first.
func TestAddingWritesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		weighed := &scales{Store: r.store}
		r.config.Store = weighed
		inChat := beat("in chat", "no")
		inChat.By, inChat.Zone, inChat.Cron = "terminal:ann", "Asia/Tokyo", "0 9 * * *"
		interval := beat("interval", "no")
		interval.Cron = "@every 6h"
		for i := range 100 {
			other := beat(fmt.Sprint("other", i), "no")
			other.Cron = "@every 23h"
			r.save(other)
		}
		r.start()
		for name, c := range map[string]struct {
			h    Heartbeat
			rows int
		}{
			"an interval":  {interval, 2},
			"made in chat": {inChat, 3}, // and who made it
		} {
			weighed.commits.Store(0)
			weighed.rows.Store(0)
			weighed.scanned.Store(0)
			if err := r.clock.Add(t.Context(), c.h); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			r.expect(name+": commits, rows, due rows that were looked at",
				fmt.Sprint(weighed.commits.Load(), weighed.rows.Load(), weighed.scanned.Load()), fmt.Sprint(1, c.rows, 1))
		}
		r.pass(24 * time.Hour)
		r.stop()
		for _, name := range []string{"interval", "in chat", "other7"} {
			r.expect("the last of "+name, r.why(name).Outcomes[0].Word, Slept)
		}
	})
}

// TestRemoveDuringARun: nothing of a heartbeat that was taken away comes back when its run ends.
func TestRemoveDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.ends = func(context.Context, Waking) (Ended, error) {
			time.Sleep(90 * time.Second)
			return Ended{}, errors.New("no answer")
		}
		r.save(beat("disk", "yes"))
		r.start()
		r.pass(130 * time.Second)
		r.update(func(tx memory.Tx) error { return Remove(tx, "disk") })
		r.pass(time.Hour)
		r.stop()
		r.expect("due rows", len(r.dueKeys()), 0)
		for _, table := range []string{string(tableHeartbeats), string(tableStates), string(tableTicks)} {
			rows := 0
			_ = r.store.View(t.Context(), func(tx memory.Tx) error {
				return tx.Table(table).Scan("", func(string, []byte) error { rows++; return nil })
			})
			r.expect("rows of "+table, rows, 0)
		}
	})
}

// TestChangeDuringARun: what a run that a former condition woke came to says nothing about the new one.
func TestChangeDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.ends = func(context.Context, Waking) (Ended, error) {
			time.Sleep(30 * time.Second)
			return Ended{OK: true}, nil
		}
		r.save(beat("disk", "yes"))
		r.start()
		r.pass(70 * time.Second)
		r.look("also", func() (Finding, error) { return Finding{True: true}, nil })
		r.save(beat("disk", "also"))
		r.pass(2 * time.Minute)
		r.stop()
		r.expect("woken", r.woken("disk"), map[string]int{"terminal:ann": 2})
	})
}

func TestValidate(t *testing.T) {
	for says, change := range map[string]func(h *Heartbeat){
		"heartbeat.name":                    func(h *Heartbeat) { h.Name = "a/b" },
		"heartbeat.name: \"\"":              func(h *Heartbeat) { h.Name = "" },
		"heartbeat.name: \"a\\nb\"":         func(h *Heartbeat) { h.Name = "a\nb" },
		"heartbeat.cron":                    func(h *Heartbeat) { h.Cron = "0 0 30 2 *" },
		"heartbeat.timezone":                func(h *Heartbeat) { h.Zone = "Mars/Base" },
		"heartbeat.for: needs":              func(h *Heartbeat) { h.For = nil },
		"heartbeat.for: the name \"ann\"":   func(h *Heartbeat) { h.For = []string{"ann", "ann"} },
		"heartbeat.prompt":                  func(h *Heartbeat) { h.Prompt = " " },
		"heartbeat.max_ticks":               func(h *Heartbeat) { h.MaxTicks = -1 },
		"heartbeat.run_timeout":             func(h *Heartbeat) { h.RunTimeout = -1 },
		"heartbeat.missed":                  func(h *Heartbeat) { h.Missed = "all" },
		"heartbeat.grace":                   func(h *Heartbeat) { h.Grace = -1 },
		`no wake; write kind = "always"`:    func(h *Heartbeat) { h.Condition = Spec{} },
		"heartbeat.condition.kind: \"\"":    func(h *Heartbeat) { h.Condition = Spec{Path: "a"} },
		"heartbeat.condition.on":            func(h *Heartbeat) { h.Condition.On = "false" },
		"heartbeat.condition.cooldown":      func(h *Heartbeat) { h.Condition.Cooldown = -1 },
		"heartbeat.condition.timeout":       func(h *Heartbeat) { h.Condition.Timeout = -1 },
		"heartbeat.condition.run: is empty": func(h *Heartbeat) { h.Condition.Run = nil },
		"heartbeat.condition.url: does not": func(h *Heartbeat) { h.Condition.URL = "https://example.com" },
		"heartbeat.condition.url: must":     func(h *Heartbeat) { h.Condition = Spec{Kind: "http", URL: "file:///etc"} },
		"heartbeat.condition.path":          func(h *Heartbeat) { h.Condition = Spec{Kind: "file", Test: "exists"} },
		"heartbeat.condition.test":          func(h *Heartbeat) { h.Condition = Spec{Kind: "file", Path: "a", Test: "is"} },
		"heartbeat.condition.age: must":     func(h *Heartbeat) { h.Condition = Spec{Kind: "file", Path: "a", Test: "older_than"} },
		"heartbeat.condition.age: belongs":  func(h *Heartbeat) { h.Condition = Spec{Kind: "file", Path: "a", Test: "exists", Age: 1} },
		"heartbeat.condition.expr":          func(h *Heartbeat) { h.Condition = Spec{Kind: "expr"} },
		"heartbeat.condition.after":         func(h *Heartbeat) { h.Condition = Spec{Kind: "idle"} },
		"heartbeat.condition.of: needs":     func(h *Heartbeat) { h.Condition = Spec{Kind: "all"} },
		"heartbeat.condition.of[0].run":     func(h *Heartbeat) { h.Condition = Spec{Kind: "all", Of: []Spec{{Kind: "command"}}} },
		"heartbeat.condition.of[0].kind":    func(h *Heartbeat) { h.Condition = Spec{Kind: "any", Of: []Spec{{Kind: KindAlways}}} },
		"heartbeat.condition.of[0]: on":     func(h *Heartbeat) { h.Condition = Spec{Kind: "any", Of: []Spec{{Kind: "idle", After: 1, On: OnTrue}}} },
		"of[0].of[0].of[0].of[0].of: is nested": func(h *Heartbeat) {
			for range 6 {
				h.Condition = Spec{Kind: "all", Of: []Spec{h.Condition}}
			}
		},
	} {
		h := beat("disk", "no")
		change(&h)
		if err := h.Validate(); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
	if err := beat("disk space", "no").Validate(); err != nil {
		t.Error(err)
	}
}

func TestSpecJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lasts := rapid.Map(rapid.Int64Range(0, 1<<50), func(n int64) time.Duration { return time.Duration(n) })
		spec := Spec{
			Kind: rapid.StringN(0, 8, 8).Draw(t, "kind"), Cooldown: lasts.Draw(t, "cooldown"), Timeout: lasts.Draw(t, "timeout"),
			Age: lasts.Draw(t, "age"), After: lasts.Draw(t, "after"), Of: []Spec{{Kind: "file", Age: lasts.Draw(t, "inner age")}},
		}
		data, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		var back Spec
		if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, spec) {
			t.Fatalf("%s became %+v, error %v", data, back, err)
		}
	})
	var spec Spec
	if err := json.Unmarshal([]byte(`{"kind":"file","path":"a","test":"older_than","age":"7d","cooldown":"1h30m"}`), &spec); err != nil || spec.Age != 7*24*time.Hour || spec.Cooldown != 90*time.Minute {
		t.Errorf("%+v, error %v", spec, err)
	}
	for _, bad := range []string{`{"age":"7 days"}`, `{"age":"xd"}`, `{"age":7}`, `{"run":"df -h"}`} {
		if err := json.Unmarshal([]byte(bad), &spec); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestHasMade(t *testing.T) {
	r := newRig(t)
	has := func(person string) (has bool) {
		r.update(func(tx memory.Tx) (err error) {
			has, err = HasMade(tx, person)
			return err
		})
		return has
	}
	first, second := beat("first", "no"), beat("second", "no")
	first.By, second.By = "terminal:ann", "terminal:ann"
	r.save(first, second, beat("config", "no"))
	for person, want := range map[string]bool{"terminal:ann": true, "terminal:an": false, "terminal:ann2": false, "": false} {
		r.expect("made by "+person, has(person), want)
	}
	r.update(func(tx memory.Tx) error { return End(tx, "first", "enough", r.now()) })
	r.expect("after one has ended", has("terminal:ann"), true)
	r.update(func(tx memory.Tx) error { return Remove(tx, "second") })
	r.expect("after both are gone", has("terminal:ann"), false)
	r.save(first)
	r.expect("made again", has("terminal:ann"), true)
}

// TestATakenNameTellsNothing has somebody take the name of another's heartbeat that has ended: what has become of that
// is not theirs to read, also where a run of it is not over yet.
func TestATakenNameTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.ends = func(context.Context, Waking) (Ended, error) {
			time.Sleep(50 * time.Second)
			return Ended{ModelCalls: 1, TokensIn: 5}, nil
		}
		doctor := beat("doctor", "yes")
		doctor.By, doctor.Condition = "terminal:bob", Spec{Kind: KindAlways}
		doctor.For = []string{"terminal:bob"}
		r.save(doctor)
		r.start()
		r.pass(10*time.Minute + 30*time.Second)
		r.update(func(tx memory.Tx) error { return End(tx, "doctor", "enough", r.now()) })
		r.expect("what is remembered of it", len(r.why("doctor").Outcomes) > 5 && len(r.why("doctor").Used) == 1, true)
		mine := doctor
		mine.By, mine.For, mine.Cron = "terminal:ann", []string{"terminal:ann"}, "0 9 1 1 *"
		r.save(mine)
		r.pass(time.Minute)
		report := r.why("doctor")
		r.expect("outcomes", len(report.Outcomes), 0)
		r.expect("counters", report.Counters, Counters{})
		if text := report.String(); strings.Contains(text, "bob") {
			t.Errorf("it tells\n%s", text)
		}
		r.stop()
		if err := r.store.View(t.Context(), func(tx memory.Tx) error {
			return Check(tx, func(problem string) { t.Error(problem) })
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestForgettingTakesNamesOutOfReasons has one of two people forgotten whom a heartbeat of the config wakes.
func TestForgettingTakesNamesOutOfReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		both := beat("both", "yes")
		both.For, both.Condition = []string{"terminal:ann", "terminal:ann2"}, Spec{Kind: KindAlways}
		r.save(both)
		r.start()
		r.pass(150 * time.Second)
		r.stop()
		if text := r.why("both").String(); !strings.Contains(text, "woke terminal:ann") {
			t.Fatalf("before:\n%s", text)
		}
		r.update(func(tx memory.Tx) error { _, _, err := ForgetHeartbeats(tx, "terminal:ann"); return err })
		for _, o := range r.why("both").Outcomes {
			if words := strings.FieldsFunc(o.Reason, func(c rune) bool { return c == ' ' || c == ',' }); slices.Contains(words, "terminal:ann") ||
				!slices.Contains(words, "terminal:ann2") || !slices.Contains(words, "somebody") {
				t.Errorf("the reason is %q", o.Reason)
			}
		}
	})
}
