package notify_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/tool/notify"
	"nudge/memory"
	"nudge/schedule"
)

// quietNow are quiet hours for Ann that began an hour ago.
func quietNow(t *testing.T) schedule.Quiet {
	t.Helper()
	zone, err := time.LoadLocation(agenttest.Ann.Zone)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(zone)
	quiet, err := schedule.ParseQuiet(now.Add(-time.Hour).Format("15:04") + "-" + now.Add(time.Hour).Format("15:04"))
	if err != nil {
		t.Fatal(err)
	}
	return quiet
}

func startWithin(t *testing.T, store memory.Store, b schedule.Budget) (*agenttest.World, *agenttest.Model) {
	m := &agenttest.Model{T: t, Script: script}
	w := agenttest.Start(t, agent.Config{
		Store: store, Model: m, Spec: agent.ModelSpec{MaxOutput: 1000}, Tools: []agent.Tool{notify.Voice{Store: store, Budget: b}.Tool()},
	})
	w.Say("hello") // so that her zone is known
	w.Rest()
	return w, m
}

// digest lets Ann's digest fall due, after her quiet hours.
func digest(t *testing.T, store memory.Store) (told bool) {
	t.Helper()
	row := memory.DueRow{Key: schedule.DigestPrefix + string(agenttest.Ann.ID)}
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		due, found, err := tx.Due().Get(row.Key)
		if err != nil || !found {
			return err
		}
		session, err := notify.Voice{Store: store}.Digest(tx, due)
		told = session == agenttest.Home
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// TestOnlyWhatIsUrgentBreaksQuietHours, and only if the heartbeat's author allowed it. The rest comes in one digest, of which
// the person's session knows, and is not said again while it stays so.
func TestOnlyWhatIsUrgentBreaksQuietHours(t *testing.T) {
	store := open(t)
	w, m := startWithin(t, store, schedule.Budget{Quiet: quietNow(t)})
	calls := []call{{Text: "It is low.", Key: "a"}, {Text: "It is very low.", Key: "a"}, {Text: "It is out!", Key: "b", Urgency: "high"}}
	wake(t, w, about(t, "paper", "1", calls...))
	if got := agenttest.Only(w.Rest(), agent.Notify); len(got) != 0 {
		t.Errorf("in quiet hours a heartbeat that may not said %+v", got)
	}
	if result := agenttest.Results(m.Requests()[len(m.Requests())-1])["notify-0"]; !strings.HasPrefix(result, "not said: these are the person's quiet hours") {
		t.Errorf("the result is %q", result)
	}
	allowed := about(t, "ink", "1", calls...)
	allowed.BreakQuiet = true
	wake(t, w, allowed)
	if got := agenttest.Only(w.Rest(), agent.Notify); len(got) != 1 || got[0].Text != "It is out!" {
		t.Errorf("in quiet hours a heartbeat that may said %+v", got)
	}
	if !digest(t, store) {
		t.Error("the digest was not told")
	}
	got := agenttest.Only(w.Rest(), agent.Notify)
	if len(got) != 1 || got[0].Key != notify.DigestKey || got[0].Heartbeat != "" || strings.Count(got[0].Text, "\n- ") != 3 ||
		!got[0].TakesLess() || strings.Count(got[0].Text, "It is out!") != 1 || strings.Contains(got[0].Text, "It is very low.") {
		t.Errorf("the digest is %+v", got)
	}
	if digest(t, store) {
		t.Error("a digest was told twice")
	}
	w.Say("which one is out?")
	w.Rest()
	if all := words(m); !strings.Contains(all, "what had been held back") || !strings.Contains(all, "It is low.") {
		t.Errorf("the person's session does not know of the digest: %s", all)
	}
	lines, err := transcript(store)
	if err != nil || !strings.Contains(lines, "Held back until now") {
		t.Errorf("the transcript is %s, %v", lines, err)
	}
}

// words are the messages of the newest request.
func words(m *agenttest.Model) string {
	var all strings.Builder
	for _, message := range m.Requests()[len(m.Requests())-1].Messages {
		all.WriteString(message.Text + "\n")
	}
	return all.String()
}

func transcript(store memory.Store) (lines string, err error) {
	err = store.View(context.Background(), func(tx memory.Tx) error {
		replies, err := agent.Transcript(tx, agenttest.Home, 0)
		lines = agenttest.Lines(replies)
		return err
	})
	return lines, err
}

// TestWhatADigestToldIsNotToldAgain in the same episode: of a tick that woke nobody, since it was quiet.
func TestWhatADigestToldIsNotToldAgain(t *testing.T) {
	store := open(t)
	w, _ := startWithin(t, store, schedule.Budget{})
	zone, err := time.LoadLocation(agenttest.Ann.Zone)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Update(context.Background(), func(tx memory.Tx) error {
		held := schedule.Budget{Quiet: quietNow(t)}
		hold, err := held.Admit(tx, schedule.Unasked{Person: string(agenttest.Ann.ID), Zone: zone, Heartbeat: "disk", Episode: "1", Text: "It is full."}, time.Now())
		if !hold.Holds() {
			t.Error("it was not held back")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	digest(t, store)
	w.Rest()
	for times, episode := range []string{"1", "2"} {
		wake(t, w, about(t, "disk", episode, call{Text: "It is full."}))
		if got := agenttest.Only(w.Rest(), agent.Notify); len(got) != times {
			t.Errorf("in episode %s: %+v", episode, got)
		}
	}
}

// TestTheCapHoldsForAll that speaks, urgent or not, and a digest says the rest.
func TestTheCapHoldsForAll(t *testing.T) {
	store := open(t)
	w, _ := startWithin(t, store, schedule.Budget{DailyCap: 2})
	first := about(t, "paper", "1", call{Text: "one", Key: "1"})
	wake(t, w, first)
	second := about(t, "ink", "1", call{Text: "two", Key: "1"}, call{Text: "three", Key: "2", Urgency: "high"})
	second.BreakQuiet = true
	wake(t, w, second)
	if got := agenttest.Only(w.Rest(), agent.Notify); len(got) != 2 || got[1].Text != "two" {
		t.Errorf("said %+v", got)
	}
	wake(t, w, about(t, "ink", "1", call{Text: "three again", Key: "2"}))
	digest(t, store)
	if got := agenttest.Only(w.Rest(), agent.Notify); len(got) != 1 || !strings.Contains(got[0].Text, "over your daily cap): three") || strings.Contains(got[0].Text, "again") {
		t.Errorf("the digest is %+v", got)
	}
}

// TestFixedWordsAreSaidWithoutAModel, once in an episode and within the budget.
func TestFixedWordsAreSaidWithoutAModel(t *testing.T) {
	store := open(t)
	w, m := startWithin(t, store, schedule.Budget{DailyCap: 1})
	before := len(m.Requests())
	voice := notify.Voice{Store: store, Budget: schedule.Budget{DailyCap: 1}}
	for _, episode := range []string{"1", "1", "2"} {
		reminder := agent.Wake{Heartbeat: "call", Episode: episode, Text: "Call Bob.", Outside: true}
		if _, err := voice.Say(context.Background(), agenttest.Ann.ID, reminder); err != nil {
			t.Fatal(err)
		}
	}
	got := agenttest.Only(w.Rest(), agent.Notify)
	if len(got) != 1 || got[0].Text != "Call Bob." || !got[0].TakesFeedback() || len(m.Requests()) != before {
		t.Errorf("said %+v with %d requests", got, len(m.Requests())-before)
	}
	if len(got) == 1 && !got[0].Tainted {
		t.Error("words that were made of text of strangers are said as Nudge's own")
	}
	if !digest(t, store) {
		t.Error("the second reminder is in no digest")
	}
}

// TestADigestOfNoHeartbeat has nothing of which there could be less.
func TestADigestOfNoHeartbeat(t *testing.T) {
	store := open(t)
	w, _ := startWithin(t, store, schedule.Budget{})
	late := agent.Late{Person: agenttest.Ann, Text: "It was approved late."}
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		held, err := notify.Voice{Budget: schedule.Budget{Quiet: quietNow(t)}}.Late(tx, late)
		if !held {
			t.Error("it was not held back")
		}
		return err
	})
	if err != nil || !digest(t, store) {
		t.Fatalf("no digest was told: %v", err)
	}
	if got := agenttest.Only(w.Rest(), agent.Notify); len(got) != 1 || got[0].TakesFeedback() || !strings.Contains(got[0].Text, late.Text) {
		t.Errorf("the digest is %+v", got)
	}
}

// TestForget removes what was told to one person, and to nobody whose name begins like theirs.
func TestForget(t *testing.T) {
	store := open(t)
	voice := notify.Voice{Store: store}
	for _, person := range []agent.PersonID{"terminal:ann", "terminal:anna"} {
		for _, heartbeat := range []string{"call", "disk"} {
			if _, err := voice.Say(context.Background(), person, agent.Wake{Heartbeat: heartbeat, Episode: "1", Text: "Now."}); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		for i, want := range []int{2, 0} {
			if removed, err := notify.Forget(tx, "terminal:ann"); removed != want || err != nil {
				t.Errorf("time %d: %d rows, %v", i+1, removed, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatAnEndedHeartbeatToldIsForgotten with it, and nothing of one whose name begins like its own.
func TestWhatAnEndedHeartbeatToldIsForgotten(t *testing.T) {
	store := open(t)
	voice := notify.Voice{Store: store}
	made := time.Now().Add(-2 * schedule.KeptFor)
	for _, name := range []string{"call", "call-2"} {
		if _, err := voice.Say(context.Background(), "terminal:ann", agent.Wake{Heartbeat: name, Episode: "1", Text: "Now."}); err != nil {
			t.Fatal(err)
		}
	}
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		for _, name := range []string{"call", "call-2"} {
			h := schedule.Heartbeat{
				Name: name, Cron: "@every 24h", For: []string{"terminal:ann"}, By: "terminal:ann", Text: "Now.", Condition: schedule.Spec{Kind: schedule.KindAlways},
			}
			if err := schedule.Save(tx, h, made); err != nil {
				return err
			}
		}
		if err := schedule.End(tx, "call", "done", made); err != nil {
			return err
		}
		if n, err := notify.SweepEnded(tx, time.Now().Add(-schedule.KeptFor), 10); n != 1 || err != nil {
			t.Errorf("%d heartbeats were forgotten, %v", n, err)
		}
		if removed, err := notify.Forget(tx, "terminal:ann"); removed != 1 || err != nil { // all that is left of her
			t.Errorf("%d rows were left, %v", removed, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
