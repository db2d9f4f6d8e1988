package bot_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/diary"
	"nudge/memory/memorytest"
	"nudge/schedule"
)

// says has a person say something in their direct messages, and gives what is said in theirs and in others'.
func (s *stage) says(f *fake, who agent.Person, text string) []bot.Delivery {
	s.Helper()
	before := len(f.all())
	e := s.event(text)
	e.From, e.Address, e.At = who, who.ID.Home(), time.Now()
	s.receive(e)
	return f.all()[before:]
}

// clicks has a person press a choice of a card.
func (s *stage) clicks(f *fake, who agent.Person, card, choice string) []bot.Delivery {
	s.Helper()
	before := len(f.all())
	e := s.event("")
	e.From, e.Address, e.At = who, who.ID.Home(), time.Now()
	e.Click = &agent.Decision{Card: card, Verdict: agent.AnswerIt, Text: choice}
	s.receive(e)
	return f.all()[before:]
}

func textsOf(said []bot.Delivery) string {
	var texts []string
	for _, d := range said {
		texts = append(texts, d.Address+" "+string(d.Kind)+" "+d.Text)
	}
	return strings.Join(texts, "\n")
}

// asked is the id of the card that was put to a person.
func (s *stage) asked(said []bot.Delivery, who agent.Person) string {
	s.Helper()
	for _, d := range said {
		if d.IsCard() && d.Address == who.ID.Home() {
			return d.ID
		}
	}
	s.Fatalf("%s was not asked: %s", who.ID, textsOf(said))
	return ""
}

var codeForm = regexp.MustCompile(`[A-Z2-7]{5}-[A-Z2-7]{5}-[A-Z2-7]{5}`)

func (s *stage) code(f *fake, who agent.Person) string {
	s.Helper()
	said := s.says(f, who, "/link new")
	code := codeForm.FindString(textsOf(said))
	if code == "" || len(said) != 1 || said[0].Address != who.ID.Home() {
		s.Fatalf("a new code was answered %s", textsOf(said))
	}
	return code
}

func (s *stage) samePerson(a, b agent.Person) (same bool) {
	s.Helper()
	err := s.store.View(context.Background(), func(tx memory.Tx) error {
		one, err := schedule.PersonOf(tx, string(a.ID))
		other, err2 := schedule.PersonOf(tx, string(b.ID))
		same = one == other
		return errors.Join(err, err2)
	})
	if err != nil {
		s.Fatal(err)
	}
	return same
}

// linkUp takes all steps of linking.
func (s *stage) linkUp(f *fake, a, b agent.Person) {
	s.Helper()
	card := s.asked(s.says(f, b, "/link "+strings.ToLower(s.code(f, a))), b)
	card = s.asked(s.clicks(f, b, card, "Join"), a)
	s.clicks(f, a, card, "Join")
	if !s.samePerson(a, b) {
		s.Fatalf("%s and %s are not one person", a.ID, b.ID)
	}
}

var carol = agent.Person{ID: "chat:carol", Name: "carol"}

func TestLinkAsksBothSides(t *testing.T) {
	s, f := newStage(t, "/")
	if got := textsOf(s.says(f, ann, "/link")); !strings.Contains(got, "stands for itself") || !strings.Contains(got, "/link new") {
		t.Errorf("/link of one account: %s", got)
	}
	code := s.code(f, ann)
	said := s.says(f, bob, "/link "+code)
	if text := textsOf(said); !strings.Contains(text, "chat:ann") || strings.Contains(text, annHome+" ") {
		t.Errorf("who said the code sees %s", text)
	}
	first := s.asked(said, bob)
	if s.samePerson(ann, bob) {
		t.Fatal("linked before anybody agreed")
	}
	// Only who was asked can agree; others hear so.
	for _, who := range []agent.Person{ann, carol} {
		if text := textsOf(s.clicks(f, who, first, "Join")); !strings.Contains(text, "not yours to decide: chat:bob may") {
			t.Errorf("%s pressed Bob's button: %s", who.ID, text)
		}
	}
	if text := textsOf(s.clicks(f, bob, first, "perhaps")); !strings.Contains(text, "Say Join or Don't join") {
		t.Errorf("another word: %s", text)
	}
	second := s.asked(s.clicks(f, bob, first, "Join"), ann)
	if s.samePerson(ann, bob) {
		t.Fatal("linked before the first side agreed")
	}
	if text := textsOf(s.clicks(f, bob, second, "Join")); !strings.Contains(text, "not yours to decide") {
		t.Errorf("Bob agreed in Ann's place: %s", text)
	}
	said = s.says(f, ann, "/approve "+second)
	if text := textsOf(said); !s.samePerson(ann, bob) || !strings.Contains(text, annHome+" notice chat:bob and this account are one person now") || !strings.Contains(text, bobHome+" notice chat:ann and this account") {
		t.Errorf("after both agreed: %s", text)
	}
	if text := textsOf(s.clicks(f, ann, second, "Join")); !strings.Contains(text, "decided already: Join, by chat:ann") {
		t.Errorf("a late click: %s", text)
	}
	if text := textsOf(s.says(f, carol, "/link "+code)); !strings.Contains(text, "wrong, used or too old") {
		t.Errorf("the code again: %s", text)
	}
	if text := textsOf(s.says(f, bob, "/link")); !strings.Contains(text, "chat:ann  since") || !strings.Contains(text, "chat:bob  since") {
		t.Errorf("/link of two accounts: %s", text)
	}
}

func TestLinkIsRefused(t *testing.T) {
	s, f := newStage(t, "/")
	card := s.asked(s.says(f, bob, "/link "+s.code(f, ann)), bob)
	if text := textsOf(s.clicks(f, bob, card, "Don't join")); !strings.Contains(text, "Nothing was joined") {
		t.Errorf("refused by the second side: %s", text)
	}
	card = s.asked(s.says(f, bob, "/link "+s.code(f, ann)), bob)
	card = s.asked(s.clicks(f, bob, card, "Join"), ann)
	if text := textsOf(s.says(f, ann, "/deny "+card)); !strings.Contains(text, bobHome+" notice chat:ann did not agree") {
		t.Errorf("refused by the first side: %s", text)
	}
	if s.samePerson(ann, bob) {
		t.Error("linked all the same")
	}
}

func TestCodesArePrivateShortAndFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStage(t, "/")
		code := s.code(f, ann)
		if text := textsOf(s.says(f, ann, "/link "+code)); !strings.Contains(text, "Say it with the other one") {
			t.Errorf("the same account said its code: %s", text)
		}
		// Said where others read along it is spoilt, and no code is shown there.
		for _, text := range []string{"/link new", "/link " + code} {
			e := s.event(text)
			e.From, e.Address = bob, "chat:T:C1:t1"
			before := len(f.all())
			s.receive(e)
			for _, d := range f.all()[before:] {
				if d.To != bob.ID || codeForm.MatchString(d.Text) {
					t.Errorf("%s in a channel: %+v", text, d.Reply)
				}
			}
		}
		if text := textsOf(s.says(f, bob, "/link "+code)); !strings.Contains(text, "wrong, used or too old") {
			t.Errorf("an overheard code: %s", text)
		}
		old, code := s.code(f, ann), s.code(f, ann)
		if text := textsOf(s.says(f, bob, "/link "+old)); !strings.Contains(text, "wrong, used or too old") {
			t.Errorf("a code that another took the place of: %s", text)
		}
		time.Sleep(10*time.Minute + time.Second)
		if text := textsOf(s.says(f, bob, "/link "+code)); !strings.Contains(text, "wrong, used or too old") {
			t.Errorf("an old code: %s", text)
		}
		// A card that nobody agreed to in time is of no use.
		card := s.asked(s.says(f, carol, "/link "+s.code(f, ann)), carol)
		time.Sleep(10*time.Minute + time.Second)
		if text := textsOf(s.clicks(f, carol, card, "Join")); !strings.Contains(text, "expired") || s.samePerson(ann, carol) {
			t.Errorf("agreed too late: %s", text)
		}
		// Guessing ends soon, also with a code that is right.
		for range 10 {
			s.says(f, bob, "/link AAAAA-AAAAA-AAAAA")
		}
		code = s.code(f, carol)
		if text := textsOf(s.says(f, bob, "/link "+code)); !strings.Contains(text, "Try again in an hour") {
			t.Errorf("after many wrong codes: %s", text)
		}
		for range 5 {
			s.says(f, ann, "/link new")
		}
		if text := textsOf(s.says(f, ann, "/link new")); codeForm.MatchString(text) || !strings.Contains(text, "Try again in an hour") {
			t.Errorf("after many codes: %s", text)
		}
		time.Sleep(time.Hour)
		s.asked(s.says(f, bob, "/link "+s.code(f, ann)), bob)
		s.end()
	})
}

func TestUnlink(t *testing.T) {
	s, f := newStage(t, "/")
	s.linkUp(f, ann, bob)
	if text := textsOf(s.says(f, ann, "/link remove chat:carol")); !strings.Contains(text, "You have no account") {
		t.Errorf("somebody else's account: %s", text)
	}
	if text := textsOf(s.says(f, carol, "/link remove chat:ann")); !strings.Contains(text, "You have no account") || !s.samePerson(ann, bob) {
		t.Errorf("by somebody else: %s", text)
	}
	said := s.says(f, ann, "/link remove chat:bob")
	if text := textsOf(said); s.samePerson(ann, bob) || !strings.Contains(text, bobHome+" notice chat:ann has parted this account") {
		t.Errorf("unlinked: %s", text)
	}
	if text := textsOf(s.says(f, ann, "/link remove chat:ann")); !strings.Contains(text, "linked with no other") {
		t.Errorf("the last account: %s", text)
	}
}

// Killed before or after any commit, two people are linked or not, each step that was acknowledged counts, and one that was
// not can be done again.
func TestLinkSurvivesACrashAtEveryCommit(t *testing.T) {
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			store := memorytest.NewFaulty(openStore(t))
			store.FailAt(n, after)
			var said []bot.Delivery
			f := newFake()
			s := serve(t, store, bot.Config{Allow: []string{"chat:*"}, Grace: time.Millisecond, FirstWait: time.Millisecond}, f)
			crashes := 0
			do := func(who agent.Person, text string, click *agent.Decision) {
				e := s.event(text)
				e.From, e.Address, e.Click = who, who.ID.Home(), click
				_, err := s.hub.Receive(context.Background(), e)
				if s.restsUnless(store) || err != nil {
					crashes++
					s.end()
					said = append(said, f.all()...) // what was being said meanwhile, too
					store.Revive()
					keys := s.keys
					f = newFake()
					s = serve(t, store, bot.Config{Allow: []string{"chat:*"}}, f)
					s.keys = keys
					s.receive(e)
				}
			}
			all := func() string { return textsOf(append(said[:len(said):len(said)], f.all()...)) }
			card := func(who agent.Person) *agent.Decision {
				for _, d := range append(said[:len(said):len(said)], f.all()...) {
					if d.IsCard() && d.Address == who.ID.Home() {
						return &agent.Decision{Card: d.ID, Verdict: agent.Approve}
					}
				}
				t.Fatalf("crash %d: %s was not asked: %s", n, who.ID, all())
				return nil
			}
			do(ann, "/link new", nil)
			do(bob, "/link "+codeForm.FindString(all()), nil)
			do(bob, "", card(bob))
			if s.samePerson(ann, bob) {
				t.Fatalf("crash %d: linked too early", n)
			}
			do(ann, "", card(ann))
			if !s.samePerson(ann, bob) || !strings.Contains(all(), "are one person now") {
				t.Fatalf("crash %d, after %t: not linked: %s", n, after, all())
			}
			s.end()
			if crashes == 0 {
				if n < 4 {
					t.Fatalf("only %d commits", n)
				}
				return
			}
		}
	}
}

// restsUnless lets everything be said, and reports whether the store has crashed meanwhile.
func (s *stage) restsUnless(store *memorytest.Faulty) (crashed bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := store.Crashed()
	go func() {
		select {
		case <-gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = errors.Join(s.agent.WaitIdle(ctx, nil), s.hub.Drain(ctx, nil))
	select {
	case <-gone:
		return true
	default:
		return false
	}
}

// What either account told is remembered of both, and goes with it when it is parted.
func TestLinkedAccountsHaveOneDiary(t *testing.T) {
	store, f := openStore(t), newFake()
	s := serve(t, store, bot.Config{Allow: []string{"chat:*"}, Diary: diary.New(diary.Config{Store: store})}, f)
	ctx := context.Background()
	notes := func(who agent.Person) (texts []string) {
		err := s.store.View(ctx, func(tx memory.Tx) error {
			person, err := schedule.PersonOf(tx, string(who.ID))
			if err != nil {
				return err
			}
			all, err := diary.List(tx, diary.View{Person: person, Scope: diary.Private})
			for _, n := range all {
				texts = append(texts, n.Text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(texts)
		return texts
	}
	for who, text := range map[agent.PersonID]string{ann.ID: "likes tea", bob.ID: "has a boat"} {
		if _, _, err := s.diary.Remember(ctx, string(who), diary.Note{Text: text, Scope: diary.Private}); err != nil {
			t.Fatal(err)
		}
	}
	s.linkUp(f, ann, bob)
	for _, who := range []agent.Person{ann, bob} {
		if got := notes(who); !slices.Equal(got, []string{"has a boat", "likes tea"}) {
			t.Errorf("of %s is remembered %q", who.ID, got)
		}
	}
	for who, text := range map[*agent.Person]string{&ann: "plays chess", &bob: "sails to Fehmarn"} {
		s.says(f, *who, "/remember "+text)
	}
	said := textsOf(s.says(f, ann, "/link remove chat:bob"))
	if !strings.Contains(said, "2 notes made with it went along") || !strings.Contains(said, "has what I was told with it: 2 notes") {
		t.Errorf("who parts an account hears %s", said)
	}
	for who, want := range map[*agent.Person][]string{&ann: {"likes tea", "plays chess"}, &bob: {"has a boat", "sails to Fehmarn"}} {
		if got := notes(*who); !slices.Equal(got, want) {
			t.Errorf("parted, of %s is remembered %q, want %q", who.ID, got, want)
		}
	}
}
