package slack

import (
	"fmt"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/bot/bottest/slacktest"
)

// tellAll tells an answer and gives the messages that it became.
func (d *desk) tellAll(key, text, address string) []slacktest.Message {
	d.Helper()
	p, _ := parsePlace(address)
	channel := p.channel
	if p.user != "" {
		channel = slacktest.DM(p.user)
	}
	before, calls := len(d.server.ByBot(channel)), len(d.server.Calls("chat.postMessage"))
	d.tell(key, agent.Reply{Kind: agent.Final, Text: text, Address: address})
	said := d.server.ByBot(channel)[before:]
	if posted := len(d.server.Calls("chat.postMessage")) - calls; posted > len(said) {
		d.Errorf("%d posts became %d messages", posted, len(said))
	}
	for _, m := range said {
		if fault := harmless(m.Text); fault != "" || length(m.Text) > textLimit {
			d.Errorf("%s in a message of %d characters:\n%s", fault, length(m.Text), m.Text)
		}
	}
	return said
}

// TestRenderingOnTheWire says what the renderer is tested with.
func TestRenderingOnTheWire(t *testing.T) {
	d := newDesk(t, brisk)
	for i, c := range rendering {
		said := d.tellAll(fmt.Sprint("k", i), c.in, annsDM)
		if len(said) != 1 && tells(c.want) || len(said) > 0 && said[0].Text != c.want {
			t.Errorf("%q became %+v, want %q", c.in, said, c.want)
		}
	}
}

// TestHarmOnTheWire says what would notify people, or lie about where a link leads, in all kinds of words.
func TestHarmOnTheWire(t *testing.T) {
	d := newDesk(t, brisk)
	address, _ := d.thread()
	evil := "<!channel> <!here> <!everyone> <@U123> <#C1> <!subteam^S1> <https://evil.example|bank.example> & <b>"
	for i, wrap := range []string{
		"%s", "`%s`", "```\n%s\n```", "**%s**", "> %s", "- %s", "# %s", "| a |\n|---|\n| %s |", "[%s](https://x.example)", "![%s](https://x.example)",
		"~~~html\n%s", "    %s", "\\%s", "&lt;%s&gt;", "[x](%s)", "<%s>", "[x]: %s\n\n[x]",
	} {
		text := strings.Replace(wrap, "%s", evil, 1)
		for _, kind := range []agent.Kind{agent.Final, agent.Notify, agent.Notice} {
			d.tell(fmt.Sprint("k", i, kind), agent.Reply{Kind: kind, Text: text, Address: address})
		}
	}
	said := d.server.ByBot(shared)
	for _, m := range said {
		if r := slacktest.Read(m.Text); len(r.Calls) > 0 || r.Fault != "" || !strings.Contains(r.Shown, "channel") {
			t.Errorf("%+v in %q", r, m.Text)
		}
		if fault := harmless(m.Text); fault != "" {
			t.Errorf("%s in %q", fault, m.Text)
		}
	}
	if len(said) < 40 {
		t.Errorf("only %d messages", len(said))
	}
	for _, c := range d.server.Calls("chat.postMessage") {
		if c.Form.Get("unfurl_links") != "false" || c.Form.Get("unfurl_media") != "false" {
			t.Errorf("posted with %v", c.Form)
		}
	}
}

func TestLongTextOnTheWire(t *testing.T) {
	d := newDesk(t, brisk)
	code := strings.Repeat("x := a[i] & 1 // the same again\n", 25)
	family := "👩‍👩‍👧"
	for i, c := range []struct {
		name, text string
		messages   int
		check      func(t *testing.T, said []slacktest.Message)
	}{
		{"a fence across the end", strings.TrimSpace(strings.Repeat("Some words. ", 310)) + "\n\n```go\n" + code + "```\nThe end.", 2,
			func(t *testing.T, said []slacktest.Message) {
				if !strings.HasSuffix(said[0].Text, "\n```") || !strings.HasPrefix(said[1].Text, "```\nx := a[i] &amp; 1") || !strings.HasSuffix(said[1].Text, "\n```\nThe end.") {
					t.Errorf("the fence is %q … %q", said[0].Text[len(said[0].Text)-60:], said[1].Text)
				}
				read := slacktest.Read(said[0].Text + said[1].Text)
				if got := strings.Join(read.Code, "\n"); got != strings.TrimSpace(code) {
					t.Errorf("the code is %q", got)
				}
			}},
		{"one long line", strings.Repeat("x", 10_000), 3, nil},
		{"entities", strings.Repeat("&", 2000), 3, nil},
		{"characters of many parts", strings.Repeat(family, 1200), 3,
			func(t *testing.T, said []slacktest.Message) {
				for _, m := range said {
					if strings.ReplaceAll(m.Text, family, "") != "" {
						t.Error("a family is torn apart")
					}
				}
			}},
		{"paragraphs", strings.TrimSpace(strings.Repeat("A paragraph of some words & more, of which each has two sentences. This is the other.\n\n", 70)), 2,
			func(t *testing.T, said []slacktest.Message) {
				for _, m := range said {
					if !strings.HasPrefix(m.Text, "A paragraph") || !strings.HasSuffix(m.Text, "other.") {
						t.Errorf("a paragraph is cut: %q", m.Text)
					}
				}
			}},
		{"a table", "Names:\n\n| Name | Number |\n|---|---|\n" + strings.Repeat("| Ann & Bob | 12 |\n", 300), 2,
			func(t *testing.T, said []slacktest.Message) {
				for _, m := range said {
					head := "```\nName      | Number\n----------|-------\nAnn &amp; Bob | 12"
					if !strings.Contains(m.Text, head) || !strings.HasSuffix(m.Text, "12\n```") {
						t.Errorf("a message begins %.80q", m.Text)
					}
				}
			}},
		{"emphasis", "**" + strings.TrimSpace(strings.Repeat("bold words ", 500)) + "**", 2,
			func(t *testing.T, said []slacktest.Message) {
				for _, m := range said {
					if !strings.HasPrefix(m.Text, "*") || !strings.HasSuffix(m.Text, "*") || strings.Contains(m.Text, "**") {
						t.Errorf("a message is %.20q … %q", m.Text, m.Text[len(m.Text)-20:])
					}
				}
			}},
		{"a link at the end", strings.Repeat("x", 3980) + " [a label of some words](https://example.org/path?a=1&b=2) and more", 2,
			func(t *testing.T, said []slacktest.Message) {
				if !strings.HasPrefix(said[1].Text, "<https://example.org/path?a=1&amp;b=2|a label of some words> and") {
					t.Errorf("the link is cut: %q", said[1].Text)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := d.tellAll(fmt.Sprint("k", i), c.text, annsDM)
			if len(said) != c.messages {
				t.Fatalf("%d messages, want %d", len(said), c.messages)
			}
			if c.check != nil {
				c.check(t, said)
				return
			}
			joined := ""
			for _, m := range said {
				joined += slacktest.Read(m.Text).Shown
			}
			if joined != c.text {
				t.Errorf("the messages say %d characters of %d", len(joined), len(c.text))
			}
		})
	}
}

// TestTheBeginningOfAFile looks at what is shown of an answer that is too long for messages.
func TestTheBeginningOfAFile(t *testing.T) {
	d := newDesk(t, brisk)
	for i, c := range []struct{ name, text, begin, end string }{
		{"paragraphs", strings.Repeat("A paragraph of some words. It has two sentences.\n\n", 400), "A paragraph", "sentences."},
		{"code", "Look:\n\n```go\n" + strings.Repeat("x := 1 // a < b\n", 1500) + "```\n", "Look:\n\n```\nx := 1 // a &lt; b\n", "// a &lt; b\n```"},
		{"a table", "| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", 2000), "```\na | b\n--|--\n1 | 2\n", "1 | 2\n```"},
		{"bold", "**" + strings.Repeat("words and ", 1300) + "end**", "*words", "*"},
		{"a list", strings.Repeat("- an item **in bold**\n", 1000), "• an item *in bold*\n• ", "*in bold*"},
	} {
		said := d.tellAll(fmt.Sprint("k", i), c.text, annsDM)
		if len(said) != 2 || len(said[0].Files) != 1 || d.server.File(said[0].Files[0].Name) != c.text {
			t.Fatalf("%s: became %+v", c.name, said)
		}
		shown, note, _ := strings.Cut(said[1].Text, "\n\n… This is the beginning.")
		if !strings.HasPrefix(shown, c.begin) || !strings.HasSuffix(shown, c.end) || !strings.Contains(note, said[0].Files[0].Name) {
			t.Errorf("%s: shown is %.40q … %q", c.name, shown, shown[max(0, len(shown)-40):])
		}
		if n := length(shown); n < 700 || n > excerptLimit {
			t.Errorf("%s: %d characters are shown", c.name, n)
		}
	}
}

// TestWhatAFileHolds has an answer in parts told by its headings and its last words, under its beginning.
func TestWhatAFileHolds(t *testing.T) {
	d := newDesk(t, brisk)
	part := strings.Repeat("A paragraph of some words. It has two sentences.\n\n", 150)
	text := "Intro.\n\n## Costs & rent\n\n" + part + "## *Staff* <!channel>\n\n" + part + "In short, all is well.\n"
	said := d.tellAll("k", text, annsDM)
	if len(said) != 2 || len(said[0].Files) != 1 {
		t.Fatalf("became %+v", said)
	}
	_, told, _ := strings.Cut(said[1].Text, said[0].Files[0].Name+" above.")
	if want := "\n\nWhat it holds:\n\n• Costs &amp; rent\n• _Staff_ &lt;!channel&gt;\n\nIt ends: In short, all is well."; told != want {
		t.Errorf("under the beginning stands %q, want %q", told, want)
	}
	if n := length(said[1].Text); n > textLimit {
		t.Errorf("the message has %d characters", n)
	}
}

// TestHearing says to the bot what Slack's clients send, over the wire.
func TestHearing(t *testing.T) {
	d := newDesk(t, brisk)
	d.server.AddUser(slacktest.User{ID: "U0BO2", Name: "Bob"})
	for _, c := range heard {
		d.say(slacktest.Said{Text: c.in})
	}
	texts := d.in.texts()
	for i, c := range heard {
		if texts[i] != c.want {
			t.Errorf("%q is heard as %q, want %q", c.in, texts[i], c.want)
		}
	}
}

// heard is what Slack sends, and what was said.
var heard = []struct{ in, want string }{
	{"&lt;div&gt; &amp; <https://example.org|example.org> <@U0ALICE|alice>", "<div> & https://example.org @alice"},
	{"<@U0BOT> do *this* and _that_ ~not~ :tada:", "do *this* and _that_ ~not~ :tada:"},
	{"ask <@U0BOB> and <@U0BOB> and <@U0BO2>", "ask @Bob and @Bob and @Bob (U0BO2)"},
	{"ask <@U0GONE>", "ask @U0GONE"},
	{"<#C0TEAM|team> <#C9> <!here> <!here|here> <!subteam^S1|@team> <!subteam^S2>", "#team #C9 @here @here @team @S2"},
	{"<!date^1700000000^{date}|then> <!date^1700000000^{date}>", "then 2023-11-14 22:13 UTC"},
	{"```\n&lt;a href=\"<https://x.example/?a=1&amp;b=2>\"&gt; <http://x.example|x.example>\n```", "```\n<a href=\"https://x.example/?a=1&b=2\"> x.example\n```"},
	{"run `curl <http://x.example|x.example> &amp;&amp; ls`, see <http://x.example|x.example>", "run `curl x.example && ls`, see http://x.example"},
	{"<https://x.example|the docs &amp; more> <tel:+4930123|+4930123>", "the docs & more (https://x.example) +4930123"},
	{"&amp;lt; &amp;amp; &lt;!channel&gt; &lt;@U0BOB&gt;", "&lt; &amp; <!channel> <@U0BOB>"},
	{"1. a\n    ◦ b\n&gt; quoted", "1. a\n    ◦ b\n> quoted"},
}
