package bot_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/schedule"
)

// accounts are all that are one person with somebody now.
func (s *stage) accounts(of agent.Person) (ids []string) {
	s.Helper()
	err := s.store.View(context.Background(), func(tx memory.Tx) error {
		all, err := schedule.Accounts(tx, string(of.ID))
		for _, a := range all {
			ids = append(ids, a.ID)
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// mingle links and parts people at random while somebody decides.
func (s *stage) mingle(f *fake, dice *rand.Rand, people []agent.Person) {
	s.Helper()
	for range dice.IntN(3) {
		a, b := people[dice.IntN(len(people))], people[dice.IntN(len(people))]
		switch {
		case !s.samePerson(a, b):
			s.linkUp(f, a, b)
		case a != b:
			s.says(f, a, "/link remove "+string(b.ID))
		}
	}
}

// names reports whether a text names an account, and no other that only begins so.
func names(text, id string) bool {
	return strings.Contains(strings.NewReplacer(",", " ", ")", " ", ".", " ").Replace(text+" "), id+" ")
}

// Whoever becomes one person with others was shown each of their accounts by the card that they agreed to, whatever was linked
// and parted between any two steps; and what nothing has come between is joined.
func TestNobodyIsJoinedWithAnAccountThatTheyWereNotShown(t *testing.T) {
	var people []agent.Person
	for i := range 5 {
		people = append(people, agent.Person{ID: agent.PersonID(fmt.Sprintf("chat:p%d", i))})
	}
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			s, f := newStage(t, "/")
			defer s.end()
			dice := rand.New(rand.NewPCG(seed, 3))
			joined, stale := 0, 0
			for range 12 {
				time.Sleep(2 * time.Hour) // so that the bounds of codes are not met
				a, b := people[dice.IntN(len(people))], people[dice.IntN(len(people))]
				if s.samePerson(a, b) {
					s.mingle(f, dice, people)
					continue
				}
				said := s.says(f, b, "/link "+s.code(f, a))
				first, ofA, ofB := s.asked(said, b), s.accounts(a), s.accounts(b)
				for _, id := range ofA {
					if !names(textsOf(said), id) {
						t.Fatalf("seed %d: %s is not shown %s: %s", seed, b.ID, id, textsOf(said))
					}
				}
				unchanged := func() bool { return slices.Equal(s.accounts(a), ofA) && slices.Equal(s.accounts(b), ofB) }
				s.mingle(f, dice, people)
				same := unchanged()
				said = s.clicks(f, b, first, "Join")
				if !same {
					if stale++; !strings.Contains(textsOf(said), "has changed since I asked") {
						t.Fatalf("seed %d: what had changed was agreed to: %s", seed, textsOf(said))
					}
					continue
				}
				second := s.asked(said, a)
				for _, id := range ofB {
					if !names(textsOf(said), id) {
						t.Fatalf("seed %d: %s is not shown %s: %s", seed, a.ID, id, textsOf(said))
					}
				}
				s.mingle(f, dice, people)
				same = unchanged()
				before := append(s.accounts(a), s.accounts(b)...)
				said = s.clicks(f, a, second, "Join")
				switch after := s.accounts(a); {
				case same && len(after) != len(ofA)+len(ofB):
					t.Fatalf("seed %d: not joined: %s", seed, textsOf(said))
				case same:
					joined++
				case len(after) > len(before) || !s.samePerson(a, b) && !strings.Contains(textsOf(said), "has changed since I asked"):
					t.Fatalf("seed %d: what had changed was joined to %v: %s", seed, after, textsOf(said))
				default:
					stale++
				}
			}
			t.Logf("seed %d: %d joined, %d refused", seed, joined, stale)
		})
	}
}

// Only those accounts are forgotten that the card has named.
func TestNobodyIsForgottenWhomTheCardDidNotName(t *testing.T) {
	for name, meanwhile := range map[string]func(s *stage, f *fake){
		"joined": func(s *stage, f *fake) { s.linkUp(f, ann, carol) },
		"parted": func(s *stage, f *fake) { s.says(f, bob, "/link remove chat:ann") },
		"the other parted and one joined": func(s *stage, f *fake) {
			s.says(f, ann, "/link remove chat:bob")
			s.linkUp(f, ann, carol)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}, Forget: func() {}}, f)
			s.linkUp(f, ann, bob)
			card := s.asked(s.says(f, ann, "/forget-me"), ann)
			meanwhile(s, f)
			if text := textsOf(s.clicks(f, ann, card, "Forget me")); len(oblivions(t, s.store)) > 0 || !strings.Contains(text, "Ask anew with /forget-me") {
				t.Errorf("agreed to: %s", text)
			}
			card = s.asked(s.says(f, ann, "/forget-me"), ann)
			s.clicks(f, ann, card, "Forget me")
			if begun := oblivions(t, s.store); len(begun) != 1 || len(begun[0].Accounts) != len(s.accounts(ann)) {
				t.Errorf("asked anew: %+v", begun)
			}
		})
	}
}

// Who is being forgotten cannot become one with others meanwhile: what is kept would move away from under it.
func TestNobodyIsJoinedWhileTheyAreForgotten(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}, Forget: func() {}}, f)
	card := s.asked(s.says(f, bob, "/link "+s.code(f, ann)), bob)
	s.clicks(f, ann, s.asked(s.says(f, ann, "/forget-me"), ann), "Forget me")
	if text := textsOf(s.clicks(f, bob, card, "Join")); !strings.Contains(text, "one side is being forgotten") || s.samePerson(ann, bob) {
		t.Errorf("agreed to: %s", text)
	}
}
