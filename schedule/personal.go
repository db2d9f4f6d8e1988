package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// A condition can be about each of a heartbeat's people by themselves, as their silence is. It is checked once a tick like any
// other, and says of each of them whether it is true; what is remembered of it, its episodes and its cool-down are each person's
// own. Such a tick has a part for each person and one outcome.

// Personal is a [Condition] that is about each person by themselves.
type Personal interface {
	// Its own Check gives an error, since that does not say whom it is about.
	Condition
	// For is the condition of one person. All that one Personal gives see the same world: each program runs, and each address
	// is asked, once for all of them.
	For(person string) Condition
}

// Personal reports whether the condition is about each person by themselves.
func (s Spec) Personal() bool { return s.Kind == "idle" || slices.ContainsFunc(s.Of, Spec.Personal) }

// person is what is remembered of one person, to be changed.
func (z *Zone) person(person string) *Zone {
	if z.People == nil {
		z.People = map[string]*Zone{}
	}
	if z.People[person] == nil {
		z.People[person] = &Zone{}
	}
	return z.People[person]
}

// clone is a copy that shares nothing.
func (z *Zone) clone() *Zone {
	same := *z
	same.Done, same.Owed, same.Asked = slices.Clone(z.Done), slices.Clone(z.Owed), slices.Clone(z.Asked)
	same.People = maps.Clone(z.People)
	for person, own := range same.People {
		same.People[person] = own.clone()
	}
	return &same
}

// tidyPeople forgets who is not among people any more, and of whom there is nothing to remember.
func (z *Zone) tidyPeople(people []string) {
	z.Asked = among(z.Asked, people)
	maps.DeleteFunc(z.People, func(person string, own *Zone) bool {
		return reflect.DeepEqual(*own, Zone{}) || !slices.Contains(people, person)
	})
}

// divide gives each person what an earlier version remembered of all of them together. Who is owed something has yet to hear of it,
// so that for them the condition counts as not true before.
func (z *Zone) divide(people []string) {
	if z.Episode == "" && z.LastWake.IsZero() && z.Retry.IsZero() && z.Held.IsZero() {
		return
	}
	for _, person := range people {
		own := z.person(person)
		*own = Zone{
			True: z.True && !slices.Contains(z.Owed, person), Digest: z.Digest, Episode: z.Episode, Pending: z.Pending && !z.isDone(person), Found: z.Found,
			LastWake: z.LastWake, Failures: z.Failures, Retry: z.Retry, Held: z.Held,
		}
	}
	z.True, z.Digest, z.Episode, z.Pending, z.Found, z.Done, z.Owed = false, "", "", false, "", nil, nil
	z.LastWake, z.Failures, z.Retry, z.Held = time.Time{}, 0, time.Time{}, time.Time{}
}

// isDue reports whether something of the person's comes out of turn by now.
func (z *Zone) isDue(now time.Time) bool {
	again := z.again()
	return !again.IsZero() && !again.After(now)
}

// divide makes the parts of a tick that is claimed now. Out of turn it has parts for those only of whom something comes then, who
// are those who asked where it was asked for.
func (t *tick) divide(zone *Zone, now time.Time, outOfTurn bool) {
	for _, person := range t.people {
		own := zone.person(person)
		if outOfTurn && !t.asked && !own.isDue(now) {
			continue
		}
		part := *t
		part.person, part.people, part.parts = person, []string{person}, nil
		part.outOfTurn(own, now, outOfTurn)
		part.before = *own.clone()
		t.parts = append(t.parts, &part)
	}
	t.people = nil
	for _, part := range t.parts {
		t.people = append(t.people, part.person)
	}
}

// part is that of one person; the tick itself where it has no parts.
func (t *tick) part(person string) *tick {
	for _, part := range t.parts {
		if part.person == person {
			return part
		}
	}
	return t
}

// remembered is what is remembered of those whom the tick, or the part of one, is for.
func (t *tick) remembered(zone *Zone) *Zone {
	if t.person == "" {
		return zone
	}
	return zone.person(t.person)
}

// takeParts carries a tick out that has parts, side by side.
func (c *Clock) takeParts(ctx context.Context, t *tick) verdict {
	findings, err := c.checkParts(ctx, t)
	if err != nil {
		return checkFailed(err)
	}
	verdicts := make([]verdict, len(t.parts))
	var all sync.WaitGroup
	for i, part := range t.parts {
		if wake, reason := part.judge(findings[i], c.wall()); !wake {
			verdicts[i] = part.sleeps(findings[i], reason)
			continue
		}
		all.Go(func() { verdicts[i] = c.act(ctx, part, findings[i]) })
	}
	all.Wait()
	return t.together(verdicts)
}

// checkParts looks once for all parts.
func (c *Clock) checkParts(ctx context.Context, t *tick) ([]Finding, error) {
	slot, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer slot.leave()
	h := t.heartbeat
	h.Zone = t.zone
	return lookForParts(ctx, c.config.Log, h, c.config.Conditions, t.parts)
}

// errNotPersonal is met where Conditions gives something else for a [Spec] that is personal.
var errNotPersonal = errors.New("it is about each person by themselves, and cannot be checked so")

// personally is the condition for one person.
func personally(c Condition, person string) (Condition, error) {
	p, is := c.(Personal)
	if !is {
		return nil, errNotPersonal
	}
	return p.For(person), nil
}

// share is what became of one person's part.
type share struct{ person, word, reason string }

// together makes one verdict of those of the parts.
func (t *tick) together(verdicts []verdict) verdict {
	var v verdict
	var shares []share
	for i, one := range verdicts {
		v.used.add(one.used)
		v.runs = append(v.runs, one.runs...)
		v.well = append(v.well, one.well...)
		v.wakes = v.wakes || one.wakes
		v.withheld = append(v.withheld, one.withheld...)
		shares = append(shares, share{t.parts[i].person, one.word, one.reason})
	}
	v.word, v.reason = t.inOne(shares)
	v.change = func(z *Zone, silenced []string) []string { return t.changeParts(z, verdicts, silenced) }
	return v
}

// changeParts changes what is remembered of each person, and gives what the owners must hear: that runs fail when they first do
// for anybody, and that they end well again when they do for all.
func (t *tick) changeParts(z *Zone, verdicts []verdict, silenced []string) []string {
	said := z.checkWorked()
	woke, well := false, false
	for i, v := range verdicts {
		own := z.person(t.parts[i].person)
		warned := own.Warned
		var texts []string
		if v.change != nil {
			texts = v.change(own, slices.DeleteFunc(slices.Clone(silenced), func(p string) bool { return p != t.parts[i].person }))
		}
		switch {
		case slices.Contains(texts, runsWorkAgain):
			well = true
		case own.Warned && !warned && z.Warned: // they were told of others' runs
		default:
			said = append(said, texts...)
			z.Warned = z.Warned || own.Warned
		}
		own.Held = earlier(own.Held, v.held)
		woke = woke || own.Woke > 0
		own.Woke = 0 // a tick counts once
	}
	if woke {
		z.Woke++
	}
	z.Warned = slices.ContainsFunc(slices.Collect(maps.Values(z.People)), func(own *Zone) bool { return own.Warned })
	if well && !z.Warned {
		said = append(said, runsWorkAgain)
	}
	return said
}

// inOne makes one outcome of what became of the parts.
func (t *tick) inOne(shares []share) (word, reason string) {
	if t.size == 1 && len(shares) == 1 {
		return shares[0].word, shares[0].reason
	}
	word = Slept
	var woken, reasons []string
	held := map[string]bool{}
	people := map[string][]string{} // by reason
	for _, s := range shares {
		switch s.word {
		case Failed, Unknown, Woke:
			if wordRank(s.word) > wordRank(word) {
				word = s.word
			}
		case Quieted, Capped:
			held[s.word] = true
		}
		if s.word == Woke && s.reason == t.wokeReason([]string{s.person}, round{}) {
			woken = append(woken, s.person)
			continue
		}
		if people[s.reason] == nil {
			reasons = append(reasons, s.reason)
		}
		people[s.reason] = append(people[s.reason], s.person)
	}
	if word == Slept && len(held) == 1 {
		for only := range held {
			word = only
		}
	}
	var parts []string
	if len(woken) > 0 {
		parts = append(parts, t.wokeReason(woken, round{}))
	}
	for _, reason := range reasons { // some name whom they are about
		if names := people[reason]; len(names) < t.size && !strings.Contains(reason, names[0]) {
			reason = fmt.Sprintf("%s (%s)", reason, strings.Join(names, ", "))
		}
		parts = append(parts, reason)
	}
	return word, clip(strings.Join(parts, "; "), maxReason)
}

// wordRank orders the words of an outcome by what must be told first.
func wordRank(word string) int { return slices.Index([]string{Slept, Woke, Unknown, Failed}, word) }
