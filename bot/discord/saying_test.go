package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/discordtest"
)

var home = agent.PersonID("discord:" + ann).Home()

func reply(kind agent.Kind, address, text string) bot.Delivery {
	return bot.Delivery{Reply: agent.Reply{Kind: kind, Text: text, Address: address}, Key: "parcel-" + text[:min(len(text), 20)]}
}

func (h *hearing) say(d bot.Delivery) (string, error) {
	h.Helper()
	return h.discord.Say(context.Background(), d)
}

func (h *hearing) said(d bot.Delivery) string {
	h.Helper()
	receipt, err := h.say(d)
	if err != nil {
		h.Fatal(err)
	}
	return receipt
}

func texts(messages []discordtest.Message) (texts []string) {
	for _, m := range messages {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestLongTexts has texts that do not fit a message.
func TestLongTexts(t *testing.T) {
	family, marks := "👩‍👩‍👧", "e\u0301"
	code := "Look:\n```go\n" + strings.Repeat("x := 1 // a line of code\n", 180) + "```\nDone."
	for name, c := range map[string]struct {
		text  string
		parts int
	}{
		"one too many":   {strings.Repeat("a", 2001), 2},
		"as many as fit": {strings.Repeat("a", 2000), 1},
		"emoji":          {strings.Repeat(family, 500), 2},
		"marks":          {strings.Repeat(marks, 1500), 2},
		"code":           {code, 3},
		"one line":       {strings.Repeat("word ", 2000), 5},
	} {
		t.Run(name, func(t *testing.T) {
			h := listen(t, discordtest.Options{}, brisk)
			h.said(reply(agent.Final, home, c.text))
			said := h.server.ByBot(discordtest.DM(ann))
			if len(said) != c.parts {
				t.Errorf("there are %d messages, want %d", len(said), c.parts)
			}
			all := ""
			for i, m := range said {
				if n := utf8.RuneCountInString(m.Text); n > textLimit || n == 0 {
					t.Errorf("message %d has %d characters", i, n)
				}
				if n := strings.Count(m.Text, fence); n%2 != 0 {
					t.Errorf("message %d has %d fences", i, n)
				}
				if name == "code" && i > 0 && !strings.HasPrefix(m.Text, "```go\n") {
					t.Errorf("message %d begins with %.20q", i, m.Text)
				}
				if name == "emoji" && strings.Count(m.Text, family)*utf8.RuneCountInString(family) != utf8.RuneCountInString(m.Text) {
					t.Errorf("message %d has half a family", i)
				}
				if name == "marks" && strings.HasPrefix(m.Text, "\u0301") {
					t.Errorf("message %d begins with half a letter", i)
				}
				all += m.Text
			}
			letters := func(text string) string {
				return strings.Join(strings.Fields(strings.ReplaceAll(strings.ReplaceAll(text, "```go", ""), fence, "")), "")
			}
			if letters(all) != letters(c.text) {
				t.Error("something is missing, or there is too much")
			}
		})
	}
}

// TestNothingIsSaidOfNothing has texts in which nothing is seen.
func TestNothingIsSaidOfNothing(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk)
	for _, text := range []string{"", " \n ", "```\n```", "\u200b"} {
		h.said(reply(agent.Final, home, text))
	}
	if calls := h.server.Calls("message.create"); len(calls) > 0 {
		t.Errorf("%s was said", calls[0].Body)
	}
}

// TestNobodyIsNotified has a model name everybody, in all that is said.
func TestNobodyIsNotified(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	const loud = "@everyone @here <@101> <@&2>"
	until := time.Now().Add(time.Hour)
	h.said(reply(agent.Final, home, loud))
	h.said(reply(agent.Notice, home, loud))
	h.said(reply(agent.Notify, home, loud))
	card := reply(agent.Approval, home, loud)
	card.ID, card.Tool, card.Arguments, card.Always, card.Expires = "card", loud, json.RawMessage(`{"path":"@everyone <@101>"}`), &until, &until
	receipt := h.said(card)
	ask := reply(agent.Ask, home, loud)
	ask.ID, ask.Choices = "ask", []string{loud, "b"}
	h.said(ask)
	progress := reply(agent.Progress, home, loud)
	progress.Key, progress.Turn = "", "t1"
	h.said(progress)
	at, _ := parseMessage(receipt)
	click, _ := h.server.Click(ann, at.channel, at.id, customID(actionDeny, "card"))
	h.await("a form is there", func() bool { _, open := h.server.Form(click); return open })
	form, _ := h.server.Form(click)
	h.ear.objects = loud
	h.server.Submit(ann, form, at.channel, at.id, map[string]string{formInput: loud})
	h.await("the objection is told", func() bool { return len(h.server.Calls("followup.create")) > 0 })
	settle := reply(agent.DecidedMark, home, "")
	settle.ID, settle.Decision, settle.By, settle.Tool, settle.Earlier = "card", agent.Deny, "discord:"+ann, loud, receipt
	settle.Text = loud
	h.said(settle)
	h.await("progress is there", func() bool { return len(h.server.Calls("message.create")) >= 6 })
	for _, route := range []string{"message.create", "message.edit", "followup.create", "followup.edit"} {
		for _, c := range h.server.Calls(route) {
			var body struct {
				Mentions map[string]json.RawMessage `json:"allowed_mentions"`
			}
			if err := json.Unmarshal(c.Body, &body); err != nil || string(body.Mentions["parse"]) != "[]" || len(body.Mentions["users"]) > 0 {
				t.Errorf("%s: %s may notify somebody", route, c.Body)
			}
		}
	}
	for _, m := range h.server.ByBot(discordtest.DM(ann)) {
		if len(m.Mentions) > 0 {
			t.Errorf("%q notifies %q", m.Text, m.Mentions)
		}
	}
}

// TestLostAnswers loses answers of all kinds: each part stands there once, in order.
func TestLostAnswers(t *testing.T) {
	text := strings.Repeat("1", 1990) + "\n" + strings.Repeat("2", 1990) + "\n" + strings.Repeat("3", 1990)
	for name, fault := range map[string]discordtest.Fault{
		"502":    {Status: 502, Done: true},
		"503":    {Status: 503, Done: true},
		"cut":    {Cut: true, Done: true},
		"undone": {Cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := listen(t, discordtest.Options{}, brisk)
			h.server.Fail("message.create", discordtest.Fault{}, fault)
			d := reply(agent.Final, home, text)
			_, err := h.say(d)
			for tries := 0; err != nil && tries < 5; tries++ {
				var send *bot.SendError
				if !errors.As(err, &send) || !send.Unsure || send.Gone {
					t.Fatalf("the error is %v", err)
				}
				_, err = h.say(d)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(texts(h.server.ByBot(discordtest.DM(ann))), "\n"); got != text {
				t.Errorf("%d characters stand there, want %d", len(got), len(text))
			}
		})
	}
}

// TestDoubtAfterARestart has another process not know what became of a reply, soon after that and long after.
func TestDoubtAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		age   time.Duration
		nonce time.Duration // for how long Discord knows one
	}{
		"soon":       {time.Second, time.Hour},
		"long after": {time.Hour, time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			h := listen(t, discordtest.Options{Nonce: c.nonce}, brisk).begin()
			d := reply(agent.Final, home, "it is done")
			h.said(d)
			h.discord.ledger = bot.Ledger[string]{} // as in another process
			d.Doubtful = time.Now().Add(-c.age)
			h.said(d)
			other := reply(agent.Final, home, "it was not said")
			other.Doubtful = d.Doubtful
			h.said(other)
			if got := texts(h.server.ByBot(discordtest.DM(ann))); len(got) != 2 {
				t.Errorf("there stands %q", got)
			}
		})
	}
	t.Run("it may not look", func(t *testing.T) {
		h := listen(t, discordtest.Options{}, brisk).begin()
		h.server.Fail("message.list", discordtest.Fault{Status: 403, Code: codeMissing})
		d := reply(agent.Final, home, "it is done")
		d.Doubtful = time.Now().Add(-time.Hour)
		_, err := h.say(d)
		var send *bot.SendError
		if !errors.As(err, &send) || !send.Blind {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestWhoTakesNoMessages has people whose direct messages are shut: they are tried once, until they write.
func TestWhoTakesNoMessages(t *testing.T) {
	for _, code := range []int{codeCannotTell, codeNoGuild} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			h := listen(t, discordtest.Options{}, brisk).begin()
			h.server.ShutDM(ann, code)
			for range 3 {
				_, err := h.say(reply(agent.Notify, home, "the disk is full"))
				var send *bot.SendError
				if !errors.As(err, &send) || !send.Gone || !send.Left {
					t.Fatalf("the error is %v", err)
				}
			}
			if n := len(h.server.Calls("message.create")); n != 1 {
				t.Errorf("it was tried %d times", n)
			}
			h.server.ShutDM(ann, 0)
			dm(h, "hello")
			h.hears("hello")
			h.said(reply(agent.Notify, home, "the disk is full"))
		})
	}
}

// TestWhoOpensMeanwhile has somebody open their direct messages and write while the answer that they are shut is on its way.
func TestWhoOpensMeanwhile(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	answer, tried := make(chan struct{}), make(chan error)
	h.server.Fail("message.create", discordtest.Fault{Status: 403, Code: codeCannotTell, Until: answer})
	go func() {
		_, err := h.say(reply(agent.Notify, home, "the disk is full"))
		tried <- err
	}()
	h.await("it is tried", func() bool { return len(h.server.Calls("message.create")) == 1 })
	dm(h, "hello")
	h.hears("hello")
	close(answer)
	var send *bot.SendError
	if err := <-tried; !errors.As(err, &send) || !send.Left {
		t.Errorf("the error is %v", err)
	}
	h.said(reply(agent.Notify, home, "the disk is full"))
}

// TestThreads has threads that are there already, archived, locked, or not allowed.
func TestThreads(t *testing.T) {
	begin := func(t *testing.T) (h *hearing, address, thread string) {
		h = listen(t, discordtest.Options{}, brisk).begin()
		thread, _ = h.server.Say(ann, shared, "<@"+discordtest.Bot+"> look at this. And more")
		h.hears("look at this. And more")
		return h, place{guild: discordtest.Guild, channel: shared, thread: thread}.String(), thread
	}
	stand := func(t *testing.T, h *hearing, in string, want ...string) {
		t.Helper()
		if got := texts(h.server.ByBot(in)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("in %s stands %q, want %q", in, got, want)
		}
	}
	t.Run("begun once", func(t *testing.T) {
		h, address, thread := begin(t)
		h.said(reply(agent.Final, address, "one"))
		h.await("discord has told of the thread", func() bool { _, told := h.discord.rooms.known.Get(thread); return told })
		h.discord.rooms.begun.Take(thread) // as in another process
		h.said(reply(agent.Final, address, "two"))
		stand(t, h, thread, "one", "two")
		stand(t, h, shared)
		if calls := h.server.Calls("thread.create"); len(calls) != 2 || calls[1].Code != codeHasThread {
			t.Errorf("it was begun with %+v", calls)
		}
		if !strings.Contains(string(h.server.Calls("thread.create")[0].Body), `"look at this"`) {
			t.Errorf("it is called %s", h.server.Calls("thread.create")[0].Body)
		}
	})
	t.Run("archived", func(t *testing.T) {
		h, address, thread := begin(t)
		card := reply(agent.Ask, address, "which?")
		card.ID, card.Choices = "ask", []string{"a"}
		receipt := h.said(card)
		h.server.Archive(thread, false)
		settle := reply(agent.DecidedMark, address, "")
		settle.ID, settle.Decision, settle.By, settle.Earlier = "ask", agent.AnswerIt, "discord:"+ann, receipt
		h.said(settle)
		if h.server.Archived(thread) || len(h.server.ByBot(thread)) != 2 {
			t.Errorf("in the archived thread stands %q", texts(h.server.ByBot(thread)))
		}
	})
	t.Run("locked", func(t *testing.T) {
		h, address, thread := begin(t)
		h.said(reply(agent.Final, address, "one"))
		h.server.Archive(thread, true)
		h.said(reply(agent.Final, address, "two"))
		stand(t, h, thread, "one")
		stand(t, h, shared, "two")
		if m := h.server.ByBot(shared)[0]; m.RefersTo != thread {
			t.Errorf("it answers %q", m.RefersTo)
		}
	})
	t.Run("not allowed", func(t *testing.T) {
		h := listen(t, discordtest.Options{}, brisk).begin()
		h.server.Fail("thread.create", discordtest.Fault{Status: 403, Code: codeMissing})
		message, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
		h.said(reply(agent.Final, place{guild: discordtest.Guild, channel: shared, thread: message}.String(), "one"))
		stand(t, h, shared, "one")
	})
}

// TestNoticesAreNoMarkup has what people read of texts that are no Markdown.
func TestNoticesAreNoMarkup(t *testing.T) {
	for _, text := range []string{
		"a_b_c *bold* **more** ~~gone~~ ||hidden|| `code` ```fence```", "# no heading\n> no quote\n- no list\n1. no number", "[label](https://evil.example)",
		"<@101> <#5> <:a:1> :smile: @everyone", `back\slash \\ two`, "1. one\n23. two\n2024.", "https://example.org/a_b_c",
	} {
		out := strings.Join(messages(verbatim(text)), "\n")
		if got := discordtest.Read(out); got != text {
			t.Errorf("%q is read as %q", text, got)
		}
		for _, mark := range []string{"**more", "||hidden", "[label](", "<@101>"} {
			if strings.Contains(strings.ReplaceAll(out, `\`+mark[:1], ""), mark) {
				t.Errorf("%q is markup in %q", mark, out)
			}
		}
	}
}

// TestVeryLongTexts says one as a file, and in messages where no file is taken.
func TestVeryLongTexts(t *testing.T) {
	text := strings.Repeat("a line of words\n", 1000)
	h := listen(t, discordtest.Options{}, brisk)
	d := reply(agent.Final, home, text)
	d.Key = "one"
	h.said(d)
	h.said(d) // a repeat
	said := h.server.ByBot(discordtest.DM(ann))
	if len(said) != 1 || len(said[0].Files) != 1 || said[0].Files[0].Content != text || !strings.Contains(discordtest.Read(said[0].Text), said[0].Files[0].Name) {
		t.Errorf("there stands %q", texts(said))
	}
	h.server.Fail("message.create", discordtest.Fault{Status: 403, Code: codeMissing})
	d.Key = "two"
	h.said(d)
	if n := len(h.server.ByBot(discordtest.DM(ann))); n != 1+8 {
		t.Errorf("there stand %d messages", n)
	}
}

// TestPartsAreWhole draws texts: their parts are the text again, and each of them stands by itself.
func TestPartsAreWhole(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"```zz\n", "```\n", "```", "`x`", "\n\n", "\n", " ", "**bold** ", "👩‍👩‍👧", "e\u0301", "- item\n", "> quote\n"}),
		rapid.StringMatching(`[a-y]{1,40}`), rapid.StringMatching(`([a-y]{1,9} ){20,90}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 120).Draw(t, "pieces"), "")
		letters := func(text string) string {
			return strings.Join(strings.Fields(strings.NewReplacer("`", "", "zz", "").Replace(text)), "")
		}
		parts := messages(rendered(text))
		for _, part := range parts {
			if n := utf8.RuneCountInString(part); n > textLimit || strings.Count(part, fence)%2 != 0 && strings.Count(text, fence)%2 == 0 {
				t.Fatalf("a part has %d characters and %d fences: %q", n, strings.Count(part, fence), part)
			}
		}
		if got := strings.Join(parts, "\n"); letters(got) != letters(text) {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}
