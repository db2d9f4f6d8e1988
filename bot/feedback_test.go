package bot_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/memorytest"
	"nudge/schedule"
)

// monday is when Ann says what she makes of things: 13:00 of the last of November in Berlin.
var monday = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func disk(people ...string) schedule.Heartbeat {
	return schedule.Heartbeat{
		Name: "disk", Cron: "@every 1h", For: people, Prompt: "Look at the disk.", Condition: schedule.Spec{Kind: "command", Run: []string{"x"}},
	}
}

// pings counts them, so that each comes later than those before.
var pings atomic.Int64

// ping lets heartbeat disk tell somebody something.
func ping(t *testing.T, store memory.Store, person agent.PersonID, text string) (card string) {
	t.Helper()
	home := person.Home()
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		if err := schedule.Save(tx, disk(string(ann.ID), string(bob.ID)), monday); err != nil {
			return err
		}
		session, err := agent.SessionOf(tx, home)
		if err != nil {
			return err
		}
		made, err := schedule.AddCard(tx, schedule.Card{
			Person: string(person), Heartbeat: "disk", Address: home, Session: session, Text: text, Tick: monday, Told: monday.Add(time.Duration(pings.Add(1)) * time.Second),
		})
		if err != nil {
			return err
		}
		card = made.ID
		_, err = agent.Tell(tx, home, agent.Note{Heartbeat: "disk", Text: text, Card: card}, "normal", "disk")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return card
}

func (s *stage) ping(person agent.PersonID, text string) (card string) {
	s.Helper()
	card = ping(s.T, s.store, person, text)
	s.hub.Outgoing()
	s.rest()
	return card
}

// press is a button of a notify card.
func (s *stage) press(from agent.Person, address, card string, said schedule.Feedback, span schedule.Span) bot.Event {
	e := s.event("")
	e.From, e.Address, e.At = from, address, monday
	e.Feedback = &bot.Feedback{Card: card, Said: said, Span: span}
	return e
}

func attention(t *testing.T, store memory.Store, person agent.PersonID) (a schedule.Attention) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		a, err = schedule.LoadAttention(tx, string(person))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestFeedbackSettlesTheCard(t *testing.T) {
	f := newFake()
	f.edits = true
	looks := 0
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}, Rescheduled: func() { looks++ }}, f)
	card := s.ping(ann.ID, "It fills *up*.")
	said := f.all()
	told := said[len(said)-1]
	if !told.TakesFeedback() || told.ID != card || told.Heartbeat != "disk" {
		t.Fatalf("said %+v", told)
	}
	receipt := fmt.Sprint("receipt-", len(said))
	for i, row := range []struct {
		said schedule.Feedback
		span schedule.Span
		text string
	}{
		{schedule.Snooze, schedule.TillTomorrow, "Snoozed until Tue 1 Dec 09:00 CET: nothing is said to you unasked before that, and what is true then comes then. Undo: /snooze off"},
		{schedule.Snooze, schedule.AnHour, "Snoozed until Mon 30 Nov 14:00 CET: nothing is said to you unasked before that, and what is true then comes then. Undo: /snooze off"},
		{schedule.Less, "", "Less of this: disk speaks to you at most every 2 hours. Take it back: /useful disk The snooze is lifted."},
		{schedule.Less, "", "Less of this: disk speaks to you at most every 2 hours. Take it back: /useful disk The snooze is lifted."},
		{schedule.Useful, "", "Noted as useful."},
	} {
		e := s.press(ann, annHome, card, row.said, row.span)
		before := len(f.all())
		if got := s.receive(e); got != bot.Taken {
			t.Errorf("%d: the press is %v", i, got)
		}
		if got := s.receive(e); got != bot.Repeat {
			t.Errorf("%d: the redelivered press is %v", i, got)
		}
		marks := f.all()[before:]
		if len(marks) != 1 {
			t.Fatalf("%d: %d things were said", i, len(marks))
		}
		m := marks[0]
		if m.Kind != agent.DecidedMark || !m.IsFeedback() || m.Text != row.text || m.Earlier != receipt || m.Told != "It fills *up*." ||
			m.Decision != agent.Verdict(row.said) || m.By != string(ann.ID) || m.Address != annHome || !m.At.Equal(monday) {
			t.Errorf("%d: said %+v, want %q", i, m, row.text)
		}
		if bot.DecidedText(m.Reply) != row.text {
			t.Errorf("%d: the card says %q", i, bot.DecidedText(m.Reply))
		}
	}
	if looks != 10 {
		t.Errorf("the clock was told to look %d times", looks)
	}
	if n := len(s.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestFeedbackWithoutEditsIsANotice(t *testing.T) {
	s, f := newStage(t, "")
	card := s.ping(ann.ID, "It fills up.")
	s.receive(s.press(ann, annHome, card, schedule.Less, ""))
	said := f.all()
	if last := said[len(said)-1]; last.Kind != agent.Notice || last.Text != "Less of this: disk speaks to you at most every 2 hours. Take it back: nudge useful disk" {
		t.Errorf("said %+v", last)
	}
}

func TestOnlyWhoWasToldGivesFeedback(t *testing.T) {
	f := newFake()
	f.edits = true
	s := serve(t, openStore(t), bot.Config{Allow: []string{string(ann.ID), string(bob.ID)}}, f)
	card := s.ping(ann.ID, "It fills up.")
	s.receive(s.press(bob, annHome, card, schedule.Snooze, schedule.AnHour))
	s.receive(s.press(bob, "chat:T:C:1", card, schedule.Less, ""))
	if got := s.receive(s.press(agent.Person{ID: "chat:eve"}, annHome, card, schedule.Less, "")); got != bot.Refused {
		t.Errorf("a stranger's press is %v", got)
	}
	if got := f.texts(annHome); got != "It fills up." {
		t.Errorf("Ann reads %q", got)
	}
	refusals := 0
	for _, d := range f.all() {
		if strings.HasPrefix(d.Text, "This is not yours to decide: ") && d.To == bob.ID && (d.Address == bobHome || d.Address == "chat:T:C:1") {
			refusals++
		}
	}
	if refusals != 2 || !reflect.DeepEqual(attention(t, s.store, ann.ID), schedule.Attention{}) || !reflect.DeepEqual(attention(t, s.store, bob.ID), schedule.Attention{}) {
		t.Errorf("%d refusals", refusals)
	}
	s.receive(s.press(ann, annHome, "n1", schedule.Less, ""))
	s.receive(s.press(ann, annHome, card, schedule.Snooze, "2h"))
	if got := f.texts(annHome); got != "It fills up.|This message is too old, or was erased, so nothing was done. /snooze still works.|Nothing was done: a snooze lasts 1h, 4h or until tomorrow." {
		t.Errorf("Ann reads %q", got)
	}
}

// digest lets a digest tell Ann of heartbeats.
func (s *stage) digest(heartbeats ...string) (card schedule.Card) {
	s.Helper()
	err := s.store.Update(context.Background(), func(tx memory.Tx) error {
		for _, name := range heartbeats {
			h := disk(string(ann.ID))
			if h.Name = name; name == "call" {
				h.Cron = "@at 2030-01-01T08:00"
			}
			if err := schedule.Save(tx, h, monday); err != nil {
				return err
			}
		}
		session, err := agent.SessionOf(tx, annHome)
		if err != nil {
			return err
		}
		card, err = schedule.AddCard(tx, schedule.Card{
			Person: string(ann.ID), Digest: heartbeats, Address: annHome, Session: session, Text: "Held back until now:", Tick: monday,
			Told: monday.Add(time.Duration(pings.Add(1)) * time.Second),
		})
		if err != nil {
			return err
		}
		_, err = agent.Tell(tx, annHome, agent.Note{Digest: true, Text: card.Text, Card: card.ID, Once: card.Once}, "low", "digest")
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	s.hub.Outgoing()
	s.rest()
	return card
}

// last is what was said last.
func (s *stage) last(f *fake) bot.Delivery {
	s.Helper()
	s.rest()
	all := f.all()
	return all[len(all)-1]
}

// TestADigestIsJudged: what is said of it counts for each heartbeat that it tells of, and what is said of one by name for that one.
func TestADigestIsJudged(t *testing.T) {
	f := newFake()
	f.edits = true
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	card := s.digest("disk", "mail", "call")
	told := s.last(f)
	if !told.TakesLess() || told.ID != card.ID || told.Heartbeat != "" {
		t.Errorf("said %+v", told)
	}
	if got := bot.FeedbackHint(told.Reply, "/"); got != "/useful   /less   /snooze 1h|4h|tomorrow" {
		t.Errorf("the hint is %q", got)
	}
	s.receive(s.press(ann, annHome, card.ID, schedule.Less, ""))
	mark := s.last(f)
	want := "Less of this: disk speaks to you at most every 2 hours. mail speaks to you at most every 2 hours. Take it back: /useful NAME"
	if !mark.IsFeedback() || mark.Text != want || mark.Earlier == "" {
		t.Errorf("said %+v, want %q", mark, want)
	}
	less := func(heartbeat string) int {
		if taste := attention(t, s.store, ann.ID).Tastes[heartbeat]; taste != nil {
			return taste.Less
		}
		return 0
	}
	expect := func(when string, disk, mail int) {
		t.Helper()
		if less("disk") != disk || less("mail") != mail || less("call") != 0 {
			t.Errorf("%s: %d, %d, %d", when, less("disk"), less("mail"), less("call"))
		}
	}
	expect("less of the digest", 1, 1)
	before := len(f.all())
	s.receive(s.event("/useful mail"))
	if got := s.last(f); got.Kind != agent.Notice || got.Text != "Noted as useful. mail speaks to you as often as it did at first." || len(f.all()) != before+1 {
		t.Errorf("said %+v", got)
	}
	expect("mail is useful", 1, 0)
	s.receive(s.event("/useful"))
	s.receive(s.press(ann, annHome, card.ID, schedule.Useful, ""))
	expect("the digest is useful", 0, 0)
	s.receive(s.press(ann, annHome, card.ID, schedule.Snooze, schedule.AnHour))
	if got := s.last(f); !got.IsFeedback() || !strings.HasPrefix(got.Text, "Snoozed until Mon 30 Nov 14:00 CET: ") || strings.Contains(got.Text, "reminder") {
		t.Errorf("said %+v", got)
	}
}

// TestADigestOfOneHeartbeat is judged by that one's name.
func TestADigestOfOneHeartbeat(t *testing.T) {
	f := newFake()
	f.edits = true
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	card := s.digest("disk")
	s.receive(s.event("/less disk"))
	var mark bot.Delivery
	s.rest()
	for _, d := range f.all() {
		if d.IsFeedback() {
			mark = d
		}
	}
	if want := "Less of this: disk speaks to you at most every 2 hours. Take it back: /useful disk"; mark.ID != card.ID || mark.Text != want {
		t.Errorf("said %+v, want %q", mark, want)
	}
}

// TestThereIsNoLessOfWhatComesOnce: a reminder has no such button, and an old one or a command is answered.
func TestThereIsNoLessOfWhatComesOnce(t *testing.T) {
	f := newFake()
	f.edits = true
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	card := s.digest("call")
	told := s.last(f)
	if told.TakesLess() || !told.TakesFeedback() || bot.FeedbackHint(told.Reply, "/") != "/useful   /snooze 1h|4h|tomorrow" {
		t.Errorf("said %+v, %q", told, bot.FeedbackHint(told.Reply, "/"))
	}
	for _, e := range []bot.Event{s.press(ann, annHome, card.ID, schedule.Less, ""), s.event("/less call"), s.event("/less")} {
		s.receive(e)
		if got := s.last(f); got.Kind != agent.Fault || !strings.Contains(got.Text, "it comes but once") {
			t.Errorf("said %+v", got)
		}
	}
	if a := attention(t, s.store, ann.ID); len(a.Tastes) != 0 {
		t.Errorf("something has changed: %+v", a)
	}
}

// TestFeedbackSurvivesCrashes lets every write of a press crash, before and after it. The platform delivers it again.
func TestFeedbackSurvivesCrashes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			crashed := true
			t.Run(fmt.Sprintf("write %d, kept %v", n, after), func(t *testing.T) { crashed = pressCrashing(t, n, after) })
			if !crashed {
				if n < 2 {
					t.Error("a press writes nothing")
				}
				break
			}
		}
	}
}

func pressCrashing(t *testing.T, n int, after bool) bool {
	whole := openStore(t)
	store := memorytest.NewFaulty(whole)
	card := ping(t, whole, ann.ID, "It fills up.")
	f := newFake()
	f.edits = true
	s := serve(t, store, bot.Config{Allow: []string{"chat:*"}, FirstWait: time.Millisecond, Grace: time.Millisecond}, f)
	s.rest()
	store.FailAt(store.Count()+n, after)
	e := s.press(ann, annHome, card, schedule.Less, "")
	_, err := s.hub.Receive(context.Background(), e)
	if err == nil {
		s.drainOrCrash(store)
	}
	select {
	case <-store.Crashed():
	default:
		return false
	}
	s.end()
	store.Revive()
	again := newFake()
	again.edits = true
	s = serve(t, store, bot.Config{Allow: []string{"chat:*"}}, again)
	s.receive(e)
	marks := 0
	for _, d := range append(f.all(), again.all()...) {
		if d.IsFeedback() {
			marks++
		}
	}
	taste := attention(t, store, ann.ID).Tastes["disk"]
	if taste == nil || taste.Less != 1 || taste.Asked != 1 || marks == 0 {
		t.Errorf("after a crash, pressed again: %+v, and %d marks", taste, marks)
	}
	return true
}

// drainOrCrash waits until everything was said, or the store has crashed: then it cannot be noted that something was.
func (s *stage) drainOrCrash(store *memorytest.Faulty) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-store.Crashed():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := s.hub.Drain(ctx, nil)
	if err != nil && ctx.Err() == nil {
		s.Error(err)
	}
	cancel()
	<-ended
}

func TestSnoozeCommand(t *testing.T) {
	s, f := newStage(t, "/")
	say := func(text, want string) {
		t.Helper()
		e := s.event(text)
		e.At = monday
		before := len(f.all())
		s.receive(e)
		said := f.all()[before:]
		if len(said) != 1 || string(said[0].Kind)+" "+said[0].Text != want {
			t.Errorf("%q was answered %+v, want %q", text, said, want)
		}
	}
	say("/less", "error No heartbeat has told you anything yet.")
	say("/useful disk", `error No heartbeat "disk" has told you anything. /heartbeats lists yours.`)
	say("/snooze 4h disk", `error No heartbeat "disk" wakes me for you. /heartbeats lists those that do.`)
	s.ping(bob.ID, "It fills up.")
	say("/less disk", `error No heartbeat "disk" has told you anything. /heartbeats lists yours.`)
	s.ping(ann.ID, "It fills up.")
	say("/snooze", "notice Nothing is snoozed.")
	usage := "error Say how long: /snooze 1h, /snooze 4h or /snooze tomorrow, perhaps with the name of a heartbeat; /snooze off ends it."
	say("/snooze 2h", usage)
	say("/snooze disk", usage)
	say("/snooze 1h", "notice Snoozed until Mon 30 Nov 14:00 CET: nothing is said to you unasked before that, and what is true then comes then. Undo: /snooze off")
	say("/snooze Tomorrow disk", "notice Snoozed until Tue 1 Dec 09:00 CET: disk says nothing to you before that, and what is true then comes then. Undo: /snooze off disk")
	say("/snooze", "notice Nothing is said to you unasked until Mon 30 Nov 14:00 CET.\ndisk says nothing to you until Tue 1 Dec 09:00 CET.")
	say("/less", "notice Less of this: disk speaks to you at most every 2 hours. Take it back: /useful disk")
	say("/less disk", "notice Less of this: disk speaks to you at most every 2 hours. Take it back: /useful disk")
	say("/heartbeats", "notice disk  every hour, when a program says so: Look at the disk.  (snoozed until Tuesday 1 December 2026 at 09:00 CET; "+
		"at most every 2 hours, so not before Monday 30 November 2026 at 15:00 CET)")
	s.ping(ann.ID, "It fills up more.")
	say("/less disk", "notice Less of this: disk speaks to you at most every 4 hours. Take it back: /useful disk")
	say("/snooze off disk", "notice disk may speak to you again; what was held back comes now, if it is still so.")
	say("/snooze", "notice Nothing is said to you unasked until Mon 30 Nov 14:00 CET.")
	say("/snooze off", "notice Nothing is snoozed any more; what was held back comes now, if it is still so.")
	say("/snooze", "notice Nothing is snoozed.")
	s.ping(ann.ID, "It fills up.")
	say("/useful", "notice Noted as useful. disk speaks to you at most every 2 hours.")
	s.ping(ann.ID, "It fills up.")
	say("/useful", "notice Noted as useful. disk speaks to you as often as it did at first.")
	say("/heartbeats", "notice disk  every hour, when a program says so: Look at the disk.  (useful 2 times)")
	if n := len(s.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestASpokenSnooze(t *testing.T) {
	s, f := newStage(t, "")
	e := s.event("nudge snooze tomorrow")
	e.At, e.From = monday, agent.Person{ID: ann.ID} // whose zone is not known
	s.receive(e)
	if got := f.texts(annHome); !strings.HasPrefix(got, "Snoozed until Tue 1 Dec 09:00 UTC: ") || !strings.HasSuffix(got, "Undo: nudge snooze off") {
		t.Errorf("answered %q", got)
	}
	s.receive(s.event("hello")) // and is known from now on
	before := f.texts(annHome)
	e = s.event("nudge snooze tomorrow")
	e.At, e.From = monday, agent.Person{ID: ann.ID}
	s.receive(e)
	if got := strings.TrimPrefix(f.texts(annHome), before+"|"); !strings.HasPrefix(got, "Snoozed until Tue 1 Dec 09:00 CET: ") {
		t.Errorf("answered %q", got)
	}
}

func TestErasedCardsTakeNoFeedback(t *testing.T) {
	f := newFake()
	f.edits = true
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	s.answered(f, "hello")
	card := s.ping(ann.ID, "It fills up.")
	s.receive(s.press(ann, annHome, card, schedule.Less, ""))
	s.answered(f, "/sessions erase 1 yes")
	if got := f.texts(annHome); !strings.Contains(got, "1 notify card") || !strings.Contains(got, "1 card receipt") {
		t.Errorf("it removed %q", got)
	}
	before := len(f.all())
	s.receive(s.press(ann, annHome, card, schedule.Useful, ""))
	if said := f.all()[before:]; len(said) != 1 || !strings.HasPrefix(said[0].Text, "This message is too old, or was erased") {
		t.Errorf("said %+v", said)
	}
	err := s.store.View(context.Background(), func(tx memory.Tx) error {
		left, err := schedule.Cards(tx, func(schedule.Card) bool { return true })
		if len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestWhereOldCardsStandIsForgotten, within the hour, and not where others stand.
func TestWhereOldCardsStandIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.edits = true
		s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
		old, kept := s.ping(ann.ID, "It fills up."), s.ping(bob.ID, "It fills up.")
		if err := s.store.Update(t.Context(), func(tx memory.Tx) error { _, err := schedule.ForgetPerson(tx, string(ann.ID)); return err }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		before := len(f.all())
		for card, person := range map[string]agent.PersonID{old: ann.ID, kept: bob.ID} {
			send(t, s.store, bot.FeedbackMark(schedule.Card{ID: card, Heartbeat: "disk", Said: schedule.Useful, Answer: "Noted.", Address: person.Home()}))
		}
		s.hub.Outgoing()
		s.rest()
		marks := f.all()[before:]
		if len(marks) != 2 {
			t.Fatalf("%d marks are said", len(marks))
		}
		for _, m := range marks {
			if known := m.Earlier != ""; known != (m.ID == kept) {
				t.Errorf("of %s it is known that it stands at %q", m.Address, m.Earlier)
			}
		}
		s.end()
	})
}
