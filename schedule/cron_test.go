package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func between(t *testing.T, s Schedule, from, until time.Time) []string {
	t.Helper()
	var list []string
	for at := s.Next(from); !at.IsZero() && !at.After(until); at = s.Next(at) {
		list = append(list, at.UTC().Format(time.RFC3339))
		if len(list) > 1000 {
			t.Fatal("no end")
		}
	}
	return list
}

func TestNext(t *testing.T) {
	for _, test := range []struct{ spec, zone, from, until, runs string }{
		// the clock goes back: fixed hours once, others in both copies
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z", "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", "2026-10-25T02:15:00Z", "2026-10-25T00:00:00Z 2026-10-25T00:30:00Z 2026-10-25T01:00:00Z 2026-10-25T01:30:00Z 2026-10-25T02:00:00Z"},
		{"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T03:30:00Z", "2026-10-25T00:00:00Z 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z 2026-10-25T03:00:00Z"},
		{"@every 30m", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:00:00Z 2026-10-25T01:30:00Z"},
		// it goes forward: the first instant after the gap
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z", "2026-03-29T02:30:00Z", "2026-03-29T00:00:00Z 2026-03-29T01:00:00Z 2026-03-29T02:00:00Z"},
		// zones that jump at midnight, by half an hour, or over a whole day
		{"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-07T12:00:00Z", "2026-09-06T04:00:00Z 2026-09-07T03:00:00Z"},
		{"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-25T12:00:00Z", "2026-04-23T22:00:00Z 2026-04-24T21:00:00Z"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-06T00:00:00Z", "2026-04-04T14:45:00Z 2026-04-05T15:15:00Z"},
		{"0 8 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-31T20:00:00Z", "2011-12-29T18:00:00Z 2011-12-30T18:00:00Z 2011-12-31T18:00:00Z"},
		// either day field is enough
		{"0 9 1 * 1", "UTC", "2026-12-01T00:00:00Z", "2027-01-05T00:00:00Z", "2026-12-01T09:00:00Z 2026-12-07T09:00:00Z 2026-12-14T09:00:00Z 2026-12-21T09:00:00Z 2026-12-28T09:00:00Z 2027-01-01T09:00:00Z 2027-01-04T09:00:00Z"},
		{"0 9 31 2 1", "UTC", "2027-02-01T00:00:00Z", "2027-02-16T00:00:00Z", "2027-02-01T09:00:00Z 2027-02-08T09:00:00Z 2027-02-15T09:00:00Z"},
		{"0 9 */10 * 1", "UTC", "2026-12-01T00:00:00Z", "2026-12-22T00:00:00Z", "2026-12-01T09:00:00Z 2026-12-07T09:00:00Z 2026-12-11T09:00:00Z 2026-12-14T09:00:00Z 2026-12-21T09:00:00Z"},
		// steps that do not divide
		{"*/45 * * * *", "UTC", "2026-12-01T00:00:00Z", "2026-12-01T02:50:00Z", "2026-12-01T00:45:00Z 2026-12-01T01:00:00Z 2026-12-01T01:45:00Z 2026-12-01T02:00:00Z 2026-12-01T02:45:00Z"},
		{"0 0 */3 * *", "UTC", "2026-12-27T00:00:00Z", "2027-01-05T00:00:00Z", "2026-12-28T00:00:00Z 2026-12-31T00:00:00Z 2027-01-01T00:00:00Z 2027-01-04T00:00:00Z"},
		{"5/15 * * * *", "UTC", "2026-12-01T00:00:00Z", "2026-12-01T01:10:00Z", "2026-12-01T00:05:00Z 2026-12-01T00:20:00Z 2026-12-01T00:35:00Z 2026-12-01T00:50:00Z 2026-12-01T01:05:00Z"},
		{"@every 45m", "UTC", "2026-12-01T00:00:00Z", "2026-12-01T02:20:00Z", "2026-12-01T00:45:00Z 2026-12-01T01:30:00Z 2026-12-01T02:15:00Z"},
		// the eight years around 2100
		{"0 0 29 2 *", "", "2096-03-01T00:00:00Z", "2104-12-01T00:00:00Z", "2104-02-29T00:00:00Z"},
	} {
		t.Run(test.spec+" "+test.zone+" "+test.from, func(t *testing.T) {
			s, err := ParseCron(test.spec, test.zone)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(between(t, s, instant(t, test.from), instant(t, test.until)), " ")
			if got != test.runs {
				t.Errorf("got  %s\nwant %s", got, test.runs)
			}
		})
	}
}

func TestParseCronRefuses(t *testing.T) {
	for _, test := range []struct{ spec, zone, says string }{
		{"", "", "empty"},
		{"TZ=0", "", "timezone"},
		{"CRON_TZ=UTC", "", "timezone"},
		{"TZ=UTC 0 9 * * *", "", "timezone"},
		{"0 0 30 2 *", "", "never"},
		{"0 9 * *", "", "five"},
		{"0 9 * * * *", "", "five"},
		{", 9 * * *", "", "cannot be read"},
		{"0 9 * * 9", "", "range"},
		{"*/0 * * * *", "", "step"},
		{"61 * * * *", "", "range"},
		{"@every", "", "duration"},
		{"@every -5m", "", "above zero"},
		{"@every 0s", "", "above zero"},
		{"@every 200000h", "", "ten years"},
		{"@reboot", "", "descriptor"},
		{strings.Repeat("1,", 300) + "1 * * * *", "", "longer"},
		{"0 9 * * *", "Mars/Base", "Mars/Base"},
		{"0 9 * * *", "Local", "Local"},
	} {
		_, err := ParseCron(test.spec, test.zone)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("ParseCron(%q, %q): error %v, want one with %q", test.spec, test.zone, err, test.says)
		}
	}
}

func TestParseCronNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rapid.OneOf(rapid.String(), rapid.StringMatching(`(TZ=|CRON_TZ=|@every |@)?[-0-9*,/?a-zA-Z @=]{0,20}`)).Draw(t, "spec")
		s, err := ParseCron(spec, "Europe/Berlin")
		if err == nil && s.Next(time.Unix(0, 0)).IsZero() {
			t.Fatalf("%q was accepted and never falls due", spec)
		}
	})
}

func TestWarnings(t *testing.T) {
	for spec, wants := range map[string][]string{
		"*/45 * * * *":  {"@every 45m"},
		"*/50 * * * *":  {"@every 50m"},
		"0 */7 * * *":   {"@every 7h"},
		"0 0 */3 * *":   {"@every 72h"},
		"*/15 * * * *":  nil,
		"0 9 1 * 1":     {"day 1 of the month OR on Mondays"},
		"0 9 1,2 * 1-2": {"days 1,2 of the month OR on Mondays, Tuesdays"},
		"0 9 * * 1-5":   nil,
		"@every 1ns":    {"every 1s"},
		"@every 59s":    {"more often"},
		"@every 1m":     nil,
		"@daily":        nil,
		"nonsense":      nil,
	} {
		got := Warnings(spec)
		if len(got) != len(wants) {
			t.Errorf("%q: got %q, want %d", spec, got, len(wants))
			continue
		}
		for i, want := range wants {
			if !strings.Contains(got[i], want) {
				t.Errorf("%q: %q does not say %q", spec, got[i], want)
			}
		}
	}
}

func TestNextThree(t *testing.T) {
	s, err := ParseCron("0 9 * * 1-5", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	got := s.NextThree(instant(t, "2026-11-27T12:00:00Z"))
	want := []string{"Monday 30 November 2026 at 09:00 CET", "Tuesday 1 December 2026 at 09:00 CET", "Wednesday 2 December 2026 at 09:00 CET"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

var someZones = []string{
	"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Santiago", "America/St_Johns", "America/Nuuk",
	"Africa/Cairo", "Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia",
	"Pacific/Chatham", "Pacific/Auckland", "Antarctica/Troll", "Asia/Tehran", "America/Havana",
}

// matches compares the fields with what the zone's clocks show.
func matches(s Schedule, at time.Time) bool {
	_, offset := at.Zone()
	wall := reading(at, offset)
	return s.match(wall.Add(-time.Second)).Equal(wall)
}

func TestNextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(someZones).Draw(t, "zone")
		hour := rapid.SampledFrom([]string{"*", "*/2", "0", "1", "2", "3", "23", "0,12", "1-3", "22-23"}).Draw(t, "hour")
		minute := rapid.SampledFrom([]string{"0", "15", "30", "59", "*/30", "*/7", "*"}).Draw(t, "minute")
		day := rapid.SampledFrom([]string{"* * *", "* * 0", "1 * *", "* 3,10 *", "*/10 * 6"}).Draw(t, "day")
		s, err := ParseCron(fmt.Sprintf("%s %s %s", minute, hour, day), zone)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(rapid.Int64Range(1_200_000_000, 2_100_000_000).Draw(t, "from"), 0)
		seen := map[string]bool{}
		for range 50 {
			before := at
			if at = s.Next(at); !at.After(before) {
				t.Fatalf("%v does not follow %v", at, before)
			}
			if again := s.Next(at.Add(-time.Nanosecond)); !again.Equal(at) {
				t.Fatalf("from just before %v the next is %v", at, again)
			}
			start, _ := at.ZoneBounds()
			if !matches(s, at) && !(s.fixed && at.Equal(start)) {
				t.Fatalf("%v does not match and is not the end of a gap", at)
			}
			shown := at.Format("2006-01-02 15:04")
			if s.fixed && matches(s, at) && seen[shown] {
				t.Fatalf("%s fell due twice", shown)
			}
			seen[shown] = true
		}
	})
}

// TestOncePerDate walks whole years: a daily job of one fixed time falls due exactly once for each local date.
func TestOncePerDate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(someZones).Draw(t, "zone")
		clock := rapid.IntRange(0, 24*60-1).Draw(t, "minute of the day")
		s, err := ParseCron(fmt.Sprintf("%d %d * * *", clock%60, clock/60), zone)
		if err != nil {
			t.Fatal(err)
		}
		year := rapid.IntRange(2012, 2036).Draw(t, "year")
		first := time.Date(year, 1, 1, 0, 0, 0, 0, s.zone)
		at := first.Add(-time.Second)
		for day := range 365 {
			at = s.Next(at)
			date := time.Date(year, 1, 1+day, clock/60, clock%60, 0, 0, time.UTC)
			if gap := s.firstAt(date); !at.Equal(gap) || at.Sub(reading(date, -offsetOf(at))) > 2*time.Hour {
				t.Fatalf("for %s it fell due at %v", date.Format(time.DateTime), at)
			}
		}
	})
}

func offsetOf(at time.Time) int {
	_, offset := at.Zone()
	return offset
}

func TestLatest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rapid.SampledFrom([]string{"*/5 * * * *", "0 8 * * *", "0 0 1 * *", "30 2 * * 0", "@every 7m", "* 3 * * 1"}).Draw(t, "spec")
		s, err := ParseCron(spec, rapid.SampledFrom(someZones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		from := s.Next(time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "from"), 0))
		now := from.Add(time.Duration(rapid.Int64Range(0, 40*24*3600).Draw(t, "down")) * time.Second)
		want := from
		for next := s.Next(from); !next.After(now); next = s.Next(next) {
			want = next
		}
		if got := s.latest(from, now); !got.Equal(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
