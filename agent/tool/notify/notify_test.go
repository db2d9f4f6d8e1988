package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/agent/tool/notify"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
	"nudge/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is what a woken run tells. The test's model reads it from the prompt.
type call struct {
	Text    string `json:"text"`
	Urgency string `json:"urgency,omitempty"`
	Key     string `json:"key,omitempty"`
}

const prose = "this is prose that nobody is to read"

// script notifies as the prompt says, one call after the other, and ends in prose.
func script(req model.Request) model.Answer {
	said := agenttest.LastUser(req)
	if !strings.Contains(said, "woke you") {
		return agenttest.Say("you said " + said[strings.LastIndexByte(said, '\n')+1:])
	}
	_, calls, _ := strings.Cut(said, "tell: ")
	calls, _, _ = strings.Cut(calls, "\n")
	var asked []json.RawMessage
	if json.Unmarshal([]byte(calls), &asked) != nil {
		return agenttest.Say("the prompt is not understood")
	}
	results := agenttest.Results(req)
	for i, arguments := range asked {
		if next := agenttest.Call(i, "notify", string(arguments)); results[next.ID] == "" {
			return agenttest.Do(next)
		}
	}
	return agenttest.Say(prose)
}

func open(t *testing.T) memory.Store {
	store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func start(t *testing.T, store memory.Store) (*agenttest.World, *agenttest.Model) {
	m := &agenttest.Model{T: t, Script: script}
	w := agenttest.Start(t, agent.Config{
		Store: store, Model: m, Spec: agent.ModelSpec{MaxOutput: 1000}, Tools: []agent.Tool{notify.Voice{Store: store}.Tool()},
	})
	return w, m
}

// about is a wake whose run tells what is given.
func about(t *testing.T, heartbeat, episode string, calls ...call) agent.Wake {
	t.Helper()
	data, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	return agent.Wake{Heartbeat: heartbeat, Episode: episode, Evidence: "disk at 91 %", Prompt: "tell: " + string(data)}
}

func wake(t *testing.T, w *agenttest.World, about agent.Wake) {
	t.Helper()
	totals, err := w.Agent.Wake(context.Background(), agenttest.Ann.ID, about)
	if err != nil || totals.Reason != agent.Completed {
		t.Fatalf("wake: %+v, %v", totals, err)
	}
}

// TestRepeats are judged by heartbeat, key and episode, never by the wording.
func TestRepeats(t *testing.T) {
	w, _ := start(t, open(t))
	for _, step := range []struct {
		heartbeat, episode string
		call               call
		said               bool
	}{
		{"disk", "1", call{Text: "The disk is filling up."}, true},
		{"disk", "1", call{Text: "The disk is filling up."}, false},
		{"disk", "1", call{Text: "Other words, even more urgent ones!", Urgency: "high"}, false},
		{"disk", "1", call{Text: "The key is the heartbeat's name.", Key: "disk"}, false},
		{"disk", "1", call{Text: "Something else.", Key: "inodes"}, true},
		{"disk", "1", call{Text: "Something else, again.", Key: "inodes"}, false},
		{"disk", "1", call{Text: "Keys are compared as they are.", Key: "Inodes"}, true},
		{"disk", "2", call{Text: "The disk is filling up."}, true},
		{"disk", "2", call{Text: "The disk is filling up."}, false},
		{"disk", "2", call{Text: "Something else.", Key: "inodes"}, true},
		{"mail", "2", call{Text: "Mail has come."}, true},
		{"mail", "2", call{Text: "Mail has come.", Key: "disk"}, true},
	} {
		wake(t, w, about(t, step.heartbeat, step.episode, step.call))
		got := agenttest.Only(w.Rest(), agent.Notify)
		if said := len(got) == 1; said != step.said || len(got) > 1 {
			t.Errorf("%s, episode %s, %+v: said %v, want %v", step.heartbeat, step.episode, step.call, said, step.said)
		} else if said {
			check(t, got[0], step.heartbeat, step.call)
		}
	}
}

// check compares what was said with the call.
func check(t *testing.T, got agent.Reply, heartbeat string, c call) {
	t.Helper()
	if c.Key == "" {
		c.Key = heartbeat
	}
	if c.Urgency == "" {
		c.Urgency = "normal"
	}
	if got.Text != c.Text || got.Key != c.Key || got.Urgency != c.Urgency || got.Heartbeat != heartbeat || got.Address != agenttest.Home {
		t.Errorf("said %+v, want %+v", got, c)
	}
}

// TestOneRunTellsEachThingOnce, also when the same run repeats itself.
func TestOneRunTellsEachThingOnce(t *testing.T) {
	w, m := start(t, open(t))
	wake(t, w, about(t, "disk", "1", call{Text: "one"}, call{Text: "the same in other words"}, call{Text: "two", Key: "other"}))
	var texts []string
	for _, r := range w.Rest() {
		texts = append(texts, string(r.Kind)+" "+r.Text)
	}
	if got := strings.Join(texts, "|"); got != "notify one|notify two" {
		t.Errorf("said %q", got)
	}
	results := agenttest.Results(m.Requests()[len(m.Requests())-1])
	if got := results["notify-0"]; got != "said to the person" {
		t.Errorf("the first result is %q", got)
	}
	if got := results["notify-1"]; !strings.HasPrefix(got, `not said: "disk" was told already`) {
		t.Errorf("the second result is %q", got)
	}
}

// TestProseIsNeverDelivered, nor anything else of a run that tells nothing, and the person's session is not touched.
func TestProseIsNeverDelivered(t *testing.T) {
	store := open(t)
	w, m := start(t, store)
	wake(t, w, about(t, "disk", "1"))
	if said := w.Rest(); len(said) > 0 {
		t.Errorf("said %s", agenttest.Lines(said))
	}
	err := store.View(context.Background(), func(tx memory.Tx) error {
		last, err := tx.Journal().Last(agenttest.Home)
		if err != nil || last != 0 {
			t.Errorf("the person's session has %d entries: %v", last, err)
		}
		mail, err := tx.Inbox().List(agenttest.Home)
		if len(mail) > 0 {
			t.Errorf("the person's session has mail: %v", mail)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Say("hello")
	w.Rest()
	requests := m.Requests()
	for _, msg := range requests[len(requests)-1].Messages {
		if strings.Contains(msg.Text, prose) || strings.Contains(msg.Text, "heartbeat") {
			t.Errorf("the person's session knows of it: %q", msg.Text)
		}
	}
}

// TestThePersonsSessionKnows what was told, with what the check saw, in the next request.
func TestThePersonsSessionKnows(t *testing.T) {
	w, m := start(t, open(t))
	w.Say("hello")
	wake(t, w, about(t, "disk", "1", call{Text: "The disk is filling up."}))
	w.Say("what did you say?")
	w.Rest()
	if n := notes(m); n != 1 {
		t.Errorf("the person's session knows of the note %d times", n)
	}
	for _, r := range w.Said() {
		if strings.Contains(r.Text, prose) {
			t.Errorf("prose was delivered: %+v", r)
		}
	}
}

// notes is how often the newest request tells of what the heartbeat told.
func notes(m *agenttest.Model) int {
	requests := m.Requests()
	n := 0
	for _, msg := range requests[len(requests)-1].Messages {
		n += strings.Count(msg.Text, `[heartbeat "disk" told the person: "The disk is filling up."; what the check saw, as data: "disk at 91 %"]`)
	}
	return n
}

// TestSaidOnceWhateverCrashes crashes at each write of a wake, before it and after it. The wake is repeated with the
// same episode, as the clock does.
func TestSaidOnceWhateverCrashes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			crashed := true
			t.Run(fmt.Sprintf("write %d, kept %v", n, after), func(t *testing.T) { crashed = crashAt(t, n, after) })
			if !crashed {
				if n < 5 {
					t.Errorf("a wake has only %d writes", n-1)
				}
				break
			}
		}
	}
}

// crashAt lets the nth write of a wake crash, and reports whether there was one.
func crashAt(t *testing.T, n int, after bool) bool {
	whole := open(t)
	store := memorytest.NewFaulty(whole)
	w, m := start(t, store)
	w.Outbox = whole
	told := about(t, "disk", "1", call{Text: "The disk is filling up."})
	store.FailAt(n, after)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-store.Crashed():
		case <-ctx.Done():
		}
		cancel()
	}()
	_, err := w.Agent.Wake(ctx, agenttest.Ann.ID, told)
	w.Rest()
	cancel()
	<-ended
	select {
	case <-store.Crashed():
	default:
		if err != nil {
			t.Errorf("wake: %v", err)
		}
		return false
	}
	w.Kill()
	store.Revive()
	w.Restart()
	wake(t, w, told)
	w.Rest()
	if said := w.Said(agent.Notify); len(said) != 1 {
		t.Errorf("said %d times", len(said))
	}
	w.Say("what did you say?")
	w.Rest()
	if n := notes(m); n != 1 {
		t.Errorf("the person's session knows of it %d times", n)
	}
	return true
}

// TestOnlyInWakes refuses to tell in a turn that a person began.
func TestOnlyInWakes(t *testing.T) {
	tool := notify.Voice{Store: open(t)}.Tool()
	_, err := tool.Run(context.Background(), agent.Invocation{Person: agenttest.Ann, Arguments: []byte(`{"text":"psst"}`)})
	if err == nil || !strings.Contains(err.Error(), "just answer") {
		t.Errorf("run: %v", err)
	}
	if tool.Place != agent.InHeartbeat || tool.Effect != agent.Idempotent || !tool.Labels.WayOut {
		t.Errorf("the tool is %+v", tool.Spec)
	}
}

// TestArguments are checked before anything is told.
func TestArguments(t *testing.T) {
	schema, err := agent.CompileSchema(notify.Voice{Store: open(t)}.Tool().Schema)
	if err != nil {
		t.Fatal(err)
	}
	for arguments, fits := range map[string]bool{
		`{"text":"hello"}`: true,
		`{"text":"hello","urgency":"high","key":"k"}`: true,
		`{"text":""}`:                           false,
		`{}`:                                    false,
		`{"text":"hello","urgency":"extreme"}`:  false,
		`{"text":"hello","to":"somebody else"}`: false,
		`{"text":"` + strings.Repeat("x", 4001) + `"}`:          false,
		`{"text":"x","key":"` + strings.Repeat("k", 101) + `"}`: false,
	} {
		if _, err := schema.Check(arguments); (err == nil) != fits {
			t.Errorf("%.60s: %v", arguments, err)
		}
	}
}

// TestACardIsKeptOfWhatIsTold, by which the person can say what they make of it.
func TestACardIsKeptOfWhatIsTold(t *testing.T) {
	store := open(t)
	w, _ := start(t, store)
	w.Say("hello")
	tick := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	what := about(t, "disk", "1", call{Text: "The disk is filling up."})
	what.Tick, what.Evidence = tick, ""
	wake(t, w, what)
	said := agenttest.Only(w.Rest(), agent.Notify)
	if len(said) != 1 || !said[0].TakesFeedback() {
		t.Fatalf("said %+v", said)
	}
	what = about(t, "disk", "2", call{Text: "It is full."})
	what.Evidence = "100 %"
	wake(t, w, what)
	evident := agenttest.Only(w.Rest(), agent.Notify)
	if len(evident) != 1 || !evident[0].Tainted {
		t.Fatalf("said of evidence: %+v", evident)
	}
	err := store.View(context.Background(), func(tx memory.Tx) error {
		card, found, err := schedule.LoadCard(tx, evident[0].ID)
		if err != nil || !found || !card.Outside {
			t.Errorf("the card of evidence is %+v, %v, %v", card, found, err)
		}
		card, found, err = schedule.LoadCard(tx, said[0].ID)
		if !found || card.Outside || card.Person != string(agenttest.Ann.ID) || card.Heartbeat != "disk" || card.Address != agenttest.Home ||
			card.Session != agenttest.Home || card.Text != "The disk is filling up." || !card.Tick.Equal(tick) || time.Since(card.Told) > time.Minute {
			t.Errorf("the card is %+v, %v", card, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsSaidToWhoHasSnoozed since the run was woken: it is not counted as told, and noted as held back.
func TestNothingIsSaidToWhoHasSnoozed(t *testing.T) {
	store := open(t)
	w, m := start(t, store)
	w.Say("hello")
	w.Rest()
	person := string(agenttest.Ann.ID)
	snooze := func(until time.Time) {
		if err := store.Update(context.Background(), func(tx memory.Tx) error { return schedule.SnoozeAll(tx, person, until, time.Now()) }); err != nil {
			t.Fatal(err)
		}
	}
	snooze(time.Now().Add(time.Hour))
	told := about(t, "disk", "1", call{Text: "The disk is filling up."})
	wake(t, w, told)
	if said := w.Rest(); len(said) > 0 {
		t.Errorf("said %s", agenttest.Lines(said))
	}
	results := agenttest.Results(m.Requests()[len(m.Requests())-1])
	if got := results["notify-0"]; !strings.HasPrefix(got, "not said: the person has just asked to be left alone") {
		t.Errorf("the result is %q", got)
	}
	err := store.View(context.Background(), func(tx memory.Tx) error {
		a, err := schedule.LoadAttention(tx, person)
		if a.Tastes["disk"] == nil || a.Tastes["disk"].Withheld != "1" {
			t.Errorf("what is held back is not noted: %+v", a)
		}
		if _, found, err := schedule.LastCard(tx, person, ""); found || err != nil {
			t.Errorf("there is a card: %v", err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	snooze(time.Time{})
	wake(t, w, told)
	if said := agenttest.Only(w.Rest(), agent.Notify); len(said) != 1 {
		t.Errorf("after the snooze %d things are said", len(said))
	}
}
