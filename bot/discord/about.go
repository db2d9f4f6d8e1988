package discord

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/bwmarrin/discordgo"

	"nudge/bot"
)

// actionAbout is the form that asks what to do with a message. Behind it stands which message, so that one filled in after a
// restart is understood.
const actionAbout = "about"

const aboutExcerpt = 500

// messageCommand is the command in the menu of every message. Its name is what people read there.
var messageCommand = map[string]any{
	"name": "Ask Nudge about this", "type": onMessage, "contexts": []int{0, 1}, "integration_types": []int{0},
}

// about opens a form that asks what to do with a message. Discord sends the message with the command, also where the bot may
// not read it otherwise.
func (d *Discord) about(ctx context.Context, i interaction) {
	m := i.Data.Resolved.Messages[i.Data.Target]
	m.ID, m.Channel = i.Data.Target, i.Channel
	if !isID(m.ID) || !isID(m.Channel) {
		return
	}
	at := message{m.Channel, m.ID}
	d.pointed.Put(at.String(), m)
	excerpt := cut(strings.TrimSpace(plain(m, "")), aboutExcerpt)
	if excerpt == "" {
		excerpt = "(a message without text)"
	}
	words := input{Type: typeInput, ID: formInput, Style: longInput, Most: inputLimit, Required: true}
	d.answered(ctx, i, answer{answerForm, &modal{customID(actionAbout, at.String()), "Ask Nudge about this", []any{
		formText{typeText, escape(excerpt)}, labelled{typeLabel, "What shall I do with it?", "", words},
	}}})
}

// askedAbout takes the filled-in form. The turn runs in the message's thread if the bot is there, and otherwise in the person's
// direct messages.
func (d *Discord) askedAbout(ctx context.Context, in bot.Receiver, i interaction, name string) {
	d.answered(ctx, i, answer{answerThinking, map[string]any{"flags": discordgo.MessageFlagsEphemeral}})
	about, ok := parseMessage(name)
	words := strings.TrimSpace(entered(i.Data.Components)[formInput])
	if !ok || words == "" {
		d.finish(ctx, i, "Nothing was asked: I need to know what to do with it.")
		return
	}
	// The form comes back from the person's own program, and the bot may read where they may not.
	if about.channel != i.Channel {
		d.log.Warn("refused to look at a message of another channel", "person", personID(i.user().ID), "message", about, "channel", i.Channel)
		d.finish(ctx, i, "That message does not stand in this channel, so nothing was asked.")
		return
	}
	m, there := d.reach(ctx, about)
	at, said := place{user: i.user().ID}, "I answer in your direct messages with me."
	if of := d.roomOf(ctx, i); there && i.Guild != "" {
		said = "I answer in the thread."
		at = place{guild: i.Guild, channel: about.channel, thread: about.id}
		if of.isThread() && isID(of.Parent) {
			at = place{guild: i.Guild, channel: of.Parent, thread: about.channel}
			d.rooms.begun.Put(about.channel, true)
		} else {
			d.rooms.titles.Put(about.id, titleOf(words))
		}
	}
	admission, err := d.talk(ctx, in, at, bot.Event{
		Keys: []string{"discord-interaction:" + i.ID}, From: i.person(), Address: at.String(), At: saidAt(i.ID), Text: words,
		Quote: &bot.Quote{Author: cmp.Or(m.Author.called(), "somebody"), Where: where(i), Text: cmp.Or(plain(m, d.me().user), "[a message without text]")},
	})
	switch {
	case err != nil:
		return
	case admission == bot.Refused:
		said = bot.NotServed
	}
	d.finish(ctx, i, said)
}

// reach gives a message that somebody pointed at, and reports whether the bot is where it stands.
func (d *Discord) reach(ctx context.Context, about message) (m said, there bool) {
	m, _ = d.pointed.Take(about.String())
	var read said
	if err := d.api.call(ctx, http.MethodGet, discordgo.EndpointChannelMessage(about.channel, about.id), nil, &read); err != nil {
		return m, false
	}
	if m.ID == "" {
		m = read
	}
	return m, true
}

// where is the channel of an interaction in words.
func where(i interaction) string {
	switch {
	case i.Guild == "":
		return "direct messages"
	case i.Room.Name == "":
		return ""
	}
	return "#" + cut(i.Room.Name, 100)
}
