package schedule

import (
	"testing"
	"time"
)

func quiet(t *testing.T, text string) Quiet {
	t.Helper()
	q, err := ParseQuiet(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestQuietIsByEachPersonsOwnClocks is case C05, with what is active there turned around into what is quiet.
func TestQuietIsByEachPersonsOwnClocks(t *testing.T) {
	for _, row := range []struct {
		hours, zone, now string
		until            string // "" for an instant that is not quiet
	}{
		{"22:00-08:00", "Asia/Kolkata", "2026-12-01T02:30:00Z", ""},
		{"22:00-08:00", "Asia/Kolkata", "2026-12-01T02:29:59Z", "2026-12-01T02:30:00Z"},
		{"22:00-08:00", "America/New_York", "2026-12-01T03:00:00Z", "2026-12-01T13:00:00Z"},
		{"22:00-08:00", "America/New_York", "2026-12-01T02:59:59Z", ""},
		{"22:00-08:00", "Asia/Shanghai", "2026-05-01T19:21:00Z", "2026-05-02T00:00:00Z"},
		{"22:00-08:00", "America/Los_Angeles", "2026-09-08T23:00:00Z", ""},
		{"22:00-08:00", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T07:00:00Z"},
		{"06:00-22:00", "UTC", "2026-12-01T23:00:00Z", ""},
		{"06:00-22:00", "UTC", "2026-12-01T05:59:00Z", ""},
		{"06:00-22:00", "UTC", "2026-12-01T06:00:00Z", "2026-12-01T22:00:00Z"},
		{"20:00-24:00", "UTC", "2026-12-01T23:59:59.999Z", "2026-12-02T00:00:00Z"},
		{"00:00-23:59", "UTC", "2026-12-01T23:59:00Z", ""},
		{"", "UTC", "2026-12-01T03:00:00Z", ""},
		// The end is left out when clocks go forward, and shown twice when they go back.
		{"22:00-02:30", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
		{"22:00-02:30", "Europe/Berlin", "2026-10-25T00:10:00Z", "2026-10-25T00:30:00Z"},
		{"22:00-02:30", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z"},
		{"02:00-02:30", "Europe/Berlin", "2026-03-29T01:10:00Z", ""},
		{"01:45-07:00", "Australia/Lord_Howe", "2026-04-04T14:50:00Z", "2026-04-04T15:00:00Z"}, // 01:45 to 02:00, when it is 01:30 again
		{"22:00-00:30", "America/Santiago", "2026-09-06T03:59:59Z", "2026-09-06T04:00:00Z"},    // midnight is left out
	} {
		got := quiet(t, row.hours).Until(instant(t, row.now), zone(t, row.zone))
		want := time.Time{}
		if row.until != "" {
			want = instant(t, row.until)
		}
		if !got.Equal(want) {
			t.Errorf("%s in %s at %s: until %s, want %s", row.hours, row.zone, row.now, got, want)
		}
	}
}

// TestQuietEndsWhenTheClockSaysSo holds the end of quiet hours against clocks that are looked at minute for minute.
func TestQuietEndsWhenTheClockSaysSo(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kathmandu"} {
		z := zone(t, name)
		for _, hours := range []string{"22:00-07:00", "00:00-00:30", "01:30-02:30", "02:15-01:45", "09:00-17:00"} {
			q := quiet(t, hours)
			var until time.Time
			for _, start := range []string{"2026-03-28T00:00:00Z", "2026-04-03T12:00:00Z", "2026-04-23T12:00:00Z", "2026-09-05T00:00:00Z", "2026-10-24T00:00:00Z", "2026-10-31T12:00:00Z"} {
				from := instant(t, start)
				for now := from.Add(48 * time.Hour); !now.Before(from); now = now.Add(-time.Minute) {
					local := now.In(z)
					minute := local.Hour()*60 + local.Minute()
					inside := minute >= q.from && minute < q.to
					if q.from > q.to {
						inside = minute >= q.from || minute < q.to
					}
					if !inside {
						until = now
					}
					got := q.Until(now, z)
					switch {
					case !inside && !got.IsZero():
						t.Fatalf("%s in %s: %s is quiet until %s", hours, name, local, got)
					case inside && until.IsZero():
					case inside && !got.Equal(until):
						t.Fatalf("%s in %s at %s: until %s, want %s", hours, name, local, got.In(z), until.In(z))
					}
				}
				until = time.Time{}
			}
		}
	}
}

func TestBadQuietHoursAreRefused(t *testing.T) {
	for _, text := range []string{"08:00-08:00", "25:00-9", "8", "22:00", "22:00-07:00-09:00", "24:00-07:00", "00:00-24:00", "-", "10pm-7am", "22:60-07:00"} {
		if q, err := ParseQuiet(text); err == nil {
			t.Errorf("%q is read as %s", text, q)
		}
	}
	if q := quiet(t, " 22:00 - 7:05 "); q.String() != "22:00-07:05" {
		t.Errorf("it is read as %s", q)
	}
}

func FuzzParseQuiet(f *testing.F) {
	f.Add("22:00-07:00")
	f.Add("0:00-24:00")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuiet(text)
		if err != nil {
			return
		}
		if again, err := ParseQuiet(q.String()); err != nil || again != q {
			t.Fatalf("%q is %s, and that is %s, %v", text, q, again, err)
		}
		now := time.Date(2026, 10, 24, 23, 59, 0, 0, time.UTC)
		for range 50 {
			now = now.Add(31 * time.Minute)
			if until := q.Until(now, time.UTC); !until.IsZero() && (!until.After(now) || until.Sub(now) > 24*time.Hour) {
				t.Fatalf("%s: quiet at %s until %s", q, now, until)
			}
		}
	})
}
