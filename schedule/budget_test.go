package schedule

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

func budget(t *testing.T, hours string, dailyCap int, digest string) Budget {
	t.Helper()
	d, err := ParseDigest(digest)
	if err != nil {
		t.Fatal(err)
	}
	b := Budget{Quiet: quiet(t, hours), DailyCap: dailyCap, Digest: d}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	return b
}

// herald says what the rig's runs tell, as far as the budget admits it, and its digests.
type herald struct {
	*rig
	zones map[string]*time.Location

	mu      sync.Mutex
	said    map[string][]time.Time // by person
	digests map[string][]digestTold
}

type digestTold struct {
	at   time.Time
	text string
}

func newHerald(t *testing.T, b Budget) *herald {
	h := &herald{rig: newRig(t), zones: map[string]*time.Location{}, said: map[string][]time.Time{}, digests: map[string][]digestTold{}}
	h.config.Budget = b
	h.config.Zone = func(person string) string { return h.zoneOf(person).String() }
	h.config.Timers = map[string]func(context.Context, memory.Tx, memory.DueRow) error{DigestPrefix: h.digest}
	h.ends = h.tells
	return h
}

func (h *herald) zoneOf(person string) *time.Location {
	if zone := h.zones[person]; zone != nil {
		return zone
	}
	return time.UTC
}

func (h *herald) digest(_ context.Context, tx memory.Tx, row memory.DueRow) error {
	person, err := DigestFor(tx, row)
	if err != nil {
		return err
	}
	told, err := h.config.Budget.TakeDigest(tx, row, h.zoneOf(person), h.now())
	if err == nil && told.Text != "" {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.digests[person] = append(h.digests[person], digestTold{h.now(), told.Text})
	}
	return err
}

// heardOf gives when a person was spoken to, and their digests.
func (h *herald) heardOf(person string) (said []time.Time, digests []digestTold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.said[person]), slices.Clone(h.digests[person])
}

func (h *herald) digestsOf(person string) []digestTold {
	_, digests := h.heardOf(person)
	return digests
}

func (h *herald) saidTo(person string) int {
	said, _ := h.heardOf(person)
	return len(said)
}

// tells is a run that says one thing; urgent, if its heartbeat may break quiet hours.
func (h *herald) tells(ctx context.Context, w Waking) (Ended, error) {
	err := h.store.Update(ctx, func(tx memory.Tx) error {
		hold, err := h.config.Budget.Admit(tx, Unasked{
			Person: w.Person, Zone: h.zoneOf(w.Person), Heartbeat: w.Heartbeat, Key: w.Heartbeat, Episode: w.Episode,
			Text: "this is " + w.Heartbeat, BreaksQuiet: w.BreakQuiet,
		}, h.now())
		if err == nil && !hold.Holds() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.said[w.Person] = append(h.said[w.Person], h.now())
		}
		return err
	})
	return Ended{OK: true, ModelCalls: 1}, err
}

// TestQuietHoursWakeNobodyAndAreToldOnce: ticks in them are not queued, what is still so wakes at the first tick after
// them, and the digest tells the rest in one message.
func TestQuietHoursWakeNobodyAndAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerald(t, budget(t, "22:00-07:00", 0, ""))
		still, gone, often, urgent := beat("still", "still"), beat("gone", "gone"), beat("often", "yes"), beat("urgent", "yes")
		still.Cron, gone.Cron, often.Cron, urgent.Cron = "10 * * * *", "5 * * * *", "*/30 * * * *", "0 3 * * *"
		often.Condition, urgent.Condition, urgent.BreakQuiet = Spec{Kind: KindAlways}, Spec{Kind: KindAlways}, true
		h.look("still", func() (Finding, error) { return Finding{True: h.now().Hour() >= 2, Evidence: "disk\nat 95 %"}, nil })
		h.look("gone", func() (Finding, error) { return Finding{True: h.now().Hour() == 4}, nil })
		h.save(still, gone, often, urgent)
		h.start()
		h.pass(6*time.Hour + 59*time.Minute + 59*time.Second)
		h.expect("wakes in quiet hours", fmt.Sprint(h.woken("still"), h.woken("gone"), h.woken("often"), h.woken("urgent")), "map[] map[] map[] map[terminal:ann:1]")
		h.says("often", Quieted, "quiet hours until Saturday 1 January 2000 at 07:00 UTC")
		h.expect("digests before the end", len(h.digestsOf(ann)), 0)
		h.pass(time.Second)
		if got := h.digestsOf(ann); len(got) != 1 || got[0].text != strings.Join([]string{
			"Held back until now:",
			"- often, 00:30 (13 times until 06:30; in your quiet hours), the check saw: seen",
			"- still, 02:10 (5 times until 06:10; in your quiet hours), the check saw: disk at 95 %",
			"- gone, 04:05 (in your quiet hours): Look after gone.",
		}, "\n") {
			t.Errorf("the digests are %+v", got)
		}
		h.pass(11 * time.Minute)
		h.expect("wakes at the first tick after them", fmt.Sprint(h.woken("still"), h.woken("gone"), h.woken("often")), "map[terminal:ann:1] map[] map[terminal:ann:1]")
		if w := h.allWakes(); w[len(w)-1].Episode != "2000-01-01T02:10:00Z" {
			t.Errorf("the episode of which the digest told has become another: %+v", w[len(w)-1])
		}
		h.pass(13 * time.Hour)
		h.expect("digests of the day", len(h.digestsOf(ann)), 1)
		h.stop()
	})
}

// TestWhatIsToldMeanwhileIsNotInTheDigest: the digest comes in the evening, and the ping of the morning has told it.
func TestWhatIsToldMeanwhileIsNotInTheDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerald(t, budget(t, "22:00-07:00", 0, "18:00"))
		still := beat("still", "yes")
		still.Cron = "10 * * * *"
		h.save(still)
		h.start()
		h.pass(24 * time.Hour)
		h.expect("wakes", h.woken("still"), map[string]int{ann: 1})
		h.expect("digests", len(h.digestsOf(ann)), 0)
		h.stop()
	})
}

func TestTheDailyCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerald(t, budget(t, "", 3, "18:00"))
		h.zones[ann] = zone(t, "Asia/Tokyo") // nine hours ahead: her date begins at 15:00
		one, other := beat("one", "yes"), beat("other", "yes")
		one.Cron, other.Cron, other.BreakQuiet = "0 * * * *", "0 * * * *", true
		one.Zone, other.Zone = "UTC", "UTC"
		one.Condition, other.Condition = Spec{Kind: KindAlways}, Spec{Kind: KindAlways}
		one.For, other.For = []string{ann, bob}, []string{ann}
		h.save(one, other)
		h.start()
		h.pass(14*time.Hour + time.Minute) // 23:01 for her
		h.expect("said to her", h.saidTo(ann), 3)
		h.expect("said to bob", h.saidTo(bob), 3)
		h.says("other", Capped, "has heard as much as the daily cap allows, until Sunday 2 January 2000 at 00:00 JST")
		h.pass(time.Hour) // 00:01 on her next date
		h.expect("said to her", h.saidTo(ann), 5)
		if got := h.digestsOf(ann); len(got) != 1 || got[0].at.In(h.zones[ann]).Format("15:04") != "18:00" || !strings.Contains(got[0].text, "over your daily cap") {
			t.Errorf("her digests are %+v", got)
		}
		h.stop()
	})
}

// TestWhatPeopleMakeIsBounded, also where the config has no cap: whoever makes heartbeats that speak each second hears
// so much of them on a date and the rest in the digest. What the config has says what it says.
func TestWhatPeopleMakeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerald(t, Budget{})
		hers, everyones := beat("hers", "yes"), beat("everyones", "yes")
		hers.Cron, everyones.Cron = "@every 1s", "@every 1s"
		hers.By, hers.For, everyones.For = ann, []string{ann}, []string{bob}
		hers.Condition, everyones.Condition = Spec{Kind: KindAlways}, Spec{Kind: KindAlways}
		h.save(hers, everyones)
		h.start()
		h.pass(2*mostMade*time.Second + time.Second/2)
		h.expect("said to her", h.saidTo(ann), mostMade)
		h.expect("said to bob", h.saidTo(bob), 2*mostMade)
		h.says("hers", Capped, "has heard as much as the daily cap allows, until Sunday 2 January 2000 at 00:00 UTC")
		h.stop()
		for cap, want := range map[int]int{0: mostMade, 3: 3, mostMade + 1: mostMade} {
			if got := (Budget{DailyCap: cap}).of(hers).DailyCap; got != want {
				t.Errorf("with a cap of %d it is %d, want %d", cap, got, want)
			}
		}
	})
}

// TestDigestTimes are on the person's own clocks, and never in their quiet hours.
func TestDigestTimes(t *testing.T) {
	for _, row := range []struct{ hours, digest, zone, now, want string }{
		{"", "", "Europe/Berlin", "2026-11-30T12:00:00Z", "2026-12-01T08:00:00Z"},
		{"", "18:00", "Europe/Berlin", "2026-11-30T12:00:00Z", "2026-11-30T17:00:00Z"},
		{"", "18:00", "Europe/Berlin", "2026-11-30T17:00:00Z", "2026-12-01T17:00:00Z"},
		{"", "12:00, 18:00", "UTC", "2026-11-30T12:00:00Z", "2026-11-30T18:00:00Z"},
		{"22:00-07:00", "", "Asia/Kolkata", "2026-11-30T18:00:00Z", "2026-12-01T01:30:00Z"},
		{"22:00-07:00", "18:00", "UTC", "2026-11-30T23:00:00Z", "2026-12-01T18:00:00Z"},
		{"22:00-07:00", "18:00,  after  quiet", "UTC", "2026-11-30T23:00:00Z", "2026-12-01T07:00:00Z"},
		{"22:00-02:30", "", "Europe/Berlin", "2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z"},
		{"22:00-02:30", "", "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T01:00:00Z"},
	} {
		b := budget(t, row.hours, 1, row.digest)
		got := b.digestAt(instant(t, row.now), zone(t, row.zone))
		if !got.Equal(instant(t, row.want)) {
			t.Errorf("digest %q with quiet %q in %s at %s: %s, want %s", row.digest, row.hours, row.zone, row.now, got, row.want)
		}
		if until := b.Quiet.Until(got, zone(t, row.zone)); !until.IsZero() {
			t.Errorf("digest %q with quiet %q comes in quiet hours", row.digest, row.hours)
		}
	}
}

func TestBadBudgetsAreRefused(t *testing.T) {
	for _, text := range []string{"later", "18", "18:00;19:00", "25:00", "after"} {
		if _, err := ParseDigest(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	for key, b := range map[string]Budget{
		"attention.daily_cap": {DailyCap: -1},
		"attention.digest":    {Digest: Digest{afterQuiet: true}},
		"attention.digest: ":  {Quiet: quiet(t, "22:00-07:00"), Digest: Digest{at: []int{6 * 60}}},
	} {
		if err := b.Check(); err == nil || !strings.HasPrefix(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestADigestWaitsOutASnooze, and what speaks besides heartbeats is kept in it too.
func TestADigestWaitsOutASnooze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerald(t, budget(t, "22:00-07:00", 0, ""))
		h.start()
		h.update(func(tx memory.Tx) error {
			for _, text := range []string{"it ran", "another ran"} {
				hold, err := h.config.Budget.Admit(tx, Unasked{Person: ann, Zone: time.UTC, Text: text}, h.now())
				if err != nil || hold.By != InQuiet {
					t.Errorf("%+v, %v", hold, err)
				}
			}
			return nil
		})
		h.pass(6 * time.Hour)
		h.snooze(ann, 4*time.Hour)
		h.pass(4*time.Hour - time.Second)
		h.expect("digests", len(h.digestsOf(ann)), 0)
		h.pass(2 * time.Second)
		if got := h.digestsOf(ann); len(got) != 1 || got[0].text != "Held back until now:\n- 00:00 (in your quiet hours): it ran\n- 00:00 (in your quiet hours): another ran" {
			t.Errorf("the digests are %+v", got)
		}
		h.expect("what is kept of her", h.attention(ann).empty(), true)
		h.stop()
	})
}

// TestALateDigestIsNotToldInQuietHours: the program did not run when it fell due.
func TestALateDigestIsNotToldInQuietHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerald(t, budget(t, "22:00-07:00", 1, "18:00"))
		often := beat("often", "yes")
		often.Cron, often.Condition = "0 9,10 * * *", Spec{Kind: KindAlways}
		h.save(often)
		h.start()
		h.pass(17 * time.Hour)
		h.stop()
		time.Sleep(6 * time.Hour) // until 23:00
		h.start()
		h.pass(7*time.Hour + 59*time.Minute)
		h.expect("digests in quiet hours", len(h.digestsOf(ann)), 0)
		h.pass(2 * time.Minute)
		h.expect("digests after them", len(h.digestsOf(ann)), 1)
		h.stop()
	})
}

// TestALateAnswerIsHeldBackByASnooze until that ends, or is lifted; nothing checks again whether it is still so.
func TestALateAnswerIsHeldBackByASnooze(t *testing.T) {
	for _, lifted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := newHerald(t, Budget{})
			h.start()
			h.snooze(ann, 4*time.Hour)
			h.update(func(tx memory.Tx) error {
				hold, err := h.config.Budget.Admit(tx, Unasked{Person: ann, Zone: time.UTC, Text: "it ran"}, h.now())
				if hold.By != BySnooze {
					t.Errorf("%+v", hold)
				}
				return err
			})
			h.pass(time.Hour)
			h.expect("digests in the snooze", len(h.digestsOf(ann)), 0)
			if lifted {
				h.snooze(ann, 0)
			} else {
				h.pass(3 * time.Hour)
			}
			h.pass(time.Second)
			if got := h.digestsOf(ann); len(got) != 1 || got[0].text != "Held back until now:\n- 00:00 (while you had snoozed): it ran" {
				t.Errorf("the digests are %+v", got)
			}
			h.stop()
		})
	}
}

func TestADigestIsBounded(t *testing.T) {
	var a Attention
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i := range 3 * mostWithheld {
		a.withhold(Withheld{Heartbeat: fmt.Sprint("h", i%(2*mostWithheld)), Text: strings.Repeat("long ", 1000), First: now, Last: now, Count: 1})
	}
	text := a.digest(now, time.UTC)
	if n := strings.Count(text, "\n- "); n != mostWithheld+1 || !strings.HasSuffix(text, "- and 50 more") || len(text) > mostWithheld*(withheldText+100) {
		t.Errorf("%d lines, %d bytes: …%s", n, len(text), text[len(text)-100:])
	}
}

// TestBudgetWalk lets random heartbeats of people in several zones run for weeks over a change of clocks. Nobody is spoken
// to in quiet hours or beyond the cap, and there is at most one digest on a date.
func TestBudgetWalk(t *testing.T) {
	for range 3 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			b := budget(t, []string{"", "22:00-07:00", "01:30-02:30", "12:00-13:00"}[random.IntN(4)], random.IntN(6), []string{"", "18:00", "09:15"}[random.IntN(3)])
			h := newHerald(t, b)
			people := map[string]string{ann: "Europe/Berlin", bob: "America/New_York", "terminal:cy": "Australia/Lord_Howe"}
			for person, name := range people {
				h.zones[person] = zone(t, name)
			}
			h.set(time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC))
			for i := range 5 {
				one := beat(fmt.Sprint("beat", i), "maybe")
				one.For = nil
				one.Cron = []string{"@every 40m", "7 * * * *", "0 2 * * *", "30 1,9 * * *"}[random.IntN(4)]
				one.Condition.On = []string{OnChange, OnTrue}[random.IntN(2)]
				for person := range people {
					if one.For = append(one.For, person); random.IntN(2) == 0 {
						break
					}
				}
				h.save(one)
			}
			h.look("maybe", func() (Finding, error) { return Finding{True: h.now().Unix()/7200%3 > 0}, nil })
			h.start()
			h.pass(14 * 24 * time.Hour)
			h.stop()
			for person := range people {
				h.bounded(seed, person)
			}
		})
	}
}

// bounded holds what was said to a person against the budget.
func (h *herald) bounded(seed uint64, person string) {
	h.t.Helper()
	b, zone := h.config.Budget, h.zoneOf(person)
	said, digests := map[string]int{}, map[string]int{}
	allSaid, allDigests := h.heardOf(person)
	for _, at := range allSaid {
		if until := b.Quiet.Until(at, zone); !until.IsZero() {
			h.t.Errorf("seed %d: %s was spoken to at %s", seed, person, at.In(zone))
		}
		said[at.In(zone).Format(time.DateOnly)]++
	}
	for date, n := range said {
		if b.DailyCap > 0 && n > b.DailyCap {
			h.t.Errorf("seed %d: %s was spoken to %d times on %s, %+v", seed, person, n, date, b)
		}
	}
	for _, d := range allDigests {
		if until := b.Quiet.Until(d.at, zone); !until.IsZero() {
			h.t.Errorf("seed %d: %s had a digest at %s", seed, person, d.at.In(zone))
		}
		if date := d.at.In(zone).Format(time.DateOnly); digests[date] > 0 {
			h.t.Errorf("seed %d: %s had two digests on %s", seed, person, date)
		} else {
			digests[date]++
		}
	}
}

// TestLinkedAccountsShareOneBudget: one cap and one digest, told to the account from which something was held back first.
func TestLinkedAccountsShareOneBudget(t *testing.T) {
	b := budget(t, "", 3, "18:00")
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	inTx(t, newLedger(), func(tx memory.Tx) error {
		admit := func(account string, want Reason) {
			t.Helper()
			now = now.Add(time.Minute)
			hold, err := b.Admit(tx, Unasked{Person: account, Zone: time.UTC, Heartbeat: "disk", Key: account, Text: "to " + account}, now)
			if err != nil || hold.By != want {
				t.Errorf("%s: %+v, %v; want %s", account, hold, err, want)
			}
		}
		for range 3 {
			admit(slackAnn, "")
		}
		admit(slackAnn, AtCap)
		admit(discordAnn, "")
		joined, err := Link(tx, slackAnn, discordAnn, now)
		if err != nil {
			return err
		}
		admit(discordAnn, AtCap)
		var rows []memory.DueRow
		err = tx.Due().Scan(func(row memory.DueRow) error { rows = append(rows, row); return nil })
		if err != nil || len(rows) != 1 || rows[0].Key != DigestPrefix+joined.Person {
			t.Fatalf("the due rows are %+v, %v", rows, err)
		}
		if account, err := DigestFor(tx, rows[0]); account != slackAnn {
			t.Errorf("the digest is for %q, %v", account, err)
		}
		if _, err := Unlink(tx, slackAnn, now); err != nil {
			return err
		}
		if account, err := DigestFor(tx, rows[0]); account != discordAnn {
			t.Errorf("after an account was unlinked the digest is for %q, %v", account, err)
		}
		told, err := b.TakeDigest(tx, rows[0], time.UTC, rows[0].At)
		if err != nil || !strings.Contains(told.Text, "to "+slackAnn) || !strings.Contains(told.Text, "to "+discordAnn) {
			t.Errorf("the digest tells %q, %v", told.Text, err)
		}
		_, left, err := tx.Due().Get(rows[0].Key)
		if left {
			t.Error("the row of the digest is left")
		}
		return err
	})
}

// What is told later of what a check saw is as private as that was.
func TestWhatIsHeldBackStaysPrivate(t *testing.T) {
	for _, c := range []struct {
		found Finding
		want  bool
	}{{Finding{Evidence: "seen"}, true}, {Finding{Evidence: "seen", Public: true}, false}, {Finding{}, false}} {
		v := &verdict{}
		v.digested(&tick{heartbeat: beat("mail", "yes")}, []held{{person: ann, Hold: Hold{By: InQuiet}, heard: "another episode"}}, c.found)
		if len(v.withheld) != 1 || v.withheld[0].Private != c.want {
			t.Errorf("of %+v is held back %+v", c.found, v.withheld)
		}
	}
}
