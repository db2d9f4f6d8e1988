package bot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/tool/workspace"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/diary"
	"nudge/memory/memorytest"
	"nudge/schedule"
)

// oblivions are those who are being forgotten.
func oblivions(t *testing.T, store memory.Store) (all []bot.Oblivion) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		all, err = bot.Oblivions(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// openRequests are the ids of Ann's cards of the hub that wait for her.
func openRequests(t *testing.T, store memory.Store) (ids []string) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) error {
		cards, err := bot.Requests(tx, ann.ID, false, annHome)
		for _, card := range cards {
			ids = append(ids, card.ID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// finish does what is left of forgetting somebody, as the program does.
func (s *stage) finish(o bot.Oblivion) (receipt string, err error) {
	ctx := context.Background()
	if o, err = o.Remove(ctx, s.agent, s.diary); err != nil {
		return "", err
	}
	err = s.store.Update(ctx, func(tx memory.Tx) (err error) {
		receipt, err = o.Done(tx, "")
		return err
	})
	s.hub.Outgoing()
	return receipt, err
}

func TestForgetMeAsksFirst(t *testing.T) {
	f := newFake()
	asked := 0
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}, Forget: func() { asked++ }}, f)
	s.linkUp(f, ann, bob)
	s.says(f, ann, "hello")
	e := s.event("/forget-me")
	e.Address = "chat:T:C1:t1"
	before := len(f.all())
	s.receive(e)
	for _, d := range f.all()[before:] {
		if d.IsCard() || d.To != ann.ID {
			t.Errorf("in a channel: %+v", d.Reply)
		}
	}
	said := s.says(f, ann, "/forget-me")
	card := s.asked(said, ann)
	if text := textsOf(said); !strings.Contains(text, "chat:ann, chat:bob") {
		t.Errorf("she is not told that both accounts go: %s", text)
	}
	if text := textsOf(s.clicks(f, bob, card, "Forget me")); !strings.Contains(text, "not yours to decide") {
		t.Errorf("by the other account: %s", text)
	}
	if text := textsOf(s.clicks(f, ann, card, "Keep everything")); !strings.Contains(text, "Nothing was removed") || len(oblivions(t, s.store)) > 0 || asked > 0 {
		t.Errorf("refused: %s", text)
	}
	older := s.asked(s.says(f, ann, "/forget-me"), ann)
	again := s.says(f, ann, "/forget-me")
	card = s.asked(again, ann)
	if text := textsOf(again); older == card || !strings.Contains(text, "decided") || len(openRequests(t, s.store)) != 1 {
		t.Errorf("asked for again, %q and %q are open: %s", openRequests(t, s.store), card, text)
	}
	if text := textsOf(s.clicks(f, ann, older, "Forget me")); !strings.Contains(text, "the newer card counts") || len(oblivions(t, s.store)) > 0 {
		t.Errorf("the older card: %s", text)
	}
	s.clicks(f, ann, card, "Forget me")
	begun := oblivions(t, s.store)
	if asked != 1 || len(begun) != 1 || len(begun[0].Accounts) != 2 || begun[0].Removed != "" {
		t.Fatalf("agreed: asked %d times, %+v", asked, begun)
	}
	before = len(f.all())
	receipt, err := s.finish(begun[0])
	if err != nil {
		t.Fatal(err)
	}
	s.rest()
	if text := textsOf(f.all()[before:]); !strings.Contains(text, annHome+" notice Forgotten: chat:ann, chat:bob. Removed: ") || !strings.Contains(receipt, "session") {
		t.Errorf("the receipt: %s", text)
	}
	if left := oblivions(t, s.store); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	if s.samePerson(ann, bob) {
		t.Error("the accounts are still linked")
	}
}

// filled is a store in which every room keeps something of Ann's, with a word in it.
func filled(t *testing.T, store memory.Store, word string) {
	t.Helper()
	f := newFake()
	f.edits = true
	s := serve(t, store, bot.Config{Allow: []string{"chat:*"}, Diary: diary.New(diary.Config{Store: store})}, f)
	s.says(f, ann, "hello "+word)
	s.says(f, ann, "erase "+word) // leaves a card
	s.says(f, bob, "hello from bob")
	s.says(f, ann, "/link new")
	if _, _, err := s.diary.Remember(context.Background(), "chat:ann", diary.Note{Text: "note of " + word, Scope: diary.Private}); err != nil {
		t.Fatal(err)
	}
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		now := time.Now()
		h := schedule.Heartbeat{Name: "hers", Cron: "@every 1h", For: []string{"chat:ann"}, By: "chat:ann", Prompt: word, Condition: schedule.Spec{Kind: "always"}}
		his := schedule.Heartbeat{Name: "his", Cron: "@every 1h", For: []string{"chat:bob", "chat:ann"}, By: "chat:bob", Prompt: "for both", Condition: schedule.Spec{Kind: "always"}}
		return errors.Join(
			schedule.Save(tx, h, now), schedule.Save(tx, his, now), schedule.SnoozeAll(tx, "chat:ann", now.Add(time.Hour), now),
			agent.Send(tx, agent.Reply{Kind: agent.Final, Text: "unsaid " + word, Address: annHome + ":elsewhere", Session: annHome + ":elsewhere"}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	files := workspace.Config{Dirs: workspace.Dirs{Dir: t.TempDir()}, Store: store}
	for _, tool := range workspace.Tools(files) {
		if tool.Name != "write_file" {
			continue
		}
		named := agent.Invocation{Person: ann, Tainted: true, Arguments: json.RawMessage(`{"path":"` + word + `.md","content":"x"}`)}
		if _, err := tool.Run(context.Background(), named); err != nil {
			t.Fatal(err)
		}
	}
	s.end()
}

// TestFewRequestsAreKept has Ann ask to be forgotten again and again, and change her mind each second time.
func TestFewRequestsAreKept(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}, Forget: func() {}}, f)
	s.says(f, bob, "/forget-me")
	var first, last string
	for i := range 40 {
		last = s.asked(s.says(f, ann, "/forget-me"), ann)
		if i == 0 {
			first = last
		}
		if i%2 > 0 {
			s.clicks(f, ann, last, "Keep everything")
		}
	}
	if requests, receipts := s.rows("request"), s.rows("receipt"); len(requests) > 12 || len(receipts) > 12 {
		t.Errorf("kept are %d requests and %d receipts", len(requests), len(receipts))
	}
	if text := textsOf(s.clicks(f, ann, first, "Forget me")); !strings.Contains(text, "too long ago") {
		t.Errorf("the first card: %s", text)
	}
	if text := textsOf(s.clicks(f, ann, last, "Forget me")); !strings.Contains(text, "decided already: Keep everything") || len(oblivions(t, s.store)) > 0 {
		t.Errorf("the last card: %s", text)
	}
}

func TestForgettingLeavesNothing(t *testing.T) {
	const word = "canary-3310"
	path := filepath.Join(t.TempDir(), "nudge.db")
	store, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	filled(t, store, word)
	if !inFile(t, path, word) {
		t.Fatal("there is nothing to forget")
	}
	f := newFake()
	s := serve(t, store, bot.Config{Allow: []string{"chat:*"}, Diary: diary.New(diary.Config{Store: store})}, f)
	s.keys = 1000 // those before are seen
	var o bot.Oblivion
	err = store.Update(context.Background(), func(tx memory.Tx) (err error) {
		o, err = bot.BeginForget(tx, "chat:ann", "", "", time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := s.finish(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"1 note", "1 session", "1 card", "2 heartbeats", "1 opinion", "1 name and time zone"} {
		if !strings.Contains(receipt, of) {
			t.Errorf("the receipt does not say %s: %s", of, receipt)
		}
	}
	if _, err := store.Wipe(context.Background()); err != nil {
		t.Fatal(err)
	}
	if inFile(t, path, word) {
		t.Error("the word is still in the file")
	}
	err = store.View(context.Background(), func(tx memory.Tx) error {
		beats, err := schedule.List(tx)
		if len(beats) != 1 || beats[0].Name != "his" || len(beats[0].For) != 1 {
			t.Errorf("heartbeats: %+v", beats)
		}
		if err := agent.Check(tx, func(problem string) { t.Error(problem) }); err != nil {
			return err
		}
		return errors.Join(err, schedule.Check(tx, func(problem string) { t.Error(problem) }))
	})
	if err != nil {
		t.Fatal(err)
	}
	// Both go on: one as somebody new, the other as before.
	if text := textsOf(s.says(f, ann, "hello")); !strings.Contains(text, "echo hello") {
		t.Errorf("Ann comes back: %s", text)
	}
	if text := textsOf(s.says(f, bob, "/sessions")); !strings.Contains(text, "1  last used") {
		t.Errorf("Bob's sessions: %s", text)
	}
}

// TestForgettingTakesUndeliveredAway has somebody forgotten to whom something could not be said.
func TestForgettingTakesUndeliveredAway(t *testing.T) {
	f := newFake()
	f.fail = func(d bot.Delivery, _ int) error {
		if d.Address == annHome {
			return &bot.SendError{Gone: true, Err: errors.New("no such place as " + annHome)}
		}
		return nil
	}
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	s.says(f, ann, "hello")
	if told := s.rows("told_of_dead"); len(told) != 1 || told[0] != annHome {
		t.Fatalf("owners were told of %q", told)
	}
	ctx := context.Background()
	var o bot.Oblivion
	err := s.store.Update(ctx, func(tx memory.Tx) (err error) {
		o, err = bot.BeginForget(tx, ann.ID, "", "", time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if receipt, err := s.finish(o); err != nil || !strings.Contains(receipt, "1 dead letter") {
		t.Errorf("%v: %s", err, receipt)
	}
	if told := s.rows("told_of_dead"); len(told) > 0 {
		t.Errorf("owners were told of %q", told)
	}
	err = s.store.View(ctx, func(tx memory.Tx) error {
		total, letters, err := bot.DeadLetters(tx, 10)
		if total != 1 || strings.Contains(letters[0].Conversation+letters[0].Reason+letters[0].Text, "ann") {
			t.Errorf("the letters are %+v", letters)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func inFile(t *testing.T, path, word string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data, []byte(word))
}

// Killed before or after any commit, somebody who agreed to be forgotten is in the end, and hears so once it is done.
func TestForgettingIsGoneOnWith(t *testing.T) {
	const word = "canary-3310"
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "nudge.db")
			below, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			filled(t, below, word)
			store := memorytest.NewFaulty(below)
			f := newFake()
			s := serve(t, store, bot.Config{Allow: []string{"chat:*"}, Grace: time.Millisecond, FirstWait: time.Millisecond, Forget: func() {}, Diary: diary.New(diary.Config{Store: store})}, f)
			s.keys = 1000
			card := s.asked(s.says(f, ann, "/forget-me"), ann)
			store.FailAt(store.Count()+n, after)
			e := s.event("")
			e.Click = &agent.Decision{Card: card, Verdict: agent.Approve}
			_, failed := s.hub.Receive(context.Background(), e)
			agreed := failed == nil
			if !s.restsUnless(store) {
				for _, o := range oblivions(t, below) {
					if _, err := s.finish(o); err == nil && inStore(t, below, word) {
						t.Fatalf("crash %d, after %t: it was said to be done and was not", n, after)
					}
				}
			}
			crashed := s.restsUnless(store)
			s.end()
			store.Revive()
			f = newFake()
			s = serve(t, store, bot.Config{Allow: []string{"chat:*"}, Forget: func() {}, Diary: diary.New(diary.Config{Store: store})}, f)
			if begun := oblivions(t, below); agreed && len(begun) == 0 && inStore(t, below, word) {
				t.Fatalf("crash %d, after %t: what was agreed to is not remembered", n, after)
			}
			for _, o := range oblivions(t, below) {
				if _, err := s.finish(o); err != nil {
					t.Fatalf("crash %d, after %t: go on: %v", n, after, err)
				}
			}
			if s.rest(); agreed && inStore(t, below, word) {
				t.Fatalf("crash %d, after %t: not forgotten", n, after)
			}
			s.end()
			if err := below.Close(); err != nil {
				t.Fatal(err)
			}
			if !crashed {
				if n < 4 {
					t.Fatalf("only %d commits", n)
				}
				return
			}
		}
	}
}

// inStore reports whether a word is in what the store holds.
func inStore(t *testing.T, store *bolt.Store, word string) bool {
	t.Helper()
	if _, err := store.Wipe(context.Background()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if _, err := store.Backup(context.Background(), path, true, nil); err != nil {
		t.Fatal(err)
	}
	return inFile(t, path, word)
}
