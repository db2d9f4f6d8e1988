package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"nudge/memory"
)

// NextFor is the instant at which a heartbeat falls due next for somebody who lives in a zone, "" when that is unknown.
// It is the zero time for one that is paused or has ended, or that never falls due again.
func NextFor(tx memory.Tx, h Heartbeat, zone string) (time.Time, error) {
	if h.resting() != "" {
		return time.Time{}, nil
	}
	h.For = []string{"somebody"}
	for name := range h.byZone(func(string) string { return zone }) {
		timed, err := h.timed(name)
		if err != nil {
			return time.Time{}, err
		}
		row, found, err := tx.Due().Get(heartbeatKey(h.Name, name))
		if err != nil {
			return time.Time{}, fmt.Errorf("look when heartbeat %s falls due: %w", h.Name, err)
		}
		next := row.At
		if !found { // the clock has not met this zone yet
			next = timed.Next(time.Now())
		}
		if h.isOver(next) {
			return time.Time{}, nil
		}
		return next.In(timed.zone), nil
	}
	return time.Time{}, nil
}

var every = map[string]string{
	"@hourly": "every hour", "@daily": "every day at 00:00", "@midnight": "every day at 00:00", "@weekly": "on Sunday at 00:00",
	"@monthly": "on day 1 of every month at 00:00", "@yearly": "on day 1 of January at 00:00", "@annually": "on day 1 of January at 00:00",
}

// Words says in words when a cron spec falls due, as in "on Monday to Friday at 09:00". One that would take a paragraph is
// given as it stands.
func Words(spec string) string {
	spec = strings.Join(strings.Fields(spec), " ")
	if words := every[strings.ToLower(spec)]; words != "" {
		return words
	}
	timed, err := ParseCron(spec, "")
	if err != nil {
		return spec
	}
	if timed.every > 0 {
		return Every(timed.every)
	}
	if text, found := strings.CutPrefix(spec, onceWord); found {
		return onceInWords(text)
	}
	at, on := timesInWords(spec, timed.fields), daysInWords(timed.fields)
	if at == "" || on == "" {
		return "at cron " + spec
	}
	if on == "every day" && strings.HasPrefix(at, "every ") {
		return at
	}
	if strings.HasPrefix(at, "every ") {
		return at + " " + on
	}
	return on + " " + at
}

// onceInWords says when the one instant is, as its spec has it.
func onceInWords(text string) string {
	at, err := parseOnce(strings.TrimSpace(text), time.UTC)
	if err != nil {
		return onceWord + text
	}
	if instant, err := time.Parse(time.RFC3339, strings.TrimSpace(text)); err == nil {
		return "once on " + instant.Format("Monday 2 January 2006 at 15:04 -07:00")
	}
	return "once on " + at.once.Format("Monday 2 January 2006 at 15:04")
}

// timesInWords tells the minutes and hours; "" where that takes too many words.
func timesInWords(spec string, fields *cron.SpecSchedule) string {
	minute, hour, _ := strings.Cut(spec, " ")
	hour, _, _ = strings.Cut(hour, " ")
	minutes, hours := values(fields.Minute, 60), values(fields.Hour, 24)
	switch step, _ := strings.CutPrefix(minute, "*/"); {
	case hour != "*" && len(minutes) == 1 && len(hours) <= 4:
		var times []string
		for _, h := range hours {
			times = append(times, fmt.Sprintf("%02d:%02d", h, minutes[0]))
		}
		return "at " + listed(times)
	case minute == "*" && hour == "*":
		return "every minute"
	case hour == "*" && step != minute:
		return "every " + step + " minutes"
	case hour == "*" && len(minutes) == 1 && minutes[0] == 0:
		return "every hour"
	case hour == "*" && len(minutes) == 1:
		return fmt.Sprintf("every hour at minute %d", minutes[0])
	}
	return ""
}

// daysInWords tells the days and months; "" where that takes too many words.
func daysInWords(fields *cron.SpecSchedule) string {
	const star = 1 << 63
	days, months, weekdays := values(fields.Dom, 32), values(fields.Month, 13), values(fields.Dow, 7)
	anyDay, anyWeekday, anyMonth := fields.Dom&star != 0, fields.Dow&star != 0, fields.Month&star != 0
	var on string
	switch {
	case anyDay && anyWeekday:
		on = "every day"
	case anyDay && isRun(weekdays) && len(weekdays) > 2:
		on = fmt.Sprintf("on %s to %s", time.Weekday(weekdays[0]), time.Weekday(weekdays[len(weekdays)-1]))
	case anyDay:
		on = "on " + listed(named(weekdays, func(n int) string { return time.Weekday(n).String() }))
	case anyWeekday && len(days) <= 4:
		on = "on day " + listed(named(days, strconv.Itoa))
	default:
		return ""
	}
	switch {
	case anyMonth && strings.HasPrefix(on, "on day"):
		return on + " of every month"
	case anyMonth:
		return on
	case len(months) <= 4 && strings.HasPrefix(on, "on day"):
		return on + " of " + listed(named(months, func(n int) string { return time.Month(n).String() }))
	case len(months) <= 4:
		return on + " in " + listed(named(months, func(n int) string { return time.Month(n).String() }))
	}
	return ""
}

// values are the values below a bound that a field has.
func values(field uint64, bound int) []int {
	var all []int
	for n := range bound {
		if field&(1<<n) != 0 {
			all = append(all, n)
		}
	}
	return all
}

func isRun(values []int) bool { return values[len(values)-1]-values[0] == len(values)-1 }

func named(values []int, name func(int) string) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = name(v)
	}
	return names
}

func listed(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
