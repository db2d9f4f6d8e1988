package schedule

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestARefusedRunIsTheLast: after the first run that the model refuses nobody is woken by any heartbeat, the owners hear of
// it once, and what was true is told when somebody got an answer.
func TestARefusedRunIsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		disk, other := beat("disk", "yes"), beat("other", "yes")
		other.Cron, other.Condition.On = "@every 90s", OnTrue
		var refuses atomic.Bool
		refuses.Store(true)
		r.ends = func(context.Context, Waking) (Ended, error) {
			if refuses.Load() {
				return Ended{Reason: "model_error: the key is not accepted", Refused: true, ModelCalls: 1}, nil
			}
			return Ended{OK: true}, nil
		}
		r.save(disk, other)
		r.start()
		r.pass(50 * time.Hour)
		r.expect("wakes", len(r.wakes), 1)
		if alarms := r.allAlarms(); strings.Count(alarms, "the key is not accepted") != 1 || !strings.Contains(alarms, "no heartbeat wakes anybody until") {
			t.Errorf("the owners heard %q", alarms)
		}
		if reason := r.why("other").Outcomes[0].Reason; !strings.Contains(reason, "the model refuses to answer: model_error: the key is not accepted") {
			t.Errorf("a tick slept since %s", reason)
		}
		refuses.Store(false)
		r.clock.Mended()
		r.pass(2 * time.Minute)
		r.stop()
		r.expect("woken later", r.woken("disk"), map[string]int{"terminal:ann": 2})
		r.expect("another", r.woken("other")["terminal:ann"] >= 1, true)
	})
}

// TestARunDoesNotWakeItself: what a woken run changed in what its heartbeat watches is no change to the next tick; what others
// change is.
func TestARunDoesNotWakeItself(t *testing.T) {
	for _, changes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			var file atomic.Value
			file.Store("one")
			r.looks["file"] = func(_ context.Context, previous string) (Finding, error) {
				now := file.Load().(string)
				return Finding{True: previous != "" && previous != now, State: now}, nil
			}
			r.ends = func(context.Context, Waking) (Ended, error) {
				file.Store(file.Load().(string) + ", and what the run wrote")
				return Ended{OK: true, Changed: changes}, nil
			}
			r.save(beat("notes", "file"))
			r.start()
			r.pass(90 * time.Second)
			file.Store("two")
			r.pass(5 * time.Minute)
			file.Store("three")
			r.pass(time.Minute)
			r.stop()
			want := "slept woke slept slept slept slept woke"
			if !changes { // who says that it only looked is believed
				want = "slept woke woke woke woke woke woke"
			}
			r.expect("outcomes", r.words("notes"), want)
		})
	}
}
