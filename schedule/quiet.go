package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// aDay is how many minutes a clock shows before it starts anew.
const aDay = 24 * 60

// Quiet is a stretch of each day, as a person's own clocks show it, in which nothing is said to them unasked. It may reach
// over midnight. Its first minute belongs to it, its end does not. The zero value is none.
type Quiet struct {
	from, to int // minutes since midnight; the same where there is none
}

// ParseQuiet reads quiet hours such as "22:00-07:00"; an empty text is none. Their end may be 24:00.
func ParseQuiet(text string) (Quiet, error) {
	if strings.TrimSpace(text) == "" {
		return Quiet{}, nil
	}
	from, to, found := strings.Cut(text, "-")
	if !found {
		return Quiet{}, errors.New(`wants two times of day, such as "22:00-07:00"`)
	}
	start, err := parseClock(from)
	if err != nil {
		return Quiet{}, err
	}
	end := 0
	if strings.TrimSpace(to) != "24:00" {
		if end, err = parseClock(to); err != nil {
			return Quiet{}, err
		}
	}
	if start == end {
		return Quiet{}, errors.New("begins and ends at the same time of day; leave it out to have no quiet hours")
	}
	return Quiet{start, end}, nil
}

// parseClock reads a time of day, such as 07:00, as minutes since midnight.
func parseClock(text string) (minutes int, err error) {
	at, err := time.Parse("15:04", strings.TrimSpace(text))
	if err != nil {
		return 0, errors.New(`wants times of day from 00:00 to 23:59, such as "07:00"`)
	}
	return at.Hour()*60 + at.Minute(), nil
}

// clockWords writes minutes since midnight as a clock shows them.
func clockWords(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// String writes the quiet hours as [ParseQuiet] reads them; "" for none.
func (q Quiet) String() string {
	if q == (Quiet{}) {
		return ""
	}
	return clockWords(q.from) + "-" + clockWords(q.to)
}

// has reports whether a reading of a clock, in minutes since midnight, lies in the quiet hours.
func (q Quiet) has(reading int) bool {
	if q.from <= q.to {
		return q.from <= reading && reading < q.to
	}
	return reading >= q.from || reading < q.to
}

// Until gives when the quiet hours are over in which an instant lies, for somebody in a zone; zero when it lies in none. It
// is the first instant after it at which their clock shows another time, also where the clock is changed in between.
func (q Quiet) Until(now time.Time, zone *time.Location) time.Time {
	at := now.Round(0).In(zone)
	if !q.has(clockMinute(at)) {
		return time.Time{}
	}
	for range 8 { // more changes than any clock has in a day
		left := time.Duration((q.to-clockMinute(at)+aDay)%aDay) * time.Minute
		end := at.Add(left).Truncate(time.Minute)
		if _, changes := at.ZoneBounds(); !changes.IsZero() && changes.Before(end) {
			end = changes
		}
		if at = end.In(zone); !q.has(clockMinute(at)) {
			break
		}
	}
	return at.UTC()
}

// clockMinute is what a clock shows, in minutes since midnight.
func clockMinute(at time.Time) int { return at.Hour()*60 + at.Minute() }
