package bot_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/schedule"
)

// beats saves heartbeats, and lets the clock have met the zones of their people.
func (s *stage) beats(list ...schedule.Heartbeat) {
	s.Helper()
	err := s.store.Update(context.Background(), func(tx memory.Tx) error {
		for _, h := range list {
			h.Cron, h.Condition = "0 9 * * *", schedule.Spec{Kind: schedule.KindAlways}
			if h.Prompt == "" {
				h.Prompt = "Tell them."
			}
			if err := schedule.Save(tx, h, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// beat is a heartbeat as it is stored; false when it is gone.
func (s *stage) beat(name string) (h schedule.Heartbeat, found bool) {
	s.Helper()
	err := s.store.View(context.Background(), func(tx memory.Tx) (err error) {
		if h, err = schedule.Load(tx, name); errors.Is(err, schedule.ErrNoHeartbeat) {
			return nil
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return h, h.Name != ""
}

// TestGoverningHeartbeats: who made one, or whom alone it wakes, may pause, resume and delete it; for the rest there is a
// snooze. What stands in the config is not deleted.
func TestGoverningHeartbeats(t *testing.T) {
	s, f := newStage(t, "/")
	both := []string{string(ann.ID), string(bob.ID)}
	s.beats(
		schedule.Heartbeat{Name: "hers", For: both[:1], By: both[0]}, schedule.Heartbeat{Name: "set", For: both[:1]},
		schedule.Heartbeat{Name: "shared", For: both}, schedule.Heartbeat{Name: "his", For: both[1:], By: both[1]},
	)
	usage := "error Say what to do with which: /heartbeats why NAME, /heartbeats pause NAME, /heartbeats resume NAME, /heartbeats run NAME or /heartbeats delete NAME."
	s.expect(f, "/heartbeats pause", usage)
	s.expect(f, "/heartbeats eat hers", usage)
	for _, verb := range []string{"why", "pause", "resume", "run", "delete"} {
		s.expect(f, "/heartbeats "+verb+" his", `error No heartbeat "his" wakes me for you. /heartbeats lists those that do.`)
		s.expect(f, "/heartbeats "+verb+" none", `error No heartbeat "none" wakes me for you. /heartbeats lists those that do.`)
	}
	s.expect(f, "/heartbeats resume hers", "notice hers is not paused.")
	s.expect(f, "/heartbeats Pause hers", "notice hers is paused. /heartbeats resume hers lets it go on.")
	s.expect(f, "/heartbeats pause hers", "notice hers is paused already: paused by chat:ann.")
	s.expect(f, "/heartbeats run hers", "error hers is paused: paused by chat:ann. /heartbeats resume hers lets it go on.")
	if h, _ := s.beat("hers"); h.Paused == "" {
		t.Error("it is not paused")
	}
	s.expect(f, "/heartbeats resume hers", "notice hers goes on.")
	shared := "error shared wakes others too, so only who made it and owners may do that. /snooze tomorrow shared keeps it from speaking to you."
	for _, verb := range []string{"pause", "resume", "delete"} {
		s.expect(f, "/heartbeats "+verb+" shared", shared)
	}
	s.expect(f, "/heartbeats pause set", "notice set is paused. /heartbeats resume set lets it go on.")
	s.expect(f, "/heartbeats delete set", "error set stands in the config, and would be there again at the next start: take it out there. /heartbeats pause set pauses it.")
	s.expect(f, "/heartbeats run shared", "notice shared looks now, and tells you if its condition is true. /heartbeats why shared tells what came of it.")
	s.expect(f, "/heartbeats delete hers", "notice hers is deleted, with what was remembered of it.")
	if _, found := s.beat("hers"); found {
		t.Error("it is not deleted")
	}
	if n := len(s.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestWhyTellsNothingOfOthers to one of several people whom a heartbeat wakes.
func TestWhyTellsNothingOfOthers(t *testing.T) {
	s, f := newStage(t, "/")
	both := []string{string(ann.ID), string(bob.ID)}
	s.beats(schedule.Heartbeat{Name: "shared", For: both}, schedule.Heartbeat{Name: "hers", For: both[:1]})
	err := s.store.Update(context.Background(), func(tx memory.Tx) error {
		return schedule.SnoozeAll(tx, string(bob.ID), time.Now().Add(time.Hour), time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.answered(f, "/heartbeats why shared"); strings.Contains(got, "bob") || !strings.Contains(got, "heartbeat shared: 0 9 * * *") {
		t.Errorf("why: %s", got)
	}
	if got := s.answered(f, "/heartbeats why hers"); !strings.HasPrefix(got, "notice heartbeat hers: ") || !strings.Contains(got, "for chat:ann") {
		t.Errorf("why: %s", got)
	}
}

// TestAnOwnersStopHolds: what `stop all` paused only an owner lets go on.
func TestAnOwnersStopHolds(t *testing.T) {
	s, f := newStage(t, "/")
	s.beats(schedule.Heartbeat{Name: "hers", For: []string{string(ann.ID)}, By: string(ann.ID)})
	err := s.store.Update(context.Background(), func(tx memory.Tx) error { return schedule.Pause(tx, "hers", "stop all") })
	if err != nil {
		t.Fatal(err)
	}
	s.expect(f, "/heartbeats resume hers", "error An owner has stopped everything, so that only an owner lets it go on.")
}

// TestTheWordsOfACard are those of something to be kept where a heartbeat is proposed.
func TestTheWordsOfACard(t *testing.T) {
	for tool, want := range map[string]string{"create_heartbeat": "Shall I save this heartbeat? Save Cancel", "delete_file": "May I run delete_file? Approve Deny"} {
		r := agent.Reply{Kind: agent.Approval, Tool: tool}
		before, name, after := bot.Question(r)
		approve, deny := bot.ButtonWords(r)
		if got := before + name + after + " " + approve + " " + deny; got != want {
			t.Errorf("%s: %s", tool, got)
		}
	}
}
