package discord

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/discordtest"
)

// asked posts a card, and gives where it stands.
func (h *hearing) asked(address string) message {
	h.Helper()
	card := reply(agent.Approval, address, "why")
	card.ID, card.Tool, card.Arguments, card.MayDecide = "card", "delete", []byte(`{"path":"a"}`), []string{"discord:" + ann}
	h.ear.mu.Lock()
	card.Always = h.ear.always
	h.ear.mu.Unlock()
	at, ok := parseMessage(h.said(card))
	if !ok {
		h.Fatal("the card stands nowhere")
	}
	return at
}

func (h *hearing) clicked(user string, at message, action string) (interaction string) {
	interaction, _ = h.server.Click(user, at.channel, at.id, customID(action, "card"))
	return interaction
}

func (h *hearing) answeredWith(interaction string, want int) {
	h.Helper()
	h.await("the interaction is answered", func() bool { typ, _ := h.server.Answered(interaction); return typ != 0 })
	if typ, took := h.server.Answered(interaction); typ != want || took > 3*time.Second {
		h.Errorf("it was answered with %d after %s, want %d", typ, took, want)
	}
}

// TestAnswersInTime lets the core be stuck while all kinds of things are pressed: each is answered in time, and taken later.
func TestAnswersInTime(t *testing.T) {
	timing := brisk
	timing.Answer = 50 * time.Millisecond
	h := listen(t, discordtest.Options{}, timing).begin()
	at := h.asked(home)
	h.ear.mu.Lock()
	held := make(chan struct{})
	h.ear.held = held
	h.ear.mu.Unlock()
	h.answeredWith(h.clicked(ann, at, actionApprove), answerTaken)
	h.answeredWith(h.clicked(ann, at, actionDeny), answerTaken) // the form cannot be opened any more
	slash, _ := h.server.Slash(ann, discordtest.DM(ann), "status")
	h.answeredWith(slash, answerThinking)
	h.await("the person is asked to press again", func() bool { return len(h.server.Calls("followup.create")) > 0 })
	close(held)
	h.await("two things are taken", func() bool { return len(h.ear.texts()) == 2 })
	h.ear.mu.Lock()
	h.ear.held = nil
	h.ear.mu.Unlock()
	deny := h.clicked(ann, at, actionDeny)
	h.answeredWith(deny, answerForm)
	form, _ := h.server.Form(deny)
	h.server.Submit(ann, form, at.channel, at.id, map[string]string{formInput: " not <that> "})
	h.await("the denial is taken", func() bool { c := h.ear.last().Click; return c != nil && c.Verdict == agent.Deny })
	if got := h.ear.last(); got.Click.Text != "not <that>" || got.Address != home || got.Click.Card != "card" || got.From.Locale != "de" {
		t.Errorf("the denial is %+v %+v", got, got.Click)
	}
}

// TestAnswersThatAreRefused has answers that are lost, come twice, or too late: the click counts once in each case.
func TestAnswersThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		faults []discordtest.Fault
		calls  int
	}{
		"lost on the way":  {[]discordtest.Fault{{Cut: true, Done: true}}, 2},
		"never came":       {[]discordtest.Fault{{Cut: true}}, 2},
		"answered already": {[]discordtest.Fault{{Status: 400, Code: codeAnswered}}, 1},
		"too late":         {[]discordtest.Fault{{Status: 404, Code: codeUnknownInteraction}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := listen(t, discordtest.Options{}, brisk).begin()
			at := h.asked(home)
			h.server.Fail("interaction.answer", c.faults...)
			h.clicked(ann, at, actionApprove)
			h.hears("")
			if n := len(h.server.Calls("interaction.answer")); n != c.calls {
				t.Errorf("it was answered %d times", n)
			}
			if c := h.ear.last().Click; c == nil || c.Verdict != agent.Approve {
				t.Errorf("taken was %+v", h.ear.last())
			}
		})
	}
}

// TestOutcomeOfALongTurn settles a card whose click is too old to be answered.
func TestOutcomeOfALongTurn(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	at := h.asked(home)
	click := h.clicked(ann, at, actionApprove)
	h.answeredWith(click, answerTaken)
	h.hears("")
	h.server.Expire(click)
	settle := reply(agent.DecidedMark, home, "")
	settle.ID, settle.Tool, settle.Decision, settle.By, settle.Earlier = "card", "delete", agent.Approve, "discord:"+ann, at.String()
	h.said(settle)
	h.said(reply(agent.Final, home, "it is gone"))
	said := h.server.ByBot(discordtest.DM(ann))
	if len(said) != 2 || len(said[0].Buttons()) != 0 || !strings.Contains(said[0].Text, "approved by <@"+ann+">") || !strings.Contains(said[0].Text, "<t:") || said[1].Text != "it is gone" {
		t.Errorf("there stands %q", texts(said))
	}
}

// TestOthersAreToldAlone refuses somebody in a shared place, where nobody else sees it, and in direct messages when that is too
// late.
func TestOthersAreToldAlone(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	thread, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
	h.hears("hi")
	address := place{guild: discordtest.Guild, channel: shared, thread: thread}.String()
	at := h.asked(address)
	click := h.clicked(bob, at, actionApprove)
	h.await("the click is taken", func() bool { return h.ear.last().Click != nil })
	if got := h.ear.last(); got.Address != address || got.From.ID != "discord:"+bob {
		t.Errorf("the click is %+v", got)
	}
	refusal := reply(agent.Fault, address, "not yours to decide")
	refusal.To = "discord:" + bob
	h.said(refusal)
	h.server.Expire(click)
	refusal.Key = "another"
	h.said(refusal)
	for _, in := range []string{thread, discordtest.DM(bob)} {
		said := h.server.ByBot(in)
		if last := said[len(said)-1]; last.Text != "not yours to decide" || in == thread && last.For != bob {
			t.Errorf("in %s stands %q", in, texts(said))
		}
	}
}

// TestFormsThatCannotBeTaken has an edit that is no JSON, and an answer without words.
func TestFormsThatCannotBeTaken(t *testing.T) {
	for action, entered := range map[string]string{actionEdit: "{", actionAnswer: "  "} {
		h := listen(t, discordtest.Options{}, brisk).begin()
		at := h.asked(home)
		if action == actionAnswer {
			card := reply(agent.Ask, home, "which?")
			card.ID = "card"
			at, _ = parseMessage(h.said(card))
		}
		click := h.clicked(ann, at, action)
		h.answeredWith(click, answerForm)
		form, _ := h.server.Form(click)
		h.server.Submit(ann, form, at.channel, at.id, map[string]string{formInput: entered})
		h.await("the fault is told", func() bool { return len(h.server.Calls("followup.create")) > 0 })
		if taken := h.ear.texts(); len(taken) > 0 {
			t.Errorf("it was taken")
		}
	}
}

// TestSlashCommand gives commands in direct messages, in a thread, and in a channel.
func TestSlashCommand(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	h.await("the command is known", func() bool { return len(h.server.Commands()) == 2 })
	thread, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
	h.hears("hi")
	h.await("the thread is there", func() bool { return h.server.Typed(thread) > 0 })
	for in, want := range map[string]string{
		discordtest.DM(ann): home, shared: home, thread: place{guild: discordtest.Guild, channel: shared, thread: thread}.String(),
	} {
		slash, _ := h.server.Slash(ann, in, "stop")
		h.answeredWith(slash, answerThinking)
		h.await("it is taken", func() bool {
			return h.ear.last().Text == "nudge stop" && h.ear.last().Keys[0] == "discord-interaction:"+slash
		})
		if got := h.ear.last().Address; got != want {
			t.Errorf("in %s it is for %s, want %s", in, got, want)
		}
	}
}

// TestRepeatedInteraction repeats one after the link was taken up.
func TestRepeatedInteraction(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	at := h.asked(home)
	_, event := h.server.Click(ann, at.channel, at.id, customID(actionApprove, "card"))
	h.hears("")
	h.server.Repeat(event)
	dm(h, "last")
	h.hears("", "last")
}

// TestOldStopButton presses Stop, which Discord tells twice, under a turn of an earlier process: the button goes.
func TestOldStopButton(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	h.said(bot.Delivery{Reply: agent.Reply{Kind: agent.Progress, Text: "half of it", Address: home, Turn: "t"}})
	h.await("progress is there", func() bool { return len(h.server.ByBot(discordtest.DM(ann))) == 1 })
	shown := h.server.ByBot(discordtest.DM(ann))[0]
	h.discord.progress.mu.Lock()
	b := h.discord.progress.turns[home]
	delete(h.discord.progress.turns, home) // as in another process
	h.discord.progress.mu.Unlock()
	b.end()
	_, event := h.server.Click(ann, shown.Channel, shown.ID, customID(actionStop, ""))
	h.server.Repeat(event)
	h.hears("")
	if !h.ear.last().Stop || h.ear.last().Address != home {
		t.Errorf("it is %+v", h.ear.last())
	}
	h.await("the button has gone", func() bool { return len(h.server.ByBot(discordtest.DM(ann))) == 0 })
}

// TestLeftOpenInDiscord leaves open a part of a call in the form, which says what that means and leaves nothing open at first.
func TestLeftOpenInDiscord(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	until := time.Now().Add(time.Hour)
	h.ear.mu.Lock()
	h.ear.always, h.ear.arguments = &until, `{"env":"staging","size":"`+strings.Repeat("x", 3900)+`","version":"v1"}`
	h.ear.open = []agent.Opening{{Name: "env", Within: "of staging, production"}, {Name: "version", Within: "that matches v[0-9]*```"}, {Name: "size", Within: "that matches " + strings.Repeat("*", 1100)}}
	h.ear.mu.Unlock()
	at := h.asked(home)
	form := func() discordtest.Form {
		t.Helper()
		click := h.clicked(ann, at, actionAlways)
		h.answeredWith(click, answerForm)
		f, _ := h.server.Form(click)
		return f
	}
	f := form()
	texts, length := "", 0
	for _, c := range f.Components {
		texts += c.Content
		length += len([]rune(c.Content))
	}
	menu := f.Input("Leave open")
	if menu.Type != typeMenu || menu.Required || menu.Least == nil || *menu.Least != 0 || menu.Most == nil || *menu.Most != 3 || menu.Holds() != "" || length > mostFormTexts {
		t.Fatalf("the texts have %d characters, and the menu is %+v", length, menu)
	}
	for _, part := range []string{"exactly this call and no other", "differs from it in nothing but what is left open", "any env of staging, production\nany version that matches v[0-9]*" + strings.Repeat(`\u{60}`, 3) + "\nany size that matches ***"} {
		if !strings.Contains(texts, part) {
			t.Errorf("the form does not say %q:\n%s", part, texts)
		}
	}
	h.server.Submit(ann, f, at.channel, at.id, map[string]string{openInput: "version\nenv"})
	h.await("two are left open", func() bool {
		c := h.ear.last().Click
		return c != nil && c.Verdict == agent.Always && slices.Equal(c.Open, []string{"version", "env"})
	})
	h.server.Submit(ann, form(), at.channel, at.id, nil)
	h.await("nothing is left open", func() bool { c := h.ear.last().Click; return c != nil && c.Verdict == agent.Always && c.Open == nil })
	f = form()
	h.ear.mu.Lock()
	h.ear.objects = `"name" cannot be left open`
	heard := len(h.ear.events)
	h.ear.mu.Unlock()
	h.server.Submit(ann, f, at.channel, at.id, map[string]string{openInput: "name"})
	h.await("it is told", func() bool {
		said := h.server.ByBot(discordtest.DM(ann))
		return strings.Contains(discordtest.Read(said[len(said)-1].Text), `Nothing was decided. "name" cannot be left open`)
	})
	h.ear.mu.Lock()
	defer h.ear.mu.Unlock()
	if len(h.ear.events) != heard {
		t.Error("something was decided")
	}
}

// TestOutcomes has what settled cards say: what was decided, and about what.
func TestOutcomes(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	d := newDiscord(t, newServer(t, discordtest.Options{}), brisk)
	for _, c := range []struct {
		reply agent.Reply
		want  string
	}{
		{agent.Reply{ID: "k7", Tool: "delete_file", Decision: agent.Approve, By: "discord:" + ann, Told: "{\"path\":\"a`b*.md\"}"},
			"delete\\_file (k7): approved by <@101> (<t:1800000000:f>)\n`{\"path\":\"a\\u0060b*.md\"}`"},
		{agent.Reply{ID: "k7", Tool: "ask_person", Decision: agent.AnswerIt, By: "discord:" + ann, Told: "Which *one*?", Text: "the <red> one"},
			"ask\\_person (k7): answered by <@101> (<t:1800000000:f>)\nWhich \\*one\\*? → the \\<red> one"},
		{agent.Reply{ID: "k7", Tool: "ship", Decision: agent.Always, By: "discord:" + ann, Rule: "r1", Always: &at, Open: []agent.Opening{{Name: "version", Within: "that matches v*_`"}}},
			"ship (k7): approved by <@101>, and always (rule r1) until <t:1800000000:f> (<t:1800000000:f>)\nwith `any version that matches v*_\\u{60}`"},
		{agent.Reply{ID: "k7", Tool: "delete_file", Decision: agent.Expire}, "delete\\_file (k7): expired: decided by nobody in time (<t:1800000000:f>)"},
	} {
		c.reply.Kind = agent.DecidedMark
		if got := d.outcome(c.reply, at); got != c.want {
			t.Errorf("it says\n%s\nwant\n%s", got, c.want)
		}
		c.reply.Told, c.reply.Text = strings.Repeat("*", 5000), strings.Repeat("_", 5000)
		c.reply.Open = []agent.Opening{{Name: "x", Within: strings.Repeat("`", 1200)}}
		if n := len([]rune(d.outcome(c.reply, at))); n > textLimit {
			t.Errorf("a long one has %d characters", n)
		}
	}
}
