package bot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/memorytest"
)

// TestAccess compares ids exactly, per platform and workspace; names never let anybody in.
func TestAccess(t *testing.T) {
	named := func(id agent.PersonID, name string) agent.Person { return agent.Person{ID: id, Name: name} }
	for _, test := range []struct {
		allow []string
		who   agent.Person
		want  bot.Admission
	}{
		{[]string{"alice"}, named("slack:T1:U0EVE", "alice"), bot.Refused},
		{[]string{"slack:T1:U0ALICE"}, named("slack:T1:U0EVE", "slack:T1:U0ALICE"), bot.Refused},
		{[]string{"slack:T1:U0ALICE"}, named("slack:T1:U0ALICE", "zed"), bot.Taken},
		{[]string{"slack:T1:U0ALICE"}, named("slack:T0OTHER:U0ALICE", "alice"), bot.Refused},
		{[]string{"slack:T1:U0ALICE"}, named("slack:T1:U0ALICE2", "alice"), bot.Refused},
		{[]string{"slack:T1:U0ALICE"}, named("slack:T1:u0alice", "alice"), bot.Refused},
		{[]string{"slack:T1:U0ALICE"}, named("slack:T1:", "alice"), bot.Refused},
		{[]string{"slack:T1:U0ALICE"}, named("", "alice"), bot.Refused},
		{[]string{"*"}, named("", "nobody"), bot.Refused},
		{[]string{"discord:111"}, named("discord:0111", "x"), bot.Refused},
		{[]string{"discord:111"}, named("discord:222", "discord:111"), bot.Refused},
		{[]string{"discord:111"}, named("discord:111", "zed"), bot.Taken},
		{[]string{"slack:T1:*"}, named("slack:T1:U2", ""), bot.Taken},
		{[]string{"slack:T1:*"}, named("slack:T12:U2", ""), bot.Refused},
		{[]string{"api:*"}, named("slack:T1:U2", ""), bot.Refused},
		{[]string{"api:*"}, named("api:robot", ""), bot.Taken},
		{nil, named("slack:T1:U2", ""), bot.Refused},
		{nil, named("terminal:ann", ""), bot.Taken},
		{nil, named("web:me", ""), bot.Taken},
	} {
		t.Run(fmt.Sprint(test.allow, test.who.ID), func(t *testing.T) {
			s := serve(t, openStore(t), bot.Config{Allow: test.allow}, newFake())
			for _, e := range []bot.Event{{Text: "hello"}, {Text: "/help"}, {Stop: true}} {
				e.Keys, e.From, e.Address = []string{"k" + e.Text}, test.who, "somewhere:1:2:3"
				got, err := s.hub.Receive(context.Background(), e)
				if err != nil || got != test.want {
					t.Errorf("%+v: admission %d, error %v, want %d", e, got, err, test.want)
				}
			}
			if test.want == bot.Refused && len(s.model.Requests()) > 0 {
				t.Error("the model heard a stranger")
			}
		})
	}
}

// TestOverheard leaves words alone that were not said to the bot, unless it has a part in the conversation.
func TestOverheard(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	const thread = "chat:T:C:1"
	for _, text := range []string{"hello", "stop", "/help", "/approve", "  "} {
		e := s.event(text)
		e.Address, e.Overheard = thread, true
		if got := s.receive(e); got != bot.Ignored {
			t.Errorf("overheard %q: admission %d", text, got)
		}
	}
	if said := f.all(); len(said) > 0 {
		t.Errorf("answered what was overheard: %v", said)
	}
	e := s.event("come in")
	e.Address = thread
	s.receive(e)
	e = s.event("and now")
	e.Address, e.Overheard = thread, true
	if got := s.receive(e); got != bot.Taken || !strings.HasSuffix(f.texts(thread), "echo ann: and now") {
		t.Errorf("overheard in a thread of the bot's: admission %d, said %q", got, f.texts(thread))
	}
}

// TestEmptyText starts nothing: a picture without words, an empty line.
func TestEmptyText(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	if got := s.receive(s.event(" \n\t")); got != bot.Ignored || len(s.model.Requests()) > 0 {
		t.Errorf("admission %d, %d requests", got, len(s.model.Requests()))
	}
}

// TestNothingAdmittedUnkept gives an error for what could not be kept.
func TestNothingAdmittedUnkept(t *testing.T) {
	store := memorytest.NewFaulty(openStore(t))
	f := newFake()
	s := serve(t, store, bot.Config{Allow: []string{"chat:*"}}, f)
	for _, text := range []string{"hello", "/help", "stop"} {
		store.FailAt(store.Count()+1, false)
		e := s.event(text)
		if _, err := s.hub.Receive(context.Background(), e); !errors.Is(err, memorytest.ErrCrash) {
			t.Errorf("%q: error %v", text, err)
		}
		store.Revive()
		if got := s.receive(e); got != bot.Taken {
			t.Errorf("%q again: admission %d", text, got)
		}
	}
}

// TestRetry says a reply again with growing pauses, with the same key, in its order, for as long as it takes.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		var at []time.Duration
		var keys []string
		began := time.Now()
		f.fail = func(d bot.Delivery, try int) error {
			if d.Text != "first" {
				return nil
			}
			at, keys = append(at, time.Since(began)), append(keys, d.Key)
			switch {
			case try == 3:
				return &bot.SendError{RetryAfter: 90 * time.Second, Err: errors.New("slow down")}
			case try < 12:
				return errors.New("the platform is down")
			}
			return nil
		}
		s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
		s.put(annHome, "first", "second")
		s.rest()
		if got := f.texts(annHome); got != "first|second" {
			t.Errorf("said %q", got)
		}
		want := []time.Duration{0, 1, 3, 93, 153, 213, 273, 333, 393, 453, 513, 573}
		for i := range want {
			if i >= len(at) || at[i] != want[i]*time.Second {
				t.Fatalf("tried at %v, want at seconds %v", at, want)
			}
			if keys[i] == "" || keys[i] != keys[0] {
				t.Errorf("the keys of the tries are %q", keys)
			}
		}
		if left := outbox(t, s.store); left != "" {
			t.Errorf("left in the outbox: %q", left)
		}
		s.end()
	})
}

// TestGivenUp keeps what can never be said, marked, and goes on with the next.
func TestGivenUp(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
	}{
		{"gone", &bot.SendError{Gone: true, Err: errors.New("no such channel")}},
		{"wrapped", fmt.Errorf("post: %w", &bot.SendError{Gone: true, Err: errors.New("archived")})},
		{"for a day", errors.New("the platform is down")},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.fail = func(d bot.Delivery, _ int) error {
					if d.Text == "lost" {
						return test.err
					}
					return nil
				}
				store := openStore(t)
				s := serve(t, store, bot.Config{}, f)
				s.put(annHome, "lost", "kept")
				s.rest()
				total, letters := deadLetters(t, store)
				if f.texts(annHome) != "kept" || total != 1 || letters[0].Text != "lost" || letters[0].Reason == "" || !letters[0].At.Equal(time.Now()) {
					t.Errorf("said %q, dead letters %+v", f.texts(annHome), letters)
				}
				if left := outbox(t, store); strings.Count(left, "gave up") != 1 || strings.Contains(left, "lost") {
					t.Errorf("besides what the owner is told, the outbox has %q", left)
				}
				s.end()
				next := newFake()
				s = serve(t, store, bot.Config{}, next)
				s.rest()
				if got := next.texts(annHome); got != "" {
					t.Errorf("said after the next start: %q", got)
				}
				s.end()
			})
		})
	}
}

// TestClosed leaves what a closed adapter could not say to the next, in its order.
func TestClosed(t *testing.T) {
	store := openStore(t)
	f := newFake()
	f.fail = func(d bot.Delivery, _ int) error {
		if d.Text == "one" {
			return nil
		}
		return &bot.SendError{Closed: true, Err: errors.New("the window is closed")}
	}
	s := serve(t, store, bot.Config{}, f)
	s.put(annHome, "one", "two", "three")
	s.rest()
	if f.texts(annHome) != "one" || outbox(t, store) != "two|three" {
		t.Errorf("said %q, outbox %q", f.texts(annHome), outbox(t, store))
	}
	if f.tries["three"] > 0 {
		t.Error("what stands behind was tried before what could not be said")
	}
	next := newFake()
	ctx, stop := context.WithCancel(context.Background())
	attached := make(chan error, 1)
	go func() { attached <- s.hub.Attach(ctx, next) }()
	<-next.listens
	s.rest()
	stop()
	if err := <-attached; err != nil {
		t.Errorf("attach: %v", err)
	}
	if next.texts(annHome) != "two|three" || outbox(t, store) != "" {
		t.Errorf("said %q, outbox %q", next.texts(annHome), outbox(t, store))
	}
}

// TestClosedWithAnother passes on at once what a closed adapter could not say, if another is there.
func TestClosedWithAnother(t *testing.T) {
	f, other := newFake(), newFake()
	other.home = annHome
	f.fail = func(bot.Delivery, int) error { return &bot.SendError{Closed: true, Err: errors.New("closed")} }
	// The last one that serves a conversation is the one that speaks there.
	s := serve(t, openStore(t), bot.Config{}, other, f)
	s.put(annHome, "one", "two")
	s.rest()
	if got := other.texts(annHome); got != "one|two" {
		t.Errorf("said by the other: %q", got)
	}
}

// TestAttach lets an adapter in while the hub serves, and says nothing through it once it has ended.
func TestAttach(t *testing.T) {
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, &fake{platform: "other", listens: make(chan struct{}), tries: map[string]int{}})
	s.put(annHome, "before")
	s.rest()
	late := newFake()
	ctx, stop := context.WithCancel(context.Background())
	attached := make(chan error, 1)
	go func() { attached <- s.hub.Attach(ctx, late) }()
	<-late.listens
	s.rest()
	s.receive(s.event("hello"))
	if got := late.texts(annHome); got != "before|echo hello" {
		t.Errorf("said %q", got)
	}
	stop()
	if err := <-attached; err != nil {
		t.Errorf("attach: %v", err)
	}
	s.put(annHome, "after")
	s.rest()
	if got := late.texts(annHome); got != "before|echo hello" || outbox(t, s.store) != "after" {
		t.Errorf("said %q, outbox %q", got, outbox(t, s.store))
	}
}

// slowStore holds up the next View after it has read, once it is armed.
type slowStore struct {
	memory.Store
	armed   atomic.Bool
	read    chan struct{} // gets a value when it has read
	release chan struct{}
}

func (s *slowStore) View(ctx context.Context, fn func(memory.Tx) error) error {
	err := s.Store.View(ctx, fn)
	if s.armed.CompareAndSwap(true, false) {
		s.read <- struct{}{}
		<-s.release
	}
	return err
}

// TestAttachDuringALook says what lay there before, though the outbox is being looked at from a later place.
func TestAttachDuringALook(t *testing.T) {
	store := &slowStore{Store: openStore(t), read: make(chan struct{}), release: make(chan struct{})}
	s := serve(t, store, bot.Config{}, &fake{platform: "other", listens: make(chan struct{}), tries: map[string]int{}})
	s.put(annHome, "one")
	s.rest()
	store.armed.Store(true)
	s.put(annHome, "two")
	<-store.read
	late := newFake()
	ctx, stop := context.WithCancel(context.Background())
	attached := make(chan error, 1)
	go func() { attached <- s.hub.Attach(ctx, late) }()
	<-late.listens
	close(store.release)
	s.rest()
	stop()
	if err := <-attached; err != nil {
		t.Errorf("attach: %v", err)
	}
	if got := late.texts(annHome); got != "one|two" {
		t.Errorf("said %q", got)
	}
}

// TestAttachedGone does not try on with an adapter that was taken away.
func TestAttachedGone(t *testing.T) {
	s := serve(t, openStore(t), bot.Config{}, &fake{platform: "other", listens: make(chan struct{}), tries: map[string]int{}})
	late := newFake()
	ctx, stop := context.WithCancel(context.Background())
	attached := make(chan error, 1)
	release := make(chan struct{})
	begun := make(chan struct{}, 1)
	late.hold = func(bot.Delivery) { begun <- struct{}{}; <-release }
	late.fail = func(bot.Delivery, int) error { return errors.New("down") }
	go func() { attached <- s.hub.Attach(ctx, late) }()
	<-late.listens
	s.put(annHome, "one", "two")
	<-begun
	stop()
	if err := <-attached; err != nil {
		t.Errorf("attach: %v", err)
	}
	close(release)
	s.rest()
	if got := outbox(t, s.store); got != "one|two" {
		t.Errorf("outbox %q", got)
	}
}

// TestConversationsDoNotBlock says in one conversation while another's platform hangs.
func TestConversationsDoNotBlock(t *testing.T) {
	f := newFake()
	release, said := make(chan struct{}), make(chan struct{})
	f.hold = func(d bot.Delivery) {
		if d.Address == annHome {
			<-release
		} else {
			close(said)
		}
	}
	s := serve(t, openStore(t), bot.Config{}, f)
	s.put(annHome, "slow", "slower")
	s.put(bobHome, "quick")
	<-said
	if got := f.texts(annHome); got != "" {
		t.Errorf("said too early: %q", got)
	}
	close(release)
	s.rest()
	if f.texts(annHome) != "slow|slower" || f.texts(bobHome) != "quick" {
		t.Errorf("said %q and %q", f.texts(annHome), f.texts(bobHome))
	}
}

// TestDrain ends with its context, and waits for what it is asked for only.
func TestDrain(t *testing.T) {
	f := newFake()
	release := make(chan struct{})
	begun := make(chan struct{}, 1)
	f.hold = func(bot.Delivery) { begun <- struct{}{}; <-release }
	s := serve(t, openStore(t), bot.Config{}, f)
	s.put(annHome, "slow")
	<-begun
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.hub.Drain(ctx, func(address string) bool { return address == bobHome }); err != nil {
		t.Errorf("drain of another conversation: %v", err)
	}
	cancel()
	if err := s.hub.Drain(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("drain after its context: %v", err)
	}
	close(release)
	if err := s.hub.Drain(context.Background(), nil); err != nil || f.texts(annHome) != "slow" {
		t.Errorf("drain: %v, said %q", err, f.texts(annHome))
	}
}

// TestEndKeepsTheRest ends while a platform fails: what was not said stays, and nothing behind it overtakes it.
func TestEndKeepsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		f := newFake()
		f.fail = func(d bot.Delivery, _ int) error {
			if d.Text == "one" {
				return errors.New("down")
			}
			return nil
		}
		s := serve(t, store, bot.Config{}, f)
		s.put(annHome, "one", "two")
		synctest.Wait()
		s.end()
		s.hub.Live(agent.Reply{Kind: agent.Progress, Text: "too late", Address: annHome})
		if f.texts(annHome) != "" || outbox(t, store) != "one|two" {
			t.Errorf("said %q, outbox %q", f.texts(annHome), outbox(t, store))
		}
		next := newFake()
		s = serve(t, store, bot.Config{}, next)
		s.rest()
		if got := next.texts(annHome); got != "one|two" {
			t.Errorf("said after the next start: %q", got)
		}
		s.end()
	})
}

// TestLiveKeepsItsPlace says progress between what was said before and after it, and drops it when that fails.
func TestLiveKeepsItsPlace(t *testing.T) {
	f := newFake()
	release := make(chan struct{})
	begun := make(chan struct{}, 10)
	f.hold = func(bot.Delivery) { begun <- struct{}{}; <-release }
	f.fail = func(d bot.Delivery, _ int) error {
		if d.Text == "dropped" {
			return errors.New("down")
		}
		return nil
	}
	s := serve(t, openStore(t), bot.Config{}, f)
	s.put(annHome, "one")
	<-begun
	for _, text := range []string{"half", "dropped"} {
		s.hub.Live(agent.Reply{Kind: agent.Progress, Text: text, Address: annHome})
	}
	s.hub.Live(agent.Reply{Kind: agent.Progress, Text: "nobody there", Address: "elsewhere:1:2:3"})
	s.put(annHome, "two")
	close(release)
	s.rest()
	if got := f.texts(annHome); got != "one|half|two" {
		t.Errorf("said %q", got)
	}
	for _, d := range f.all() {
		if (d.Key == "") != (d.Kind == agent.Progress) {
			t.Errorf("%s %q has the key %q", d.Kind, d.Text, d.Key)
		}
	}
}

// TestMarkKnowsItsCard gives the mark about a card the card's receipt: right behind it in the queue, and after a restart.
// Then nobody needs the receipt any more.
func TestMarkKnowsItsCard(t *testing.T) {
	store := openStore(t)
	card := agent.Reply{Kind: agent.Approval, ID: "card1", Tool: "erase", Address: annHome}
	mark := agent.Reply{Kind: agent.DecidedMark, ID: "card1", Tool: "erase", Decision: agent.Approve, Address: annHome}
	elsewhere, second, secondMark := mark, card, mark
	elsewhere.Address = bobHome
	second.ID, secondMark.ID = "card2", "card2"
	send(t, store, agent.Reply{Kind: agent.Final, Text: "before", Address: annHome}, card, second, secondMark, elsewhere)
	earlier := func(f *fake) string {
		var receipts []string
		for _, d := range f.all() {
			if d.Kind == agent.DecidedMark {
				receipts = append(receipts, d.Address[len("chat:local:dm:"):]+" "+d.ID+"="+d.Earlier)
			}
		}
		slices.Sort(receipts)
		return strings.Join(receipts, ", ")
	}
	f := newFake()
	f.home = annHome
	s := serve(t, store, bot.Config{}, f)
	s.rest()
	if got := earlier(f); got != "ann card2=receipt-3" {
		t.Errorf("the mark's receipts: %q", got)
	}
	if got := s.rows("receipt"); len(got) != 1 || !strings.HasPrefix(got[0], "card1 ") {
		t.Errorf("kept are the receipts %q", got)
	}
	s.end()
	next := newFake()
	send(t, store, mark)
	s = serve(t, store, bot.Config{}, next)
	s.rest()
	if got := earlier(next); got != "ann card1=receipt-2, bob card1=" {
		t.Errorf("the marks' receipts after a restart: %q", got)
	}
	if got := s.rows("receipt"); len(got) > 0 {
		t.Errorf("kept are the receipts %q", got)
	}
}

// TestAnAdapterThatFails does not end the others, and is told of at the end.
func TestAnAdapterThatFails(t *testing.T) {
	bad, good := newFake(), newFake()
	bad.platform = "bad"
	errLink := errors.New("the token was revoked")
	bad.hear = func(context.Context, bot.Receiver) error { return errLink }
	store := openStore(t)
	hub := bot.NewHub(bot.Config{Store: store})
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- hub.Serve(ctx, nil, bad, good) }()
	<-bad.listens
	<-good.listens
	send(t, store, agent.Reply{Kind: agent.Final, Text: "still here", Address: annHome})
	hub.Outgoing()
	if err := hub.Drain(context.Background(), nil); err != nil || good.texts(annHome) != "still here" {
		t.Errorf("drain: %v, said %q", err, good.texts(annHome))
	}
	stop()
	if err := <-served; !errors.Is(err, errLink) && err != nil {
		t.Errorf("served: %v", err)
	}
}

// TestUnreadableParcel passes over what cannot be read, and keeps that it was there.
func TestUnreadableParcel(t *testing.T) {
	store := openStore(t)
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		_, err := tx.Outbox().Put(annHome, []byte("{"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	s := serve(t, store, bot.Config{}, f)
	s.put(annHome, "readable")
	s.rest()
	total, letters := deadLetters(t, store)
	if got := f.texts(annHome); got != "readable" || total != 1 || letters[0].Conversation != annHome {
		t.Errorf("said %q, dead letters %+v", got, letters)
	}
}

// TestManyAtOnce admits many people at once and answers each of them once, in their own conversation.
func TestManyAtOnce(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	const people = 20
	var admitted sync.WaitGroup
	for i := range people {
		admitted.Go(func() {
			who := agent.Person{ID: agent.PersonID(fmt.Sprint("chat:p", i))}
			e := bot.Event{Keys: []string{string(who.ID)}, From: who, Address: who.ID.Home(), Text: fmt.Sprint("I am ", i)}
			for range 2 {
				if _, err := s.hub.Receive(context.Background(), e); err != nil {
					t.Errorf("receive: %v", err)
				}
			}
		})
	}
	admitted.Wait()
	s.rest()
	for i := range people {
		home := agent.PersonID(fmt.Sprint("chat:p", i)).Home()
		if got := f.texts(home); got != fmt.Sprint("echo I am ", i) {
			t.Errorf("in %s: %q", home, got)
		}
	}
}
