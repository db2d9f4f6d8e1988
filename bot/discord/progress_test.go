package discord

import (
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/discordtest"
)

// progressing shows a line of a turn.
func (h *hearing) progressing(turn, text string) {
	h.Helper()
	h.said(bot.Delivery{Reply: agent.Reply{Kind: agent.Progress, Text: text, Address: home, Turn: turn}})
}

func (h *hearing) settled() {
	h.Helper()
	h.said(bot.Delivery{Reply: agent.Reply{Kind: agent.SettledMark, Address: home}})
}

// TestProgress shows one message for a turn, which is edited and taken away, and another for the next turn.
func TestProgress(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	show := func(turn, text string) {
		t.Helper()
		h.progressing(turn, text)
		h.await(text+" is shown, alone", func() bool {
			said := h.server.ByBot(discordtest.DM(ann))
			return len(said) == 1 && said[0].Text == text && len(said[0].Buttons()) == 1
		})
	}
	show("t1", "one")
	show("t1", "two")
	show("t2", "three")
	if n := len(h.server.Calls("message.create")); n != 2 {
		t.Errorf("%d messages were posted for two turns", n)
	}
	h.settled()
	if said := h.server.ByBot(discordtest.DM(ann)); len(said) > 0 {
		t.Errorf("there still stands %q", texts(said))
	}
}

// TestProgressWhoseAnswerIsLost loses the answer to its post: it is edited and taken away like any.
func TestProgressWhoseAnswerIsLost(t *testing.T) {
	for name, faults := range map[string][]discordtest.Fault{
		"once":                  {{Cut: true, Done: true}},
		"until the turn ended":  {{Cut: true, Done: true}, {Status: 503}, {Status: 503}, {Status: 503}},
		"though it never stood": {{Cut: true}},
	} {
		t.Run(name, func(t *testing.T) {
			timing := brisk
			if len(faults) > 1 {
				timing.Edit = 50 * time.Millisecond // between the tries, which end with the turn
			}
			h := listen(t, discordtest.Options{}, timing).begin()
			h.server.Fail("message.create", faults...)
			h.progressing("t1", "one")
			h.await("it was tried", func() bool { return len(h.server.Calls("message.create")) > 0 })
			deadline := time.Now().Add(patience)
			mark := bot.Delivery{Reply: agent.Reply{Kind: agent.SettledMark, Address: home}}
			for _, err := h.say(mark); err != nil && time.Now().Before(deadline); _, err = h.say(mark) {
			}
			if said := h.server.ByBot(discordtest.DM(ann)); len(said) > 0 {
				t.Errorf("there still stands %q", texts(said))
			}
		})
	}
}

// TestProgressIsTakenAwayAtTheEnd of the program too, when Discord wants a moment's patience since many end at once.
func TestProgressIsTakenAwayAtTheEnd(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	h.progressing("t1", "one")
	h.await("it is shown", func() bool { return len(h.server.ByBot(discordtest.DM(ann))) == 1 })
	h.server.Fail("message.delete", discordtest.Fault{RetryAfter: 100 * time.Millisecond}, discordtest.Fault{RetryAfter: 100 * time.Millisecond})
	h.stop()
	if said := h.server.ByBot(discordtest.DM(ann)); len(said) > 0 {
		t.Errorf("there still stands %q", texts(said))
	}
	h.again()
}

// TestQuickTurnsShowNoProgress ends a turn before there was something to wait for.
func TestQuickTurnsShowNoProgress(t *testing.T) {
	timing := brisk
	timing.Edit = time.Hour
	h := listen(t, discordtest.Options{}, timing).begin()
	h.progressing("t1", "one")
	h.settled()
	h.said(reply(agent.Final, home, "done"))
	if n := len(h.server.Calls("message.create")); n != 1 {
		t.Errorf("%d messages were posted", n)
	}
}

// TestTypingGoesOn shows that something is written for as long as a turn lasts, and no longer.
func TestTypingGoesOn(t *testing.T) {
	timing := brisk
	timing.Typing = 30 * time.Millisecond // so that a second takes more than it has room for, and some are left out
	h := listen(t, discordtest.Options{}, timing).begin()
	typed := func() int { return h.server.Typed(discordtest.DM(ann)) }
	dm(h, "do it")
	h.await("it is typing for a while", func() bool { return typed() > 4 })
	h.said(bot.Delivery{Reply: agent.Reply{Kind: agent.WaitingMark, Address: home}})
	n := typed()
	dm(h, "nudge status")
	h.hears("do it", "nudge status")
	h.said(reply(agent.Notice, home, "nothing is done"))
	if more := typed(); more > n+1 { // one may have been under way
		t.Errorf("it types on: %d, and then %d", n, more)
	}
}
