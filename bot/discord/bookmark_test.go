package discord

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot/bottest/discordtest"
)

// stop ends the adapter that listens, as the program does, and waits for it.
func (h *hearing) stop() {
	h.Helper()
	h.quit()
	if err := <-h.ended; err != nil {
		h.Fatal(err)
	}
}

// again begins another adapter in its place, which knows what the first one kept.
func (h *hearing) again() {
	h.Helper()
	d, err := New(Config{Token: discordtest.Token, TokenFrom: "TOKEN", APIURL: h.server.APIURL(), Timing: brisk, Alarm: func(text string) { h.alarms <- text }})
	if err != nil {
		h.Fatal(err)
	}
	h.discord = d
	h.begin()
}

// TestWhatWasSaidMeanwhileIsHeard has people write while no program runs, in all places where the bot is talked with: each
// thing is heard at the next start, once, in order, and before what is said then.
func TestWhatWasSaidMeanwhileIsHeard(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	thread, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
	h.hears("hi")
	address := place{guild: discordtest.Guild, channel: shared, thread: thread}.String()
	h.await("the thread is there", func() bool { return h.server.Typed(thread) > 0 })
	h.ear.mu.Lock()
	h.ear.standing[address] = true
	h.ear.mu.Unlock()
	dm(h, "one")
	h.server.Say(ann, thread, "two")
	h.said(reply(agent.Notify, agent.PersonID("discord:"+bob).Home(), "the disk is full")) // Bob has never said a word
	h.await("all is heard", func() bool { return len(h.ear.texts()) == 3 })
	h.stop()
	for i := range 230 {
		dm(h, fmt.Sprint("direct ", i))
	}
	h.server.Say(ann, thread, "in the thread")
	h.server.Say(bob, shared, "<@"+discordtest.Bot+"> a mention")
	h.server.Say(bob, shared, "no mention")
	h.server.Say(bob, discordtest.DM(bob), "what disk?")
	for range 3 { // a start after which nothing new was said finds nothing
		h.again()
		h.await("all is heard", func() bool { return len(h.ear.texts()) >= 3+233 })
		h.stop()
	}
	got := h.ear.texts()[3:]
	if direct := slices.DeleteFunc(slices.Clone(got), func(text string) bool { return !strings.HasPrefix(text, "direct ") }); len(direct) != 230 || direct[0] != "direct 0" || direct[229] != "direct 229" {
		t.Errorf("in direct messages was heard %q", direct)
	}
	for _, text := range []string{"in the thread", "a mention", "what disk?"} {
		if !slices.Contains(got, text) {
			t.Errorf("%q was not heard", text)
		}
	}
	if len(got) != 233 {
		t.Errorf("%d things were heard", len(got))
	}
	h.again()
	dm(h, "last")
	h.await("the last is heard", func() bool { return slices.Contains(h.ear.texts(), "last") })
	if n := len(h.ear.texts()); n != 3+234 {
		t.Errorf("%d things were heard in the end", n)
	}
}

// TestFirstWordsAreHeard has people write for the first time while no program runs, and somebody who is in no server.
func TestFirstWordsAreHeard(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk)
	h.server.Say(ann, discordtest.DM(ann), "is anybody there?")
	h.server.Say(eve, discordtest.DM(eve), "let me in")
	h.discord.people = []string{"404", "no id", ann, bob}
	h.begin()
	h.hears("is anybody there?")
	if got := h.ear.last(); got.Address != home || got.From.ID != "discord:"+ann {
		t.Errorf("it is %+v", got)
	}
	h.await("Bob is known", func() bool { return len(h.discord.bookmarks.all()) == 2 })
	opened := len(h.server.Calls("dm.open"))
	h.server.Op(9, false)
	h.server.Say(bob, discordtest.DM(bob), "and me")
	h.hears("is anybody there?", "and me")
	h.await("everybody was looked for", func() bool { return h.server.Identifies() == 2 })
	if n := len(h.server.Calls("dm.open")) - opened; n > 1 { // of the one whom Discord does not know
		t.Errorf("%d more direct messages were opened", n)
	}
}

// TestFirstWordsOfTooMany lets Discord refuse to open any more direct messages.
func TestFirstWordsOfTooMany(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk)
	h.server.Fail("dm.open", discordtest.Fault{Status: 400, Code: codeOpenTooFast})
	h.discord.people = []string{ann, bob, eve}
	h.begin()
	h.await("one is tried", func() bool { return len(h.server.Calls("dm.open")) > 0 })
	dm(h, "hello")
	h.hears("hello")
	if n := len(h.server.Calls("dm.open")); n != 1 {
		t.Errorf("%d were opened", n)
	}
}

// TestCatchingUpGoesOn lets Discord be out of order while it is asked for what was missed, and refuse one channel for good.
func TestCatchingUpGoesOn(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	dm(h, "one")
	h.hears("one")
	h.stop()
	dm(h, "two")
	h.server.Fail("message.list", discordtest.Fault{Status: 502}, discordtest.Fault{RetryAfter: time.Millisecond}, discordtest.Fault{Cut: true})
	h.again()
	dm(h, "three")
	h.hears("one", "two", "three")
	h.stop()
	h.server.Fail("message.list", discordtest.Fault{Status: 403, Code: codeNoAccess})
	h.again()
	h.await("it is not looked into any more", func() bool { return len(h.discord.bookmarks.all()) == 0 })
}

// TestWhatWasKeptIsSeenAgain is a crash after something was taken and before the bookmark was kept: it is known by its key.
func TestWhatWasKeptIsSeenAgain(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	dm(h, "one")
	h.hears("one")
	h.await("the bookmark is kept", func() bool { kept, _ := h.ear.Kept(context.Background(), platform); return len(kept) == 1 })
	kept, _ := h.ear.Kept(context.Background(), platform)
	dm(h, "two")
	h.hears("one", "two")
	h.stop()
	h.ear.mu.Lock()
	h.ear.kept = kept
	h.ear.mu.Unlock()
	h.again()
	dm(h, "three")
	h.hears("one", "two", "three")
}

// TestOldBookmarks has channels that were silent for long, too many of them, and rows that are none.
func TestOldBookmarks(t *testing.T) {
	now := time.Now()
	kept := map[string]string{"heard discord:1": "no message", "zone discord:1": "asked"}
	row := func(channel int, age time.Duration) {
		kept[fmt.Sprintf("heard discord:%d", channel)] = message{fmt.Sprint(channel), idAt(now.Add(-age))}.String()
	}
	row(2, liveFor+time.Hour)
	for i := range mostBookmarks + 50 {
		row(100+i, time.Duration(i)*time.Minute)
	}
	b := newBookmarks()
	b.load(kept, now)
	all := b.all()
	if len(all) != mostBookmarks || all[0].last.channel != "100" || all[0].about != "discord:100" {
		t.Errorf("%d bookmarks, the first of %+v", len(all), all[0])
	}
	changes := b.changes()
	gone := 0
	for name := range maps.Keys(changes) {
		if changes[name] == "" {
			gone++
		}
	}
	if gone != 51 {
		t.Errorf("%d are forgotten", gone)
	}
	for i := range 3 * mostBookmarks {
		b.move(bookmark{"discord:1:1", message{fmt.Sprint(10_000 + i), idAt(now)}})
		b.changes()
	}
	if n := len(b.in); n > 2*mostBookmarks {
		t.Errorf("%d bookmarks are held", n)
	}
}

// TestNothingIsKeptOfWhoAsksToBeForgotten asks for that in direct messages.
func TestNothingIsKeptOfWhoAsksToBeForgotten(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	dm(h, "Nudge  forget-me")
	h.hears("Nudge  forget-me")
	h.stop()
	if kept, _ := h.ear.Kept(context.Background(), platform); len(kept) > 0 {
		t.Errorf("kept is %v", kept)
	}
}
