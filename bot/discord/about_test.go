package discord

import (
	"strings"
	"testing"

	"nudge/agent"
	"nudge/bot/bottest/discordtest"
)

// TestAskAboutAMessage points at messages: in a channel, in a thread, in direct messages, and where the bot may not read.
func TestAskAboutAMessage(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	root, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
	h.hears("hi")
	h.await("the thread is there", func() bool { return h.server.Typed(root) > 0 })
	inThread, _ := h.server.Say(bob, root, "<@101> is *late*")
	inChannel, _ := h.server.Say(bob, shared, "stop")
	inDM, _ := h.server.Say(ann, discordtest.DM(ann), "mine")
	h.await("direct messages are heard", func() bool { return h.ear.last().Text == "mine" })
	hidden, _ := h.server.Say(bob, shared, "the hidden one")
	for _, c := range []struct {
		in, id, address, author, text, answer string
		hidden                                bool
	}{
		{shared, inChannel, place{guild: discordtest.Guild, channel: shared, thread: inChannel}.String(), "Bob", "stop", "in the thread", false},
		{root, inThread, place{guild: discordtest.Guild, channel: shared, thread: root}.String(), "Bob", "@Ann is *late*", "in the thread", false},
		{discordtest.DM(ann), inDM, home, "Ann", "mine", "in your direct messages", false},
		{shared, hidden, home, "Bob", "the hidden one", "in your direct messages", true},
	} {
		click, _ := h.server.Point(ann, c.in, c.id)
		h.answeredWith(click, answerForm)
		form, _ := h.server.Form(click)
		if got := discordtest.Read(form.Components[0].Content); got != c.text {
			t.Errorf("the form shows %q, want %q", got, c.text)
		}
		if c.hidden {
			h.server.Fail("message.get", discordtest.Fault{Status: 403, Code: codeNoAccess})
		}
		sent, _ := h.server.Submit(ann, form, c.in, "", map[string]string{formInput: "approve " + c.id})
		h.answeredWith(sent, answerThinking)
		h.await("it is asked", func() bool { return h.ear.last().Text == "approve "+c.id })
		got := h.ear.last()
		if got.Address != c.address || got.Quote == nil || got.Quote.Author != c.author || got.Quote.Text != c.text || got.Click != nil {
			t.Errorf("it is %+v, about %+v", got, got.Quote)
		}
		h.await("it is said where the answer comes", func() bool {
			said := h.server.ByBot(c.in)
			if len(said) == 0 {
				return false
			}
			last := said[len(said)-1]
			return last.For == ann && strings.Contains(last.Text, c.answer)
		})
	}
}

// TestAskAboutOutlivesARestart sends the form to another process, which reads the message where it stands.
func TestAskAboutOutlivesARestart(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	id, _ := h.server.Say(bob, shared, "what about this?")
	click, _ := h.server.Point(ann, shared, id)
	h.answeredWith(click, answerForm)
	form, _ := h.server.Form(click)
	h.stop()
	h.again()
	h.server.Submit(ann, form, shared, "", map[string]string{formInput: "sum it up"})
	h.await("it is asked", func() bool { return h.ear.last().Text == "sum it up" })
	if q := h.ear.last().Quote; q == nil || q.Text != "what about this?" || q.Where != "" && q.Where != "#" {
		t.Errorf("it is about %+v", q)
	}
}

// TestAskAboutElsewhere sends forms that name messages of other channels, which the bot may read and the person may not.
func TestAskAboutElsewhere(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	const private = "777"
	h.server.AddChannel(private)
	theirs, _ := h.server.Say(bob, discordtest.DM(bob), "for the bot alone")
	h.hears("for the bot alone")
	hidden, _ := h.server.Say(bob, private, "for the few in here")
	mine, _ := h.server.Say(ann, shared, "anything")
	click, _ := h.server.Point(ann, shared, mine)
	h.answeredWith(click, answerForm)
	form, _ := h.server.Form(click)
	for _, elsewhere := range []message{{discordtest.DM(bob), theirs}, {private, hidden}} {
		forged := form
		forged.ID = customID(actionAbout, elsewhere.String())
		sent, _ := h.server.Submit(ann, forged, shared, "", map[string]string{formInput: "what does it say?"})
		h.answeredWith(sent, answerThinking)
	}
	h.await("she is told", func() bool {
		said := h.server.ByBot(shared)
		return len(said) == 2 && said[1].For == ann && strings.Contains(said[1].Text, "does not stand in this channel")
	})
	if got := h.server.Calls("message.get"); len(got) > 0 {
		t.Errorf("the bot looked: %+v", got)
	}
	if texts := h.ear.texts(); len(texts) > 1 {
		t.Errorf("what was taken is %q", texts)
	}
}

// TestCompletion offers what may come next while somebody types, and nothing to others; also when the core is stuck.
func TestCompletion(t *testing.T) {
	timing := brisk
	timing.Answer = patience / 100
	h := listen(t, discordtest.Options{}, timing).begin()
	typing, _ := h.server.Type(ann, shared, "app")
	h.answeredWith(typing, answerCompletions)
	if got := h.server.Offers(typing); len(got) != 25 || got[0] != "app0" {
		t.Errorf("offered is %q", got)
	}
	typing, _ = h.server.Type(eve, shared, "app")
	h.answeredWith(typing, answerCompletions)
	if got := h.server.Offers(typing); len(got) != 0 {
		t.Errorf("to a stranger is offered %q", got)
	}
	held := make(chan struct{})
	h.ear.mu.Lock()
	h.ear.held = held
	h.ear.mu.Unlock()
	typing, _ = h.server.Type(ann, shared, "app")
	h.answeredWith(typing, answerCompletions)
	close(held)
	if n := len(h.ear.texts()); n > 0 {
		t.Errorf("%d things were taken", n)
	}
}

// TestZoneIsAskedOnce asks after the first answer in direct messages, and not again, not even by another process.
func TestZoneIsAskedOnce(t *testing.T) {
	timing := brisk
	timing.Ask = 1
	h := listen(t, discordtest.Options{Nonce: 1}, timing).begin() // which does not hide a second question
	asked := func() (questions []discordtest.Message) {
		for _, m := range h.server.ByBot(discordtest.DM(ann)) {
			if strings.Contains(m.Text, "which time zone are you in?") {
				questions = append(questions, m)
			}
		}
		return questions
	}
	thread, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
	h.hears("hi")
	h.said(reply(agent.Final, place{guild: discordtest.Guild, channel: shared, thread: thread}.String(), "in the thread"))
	h.said(reply(agent.Notice, home, "a notice"))
	h.said(reply(agent.Final, home, "one"))
	h.await("the zone is asked for", func() bool { return len(asked()) == 1 })
	h.await("that is kept", func() bool { return h.ear.keeps("zone discord:" + ann) })
	question := asked()[0]
	other, _ := h.server.Click(ann, question.Channel, question.ID, customID(actionOtherZone, ""))
	h.answeredWith(other, answerForm)
	form, _ := h.server.Form(other)
	h.server.Submit(ann, form, question.Channel, question.ID, map[string]string{formInput: " Europe/Paris "})
	h.await("the zone is said", func() bool { return h.ear.last().Text == "nudge zone Europe/Paris" && h.ear.last().Address == home })
	h.await("the question has gone", func() bool { return len(asked()) == 0 })
	h.said(reply(agent.Final, home, "two"))
	h.stop()
	h.again()
	h.discord.timing.Ask = 1
	h.said(reply(agent.Final, home, "three"))
	h.said(reply(agent.Final, agent.PersonID("discord:"+bob).Home(), "hello Bob"))
	h.ear.mu.Lock()
	h.ear.zones = map[agent.PersonID]string{"discord:" + eve: "Asia/Tokyo"}
	h.ear.mu.Unlock()
	h.said(reply(agent.Final, agent.PersonID("discord:"+eve).Home(), "hello Eve")) // who has said it before
	h.await("Bob is asked", func() bool { return len(h.server.ByBot(discordtest.DM(bob))) == 2 })
	if n := len(asked()); n != 0 {
		t.Errorf("Ann is asked %d times more", n)
	}
	if said := h.server.ByBot(discordtest.DM(eve)); len(said) != 1 {
		t.Errorf("Eve is told %q", texts(said))
	}
	question = h.server.ByBot(discordtest.DM(bob))[1]
	h.server.Choose(bob, question.Channel, question.ID, customID(actionZone, ""), "Asia/Tokyo")
	h.await("Bob's zone is said", func() bool {
		return h.ear.last().Text == "nudge zone Asia/Tokyo" && h.ear.last().From.ID == "discord:"+bob
	})
}

func (e *ear) keeps(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kept[name] != ""
}
