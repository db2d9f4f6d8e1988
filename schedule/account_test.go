package schedule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/memory"
)

const (
	slackAnn   = "slack:T1:U1"
	discordAnn = "discord:1"
	termAnn    = "terminal:ann"
)

func inTx(t *testing.T, store memory.Store, fn func(tx memory.Tx) error) {
	t.Helper()
	if err := store.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func personOf(t *testing.T, tx memory.Tx, account string) string {
	t.Helper()
	person, err := PersonOf(tx, account)
	if err != nil {
		t.Fatal(err)
	}
	return person
}

func TestAnAccountIsItsOwnPersonUntilLinked(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	inTx(t, newLedger(), func(tx memory.Tx) error {
		for _, account := range []string{slackAnn, "", string(make([]byte, memory.MaxID+1))} {
			if got := personOf(t, tx, account); got != account {
				t.Errorf("person of %.20q: %.20q", account, got)
			}
		}
		joined, err := Link(tx, slackAnn, discordAnn, now)
		if err != nil {
			return err
		}
		if got := []string{personOf(t, tx, slackAnn), personOf(t, tx, discordAnn)}; got[0] != got[1] || got[0] != joined.Person {
			t.Errorf("two linked accounts are of %q, want both of %s", got, joined.Person)
		}
		if !slices.Equal(joined.Was, []string{slackAnn, discordAnn}) {
			t.Errorf("to be moved: %q", joined.Was)
		}
		if got := personOf(t, tx, termAnn); got != termAnn {
			t.Errorf("a third account is of %q", got)
		}
		if _, err := Link(tx, discordAnn, slackAnn, now); !errors.Is(err, ErrLinked) {
			t.Errorf("linked twice: %v", err)
		}
		if _, err := Link(tx, termAnn, termAnn, now); !errors.Is(err, ErrLinked) {
			t.Errorf("linked with itself: %v", err)
		}
		return nil
	})
}

func TestUnlinkingSeparatesWhatComesAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	inTx(t, newLedger(), func(tx memory.Tx) error {
		first, err := Link(tx, slackAnn, discordAnn, now)
		if err != nil {
			return err
		}
		second, err := Link(tx, termAnn, slackAnn, now.Add(time.Second))
		if err != nil {
			return err
		}
		for _, id := range []string{slackAnn, discordAnn, termAnn, first.Person} {
			if got := personOf(t, tx, id); got != second.Person {
				t.Errorf("%s is of %s, want %s", id, got, second.Person)
			}
		}
		if _, err := Unlink(tx, slackAnn, now); err != nil {
			return err
		}
		if got := personOf(t, tx, slackAnn); got != slackAnn {
			t.Errorf("an unlinked account is of %s", got)
		}
		if got := personOf(t, tx, discordAnn); got != second.Person {
			t.Errorf("what stays linked is of %s, want %s", got, second.Person)
		}
		if _, err := Unlink(tx, termAnn, now); err != nil {
			return err
		}
		// The last one keeps what was kept of all: nothing may be left without an owner.
		if _, err := Unlink(tx, discordAnn, now); !errors.Is(err, ErrUnlinked) {
			t.Errorf("the last account was unlinked: %v", err)
		}
		if got := personOf(t, tx, discordAnn); got != second.Person {
			t.Errorf("the last account is of %s, want %s", got, second.Person)
		}
		if _, err := Unlink(tx, "slack:T9:U9", now); !errors.Is(err, ErrUnlinked) {
			t.Errorf("a stranger was unlinked: %v", err)
		}
		removed, err := ForgetAccounts(tx, second.Person, now)
		if got := personOf(t, tx, discordAnn); err != nil || got != discordAnn || removed == 0 {
			t.Errorf("after ForgetAccounts: %s, %d removed, %v", got, removed, err)
		}
		return tableAccounts.Table(tx).Scan("", func(id string, value []byte) error {
			return fmt.Errorf("row %s is left: %s", id, value)
		})
	})
}

func TestAPersonHasOnlySoManyAccounts(t *testing.T) {
	inTx(t, newLedger(), func(tx memory.Tx) error {
		for i := 1; i < MostAccounts; i++ {
			if _, err := Link(tx, "discord:0", fmt.Sprintf("discord:%d", i), time.Now()); err != nil {
				return err
			}
		}
		if _, err := Link(tx, "discord:0", termAnn, time.Now()); !errors.Is(err, ErrCrowded) {
			t.Errorf("one account too many: %v", err)
		}
		all, err := Accounts(tx, "discord:3")
		if len(all) != MostAccounts {
			t.Errorf("%d accounts, want %d: %v", len(all), MostAccounts, all)
		}
		return err
	})
}

// Whoever parts an account is nobody else with it for a while, however it was parted.
func TestWhoWasOnePerson(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	same := func(tx memory.Tx, one, other string, at time.Time, want bool) {
		t.Helper()
		for range 2 {
			got, err := SamePerson(tx, one, other, at)
			if err != nil || got != want {
				t.Errorf("%s and %s are one person: %v, %v", one, other, got, err)
			}
			one, other = other, one
		}
	}
	for _, forget := range []bool{false, true} {
		inTx(t, newLedger(), func(tx memory.Tx) error {
			same(tx, slackAnn, discordAnn, now, false)
			joined, err := Link(tx, slackAnn, discordAnn, now)
			if err != nil {
				return err
			}
			same(tx, slackAnn, discordAnn, now, true)
			if forget {
				_, err = ForgetAccounts(tx, joined.Person, now)
			} else {
				_, err = Unlink(tx, slackAnn, now)
			}
			if err != nil {
				return err
			}
			same(tx, slackAnn, discordAnn, now, true)
			same(tx, slackAnn, termAnn, now, false)
			if _, err := Link(tx, termAnn, discordAnn, now); err != nil { // then all three were one's
				return err
			}
			same(tx, slackAnn, termAnn, now, !forget)
			same(tx, slackAnn, discordAnn, now.Add(partedFor), true)
			same(tx, slackAnn, discordAnn, now.Add(partedFor+time.Second), false)
			for n := range mostPartings {
				if err := part(tx, slackAnn, fmt.Sprint(personPrefix, n), now); err != nil {
					return err
				}
			}
			same(tx, slackAnn, discordAnn, now, true)
			return tableParted.Scan(tx, "", func(key string, row partedRow) error {
				if strings.Contains(key, "ann") || len(row.From) > mostPartings {
					t.Errorf("under %s are kept %d partings", key, len(row.From))
				}
				return nil
			})
		})
	}
}

// However accounts are linked, parted and forgotten, two that ever were one person's are so for a while.
func TestOnceOnePerson(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		inTx(t, newLedger(), func(tx memory.Tx) error {
			account := rapid.Map(rapid.IntRange(0, 4), func(n int) string { return fmt.Sprint("api:", n) })
			met := map[[2]string]bool{}
			meet := func() {
				for a := range 5 {
					for b := range 5 {
						one, other := fmt.Sprint("api:", a), fmt.Sprint("api:", b)
						if personOf(t, tx, one) == personOf(t, tx, other) {
							met[[2]string{one, other}] = true
						}
						same, err := SamePerson(tx, one, other, now)
						if err != nil || met[[2]string{one, other}] && !same {
							rt.Fatalf("%s and %s were one person, and are somebody else's: %v", one, other, err)
						}
					}
				}
			}
			for range rapid.IntRange(1, 12).Draw(rt, "steps") {
				one := account.Draw(rt, "account")
				var err error
				switch rapid.SampledFrom([]string{"link", "link", "part", "forget"}).Draw(rt, "what") {
				case "link":
					_, err = Link(tx, one, account.Draw(rt, "other"), now)
				case "part":
					_, err = Unlink(tx, one, now)
				case "forget":
					_, err = ForgetAccounts(tx, personOf(t, tx, one), now)
				}
				if err != nil && !errors.Is(err, ErrLinked) && !errors.Is(err, ErrUnlinked) {
					return err
				}
				meet()
			}
			return nil
		})
	})
}

// TestLinksAgainstAPlainModel links and unlinks at random and compares with sets of accounts.
func TestLinksAgainstAPlainModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	inTx(t, newLedger(), func(tx memory.Tx) error {
		set := map[string]int{} // account → its person; those of the same number are one
		for i := range 12 {
			set[fmt.Sprintf("discord:%d", i)] = i
		}
		next := len(set)
		size := func(person int) (n int) {
			for _, p := range set {
				if p == person {
					n++
				}
			}
			return n
		}
		linked := map[int]bool{}
		for step := range 400 {
			a, b := fmt.Sprintf("discord:%d", dice.IntN(12)), fmt.Sprintf("discord:%d", dice.IntN(12))
			now = now.Add(time.Second)
			if dice.IntN(3) > 0 {
				_, err := Link(tx, a, b, now)
				if (set[a] == set[b]) != errors.Is(err, ErrLinked) {
					t.Fatalf("step %d: link %s and %s of %d and %d: %v", step, a, b, set[a], set[b], err)
				}
				if one, other := set[a], set[b]; one != other {
					for account, p := range set {
						if p == one || p == other {
							set[account] = next
						}
					}
					linked[next] = true
					next++
				}
			} else {
				_, err := Unlink(tx, a, now)
				if (size(set[a]) < 2) != errors.Is(err, ErrUnlinked) {
					t.Fatalf("step %d: unlink %s of %d: %v", step, a, size(set[a]), err)
				}
				if size(set[a]) >= 2 {
					set[a] = next
					next++
				}
			}
			for x := range set {
				all, err := Accounts(tx, x)
				if err != nil || len(all) != size(set[x]) {
					t.Fatalf("step %d: %s has the accounts %v, want %d: %v", step, x, all, size(set[x]), err)
				}
				for y := range set {
					if (personOf(t, tx, x) == personOf(t, tx, y)) != (set[x] == set[y]) {
						t.Fatalf("step %d: %s and %s are of %s and %s, want of %d and %d", step, x, y, personOf(t, tx, x), personOf(t, tx, y), set[x], set[y])
					}
				}
			}
		}
		return nil
	})
}

func TestLinkedAccountsHaveOneAttention(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	inTx(t, newLedger(), func(tx memory.Tx) error {
		err := errors.Join(
			SnoozeAll(tx, slackAnn, now.Add(time.Hour), now),
			SnoozeAll(tx, discordAnn, now.Add(2*time.Hour), now),
			SnoozeOne(tx, discordAnn, "disk", now.Add(3*time.Hour), now),
		)
		if err != nil {
			return err
		}
		if _, err := Link(tx, slackAnn, discordAnn, now); err != nil {
			return err
		}
		snoozed := func(account, heartbeat string) time.Duration {
			a, err := LoadAttention(tx, account)
			if err != nil {
				t.Fatal(err)
			}
			return a.SnoozedBy(heartbeat, now).Sub(now)
		}
		for _, account := range []string{slackAnn, discordAnn} {
			if all, disk := snoozed(account, "other"), snoozed(account, "disk"); all != 2*time.Hour || disk != 3*time.Hour {
				t.Errorf("%s is snoozed for %s and %s, want 2h and 3h", account, all, disk)
			}
		}
		// What one account says holds for the other, until they part.
		if err := SnoozeAll(tx, slackAnn, time.Time{}, now); err != nil {
			return err
		}
		if got := snoozed(discordAnn, "disk"); got > 0 {
			t.Errorf("still snoozed for %s", got)
		}
		if err := SnoozeAll(tx, discordAnn, now.Add(time.Hour), now); err != nil {
			return err
		}
		if _, err := Unlink(tx, slackAnn, now); err != nil {
			return err
		}
		if got := snoozed(slackAnn, "disk"); got != time.Hour {
			t.Errorf("an account that was unlinked is snoozed for %s", got)
		}
		if got := snoozed(discordAnn, "disk"); got != time.Hour {
			t.Errorf("the account that stayed is snoozed for %s", got)
		}
		return nil
	})
}

func TestASnoozeOfOneAccountBringsBackWhatAnotherWouldHear(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	inTx(t, newLedger(), func(tx memory.Tx) error {
		h := Heartbeat{Name: "disk", Cron: "@every 1h", For: []string{discordAnn}, Prompt: "look", Condition: Spec{Kind: "always"}}
		if err := Save(tx, h, now); err != nil {
			return err
		}
		state, err := loadState(tx, h)
		if err != nil {
			return err
		}
		state.Zones["UTC"] = &Zone{Held: now.Add(time.Hour)}
		if err := state.save(tx, "disk"); err != nil {
			return err
		}
		if _, err := Link(tx, slackAnn, discordAnn, now); err != nil {
			return err
		}
		err = errors.Join(SnoozeAll(tx, slackAnn, now.Add(time.Hour), now), SnoozeAll(tx, slackAnn, time.Time{}, now))
		if err != nil {
			return err
		}
		if state, err = loadState(tx, h); err == nil && !state.Zones["UTC"].Held.Equal(now) {
			t.Errorf("what was held back comes at %s, want now", state.Zones["UTC"].Held)
		}
		return err
	})
}

// A person is told so much a day, and no more with each account that is linked and parted: what each account has heard on a
// date stays within the cap, and counts once.
func TestNoLinkingAndPartingPassesTheDailyCap(t *testing.T) {
	const most = 3
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 2))
		now := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
		inTx(t, newLedger(), func(tx memory.Tx) error {
			accounts := []string{slackAnn, discordAnn, termAnn}
			heard := map[string]int{}
			pick := func() string { return accounts[dice.IntN(len(accounts))] }
			for range 200 {
				now = now.Add(time.Minute)
				one, other := pick(), pick()
				switch dice.IntN(3) {
				case 0:
					if _, err := Link(tx, one, other, now); err != nil && !errors.Is(err, ErrLinked) {
						return err
					}
				case 1:
					if _, err := Unlink(tx, one, now); err != nil && !errors.Is(err, ErrUnlinked) {
						return err
					}
				default:
					hold, err := Budget{DailyCap: most}.Admit(tx, Unasked{Person: one, Zone: time.UTC, Text: "hello"}, now)
					if err != nil {
						return err
					}
					if !hold.Holds() {
						heard[one]++
					}
				}
				all := 0
				for _, account := range accounts {
					all += heard[account]
					if heard[account] > most {
						t.Fatalf("seed %d: %s has heard %d of %d", seed, account, heard[account], most)
					}
				}
				if all == 0 {
					continue
				}
				if a, err := LoadAttention(tx, one); err != nil || a.Said < heard[one] || a.Said > all {
					t.Fatalf("seed %d: %s counts %d, has heard %d, and all have heard %d: %v", seed, one, a.Said, heard[one], all, err)
				}
			}
			return nil
		})
	}
}
