package bot_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/model"
	"nudge/bot"
	"nudge/memory"
)

// has reports whether a session has anything.
func (s *stage) has(session string) (there bool) {
	s.Helper()
	err := s.store.View(context.Background(), func(tx memory.Tx) (err error) {
		there, err = agent.HasSession(tx, session)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return there
}

func (s *stage) checked() {
	s.Helper()
	err := s.store.View(context.Background(), func(tx memory.Tx) error {
		return agent.Check(tx, func(problem string) { s.Errorf("a check finds: %s", problem) })
	})
	if err != nil {
		s.Error(err)
	}
}

// rows are the keys of a table's rows.
func (s *stage) rows(table string) (keys []string) {
	s.Helper()
	err := s.store.View(context.Background(), func(tx memory.Tx) error {
		keys = nil
		return tx.Table(table).Scan("", func(key string, _ []byte) error { keys = append(keys, key); return nil })
	})
	if err != nil {
		s.Fatal(err)
	}
	return keys
}

func TestExportCommand(t *testing.T) {
	s, f := newStage(t, "/")
	s.expect(f, "/export", "notice Nothing is kept of this conversation yet.")
	s.answered(f, "the first words")
	s.answered(f, "/new")
	s.answered(f, "the second words")
	got := s.answered(f, "/export")
	for _, part := range []string{"notice # Session " + annHome + "~2", "> the second words", "> echo the second words"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in %q", part, got)
		}
	}
	if strings.Contains(got, "the first words") {
		t.Errorf("another session is in %q", got)
	}
}

// Where others read along, or in somebody else's conversation, nothing is shown and nothing erased.
func TestExportAndEraseOnlyInOnesOwnDirectConversation(t *testing.T) {
	s, f := newStage(t, "/")
	for _, address := range []string{"chat:T:C:1", bobHome, annHome + "a", "chat:T:dm:ann"} {
		e := s.event("hello")
		e.Address = address
		s.receive(e)
		for _, text := range []string{"/export", "/sessions erase 1", "/sessions erase 1 yes"} {
			before := f.texts(address)
			e := s.event(text)
			e.Address = address
			s.receive(e)
			if got := strings.TrimPrefix(f.texts(address), before+"|"); !strings.HasPrefix(got, "Only in a direct conversation with me") {
				t.Errorf("%s in %s was answered %q", text, address, got)
			}
		}
		if !s.has(address) {
			t.Errorf("%s is gone", address)
		}
	}
}

func TestEraseCommand(t *testing.T) {
	s, f := newStage(t, "/")
	for _, text := range []string{"/sessions erase", "/sessions erase 1", "/sessions erase 1 yes", "/sessions erase one yes"} {
		if got := s.answered(f, text); !strings.HasPrefix(got, "error There is no conversation number") {
			t.Errorf("%s: %q", text, got)
		}
	}
	s.answered(f, "the first")
	s.answered(f, "/new")
	s.answered(f, "the second")
	s.answered(f, "/new")
	s.answered(f, "the third")
	if got := s.answered(f, "/sessions erase 2"); !strings.HasPrefix(got, "notice This removes conversation number 2 for good") || !strings.HasSuffix(got, "/sessions erase 2 yes") {
		t.Errorf("it asks %q", got)
	}
	for _, text := range []string{"/sessions erase 2 no", "/sessions erase 2 yes please"} {
		if got := s.answered(f, text); !strings.HasPrefix(got, "notice This removes") {
			t.Errorf("%s: %q", text, got)
		}
	}
	if !s.has(annHome + "~2") {
		t.Fatal("it was erased unconfirmed")
	}
	got := s.answered(f, "/sessions erase 2 yes")
	if !strings.HasPrefix(got, "notice Conversation number 2 is erased: ") || !strings.Contains(got, "journal line") || !strings.Contains(got, "1 turn") {
		t.Errorf("an old one: %q", got)
	}
	if s.has(annHome+"~2") || !s.has(annHome) || !s.has(annHome+"~3") {
		t.Error("another one was erased")
	}
	s.answered(f, "and on")
	if view := s.view(); !strings.Contains(view, "the third") {
		t.Errorf("the present conversation is %q", view)
	}
	if got := s.answered(f, "/sessions erase 3 Yes"); !strings.HasPrefix(got, "notice Conversation number 3 is erased: ") {
		t.Errorf("the present one: %q", got)
	}
	s.expect(f, "/new", "notice This conversation is fresh already.")
	s.answered(f, "afresh")
	if view := s.view(); strings.Contains(view, "the third") || strings.Contains(view, "the first") {
		t.Errorf("the conversation after it is %q", view)
	}
	if got := s.answered(f, "/sessions"); !strings.HasPrefix(got, "notice 1  last used") || !strings.Contains(got, "\n4  last used") || !strings.HasSuffix(got, "(this one)") {
		t.Errorf("left are %q", got)
	}
	s.checked()
}

// TestEraseASpokenCommand is erasing where commands are the word nudge and their own.
func TestEraseASpokenCommand(t *testing.T) {
	s, f := newStage(t, "")
	s.answered(f, "hello")
	if got := s.answered(f, "nudge sessions erase 1"); !strings.HasSuffix(got, "say nudge sessions erase 1 yes") {
		t.Errorf("it asks %q", got)
	}
	s.answered(f, "nudge sessions erase 1 yes")
	if s.has(annHome) {
		t.Error("it is still there")
	}
}

// TestEraseWithACard takes what the card left in other places too. What was given up keeps its place without its words.
func TestEraseWithACard(t *testing.T) {
	s, f := newStage(t, "/")
	f.fail = func(d bot.Delivery, _ int) error {
		if strings.Contains(d.Text, "undeliverable") {
			return &bot.SendError{Gone: true, Err: context.Canceled}
		}
		return nil
	}
	s.answered(f, "undeliverable")
	e := s.event("undeliverable")
	e.From, e.Address = bob, bobHome
	s.receive(e)
	s.answered(f, "erase it")
	if rows := s.rows("receipt"); len(rows) != 1 {
		t.Fatalf("there are receipts %q", rows)
	}
	card := s.card(f)
	if got := s.answered(f, "/sessions erase 1 yes"); !strings.Contains(got, "1 card, ") || !strings.Contains(got, "1 card receipt, 1 dead letter.") {
		t.Errorf("erased: %q", got)
	}
	if rows := append(s.rows("receipt"), s.rows("waiting")...); len(rows) > 0 {
		t.Errorf("left are %q", rows)
	}
	total, letters := deadLetters(t, s.store)
	for _, l := range letters {
		if (l.Text == "") != (l.Conversation == annHome) {
			t.Errorf("a dead letter to %s says %q", l.Conversation, l.Text)
		}
	}
	if total != 2 || len(letters) != 2 {
		t.Errorf("there are %d dead letters", total)
	}
	s.expect(f, "/approve "+card, "error There is no card "+card+". /approvals lists those that wait.")
	s.checked()
}

// TestEraseWhatIsPutAside takes the lines of the session that an adapter had put aside, and no others.
func TestEraseWhatIsPutAside(t *testing.T) {
	s, f := newStage(t, "/")
	s.answered(f, "hello")
	put := func(conversation, name, session string) {
		err := s.store.Update(context.Background(), func(tx memory.Tx) error {
			return tx.Table(bot.TableKept).Put(conversation+" "+name, []byte(`{"kind":"notice","session":"`+session+`","text":"x"}`))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(annHome, "1", annHome)
	put(annHome, "2", annHome+"~2")
	put(annHome, "3", "")
	put(annHome+":thread", "4", annHome+":thread")
	put(bobHome, "5", bobHome)
	if got := s.answered(f, "/sessions erase 1 yes"); !strings.Contains(got, "1 kept line") {
		t.Errorf("erased: %q", got)
	}
	want := []string{annHome + " 2", annHome + " 3", annHome + ":thread 4", bobHome + " 5"}
	if got := s.rows(bot.TableKept); !slices.Equal(got, want) {
		t.Errorf("left are %q", got)
	}
	s.checked()
}

// TestEraseOnce erases once, however often it is delivered: a repeat leaves alone what has begun since.
func TestEraseOnce(t *testing.T) {
	s, f := newStage(t, "/")
	s.answered(f, "hello")
	e := s.event("/sessions erase 1 yes")
	if got := s.receive(e); got != bot.Taken || s.has(annHome) {
		t.Fatalf("admission %d", got)
	}
	err := s.store.Update(context.Background(), func(tx memory.Tx) error { return agent.SetSession(tx, annHome, annHome) })
	if err != nil {
		t.Fatal(err)
	}
	s.answered(f, "hello again")
	begun, goOn := make(chan struct{}), make(chan struct{})
	s.model.Script = func(req model.Request) model.Answer {
		close(begun)
		<-goOn
		return echo(req)
	}
	if _, err := s.hub.Receive(context.Background(), s.event("slowly")); err != nil {
		t.Fatal(err)
	}
	<-begun
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // which is not waited for when all is well
	defer cancel()
	if got, err := s.hub.Receive(ctx, e); got != bot.Repeat || err != nil {
		t.Errorf("again: admission %d, %v", got, err)
	}
	close(goOn)
	s.rest()
	if !s.has(annHome) || !strings.HasSuffix(f.texts(annHome), "|echo slowly") {
		t.Errorf("said %q", f.texts(annHome))
	}
}

func TestErasedInWords(t *testing.T) {
	for want, removed := range map[string]bot.Erased{
		"nothing":                               {},
		"1 journal line":                        {Erased: agent.Erased{Entries: 1}},
		"2 turns, 1 waiting message":            {Erased: agent.Erased{Turns: 2, Mail: 1}},
		"2 cards, 3 undelivered parcels":        {Erased: agent.Erased{Cards: []string{"a", "b"}, Parcels: 3}},
		"1 saved result, 2 card receipts":       {Erased: agent.Erased{Results: 1}, Receipts: 2},
		"1 journal line, 1 turn, 1 dead letter": {Erased: agent.Erased{Entries: 1, Turns: 1}, Letters: 1},
	} {
		if got := removed.String(); got != want {
			t.Errorf("%+v is %q, want %q", removed, got, want)
		}
	}
}

// TestEraseOfASharedThread is for operators; the thread goes on afresh.
func TestEraseOfASharedThread(t *testing.T) {
	s, f := newStage(t, "/")
	const thread = "chat:T:C:1"
	say := func(text string) {
		e := s.event(text)
		e.Address, e.At = thread, time.Now()
		s.receive(e)
	}
	say("before")
	removed, err := bot.Erase(context.Background(), s.agent, thread)
	if err != nil || removed.Entries == 0 || s.has(thread) {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	say("after")
	if view := s.view(); strings.Contains(view, "before") || !strings.HasSuffix(f.texts(thread), "echo ann: after") {
		t.Errorf("the model is sent %q", view)
	}
}
