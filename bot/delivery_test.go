package bot_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
)

const repeated = "(possibly a repeat) "

// outcome is what becomes of a try to say something.
type outcome int

const (
	taken   outcome = iota
	lost            // it is shown, and the answer is lost
	silent          // it is not shown, and there is no answer
	down            // it is refused for now
	slow            // it is refused, with a wait
	refused         // it is refused for good
	blind           // the adapter cannot find out; if nothing is in doubt, as taken
)

// wall is a platform that shows what it is given, and does what it was told with each try.
type wall struct {
	doubt bot.Doubt

	mu       sync.Mutex
	lines    map[string][]string  // by conversation
	keys     map[string]bool      // of what is shown
	outcomes map[string][]outcome // by conversation; then everything is taken
}

// wallAdapter speaks on a wall in one life of the program.
type wallAdapter struct{ *wall }

func (w wallAdapter) Platform() string         { return "chat" }
func (w wallAdapter) Serves(string) bool       { return true }
func (w wallAdapter) Abilities() bot.Abilities { return bot.Abilities{Doubt: w.doubt} }

func (w wallAdapter) Listen(ctx context.Context, _ bot.Receiver) error {
	<-ctx.Done()
	return nil
}

func (w wallAdapter) Say(_ context.Context, d bot.Delivery) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := taken
	if todo := w.outcomes[d.Address]; len(todo) > 0 {
		next, w.outcomes[d.Address] = todo[0], todo[1:]
	}
	if !d.Doubtful.IsZero() && w.doubt == bot.FindsOut {
		switch {
		case next == blind:
			return "", &bot.SendError{Blind: true, Err: errors.New("may not look")}
		case w.keys[d.Key]:
			return "found", nil
		}
	}
	show := func() {
		w.keys[d.Key] = true
		w.lines[d.Address] = append(w.lines[d.Address], d.Text)
	}
	switch next {
	case lost:
		show()
		return "", errors.New("the link was cut")
	case silent:
		return "", &bot.SendError{Unsure: true, Err: errors.New("no answer")}
	case down:
		return "", &bot.SendError{Err: errors.New("down")}
	case slow:
		return "", &bot.SendError{RetryAfter: 90 * time.Second, Err: errors.New("slow down")}
	case refused:
		return "", &bot.SendError{Gone: true, Err: errors.New("no such place")}
	}
	show()
	return "shown", nil
}

// life is one of the program's: what it is given to say, how long it runs, and at which of its writes it crashes.
type life struct {
	put     []string // conversations
	runs    time.Duration
	crashAt int // 0 for never
	after   bool
}

// story is all that happens to a program and its platform.
type story struct {
	doubt    bot.Doubt
	outcomes map[string][]outcome
	lives    []life
}

var conversations = []string{annHome, bobHome, "chat:T:C:1"}

func drawStory(t *rapid.T) story {
	s := story{
		doubt:    rapid.SampledFrom([]bot.Doubt{bot.FindsOut, bot.CannotTell}).Draw(t, "doubt"),
		outcomes: map[string][]outcome{},
	}
	for _, address := range conversations {
		s.outcomes[address] = rapid.SliceOfN(rapid.Map(rapid.IntRange(0, int(blind)), func(n int) outcome { return outcome(n) }), 0, 12).Draw(t, address)
	}
	s.lives = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) life {
		return life{
			put:     rapid.SliceOfN(rapid.SampledFrom(conversations), 0, 4).Draw(t, "put"),
			runs:    time.Duration(rapid.SampledFrom([]int{0, 1, 2, 60, 100_000}).Draw(t, "runs")) * time.Second,
			crashAt: rapid.IntRange(0, 8).Draw(t, "crash at"),
			after:   rapid.Bool().Draw(t, "after"),
		}
	}), 1, 4).Draw(t, "lives")
	return s
}

// tell lets a story happen, and says what is wrong with its end.
func (s story) tell(t *testing.T, path string) (wrong []string) {
	disk, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	store := memorytest.NewFaulty(disk)
	w := &wall{doubt: s.doubt, lines: map[string][]string{}, keys: map[string]bool{}, outcomes: s.outcomes}
	put := map[string][]string{}
	number := 0
	for i := range append(s.lives, life{}) {
		last := i == len(s.lives)
		l := life{}
		if !last {
			l = s.lives[i]
		}
		store.Revive()
		if l.crashAt > 0 {
			store.FailAt(store.Count()+l.crashAt, l.after)
		}
		hub := bot.NewHub(bot.Config{Store: store, Owners: []agent.PersonID{"elsewhere:owner"}})
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- hub.Serve(ctx, nil, wallAdapter{w}) }()
		for _, address := range l.put {
			number++
			text := fmt.Sprint("number ", number)
			put[address] = append(put[address], text)
			send(t, disk, agent.Reply{Kind: agent.Final, Text: text, Address: address})
			hub.Outgoing()
		}
		if last {
			synctest.Wait() // until it serves
			hub.Outgoing()
			if err := hub.Drain(ctx, nil); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
		time.Sleep(l.runs)
		stop()
		if err := <-served; err != nil {
			wrong = append(wrong, err.Error())
		}
		synctest.Wait()
	}
	_, letters := deadLetters(t, disk)
	for address, texts := range put {
		wrong = append(wrong, s.judge(w.lines[address], texts, letters)...)
	}
	if left := outbox(t, disk); strings.Contains(left, "number") {
		wrong = append(wrong, "left in the outbox: "+left)
	}
	return wrong
}

// judge says what is wrong with the lines of a conversation that was to be told some texts.
func (s story) judge(lines, texts []string, letters []bot.DeadLetter) (wrong []string) {
	at := 0
	for _, text := range texts {
		plain, labelled := 0, 0
		for i, line := range lines {
			if line != text && line != repeated+text {
				continue
			}
			if i < at {
				wrong = append(wrong, fmt.Sprintf("%q is out of order in %q", text, lines))
			}
			at = i
			if line == text {
				plain++
			} else if labelled++; labelled == 1 && plain == 0 && slices.Contains(lines[i:], text) {
				wrong = append(wrong, fmt.Sprintf("the repeat of %q stands before it in %q", text, lines))
			}
		}
		letter := slices.IndexFunc(letters, func(l bot.DeadLetter) bool { return l.Text == text })
		switch {
		case plain > 1 || labelled > 1:
			wrong = append(wrong, fmt.Sprintf("%q was said %d times and %d times with a label: %q", text, plain, labelled, lines))
		case plain+labelled == 0 && letter < 0:
			wrong = append(wrong, fmt.Sprintf("%q was lost", text))
		case letter >= 0 && letters[letter].Reason == "":
			wrong = append(wrong, fmt.Sprintf("%q was given up for no reason", text))
		}
	}
	return wrong
}

// TestNothingIsLostOrSaidTwice lets platforms fail and the program crash at any of its writes: in the end every reply
// was said once, or a second time with a label, or is a dead letter with a reason.
func TestNothingIsLostOrSaidTwice(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStory(rt)
		n++
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = s.tell(t, filepath.Join(dir, fmt.Sprint(n, ".db"))) })
		if len(wrong) > 0 {
			rt.Fatalf("%s", strings.Join(wrong, "\n"))
		}
	})
}

// TestCrashAtEachWrite crashes once at each write of a few deliveries, before it and after it.
func TestCrashAtEachWrite(t *testing.T) {
	for _, doubt := range []bot.Doubt{bot.FindsOut, bot.CannotTell} {
		for at := 1; at <= 8; at++ {
			for _, after := range []bool{false, true} {
				s := story{doubt: doubt, lives: []life{{put: []string{annHome, annHome, bobHome}, runs: time.Second, crashAt: at, after: after}}}
				synctest.Test(t, func(t *testing.T) {
					for _, wrong := range s.tell(t, filepath.Join(t.TempDir(), "nudge.db")) {
						t.Errorf("doubt %d, crash at write %d, after it %v: %s", doubt, at, after, wrong)
					}
				})
			}
		}
	}
}

// TestStates notes what is known before and after each try.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const began = "2000-01-01T00:00:00Z" // of the bubble
		store := openStore(t)
		f := newFake()
		f.doubt = bot.CannotTell
		var seen []string
		f.fail = func(d bot.Delivery, _ int) error {
			seen = append(seen, d.Text+": "+outbox(t, store))
			switch len(seen) {
			case 1:
				return &bot.SendError{Err: errors.New("down")}
			case 2:
				return errors.New("who knows")
			case 3:
				return &bot.SendError{RetryAfter: time.Hour, Err: errors.New("slow down")}
			}
			return nil
		}
		s := serve(t, store, bot.Config{}, f)
		s.put(annHome, "x")
		var between []string
		for range 3 {
			synctest.Wait()
			between = append(between, outbox(t, store))
			time.Sleep(2 * time.Second)
		}
		s.rest()
		want := []string{
			"x: x sending " + began, "x: x sending 2000-01-01T00:00:01Z",
			repeated + "x: x repeating 2000-01-01T00:00:01Z", repeated + "x: x repeating 2000-01-01T00:00:01Z",
		}
		if !slices.Equal(seen, want) {
			t.Errorf("while it is said the outbox has\n%q, want\n%q", seen, want)
		}
		wantBetween := []string{"x", "x unknown 2000-01-01T00:00:01Z", "x unknown 2000-01-01T00:00:01Z"}
		if !slices.Equal(between, wantBetween) {
			t.Errorf("between the tries the outbox has\n%q, want\n%q", between, wantBetween)
		}
		if left := outbox(t, store); left != "" {
			t.Errorf("left: %q", left)
		}
		s.end()
	})
}

// TestFoundAtStart goes on with what an earlier process left.
func TestFoundAtStart(t *testing.T) {
	const since = "2026-01-02T03:04:05.6Z"
	at, _ := time.Parse(time.RFC3339Nano, since)
	for _, test := range []struct {
		state    string
		doubt    bot.Doubt
		said     string
		doubtful time.Time
		letters  int
	}{
		{"", bot.FindsOut, "x", time.Time{}, 0},
		{"sending " + since, bot.FindsOut, "x", at, 0},
		{"unknown " + since, bot.FindsOut, "x", at, 0},
		{"repeating " + since, bot.FindsOut, "", time.Time{}, 1},
		{"sending " + since, bot.CannotTell, repeated + "x", time.Time{}, 0},
		{"unknown " + since, bot.CannotTell, repeated + "x", time.Time{}, 0},
		{"repeating " + since, bot.CannotTell, "", time.Time{}, 1},
		{"dead", bot.CannotTell, "", time.Time{}, 1},
		{"of a later version", bot.CannotTell, repeated + "x", time.Time{}, 0},
		{"sending", bot.FindsOut, "x", time.Unix(0, 0), 0},
	} {
		store := openStore(t)
		send(t, store, agent.Reply{Kind: agent.Final, Text: "x", Address: annHome})
		err := store.Update(context.Background(), func(tx memory.Tx) error {
			return tx.Outbox().Set(memory.Parcel{ID: 1, State: test.state})
		})
		if err != nil {
			t.Fatal(err)
		}
		f := newFake()
		f.doubt, f.home = test.doubt, annHome
		s := serve(t, store, bot.Config{}, f)
		s.rest()
		total, _ := deadLetters(t, store)
		if f.texts(annHome) != test.said || total != test.letters {
			t.Errorf("%q: said %q, %d dead letters", test.state, f.texts(annHome), total)
		}
		if said := f.all(); len(said) > 0 && !said[0].Doubtful.Equal(test.doubtful) {
			t.Errorf("%q: in doubt since %v", test.state, said[0].Doubtful)
		}
		s.end()
	}
}

// TestMarksAreNotRepeats notes nothing of marks that only change what stands there, and puts no label on any.
func TestMarksAreNotRepeats(t *testing.T) {
	store := memorytest.NewFaulty(openStore(t))
	f := newFake()
	f.doubt = bot.CannotTell
	f.fail = func(_ bot.Delivery, try int) error {
		if try == 1 {
			return errors.New("who knows")
		}
		return nil
	}
	s := serve(t, store, bot.Config{FirstWait: time.Millisecond}, f)
	for i, kind := range []agent.Kind{agent.SteerMark, agent.DecidedMark} {
		text := fmt.Sprint("mark ", i)
		send(t, store, agent.Reply{Kind: kind, Text: text, Address: annHome})
		s.hub.Outgoing()
		s.rest()
		if got := f.all(); len(got) != i+1 || got[i].Text != text {
			t.Errorf("said %+v", got)
		}
	}
}

// TestNothingWaitsForReceipts lets a platform take no receipts for a while: what is said goes on, and the receipts keep
// their order.
func TestNothingWaitsForReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		f := newFake()
		f.doubt, f.reacts = bot.FindsOut, true
		f.fail = func(d bot.Delivery, try int) error {
			if d.Kind == agent.SteerMark && d.State == agent.Stored && try == 1 {
				return &bot.SendError{RetryAfter: 30 * time.Second, Err: errors.New("too many")}
			}
			return nil
		}
		s := serve(t, store, bot.Config{}, f)
		for _, state := range []string{agent.Stored, agent.SeenAt} {
			send(t, store, agent.Reply{Kind: agent.SteerMark, ID: "m1", State: state, Text: "receipt", Address: annHome})
		}
		send(t, store, agent.Reply{Kind: agent.Final, Text: "the answer", Address: annHome})
		start := time.Now()
		s.hub.Outgoing()
		synctest.Wait()
		if f.texts(annHome) != "the answer" || len(f.all()) != 1 {
			t.Errorf("said %+v", f.all())
		}
		s.rest()
		if got := f.all(); time.Since(start) != 30*time.Second || len(got) != 3 || got[1].State != agent.Stored || got[2].State != agent.SeenAt {
			t.Errorf("after %s said %+v", time.Since(start), got)
		}
		s.end()
	})
}

// TestAStoreThatFails says nothing that it cannot note, and goes on when it can.
func TestAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := openStore(t)
		store := memorytest.NewFaulty(disk)
		f := newFake()
		f.doubt = bot.CannotTell
		s := serve(t, store, bot.Config{}, f)
		store.FailAt(store.Count()+1, false)
		send(t, disk, agent.Reply{Kind: agent.Final, Text: "x", Address: annHome})
		s.hub.Outgoing()
		synctest.Wait()
		if len(f.all()) > 0 {
			t.Error("it was said though that could not be noted")
		}
		store.Revive()
		time.Sleep(time.Minute)
		s.rest()
		if f.texts(annHome) != "x" {
			t.Errorf("said %q", f.texts(annHome))
		}
		s.end()
	})
}

// TestAnotherConversationIsNotHeldUp says in one conversation while another waits, however long.
func TestAnotherConversationIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.doubt = bot.FindsOut
		f.fail = func(d bot.Delivery, try int) error {
			if d.Text == "card" && try < 3 {
				return &bot.SendError{RetryAfter: time.Hour, Err: errors.New("slow down")}
			}
			return nil
		}
		s := serve(t, openStore(t), bot.Config{}, f)
		began := time.Now()
		s.put(annHome, "card", "final")
		s.put(bobHome, "quick")
		synctest.Wait()
		if f.texts(bobHome) != "quick" || f.texts(annHome) != "" || time.Since(began) > 0 {
			t.Errorf("said %q and %q after %v", f.texts(bobHome), f.texts(annHome), time.Since(began))
		}
		s.rest()
		if took := time.Since(began); f.texts(annHome) != "card|final" || took != 2*time.Hour {
			t.Errorf("said %q after %v", f.texts(annHome), took)
		}
		s.end()
	})
}

// TestADayOverRestarts counts the day on when the program is started again, and gives what was queued meanwhile its own.
func TestADayOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		began := time.Now()
		for day := range 3 {
			for half := range 2 {
				f := newFake()
				f.fail = func(d bot.Delivery, _ int) error {
					if d.Address == annHome {
						return errors.New("down")
					}
					return nil
				}
				s := serve(t, store, bot.Config{}, f)
				if half == 0 {
					s.put(annHome, fmt.Sprint("a", day), fmt.Sprint("b", day))
				}
				time.Sleep(11 * time.Hour)
				s.end()
			}
		}
		_, letters := deadLetters(t, store)
		died := map[string]time.Duration{}
		for _, l := range letters {
			died[l.Text] = l.At.Sub(began)
			if !strings.Contains(l.Reason, "24h0m0s") || !strings.Contains(l.Reason, "down") {
				t.Errorf("%s was given up because %q", l.Text, l.Reason)
			}
		}
		for _, text := range []string{"a0", "b0"} {
			if at := died[text]; at < 24*time.Hour || at > 25*time.Hour {
				t.Errorf("%s was given up after %v", text, at)
			}
		}
		if at := died["a1"]; at < 46*time.Hour || at > 50*time.Hour {
			t.Errorf("a1, queued after 22 hours, was given up after %v", at)
		}
		if at, dead := died["a2"]; dead {
			t.Errorf("a2, queued after 44 hours, was given up after %v", at)
		}
	})
}

// TestOwnersAreToldOnce tells of the first letter of a conversation, not in that conversation, and again after a month.
func TestOwnersAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const owner, ownersHome = "other:owner", "other:local:dm:owner"
		f, other := newFake(), newFake()
		other.platform = "other"
		gone := func(bot.Delivery, int) error { return &bot.SendError{Gone: true, Err: errors.New("no such place")} }
		f.fail = gone
		store := openStore(t)
		s := serve(t, store, bot.Config{Owners: []agent.PersonID{owner}}, f, other)
		s.put(annHome, "secret one", "secret two")
		s.put(bobHome, "secret three")
		send(t, store, agent.Reply{Kind: agent.SettledMark, Address: "chat:local:dm:carl"})
		s.hub.Outgoing()
		s.rest()
		if total, _ := deadLetters(t, store); total != 3 {
			t.Errorf("there are %d letters", total)
		}
		told := other.texts(ownersHome)
		if strings.Count(told, "gave up") != 2 || strings.Count(told, annHome) != 1 || strings.Count(told, bobHome) != 1 ||
			!strings.Contains(told, "no such place") || strings.Contains(told, "secret") {
			t.Errorf("the owner is told %q", told)
		}
		time.Sleep(31 * 24 * time.Hour)
		if total, _ := deadLetters(t, store); total != 0 {
			t.Errorf("after a month there are %d letters", total)
		}
		s.put(annHome, "secret four")
		s.rest()
		if told := other.texts(ownersHome); strings.Count(told, annHome) != 2 {
			t.Errorf("after a month the owner is told %q", told)
		}
		other.fail = gone
		s.put(ownersHome, "for the owner")
		s.rest()
		if left := outbox(t, store); !strings.Contains(left, ownersHome) {
			t.Errorf("nobody else is told that the owner's own conversation is gone: %q", left)
		}
		s.end()
	})
}

// TestWhatFollowsFromGone asks what follows when it is the person or the place that is gone, and tells the owners.
func TestWhatFollowsFromGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const owner, ownersHome = "other:owner", "other:local:dm:owner"
		f, other := newFake(), newFake()
		other.platform = "other"
		f.fail = func(d bot.Delivery, _ int) error {
			return &bot.SendError{Gone: true, Left: d.Address == annHome, Err: errors.New("no such place")}
		}
		asked := ""
		s := serve(t, openStore(t), bot.Config{Owners: []agent.PersonID{owner}, Left: func(_ memory.Tx, r agent.Reply, reason string) (string, error) {
			asked += r.Address + " " + reason
			return "Nothing more is tried.", nil
		}}, f, other)
		s.put(annHome, "one")
		s.put(bobHome, "two")
		s.rest()
		if asked != annHome+" no such place" {
			t.Errorf("asked %q", asked)
		}
		if told := other.texts(ownersHome); strings.Count(told, "once for a conversation. Nothing more is tried.") != 1 {
			t.Errorf("the owner is told %q", told)
		}
		s.end()
	})
}

// TestLettersAreBounded keeps the newest. Most of them are copies of the first, in the table as it lies on disk.
func TestLettersAreBounded(t *testing.T) {
	const most, copied, more = 5000, 4990, 40
	store := openStore(t)
	f := newFake()
	f.home = annHome
	f.fail = func(bot.Delivery, int) error { return &bot.SendError{Gone: true, Err: errors.New("no such place")} }
	send(t, store, agent.Reply{Kind: agent.Final, Text: "0", Address: annHome})
	s := serve(t, store, bot.Config{}, f)
	s.rest()
	copyLetter(t, store, copied)
	var replies []agent.Reply
	for i := copied; i < most+more; i++ {
		replies = append(replies, agent.Reply{Kind: agent.Final, Text: fmt.Sprint(i), Address: annHome})
	}
	send(t, store, replies...)
	s.hub.Outgoing()
	s.rest()
	total, letters := deadLetters(t, store)
	if total != most || letters[0].Text != fmt.Sprint(most+more-1) || letters[most-1].Text != fmt.Sprint(more) {
		t.Errorf("%d letters, from %q to %q", total, letters[0].Text, letters[len(letters)-1].Text)
	}
}

// copyLetter lets so many dead letters be there where there is one, each with its place in the row as its text.
func copyLetter(t *testing.T, store memory.Store, letters int) {
	t.Helper()
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		_, all, err := bot.DeadLetters(tx, 1)
		for i := 1; i < letters && err == nil; i++ {
			all[0].Text = fmt.Sprint(i)
			var data []byte
			if data, err = json.Marshal(all[0]); err == nil {
				err = tx.Table("dead_letter").Put(fmt.Sprintf("%018d", i+1), data)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestALookThatIsOutOfDate does not say again what was said after the outbox had been read.
func TestALookThatIsOutOfDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: openStore(t), read: make(chan struct{}), release: make(chan struct{})}
		f := newFake()
		begun, finish := make(chan struct{}, 1), make(chan struct{})
		f.hold = func(bot.Delivery) { begun <- struct{}{}; <-finish }
		s := serve(t, store, bot.Config{}, f)
		s.put(annHome, "one")
		<-begun
		store.armed.Store(true)
		ctx, stop := context.WithCancel(context.Background())
		attached := make(chan error, 1)
		go func() { attached <- s.hub.Attach(ctx, &fake{platform: "other", listens: make(chan struct{})}) }()
		<-store.read
		close(finish)
		synctest.Wait()
		if left := outbox(t, store); left != "" {
			t.Fatalf("left in the outbox: %q", left)
		}
		close(store.release)
		s.rest()
		if got := f.texts(annHome); got != "one" {
			t.Errorf("said %q", got)
		}
		stop()
		if err := <-attached; err != nil {
			t.Error(err)
		}
		s.end()
	})
}
