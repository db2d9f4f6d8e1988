package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/bot/bottest/slacktest"
)

// TestSlackSnooze lets a heartbeat tell Ann something at every tick until she snoozes: then its ticks sleep, over a kill
// too, and ask no model. When the snooze is over it speaks again, and less of that is less.
func TestSlackSnooze(t *testing.T) {
	t.Parallel()
	var said atomic.Int64
	o := openOffice(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		if len(results(req)) > 0 {
			return modeltest.Reply{Text: "I have told them.", Usage: usage}
		}
		text := fmt.Sprintf(`{"text":"ping %d, *look*"}`, said.Add(1))
		return modeltest.Reply{Calls: []model.Call{call("n1", "notify", text)}, Usage: usage}
	}, fmt.Sprintf(`
[[heartbeat]]
name = "disk"
cron = "@every 1s"
for = [%q]
prompt = "Tell them that the disk is full."
[heartbeat.condition]
kind = "always"
`, personID(ann)))
	home := slacktest.DM(ann)
	first := o.told(home, "ping 1, _look_")
	menu, found := first.Menu("Snooze")
	if !found || actionOf(first, "Useful") == "" || actionOf(first, "Less of this") == "" {
		t.Fatalf("the card is %+v", first)
	}
	o.acked(o.slack.Choose(bob, home, first.TS, menu.ActionID, "for 4 hours"))
	o.told(slacktest.DM(bob), "This is not yours to decide")
	pressed := o.slack.Choose(ann, home, first.TS, menu.ActionID, "for 4 hours")
	o.acked(pressed)
	settled := o.settled(first)
	if !strings.Contains(settled.Text, "ping 1, _look_") || !strings.Contains(settled.Shown(), "Snoozed until ") || !strings.Contains(settled.Shown(), "nudge snooze off") {
		t.Errorf("the card has become %q", settled.Shown())
	}
	o.sleeps("snoozed until ")
	o.restart()
	o.acked(o.slack.Redeliver(pressed))
	o.sleeps("snoozed until ")

	before := len(o.slack.ByBot(home))
	o.acked(o.slack.Slash(ann, home, "/nudge", "snooze off"))
	var again slacktest.Message
	o.until("the heartbeat spoke again", func() bool {
		for _, m := range o.slack.ByBot(home)[before:] {
			if strings.Contains(m.Text, "ping ") && len(m.Buttons()) > 0 {
				again = m
			}
		}
		return again.TS != ""
	})
	o.press(ann, again, "Less of this")
	if shown := o.settled(again).Shown(); !strings.Contains(shown, "disk speaks to you at most every hour") {
		t.Errorf("the card has become %q", shown)
	}
	o.sleeps("asked for less of this, and is let be until ")
	if out, status := o.place.run("export", personID(ann)); status != 0 || !strings.Contains(out, `"said": "snooze"`) || !strings.Contains(out, `"at_most": "every hour"`) {
		t.Errorf("the export (%d) is\n%s", status, out)
	}
	o.interrupt(t)
	if out, status := o.place.run("check"); status != 0 {
		t.Errorf("the check says (%d) %s", status, out)
	}
	if n := len(o.slack.ByBot(slacktest.DM(bob))); n != 1 {
		t.Errorf("Bob was told %d things", n)
	}
}

// sleeps waits until the last outcomes of heartbeat disk are that it slept for a reason, and looks that no model was asked
// during the last two.
func (o *office) sleeps(reason string) {
	o.Helper()
	outcome := "slept   " + reason
	lines := func() (newest int) {
		out, status := o.place.run("why", "disk")
		if status != 0 {
			o.Fatalf("why (%d): %s", status, out)
		}
		for line := range strings.Lines(out) {
			if _, word, dated := strings.Cut(line, "  "); dated && (strings.HasPrefix(word, "woke") || strings.HasPrefix(word, "failed") || strings.HasPrefix(word, "unknown")) {
				break
			}
			if strings.Contains(line, outcome) {
				newest++
			}
		}
		return newest
	}
	var began, asked int
	o.until("the heartbeat slept: "+reason, func() bool { began, asked = lines(), len(o.model.Requests()); return began > 0 })
	o.until("the heartbeat slept twice more", func() bool { return lines() >= began+2 })
	if n := len(o.model.Requests()); n != asked {
		o.Errorf("while it slept the model was asked %d times", n-asked)
	}
}
