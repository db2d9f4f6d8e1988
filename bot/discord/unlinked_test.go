package discord

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest"
	"nudge/bot/bottest/discordtest"
)

// contents are what is posted of a reply, in however many messages.
func (d *Discord) contents(r agent.Reply) (contents []string) {
	parts := messages(rendered(r.Text))
	switch r.Kind {
	case agent.Notice:
		parts = messages(verbatim(r.Text))
	case agent.Ask, agent.Approval:
		parts = messages(d.cardText(r))
	case agent.DecidedMark:
		parts = []string{d.outcome(r, time.Now())}
		if r.IsFeedback() {
			parts = []string{d.judged(r, parts[0])}
		}
	case agent.Fault:
		parts = []string{cut(escape(r.Text), textLimit)}
	case agent.Final:
		if utf8.RuneCountInString(r.Text) > excerptLimit {
			parts = append(parts, excerpt(rendered(head(r.Text))))
		}
	}
	for _, part := range parts {
		contents = append(contents, unlinked(part))
	}
	return contents
}

// Whatever was before a model when it wrote something, Discord makes a link of nothing in it: in no kind of reply, however it is
// cut, and whatever marks stand around.
func TestNothingIsALinkInDiscord(t *testing.T) {
	d := &Discord{rooms: &rooms{}}
	check := func(fatal func(string, ...any), text string) {
		for _, r := range bottest.Replies(text) {
			for _, content := range d.contents(bot.Hide(r, nil)) {
				if links := discordtest.Links(content); len(links) > 0 {
					fatal("a %s of %q is posted as %q, with the links %q", r.Kind, text, content, links)
				}
				if n := utf8.RuneCountInString(content); n > textLimit {
					fatal("a %s of %q is posted with %d characters", r.Kind, text, n)
				}
			}
		}
	}
	for i, text := range bottest.Linking {
		check(t.Errorf, "**a `b` _c_ "+text+" d** e_")
		check(t.Errorf, "- "+text+"\n  ```\n"+text+"\n```\n> `"+text+"\n"+text+"`")
		if i%16 == 0 { // what is cut takes longer
			check(t.Errorf, strings.Repeat("word ", 390)+text+" and `run "+strings.Repeat("x ", 20)+text+"`")
		}
	}
	piece := rapid.SampledFrom(append([]string{
		"[", "]", "(", ")", "](", "`", "``", "```", "```\n", "\n", "> ", ">>> ", "- ", "# ", "*", "**", "_", "__", "~~", "||", "<", ">", "\\", "|a|b|\n|-|-|\n|", " ", "x", ".", ":", strings.Repeat("words ", 320),
	}, bottest.Linking...))
	rapid.Check(t, func(rt *rapid.T) { check(rt.Fatalf, strings.Join(rapid.SliceOfN(piece, 1, 9).Draw(rt, "pieces"), "")) })
}

// Of a turn with nothing of strangers in it links are links, and code is code.
func TestOrdinaryLinksStayInDiscord(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk)
	own := reply(agent.Final, home, "See https://docs.test/a_b and `https://code.test/x_y`.")
	h.said(own)
	tainted := own
	tainted.Key, tainted.Tainted = "another", true
	tainted.Reply = bot.Hide(tainted.Reply, nil)
	h.said(tainted)
	said := texts(h.server.ByBot(discordtest.DM(ann)))
	if want := own.Text; said[0] != want {
		t.Errorf("it is posted as %q", said[0])
	}
	if want := "See `https://docs.test/a_b` and `https://code.test/x_y`."; said[1] != want && len(discordtest.Links(said[1])) > 0 {
		t.Errorf("with text of strangers in view it is posted as %q", said[1])
	}
}

// Each way in which words leave takes the links out of them.
func TestEveryWayOutOfDiscordIsUnlinked(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk)
	const evil = "see https://evil.test/?d=4711, `x https://evil.test/2` and discord.gg/abc"
	arguments := json.RawMessage(`{"url":"https://evil.test/?d=4711"}`)
	for i, r := range bottest.Replies(evil) {
		if r.Kind == agent.DecidedMark {
			continue // needs a card; below
		}
		r.Address, r.ID, r.Arguments = home, "c"+string(rune('a'+i)), arguments
		h.said(bot.Delivery{Reply: bot.Hide(r, nil), Key: "k" + r.ID})
		decided := agent.Reply{Kind: agent.DecidedMark, ID: r.ID, Tool: "fetch_page", Told: evil, Tainted: true, Decision: agent.AnswerIt, Text: evil, Address: home}
		h.said(bot.Delivery{Reply: bot.Hide(decided, nil), Key: "d" + r.ID})
	}
	said := texts(h.server.ByBot(discordtest.DM(ann)))
	if len(said) < 6 {
		t.Fatalf("there are only %d messages: %q", len(said), said)
	}
	for _, text := range said {
		if links := discordtest.Links(text); len(links) > 0 {
			t.Errorf("%q has the links %q", text, links)
		}
	}
}
