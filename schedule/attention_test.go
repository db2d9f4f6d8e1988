package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"nudge/memory"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	location, err := loadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return location
}

func TestTomorrowIsNineOfTheNextDay(t *testing.T) {
	for _, row := range []struct{ zone, now, want string }{
		{"UTC", "2026-11-30T00:00:00Z", "2026-12-01T09:00:00Z"},
		{"UTC", "2026-11-30T08:59:59Z", "2026-12-01T09:00:00Z"},
		{"UTC", "2026-11-30T09:00:00Z", "2026-12-01T09:00:00Z"},
		{"UTC", "2026-12-31T23:59:59.999Z", "2027-01-01T09:00:00Z"},
		{"Europe/Berlin", "2026-11-30T22:30:00Z", "2026-12-01T08:00:00Z"},
		{"Europe/Berlin", "2026-11-30T23:30:00Z", "2026-12-02T08:00:00Z"}, // it is the 1st there
		{"Europe/Berlin", "2026-03-28T11:00:00Z", "2026-03-29T07:00:00Z"}, // a day of 23 hours
		{"Europe/Berlin", "2026-10-24T11:00:00Z", "2026-10-25T08:00:00Z"}, // and one of 25
		{"America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T14:00:00Z"},
		{"America/Santiago", "2026-09-05T12:00:00Z", "2026-09-06T12:00:00Z"}, // midnight is left out
		{"Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T22:00:00Z"},
		{"Asia/Kolkata", "2026-11-30T18:29:59Z", "2026-12-01T03:30:00Z"},
		{"Asia/Kolkata", "2026-11-30T18:30:00Z", "2026-12-02T03:30:00Z"},
		{"Pacific/Apia", "2011-12-29T20:00:00Z", "2011-12-30T19:00:00Z"}, // the 30th is left out
	} {
		now, err := time.Parse(time.RFC3339, row.now)
		if err != nil {
			t.Fatal(err)
		}
		end, err := TillTomorrow.End(now, zone(t, row.zone))
		if got := end.Format(time.RFC3339); err != nil || got != row.want {
			t.Errorf("tomorrow for %s in %s: %s, %v, want %s", row.now, row.zone, got, err, row.want)
		}
	}
}

// TestSpans tries every third hour of a year in zones that change their clocks in many ways.
func TestSpans(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"} {
		z := zone(t, name)
		for now := time.Date(2010, 12, 30, 0, 17, 3, 500, time.UTC); now.Year() < 2012; now = now.Add(3 * time.Hour) {
			end, err := TillTomorrow.End(now, z)
			local, from := end.In(z), now.In(z)
			days := local.YearDay() - from.YearDay()
			if days < 0 {
				days = 1 // over New Year
			}
			skipped := name == "Pacific/Apia" && days == 2 && from.Year() == 2011
			if err != nil || local.Hour() != 9 || local.Minute() != 0 || days != 1 && !skipped {
				t.Fatalf("tomorrow for %s in %s is %s, %v", from, name, local, err)
			}
			for span, length := range map[Span]time.Duration{AnHour: time.Hour, FourHours: 4 * time.Hour} {
				if end, err := span.End(now, z); err != nil || end.Sub(now) < length || end.Sub(now) > length+time.Second {
					t.Fatalf("%s from %s ends at %s, %v", span, now, end, err)
				}
			}
		}
	}
	if _, err := Span("2h").End(time.Now(), time.UTC); !errors.Is(err, ErrSpan) {
		t.Errorf("a span of 2h: %v", err)
	}
}

// desk is one person's cards in a store in memory.
type desk struct {
	*testing.T
	store memory.Store
	now   time.Time
	cards []string
}

const ann, bob = "terminal:ann", "terminal:bob"

func newDesk(t *testing.T, beats ...Heartbeat) *desk {
	d := &desk{T: t, store: newLedger(), now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	d.update(func(tx memory.Tx) error {
		for _, h := range beats {
			if err := Save(tx, h, d.now); err != nil {
				return err
			}
		}
		return nil
	})
	return d
}

func (d *desk) update(fn func(tx memory.Tx) error) {
	d.Helper()
	if err := d.store.Update(context.Background(), fn); err != nil {
		d.Fatal(err)
	}
}

// card tells the person something: a heartbeat does, or a digest of several, with commas between.
func (d *desk) card(heartbeat, person string) (id string) {
	d.Helper()
	var digest []string
	if strings.Contains(heartbeat, ",") {
		heartbeat, digest = "", strings.Split(heartbeat, ",")
	}
	d.update(func(tx memory.Tx) error {
		c, err := AddCard(tx, Card{Person: person, Heartbeat: heartbeat, Digest: digest, Address: person + " home", Session: person + " home", Tick: d.now.Add(-time.Minute), Told: d.now})
		id = c.ID
		return err
	})
	d.cards = append(d.cards, id)
	return id
}

func (d *desk) judge(id string, said Feedback, span Span) (j Judged) {
	d.Helper()
	d.update(func(tx memory.Tx) (err error) {
		j, err = Judge(tx, id, ann, said, span, d.now, time.UTC)
		return err
	})
	return j
}

func (d *desk) attention(person string) (a Attention) {
	d.Helper()
	err := d.store.View(context.Background(), func(tx memory.Tx) (err error) {
		a, err = LoadAttention(tx, person)
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
	return a
}

func TestLessDoublesTheCooldown(t *testing.T) {
	cooled, daily, weekly, often := beat("cooled", "yes"), beat("daily", "yes"), beat("weekly", "yes"), beat("often", "yes")
	cooled.Condition.Cooldown = 6 * time.Hour
	daily.Cron, weekly.Cron, often.Cron = "0 9 * * 1-5", "0 9 * * 1", "*/5 * * * *"
	d := newDesk(t, cooled, daily, weekly, often)
	hours := func(h ...int) (all []time.Duration) {
		for _, h := range h {
			all = append(all, time.Duration(h)*time.Hour)
		}
		return all
	}
	for name, want := range map[string][]time.Duration{
		"cooled": hours(12, 24, 48, 96, 168, 168), "daily": hours(48, 96, 168, 168), "weekly": hours(168, 168),
		"often": hours(1, 2, 4, 8, 16, 32, 64, 128, 168, 168), "unknown": hours(1, 2),
	} {
		for i, cooldown := range want {
			j := d.judge(d.card(name, ann), Less, "")
			bounded := i > 0 && cooldown == want[i-1]
			if j.Leeway[0].Least != cooldown || j.Leeway[0].Bounded != bounded || j.Again {
				t.Errorf("%s, less for time %d: %+v, want %s", name, i+1, j, cooldown)
			}
			if want := d.now.Add(cooldown - time.Minute); !j.Leeway[0].Speaking.Equal(want) {
				t.Errorf("%s, less for time %d: it speaks again at %s, want %s", name, i+1, j.Leeway[0].Speaking, want)
			}
		}
		for i := range want {
			if want[i] == 168*time.Hour && i > 0 && want[i-1] == want[i] {
				continue // there was no step to be taken back
			}
			d.judge(d.card(name, ann), Useful, "")
		}
		if taste := d.attention(ann).Tastes[name]; taste.Cooldown() != 0 || taste.Useful == 0 {
			t.Errorf("%s, after as many times useful: %+v", name, taste)
		}
	}
}

func TestACardHasOneFeedbackThatMayChange(t *testing.T) {
	d := newDesk(t, beat("disk", "yes"))
	id := d.card("disk", ann)
	if j := d.judge(id, Less, ""); j.Again || j.Leeway[0].Least != time.Hour {
		t.Errorf("less: %+v", j)
	}
	before := d.attention(ann)
	if j := d.judge(id, Less, ""); !j.Again || j.Leeway[0].Least != time.Hour || !reflect.DeepEqual(d.attention(ann), before) {
		t.Errorf("less, again: %+v", j)
	}
	if j := d.judge(id, Useful, ""); j.Again || j.Leeway[0].Least != 0 || d.attention(ann).Tastes["disk"].Useful != 1 {
		t.Errorf("useful instead: %+v", j)
	}
	if j := d.judge(id, Snooze, FourHours); j.Again || !j.Leeway[0].Speaking.Equal(d.now.Add(4*time.Hour)) || d.attention(ann).Tastes["disk"] != nil {
		t.Errorf("snooze instead: %+v, %+v", j, d.attention(ann))
	}
	if j := d.judge(id, Snooze, FourHours); !j.Again {
		t.Errorf("the same snooze: %+v", j)
	}
	if j := d.judge(id, Snooze, TillTomorrow); j.Again || j.Lifted || !d.attention(ann).Snoozed.Equal(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("another snooze: %+v", j)
	}
	if j := d.judge(id, Less, ""); !j.Lifted || !d.attention(ann).Snoozed.IsZero() || j.Card.Said != Less {
		t.Errorf("less instead of the snooze: %+v", j)
	}
	d.judge(id, Snooze, AnHour)
	other := d.card("disk", ann)
	d.judge(other, Snooze, FourHours)
	if j := d.judge(id, Useful, ""); j.Lifted || d.attention(ann).Snoozed.IsZero() {
		t.Errorf("what another card asked for is lifted: %+v", j)
	}
	d.now = d.now.Add(5 * time.Hour)
	if j := d.judge(other, Snooze, FourHours); j.Again || !j.Leeway[0].Speaking.Equal(d.now.Add(4*time.Hour)) {
		t.Errorf("the same snooze, when the first is over: %+v", j)
	}
}

// TestAChangedFeedbackTakesBackItsSteps, both ways.
func TestAChangedFeedbackTakesBackItsSteps(t *testing.T) {
	d := newDesk(t, beat("disk", "yes"))
	one, two, three := d.card("disk", ann), d.card("disk", ann), d.card("disk", ann)
	for i, row := range []struct {
		card string
		said Feedback
		want int
	}{{one, Less, 1}, {two, Less, 2}, {three, Useful, 1}, {three, Snooze, 2}, {two, Snooze, 1}, {three, Useful, 0}, {three, Less, 2}, {one, Useful, 0}} {
		d.judge(row.card, row.said, map[Feedback]Span{Snooze: AnHour}[row.said])
		got := 0
		if taste := d.attention(ann).Tastes["disk"]; taste != nil {
			got = taste.Less
		}
		if got != row.want {
			t.Fatalf("%d, %s: %d steps are in force, want %d", i, row.said, got, row.want)
		}
	}
}

func TestOnlyThePersonJudges(t *testing.T) {
	d := newDesk(t, beat("disk", "yes"))
	id := d.card("disk", bob)
	for _, row := range []struct {
		id   string
		said Feedback
		span Span
		want error
	}{{id, Less, "", ErrNotYours}, {"n1", Less, "", ErrNoCard}, {"", Less, "", ErrNoCard}, {id, "more", "", ErrFeedback}, {id, Snooze, "2h", ErrSpan}, {id, Snooze, "", ErrSpan}} {
		err := d.store.Update(context.Background(), func(tx memory.Tx) error {
			_, err := Judge(tx, row.id, ann, row.said, row.span, d.now, time.UTC)
			if !errors.Is(err, row.want) {
				t.Errorf("%s %s of %q: %v, want %v", row.said, row.span, row.id, err, row.want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(d.attention(ann).Tastes)+len(d.attention(bob).Tastes) != 0 {
		t.Error("refused feedback changed something")
	}
}

func TestCardsAreForgottenInTime(t *testing.T) {
	d := newDesk(t)
	old := d.card("disk", ann)
	d.now = d.now.Add(89 * 24 * time.Hour)
	if d.card("disk", ann); d.judge(old, Useful, "").Again {
		t.Error("an old card cannot be judged")
	}
	d.now = d.now.Add(2 * 24 * time.Hour)
	d.card("mail", bob)
	err := d.store.View(context.Background(), func(tx memory.Tx) error {
		if _, found, err := LoadCard(tx, old); found || err != nil {
			t.Errorf("a card is there after its time: %v", err)
		}
		for want, of := range map[string][2]string{d.cards[1]: {ann, ""}, d.cards[2]: {bob, "mail"}} {
			if c, found, err := LastCard(tx, of[0], of[1]); !found || err != nil || c.ID != want {
				t.Errorf("the last card of %v is %+v, %v", of, c, err)
			}
		}
		if _, found, err := LastCard(tx, bob, "disk"); found || err != nil {
			t.Errorf("bob was told of the disk: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestForgetPerson(t *testing.T) {
	d := newDesk(t, beat("disk", "yes"))
	d.judge(d.card("disk", ann), Less, "")
	d.card("disk", ann)
	d.card("disk", bob)
	d.update(func(tx memory.Tx) error {
		n, err := ForgetPerson(tx, ann)
		if n != 3 {
			t.Errorf("%d things were forgotten", n)
		}
		return err
	})
	d.update(func(tx memory.Tx) error {
		left, err := Cards(tx, func(Card) bool { return true })
		if len(left) != 1 || left[0].Person != bob || len(d.store.(*ledger).rows) == 0 {
			t.Errorf("left: %+v", left)
		}
		if ids, err := RemoveCards(tx, bob+" home"); len(ids) != 1 || ids[0] != left[0].ID || err != nil {
			t.Errorf("of a session these cards were removed: %q, %v", ids, err)
		}
		return err
	})
	for key := range d.store.(*ledger).rows {
		if want := string(tableHeartbeats) + "\x00disk"; key != want && key != string(tableStates)+"\x00disk" {
			t.Errorf("%q is left", key)
		}
	}
}

// TestWhatComesOnce is known of a card, so that nobody asks for less of it.
func TestWhatComesOnce(t *testing.T) {
	first, often := beat("first", "yes"), beat("often", "yes")
	first.MaxTicks = 1
	d := newDesk(t, first, often, reminder("08:00"))
	for told, want := range map[string]bool{"first": true, "often": false, "call": true, "gone": false, "call,first": true, "call,often": false} {
		id := d.card(told, ann)
		d.update(func(tx memory.Tx) error {
			c, _, err := LoadCard(tx, id)
			if c.Once != want {
				t.Errorf("%s comes once: %v", told, c.Once)
			}
			if _, err := Judge(tx, id, ann, Less, "", d.now, time.UTC); errors.Is(err, ErrOnce) != want {
				t.Errorf("less of %s: %v", told, err)
			}
			return err
		})
	}
	if got := d.attention(ann).Tastes; got["call"] != nil || got["first"] != nil || got["often"].Less != 2 {
		t.Errorf("what was asked for is %+v", got)
	}
}

// TestFeedbackWalk holds random feedback against a plain model: what counts of a card is what was said of it last.
func TestFeedbackWalk(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		d := newDesk(t, beat("disk", "yes"), beat("mail", "yes"))
		last := map[string]Feedback{}
		for step := range 60 {
			if len(d.cards) == 0 || random.IntN(3) == 0 {
				d.card([]string{"disk", "mail", "disk,mail"}[random.IntN(3)], ann)
			}
			d.now = d.now.Add(time.Duration(random.IntN(3)) * 40 * time.Minute)
			id := d.cards[random.IntN(len(d.cards))]
			said := []Feedback{Useful, Less, Snooze}[random.IntN(3)]
			span := Spans()[random.IntN(3)]
			before := d.attention(ann)
			j := d.judge(id, said, span)
			if j.Again {
				after := d.attention(ann)
				before.tidy(d.now)
				if last[id] != said || fmt.Sprint(len(before.Tastes), before.Snoozed) != fmt.Sprint(len(after.Tastes), after.Snoozed) {
					t.Fatalf("seed %d, step %d: again, after %q: %+v", seed, step, last[id], j)
				}
			}
			last[id] = said
			checkWalk(t, fmt.Sprintf("seed %d, step %d", seed, step), d, last)
			if said == Snooze && !d.attention(ann).SnoozedBy("disk", d.now).After(d.now) {
				t.Fatalf("seed %d, step %d: a snooze holds nothing", seed, step)
			}
		}
	}
}

func checkWalk(t *testing.T, at string, d *desk, last map[string]Feedback) {
	t.Helper()
	useful := map[string]int{}
	less := map[string]int{}
	err := d.store.View(context.Background(), func(tx memory.Tx) error {
		cards, err := Cards(tx, func(Card) bool { return true })
		for _, c := range cards {
			if c.Said != last[c.ID] {
				t.Fatalf("%s: card %s says %q, want %q", at, c.ID, c.Said, last[c.ID])
			}
			for _, heartbeat := range c.heartbeats() {
				switch c.Said {
				case Useful:
					useful[heartbeat]++
				case Less:
					less[heartbeat]++
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for heartbeat, taste := range d.attention(ann).Tastes {
		if taste.Useful != useful[heartbeat] || taste.Asked != less[heartbeat] || taste.Less < 0 || taste.Cooldown() > mostLess || taste.Less > less[heartbeat] {
			t.Fatalf("%s: %s is %+v with %d times useful and %d times less", at, heartbeat, taste, useful[heartbeat], less[heartbeat])
		}
		useful[heartbeat] = 0
	}
	for heartbeat, n := range maps.All(useful) {
		if n > 0 {
			t.Fatalf("%s: %d times %s was useful, and nothing says so", at, n, heartbeat)
		}
	}
}
