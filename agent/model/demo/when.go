package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// when is a time that comes again, or once, found in some words.
type when struct {
	cron string // five fields, or "@every" and a duration, or for a single time "@at" or "@in"
	once bool
	zone string // IANA name, if one was said
	rest string // the words without it
}

const (
	dayName = `(?:mon|tues?|wednes|wed|thurs?|fri|satur|sat|sun)(?:days?)?|weekdays?|workdays?|working days?|weekends?`
	hours   = `noon|midday|midnight|(?:half past |quarter past |quarter to )?(?:[01]?\d|2[0-4]|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?:[:.h][0-5]\d| thirty| fifteen)?\s*(?:o'clock|am\b|pm\b|a\.m\.|p\.m\.|h\b)?`
)

var (
	everyCount = expression(`(?i)\b(?:every|each)\s+(` + numberWord + `)\s+(seconds?|secs?|minutes?|mins?|hours?|days?|weeks?)\b`)
	everyUnit  = expression(`(?i)\b(?:(?:every|each|once an?|once a)\s+(second|minute|hour|half[- ]hour|half an hour|quarter(?: of an)? hour)|(hourly))\b`)
	everyDay   = expression(`(?i)\b(?:(?:every|each|once a)\s+(day|morning|noon|afternoon|evening|night|week|month)|(daily|nightly|weekly|monthly))\b`)
	everyName  = expression(`(?i)\b(?:on|every|each)\s+((?:` + dayName + `)(?:(?:\s*,\s*|\s*,?\s+and\s+)(?:(?:every|each|on)\s+)?(?:` + dayName + `))*)\b`)
	atHour     = expression(`(?i)\s*\b(?:at|around)\s+(` + hours + `)(?:\s*\bin the (?:morning|(afternoon|evening)))?`)
	inZone     = expression(`\s*\(?\b(?:in|at)?\s*\b([A-Z][a-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?|UTC)\b(?: time)?\)?`)
	spaces     = expression(`\s+`)
)

// findWhen finds the first time that comes again.
func findWhen(text string) (when, bool) {
	if at := everyCount.FindStringSubmatchIndex(text); at != nil {
		cron := everySpan(number(text[at[2]:at[3]]), text[at[4]:at[5]])
		return when{cron: cron, rest: without(text, at[0], at[1])}, cron != ""
	}
	if at := everyUnit.FindStringIndex(text); at != nil {
		return when{cron: unitCron(text[at[0]:at[1]]), rest: without(text, at[0], at[1])}, true
	}
	days, start, end := findDays(text)
	if days == "" {
		return when{}, false
	}
	w := when{rest: without(text, start, end)}
	hour, minute := dayHour(text[start:end]), 0
	if minutes, rest, ok := hourIn(w.rest); ok {
		hour, minute, w.rest = minutes/60, minutes%60, rest
	}
	if at := inZone.FindStringSubmatchIndex(w.rest); at != nil {
		w.zone = w.rest[at[2]:at[3]]
		w.rest = without(w.rest, at[0], at[1])
	}
	w.cron = fmt.Sprintf("%d %d %s", minute, hour, days)
	return w, true
}

// without takes a piece out of a text and mends the space around the gap.
func without(text string, start, end int) string {
	return strings.Trim(spaces.ReplaceAllString(text[:start]+" "+text[end:], " "), " ,")
}

func everySpan(n int, unit string) string {
	if n < 1 {
		return ""
	}
	switch strings.ToLower(unit)[0] {
	case 's':
		return fmt.Sprintf("@every %ds", n)
	case 'm':
		return fmt.Sprintf("@every %dm", n)
	case 'h':
		return fmt.Sprintf("@every %dh", n)
	case 'd':
		return fmt.Sprintf("@every %dh", 24*min(n, 366))
	}
	return fmt.Sprintf("@every %dh", 24*7*min(n, 53))
}

func unitCron(words string) string {
	words = strings.ToLower(words)
	switch {
	case strings.Contains(words, "half"):
		return "*/30 * * * *"
	case strings.Contains(words, "quarter"):
		return "*/15 * * * *"
	case strings.Contains(words, "second"):
		return "@every 1s"
	case strings.Contains(words, "minute"):
		return "* * * * *"
	}
	return "0 * * * *"
}

// findDays finds the days that are meant, as the last three fields of a cron line, and where they are said.
func findDays(text string) (fields string, start, end int) {
	if at := everyName.FindStringSubmatchIndex(text); at != nil {
		return "* * " + weekdays(text[at[2]:at[3]]), at[0], at[1]
	}
	at := everyDay.FindStringIndex(text)
	if at == nil {
		return "", 0, 0
	}
	words := strings.ToLower(text[at[0]:at[1]])
	switch {
	case strings.Contains(words, "week"):
		fields = "* * 1"
	case strings.Contains(words, "month"):
		fields = "1 * *"
	default:
		fields = "* * *"
	}
	return fields, at[0], at[1]
}

// weekdays writes days of the week as a cron field.
func weekdays(words string) string {
	if one := strings.ToLower(words); strings.HasPrefix(one, "weekday") || strings.HasPrefix(one, "work") {
		return "1-5"
	}
	var days []int
	for _, word := range wordsOnly.FindAllString(strings.ToLower(words), -1) {
		switch {
		case strings.HasPrefix(word, "weekday"), strings.HasPrefix(word, "work"):
			days = append(days, 1, 2, 3, 4, 5)
		case strings.HasPrefix(word, "weekend"):
			days = append(days, 6, 0)
		case len(word) > 2:
			if i := slices.Index([]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, word[:3]); i >= 0 {
				days = append(days, i)
			}
		}
	}
	slices.Sort(days)
	var fields []string
	for _, d := range slices.Compact(days) {
		fields = append(fields, strconv.Itoa(d))
	}
	return strings.Join(fields, ",")
}

// dayHour is when in the day something happens if no hour is said.
func dayHour(words string) int {
	words = strings.ToLower(words)
	switch {
	case strings.Contains(words, "noon") && !strings.Contains(words, "after"):
		return 12
	case strings.Contains(words, "afternoon"):
		return 15
	case strings.Contains(words, "evening"):
		return 18
	case strings.Contains(words, "night"):
		return 22
	}
	return 9
}

var clockWords = phrase(`(?P<part>half past |quarter past |quarter to )?(?P<h>[a-z]+|\d{1,2})(?:[:.h](?P<m>\d\d)| (?P<w>thirty|fifteen))?\s*(?P<half>am|pm|a\.m\.|p\.m\.|h|o'clock)?`)

// clockTime reads a time of day.
func clockTime(text string) (hour, minute int, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	switch text {
	case "noon", "midday":
		return 12, 0, true
	case "midnight":
		return 0, 0, true
	}
	m := groups(clockWords, text)
	if m == nil {
		return 0, 0, false
	}
	hour, minute = number(m["h"]), number(m["m"])+map[string]int{"thirty": 30, "fifteen": 15}[m["w"]]
	switch m["part"] {
	case "half past":
		minute = 30
	case "quarter past":
		minute = 15
	case "quarter to":
		hour, minute = hour+23, 45
	}
	half := strings.ReplaceAll(m["half"], ".", "")
	if half == "pm" && hour < 12 {
		hour += 12
	}
	if half == "am" && hour == 12 {
		hour = 0
	}
	return hour % 24, minute, minute < 60
}
