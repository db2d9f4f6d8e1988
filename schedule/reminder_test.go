package schedule

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

func TestOneInstant(t *testing.T) {
	for _, row := range []struct{ spec, zone, want, words string }{
		{"@at 2026-12-01T08:00", "Europe/Berlin", "2026-12-01T07:00:00Z", "once on Tuesday 1 December 2026 at 08:00"},
		{"@at 2026-12-01 08:00", "America/New_York", "2026-12-01T13:00:00Z", "once on Tuesday 1 December 2026 at 08:00"},
		{"@at 2026-12-01T08:00:30", "UTC", "2026-12-01T08:00:30Z", "once on Tuesday 1 December 2026 at 08:00"},
		{"@at 2026-12-01T08:00:00+05:30", "Europe/Berlin", "2026-12-01T02:30:00Z", "once on Tuesday 1 December 2026 at 08:00 +05:30"},
		{"@at 2026-12-01T08:00Z", "Europe/Berlin", "2026-12-01T08:00:00Z", ""},
		{"@at 2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00:00Z", ""},       // left out: the first instant after
		{"@at 2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00Z", ""},       // shown twice: the first
		{"@at 2026-09-06T00:00", "America/Santiago", "2026-09-06T04:00:00Z", ""},    // midnight is left out
		{"@at 2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", ""}, // half an hour is shown twice
	} {
		s, err := ParseCron(row.spec, row.zone)
		if err != nil {
			t.Errorf("%s: %v", row.spec, err)
			continue
		}
		at := s.Once()
		if want := instant(t, row.want); !at.Equal(want) || !s.Next(want.Add(-1)).Equal(want) || !s.Next(want).IsZero() || len(s.Upcoming(want.Add(-time.Hour), 3)) != 1 {
			t.Errorf("%s in %s: %s, want %s", row.spec, row.zone, at, row.want)
		}
		if words := Words(row.spec); row.words != "" && words != row.words {
			t.Errorf("%s is in words %q", row.spec, words)
		}
		if w := Warnings(row.spec); len(w) > 0 {
			t.Errorf("%s: %q", row.spec, w)
		}
	}
	for _, spec := range []string{"@at", "@at ", "@at tomorrow", "@at 2026-13-01T08:00", "@at 08:00", "@at 2026-12-01"} {
		if s, err := ParseCron(spec, ""); err == nil {
			t.Errorf("%q is read as %s", spec, s.Once())
		}
	}
}

// reminder is one for Ann, at an instant of 1 January 2000.
func reminder(at string) Heartbeat {
	return Heartbeat{
		Name: "call", Cron: "@at 2000-01-01T" + at, Zone: "UTC", For: []string{ann}, By: ann, Text: "Call Bob.",
		Condition: Spec{Kind: KindAlways}, Grace: 24 * time.Hour,
	}
}

func TestAReminderComesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		down  time.Duration // the clock does not run for so long
		after time.Duration
	}{"in time": {0, 8 * time.Hour}, "late": {20 * time.Hour, 20 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.save(reminder("08:00"))
				r.start()
				if c.down > 0 {
					r.stop()
					time.Sleep(c.down)
					r.start()
				}
				r.pass(c.after + time.Second - c.down)
				if w := r.allWakes(); len(w) != 1 || w[0].Text != "Call Bob." || w[0].Prompt != "" || w[0].Tick.Format(time.TimeOnly) != "08:00:00" {
					t.Errorf("wakes: %+v", w)
				}
				if ended := r.why("call").Heartbeat.Ended; ended != "no date is left" {
					t.Errorf("it has ended: %q", ended)
				}
				r.pass(48 * time.Hour)
				r.expect("wakes later", len(r.allWakes()), 1)
				r.stop()
			})
		})
	}
}

// TestASnoozedReminderComesAgain, and no more when something else is said of it.
func TestASnoozedReminderComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.save(reminder("08:00"))
		r.start()
		r.pass(8*time.Hour + time.Minute)
		if j := r.judge("call", ann, Snooze, AnHour); !j.Comes {
			t.Errorf("the snooze: %+v", j)
		}
		r.pass(59 * time.Minute)
		r.expect("wakes in the snooze", len(r.allWakes()), 1)
		r.pass(time.Minute)
		r.expect("wakes after it", len(r.allWakes()), 2)
		j := r.judge("call", ann, Snooze, FourHours)
		r.update(func(tx memory.Tx) error {
			_, err := Judge(tx, j.Card.ID, ann, Useful, "", r.now(), time.UTC)
			return err
		})
		r.pass(24 * time.Hour)
		r.expect("wakes after the snooze was taken back", len(r.allWakes()), 2)
		if ended := r.why("call").Heartbeat.Ended; !strings.Contains(ended, "taken back") {
			t.Errorf("it has ended: %q", ended)
		}
		r.stop()
	})
}

// TestAReminderIsHeldBackLikeAnythingElse: in quiet hours it comes in the digest, unless it may break them.
func TestAReminderIsHeldBackLikeAnythingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerald(t, budget(t, "22:00-07:00", 0, ""))
		loud := reminder("03:30")
		loud.Name, loud.BreakQuiet = "pill", true
		h.save(reminder("03:00"), loud)
		h.start()
		h.pass(8 * time.Hour)
		h.expect("said", h.saidTo(ann), 1)
		h.says("call", Quieted, "quiet hours until Saturday 1 January 2000 at 07:00 UTC")
		if got := h.digestsOf(ann); len(got) != 1 || !strings.Contains(got[0].text, "call, 03:00 (in your quiet hours)") {
			t.Errorf("the digests are %+v", got)
		}
		h.stop()
	})
}
