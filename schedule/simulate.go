package schedule

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// Decision is what one tick of a [Simulation] comes to, or a change of a zone's clocks.
type Decision struct {
	Outcome          // Tick, Zone, Word and Reason as a clock would record them
	Heartbeat string `json:"heartbeat,omitempty"`
	Evidence  string `json:"evidence,omitempty"` // what the check saw; written by others
	Recorded  bool   `json:"recorded,omitempty"` // is what a clock did record
}

// String is the decision in one line, its instant on the clocks of its zone.
func (d Decision) String() string {
	at := d.Tick
	if zone, err := loadZone(d.Zone); err == nil {
		at = at.In(zone)
	}
	whose, recorded := d.Heartbeat, ""
	if d.Word == ClockChange {
		whose = d.Zone
	}
	if d.Recorded {
		recorded = " (recorded)"
	}
	return fmt.Sprintf("%s  %s  %-7s %s%s", at.Format("2006-01-02 15:04:05 MST"), whose, d.Word, oneLine(d.Reason), recorded)
}

// ClockChange is the word of a [Decision] that tells of a change of a zone's clocks and is of no heartbeat.
const ClockChange = "clock"

// Simulation plays a stretch of time through: it decides each tick as a clock would that runs all the time, whose woken
// runs all end well at once. It asks no model and writes nothing.
type Simulation struct {
	Heartbeats []Heartbeat
	From, To   time.Time // both are part of it
	// Zone is as in [Config].
	Zone func(person string) string
	// Budget is as in [Config]. Each wake counts as one message.
	Budget Budget
	// Conditions builds the condition of a heartbeat, as in [Config], that takes now for the time.
	Conditions func(h Heartbeat, now func() time.Time) (Condition, error)
	// Past is what is remembered of the heartbeats. Ticks of which an outcome is kept are told as recorded; those after
	// it was recalled go on from what was remembered then.
	Past Past

	people map[string]*Attention // as it changes while time is played through
}

// Past is what was remembered of heartbeats and their people at an instant. Its zero value is nothing.
type Past struct {
	at        time.Time
	beats     map[string]pastBeat
	attention map[string]Attention // of people who said something, by account
}

type pastBeat struct {
	stored   Heartbeat
	zones    map[string]*Zone
	due      map[string]time.Time // the zones' next ticks
	outcomes map[string][]Outcome // of each zone, oldest first
}

// Recall reads what is remembered of heartbeats and their people.
func Recall(tx memory.Tx, beats []Heartbeat, now time.Time) (Past, error) {
	past := Past{at: now, beats: map[string]pastBeat{}, attention: map[string]Attention{}}
	for _, h := range beats {
		b, err := recallBeat(tx, h.Name, now)
		if err != nil {
			return Past{}, fmt.Errorf("recall heartbeat %s: %w", h.Name, err)
		}
		past.beats[h.Name] = b
		for _, person := range h.For {
			a, err := LoadAttention(tx, person)
			if err != nil {
				return Past{}, err
			}
			if !a.Snoozed.IsZero() || len(a.Tastes) > 0 || a.Said > 0 {
				past.attention[person] = a
			}
		}
	}
	return past, nil
}

func recallBeat(tx memory.Tx, name string, now time.Time) (pastBeat, error) {
	b := pastBeat{due: map[string]time.Time{}, outcomes: map[string][]Outcome{}}
	h, found, err := find(tx, name)
	if err != nil || !found {
		return b, err
	}
	report, err := Why(tx, name, now)
	if err != nil {
		return b, err
	}
	b.stored, b.zones = h, report.State.Zones
	for _, o := range slices.Backward(report.Outcomes) {
		b.outcomes[o.Zone] = append(b.outcomes[o.Zone], o)
	}
	for zone := range b.zones {
		row, found, err := tx.Due().Get(heartbeatKey(name, zone))
		if err != nil {
			return b, err
		}
		if found {
			b.due[zone] = row.At
		}
	}
	return b, nil
}

// Run plays the time through and tells each decision in order of instant. It ends with the first error of tell.
func (s Simulation) Run(ctx context.Context, tell func(Decision) error) error {
	lanes := &laneHeap{}
	s.people = map[string]*Attention{}
	zones := map[string]*time.Location{}
	for _, h := range s.Heartbeats {
		if resting := h.resting(); resting != "" {
			if err := tell(Decision{Outcome: Outcome{Tick: s.From, Word: Slept, Reason: resting + "; no tick falls due"}, Heartbeat: h.Name}); err != nil {
				return err
			}
			continue
		}
		all, err := s.lanesOf(h)
		if err != nil {
			return fmt.Errorf("simulate heartbeat %s: %w", h.Name, err)
		}
		for _, l := range all {
			heap.Push(lanes, l)
			zones[l.zone] = l.timed.zone
		}
	}
	changes := s.changes(zones)
	for lanes.Len() > 0 || len(changes) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
		var d Decision
		if lanes.Len() == 0 || len(changes) > 0 && !changes[0].Tick.After((*lanes)[0].next) {
			d, changes = changes[0], changes[1:]
		} else {
			l := heap.Pop(lanes).(*lane)
			d = l.decide(ctx)
			if l.advance() {
				heap.Push(lanes, l)
			}
		}
		if err := tell(d); err != nil {
			return err
		}
	}
	return nil
}

// attentionOf is a person's attention at the instant that is played.
func (s *Simulation) attentionOf(person string) *Attention {
	known := s.people[person]
	if known == nil {
		own := s.Past.attention[person]
		own.Tastes = maps.Clone(own.Tastes)
		for heartbeat, taste := range own.Tastes {
			same := *taste
			own.Tastes[heartbeat] = &same
		}
		known = &own
		s.people[person] = known
	}
	return known
}

// lane is a heartbeat for the people of one zone.
type lane struct {
	of       *Simulation
	h        Heartbeat
	zone     string
	people   []string
	timed    Schedule
	due      time.Time // its next tick in turn
	again    time.Time // when a snooze ends that held a tick back; zero when none does
	next     time.Time // the tick to decide
	state    *Zone
	then     *Zone // what was remembered when the past was recalled; nil once it was taken over
	build    func(Heartbeat) (Condition, error)
	recorded []Outcome // that are still to be told, oldest first
}

func (s *Simulation) lanesOf(h Heartbeat) (all []*lane, err error) {
	people := h.byZone(s.Zone)
	past := s.Past.beats[h.Name]
	for _, zone := range slices.Sorted(maps.Keys(people)) {
		timed, err := h.timed(zone)
		if err != nil {
			return nil, err
		}
		l := &lane{of: s, h: h, zone: zone, people: people[zone], timed: timed, state: &Zone{}, recorded: s.within(past.outcomes[zone])}
		if then := past.zones[zone]; then != nil && past.stored.Condition.same(h.Condition) && past.stored.Ended == "" {
			l.then = then
		}
		zoned := h
		zoned.Zone = zone
		condition, broken := s.Conditions(zoned, func() time.Time { return l.next })
		l.build = func(Heartbeat) (Condition, error) { return condition, broken }
		l.due = l.first(past.due[zone], s.From)
		if l.choose() {
			all = append(all, l)
		}
	}
	return all, nil
}

// first is the first tick not before from. An interval keeps the rhythm of the tick that is due, if one is.
func (l *lane) first(due, from time.Time) time.Time {
	every := l.timed.every
	if every == 0 || due.IsZero() {
		return l.timed.Next(from.Add(-time.Nanosecond))
	}
	if ahead := due.Sub(from); ahead >= 0 {
		return due.Add(-ahead.Truncate(every)).In(l.timed.zone)
	}
	return due.Add((from.Sub(due) + every - 1).Truncate(every)).In(l.timed.zone)
}

// within are the outcomes of the stretch.
func (s *Simulation) within(outcomes []Outcome) []Outcome {
	var inside []Outcome
	for _, o := range outcomes {
		if !o.Tick.Before(s.From) && !o.Tick.After(s.To) {
			inside = append(inside, o)
		}
	}
	slices.SortStableFunc(inside, func(a, b Outcome) int { return a.Tick.Compare(b.Tick) })
	return inside
}

// choose sets the tick to decide next: one in turn, one that a snooze held back, or one that was recorded. It gives false
// when there is none.
func (l *lane) choose() bool {
	l.next = time.Time{}
	inside := !l.due.IsZero() && !l.due.After(l.of.To) && !l.h.isOver(l.due)
	if inside && (l.h.MaxTicks == 0 || l.state.Woke < l.h.MaxTicks) {
		l.next = l.due
	}
	if !l.again.IsZero() && !l.again.After(l.of.To) {
		l.next = earlier(l.next, l.again)
	}
	if len(l.recorded) > 0 {
		l.next = earlier(l.next, l.recorded[0].Tick)
	}
	return !l.next.IsZero()
}

// advance goes on from the tick that was decided; false when it was the last.
func (l *lane) advance() bool {
	if l.next.Equal(l.due) {
		l.due = l.timed.Next(l.due)
	}
	if l.next.Equal(l.again) {
		l.again = time.Time{}
	}
	return l.choose()
}

// decide takes one tick as the clock does.
func (l *lane) decide(ctx context.Context) Decision {
	at := l.next
	if len(l.recorded) > 0 && l.recorded[0].Tick.Equal(at) {
		o := l.recorded[0]
		l.recorded = l.recorded[1:]
		return Decision{Outcome: o, Heartbeat: l.h.Name, Recorded: true}
	}
	if l.then != nil && at.After(l.of.Past.at) {
		l.state, l.then = l.then.clone(), nil
	}
	d := Decision{Outcome: Outcome{Tick: at.UTC(), Zone: l.zone}, Heartbeat: l.h.Name}
	t := &tick{heartbeat: l.h, zone: l.zone, people: l.people, size: len(l.people), at: at, before: *l.state}
	if l.h.Condition.Personal() {
		l.state.divide(l.people)
		t.divide(l.state, at, !at.Equal(l.due))
	}
	if back := l.snoozed(t.people, at); len(back) == len(t.people) {
		d.Word, d.Reason = l.passOver(t, back)
		return d
	}
	if t.parts != nil {
		l.decideParts(ctx, t, &d)
		return d
	}
	f, err := lookOnce(ctx, slog.New(slog.DiscardHandler), l.h, l.build, l.state.Digest)
	if err != nil {
		l.failed(err, &d)
		return d
	}
	d.Evidence = f.Evidence
	word, reason, said := l.judge(t, f)
	d.Word, d.Reason = word, reason+told(said)
	return d
}

// decideParts decides for each person by themselves.
func (l *lane) decideParts(ctx context.Context, t *tick, d *Decision) {
	found, err := lookForParts(ctx, slog.New(slog.DiscardHandler), l.h, l.build, t.parts)
	if err != nil {
		l.failed(err, d)
		return
	}
	var shares []share
	var seen []string
	for i, part := range t.parts {
		word, reason, _ := l.judge(part, found[i])
		shares = append(shares, share{part.person, word, reason})
		if word == Woke && found[i].Evidence != "" {
			seen = append(seen, found[i].Evidence)
		}
	}
	d.Word, d.Reason = t.inOne(shares)
	d.Reason += told(l.state.checkWorked())
	d.Evidence = clip(strings.Join(seen, "\n"), MaxEvidence)
	if d.Word == Woke {
		l.state.Woke++ // a tick counts once
	}
	l.state.tidyPeople(l.people)
	l.again = l.state.againAfter(t.at)
}

func (l *lane) failed(err error, d *Decision) {
	d.Word, d.Reason = Failed, clip(err.Error(), maxReason)
	d.Reason += told(l.state.checkFailed(d.Reason))
}

// judge decides what a tick, or a part of one, does with what was found.
func (l *lane) judge(t *tick, f Finding) (word, reason string, said []string) {
	state := t.remembered(l.state)
	wake, reason := t.judge(f, t.at)
	if !wake {
		return Slept, reason, state.slept(f)
	}
	free, back := l.free(t.people, t.at)
	if len(free) == 0 {
		word, reason = l.passOver(t, back)
		return word, reason, state.slept(f)
	}
	for _, person := range free {
		a := l.of.attentionOf(person)
		if taste := a.Tastes[l.h.Name]; taste != nil && taste.Less > 0 {
			taste.Woke = t.at
		}
		a.spend(t.at, Unasked{Person: person, Zone: l.of.zoneOf(person)})
	}
	return Woke, t.wokeReason(free, round{back: back}), state.endedWell(f, t.owing(back), t.at)
}

// passOver is a tick, or a part of one, all of whose people are held back. It comes again when the first of their snoozes ends.
func (l *lane) passOver(t *tick, back []held) (word, reason string) {
	v := t.passOver(back)
	if l.h.Condition.Personal() {
		if t.parts != nil {
			v.change(l.state, nil)
		} else {
			own := t.remembered(l.state)
			own.Held = earlier(own.Held, v.held)
		}
		v.held = l.state.againAfter(t.at)
	}
	l.again = earlier(l.again, v.held)
	return v.word, v.reason
}

func (l *lane) snoozed(people []string, at time.Time) (back []held) {
	for _, person := range people {
		if until := l.of.attentionOf(person).SnoozedBy(l.h.Name, at); !until.IsZero() {
			back = append(back, held{person: person, Hold: Hold{Until: until, By: BySnooze}})
		}
	}
	return back
}

// free parts people into those who would be woken and those who would be held back.
func (l *lane) free(people []string, at time.Time) (free []string, back []held) {
	for _, person := range people {
		a, zone := l.of.attentionOf(person), l.of.zoneOf(person)
		hold := a.Hold(l.h.Name, at, at)
		if !hold.Holds() {
			hold = l.of.Budget.of(l.h).Hold(*a, at, zone, l.h.BreakQuiet)
		}
		if hold.Holds() {
			back = append(back, held{person: person, Hold: hold, zone: zone})
		} else {
			free = append(free, person)
		}
	}
	return free, back
}

// zoneOf is the zone of a person's own clocks.
func (s *Simulation) zoneOf(person string) *time.Location {
	if s.Zone != nil {
		if zone, err := loadZone(s.Zone(person)); err == nil {
			return zone
		}
	}
	return time.UTC
}

// told is what the owners would hear, to be added to a reason.
func told(said []string) string {
	if len(said) == 0 {
		return ""
	}
	return "; the owners are told: " + strings.Join(said, "; ")
}

// changes are the changes of the zones' clocks in order of instant.
func (s *Simulation) changes(zones map[string]*time.Location) (all []Decision) {
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		for at := s.From.In(zones[name]); ; {
			_, end := at.ZoneBounds()
			if end.IsZero() || end.After(s.To) {
				break
			}
			all = append(all, Decision{Outcome: Outcome{Tick: end.UTC(), Zone: name, Word: ClockChange, Reason: changeInWords(end)}})
			at = end
		}
	}
	slices.SortStableFunc(all, func(a, b Decision) int { return cmp.Or(a.Tick.Compare(b.Tick), cmp.Compare(a.Zone, b.Zone)) })
	return all
}

// changeInWords tells of the clocks' change at an instant, which is a local time of the zone.
func changeInWords(at time.Time) string {
	_, before := at.Add(-time.Nanosecond).Zone()
	_, after := at.Zone()
	way, by := "forward", time.Duration(after-before)*time.Second
	if by < 0 {
		way, by = "back", -by
	}
	if by == 0 {
		return "the clocks' zone is now called " + at.Format("MST")
	}
	return fmt.Sprintf("the clocks go %s by %s, to %s", way, shortDuration(by), at.Format("15:04 MST"))
}

// laneHeap has the lane with the first tick on top, and of those with the same the first by name.
type laneHeap []*lane

func (h laneHeap) Len() int { return len(h) }
func (h laneHeap) Less(i, j int) bool {
	return cmp.Or(h[i].next.Compare(h[j].next), cmp.Compare(h[i].h.Name, h[j].h.Name), cmp.Compare(h[i].zone, h[j].zone)) < 0
}
func (h laneHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *laneHeap) Push(l any)   { *h = append(*h, l.(*lane)) }
func (h *laneHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	*h = (*h)[:last]
	return l
}
