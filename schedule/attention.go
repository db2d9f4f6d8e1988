package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// The table of what people said of being spoken to unasked, by what [PersonOf] gives for a person.
const tableAttention memory.Rows[Attention] = "attention"

// Attention is one person's budget for unasked messages. Its methods decide and never look at a clock. Who has said
// nothing about it has a zero one, and no row.
type Attention struct {
	Snoozed  time.Time         `json:"snoozed,omitzero"`   // they are not spoken to unasked before it
	Tastes   map[string]*Taste `json:"tastes,omitempty"`   // by heartbeat
	Day      string            `json:"day,omitempty"`      // the date on their clocks to which Said belongs
	Said     int               `json:"said,omitempty"`     // what was said to them unasked on that date
	Withheld []Withheld        `json:"withheld,omitempty"` // what the next digest tells, in the order in which it was held back
	More     int               `json:"more,omitempty"`     // what there was no more room for in it
}

// Taste is what a person makes of one heartbeat.
type Taste struct {
	Snoozed time.Time     `json:"snoozed,omitzero"` // it does not speak to them before it
	Useful  int           `json:"useful,omitempty"` // how often they called it useful
	Asked   int           `json:"asked,omitempty"`  // how often they asked for less of it
	Less    int           `json:"less,omitempty"`   // the steps of that which are in force; useful takes one back
	First   time.Duration `json:"first,omitempty"`  // the cool-down of the first step; it doubles with each more
	Woke    time.Time     `json:"woke,omitzero"`    // the tick that last woke them; the cool-down counts from it
	Told    int           `json:"told,omitempty"`   // how often it told them something
	Heard   string        `json:"heard,omitempty"`  // the episode of which it told them last
	// Withheld is the episode of which something was not said, since they had snoozed when it was to be.
	Withheld string `json:"withheld,omitempty"`
}

// The cool-downs that *less of this* makes.
const (
	leastLess = time.Hour
	mostLess  = 7 * 24 * time.Hour
)

// Cooldown is how long at least the heartbeat lets the person be after it woke them; 0 when they asked for nothing.
func (t *Taste) Cooldown() time.Duration {
	if t == nil || t.Less == 0 {
		return 0
	}
	cooldown := t.First
	for range t.Less - 1 {
		if cooldown >= mostLess {
			break
		}
		cooldown *= 2
	}
	return min(cooldown, mostLess)
}

// step asks for less by so many steps, or for more where by is below zero, and gives how many were taken: at both ends
// there are none. first is the cool-down of the first step.
func (t *Taste) step(by int, first time.Duration) (taken int) {
	for ; by > 0 && t.Cooldown() < mostLess; by-- {
		if t.Less == 0 {
			t.First = min(max(first, leastLess), mostLess)
		}
		t.Less++
		taken++
	}
	for ; by < 0 && t.Less > 0; by++ {
		t.Less--
		taken--
	}
	return taken
}

// taste is what the person makes of a heartbeat, to be changed.
func (a *Attention) taste(heartbeat string) *Taste {
	if a.Tastes == nil {
		a.Tastes = map[string]*Taste{}
	}
	if a.Tastes[heartbeat] == nil {
		a.Tastes[heartbeat] = &Taste{}
	}
	return a.Tastes[heartbeat]
}

// Reason is what holds something back.
type Reason string

// The reasons.
const (
	BySnooze Reason = "snooze" // the person wants to be left alone: not even a check is made, and what is true when it ends comes then
	ByLess   Reason = "less"   // they asked for less of the heartbeat: it comes with the first tick after its cool-down
	InQuiet  Reason = "quiet"  // it is their quiet hours: the digest tells of it
	AtCap    Reason = "cap"    // enough was said on that date: the digest tells of it
)

// Hold is why a person must not be spoken to unasked, and until when. The zero value holds nothing back.
type Hold struct {
	Until time.Time
	By    Reason
}

// Holds reports whether anything is held back.
func (h Hold) Holds() bool { return !h.Until.IsZero() }

// digested reports whether the digest tells of what is held back.
func (h Hold) digested() bool { return h.By == InQuiet || h.By == AtCap }

// in says the hold in the words of an outcome, on the clocks of a zone.
func (h Hold) in(zone *time.Location) string {
	until := inWords(h.Until.In(zone))
	switch h.By {
	case BySnooze:
		return "snoozed until " + until
	case InQuiet:
		return "quiet hours until " + until
	case AtCap:
		return "has heard as much as the daily cap allows, until " + until
	}
	return "asked for less of this, and is let be until " + until
}

// SnoozedBy gives the end of the snooze that keeps a heartbeat from speaking to the person now; zero when none does.
func (a Attention) SnoozedBy(heartbeat string, now time.Time) time.Time {
	until := a.Snoozed
	if taste := a.Tastes[heartbeat]; taste != nil && taste.Snoozed.After(until) {
		until = taste.Snoozed
	}
	if !now.Before(until) {
		return time.Time{}
	}
	return until
}

// heard is the episode of a heartbeat of which it told the person last.
func (a Attention) heard(heartbeat string) string {
	if taste := a.Tastes[heartbeat]; taste != nil {
		return taste.Heard
	}
	return ""
}

// Hold decides whether a heartbeat may wake the person at a tick that is due at one instant and taken at another.
func (a Attention) Hold(heartbeat string, tick, now time.Time) Hold {
	if until := a.SnoozedBy(heartbeat, now); !until.IsZero() {
		return Hold{Until: until, By: BySnooze}
	}
	taste := a.Tastes[heartbeat]
	if cooldown := taste.Cooldown(); cooldown > 0 && tick.Before(taste.Woke.Add(cooldown)) {
		return Hold{Until: taste.Woke.Add(cooldown), By: ByLess}
	}
	return Hold{}
}

// About says in words what the person said of a heartbeat that is in force or counted, in parts such as "snoozed until …"
// and "useful 2 times"; none when they said nothing. Instants stand on the clocks of a zone.
func (a Attention) About(heartbeat string, now time.Time, zone *time.Location) (parts []string) {
	if until := a.SnoozedBy(heartbeat, now); !until.IsZero() {
		parts = append(parts, Hold{Until: until, By: BySnooze}.in(zone))
	}
	taste := a.Tastes[heartbeat]
	if cooldown := taste.Cooldown(); cooldown > 0 {
		said := "at most " + Every(cooldown)
		if until := taste.Woke.Add(cooldown); now.Before(until) {
			said += ", so not before " + inWords(until.In(zone))
		}
		parts = append(parts, said)
	}
	if taste != nil && taste.Useful > 0 {
		parts = append(parts, "useful "+times(taste.Useful))
	}
	return parts
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Every is a length of time in words, such as "every hour" or "every 4 days".
func Every(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day && d%day == 0:
		return fmt.Sprintf("every %d days", d/day)
	case d == time.Hour:
		return "every hour"
	case d > time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("every %d hours", d/time.Hour)
	case d == time.Minute:
		return "every minute"
	case d > time.Minute && d < time.Hour && d%time.Minute == 0:
		return fmt.Sprintf("every %d minutes", d/time.Minute)
	case d == time.Second:
		return "every second"
	case d < time.Minute && d%time.Second == 0:
		return fmt.Sprintf("every %d seconds", d/time.Second)
	}
	return "every " + shortDuration(d)
}

// Lasting is a length of time in words, such as "1 hour" or "4 days".
func Lasting(d time.Duration) string {
	text := strings.TrimPrefix(Every(d), "every ")
	if strings.ContainsAny(text, "0123456789") {
		return text
	}
	return "1 " + text
}

// Counted is a number of things in words, such as "1 tick" or "2 ticks".
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// tidy drops what says nothing any more.
func (a *Attention) tidy(now time.Time) {
	if !now.Before(a.Snoozed) {
		a.Snoozed = time.Time{}
	}
	for heartbeat, taste := range a.Tastes {
		if !now.Before(taste.Snoozed) {
			taste.Snoozed = time.Time{}
		}
		if taste.Less == 0 {
			taste.First, taste.Woke = 0, time.Time{}
		}
		if *taste == (Taste{}) {
			delete(a.Tastes, heartbeat)
		}
	}
	if a.Day < now.UTC().AddDate(0, 0, -2).Format(time.DateOnly) { // it is over in every zone
		a.Day, a.Said = "", 0
	}
}

// empty reports whether nothing is kept of the person.
func (a Attention) empty() bool {
	return a.Snoozed.IsZero() && len(a.Tastes) == 0 && a.Said == 0 && len(a.Withheld) == 0
}

// join takes in what the same person said with another account: a snooze lasts until the later end, and of a heartbeat the
// greater wish to be let be holds. Of counts the larger one holds: both may have in them what was counted before they were
// parted, and that must not count twice.
func (a *Attention) join(other Attention) {
	a.Snoozed = latest(a.Snoozed, other.Snoozed)
	for heartbeat, said := range other.Tastes {
		if said == nil {
			continue
		}
		taste := a.taste(heartbeat)
		if said.Cooldown() > taste.Cooldown() {
			taste.Less, taste.First = said.Less, said.First
		}
		taste.Snoozed, taste.Woke = latest(taste.Snoozed, said.Snoozed), latest(taste.Woke, said.Woke)
		taste.Useful, taste.Asked, taste.Told = max(taste.Useful, said.Useful), max(taste.Asked, said.Asked), max(taste.Told, said.Told)
		taste.Heard = cmp.Or(taste.Heard, said.Heard)
		if said.Withheld != "" {
			taste.Withheld = said.Withheld
		}
	}
	switch {
	case a.Day == other.Day:
		a.Said = max(a.Said, other.Said)
	case a.Day < other.Day:
		a.Day, a.Said = other.Day, other.Said
	}
	for _, w := range other.Withheld {
		a.withhold(w)
	}
	a.More += other.More
}

func latest(one, other time.Time) time.Time {
	if other.After(one) {
		return other
	}
	return one
}

// LoadAttention gives what a person said of being spoken to unasked, with whichever of their accounts.
func LoadAttention(tx memory.Tx, account string) (Attention, error) {
	var a Attention
	if account == "" || len(account) > memory.MaxID {
		return a, nil
	}
	person, err := PersonOf(tx, account)
	if err != nil {
		return a, err
	}
	if a, _, err = tableAttention.Get(tx, person); err != nil {
		return Attention{}, fmt.Errorf("load the attention of %s: %w", person, err)
	}
	for heartbeat, taste := range a.Tastes {
		if taste == nil {
			delete(a.Tastes, heartbeat)
		}
	}
	return a, nil
}

func (a Attention) save(tx memory.Tx, account string, now time.Time) error {
	a.tidy(now)
	person, err := PersonOf(tx, account)
	if err != nil {
		return err
	}
	if a.empty() {
		err = tableAttention.Delete(tx, person)
	} else {
		err = tableAttention.Put(tx, person, a)
	}
	if err != nil {
		return fmt.Errorf("save the attention of %s: %w", person, err)
	}
	return nil
}

// Span is how long a snooze lasts.
type Span string

// The spans. Others are refused.
const (
	AnHour       Span = "1h"
	FourHours    Span = "4h"
	TillTomorrow Span = "tomorrow" // 09:00 of the next day on the person's own clocks
)

// Spans are all spans, shortest first.
func Spans() []Span { return []Span{AnHour, FourHours, TillTomorrow} }

// ErrSpan is the error for a span that is none.
var ErrSpan = errors.New("a snooze lasts 1h, 4h or until tomorrow")

// End is when a snooze ends that begins now, for somebody in a zone: a whole second, in UTC.
func (s Span) End(now time.Time, zone *time.Location) (time.Time, error) {
	switch s {
	case AnHour:
		return wholeSecond(now.Add(time.Hour)), nil
	case FourHours:
		return wholeSecond(now.Add(4 * time.Hour)), nil
	case TillTomorrow:
		return tomorrow(now, zone)
	}
	return time.Time{}, ErrSpan
}

// wholeSecond rounds up, so that a snooze is never shorter than what was asked for.
func wholeSecond(at time.Time) time.Time {
	return at.Add(time.Second - 1).Truncate(time.Second).UTC()
}

// morning is when a person who snoozed until tomorrow may be spoken to again.
const morning = "0 9 * * *"

func tomorrow(now time.Time, zone *time.Location) (time.Time, error) {
	mornings, err := ParseCron(morning, "")
	if err != nil {
		return time.Time{}, err
	}
	mornings.zone = zone
	at := mornings.Next(now)
	if at.YearDay() == now.In(zone).YearDay() {
		at = mornings.Next(at)
	}
	return at.UTC(), nil
}

// SnoozeAll lets no heartbeat speak to a person before an instant, in place of what they said before; the zero instant
// lets all speak again, those too that were snoozed one by one. What was held back until then comes at once: a clock
// that runs must be told by [Clock.Look] after the transaction.
func SnoozeAll(tx memory.Tx, person string, until, now time.Time) error {
	return changeAttention(tx, person, now, func(a *Attention) {
		a.Snoozed = until.UTC()
		if until.IsZero() {
			for _, taste := range a.Tastes {
				taste.Snoozed = time.Time{}
			}
		}
	})
}

// SnoozeOne is [SnoozeAll] for a single heartbeat. A snooze of all goes on.
func SnoozeOne(tx memory.Tx, person, heartbeat string, until, now time.Time) error {
	return changeAttention(tx, person, now, func(a *Attention) { a.taste(heartbeat).Snoozed = until.UTC() })
}

func changeAttention(tx memory.Tx, person string, now time.Time, change func(*Attention)) error {
	a, err := LoadAttention(tx, person)
	if err != nil {
		return err
	}
	before := a.snoozes(now)
	change(&a)
	if err := a.save(tx, person, now); err != nil {
		return err
	}
	if !a.speaksSooner(before, now) {
		return nil
	}
	if slices.ContainsFunc(a.Withheld, func(w Withheld) bool { return w.By == BySnooze }) && a.SnoozedBy("", now).IsZero() {
		if err := placeDigest(tx, person, now); err != nil {
			return err
		}
	}
	return bringBack(tx, person, now)
}

// snoozes are the ends of the snoozes by heartbeat, with that of all other heartbeats under "".
func (a Attention) snoozes(now time.Time) map[string]time.Time {
	ends := map[string]time.Time{"": a.SnoozedBy("", now)}
	for heartbeat := range a.Tastes {
		ends[heartbeat] = a.SnoozedBy(heartbeat, now)
	}
	return ends
}

// speaksSooner reports whether anything may speak to the person sooner than it might before.
func (a Attention) speaksSooner(before map[string]time.Time, now time.Time) bool {
	for heartbeat, end := range before {
		if a.SnoozedBy(heartbeat, now).Before(end) {
			return true
		}
	}
	return false
}

// bringBack lets ticks that were passed over for a snooze of the person come back now. Where they are still held back,
// they are passed over once more.
func bringBack(tx memory.Tx, person string, now time.Time) error {
	all, err := List(tx)
	if err != nil {
		return err
	}
	accounts, err := Accounts(tx, person)
	if err != nil {
		return err
	}
	theirs := func(id string) bool { return slices.ContainsFunc(accounts, func(a Account) bool { return a.ID == id }) }
	for _, h := range all {
		if h.resting() != "" || !slices.ContainsFunc(h.For, theirs) {
			continue
		}
		if err := h.bringBack(tx, now); err != nil {
			return fmt.Errorf("bring back what heartbeat %s held back: %w", h.Name, err)
		}
	}
	return nil
}

// bringBack lets what snoozes hold back come now, and reports whether that is anything.
func (z *Zone) bringBack(now time.Time) (any bool) {
	if z.Held.After(now) {
		z.Held, any = now.UTC(), true
	}
	for _, own := range z.People {
		any = own.bringBack(now) || any
	}
	return any
}

func (h Heartbeat) bringBack(tx memory.Tx, now time.Time) error {
	state, err := loadState(tx, h)
	if err != nil {
		return err
	}
	changed := false
	for name, zone := range state.Zones {
		if !zone.bringBack(now) {
			continue
		}
		changed = true
		if err := tx.Due().Put(memory.DueRow{Key: retryKey(h.Name, name), At: now}); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return state.save(tx, h.Name)
}
