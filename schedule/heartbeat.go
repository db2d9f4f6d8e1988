package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The values of [Heartbeat.Missed].
const (
	MissedOnce = "once" // the last missed tick is made up for, within the grace
	MissedSkip = "skip" // no missed tick is
)

const (
	defaultGrace = time.Hour
	maxName      = 100
	maxPrompt    = 32 << 10
	maxPeople    = 100_000
)

// Heartbeat is a prompt that falls due again, or once, and the condition on which it wakes people.
type Heartbeat struct {
	Name       string        `json:"name"`                  // unique
	Cron       string        `json:"cron"`                  // see [ParseCron]
	Zone       string        `json:"zone,omitempty"`        // IANA name; "" means each person's own
	For        []string      `json:"for"`                   // the people who are woken
	Prompt     string        `json:"prompt,omitempty"`      // what the model is told, word for word
	Text       string        `json:"text,omitempty"`        // in place of a prompt: what is said, word for word, and no model is asked
	Tools      []string      `json:"tools,omitempty"`       // offered to the woken runs
	MaxTicks   int           `json:"max_ticks,omitempty"`   // the heartbeat ends after so many ticks that woke and ended well; 0 means never
	Until      time.Time     `json:"until,omitzero"`        // no tick after it; zero means no end
	RunTimeout time.Duration `json:"run_timeout,omitempty"` // of a woken run; 0 leaves it to the agent's limits
	Missed     string        `json:"missed,omitempty"`      // [MissedOnce] when empty
	Grace      time.Duration `json:"grace,omitempty"`       // how late a missed tick is still made up for; 0 means 1 h
	BreakQuiet bool          `json:"break_quiet,omitempty"` // speaks in quiet hours too
	Condition  Spec          `json:"condition"`
	By         string        `json:"by,omitempty"`      // the person who made it in chat; "" means the config did
	Outside    bool          `json:"outside,omitempty"` // it was made of text that strangers may have written, or beside some
	Private    bool          `json:"private,omitempty"` // the same of private data
	Since      time.Time     `json:"since,omitzero"`    // when it was made; [Save] sets it
	Paused     string        `json:"paused,omitempty"`  // why it is paused; "" means it is not
	Ended      string        `json:"ended,omitempty"`   // why it ended for good; "" means it has not
	EndedAt    time.Time     `json:"ended_at,omitzero"`
}

// Validate checks everything but whether the people exist. Its error names the key at fault, such as heartbeat.cron.
func (h Heartbeat) Validate() error {
	_, err := h.read()
	return err
}

// read is Validate, and gives the heartbeat's schedule in its own zone.
func (h Heartbeat) read() (timed Schedule, err error) {
	if err := h.validateName(); err != nil {
		return timed, err
	}
	if _, err := loadZone(h.Zone); err != nil {
		return timed, fmt.Errorf("heartbeat.timezone: %w", err)
	}
	if timed, err = ParseCron(h.Cron, h.Zone); err != nil {
		return timed, fmt.Errorf("heartbeat.cron: %w", err)
	}
	return timed, h.validateRest()
}

// validateRest checks what is neither the name nor the schedule.
func (h Heartbeat) validateRest() error {
	if len(h.For) == 0 || len(h.For) > maxPeople {
		return fmt.Errorf("heartbeat.for: needs 1 to %d people", maxPeople)
	}
	named := map[string]bool{}
	for _, person := range h.For {
		if person == "" || named[person] {
			return fmt.Errorf("heartbeat.for: the name %q is empty or stands there twice", person)
		}
		named[person] = true
	}
	switch {
	case h.Prompt != "" && h.Text != "":
		return errors.New("heartbeat.text: stands in place of a prompt, so there cannot be both")
	case strings.TrimSpace(h.Prompt+h.Text) == "" || len(h.Prompt+h.Text) > maxPrompt || !utf8.ValidString(h.Prompt+h.Text):
		return fmt.Errorf("heartbeat.prompt: needs 1 to %d bytes of valid UTF-8", maxPrompt)
	case h.MaxTicks < 0:
		return errors.New("heartbeat.max_ticks: is below zero")
	case h.RunTimeout < 0:
		return errors.New("heartbeat.run_timeout: is below zero")
	case h.Missed != "" && h.Missed != MissedOnce && h.Missed != MissedSkip:
		return fmt.Errorf("heartbeat.missed: %q is neither once nor skip", h.Missed)
	case h.Grace < 0:
		return errors.New("heartbeat.grace: is below zero")
	}
	return h.Condition.Validate()
}

func (h Heartbeat) validateName() error {
	// These three part the names of sessions and the keys of rows, in which the name stands.
	bad := func(r rune) bool { return strings.ContainsRune(":~/", r) || r == utf8.RuneError || !unicode.IsPrint(r) }
	if h.Name == "" || len(h.Name) > maxName || strings.TrimSpace(h.Name) != h.Name || strings.ContainsFunc(h.Name, bad) {
		return fmt.Errorf("heartbeat.name: %q needs 1 to %d printable bytes, with no : ~ or / in it and no blanks at its ends", h.Name, maxName)
	}
	return nil
}

// About is what the heartbeat is for: its prompt, or the words that it says.
func (h Heartbeat) About() string { return h.Prompt + h.Text }

// InWords says when the heartbeat falls due, as in "every hour" or "once on Tuesday 1 December 2026 at 08:00 CET".
func (h Heartbeat) InWords() string {
	if timed, err := h.timed(h.Zone); err == nil && !timed.Once().IsZero() {
		return "once on " + inWords(timed.Once())
	}
	return Words(h.Cron)
}

// spec is the heartbeat's cron spec as it is shown; one of a single instant is in words.
func (h Heartbeat) spec() string {
	if strings.HasPrefix(strings.TrimSpace(h.Cron), onceWord) {
		return h.InWords()
	}
	return h.Cron
}

// isOver reports whether an instant is past the heartbeat's end.
func (h Heartbeat) isOver(at time.Time) bool { return !h.Until.IsZero() && at.After(h.Until) }

// resting says in words why the heartbeat takes no ticks, "" when it does.
func (h Heartbeat) resting() string {
	switch {
	case h.Ended != "":
		return "ended: " + h.Ended
	case h.Paused != "":
		return "paused: " + h.Paused
	}
	return ""
}

// lateness is how late a tick may be and still be taken.
func (h Heartbeat) lateness() time.Duration {
	switch {
	case h.Missed == MissedSkip:
		return onTime
	case h.Grace == 0:
		return defaultGrace
	}
	return max(h.Grace, onTime)
}

// end ends the heartbeat for good, unless it has ended.
func (h *Heartbeat) end(reason string, now time.Time) {
	if h.Ended == "" {
		h.Ended, h.EndedAt = reason, now.UTC().Round(0)
	}
}

// timed gives the heartbeat's schedule in the zone of one of its due rows.
func (h Heartbeat) timed(zone string) (Schedule, error) {
	timed, err := ParseCron(h.Cron, zone)
	if err != nil {
		return Schedule{}, fmt.Errorf("read the schedule of heartbeat %s: %w", h.Name, err)
	}
	return timed, nil
}

// oneZone is the zone in which the heartbeat falls due for all its people, "" when each has their own.
func (h Heartbeat) oneZone() string {
	if h.Zone == "" && strings.HasPrefix(strings.TrimSpace(h.Cron), "@every") {
		return "UTC"
	}
	return h.Zone
}

// byZone sorts the heartbeat's people by the zone in which it falls due for them. An interval is the same in every
// zone, so that all its people share one check.
func (h Heartbeat) byZone(zoneOf func(person string) string) map[string][]string {
	if zone := h.oneZone(); zone != "" {
		return map[string][]string{zone: h.For}
	}
	people := map[string][]string{}
	for _, person := range h.For {
		own := "UTC"
		if zoneOf != nil {
			if name := zoneOf(person); name != "" {
				own = name
			}
		}
		if _, err := loadZone(own); err != nil {
			own = "UTC"
		}
		people[own] = append(people[own], person)
	}
	return people
}
