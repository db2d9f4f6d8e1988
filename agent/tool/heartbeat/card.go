package heartbeat

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"nudge/agent"
	"nudge/schedule"
)

// card says what the arguments mean: when it comes, on the person's own clocks too, what wakes it, and what may not be as it
// was meant.
func (c Config) card(in agent.Invocation) string {
	p, err := c.read(in)
	if err != nil {
		return err.Error()
	}
	now := time.Now()
	lines := append(p.when(now), p.waking())
	if old, err := c.replaced(context.Background(), p.Heartbeat); err == nil && old != nil {
		lines = append(lines, fmt.Sprintf("It replaces the heartbeat of that name, which comes %s: %s", old.InWords(), old.About()))
	}
	if quiet := c.quiet(p, now); quiet != "" {
		lines = append(lines, quiet)
	}
	for _, warning := range schedule.Warnings(p.Cron) {
		lines = append(lines, "Careful: "+warning+".")
	}
	return strings.Join(lines, "\n")
}

// when says when it comes, a line for each of the next times.
func (p proposal) when(now time.Time) (lines []string) {
	if p.in > 0 {
		return []string{fmt.Sprintf("Once, %s after you save this: now, that would be on %s.", schedule.Lasting(p.in), p.local(p.times.Once()))}
	}
	if !p.times.Once().IsZero() {
		return []string{"Once, on " + p.local(p.times.Once()) + "."}
	}
	words := schedule.Words(p.Cron)
	lines = []string{strings.ToUpper(words[:1]) + words[1:] + ". The next times:"}
	for _, at := range p.times.Upcoming(now, 3) {
		lines = append(lines, p.local(at))
	}
	return lines
}

// local is an instant in words. Where the heartbeat goes by other clocks than its person's, both are told.
func (p proposal) local(at time.Time) string {
	words, own := at.Format("Monday 2 January 2006 at 15:04 MST"), at.In(p.own)
	if at.Second() != 0 {
		words = at.Format("Monday 2 January 2006 at 15:04:05 MST")
	}
	if own.Format(time.DateTime) != at.Format(time.DateTime) {
		words += own.Format(" (for you Mon 15:04 MST)")
	}
	return words
}

// waking says what wakes it, and what it does then.
func (p proposal) waking() string {
	does := "I look and tell you what there is to tell."
	if p.Text != "" {
		does = "the text is said as it is, and no model is asked."
	}
	spec, each := p.Condition, "When that becomes so"
	if spec.Level() {
		each = "At each of these times at which that is so"
	}
	if sees := looksFor(spec); sees != "" {
		return fmt.Sprintf("The check, without a model: %s. %s, %s", sees, each, does)
	}
	if !p.times.Once().IsZero() {
		return "Whatever is the case then, " + does
	}
	return "Each time, whatever is the case, " + does
}

// looksFor is what must be so, with the whole address that is looked at; "" when it is always so.
func looksFor(spec schedule.Spec) string {
	if spec.Kind != "http" {
		return spec.InWords()
	}
	part := spec.Select
	if !plainPath.MatchString(part) {
		part = strconv.Quote(part)
	}
	switch {
	case spec.Select == "" && spec.Status != 0:
		return fmt.Sprintf("%s answers with status %d", spec.URL, spec.Status)
	case spec.Select == "":
		return spec.URL + " changes"
	case spec.Status != 0:
		return fmt.Sprintf("%s changes at %s, where it answers with status %d", spec.URL, part, spec.Status)
	}
	return spec.URL + " changes at " + part
}

// plainPath matches what can stand in a sentence without quotes.
var plainPath = regexp.MustCompile(`^[\w.$*\[\]-]{1,100}$`)

// quiet says what becomes of times in the person's quiet hours; "" when there are none among the next.
func (c Config) quiet(p proposal, now time.Time) string {
	within := 0
	for _, at := range p.times.Upcoming(now, 3) {
		if !c.Budget.Quiet.Until(at, p.own).IsZero() {
			within++
		}
	}
	switch {
	case within == 0:
		return ""
	case p.BreakQuiet && p.Text != "":
		return fmt.Sprintf("It is said in your quiet hours (%s) too.", c.Budget.Quiet)
	case p.BreakQuiet:
		return fmt.Sprintf("It wakes in your quiet hours (%s) too, and says then what is urgent.", c.Budget.Quiet)
	}
	return fmt.Sprintf("Careful: in your quiet hours (%s) it says nothing, and you hear of it after them, in the digest. "+
		`With "break_quiet": true it may speak then.`, c.Budget.Quiet)
}
