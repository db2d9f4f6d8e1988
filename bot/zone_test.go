package bot_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
)

// TestZone sets the zone of somebody whose platform does not tell it: it outlives what they say, and counts for what they do.
func TestZone(t *testing.T) {
	s, f := newStage(t, "")
	say := func(zone, text, want string) {
		t.Helper()
		e := s.event(text)
		e.From.Zone, e.From.Locale = zone, ""
		before := len(f.all())
		s.receive(e)
		if said := f.all()[before:]; len(said) != 1 || !strings.Contains(said[0].Text, want) {
			t.Errorf("%q is answered %+v, want %q", text, said, want)
		}
	}
	say("", "nudge zone", "I do not know your time zone, so UTC counts")
	for _, none := range []string{"Berlin", "CET", "Local", "../etc/passwd", "Europe/Nowhere", strings.Repeat("x", 500) + "/y"} {
		say("", "nudge zone "+none, "I know no time zone")
	}
	say("", "nudge zone america/new york", "Your time zone is America/New_York from now on")
	say("", "nudge zone Europe/Berlin", "Your time zone is Europe/Berlin from now on")
	say("", "nudge zone", "Your time zone is Europe/Berlin; it is")
	s.receive(func() bot.Event { e := s.event("hello"); e.From.Zone = ""; return e }())
	var who agent.Person
	err := s.store.View(context.Background(), func(tx memory.Tx) (err error) {
		_, who, err = agent.Home(tx, ann.ID)
		return err
	})
	if err != nil || who.Zone != "Europe/Berlin" {
		t.Errorf("after plain words the zone is %q: %v", who.Zone, err)
	}
	if o := s.overview(agent.Person{ID: ann.ID}, bot.Member); o.Zone != "Europe/Berlin" {
		t.Errorf("at a glance the zone is %q", o.Zone)
	}
	say("Asia/Tokyo", "nudge zone Europe/Berlin", "change it there")
}

// TestAskedForTheZoneOnce asks those of whom their platform does not tell it, once, and nobody whose zone is known.
func TestAskedForTheZoneOnce(t *testing.T) {
	s, f := newStage(t, "")
	asked := func() (n int) {
		for _, d := range f.all() {
			if strings.Contains(d.Text, "which time zone are you in?") {
				n++
			}
		}
		return n
	}
	say := func(from agent.Person, address string) {
		e := s.event("hello")
		e.From, e.Address, e.Zoneless = from, address, true
		s.receive(e)
	}
	nowhere := ann
	nowhere.Zone = ""
	say(nowhere, "chat:T:C:1")
	if asked() != 0 {
		t.Error("asked where others read along")
	}
	say(nowhere, annHome)
	say(nowhere, annHome)
	if asked() != 1 {
		t.Errorf("asked %d times", asked())
	}
	e := s.event("nudge zone Europe/Berlin")
	e.From = nowhere
	s.receive(e)
	if err := s.hub.Keep(context.Background(), "chat", map[string]string{"zone " + string(ann.ID): ""}); err != nil {
		t.Fatal(err)
	}
	say(nowhere, annHome)
	if asked() != 1 {
		t.Error("asked although the zone is known")
	}
}

// TestComplete has what is offered while a command is typed.
func TestComplete(t *testing.T) {
	s, _ := newStage(t, "")
	s.receive(s.event("erase it"))
	card := s.overview(ann, bot.Member).Cards[0].ID
	complete := func(of agent.Person, typed string) (words []string) {
		t.Helper()
		completions, err := s.hub.Complete(context.Background(), of, typed)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range completions {
			if c.About == "" || strings.Contains(c.About, "\n") {
				t.Errorf("%s is about %q", c.Words, c.About)
			}
			words = append(words, c.Words)
		}
		return words
	}
	for typed, want := range map[string][]string{
		"s":           {"stop", "stop all", "sessions", "snooze", "status"},
		"app":         {"approve", "approvals"},
		"deny":        {"deny", "deny " + card},
		"approve ":    {"approve " + card},
		"edit zzz":    nil,
		"answer ":     nil, // no question waits
		"snooze 1":    {"snooze 1h"},
		"no command ": nil,
	} {
		if got := complete(ann, typed); !slices.Equal(got, want) {
			t.Errorf("for %q there is %q, want %q", typed, got, want)
		}
	}
	if n := len(complete(ann, "")); n < 20 {
		t.Errorf("for nothing there are %d", n)
	}
	if got := complete(agent.Person{ID: "elsewhere:eve"}, ""); got != nil {
		t.Errorf("a stranger is offered %q", got)
	}
}
