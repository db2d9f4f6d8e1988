package schedule

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// What people said of being spoken to, and their budget, bound whom a tick wakes: those who have snoozed are passed over
// before the condition is checked; those who asked for less, whose quiet hours it is or whose cap is reached after it. For whom
// all of a tick is passed over, the condition's state is not moved on. Where others were woken, it is, and who was held back
// is owed. The digest tells of quiet hours and caps.

const unreadable = "nobody was woken: what people said of being spoken to could not be read"

// held is a person who must not be spoken to now.
type held struct {
	person string
	Hold
	zone  *time.Location // of their own clocks, by which a budget goes
	heard string         // the episode of the heartbeat of which they heard last
}

// allSnoozed gives the snoozes of the tick's people if each of them has one. It looks no further than the first who has
// none.
func (c *Clock) allSnoozed(ctx context.Context, t *tick) (all []held, err error) {
	err = c.config.Store.View(ctx, func(tx memory.Tx) error {
		all = nil
		for _, person := range t.people {
			a, err := LoadAttention(tx, person)
			if err != nil {
				return err
			}
			until := a.SnoozedBy(t.heartbeat.Name, c.wall())
			if until.IsZero() {
				all = nil
				return nil
			}
			all = append(all, held{person: person, Hold: Hold{Until: until, By: BySnooze}})
		}
		return nil
	})
	return all, c.unread(ctx, t, err)
}

// free parts people into those who may be woken and those who must not be. Who cannot be reached is neither.
func (c *Clock) free(ctx context.Context, t *tick, people []string) (free []string, back []held, err error) {
	zones := c.zonesOf(people, c.config.Budget.of(t.heartbeat))
	err = c.config.Store.View(ctx, func(tx memory.Tx) error {
		free, back = nil, nil
		reachable, err := withoutGone(tx, people)
		if err != nil {
			return err
		}
		for _, person := range reachable {
			a, err := LoadAttention(tx, person)
			if err != nil {
				return err
			}
			if t.before.Begun {
				free = append(free, person)
				continue
			}
			at := c.wakeAt(t, person)
			hold := a.Hold(t.heartbeat.Name, t.at, at)
			if !hold.Holds() {
				hold = c.config.Budget.of(t.heartbeat).Hold(a, at, zones[person], t.heartbeat.BreakQuiet)
			}
			if hold.Holds() {
				back = append(back, held{person, hold, zones[person], a.heard(t.heartbeat.Name)})
			} else {
				free = append(free, person)
			}
		}
		return nil
	})
	return free, back, c.unread(ctx, t, err)
}

// zonesOf gives the zones of people's own clocks, which only a budget asks for.
func (c *Clock) zonesOf(people []string, budget Budget) map[string]*time.Location {
	zones := map[string]*time.Location{}
	for _, person := range people {
		zones[person] = time.UTC
		if c.config.Zone == nil || !budget.bounds() {
			continue
		}
		if zone, err := loadZone(c.config.Zone(person)); err == nil {
			zones[person] = zone
		}
	}
	return zones
}

func (c *Clock) unread(ctx context.Context, t *tick, err error) error {
	if err != nil && ctx.Err() == nil {
		c.config.Log.Error("read whether people may be spoken to", "heartbeat", t.heartbeat.Name, "error", err)
	}
	return err
}

// owed are the tick's people who have still to hear of what others were woken for.
func (t *tick) owed() []string {
	return slices.DeleteFunc(slices.Clone(t.people), func(person string) bool { return !slices.Contains(t.before.Owed, person) })
}

// owesAll reports whether a tick out of its turn is for all of the zone's people, so that what it finds counts for all.
func (t *tick) owesAll() bool {
	return len(t.before.Owed) == 0 || len(t.before.Owed) >= t.size
}

// owes reports whether what others were woken for is still so, and those who were held back then may hear of it now.
func (t *tick) owes(f Finding, now time.Time) bool {
	still := f.True || f.State != "" && f.State == t.before.Digest
	return still && len(t.owed()) > 0 && (t.retry || !now.Before(t.before.Retry))
}

// passOver is the verdict of a tick all of whose people are held back: nothing that is remembered of the condition changes.
func (t *tick) passOver(all []held) verdict {
	v := verdict{word: holdWord(all), reason: clip(t.inWords(all), maxReason), held: firstSnooze(all)}
	if t.parts != nil {
		v.held = time.Time{}
		v.change = func(z *Zone, _ []string) []string {
			for _, h := range all {
				own := z.person(h.person)
				own.Held = earlier(own.Held, h.Until)
			}
			return nil
		}
	}
	if t.heartbeat.Condition.Always() {
		// It has no state that would bring the tick back.
		v.change = func(z *Zone, _ []string) []string { z.owe(snoozing(all)); return nil }
	}
	return v
}

// holdWord is the outcome of a tick all of whose people are held back: that of the one reason, if it is one.
func holdWord(all []held) string {
	for _, h := range all {
		if h.By != all[0].By {
			return Slept
		}
	}
	switch all[0].By {
	case InQuiet:
		return Quieted
	case AtCap:
		return Capped
	}
	return Slept
}

// digested notes for the digest what a tick would have woken people for who are held back, unless they have heard of it.
func (v *verdict) digested(t *tick, back []held, f Finding) {
	for _, h := range back {
		if !h.digested() || h.heard == t.before.Episode {
			continue
		}
		w := Withheld{
			Heartbeat: t.heartbeat.Name, Episode: t.before.Episode, Text: f.Evidence, Seen: f.Evidence != "", Private: f.Evidence != "" && !f.Public,
			By: h.By, First: t.at, Last: t.at, Count: 1,
		}
		if w.Text == "" {
			w.Text = t.heartbeat.About()
		}
		v.withheld = append(v.withheld, withholding{h.person, h.zone, w})
	}
}

// withholding is something that a tick puts into the digest of a person in a zone.
type withholding struct {
	person string
	zone   *time.Location
	Withheld
}

// noteWithheld puts what the tick held back into the digests of its people.
func (c *Clock) noteWithheld(tx memory.Tx, v verdict) error {
	for _, w := range v.withheld {
		a, err := LoadAttention(tx, w.person)
		if err != nil {
			return err
		}
		a.withhold(w.Withheld)
		if err := errors.Join(a.save(tx, w.person, c.wall()), placeDigest(tx, w.person, c.config.Budget.digestAt(c.wall(), w.zone))); err != nil {
			return err
		}
	}
	return nil
}

// inWords says who is held back, and until when.
func (t *tick) inWords(all []held) string {
	zone, err := loadZone(t.zone)
	if err != nil {
		zone = time.UTC
	}
	var words []string
	for _, h := range all {
		said := h.in(zone)
		if h.digested() {
			said = h.in(h.zone)
		}
		if t.size > 1 {
			said = h.person + " " + said
		}
		words = append(words, said)
	}
	return strings.Join(words, ", ")
}

// firstSnooze is when the first of the snoozes ends; zero when there is none.
func firstSnooze(all []held) (first time.Time) {
	for _, h := range all {
		if h.By == BySnooze {
			first = earlier(first, h.Until)
		}
	}
	return first
}

// earlier is the earlier of two instants of which either may be zero for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func snoozing(all []held) (people []string) {
	for _, h := range all {
		if h.By == BySnooze {
			people = append(people, h.person)
		}
	}
	return people
}

// owing are those of the held back who shall still hear of it. A cool-down of what is always so lets it go by.
func (t *tick) owing(back []held) (people []string) {
	if t.heartbeat.Condition.Always() {
		return snoozing(back)
	}
	for _, h := range back {
		people = append(people, h.person)
	}
	return people
}

func without(people, others []string) []string {
	return slices.DeleteFunc(slices.Clone(people), func(person string) bool { return slices.Contains(others, person) })
}

// noteWoken notes of each person whose run ended well when they were woken, and gives those to whom a run would have said
// something that was held back, with when the first of their snoozes ends or, where that is past, a second from now.
func (t *tick) noteWoken(tx memory.Tx, v verdict, now time.Time) (silenced []string, first time.Time, err error) {
	for _, person := range v.well {
		a, err := LoadAttention(tx, person)
		if err != nil {
			return nil, time.Time{}, err
		}
		taste := a.Tastes[t.heartbeat.Name]
		switch {
		case taste == nil:
			continue
		case taste.Withheld == t.part(person).before.Episode:
			taste.Withheld = ""
			silenced = append(silenced, person)
			first = earlier(first, latest(now.Add(time.Second), a.SnoozedBy(t.heartbeat.Name, now))) // it may have ended since
		case taste.Less > 0:
			taste.Woke = t.at
		default:
			continue
		}
		if err := a.save(tx, person, now); err != nil {
			return nil, time.Time{}, err
		}
	}
	return silenced, first, nil
}

// holdBack is the verdict of a tick all of whose people are held back, though it would have woken them or owes them.
func (t *tick) holdBack(back []held, f Finding, wake bool) verdict {
	v := t.passOver(back)
	v.digested(t, back, f)
	owe := v.change
	v.change = func(z *Zone, _ []string) []string {
		if owe != nil {
			owe(z, nil)
		}
		if wake && len(v.withheld) > 0 && !t.heartbeat.Condition.Always() {
			z.keepEpisode(t.before)
		}
		return z.slept(f)
	}
	return v
}
