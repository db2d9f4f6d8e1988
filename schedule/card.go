package schedule

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// The table of what heartbeats told people, by id. The ids lie in the order in which the cards were made.
const tableCards memory.Rows[Card] = "notify_card"

// cardsFor is how long a card can be judged.
const cardsFor = 90 * 24 * time.Hour

// Feedback is what a person says of something that a heartbeat told them.
type Feedback string

// The kinds of feedback.
const (
	Useful Feedback = "useful" // counted; takes one step of less back
	Less   Feedback = "less"   // doubles the heartbeat's cool-down for this person, up to 7 days
	Snooze Feedback = "snooze" // nothing speaks to this person unasked for a while
)

// Card is one thing that a heartbeat, or a digest of several, told one person, and what they said of it.
type Card struct {
	ID        string    `json:"id"`
	Person    string    `json:"person"`
	Heartbeat string    `json:"heartbeat"`         // "" for a digest
	Digest    []string  `json:"digest,omitempty"`  // the heartbeats that a digest tells of
	Once      bool      `json:"once,omitempty"`    // none of them comes again, so that there can be no less of it; set by [AddCard]
	Address   string    `json:"address"`           // where it stands
	Session   string    `json:"session"`           // of the conversation there
	Text      string    `json:"text"`              // what was told, as it is shown again when the card changes
	Outside   bool      `json:"outside,omitempty"` // text of strangers was before whoever wrote it
	Tick      time.Time `json:"tick"`              // the tick that woke the run which told it
	Told      time.Time `json:"told"`

	Said   Feedback  `json:"said,omitempty"` // "" until the person says something
	SaidAt time.Time `json:"said_at,omitzero"`
	Span   Span      `json:"span,omitempty"`   // of a snooze
	Until  time.Time `json:"until,omitzero"`   // the end of a snooze
	Steps  int       `json:"steps,omitempty"`  // by which it changed [Taste.Less]
	Answer string    `json:"answer,omitempty"` // what the person was told that it changes
	// StepsOf is what Steps is, of each heartbeat of a digest.
	StepsOf map[string]int `json:"steps_of,omitempty"`
}

// heartbeats are those of which the card tells.
func (c Card) heartbeats() []string {
	if c.Heartbeat != "" {
		return []string{c.Heartbeat}
	}
	return c.Digest
}

func (c Card) stepsOf(heartbeat string) int {
	if c.Heartbeat != "" {
		return c.Steps
	}
	return c.StepsOf[heartbeat]
}

func (c *Card) setSteps(heartbeat string, steps int) {
	if c.Heartbeat != "" {
		c.Steps = steps
		return
	}
	if c.StepsOf == nil {
		c.StepsOf = map[string]int{}
	}
	c.StepsOf[heartbeat] = steps
}

// comesOnce reports whether a heartbeat wakes but once. Of one that there is not any more it is not known.
func comesOnce(tx memory.Tx, heartbeat string) (bool, error) {
	h, found, err := find(tx, heartbeat)
	return found && h.wakesOnce(), err
}

// AddCard keeps a card, gives it an id, and forgets those that are too old to be judged.
func AddCard(tx memory.Tx, c Card) (Card, error) {
	old := cardID(c.Told.Add(-cardsFor), "")
	var gone []string
	err := tableCards.Table(tx).Scan("", func(key string, _ []byte) error {
		if key >= old {
			return memory.ErrStop
		}
		gone = append(gone, key)
		return nil
	})
	for _, key := range gone {
		err = errors.Join(err, tableCards.Delete(tx, key))
	}
	c.ID = cardID(c.Told, strings.ToLower(rand.Text()[:10]))
	c.Tick, c.Told = c.Tick.UTC(), c.Told.UTC()
	c.Once = true
	for _, heartbeat := range c.heartbeats() {
		once, e := comesOnce(tx, heartbeat)
		c.Once, err = c.Once && once, errors.Join(err, e)
	}
	if err == nil {
		err = c.put(tx)
	}
	if err != nil {
		return Card{}, fmt.Errorf("keep what heartbeat %s told %s: %w", strings.Join(c.heartbeats(), ", "), c.Person, err)
	}
	return c, nil
}

// CardPrefix begins the id of every card, and of nothing else that people decide about: the ids of those have no zeros.
const CardPrefix = "n0"

// cardID is of an instant in microseconds, which begins with a zero for the next two thousand years.
func cardID(told time.Time, suffix string) string {
	return fmt.Sprintf("n%014x%s", max(0, told.UnixMicro()), suffix)
}

func (c Card) put(tx memory.Tx) error { return tableCards.Put(tx, c.ID, c) }

// KeepAnswer keeps with a card what its person was told that their feedback changes.
func KeepAnswer(tx memory.Tx, c Card, answer string) error {
	c.Answer = answer
	if err := c.put(tx); err != nil {
		return fmt.Errorf("keep the answer on notify card %s: %w", c.ID, err)
	}
	return nil
}

// LoadCard gives the card of that id, as long as it can be judged.
func LoadCard(tx memory.Tx, id string) (c Card, found bool, err error) {
	if id == "" || len(id) > memory.MaxID {
		return Card{}, false, nil
	}
	if c, found, err = tableCards.Get(tx, id); err != nil {
		return Card{}, false, fmt.Errorf("load notify card %s: %w", id, err)
	}
	return c, found, nil
}

// LastCard gives the newest card of a person's, of the heartbeat named or of any for "". That may be a digest, which tells of
// others as well.
func LastCard(tx memory.Tx, person, heartbeat string) (c Card, found bool, err error) {
	err = tableCards.ScanBack(tx, "", func(_ string, one Card) error {
		if one.Person != person || heartbeat != "" && !slices.Contains(one.heartbeats(), heartbeat) {
			return nil
		}
		c, found = one, true
		return memory.ErrStop
	})
	if err != nil {
		return Card{}, false, fmt.Errorf("look for what %s was told last: %w", person, err)
	}
	return c, found, nil
}

// Cards gives the cards for which want is true, oldest first.
func Cards(tx memory.Tx, want func(Card) bool) ([]Card, error) {
	var list []Card
	err := tableCards.Scan(tx, "", func(_ string, c Card) error {
		if want(c) {
			list = append(list, c)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list notify cards: %w", err)
	}
	return list, nil
}

// RemoveCards takes away the cards of a session, and gives their ids. What they changed stays.
func RemoveCards(tx memory.Tx, session string) (ids []string, err error) {
	return removeCards(tx, func(c Card) bool { return c.Session == session })
}

func removeCards(tx memory.Tx, want func(Card) bool) (ids []string, err error) {
	list, err := Cards(tx, want)
	for _, c := range list {
		ids = append(ids, c.ID)
		err = errors.Join(err, tableCards.Delete(tx, c.ID))
	}
	return ids, err
}

// ForgetPerson takes away all that a person said of being spoken to unasked, and the cards of what they were told.
func ForgetPerson(tx memory.Tx, person string) (removed int, err error) {
	ids, err := removeCards(tx, func(c Card) bool { return c.Person == person })
	if err != nil {
		return len(ids), err
	}
	removed = len(ids)
	a, err := LoadAttention(tx, person)
	if err == nil && !a.empty() {
		removed++
	}
	of, err2 := PersonOf(tx, person)
	if err = errors.Join(err, err2); err != nil {
		return removed, err
	}
	return removed, errors.Join(tableAttention.Delete(tx, of), tx.Due().Remove(DigestPrefix+of))
}

// The errors of [Judge], besides [ErrSpan]. Nothing is changed by a call that returns one.
var (
	ErrNoCard   = errors.New("there is no such message any more")
	ErrNotYours = errors.New("it was said to somebody else")
	ErrOnce     = errors.New("it comes but once, so that there can be no less of it")
	ErrFeedback = errors.New("that is no feedback; it is useful, less or snooze")
)

// Check refuses feedback that is none, with [ErrFeedback], and a snooze for a span that is none, with [ErrSpan].
func (f Feedback) Check(span Span) error {
	switch f {
	case Useful, Less:
		return nil
	case Snooze:
		if !slices.Contains(Spans(), span) {
			return ErrSpan
		}
		return nil
	}
	return ErrFeedback
}

// Judged is what came of feedback.
type Judged struct {
	Card   Card
	Again  bool     // they had said that before, and nothing was changed
	Lifted bool     // a snooze that they had asked for before on the same card is over
	Comes  bool     // the card was of a reminder, which comes again when the snooze ends
	Leeway []Leeway // of each heartbeat of which the card tells
}

// Leeway is how far a heartbeat lets a person be.
type Leeway struct {
	Heartbeat string
	Least     time.Duration // how long at least; 0 when they did not ask for less
	Bounded   bool          // there was no step left: Least is as it was before
	Back      bool          // a step was taken back
	Speaking  time.Time     // when it may speak to them again; zero when it may now
}

// Judge takes what a person says of a card, on whose clocks zone is. Each card has one feedback: what is said later of the
// same card takes the place of what was said before, with all that it changed. A clock that runs must be told by
// [Clock.Look] after the transaction.
func Judge(tx memory.Tx, id, person string, said Feedback, span Span, now time.Time, zone *time.Location) (Judged, error) {
	if err := said.Check(span); err != nil {
		return Judged{}, err
	}
	card, found, err := LoadCard(tx, id)
	switch {
	case err != nil:
		return Judged{}, err
	case !found:
		return Judged{}, ErrNoCard
	case card.Person != person:
		return Judged{}, ErrNotYours
	case card.Once && said == Less:
		return Judged{}, ErrOnce
	}
	o := opinion{said: said, now: now}
	for _, heartbeat := range card.heartbeats() {
		about, err := aboutOf(tx, person, heartbeat, zone, now)
		if err != nil {
			return Judged{}, err
		}
		o.of = append(o.of, about)
	}
	if said == Snooze {
		if o.until, err = span.End(now, zone); err != nil {
			return Judged{}, err
		}
		o.span = span
	}
	j := Judged{Card: card}
	err = changeAttention(tx, person, now, func(a *Attention) { j.judge(a, o) })
	if err == nil && !j.Again {
		err = j.Card.put(tx)
		if err == nil {
			j.Comes, err = snoozeReminder(tx, card, j.Card, now)
		}
	}
	if err != nil {
		return Judged{}, fmt.Errorf("judge notify card %s: %w", id, err)
	}
	return j, nil
}

// opinion is feedback, with what must be known to carry it out.
type opinion struct {
	said  Feedback
	span  Span
	until time.Time // the end of a snooze
	now   time.Time
	of    []about
}

// about is a heartbeat of which feedback is given.
type about struct {
	heartbeat string
	once      bool          // there can be no less of it
	first     time.Duration // the cool-down of a first step of less
	woke      time.Time     // the tick that last woke the person
}

func aboutOf(tx memory.Tx, person, heartbeat string, zone *time.Location, now time.Time) (of about, err error) {
	of.heartbeat = heartbeat
	if of.once, err = comesOnce(tx, heartbeat); err != nil {
		return of, err
	}
	if of.first, err = firstCooldown(tx, heartbeat, zone, now); err != nil {
		return of, err
	}
	last, _, err := LastCard(tx, person, heartbeat)
	of.woke = last.Tick
	return of, err
}

// judge puts feedback in the place of what was said before.
func (j *Judged) judge(a *Attention, o opinion) {
	c := &j.Card
	j.Again = c.Said == o.said && c.Span == o.span && (o.said != Snooze || o.now.Before(c.Until) && a.Snoozed.Equal(c.Until))
	before := c.Said
	if !j.Again {
		if c.Said == Snooze && a.Snoozed.Equal(c.Until) { // unless another has taken its place
			j.Lifted = o.now.Before(a.Snoozed)
			a.Snoozed = time.Time{}
		}
		c.Said, c.Span, c.Until, c.SaidAt = o.said, o.span, o.until, o.now.UTC()
		if o.said == Snooze {
			a.Snoozed, j.Lifted = o.until, false
		}
	}
	for _, of := range o.of {
		l := Leeway{Heartbeat: of.heartbeat}
		taste := a.taste(of.heartbeat)
		if !j.Again {
			c.takeBack(taste, of, before)
			l.Bounded = c.take(taste, of)
		}
		l.Back = c.stepsOf(of.heartbeat) < 0
		if taste.Less > 0 && taste.Woke.IsZero() {
			taste.Woke = of.woke
		}
		l.Least, l.Speaking = taste.Cooldown(), a.Hold(of.heartbeat, o.now, o.now).Until
		j.Leeway = append(j.Leeway, l)
	}
}

// take changes what the person makes of a heartbeat by what they say of the card. bounded says that they asked for less of what
// cannot be less.
func (c *Card) take(taste *Taste, of about) (bounded bool) {
	switch {
	case c.Said == Useful:
		taste.Useful++
		c.setSteps(of.heartbeat, taste.step(-1, of.first))
	case c.Said == Less && !of.once:
		taste.Asked++
		c.setSteps(of.heartbeat, taste.step(1, of.first))
		return c.stepsOf(of.heartbeat) == 0
	}
	return false
}

// takeBack makes good what was said of the card before.
func (c *Card) takeBack(taste *Taste, of about, said Feedback) {
	switch {
	case said == Useful:
		taste.Useful = max(0, taste.Useful-1)
	case said == Less && !of.once:
		taste.Asked = max(0, taste.Asked-1)
	}
	taste.step(-c.stepsOf(of.heartbeat), of.first)
	taste.Less = min(taste.Less, taste.Asked) // what asked for a step may be taken back after the step was
	c.setSteps(of.heartbeat, 0)
}

// firstCooldown is the cool-down that the first *less of this* makes: twice what lies between two wakes now, which is the
// condition's cool-down or the time between two ticks, and at least an hour.
func firstCooldown(tx memory.Tx, heartbeat string, zone *time.Location, now time.Time) (time.Duration, error) {
	h, found, err := find(tx, heartbeat)
	if err != nil || !found {
		return leastLess, err
	}
	between := h.Condition.Cooldown
	name := h.Zone
	if name == "" {
		name = zone.String()
	}
	if timed, err := h.timed(name); err == nil {
		between = max(between, timed.gap(now))
	}
	return min(max(2*between, leastLess), mostLess), nil
}

// gap is the shortest time between two of the next instants.
func (s Schedule) gap(now time.Time) time.Duration {
	next := s.Upcoming(now, 4)
	gap := time.Duration(0)
	for i := 1; i < len(next); i++ {
		if between := next[i].Sub(next[i-1]); gap == 0 || between < gap {
			gap = between
		}
	}
	return gap
}
