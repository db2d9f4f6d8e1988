package slack

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
	"nudge/schedule"
)

// ping shows a notify card and gives where its buttons stand.
func (d *desk) ping(text string) slacktest.Message {
	d.Helper()
	r := agent.Reply{Kind: agent.Notify, ID: "n00c0ffee", Heartbeat: "disk", Text: text, Address: annsDM}
	channel, ts, _ := strings.Cut(d.tell("ping "+text, r), ":")
	m, found := d.server.Message(channel, ts)
	if !found {
		d.Fatalf("there is no message %s in %s", ts, channel)
	}
	return m
}

// judge settles the card that stands at a place.
func (d *desk) judge(earlier, told, outcome string) string {
	d.Helper()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	receipt, err := d.slack.Say(d.Context(), bot.Delivery{Key: "judge " + outcome, Earlier: earlier, Reply: agent.Reply{
		Kind: agent.DecidedMark, ID: "n00c0ffee", Heartbeat: "disk", Decision: "snooze", By: "slack:T0TEST:U0ANN", At: &at, Text: outcome, Told: told, Address: annsDM,
	}})
	if err != nil {
		d.Fatal(err)
	}
	return receipt
}

// TestWhatIsToldUnaskedStandsApart tells somebody something while a turn of theirs is shown in a thread of the same direct
// messages and another one outside it: it stands in neither.
func TestWhatIsToldUnaskedStandsApart(t *testing.T) {
	d := newDesk(t, brisk)
	thread := d.say(slacktest.Said{Text: "a long task"})
	d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t1", Text: "at work", Address: annsDM + ":" + thread})
	d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t2", Text: "at work, too", Address: annsDM})
	m := d.ping("the disk fills up")
	if m.Thread != "" || m.Text != "the disk fills up" {
		t.Errorf("it stands in the thread %q and says %q", m.Thread, m.Text)
	}
	d.tell("k1", agent.Reply{Kind: agent.Final, Turn: "t1", Text: "done", Address: annsDM + ":" + thread})
	d.tell("k2", agent.Reply{Kind: agent.SettledMark, Turn: "t1", Address: annsDM + ":" + thread})
	d.tell("k3", agent.Reply{Kind: agent.SettledMark, Turn: "t2", Address: annsDM})
	var left []string
	for _, said := range d.server.ByBot(slacktest.DM("U0ANN")) {
		left = append(left, said.Thread+" "+said.Text)
	}
	if want := []string{" the disk fills up", thread + " done"}; !slices.Equal(left, want) {
		t.Errorf("at the end there is %q, want %q", left, want)
	}
}

func TestNotifyCard(t *testing.T) {
	d := newDesk(t, brisk)
	m := d.ping("**sda** is <!channel> full, see https://example.org & `df`")
	want := "*sda* is &lt;!channel&gt; full, see https://example.org &amp; `df`"
	if m.Text != want || m.Blocks[0].Type != "section" || m.Blocks[0].Text.Text != want || m.Blocks[0].Text.Type != "mrkdwn" {
		t.Errorf("the card is %q, %+v", m.Text, m.Blocks[0])
	}
	var labels []string
	for _, b := range m.Buttons() {
		labels = append(labels, b.Label())
		if b.Value != "n00c0ffee" {
			t.Errorf("%s is of card %q", b.Label(), b.Value)
		}
	}
	menu, found := m.Menu("Snooze")
	if got := strings.Join(labels, ", "); got != "Useful, Less of this" || !found || len(menu.Options) != 3 {
		t.Errorf("the card has %q and the menu %+v", got, menu)
	}
	n := 0
	for action, said := range map[string]schedule.Feedback{actionUseful: schedule.Useful, actionLess: schedule.Less} {
		delivery, _ := d.server.Click("U0ANN", m.Channel, m.TS, action)
		d.acked(delivery, d.server.Redeliver(delivery))
		n++
		d.heardFeedback(n, bot.Feedback{Card: "n00c0ffee", Said: said})
	}
	for entry, span := range map[string]schedule.Span{"for an hour": schedule.AnHour, "for 4 hours": schedule.FourHours, "until tomorrow, 09:00": schedule.TillTomorrow} {
		delivery := d.server.Choose("U0ANN", m.Channel, m.TS, actionSnooze, entry)
		d.acked(delivery, d.server.Redeliver(delivery))
		n++
		d.heardFeedback(n, bot.Feedback{Card: "n00c0ffee", Said: schedule.Snooze, Span: span})
	}
	for _, c := range d.server.Calls("") {
		if c.Error != "" {
			t.Errorf("slack refuses %s: %s", c.Method, c.Error)
		}
	}
}

// TestWhatComesOnceHasNoLess: there is nothing of a reminder to have less of.
func TestWhatComesOnceHasNoLess(t *testing.T) {
	for once, want := range map[bool]int{true: 2, false: 3} {
		row, is := feedbackRow(agent.Reply{Kind: agent.Notify, ID: "n00c0ffee", Heartbeat: "call", Text: "Call Bob.", Once: once}).(*slack.ActionBlock)
		if !is || len(row.Elements.ElementSet) != want {
			t.Errorf("once %v: %+v", once, row)
		}
	}
}

// heardFeedback holds the nth event against feedback that was delivered twice.
func (d *desk) heardFeedback(n int, want bot.Feedback) {
	d.Helper()
	events := d.in.all()
	if len(events) != n {
		d.Fatalf("%d events, want %d", len(events), n)
	}
	one := events[n-1]
	if one.Feedback == nil || *one.Feedback != want || one.Address != annsDM || one.From.ID != "slack:T0TEST:U0ANN" || one.From.Zone != "Europe/Berlin" {
		d.Errorf("heard %+v, want %+v", one, want)
	}
}

func TestAJudgedCardKeepsWhatItTold(t *testing.T) {
	d := newDesk(t, brisk)
	told := "**sda** is full"
	m := d.ping(told)
	const outcome = "Snoozed until Tue 1 Dec 09:00 CET. Undo: nudge snooze <off>"
	receipt := d.judge(m.Channel+":"+m.TS, told, outcome)
	now, _ := d.server.Message(m.Channel, m.TS)
	_, menu := now.Menu("Snooze")
	said := "Snoozed until Tue 1 Dec 09:00 CET. Undo: nudge snooze &lt;off&gt; (<!date^1796040000^"
	if receipt != m.Channel+":"+m.TS || !strings.HasPrefix(now.Text, "*sda* is full\n"+said) || !strings.HasPrefix(now.Shown(), "*sda* is full\n"+said) || menu || len(now.Buttons()) > 0 {
		t.Errorf("the card has become %q, %q", now.Text, now.Shown())
	}
	d.judge(m.Channel+":"+m.TS, told, "Noted as useful.")
	if now, _ := d.server.Message(m.Channel, m.TS); !strings.HasPrefix(now.Shown(), "*sda* is full\nNoted as useful. (") {
		t.Errorf("another feedback makes it %q", now.Shown())
	}
	if n := len(d.server.ByBot(m.Channel)); n != 1 {
		t.Errorf("%d messages stand there", n)
	}
}

// TestAJudgedCardThatIsGone says what was changed as a message.
func TestAJudgedCardThatIsGone(t *testing.T) {
	d := newDesk(t, brisk)
	d.ping("sda is full")
	d.server.Fail("chat.update", slacktest.Fault{Error: "edit_window_closed"})
	d.judge("", "sda is full", "Noted as useful.") // found by its metadata
	d.judge("D0ANN:1.000000", "sda is full", "Less of this.")
	all := d.server.ByBot("D0ANN")
	if len(all) != 3 || !strings.HasPrefix(all[1].Text, "Noted as useful. (") || !strings.HasPrefix(all[2].Text, "Less of this. (") {
		t.Errorf("there stand %+v", all)
	}
}

// TestLongNotifyCards have their buttons under the last message, which is the one that is settled.
func TestLongNotifyCards(t *testing.T) {
	d := newDesk(t, brisk)
	for _, size := range []int{2900, 3100, 3990, 5000, 11_000} {
		before := len(d.server.ByBot("D0ANN"))
		told := "```\n" + strings.Repeat("a & b\n", size/6) + "```"
		m := d.ping(told)
		all := d.server.ByBot("D0ANN")[before:]
		if last := all[len(all)-1]; last.TS != m.TS || len(m.Buttons()) != 2 {
			t.Errorf("of %d messages for %d characters the buttons do not stand under the last", len(all), size)
		}
		lines := 0
		for i, one := range all {
			lines += strings.Count(one.Text, "a &amp; b")
			if i < len(all)-1 && len(one.Blocks) > 0 {
				t.Errorf("message %d of %d has blocks", i+1, len(all))
			}
		}
		if lines != size/6 || strings.Count(m.Shown(), "a &amp; b") != strings.Count(m.Text, "a &amp; b") {
			t.Errorf("of %d lines %d are told", size/6, lines)
		}
		d.judge(m.Channel+":"+m.TS, told, "Noted as useful.")
		now, _ := d.server.Message(m.Channel, m.TS)
		if strings.Count(now.Shown(), "a &amp; b") != strings.Count(m.Shown(), "a &amp; b") || !strings.Contains(now.Shown(), "Noted as useful.") || !strings.Contains(now.Text, "Noted as useful.") {
			t.Errorf("the settled card says %d of %d lines", strings.Count(now.Shown(), "a &amp; b"), strings.Count(m.Shown(), "a &amp; b"))
		}
	}
	for _, c := range d.server.Calls("") {
		if c.Error != "" {
			t.Errorf("slack refuses %s: %s", c.Method, c.Error)
		}
	}
}

func TestANotifyWhoseBlocksAreRefusedIsText(t *testing.T) {
	d := newDesk(t, brisk)
	d.server.Fail("chat.postMessage", slacktest.Fault{Error: "invalid_blocks"})
	if m := d.ping("sda is full"); m.Text != "sda is full" || len(m.Blocks) > 0 {
		t.Errorf("it stands there as %+v", m)
	}
	// Of an older version there are notices without a card.
	d.tell("old", agent.Reply{Kind: agent.Notify, Heartbeat: "disk", Text: "of before", Address: annsDM})
	if all := d.server.ByBot("D0ANN"); len(all) != 2 || all[1].Text != "of before" || len(all[1].Blocks) > 0 {
		t.Errorf("there stand %+v", all)
	}
}

func TestANotifyWhoseAnswerWasLostStandsThereOnce(t *testing.T) {
	d := newDesk(t, brisk)
	d.server.Fail("chat.postMessage", slacktest.Fault{Status: 502, Done: true})
	r := agent.Reply{Kind: agent.Notify, ID: "n00c0ffee", Heartbeat: "disk", Text: "sda is full", Address: annsDM}
	delivery := bot.Delivery{Reply: r, Key: "k"}
	if _, err := d.slack.Say(t.Context(), delivery); err == nil {
		t.Fatal("a lost answer is no error")
	}
	delivery.Doubtful = time.Now()
	receipt, err := d.slack.Say(t.Context(), delivery)
	all := d.server.ByBot("D0ANN")
	if err != nil || len(all) != 1 || receipt != "D0ANN:"+all[0].TS {
		t.Errorf("it stands there %d times, as %q: %v", len(all), receipt, err)
	}
}
