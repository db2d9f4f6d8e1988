package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
)

// shownIn is what a Home says.
func shownIn(v slacktest.View) string { return slacktest.Message{Blocks: v.Blocks}.Shown() }

// overview lets Ann have one with these cards.
func (d *desk) overview(cards ...agent.Reply) {
	d.in.mu.Lock()
	defer d.in.mu.Unlock()
	d.in.overviews = map[agent.PersonID]bot.Overview{"slack:T0TEST:U0ANN": {
		Served: true, Cards: cards, Diary: "I keep no diary.", Spent: agent.USD(0.1234),
		Heartbeats: []bot.Beat{
			{Name: "disk <!channel>", Schedule: "every day at 09:00", Next: time.Unix(1796115600, 0), State: "on"},
			{Name: "idle", Schedule: "every hour", State: "paused: stop all"},
		},
	}}
	for _, c := range cards {
		d.in.cards[c.ID] = c
	}
}

func (d *desk) home(user string) slacktest.View {
	d.Helper()
	d.acked(d.server.OpenHome(user, "home"))
	var v slacktest.View
	d.until("the Home is shown", func() bool { var shown bool; v, shown = d.server.Home(user); return shown })
	return v
}

func TestHome(t *testing.T) {
	d := newDesk(t, brisk)
	first, second := approval("slack:T0TEST:C0TEAM:1.1"), approval("terminal:local:dm:root")
	second.ID, second.Kind, second.Text, second.Choices, second.Tool = "c2", agent.Ask, "Which one?", []string{"this", "that"}, ""
	long := approval(annsDM)
	long.ID, long.Arguments = "c3", json.RawMessage(`{"text":"`+strings.Repeat("a", 3500)+`"}`)
	d.overview(first, second, long)
	v := d.home("U0ANN")
	text := shownIn(v)
	for _, want := range []string{
		"delete_file", "asked in <#C0TEAM>", "Which one?", "a conversation outside of Slack", "decided where it stands", "*disk &lt;!channel&gt;*: every day at 09:00, on; next <!date^1796115600^",
		"*idle*: every hour, paused: stop all", "I keep no diary.", "You have spent $0.1234.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the Home lacks %q:\n%s", want, text)
		}
	}
	for _, b := range (slacktest.Message{Blocks: v.Blocks}).Buttons() {
		if b.Value != "c1" {
			t.Errorf("%s can be decided, which is not shown whole or stands elsewhere", b.Value)
		}
	}
	d.overview()
	d.acked(d.server.OpenHome("U0ANN", "home"))
	d.until("it is shown anew", func() bool { v, _ := d.server.Home("U0ANN"); return strings.Contains(shownIn(v), "Nothing waits") })
	if text := shownIn(d.home("U0EVE")); !strings.Contains(text, "not on the list") || strings.Contains(text, "spent") {
		t.Errorf("a stranger's Home says %q", text)
	}
	many := make([]agent.Reply, 60)
	for i := range many {
		many[i] = approval(annsDM)
		many[i].ID = fmt.Sprint("m", i)
	}
	d.overview(many...)
	d.acked(d.server.OpenHome("U0ANN", "home"))
	d.until("many are shown", func() bool {
		v, _ := d.server.Home("U0ANN")
		return strings.Contains(shownIn(v), fmt.Sprintf("And %d more", 60-homeCards))
	})
}

func TestHomeDecides(t *testing.T) {
	d := newDesk(t, brisk)
	first, second, third := approval("slack:T0TEST:C0TEAM:1.1"), approval("slack:T0TEST:C0TEAM:1.1"), approval(annsDM)
	second.ID, third.ID = "c2", "c3"
	third.Kind, third.Text, third.Choices = agent.Ask, "Which one?", []string{"this", "that"}
	d.overview(first, second, third)
	d.home("U0ANN")
	click, _ := d.server.ClickHome("U0ANN", actionApprove, "c1")
	d.acked(click, d.server.Redeliver(click))
	e, decision := d.lastDecision()
	if decision.Card != "c1" || decision.Verdict != agent.Approve || e.Address != "slack:T0TEST:C0TEAM:1.1" || e.From.ID != "slack:T0TEST:U0ANN" || len(d.in.all()) != 1 {
		t.Errorf("Approve became %+v", e)
	}
	d.until("the card is gone from the Home", func() bool {
		v, _ := d.server.Home("U0ANN")
		return len((slacktest.Message{Blocks: v.Blocks}).Buttons()) > 0 && !hasCard(v, "c1")
	})
	d.overview(second, third)
	d.slack.lanes.Wait()
	publishes := len(d.server.Calls(methodHome))
	d.server.Fail("chat.postMessage", slacktest.Fault{Error: "channel_not_found"})
	_, _ = d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.DecidedMark, ID: "c1", Tool: "delete_file", Decision: agent.Approve, Address: annsDM}, Key: "k"})
	if n := len(d.server.Calls(methodHome)); n != publishes+1 {
		t.Errorf("once it is decided, the Home is shown anew %d times", n-publishes)
	}
	deny, trigger := d.server.ClickHome("U0ANN", actionDeny, "c2")
	d.acked(deny)
	view, opened := d.server.View(trigger)
	if !opened {
		t.Fatal("no form was opened")
	}
	d.send("U0ANN", view, "not now")
	if e, decision := d.lastDecision(); decision.Card != "c2" || decision.Verdict != agent.Deny || decision.Text != "not now" || e.Address != "slack:T0TEST:C0TEAM:1.1" {
		t.Errorf("Deny became %+v", e)
	}
	d.until("the second card is gone", func() bool { v, _ := d.server.Home("U0ANN"); return !hasCard(v, "c2") })
	choice, _ := d.server.ClickHome("U0ANN", actionChoice+"1", "c3")
	d.acked(choice)
	if _, decision := d.lastDecision(); decision.Card != "c3" || decision.Text != "that" {
		t.Errorf("a choice became %+v", decision)
	}
	for _, c := range d.server.Calls("") {
		if c.Error != "" && c.Method != "chat.postMessage" {
			t.Errorf("slack refuses %s: %s", c.Method, c.Error)
		}
	}
}

func hasCard(v slacktest.View, card string) bool {
	for _, b := range (slacktest.Message{Blocks: v.Blocks}).Buttons() {
		if b.Value == card {
			return true
		}
	}
	return false
}

// TestAFullHome is one of a person for whom much waits, which is shown within what Slack takes.
func TestAFullHome(t *testing.T) {
	d := newDesk(t, brisk)
	many := make([]agent.Reply, 40)
	for i := range many {
		many[i] = approval(annsDM)
		many[i].ID, many[i].Text = fmt.Sprint("m", i), "-a\n+b"
	}
	d.overview(many...)
	d.in.mu.Lock()
	o := d.in.overviews["slack:T0TEST:U0ANN"]
	for i := range 60 {
		o.Heartbeats = append(o.Heartbeats, bot.Beat{Name: fmt.Sprint(strings.Repeat("<", 90), i), Schedule: strings.Repeat("&", 200), State: strings.Repeat(">", 200)})
	}
	d.in.overviews["slack:T0TEST:U0ANN"] = o
	d.in.mu.Unlock()
	if text := shownIn(d.home("U0ANN")); !strings.Contains(text, "more. Write to me: nudge approvals") || !strings.Contains(text, "You have spent") {
		t.Errorf("a full Home says %q", text)
	}
}

func TestHomeThatCannotBeShown(t *testing.T) {
	d := newDesk(t, brisk)
	d.in.mu.Lock()
	d.in.fail = errors.New("the disk is gone")
	d.in.mu.Unlock()
	d.acked(d.server.OpenHome("U0ANN", "home"))
	d.in.mu.Lock()
	d.in.fail = nil
	d.in.mu.Unlock()
	d.overview()
	d.server.Fail(methodHome, slacktest.Fault{Error: "not_enabled"})
	d.acked(d.server.OpenHome("U0ANN", "home"))
	d.until("it was tried", func() bool { return len(d.server.Calls(methodHome)) == 1 })
	d.acked(d.server.OpenHome("U0ANN", "home"))
	d.say(slacktest.Said{Text: "hi"})
	if n := len(d.server.Calls(methodHome)); n != 1 {
		t.Errorf("a Home that is switched off is tried %d times", n)
	}
}

// TestOnesHomeIsNotEverybodys lets Slack refuse one person's Home for what is in it.
func TestOnesHomeIsNotEverybodys(t *testing.T) {
	for _, fault := range []string{"view_too_large", "hash_conflict", "invalid_blocks"} {
		t.Run(fault, func(t *testing.T) {
			d := newDesk(t, brisk)
			d.overview()
			d.server.Fail(methodHome, slacktest.Fault{Error: fault})
			d.acked(d.server.OpenHome("U0BOB", "home"))
			d.until("it was tried", func() bool { return len(d.server.Calls(methodHome)) == 1 })
			d.home("U0ANN")
		})
	}
}
