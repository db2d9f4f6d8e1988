package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// The errors go on where a key was named.
var (
	errLength = errors.New(`wants a length of time such as "90s", "15m", "72h" or "7d"`)
	errMoment = errors.New(`wants a day such as "2027-01-31", or an instant such as "2027-01-31T18:00:00+01:00"`)
)

// Duration is a length of time, never negative. In the file it is a text as Go writes it ("90s", "1h30m"), which may
// begin with whole days ("7d", "1d12h").
type Duration time.Duration

// Std is the duration as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes the duration as UnmarshalText reads it.
func (d Duration) String() string { return time.Duration(d).String() }

// UnmarshalText reads a duration. Its error says what is wanted and doesn't quote the text.
func (d *Duration) UnmarshalText(text []byte) error {
	rest := string(text)
	var days time.Duration
	if count, after, found := strings.Cut(rest, "d"); found {
		n, err := strconv.ParseUint(count, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/day) {
			return errLength
		}
		days, rest = time.Duration(n)*day, after
		if rest == "" {
			rest = "0s"
		}
	}
	span, err := time.ParseDuration(rest)
	if err != nil || span < 0 || days > math.MaxInt64-span {
		return errLength
	}
	*d = Duration(days + span)
	return nil
}

// Moment is a day ("2027-01-31") or an instant ("2027-01-31T18:00:00+01:00"), as written. "" is none.
type Moment string

// In is the instant at which the moment is over: for a day its end in zone. The error of a text that is neither
// doesn't quote it. Moments of a Config from Load always have one.
func (m Moment) In(zone *time.Location) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, string(m)); err == nil {
		return at, nil
	}
	at, err := time.ParseInLocation(time.DateOnly, string(m), zone)
	if err != nil {
		return time.Time{}, errMoment
	}
	return time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, zone), nil
}
