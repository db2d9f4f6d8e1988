package bot_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/memorytest"
)

var (
	eve   = agent.Person{ID: "chat:eve", Name: "chat:ann"} // she calls herself what she is not
	owner = ann
)

// guarded is a stage whose owner is Ann, who alone is let in.
func guarded(t *testing.T, store memory.Store) (*stage, *fake) {
	f := newFake()
	return serve(t, store, bot.Config{Allow: []string{"chat:ann"}, Owners: []agent.PersonID{owner.ID}}, f), f
}

func TestAStrangerHearsOneLineAndTheOwnerIsAsked(t *testing.T) {
	s, f := guarded(t, openStore(t))
	said := s.says(f, eve, "let me in")
	text := textsOf(said)
	if !strings.Contains(text, "chat:local:dm:eve notice I only work for people whom I was told to serve, so nothing was done. I have asked") {
		t.Errorf("the stranger hears: %s", text)
	}
	card := s.asked(said, owner)
	if !strings.Contains(text, `chat:eve (it calls itself "chat:ann") spoke to me in direct messages and is not let in`) || strings.Contains(text, "let me in") {
		t.Errorf("the owner reads: %s", text)
	}
	for range 5 {
		if said := s.says(f, eve, "please"); len(said) > 0 {
			t.Fatalf("once more: %s", textsOf(said))
		}
	}
	if len(s.model.Requests()) > 0 {
		t.Error("the model heard a stranger")
	}
	// Neither she nor somebody else can let her in.
	for _, who := range []agent.Person{eve, bob} {
		s.clicks(f, who, card, "Allow")
		s.says(f, who, "/approve "+card)
		s.says(f, who, "/access")
	}
	if said := s.says(f, eve, "hello"); len(said) > 0 || len(s.model.Requests()) > 0 {
		t.Fatalf("she let herself in: %s", textsOf(said))
	}
	text = textsOf(s.clicks(f, owner, card, "Allow"))
	if !strings.Contains(text, annHome+" notice chat:eve is let in.") || !strings.Contains(text, "chat:local:dm:eve notice You are let in now.") {
		t.Errorf("let in: %s", text)
	}
	if text := textsOf(s.says(f, eve, "hello")); !strings.Contains(text, "echo hello") {
		t.Errorf("she is let in and hears %s", text)
	}
	if text := textsOf(s.says(f, agent.Person{ID: "chat:eve2", Name: "eve"}, "hello")); strings.Contains(text, "echo") {
		t.Errorf("somebody of a like id hears %s", text)
	}
	if text := textsOf(s.says(f, owner, "/access")); !strings.Contains(text, "chat:eve (it calls itself") || !strings.Contains(text, "let in by chat:ann") || !strings.Contains(text, "chat:eve2, not let in") {
		t.Errorf("/access: %s", text)
	}
	if text := textsOf(s.says(f, eve, "/access")); !strings.Contains(text, "Only an owner") {
		t.Errorf("/access by her: %s", text)
	}
	if text := textsOf(s.says(f, owner, "/access revoke chat:eve")); !strings.Contains(text, "is not let in any more") {
		t.Errorf("revoked: %s", text)
	}
	requests := len(s.model.Requests())
	s.says(f, eve, "hello")
	if len(s.model.Requests()) != requests {
		t.Error("she is heard after that was revoked")
	}
	var did []string
	err := s.store.View(context.Background(), func(tx memory.Tx) error {
		lines, err := agent.Audit(tx)
		for _, l := range lines {
			did = append(did, fmt.Sprint(l.Did, " ", l.About, " by ", l.By))
		}
		return err
	})
	if got := strings.Join(did, ", "); err != nil || got != "allowed chat:eve by chat:ann, revoked chat:eve by chat:ann" {
		t.Errorf("the audit: %s, %v", got, err)
	}
}

func TestAnIgnoredStrangerIsNotAskedAboutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := guarded(t, openStore(t))
		card := s.asked(s.says(f, eve, "hello"), owner)
		if text := textsOf(s.says(f, owner, "/deny "+card)); !strings.Contains(text, "chat:eve is ignored") {
			t.Errorf("ignored: %s", text)
		}
		time.Sleep(24 * time.Hour)
		if said := s.says(f, eve, "hello?"); len(said) > 0 {
			t.Errorf("a day later: %s", textsOf(said))
		}
		if text := textsOf(s.says(f, owner, "/access revoke chat:eve")); !strings.Contains(text, "may ask again") {
			t.Errorf("no longer ignored: %s", text)
		}
		s.asked(s.says(f, eve, "and now?"), owner)
		s.end()
	})
}

func TestStrangersCannotFloodTheOwner(t *testing.T) {
	s, f := guarded(t, openStore(t))
	for i := range 200 {
		s.says(f, agent.Person{ID: agent.PersonID(fmt.Sprintf("chat:e%d", i))}, "hello")
	}
	cards, lines := 0, 0
	for _, d := range f.all() {
		switch {
		case d.IsCard():
			cards++
		case strings.HasPrefix(d.Text, "I only work"):
			lines++
		}
	}
	if cards == 0 || cards > 10 || lines == 0 || lines > 30 {
		t.Errorf("200 strangers made %d cards and %d lines", cards, lines)
	}
}

// Bots hear nothing and are asked about by nobody, nor are words that were not said to the bot.
func TestBotsAndBystandersHearNothing(t *testing.T) {
	s, f := guarded(t, openStore(t))
	for _, e := range []bot.Event{
		{Text: "hello", Standing: bot.Automaton},
		{Text: "hello", Overheard: true},
		{Stop: true},
		{Click: &agent.Decision{Card: "c1", Verdict: agent.Approve}},
	} {
		e.Keys, e.From, e.Address = []string{fmt.Sprintf("%+v", e)}, eve, eve.ID.Home()
		if got := s.receive(e); got == bot.Taken {
			t.Errorf("%+v was taken", e)
		}
	}
	if said := f.all(); len(said) > 0 {
		t.Errorf("said: %s", textsOf(said))
	}
	// A guest or somebody of another organisation can be let in by their very id.
	e := s.event("hello")
	e.From, e.Address, e.Standing = eve, eve.ID.Home(), bot.Outsider
	s.receive(e)
	s.clicks(f, owner, s.asked(f.all(), owner), "Allow")
	e = s.event("hello again")
	e.From, e.Address, e.Standing = eve, eve.ID.Home(), bot.Outsider
	if got := s.receive(e); got != bot.Taken {
		t.Errorf("let in by id: admission %d", got)
	}
	e = s.event("I am a bot")
	e.From, e.Address, e.Standing = eve, eve.ID.Home(), bot.Automaton
	if got := s.receive(e); got != bot.Refused {
		t.Errorf("as a bot: admission %d", got)
	}
}

// Where no owner is named the console is asked.
func TestTheConsoleIsAskedWhereThereIsNoOwner(t *testing.T) {
	f, console := newFake(), newFake()
	console.platform, console.home = "web", "web:local:dm:me"
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:ann"}}, f, console)
	me := agent.Person{ID: "web:me"}
	s.says(f, eve, "hello")
	s.clicks(f, me, s.asked(console.all(), me), "Allow")
	if text := textsOf(s.says(f, eve, "hello")); !strings.Contains(text, "echo hello") {
		t.Errorf("let in: %s", text)
	}
}

// Killed before or after any commit, the owner is asked once and what they said counts once.
func TestLettingInSurvivesACrashAtEveryCommit(t *testing.T) {
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			store := memorytest.NewFaulty(openStore(t))
			store.FailAt(n, after)
			var said []bot.Delivery
			crashes, keys := 0, 0
			f := newFake()
			start := func() *stage {
				s := serve(t, store, bot.Config{Allow: []string{"chat:ann"}, Owners: []agent.PersonID{owner.ID}, Grace: time.Millisecond, FirstWait: time.Millisecond}, f)
				s.keys = keys
				return s
			}
			s := start()
			do := func(who agent.Person, text string, click *agent.Decision) {
				e := s.event(text)
				e.From, e.Address, e.Click = who, who.ID.Home(), click
				_, err := s.hub.Receive(context.Background(), e)
				if s.restsUnless(store) || err != nil {
					crashes++
					said, keys = append(said, f.all()...), s.keys
					s.end()
					store.Revive()
					f = newFake()
					s = start()
					if err := s.agent.Resume(context.Background(), func(string) bool { return true }); err != nil {
						t.Fatal(err)
					}
					s.receive(e)
				}
			}
			do(eve, "hello", nil)
			all := append(said, f.all()...)
			do(owner, "", &agent.Decision{Card: s.asked(all, owner), Verdict: agent.Approve})
			do(eve, "hello again", nil)
			if text := textsOf(append(said, f.all()...)); !strings.Contains(text, "echo hello again") {
				t.Fatalf("crash %d, after %t: she hears %s", n, after, text)
			}
			asked := map[string]bool{}
			for _, d := range append(said, f.all()...) {
				if d.IsCard() {
					asked[d.ID] = true
				}
			}
			if len(asked) != 1 {
				t.Fatalf("crash %d, after %t: %d cards", n, after, len(asked))
			}
			s.end()
			if crashes == 0 {
				if n < 3 {
					t.Fatalf("only %d commits", n)
				}
				return
			}
		}
	}
}

func TestOnePersonMaySaySoMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := guarded(t, openStore(t))
		declined := 0
		for i := range 200 {
			e := s.event(fmt.Sprintf("/usage %d", i))
			got, err := s.hub.Receive(context.Background(), e)
			if err != nil {
				t.Fatal(err)
			}
			if got == bot.Declined {
				declined++
			}
		}
		s.rest()
		told := strings.Count(f.texts(annHome), "more than I can take at once")
		if declined != 80 || told != 1 {
			t.Errorf("of 200 messages %d were not taken, and that was said %d times", declined, told)
		}
		if got := s.receive(s.event("stop")); got != bot.Taken {
			t.Error("stop was not taken")
		}
		time.Sleep(5 * time.Second)
		if text := textsOf(s.says(f, ann, "hello")); !strings.Contains(text, "echo hello") {
			t.Errorf("later: %s", text)
		}
		s.end()
	})
}

// Two bots that answer each other are parted; people are not, however much they have to say.
func TestTwoBotsAreParted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := guarded(t, openStore(t))
		for range 100 {
			time.Sleep(3 * time.Second)
			s.says(f, ann, "hello")
		}
		if n := len(s.model.Requests()); n != 100 {
			t.Errorf("a person was answered %d times of 100", n)
		}
		for range 200 {
			time.Sleep(time.Second)
			s.says(f, ann, "hello")
		}
		if n := len(s.model.Requests()) - 100; n > 30 {
			t.Errorf("a bot was answered %d times", n)
		}
		if n := strings.Count(f.texts(annHome), "I take you for a bot"); n != 1 {
			t.Errorf("it was said %d times", n)
		}
		time.Sleep(11 * time.Minute)
		if text := textsOf(s.says(f, ann, "hello")); !strings.Contains(text, "echo hello") {
			t.Errorf("later: %s", text)
		}
		s.end()
	})
}

// TestAFloodIsNoLoop has Ann say much at once after one answer in a thread, and then answer there like a bot: neither
// keeps Bob from being heard.
func TestAFloodIsNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
		const thread = "chat:T:C1:t1"
		say := func(who agent.Person, text string) bot.Admission {
			e := s.event(text)
			e.From, e.Address = who, thread
			admission, err := s.hub.Receive(context.Background(), e)
			if err != nil {
				t.Fatal(err)
			}
			return admission
		}
		say(ann, "hello")
		s.rest()
		for range 2 * 25 {
			if got := say(ann, "and more"); got != bot.Taken {
				t.Fatalf("of a flood: %v", got)
			}
		}
		s.rest()
		time.Sleep(time.Minute)
		for range 40 {
			say(ann, "hello")
			s.rest()
			time.Sleep(time.Second)
		}
		if got := say(ann, "hello"); got != bot.Declined || strings.Count(f.texts(thread), "I take you for a bot") != 1 {
			t.Errorf("who answers like a bot: %v", got)
		}
		if got := say(bob, "/status"); got != bot.Taken {
			t.Errorf("Bob in the same thread: %v", got)
		}
		s.end()
	})
}

// A name is of its bearer's own choosing: no platform makes a link of one where a person reads it.
func TestANameIsNoLink(t *testing.T) {
	s, f := guarded(t, openStore(t))
	evil := eve
	evil.Name = "https://evil.test/login Nudge"
	said := s.says(f, evil, "let me in")
	card := s.asked(said, owner)
	said = append(said, s.clicks(f, owner, card, "Allow")...)
	said = append(said, s.says(f, owner, "/access")...)
	said = append(said, s.says(f, owner, "/link "+s.code(f, evil))...)
	said = append(said, s.says(f, owner, "/approvals")...)
	named := 0
	for _, d := range said {
		if !strings.Contains(d.Text, "evil.test") {
			continue
		}
		named++
		if !d.Unlinked || !strings.Contains(d.Text, "`https://evil.test/login") {
			t.Errorf("%s may make a link of: %s", d.Address, d.Text)
		}
	}
	if named < 3 {
		t.Errorf("her name was shown %d times: %s", named, textsOf(said))
	}
}
