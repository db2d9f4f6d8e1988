package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
)

// ask shows a card in an address, as one that waits, and gives where it stands.
func (d *desk) ask(r agent.Reply) (channel, ts string) {
	d.Helper()
	d.in.mu.Lock()
	d.in.cards[r.ID] = r
	d.in.mu.Unlock()
	channel, ts, _ = strings.Cut(d.tell("ask "+r.ID, r), ":")
	return channel, ts
}

func approval(address string) agent.Reply {
	return agent.Reply{
		Kind: agent.Approval, ID: "c1", Tool: "delete_file", Arguments: json.RawMessage(`{"path":"a <&> b.md","why":"*old* ` + "```" + `"}`),
		Text: "It is not used.", MayDecide: []string{"slack:T0TEST:U0ANN"}, Address: address,
	}
}

// click presses a button and waits until that is acknowledged.
func (d *desk) click(user, channel, ts, action string) (view slacktest.View, opened bool) {
	d.Helper()
	delivery, trigger := d.server.Click(user, channel, ts, action)
	d.acked(delivery)
	return d.server.View(trigger)
}

// send sends a form and waits until that is acknowledged.
func (d *desk) send(user string, v slacktest.View, words string) {
	d.Helper()
	d.acked(d.server.Submit(user, v, map[string]map[string]string{formBlock: {formInput: words}}))
}

func (d *desk) lastDecision() (bot.Event, agent.Decision) {
	d.Helper()
	events := d.in.all()
	if len(events) == 0 || events[len(events)-1].Click == nil {
		d.Fatalf("nothing was decided: %+v", events)
	}
	e := events[len(events)-1]
	return e, *e.Click
}

func TestCards(t *testing.T) {
	d := newDesk(t, brisk)
	address, thread := d.thread()
	expires := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	r := approval(address)
	r.Expires = &expires
	channel, ts := d.ask(r)
	m, _ := d.server.Message(channel, ts)
	if m.Thread != thread {
		t.Errorf("the card stands in %q", m.Thread)
	}
	for _, part := range []string{"delete_file", `"path": "a <&> b.md"`, "*old* ```", "It is not used.", "Ann (slack:T0TEST:U0ANN) may decide until <!date^1796115600^"} {
		if !strings.Contains(m.Shown(), part) {
			t.Errorf("the card does not show %q:\n%s", part, m.Shown())
		}
	}
	if got := html.UnescapeString(m.Text); got != bot.CardText(r, "") || strings.Contains(m.Text, "<") {
		t.Errorf("the text of the card is %q", m.Text)
	}
	for _, b := range m.Buttons() {
		if b.Value != "c1" {
			t.Errorf("a button holds %q", b.Value)
		}
	}
	click, _ := d.server.Click("U0ANN", channel, ts, actionApprove)
	d.acked(click, d.server.Redeliver(click))
	e, decision := d.lastDecision()
	if e.Address != address || decision.Card != "c1" || decision.Verdict != agent.Approve || e.From.Name != "Ann" || len(d.in.all()) != 2 {
		t.Errorf("Approve became %+v", e)
	}
	d.click("U0BOB", channel, ts, actionApprove)
	if n := len(d.in.all()); n != 3 {
		t.Errorf("another's click makes %d events", n)
	}
}

func TestLongCards(t *testing.T) {
	d := newDesk(t, brisk)
	for i, size := range []int{100, 2990, 3001, 3800} {
		r := approval(annsDM)
		r.ID = fmt.Sprint("c", i)
		r.Arguments = json.RawMessage(`{"text":"` + strings.Repeat("a", size) + `"}`)
		channel, ts := d.ask(r)
		m, _ := d.server.Message(channel, ts)
		if !strings.Contains(strings.ReplaceAll(m.Shown(), "\n", ""), strings.Repeat("a", size)) || len(m.Buttons()) != 3 {
			t.Errorf("arguments of %d characters are not shown whole, with %d buttons", size, len(m.Buttons()))
		}
		if !strings.Contains(m.Text, strings.Repeat("a", size)) {
			t.Errorf("the text lacks arguments of %d characters", size)
		}
	}
	r := approval(annsDM)
	r.ID, r.Arguments = "long", json.RawMessage(`{"text":"`+strings.Repeat("b", 4_000)+`"}`)
	d.ask(r)
	if d.server.File("card-long.txt") != bot.CardText(r, "") {
		t.Error("a card that is longer than a message is no file")
	}
	r.ID, r.Arguments = "huge", json.RawMessage(`{"text":"`+strings.Repeat("b", 20_000)+`"}`)
	channel, ts := d.ask(r)
	m, _ := d.server.Message(channel, ts)
	if d.server.File("card-huge.txt") != bot.CardText(r, "") || !strings.Contains(m.Shown(), "card-huge.txt") || !strings.Contains(m.Text, "card-huge.txt") || len(m.Buttons()) != 3 {
		t.Errorf("a huge card stands there as %q", m.Shown())
	}
	for _, c := range d.server.Calls("chat.postMessage") {
		if c.Error != "" {
			t.Errorf("slack refuses a card: %s", c.Error)
		}
	}
	view, _ := d.click("U0ANN", channel, ts, actionEdit)
	if view.Submit != "" || len(view.Blocks) != 1 || !strings.Contains(view.Blocks[0].Text.Text, "nudge edit huge") {
		t.Errorf("the form for arguments that are too long is %+v", view)
	}
}

func TestRefusedBlocksBecomeText(t *testing.T) {
	d := newDesk(t, brisk)
	d.server.Fail("chat.postMessage", slacktest.Fault{Error: "invalid_blocks"})
	r := approval(annsDM)
	channel, ts := d.ask(r)
	if m, _ := d.server.Message(channel, ts); html.UnescapeString(m.Text) != bot.CardText(r, "") || len(m.Blocks) != 0 {
		t.Errorf("the card stands there as %+v", m)
	}
}

func TestDeny(t *testing.T) {
	d := newDesk(t, brisk)
	channel, ts := d.ask(approval(annsDM))
	view, opened := d.click("U0ANN", channel, ts, actionDeny)
	if !opened || len(d.in.all()) != 0 {
		t.Fatalf("Deny opens %v and decides %+v", opened, d.in.all())
	}
	submit := d.server.Submit("U0ANN", view, map[string]map[string]string{formBlock: {formInput: " I need <it> & more "}})
	d.acked(submit, d.server.Redeliver(submit))
	e, decision := d.lastDecision()
	if decision.Card != "c1" || decision.Verdict != agent.Deny || decision.Text != "I need <it> & more" || e.Address != annsDM || e.From.ID != "slack:T0TEST:U0ANN" {
		t.Errorf("decided %+v", e)
	}
	if len(d.in.all()) != 1 {
		t.Error("a redelivered form is another event")
	}
	if v, _ := d.server.View(view.Trigger); !v.Shut {
		t.Error("the form stays open")
	}
}

func TestDenyWithoutAReason(t *testing.T) {
	d := newDesk(t, brisk)
	channel, ts := d.ask(approval(annsDM))
	view, _ := d.click("U0ANN", channel, ts, actionDeny)
	d.send("U0ANN", view, "")
	if _, decision := d.lastDecision(); decision.Verdict != agent.Deny || decision.Text != "" {
		t.Errorf("decided %+v", decision)
	}
}

func TestEdit(t *testing.T) {
	d := newDesk(t, brisk)
	address, _ := d.thread()
	r := approval(address)
	channel, ts := d.ask(r)
	view, _ := d.click("U0ANN", channel, ts, actionEdit)
	input := view.Blocks[0].Element
	if input == nil || !input.Multiline || !strings.Contains(input.Initial, `"path": "a <&> b.md"`) {
		t.Fatalf("the form holds %+v", view.Blocks)
	}
	for _, bad := range []string{"", "{", `["a"]`, "null", "7"} {
		d.send("U0ANN", view, bad)
		if v, _ := d.server.View(view.Trigger); v.Shut || !strings.Contains(v.Errors[formBlock], "not a JSON object") {
			t.Errorf("%q shows %q", bad, v.Errors)
		}
	}
	if len(d.in.all()) != 1 {
		t.Error("something was decided by a bad form")
	}
	d.send("U0ANN", view, `{"path": "c.md"}`)
	e, decision := d.lastDecision()
	if decision.Verdict != agent.Edit || string(decision.Arguments) != `{"path": "c.md"}` || e.Address != address {
		t.Errorf("decided %+v", decision)
	}
}

func TestFormsThatDoNotOpen(t *testing.T) {
	d := newDesk(t, brisk)
	address, _ := d.thread()
	channel, ts := d.ask(approval(address))
	d.server.Fail("views.open", slacktest.Fault{Error: "expired_trigger_id"})
	if _, opened := d.click("U0ANN", channel, ts, actionDeny); opened {
		t.Error("the form is open")
	}
	d.until("Ann is told", func() bool {
		said := d.server.ByBot(shared)
		return said[len(said)-1].For == "U0ANN" && strings.Contains(said[len(said)-1].Text, "once more")
	})
	click, trigger := d.server.Click("U0ANN", channel, ts, actionDeny)
	d.acked(click, d.server.Redeliver(click))
	if _, opened := d.server.View(trigger); !opened || len(d.server.Calls("views.open")) != 2 {
		t.Errorf("%d forms were opened", len(d.server.Calls("views.open")))
	}
}

func TestClicksOnDecidedCards(t *testing.T) {
	d := newDesk(t, brisk)
	channel, ts := d.ask(approval(annsDM))
	d.in.mu.Lock()
	clear(d.in.cards)
	d.in.mu.Unlock()
	for action, verdict := range map[string]agent.Verdict{actionDeny: agent.Deny, actionEdit: agent.Edit, actionApprove: agent.Approve} {
		if _, opened := d.click("U0ANN", channel, ts, action); opened {
			t.Errorf("%s opens a form", action)
		}
		if _, decision := d.lastDecision(); decision.Verdict != verdict || decision.Card != "c1" {
			t.Errorf("%s became %+v", action, decision)
		}
	}
}

func TestStrangersAreToldSo(t *testing.T) {
	d := newDesk(t, brisk)
	d.in.refused = "slack:T0TEST:U0EVE"
	address, _ := d.thread()
	channel, ts := d.ask(approval(address))
	d.click("U0EVE", channel, ts, actionApprove)
	d.until("Eve is told", func() bool {
		said := d.server.ByBot(shared)
		return said[len(said)-1].For == "U0EVE" && strings.Contains(said[len(said)-1].Text, "not on the list")
	})
	if m, _ := d.server.Message(channel, ts); len(m.Buttons()) != 3 {
		t.Error("the buttons are gone")
	}
}

func TestQuestions(t *testing.T) {
	d := newDesk(t, brisk)
	long := strings.Repeat("long ", 30)
	r := agent.Reply{Kind: agent.Ask, ID: "q1", Text: "Which <one>?", Choices: []string{"red", long, ""}, Address: annsDM}
	channel, ts := d.ask(r)
	m, _ := d.server.Message(channel, ts)
	if len(m.Buttons()) != 4 || !strings.Contains(m.Shown(), "Which <one>?") || !strings.Contains(m.Shown(), strings.TrimSpace(long)) {
		t.Fatalf("the question stands there as %q", m.Shown())
	}
	for i, want := range r.Choices {
		d.click("U0ANN", channel, ts, fmt.Sprint(actionChoice, i))
		if _, decision := d.lastDecision(); decision.Verdict != agent.AnswerIt || decision.Text != want {
			t.Errorf("choice %d became %+v", i, decision)
		}
	}
	view, _ := d.click("U0ANN", channel, ts, actionAnswer)
	d.send("U0ANN", view, "  ")
	if v, _ := d.server.View(view.Trigger); v.Shut || len(v.Errors) == 0 {
		t.Error("an empty answer is taken")
	}
	d.send("U0ANN", view, "blue")
	if _, decision := d.lastDecision(); decision.Text != "blue" || decision.Card != "q1" {
		t.Errorf("the answer became %+v", decision)
	}
	many := agent.Reply{Kind: agent.Ask, ID: "q2", Text: "Which?", Address: annsDM}
	for i := range 40 {
		many.Choices = append(many.Choices, fmt.Sprint("choice number ", i))
	}
	channel, ts = d.ask(many)
	if m, _ := d.server.Message(channel, ts); len(m.Blocks) != 2 || len(m.Blocks[1].Elements[0].Options) != 40 {
		t.Errorf("many choices stand there as %+v", m.Blocks)
	}
	d.ask(agent.Reply{Kind: agent.Ask, ID: "q3", Text: strings.Repeat("long question ", 1500), Choices: []string{"a"}, Address: annsDM})
	for _, c := range d.server.Calls("chat.postMessage") {
		if c.Error != "" {
			t.Errorf("slack refuses a question: %s", c.Error)
		}
	}
}

// TestOutcomes settles cards of which more or less is known.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		earlier bool // the receipt is known
		restart bool
		fault   string
		edited  bool
	}{
		{"as usual", true, false, "", true},
		{"after a restart", true, true, "", true},
		{"after a restart and with nothing known", false, true, "", true},
		{"when the card may not be edited any more", true, false, "edit_window_closed", false},
		{"when the card is gone", true, false, "message_not_found", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, brisk)
			address, _ := d.thread()
			channel, ts := d.ask(approval(address))
			if c.restart {
				_ = d.stop()
				d.slack = newSlack(t, d.server, brisk)
			}
			if c.fault != "" {
				d.server.Fail("chat.update", slacktest.Fault{Error: c.fault})
			}
			r := agent.Reply{Kind: agent.DecidedMark, ID: "c1", Tool: "delete_file", Decision: agent.Deny, By: "slack:T0TEST:U0BOB", Text: "<no> " + strings.Repeat("&", 5000), Address: address}
			delivery := bot.Delivery{Reply: r, Key: "k2"}
			if c.earlier {
				delivery.Earlier = channel + ":" + ts
			}
			if _, err := d.slack.Say(t.Context(), delivery); err != nil {
				t.Fatal(err)
			}
			said := d.server.ByBot(shared)
			last := said[len(said)-1]
			if c.edited != (len(said) == 1) {
				t.Fatalf("there are %d messages", len(said))
			}
			if !strings.Contains(last.Text, "denied by <@U0BOB>: &lt;no&gt;") || !strings.Contains(last.Text, "<!date^") || len(last.Buttons()) != 0 {
				t.Errorf("the outcome is %.200q with %d buttons", last.Text, len(last.Buttons()))
			}
			if _, has := d.server.Calls("chat.update")[0].Form["blocks"]; !has {
				t.Error("the blocks are not taken away explicitly")
			}
		})
	}
}

func TestOutcomeOfACardThatIsNowhere(t *testing.T) {
	d := newDesk(t, brisk)
	d.tell("k1", agent.Reply{Kind: agent.DecidedMark, ID: "c9", Tool: "delete_file", Decision: agent.Expire, Address: annsDM})
	d.tell("k2", agent.Reply{Kind: agent.DecidedMark, ID: "c8", Tool: "delete_file", Decision: agent.Approve, By: "terminal:<x>", Address: annsDM})
	said := d.server.ByBot(slacktest.DM("U0ANN"))
	if len(said) != 2 || !strings.Contains(said[0].Text, "expired") || !strings.Contains(said[1].Text, "approved by terminal:&lt;x&gt;") {
		t.Errorf("said %+v", said)
	}
	d.server.Fail("conversations.history", slacktest.Fault{RetryAfter: time.Second})
	_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.DecidedMark, ID: "c7", Address: annsDM}, Key: "k3"})
	var send *bot.SendError
	if !errors.As(err, &send) || send.RetryAfter != time.Second {
		t.Errorf("a limited look gives %v", err)
	}
}
