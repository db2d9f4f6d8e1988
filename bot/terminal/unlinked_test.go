package terminal

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest"
)

// pressed finds what terminals make something to press of, whatever is written: addresses with a scheme, of mail, and those that
// begin with www or ftp, as VTE, kitty, WezTerm and Windows Terminal do.
var pressed = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+|\b(?:mailto|news|sips?|h323|magnet|tel):\S+|\b(?:www|ftp)[\w-]*\.[\w-]+\S*|[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b`)

// Whatever was before a model when it wrote something, a terminal makes a link of nothing in it, nor of what a card says.
func TestNothingIsALinkInATerminal(t *testing.T) {
	terminal := New(Config{Manner: Typed, Color: true})
	check := func(fatal func(string, ...any), text string) {
		for _, r := range bottest.Replies(text) {
			shown := terminal.render(unlinked(bot.Hide(r, nil)))
			if links := pressed.FindAllString(shown, -1); len(links) > 0 {
				fatal("a %s of %q is shown as %q, with the links %q", r.Kind, text, shown, links)
			}
		}
	}
	for _, text := range bottest.Linking {
		check(t.Errorf, text)
	}
	if t.Failed() {
		return
	}
	piece := rapid.SampledFrom(append([]string{"[", "](", ")", "`", "```\n", "\n", "*", "_", "<", ">", "|", "\\", " ", "x", ".", "/", ":", "@"}, bottest.Linking...))
	rapid.Check(t, func(rt *rapid.T) { check(rt.Fatalf, strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(rt, "pieces"), "")) })
}

// What is shown is still to be read, and what nothing of strangers was before is shown as it was written.
func TestWhatATerminalShowsOfAddresses(t *testing.T) {
	const text = "See https://docs.test/a.b?c=d.e, README.md and a@b.test"
	for _, c := range []struct {
		tainted bool
		want    string
	}{{false, text}, {true, "See `https[:]//docs[.]test/a.b?c=d.e`, `README.md` and `a[@]b[.]test`"}} {
		out := &strings.Builder{}
		terminal := New(Config{Manner: Typed, Out: out})
		if _, err := terminal.Say(t.Context(), bot.Delivery{Reply: bot.Hide(agent.Reply{Kind: agent.Final, Text: text, Tainted: c.tainted}, nil)}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); got != c.want {
			t.Errorf("tainted %t: %q", c.tainted, got)
		}
	}
	out := &strings.Builder{}
	scripts := New(Config{Manner: JSON, Out: out})
	if _, err := scripts.Say(t.Context(), bot.Delivery{Reply: bot.Hide(agent.Reply{Kind: agent.Final, Text: text, Tainted: true}, nil)}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "`https://docs.test/a.b?c=d.e`") || strings.Contains(got, "nlinked") {
		t.Errorf("for scripts it is %s", got)
	}
}
