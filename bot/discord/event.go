package discord

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"nudge/bot"
	"nudge/bot/wire"
)

// user is somebody on Discord.
type user struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Global   string `json:"global_name"`
	Bot      bool   `json:"bot"`
	System   bool   `json:"system"`
}

// called is a person's name, for display.
func (u user) called() string { return cmp.Or(u.Global, u.Username) }

// said is a message as Discord tells of it. Only what is needed is read, so that a field of an unexpected type elsewhere does
// no harm.
type said struct {
	ID        string     `json:"id"`
	Channel   string     `json:"channel_id"`
	Guild     string     `json:"guild_id"`
	Type      int        `json:"type"`
	Content   string     `json:"content"`
	Author    user       `json:"author"`
	Webhook   string     `json:"webhook_id"`
	Mentions  []user     `json:"mentions"`
	RepliedTo repliedTo  `json:"referenced_message"`
	Files     []attached `json:"attachments"`
}

// repliedTo is the message that another one answers.
type repliedTo struct {
	Content  string `json:"content"`
	Author   user   `json:"author"`
	Mentions []user `json:"mentions"`
}

// quote is the message of somebody else's that words to the bot answer; nil when there is none. A command is about none.
func (m said) quote(self, text string) *bot.Quote {
	about := m.RepliedTo
	if about.Author.ID == "" || about.Author.ID == self || bot.IsCommand(text) || !slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID == self }) {
		return nil
	}
	words := plain(said{Content: about.Content, Mentions: about.Mentions}, self)
	if words == "" {
		return nil
	}
	return &bot.Quote{Author: cmp.Or(about.Author.called(), "somebody"), Text: words}
}

// The types of messages that people write. All others tell of something that happened
// (docs.discord.com/developers/resources/message#message-object-message-types).
var written = []int{0, 19} // a message, and a reply

// spoken reports whether a message is something that a person said.
func (d *Discord) spoken(m said) bool {
	if !isID(m.ID) || !isID(m.Channel) || !isID(m.Author.ID) || m.Guild != "" && !isID(m.Guild) {
		return false
	}
	return !m.Author.Bot && !m.Author.System && m.Webhook == "" && m.Author.ID != d.me().user && slices.Contains(written, m.Type)
}

func (m said) direct() bool { return m.Guild == "" }

// addressed reports whether a message is said to the bot: in direct messages, with a mention, or as a reply to its words.
func (m said) addressed(self string) bool {
	return m.direct() || m.RepliedTo.Author.ID == self || slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID == self })
}

// message gives what a person said to the receiver.
func (d *Discord) message(ctx context.Context, in bot.Receiver, m said) {
	if ctx.Err() != nil {
		return
	}
	self := d.me().user
	addressed := m.addressed(self)
	text := plain(m, self)
	if !addressed && strings.TrimSpace(m.Content) == "" {
		if len(m.Files) == 0 {
			d.blank.warn(d)
		}
		return
	}
	at, there := d.placeOf(ctx, m, addressed)
	if !there {
		return
	}
	d.rooms.names.Put(m.Author.ID, m.Author.called())
	if m.direct() {
		d.rooms.dms.Put(m.Author.ID, m.Channel)
		d.heard.Put(m.Author.ID, time.Now()) // before the next line, as noteDeaf reads them in the other order
		d.deaf.Take(m.Author.ID)
	}
	if addressed && text == "" && len(m.Files) == 0 {
		text = "[mentioned without words]"
	}
	if at.user == "" && at.thread == m.ID {
		d.rooms.titles.Put(m.ID, titleOf(text))
	}
	event := bot.Event{
		Keys: []string{"discord-message:" + m.ID}, From: m.Author.person(), Address: at.String(), ID: message{m.Channel, m.ID}.String(),
		At: saidAt(m.ID), Text: text, Files: m.files(), Quote: m.quote(self, text), Overheard: !addressed,
	}
	admission, err := d.talk(ctx, in, at, event)
	if err == nil && admission != bot.Ignored && admission != bot.Refused && !asksToBeForgotten(text) {
		d.bookmarks.move(bookmark{aboutOf(m.Author.ID, m.Guild, m.Channel), message{m.Channel, m.ID}})
		if at.thread == m.ID {
			d.bookmarks.move(bookmark{aboutOf("", m.Guild, m.ID), message{m.ID, m.ID}}) // of the thread that is begun under it
		}
	}
}

// asksToBeForgotten reports whether a text is the command after which nothing of its person may be kept, not even where they
// wrote it.
func asksToBeForgotten(text string) bool {
	return strings.HasPrefix(strings.ToLower(strings.Join(strings.Fields(text), " ")), "nudge forget-me")
}

// talk gives words to the receiver, and shows that the bot is typing if a turn begins with them.
func (d *Discord) talk(ctx context.Context, in bot.Receiver, at place, event bot.Event) (bot.Admission, error) {
	var begins *bulletin
	if event.Quote != nil || !bot.IsCommand(event.Text) {
		begins = d.progress.expect(at)
	}
	admission, err := d.take(ctx, in, event)
	if err != nil || admission != bot.Taken {
		d.progress.forget(begins)
		return admission, err
	}
	d.progress.begin(begins)
	return admission, nil
}

// placeOf is the conversation that a message belongs to: the thread in which it stands, or the one under it. It tells false for
// words in a channel that were not said to the bot.
func (d *Discord) placeOf(ctx context.Context, m said, addressed bool) (place, bool) {
	if m.direct() {
		return place{user: m.Author.ID}, true
	}
	of, err := d.roomFor(ctx, m.Channel)
	if err != nil {
		return place{}, false
	}
	if of.isThread() && isID(of.Parent) {
		return place{guild: m.Guild, channel: of.Parent, thread: m.Channel}, true
	}
	return place{guild: m.Guild, channel: m.Channel, thread: m.ID}, addressed
}

// roomFor is the room in which something was said. It is asked for until there is an answer, since a thread that is taken for a
// channel would be another conversation. The error is that of a context that ended; a room that may not be seen is a channel.
func (d *Discord) roomFor(ctx context.Context, id string) (of room, err error) {
	for wait := d.timing.Again; ; wait = min(2*wait, 30*d.timing.Again) {
		of, err = d.rooms.room(ctx, id)
		switch {
		case err == nil:
			return of, nil
		case ctx.Err() != nil:
			return room{}, ctx.Err()
		}
		d.log.Warn("cannot tell in what kind of channel something was said", "channel", id, "error", err)
		if status(err) != 0 {
			return room{}, nil
		}
		if err := wire.Sleep(ctx, max(wait, retryAfter(err))); err != nil {
			return room{}, err
		}
	}
}

// The marks that Discord puts into the text of a message (docs.discord.com/developers/reference#message-formatting).
var (
	mention = regexp.MustCompile(`<@!?(\d+)>`)
	emoji   = regexp.MustCompile(`<a?(:\w+:)\d+>`)
)

// plain is a text as Discord sends it in plain words: without the mention of the bot itself in front, and with names for
// mentions.
func plain(m said, self string) string {
	text := strings.TrimSpace(m.Content)
	for _, own := range []string{"<@" + self + ">", "<@!" + self + ">"} {
		if rest, found := strings.CutPrefix(text, own); found {
			text = strings.TrimLeft(rest, " \t,:\u00a0")
		}
	}
	text = mention.ReplaceAllStringFunc(text, func(mark string) string {
		id := mention.FindStringSubmatch(mark)[1]
		if id == self {
			return ""
		}
		for _, u := range m.Mentions {
			if u.ID == id && u.called() != "" {
				return "@" + u.called()
			}
		}
		return mark
	})
	return strings.TrimSpace(emoji.ReplaceAllString(text, "$1"))
}

// saidAt is when something was said. An id that is far off is not believed.
func saidAt(id string) time.Time {
	now := time.Now()
	if t := instant(id); now.Sub(t).Abs() < 24*time.Hour {
		return t
	}
	return now
}

// blank warns of messages that come without their words, once an hour: then the app may not read what is said.
type blank struct {
	mu   sync.Mutex
	last time.Time
}

func (b *blank) warn(d *Discord) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.last) < time.Hour {
		return
	}
	b.last = time.Now()
	d.log.Warn("discord sends messages without their words; is Message Content Intent on in the developer portal, under Bot?")
}
