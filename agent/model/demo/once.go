package demo

import (
	"fmt"
	"strings"
	"time"
)

var (
	inCount    = expression(`(?i)\bin\s+(?:(half an hour|an hour and a half)|(` + numberWord + `)\s+(seconds?|secs?|minutes?|mins?|hours?|days?|weeks?))(?:\s+(?:from now|time))?\b`)
	onceDay    = expression(`(?i)\b(?:(today|tonight|this (?:morning|noon|afternoon|evening)|tomorrow(?: (?:morning|noon|afternoon|evening|night))?|the day after tomorrow)|(?:on )?(?:next|this|coming) (` + dayName + `)(?: (?:morning|noon|afternoon|evening|night))?|on (\d{4}-\d{2}-\d{2}))\b`)
	timeOfNote = expression(`\b(\d{4}-\d{2}-\d{2}) (\d{1,2}:\d{2})\b`)
)

// findTime finds the first time that comes again or, where there is none, one that comes once.
func (r *reading) findTime(text string) (when, bool) {
	if w, ok := findWhen(text); ok {
		return w, true
	}
	return r.findOnce(text)
}

// findOnce finds a single time. A length of time is counted from when it is agreed to; a date or an hour needs the time that
// the request tells.
func (r *reading) findOnce(text string) (when, bool) {
	if at := inCount.FindStringSubmatchIndex(text); at != nil {
		span := ""
		if at[2] >= 0 {
			span = map[bool]string{true: "30m", false: "90m"}[strings.EqualFold(text[at[2]:at[3]], "half an hour")]
		} else {
			span = strings.TrimPrefix(everySpan(number(text[at[4]:at[5]]), text[at[6]:at[7]]), "@every ")
		}
		return when{cron: "@in " + span, once: true, rest: without(text, at[0], at[1])}, span != ""
	}
	now, known := r.now()
	if !known {
		return when{}, false
	}
	w, day, dayTold, hour := when{rest: text, once: true}, now, false, -1
	if at := onceDay.FindStringSubmatchIndex(text); at != nil {
		words := strings.ToLower(text[at[0]:at[1]])
		day, dayTold, hour = dayOf(words, group(text, at, 2), group(text, at, 3), now), true, dayHour(words)
		w.rest = without(text, at[0], at[1])
	}
	clock, rest, told := hourIn(w.rest)
	if !told && !dayTold {
		return when{}, false
	}
	if told {
		hour, w.rest = clock/60, rest
	}
	at := time.Date(day.Year(), day.Month(), day.Day(), hour, clock%60, 0, 0, time.UTC)
	if !at.After(now) && !dayTold {
		at = at.AddDate(0, 0, 1) // an hour that is past today is tomorrow's
	}
	if zone := inZone.FindStringSubmatchIndex(w.rest); zone != nil {
		w.zone, w.rest = w.rest[zone[2]:zone[3]], without(w.rest, zone[0], zone[1])
	}
	w.cron = "@at " + at.Format("2006-01-02T15:04")
	return w, true
}

func group(text string, at []int, n int) string {
	if at[2*n] < 0 {
		return ""
	}
	return text[at[2*n]:at[2*n+1]]
}

// now is the time that the request tells last, as a clock shows it.
func (r *reading) now() (time.Time, bool) {
	for _, place := range r.places() {
		if m := timeOfNote.FindStringSubmatch(place); m != nil {
			at, err := time.Parse("2006-01-02 15:04", m[1]+" "+m[2])
			return at, err == nil
		}
	}
	return time.Time{}, false
}

// dayOf is the day that some words mean: today, one to come, a day of the week, a date.
func dayOf(words, weekday, date string, now time.Time) time.Time {
	switch {
	case date != "":
		if day, err := time.Parse(time.DateOnly, date); err == nil {
			return day
		}
	case weekday != "":
		for day := now.AddDate(0, 0, 1); ; day = day.AddDate(0, 0, 1) {
			if strings.HasPrefix(strings.ToLower(day.Weekday().String()), strings.ToLower(weekday[:3])) || !isDay(weekday) {
				return day
			}
		}
	case strings.HasPrefix(words, "the day after"):
		return now.AddDate(0, 0, 2)
	case strings.HasPrefix(words, "tomorrow"):
		return now.AddDate(0, 0, 1)
	}
	return now
}

// isDay reports whether a word is the name of one day of the week, and not of several.
func isDay(word string) bool {
	return !strings.Contains(weekdays(word), ",") && weekdays(word) != "1-5" && weekdays(word) != ""
}

// hourIn finds an hour, in minutes since midnight, and gives the text without it.
func hourIn(text string) (minutes int, rest string, ok bool) {
	at := atHour.FindStringSubmatchIndex(text)
	if at == nil {
		return 0, text, false
	}
	h, m, ok := clockTime(text[at[2]:at[3]])
	if !ok {
		return 0, text, false
	}
	if at[4] >= 0 && h < 12 { // in the afternoon or evening
		h += 12
	}
	return h*60 + m, without(text, at[0], at[1]), true
}

// reminderText is what is said when a time comes that a prompt was for.
func reminderText(prompt string) string {
	for _, p := range []*pattern{reminderOf, timeTo} {
		if m := groups(p, prompt); m != nil {
			return "Time to " + sentence(toPerson(m["what"]))
		}
	}
	return fmt.Sprintf("You wanted to hear about this now: %s", sentence(toPerson(subjectOf(prompt))))
}
