package discord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/bot/bottest/discordtest"
)

func dm(h *hearing, text string) (event int) {
	_, event = h.server.Say(ann, discordtest.DM(ann), text)
	return event
}

// TestLinkIsTakenUp ends a link in all ways after which it is resumed: what was said meanwhile comes in order, and once.
func TestLinkIsTakenUp(t *testing.T) {
	for name, end := range map[string]func(*hearing){
		"cut":                  func(h *hearing) { h.server.Drop() },
		"asked to reconnect":   func(h *hearing) { h.server.Op(7, nil) },
		"interrupted":          func(h *hearing) { h.server.Op(9, true) },
		"closed with 4000":     func(h *hearing) { h.server.Shut(4000) },
		"closed with 4008":     func(h *hearing) { h.server.Shut(4008) },
		"closed with 1011":     func(h *hearing) { h.server.Shut(1011) },
		"beat's answer first":  func(h *hearing) { h.server.Next(discordtest.Greeting{Before: []int{11}}); h.server.Op(7, nil) },
		"reconnect first":      func(h *hearing) { h.server.Next(discordtest.Greeting{Before: []int{7}}); h.server.Op(7, nil) },
		"no hello, then cut":   func(h *hearing) { h.server.Next(discordtest.Greeting{Mute: true}); h.server.Op(7, nil) },
		"hello, then nothing":  func(h *hearing) { h.server.Next(discordtest.Greeting{Hush: true}); h.server.Op(7, nil) },
		"looks alive, is dead": func(h *hearing) { h.server.Silence(true) },
	} {
		t.Run(name, func(t *testing.T) {
			timing := brisk
			timing.Hello = 150 * time.Millisecond
			h := listen(t, discordtest.Options{Beat: 100 * time.Millisecond}, timing).begin()
			dm(h, "one")
			h.hears("one")
			links := h.server.Links()
			end(h)
			dm(h, "two")
			dm(h, "three")
			h.await("there is another link", func() bool { return h.server.Links() > links && h.server.Resumes() > 0 })
			h.hears("one", "two", "three")
			if n := h.server.Identifies(); n != 1 {
				t.Errorf("%d sessions were begun", n)
			}
			if closes := h.server.Closes(); slices.Contains(closes, 1000) || slices.Contains(closes, 1001) {
				t.Errorf("links were closed with %v", closes)
			}
		})
	}
}

// TestSessionIsBegunAnew ends a session for good: another is begun, and what was said meanwhile is read.
func TestSessionIsBegunAnew(t *testing.T) {
	for name, end := range map[string]func(*hearing){
		"ended":            func(h *hearing) { h.server.Op(9, false) },
		"closed with 4007": func(h *hearing) { h.server.Shut(4007) },
		"closed with 4009": func(h *hearing) { h.server.Shut(4009) },
		"not known any more": func(h *hearing) {
			no := false
			h.server.Next(discordtest.Greeting{Refuse: &no})
			h.server.Drop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := listen(t, discordtest.Options{}, brisk).begin()
			dm(h, "one")
			h.hears("one")
			end(h)
			dm(h, "two")
			h.await("there is another session", func() bool { return h.server.Identifies() == 2 })
			h.hears("one", "two")
			dm(h, "three")
			h.hears("one", "two", "three")
		})
	}
}

// TestRefusalForGood has the codes after which Discord must not be asked again.
func TestRefusalForGood(t *testing.T) {
	for code, want := range map[int]string{
		4004: "Reset Token", 4010: "tell its makers", 4011: "more servers", 4012: "tell its makers", 4013: "tell its makers",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			h := listen(t, discordtest.Options{}, brisk)
			h.server.Next(discordtest.Greeting{Close: code})
			h.run()
			select {
			case err := <-h.ended:
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "TOKEN") {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(patience):
				t.Fatal("it goes on")
			}
			if n := h.server.Links(); n != 1 {
				t.Errorf("there were %d links", n)
			}
			if alarm := <-h.alarms; !strings.Contains(alarm, want) || len(h.alarms) > 0 {
				t.Errorf("the alarm is %q, and there are %d more", alarm, len(h.alarms))
			}
			if err := h.discord.Stale(); err == nil {
				t.Error("it calls itself well")
			}
		})
	}
}

// TestWithoutMessageContent has the switch off without which words are not read: the link does without it, which is told once.
func TestWithoutMessageContent(t *testing.T) {
	h := listen(t, discordtest.Options{Blind: true}, brisk).begin()
	if alarm := <-h.alarms; !strings.Contains(alarm, "Message Content Intent is off") || !strings.Contains(alarm, "direct messages, mentions and commands") {
		t.Errorf("the alarm is %q", alarm)
	}
	h.server.Say(ann, discordtest.DM(ann), "in private")
	h.hears("in private")
	h.server.Say(ann, shared, "<@"+discordtest.Bot+"> mentioned")
	h.hears("in private", "mentioned")
	if n := h.server.Links(); n != 2 || len(h.alarms) > 0 {
		t.Errorf("there were %d links, and %d more alarms", n, len(h.alarms))
	}
	if err := h.discord.Stale(); err != nil {
		t.Errorf("it calls itself ill: %v", err)
	}
}

// TestIntentsRefusedAgain is a refusal that has nothing to do with the switch.
func TestIntentsRefusedAgain(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk)
	h.server.Next(discordtest.Greeting{Close: 4014})
	h.server.Next(discordtest.Greeting{Close: 4014})
	h.run()
	select {
	case err := <-h.ended:
		if err == nil || !strings.Contains(err.Error(), "Message Content Intent is off") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	if n := h.server.Links(); n != 2 {
		t.Errorf("there were %d links", n)
	}
}

// TestSessionsAreSaved lets links break all the time: no more sessions are begun than are allowed.
func TestSessionsAreSaved(t *testing.T) {
	timing := brisk
	timing.Sessions, timing.Day = 3, time.Hour
	h := listen(t, discordtest.Options{}, timing)
	for range 20 {
		h.server.Next(discordtest.Greeting{Late: 4009})
	}
	h.run()
	select {
	case alarm := <-h.alarms:
		if !strings.Contains(alarm, "no more sessions") {
			t.Errorf("the alarm is %q", alarm)
		}
	case <-time.After(patience):
		t.Fatal("there is no alarm")
	}
	if n := h.server.Identifies(); n != 3 {
		t.Errorf("%d sessions were begun", n)
	}
}

// TestNoSessionIsLeft lets Discord say that no session may be begun today.
func TestNoSessionIsLeft(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk)
	h.server.Remaining(1)
	h.run()
	<-h.alarms
	if n := h.server.Identifies(); n != 0 {
		t.Errorf("%d sessions were begun", n)
	}
	if err := h.discord.Stale(); !errors.Is(err, errNotLinked) {
		t.Errorf("it is stale for %v", err)
	}
}

// TestBeatOnDemand asks for a beat at once.
func TestBeatOnDemand(t *testing.T) {
	h := listen(t, discordtest.Options{Beat: time.Hour}, brisk).begin()
	beats := h.server.Beats()
	h.server.Op(1, nil)
	h.await("there is a beat", func() bool { return h.server.Beats() > beats })
}

// TestLateBeat lets no beat be answered while events come all the time: such a link is alive.
func TestLateBeat(t *testing.T) {
	h := listen(t, discordtest.Options{Beat: 500 * time.Millisecond}, brisk).begin()
	h.server.Unanswered(true)
	links := h.server.Links()
	for range 3 {
		beats := h.server.Beats()
		h.server.Dispatch("GUILD_CREATE", map[string]any{"id": "1"})
		h.await("there is another beat", func() bool { return h.server.Beats() > beats })
	}
	if n := h.server.Links(); n != links {
		t.Errorf("there were %d links", n)
	}
}

// TestOpeningsGetRarer lets Discord be out of order for an hour: it is asked at once, and then more and more rarely.
func TestOpeningsGetRarer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		var asked []time.Duration
		began := time.Now()
		l := &link{log: slog.New(slog.DiscardHandler), timing: Timing{}.withDefaults(), alarm: func(string) {}}
		l.ask = func(context.Context) (gateway, error) {
			asked = append(asked, time.Since(began))
			return gateway{}, &brokenError{"503"}
		}
		if err := l.run(ctx, nil); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 1, 3, 8, 18, 38, 68, 128, 188}
		for i, at := range want {
			if asked[i] != at*time.Second {
				t.Errorf("it was asked at %v, want %v seconds", asked[:len(want)], want)
				break
			}
		}
		if n := len(asked); n > 66 {
			t.Errorf("it was asked %d times in an hour", n)
		}
	})
}

// TestSessionsAreBegunApart begins two sessions at once: the second waits, and so does one that is one too many for the day.
func TestSessionsAreBegunApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alarms := 0
		l := &link{log: slog.New(slog.DiscardHandler), timing: Timing{}.withDefaults(), alarm: func(string) { alarms++ }}
		began := time.Now()
		var at []time.Duration
		for range 901 {
			if err := l.budget(t.Context(), gateway{}); err != nil {
				t.Fatal(err)
			}
			l.identifies = append(l.identifies, time.Now())
			at = append(at, time.Since(began))
		}
		if at[1] != 5*time.Second || at[899] != 899*5*time.Second || at[900] != 24*time.Hour || alarms != 1 {
			t.Errorf("they began at %v, %v and %v, with %d alarms", at[1], at[899], at[900], alarms)
		}
	})
}

// TestOrder has many messages come at once, some of them again.
func TestOrder(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	var want []string
	for i := range 200 {
		text := fmt.Sprintf("number %d", i)
		want = append(want, text)
		event := dm(h, text)
		if i%7 == 0 {
			h.server.Repeat(event)
		}
	}
	h.hears(want...)
}
