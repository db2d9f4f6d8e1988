package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // small machines and containers often have no zone files of their own

	"github.com/robfig/cron/v3"
)

// maxCron bounds a spec in bytes, and maxEvery an interval: both come from people and models.
const (
	maxCron  = 200
	maxEvery = 10 * 366 * 24 * time.Hour
)

// Schedule says when something falls due. Its zero value never does. It may be used concurrently.
//
// A spec with fixed hours fires once for each wanted time of each local date: at the first of two when the clock goes
// back, at the first instant after the gap when it goes forward. A spec with * or a step in the hour field fires in
// both copies of a repeated hour and not in one that is left out. @every is real time. @at is one instant.
type Schedule struct {
	fields *cron.SpecSchedule // compared with wall clock readings, which are written as if they were UTC
	fixed  bool               // the hours are fixed ones
	every  time.Duration
	once   time.Time // the only instant
	zone   *time.Location
}

var cronField = regexp.MustCompile(`^[0-9A-Za-z*?/-]+(,[0-9A-Za-z*?/-]+)*$`)

// ParseCron reads a spec of five fields (minute, hour, day of month, month, day of week), @hourly, @daily, @weekly,
// @monthly, @yearly, @every DURATION or @at TIME, in the IANA zone named, "" meaning UTC. It refuses what never falls due. An
// interval is a whole number of seconds, at least one. TIME is a reading of the zone's clocks such as 2027-01-31T08:00, or
// an instant with its offset from UTC; a reading that is left out means the first instant after it, of one that is repeated the
// first counts.
func ParseCron(spec, zone string) (Schedule, error) {
	location, err := loadZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	spec = strings.TrimSpace(spec)
	if err := checkCron(spec); err != nil {
		return Schedule{}, fmt.Errorf("read cron %q: %w", spec, err)
	}
	if text, found := strings.CutPrefix(spec, onceWord); found {
		return parseOnce(strings.TrimSpace(text), location)
	}
	parsed, err := parseFields(spec)
	if err != nil {
		return Schedule{}, fmt.Errorf("read cron %q: %w", spec, err)
	}
	schedule := Schedule{zone: location}
	switch parsed := parsed.(type) {
	case cron.ConstantDelaySchedule:
		schedule.every = parsed.Delay
	case *cron.SpecSchedule:
		parsed.Location = time.UTC
		schedule.fields, schedule.fixed = parsed, hasFixedHours(spec, parsed)
	default:
		return Schedule{}, fmt.Errorf("read cron %q: it is of a kind that is not known", spec)
	}
	if schedule.Next(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("read cron %q: no date fits it, so it would never fall due", spec)
	}
	return schedule, nil
}

// onceWord begins a spec of one instant.
const onceWord = "@at "

// parseOnce reads the instant behind [onceWord].
func parseOnce(text string, zone *time.Location) (Schedule, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return Schedule{once: at.In(zone), zone: zone}, nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04"} {
		if reading, err := time.Parse(layout, text); err == nil {
			s := Schedule{zone: zone}
			s.once = s.firstAt(reading).In(zone)
			return s, nil
		}
	}
	return Schedule{}, fmt.Errorf("read cron %q: @at needs a time such as 2027-01-31T08:00", onceWord+text)
}

// Once is the only instant of a schedule that has but one; zero for others.
func (s Schedule) Once() time.Time { return s.once }

// checkCron refuses what the parser would choke on or misread.
func checkCron(spec string) error {
	switch {
	case spec == "":
		return errors.New("it is empty")
	case len(spec) > maxCron:
		return fmt.Errorf("it is longer than %d bytes", maxCron)
	case strings.Contains(spec, "TZ="):
		return errors.New("a time zone cannot stand in it; write it as timezone")
	case strings.HasPrefix(spec, "@every"):
		every, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(spec, "@every")))
		if err != nil {
			return errors.New("@every needs a duration such as 45m or 1h30m")
		}
		if every <= 0 || every > maxEvery {
			return errors.New("@every needs a duration above zero and below ten years")
		}
		return nil
	case strings.HasPrefix(spec, "@"):
		return nil
	}
	fields := strings.Fields(spec)
	if len(fields) != 5 {
		return fmt.Errorf("it has %d fields and needs five: minute, hour, day of month, month, day of week", len(fields))
	}
	for _, field := range fields {
		if !cronField.MatchString(field) {
			return fmt.Errorf("its field %q cannot be read", field)
		}
	}
	return nil
}

// parseFields calls the parser, which panics on some texts.
func parseFields(spec string) (schedule cron.Schedule, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = errors.New("it cannot be read")
		}
	}()
	return cron.ParseStandard(spec)
}

func hasFixedHours(spec string, fields *cron.SpecSchedule) bool {
	const hours = 1<<24 - 1
	count := bits.OnesCount64(fields.Hour & hours)
	if count == 24 {
		return false
	}
	if strings.HasPrefix(spec, "@") {
		return true
	}
	hour := strings.Fields(spec)[1]
	return count == 1 || !strings.ContainsAny(hour, "*?/")
}

var zones sync.Map // of name to *time.Location; the names that exist bound it

func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	location, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("load time zone %q: no such zone is known; write one such as Europe/Berlin", name)
	}
	zones.Store(name, location)
	return location, nil
}

// Next gives the first instant after the given one at which the schedule falls due, in its zone, or the zero time
// when there is none within nine years.
func (s Schedule) Next(after time.Time) time.Time {
	after = after.Round(0)
	switch {
	case !s.once.IsZero():
		if !s.once.After(after) {
			return time.Time{}
		}
		return s.once
	case s.every > 0:
		return after.Add(s.every - time.Duration(after.Nanosecond())).In(s.zone)
	case s.fields == nil:
		return time.Time{}
	case s.fixed:
		return s.nextFixed(after)
	}
	return s.nextEach(after)
}

// Upcoming gives the next count instants after the given one; fewer when there are no more.
func (s Schedule) Upcoming(after time.Time, count int) []time.Time {
	var list []time.Time
	for range count {
		if after = s.Next(after); after.IsZero() {
			break
		}
		list = append(list, after)
	}
	return list
}

// latest gives the last due instant not after now, where from is one and not after now either.
func (s Schedule) latest(from, now time.Time) time.Time {
	if s.every > 0 {
		return from.Add(now.Sub(from) / s.every * s.every)
	}
	if !s.once.IsZero() {
		return from
	}
	// Only the end of a long downtime is walked through.
	start := from
	for back := time.Minute; now.Add(-back).After(from); back *= 2 {
		if next := s.Next(now.Add(-back)); !next.IsZero() && !next.After(now) {
			start = now.Add(-back)
			break
		}
	}
	last := from
	for next := s.Next(start); !next.IsZero() && !next.After(now); next = s.Next(next) {
		last = next
	}
	return last
}

// nextFixed walks through the wanted wall clock readings and gives the first whose instant is later than after.
func (s Schedule) nextFixed(after time.Time) time.Time {
	_, offset := after.In(s.zone).Zone()
	wall := reading(after, offset)
	for range 10_000 { // far more readings than a clock ever repeats
		if wall = s.match(wall); wall.IsZero() {
			break
		}
		if at := s.firstAt(wall); at.After(after) && s.hasDate(wall) {
			return at.In(s.zone)
		}
	}
	return time.Time{}
}

// nextEach looks for a match in each stretch of time with one offset from UTC.
func (s Schedule) nextEach(after time.Time) time.Time {
	at, wall := after, time.Time{}
	for range 200 { // far more changes than any zone has in nine years
		local := at.In(s.zone)
		_, offset := local.Zone()
		_, end := local.ZoneBounds()
		wall = reading(at, offset)
		if at.After(after) {
			wall = wall.Add(-1) // a later stretch's own first instant counts
		}
		if wall = s.match(wall); wall.IsZero() {
			break
		}
		if found := reading(wall, -offset); end.IsZero() || found.Before(end) {
			return found.In(s.zone)
		}
		at = end
	}
	return time.Time{}
}

// firstAt gives the first instant at which the zone's clocks show the reading or a later one.
func (s Schedule) firstAt(wall time.Time) time.Time {
	at := wall.Add(-16 * time.Hour) // no zone was ever as much as 16 hours ahead
	for {
		local := at.In(s.zone)
		_, offset := local.Zone()
		_, end := local.ZoneBounds()
		found := reading(wall, -offset)
		if found.Before(at) {
			found = at
		}
		if end.IsZero() || found.Before(end) {
			return found
		}
		at = end
	}
}

// hasDate reports whether the reading's date exists: zones that crossed the date line left one out.
func (s Schedule) hasDate(wall time.Time) bool {
	midnight := time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC)
	return s.firstAt(midnight).In(s.zone).Day() == wall.Day()
}

// match gives the next reading after the given one that fits the fields. The parser's own search ends after five
// years, and leap days can be eight years apart.
func (s Schedule) match(wall time.Time) time.Time {
	if next := s.fields.Next(wall); !next.IsZero() {
		return next
	}
	return s.fields.Next(wall.AddDate(4, 0, 0))
}

// reading gives what a clock that is offset seconds ahead of UTC shows, written as if it were UTC.
func reading(at time.Time, offset int) time.Time {
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// NextThree gives the next three instants after now in words, in the schedule's zone.
func (s Schedule) NextThree(now time.Time) []string {
	var words []string
	for _, at := range s.Upcoming(now, 3) {
		words = append(words, inWords(at))
	}
	return words
}

func inWords(at time.Time) string {
	if at.Second() != 0 {
		return at.Format("Monday 2 January 2006 at 15:04:05 MST")
	}
	return at.Format("Monday 2 January 2006 at 15:04 MST")
}

// cronFields are the fields in order, with how many values each has and the unit that an interval would be told in.
var cronFields = []struct {
	name string
	size int
	unit time.Duration
}{
	{"minute", 60, time.Minute},
	{"hour", 24, time.Hour},
	{"day-of-month", 31, 24 * time.Hour},
	{"month", 12, 0},
	{"day-of-week", 7, 24 * time.Hour},
}

// Warnings says in sentences what a spec does that people seldom mean: steps that do not divide their field, a day of
// the month or a day of the week, an interval below a minute. A spec that cannot be read gives none.
func Warnings(spec string) []string {
	spec = strings.TrimSpace(spec)
	schedule, err := ParseCron(spec, "")
	if err != nil {
		return nil
	}
	if schedule.every > 0 {
		if schedule.every < time.Minute {
			return []string{fmt.Sprintf("it falls due every %s, which is more often than once a minute", shortDuration(schedule.every))}
		}
		return nil
	}
	if strings.HasPrefix(spec, "@") {
		return nil
	}
	fields := strings.Fields(spec)
	var list []string
	for i, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			if warning := stepWarning(i, part); warning != "" {
				list = append(list, warning)
			}
		}
	}
	const star = 1 << 63
	if (schedule.fields.Dom|schedule.fields.Dow)&star == 0 {
		list = append(list, fmt.Sprintf("it falls due on %s of the month OR on %s: either one is enough",
			dayWords(fields[2]), weekdayWords(schedule.fields.Dow)))
	}
	return list
}

func stepWarning(field int, part string) string {
	of := cronFields[field]
	first, text, found := strings.Cut(part, "/")
	step, err := strconv.Atoi(text)
	if !found || err != nil || step <= 1 || strings.Contains(first, "-") || of.size%step == 0 {
		return ""
	}
	warning := fmt.Sprintf("the step %d does not divide the %s field, so the last distance before it starts anew is shorter", step, of.name)
	if of.unit > 0 {
		warning += fmt.Sprintf("; @every %s keeps the distance", shortDuration(time.Duration(step)*of.unit))
	}
	return warning
}

func dayWords(field string) string {
	if _, err := strconv.Atoi(field); err == nil {
		return "day " + field
	}
	return "days " + field
}

func weekdayWords(days uint64) string {
	var names []string
	for day := time.Sunday; day <= time.Saturday; day++ {
		if days&(1<<day) != 0 {
			names = append(names, day.String()+"s")
		}
	}
	return strings.Join(names, ", ")
}

// shortDuration writes 45m and not 45m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
