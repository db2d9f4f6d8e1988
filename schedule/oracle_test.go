package schedule

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The oracle knows nothing of the schedule's arithmetic: it reads the fields itself, looks at what the zone's clocks show
// at every minute of three years, and decides minute by minute.

var (
	oracleStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	oracleEnd   = time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)
)

var oracleZones = append([]string{"Asia/Jerusalem", "Australia/Adelaide"}, someZones...)

// wallClock is what a zone's clocks show at each minute from start on, in minutes since 1970 of their own.
type wallClock struct {
	zone  *time.Location
	start time.Time
	shows []int64
}

func newWallClock(t rapid.TB, zone string, start, end time.Time) wallClock {
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	c := wallClock{zone: location, start: start}
	for at := start; at.Before(end); at = at.Add(time.Minute) {
		_, offset := at.In(location).Zone()
		c.shows = append(c.shows, (at.Unix()+int64(offset))/60)
	}
	return c
}

func (c wallClock) at(minute int) time.Time { return c.start.Add(time.Duration(minute) * time.Minute) }

// wanted are the readings that a spec names.
type wanted struct {
	minute, hour, dom, month, dow [60]bool
	anyDom, anyDow                bool
}

func readWanted(spec string) (w wanted) {
	fields := strings.Fields(spec)
	for i, of := range []struct {
		set         *[60]bool
		first, last int
	}{{&w.minute, 0, 59}, {&w.hour, 0, 23}, {&w.dom, 1, 31}, {&w.month, 1, 12}, {&w.dow, 0, 6}} {
		for part := range strings.SplitSeq(fields[i], ",") {
			span, text, stepped := strings.Cut(part, "/")
			step := 1
			if stepped {
				step = number(text)
			}
			from, to := of.first, of.last
			if low, high, ranged := strings.Cut(span, "-"); ranged {
				from, to = number(low), number(high)
			} else if span != "*" {
				from = number(span)
				if !stepped {
					to = from
				}
			}
			for n := from; n <= to; n += step {
				of.set[n] = true
			}
		}
	}
	w.anyDom, w.anyDow = fields[2] == "*", fields[4] == "*"
	return w
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func (w wanted) matches(reading int64) bool {
	if !w.minute[reading%60] || !w.hour[reading/60%24] {
		return false
	}
	date := time.Unix(reading/(24*60)*24*60*60, 0).UTC()
	dom, dow := w.dom[date.Day()], w.dow[date.Weekday()]
	day := dom && dow
	if !w.anyDom && !w.anyDow {
		day = dom || dow // either is enough
	}
	return day && w.month[date.Month()]
}

// runs are the minutes after one at which a spec falls due. Fixed hours do when the clocks show a reading for the first time,
// or one after it; others whenever they show it.
func (c wallClock) runs(w wanted, fixed bool, after int) (due []int) {
	highest := c.shows[0]
	for m := 1; m < len(c.shows); m++ {
		from := c.shows[m]
		if fixed {
			from = highest + 1 // nothing, when the clocks have shown that before
		}
		falls := false
		for reading := from; reading <= c.shows[m]; reading++ {
			falls = falls || w.matches(reading)
		}
		highest = max(highest, c.shows[m])
		if falls && m > after {
			due = append(due, m)
		}
	}
	return due
}

// compare holds the schedule to the oracle from a minute on.
func (c wallClock) compare(t rapid.TB, spec string, after int) {
	w := readWanted(spec)
	hours := 0
	for _, in := range w.hour {
		if in {
			hours++
		}
	}
	fixed := hours == 1 || !strings.ContainsAny(strings.Fields(spec)[1], "*/") && hours < 24
	want := c.runs(w, fixed, after)
	s, err := ParseCron(spec, c.zone.String())
	if err != nil {
		if len(want) > 0 {
			t.Fatalf("%q falls due and was refused: %v", spec, err)
		}
		return
	}
	var got []int
	end := c.at(len(c.shows) - 1)
	for at := s.Next(c.at(after)); !at.IsZero() && !at.After(end); at = s.Next(at) {
		got = append(got, int(at.Sub(c.start)/time.Minute))
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%q in %s, run %d of %d: got %s, want %s", spec, c.zone, i, len(want), c.tell(got, i), c.tell(want, i))
		}
	}
}

func (c wallClock) tell(minutes []int, i int) string {
	if i >= len(minutes) {
		return "none"
	}
	return c.at(minutes[i]).In(c.zone).String()
}

// fieldOf draws a field of a spec.
func fieldOf(first, last int) *rapid.Generator[string] {
	one := rapid.Custom(func(t *rapid.T) string {
		from := rapid.IntRange(first, last).Draw(t, "from")
		to := rapid.IntRange(from, last).Draw(t, "to")
		step := rapid.IntRange(1, last).Draw(t, "step")
		return rapid.SampledFrom([]string{
			"*", "*", fmt.Sprint(from), fmt.Sprint(from), fmt.Sprintf("%d-%d", from, to), fmt.Sprintf("*/%d", max(2, step)),
			fmt.Sprintf("%d/%d", from, step), fmt.Sprintf("%d-%d/%d", from, to, step),
		}).Draw(t, "form")
	})
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(one, 1, 3).Draw(t, "parts")
		if slices.Contains(parts, "*") {
			return "*"
		}
		return strings.Join(parts, ",")
	})
}

func specOf(t *rapid.T) string {
	var fields []string
	for _, field := range [][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}} {
		generator := fieldOf(field[0], field[1])
		if field[1] == 12 || field[1] == 31 { // often any, so that something falls due in a few days
			generator = rapid.OneOf(rapid.Just("*"), rapid.Just("*"), generator)
		}
		fields = append(fields, generator.Draw(t, "field"))
	}
	return strings.Join(fields, " ")
}

// TestOracle compares specs in all zones with the oracle, in days around changes of the clocks and in others.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(oracleZones).Draw(t, "zone")
		around := oracleStart.Add(time.Duration(rapid.IntRange(0, int(oracleEnd.Sub(oracleStart)/time.Minute)).Draw(t, "minute")) * time.Minute)
		location, err := loadZone(zone)
		if err != nil {
			t.Fatal(err)
		}
		if _, change := around.In(location).ZoneBounds(); change.Before(oracleEnd) && !change.IsZero() && rapid.Bool().Draw(t, "at a change") {
			around = change.UTC()
		}
		const warming = 24 * 60 // minutes from which it is known what the clocks have shown
		after := around.Add(-time.Duration(rapid.IntRange(0, 3*24*60).Draw(t, "before")) * time.Minute)
		c := newWallClock(t, zone, after.Add(-warming*time.Minute), after.Add(4*24*time.Hour))
		for range 2 {
			c.compare(t, specOf(t), warming)
		}
	})
}

// TestOracleOverThreeYears compares every minute of three years in all zones. It takes a minute, and NUDGE_LONG.
func TestOracleOverThreeYears(t *testing.T) {
	if os.Getenv("NUDGE_LONG") == "" {
		t.Skip("NUDGE_LONG is not set")
	}
	specs := []string{
		"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 */5 * * *", "59 23 * * 0",
		"0 9 1 * 1", "0 0 29 2 *", "30 1 31 * *", "0 12 */10 * 5", "*/45 */7 * 3,10,11 *", "0 0-3 * 3-4,9-11 0,6",
	}
	for _, zone := range oracleZones {
		t.Run(zone, func(t *testing.T) {
			c := newWallClock(t, zone, oracleStart, oracleEnd)
			for _, spec := range specs {
				c.compare(t, spec, 3*24*60)
			}
		})
	}
}
