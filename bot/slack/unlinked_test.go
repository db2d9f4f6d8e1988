package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest"
	"nudge/bot/bottest/slacktest"
)

// tellUnlinked says a text to a person who was told nothing yet, in all the ways of a turn with text of strangers in its view, has
// the cards decided, and returns what stood there before and after. Where much was said before, a card would have to be looked for
// in all of it.
func (d *desk) tellUnlinked(person, text string) (messages []slacktest.Message) {
	d.Helper()
	d.server.AddUser(slacktest.User{ID: person})
	stands := func() []slacktest.Message { return d.server.ByBot(slacktest.DM(person)) }
	address := "slack:T0TEST:dm:" + person
	for i, r := range bottest.Replies(text) {
		r.Address, r.ID = address, fmt.Sprintf("c%s-%d", person, i)
		receipt := d.tell("k"+r.ID, bot.Hide(r, nil))
		messages = append(messages, stands()...)
		if r.Kind == agent.DecidedMark || receipt == "" {
			continue
		}
		outcome := agent.Reply{Kind: agent.DecidedMark, ID: r.ID, Tool: "ask_person", Decision: agent.AnswerIt, Text: text, Told: text, Tainted: true, Address: address}
		if r.Heartbeat != "" {
			outcome.Heartbeat, outcome.Decision, outcome.Text = r.Heartbeat, "useful", "thanks"
		}
		if _, err := d.slack.Say(d.Context(), bot.Delivery{Reply: bot.Hide(outcome, nil), Key: "d" + r.ID, Earlier: receipt}); err != nil {
			d.Fatal(err)
		}
	}
	return append(messages, stands()...)
}

// Whatever was before a model when it wrote something, Slack makes a link of nothing in it: in no kind of reply and in no card,
// nor when that is decided.
func TestNothingIsALinkInSlack(t *testing.T) {
	var d *desk
	told := 0
	check := func(fatal func(string, ...any), text string) {
		told++
		for _, m := range d.tellUnlinked(fmt.Sprintf("U%04d", told), text) {
			if links := m.Links(); len(links) > 0 {
				fatal("%q stands there with the links %q: %q %s", text, links, m.Text, m.Shown())
			}
		}
	}
	unbounded := brisk
	unbounded.Minute = time.Nanosecond
	d = newDesk(t, unbounded)
	check(t.Errorf, strings.Join(bottest.Linking, " "))
	for _, text := range bottest.Linking {
		check(t.Errorf, text)
	}
	if t.Failed() {
		return
	}
	d = newDesk(t, unbounded)
	piece := rapid.SampledFrom(append([]string{"[", "](", ")", "`", "``", "```", "\n", "> ", "- ", "*", "**", "_", "~~", "<", ">", "|", "\\", "&lt;", " ", "x"}, bottest.Linking...))
	rapid.Check(t, func(rt *rapid.T) { check(rt.Fatalf, strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(rt, "pieces"), "")) })
}

// Of a turn with nothing of strangers in it links are links, also those that Slack finds by itself.
func TestOrdinaryLinksStayInSlack(t *testing.T) {
	d := newDesk(t, brisk)
	for i, text := range []string{"See https://docs.test/a_b.", "See [the page](https://docs.test/x)."} {
		d.tell(fmt.Sprint("k", i), bot.Hide(agent.Reply{Kind: agent.Final, Text: text, Address: annsDM}, nil))
	}
	d.tell("k2", bot.Hide(agent.Reply{Kind: agent.Notice, Text: "Look at https://docs.test.", Address: annsDM}, nil))
	said := d.server.ByBot(slacktest.DM("U0ANN"))
	for _, m := range said {
		if len(m.Links()) == 0 {
			t.Errorf("%q has no link any more", m.Text)
		}
	}
	if len(said) != 3 {
		t.Errorf("there are %d messages", len(said))
	}
}
