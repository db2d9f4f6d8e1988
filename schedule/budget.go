package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// Budget bounds what is said to a person unasked, by all that speaks so taken together. It is the same for everybody, on
// each person's own clocks. The zero value bounds nothing.
type Budget struct {
	Quiet    Quiet
	DailyCap int // messages on one of the person's dates; 0 for any number
	Digest   Digest
}

// Digest says when a person is told what was held back. The zero value is after the quiet hours, or at 09:00 where there are
// none.
type Digest struct {
	at         []int // minutes since midnight
	afterQuiet bool
}

// afterQuiet is how [Digest.afterQuiet] is written.
const afterQuiet = "after quiet"

// ParseDigest reads one or more of times of day and "after quiet", parted by commas, such as "18:00" or "18:00, after
// quiet". An empty text is the zero value.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	if strings.TrimSpace(text) == "" {
		return d, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		if strings.Join(strings.Fields(part), " ") == afterQuiet {
			d.afterQuiet = true
			continue
		}
		at, err := parseClock(part)
		if err != nil {
			return Digest{}, errors.New(`wants a time of day, such as "18:00", or "after quiet", or both with a comma between`)
		}
		d.at = append(d.at, at)
	}
	return d, nil
}

// Check refuses a budget whose parts contradict each other. The error begins with the key at fault.
func (b Budget) Check() error {
	if b.DailyCap < 0 {
		return errors.New("attention.daily_cap: is below zero")
	}
	if b.Digest.afterQuiet && b.Quiet == (Quiet{}) {
		return errors.New("attention.digest: there are no quiet hours after which it could come")
	}
	for _, at := range b.Digest.at {
		if b.Quiet.has(at) {
			return errors.New("attention.digest: lies in the quiet hours")
		}
	}
	return nil
}

// bounds reports whether anything is bounded.
func (b Budget) bounds() bool { return b.Quiet != (Quiet{}) || b.DailyCap > 0 }

// mostMade is how much is said to one person on a date before what people have asked for in conversations says no more: who makes a
// hundred heartbeats that say something each second keeps nobody's disk.
const mostMade = 500

// of is what bounds a heartbeat.
func (b Budget) of(h Heartbeat) Budget {
	if h.By != "" && (b.DailyCap == 0 || b.DailyCap > mostMade) {
		b.DailyCap = mostMade
	}
	return b
}

// digestAt is the next time at which a person in a zone is told what was held back.
func (b Budget) digestAt(now time.Time, zone *time.Location) (next time.Time) {
	times := slices.Clone(b.Digest.at)
	none := b.Quiet == (Quiet{})
	switch {
	case none && len(times) == 0:
		times = []int{9 * 60}
	case !none && (b.Digest.afterQuiet || len(times) == 0):
		times = append(times, b.Quiet.to)
	}
	for _, minutes := range times {
		next = earlier(next, clockNext(minutes, now, zone))
	}
	if until := b.Quiet.Until(next, zone); !until.IsZero() { // clocks that are changed may show the end twice
		next = until
	}
	return next
}

// clockNext is the next instant at which clocks in a zone show a time of day.
func clockNext(minutes int, now time.Time, zone *time.Location) time.Time {
	daily, err := ParseCron(fmt.Sprintf("%d %d * * *", minutes%60, minutes/60), "")
	if err != nil { // any time of day can be written so
		return time.Time{}
	}
	daily.zone = zone
	return daily.Next(now).UTC()
}

// Hold decides whether the budget lets something be said to a person in a zone now. What breaksQuiet may be said in quiet
// hours too, as long as the cap is not reached.
func (b Budget) Hold(a Attention, now time.Time, zone *time.Location, breaksQuiet bool) Hold {
	if until := b.Quiet.Until(now, zone); !until.IsZero() && !breaksQuiet {
		return Hold{Until: until, By: InQuiet}
	}
	if b.DailyCap > 0 && a.saidOn(now, zone) >= b.DailyCap {
		return Hold{Until: clockNext(0, now, zone), By: AtCap}
	}
	return Hold{}
}

// saidOn is how much was said to the person unasked on the date of an instant.
func (a Attention) saidOn(now time.Time, zone *time.Location) int {
	if a.Day != now.In(zone).Format(time.DateOnly) {
		return 0
	}
	return a.Said
}

// spend counts one thing that is said, and drops what the next digest was to tell of it.
func (a *Attention) spend(now time.Time, u Unasked) {
	a.Said = a.saidOn(now, u.Zone) + 1
	a.Day = now.In(u.Zone).Format(time.DateOnly)
	if u.Heartbeat == "" {
		return
	}
	taste := a.taste(u.Heartbeat)
	taste.Told, taste.Heard = taste.Told+1, u.Episode
	a.drop(u.Heartbeat, u.Key)
}

// Unasked is something that is about to be said to a person who did not ask for it.
type Unasked struct {
	Person string
	Zone   *time.Location // the person's
	// Heartbeat is whose words they are; "" for what else speaks, which Text then says.
	Heartbeat string
	Key       string // what it is about: in a digest the newest of a heartbeat and key stands for all of them
	Episode   string // of the heartbeat's condition
	Text      string
	// BreaksQuiet says that it may be said in quiet hours.
	BreaksQuiet bool
	// Outside says in words where the text came from that it was made from, if strangers may have written that; Private says
	// that private data is in it. Whoever tells the digest hands them on.
	Outside string
	Private bool
	// Asked says that the person has just asked for it after all: it is always admitted, and not counted.
	Asked bool
}

// Admit decides whether something may be said now, in the transaction that says it. If so, it is counted, and whatever the
// next digest was to tell of the same is dropped. If not, it comes in the digest, or, where a snooze holds it back, with what is
// true when that ends. A clock that runs must be told by [Clock.Look] after a transaction in which something was held back.
func (b Budget) Admit(tx memory.Tx, u Unasked, now time.Time) (Hold, error) {
	hold, err := b.admit(tx, u, now)
	if err != nil {
		return Hold{}, fmt.Errorf("decide whether %s may be spoken to: %w", u.Person, err)
	}
	return hold, nil
}

func (b Budget) admit(tx memory.Tx, u Unasked, now time.Time) (Hold, error) {
	if u.Asked {
		return Hold{}, nil
	}
	a, err := LoadAttention(tx, u.Person)
	if err != nil {
		return Hold{}, err
	}
	hold := b.Hold(a, now, u.Zone, u.BreaksQuiet)
	if until := a.SnoozedBy(u.Heartbeat, now); !until.IsZero() {
		hold = Hold{Until: until, By: BySnooze}
	}
	switch {
	case hold.By == BySnooze && u.Heartbeat != "":
		a.taste(u.Heartbeat).Withheld = u.Episode // the clock brings it back when the snooze ends
	case hold.Holds():
		a.withhold(u.withheld(hold.By, now))
		at := b.digestAt(now, u.Zone)
		if hold.By == BySnooze { // nothing checks again whether it is still so
			at = hold.Until
		}
		if err := placeDigest(tx, u.Person, at); err != nil {
			return Hold{}, err
		}
	default:
		a.spend(now, u)
	}
	return hold, a.save(tx, u.Person, now)
}

func (u Unasked) withheld(by Reason, now time.Time) Withheld {
	return Withheld{
		Heartbeat: u.Heartbeat, Key: u.Key, Episode: u.Episode, Text: u.Text, Outside: u.Outside, Private: u.Private, By: by, First: now.UTC(), Last: now.UTC(), Count: 1,
	}
}
