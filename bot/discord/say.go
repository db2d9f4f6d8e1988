package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/markdown"
)

// Say says one reply, and returns "channel:message" of the first message that it became, or of the card. Errors are of type
// [*bot.SendError].
func (d *Discord) Say(ctx context.Context, r bot.Delivery) (receipt string, err error) {
	p, ok := parsePlace(r.Address)
	if !ok {
		return "", &bot.SendError{Gone: true, Err: fmt.Errorf("%q is no conversation of discord's", r.Address)}
	}
	began := time.Now()
	receipt, err = d.say(ctx, p, r)
	d.noteDeaf(p, began, err)
	err = d.sendError(err)
	d.ledger.Close(r.Key, err)
	return receipt, err
}

func (d *Discord) say(ctx context.Context, p place, r bot.Delivery) (string, error) {
	if at, deaf := d.deaf.Get(p.user); deaf && time.Since(at) < d.timing.Rest {
		return "", &bot.SendError{Gone: true, Left: true, Err: fmt.Errorf("%s takes no messages from the bot since %s: their direct messages are closed to it, or they are in no server with it",
			p.user, at.Format(time.DateTime))}
	}
	switch r.Kind {
	case agent.Progress:
		d.progress.show(ctx, p, r.Reply)
		return "", nil
	case agent.WaitingMark, agent.SettledMark:
		return "", d.progress.end(ctx, r.Address)
	case agent.SteerMark:
		return "", d.react(ctx, r.Reply)
	case agent.DecidedMark:
		return d.decided(ctx, p, r)
	case agent.Ask, agent.Approval:
		return d.card(ctx, p, r)
	case agent.Final:
		receipt, err := d.tell(ctx, p, r, rendered(r.Text))
		if err == nil && p.user != "" {
			d.answeredDM(p.user)
		}
		return receipt, err
	case agent.Notify:
		return d.notify(ctx, p, r)
	case agent.Notice, agent.Fault:
		if r.IsCard() {
			return d.card(ctx, p, r)
		}
		if r.To != "" && p.user == "" {
			return "", d.aside(ctx, p, r)
		}
		return d.tell(ctx, p, r, verbatim(r.Text))
	}
	return "", nil
}

// noteDeaf remembers who takes no messages from the bot, so that nobody tries at every tick of a heartbeat. Who has written
// since the try began is tried again: they may have opened their messages first.
func (d *Discord) noteDeaf(p place, began time.Time, err error) {
	if c := code(err); p.user != "" && (c == codeCannotTell || c == codeNoGuild) {
		d.log.Warn("somebody takes no direct messages from the bot; they are not tried for a while", "person", personID(p.user), "for", d.timing.Rest, "code", c)
		d.deaf.Put(p.user, time.Now())
		if heard, known := d.heard.Get(p.user); known && heard.After(began) {
			d.deaf.Take(p.user)
		}
	}
}

// post is one message to be posted.
type post struct {
	text       string
	name, file string // of a file that goes with it; "" for none
	components []discordgo.MessageComponent
	card       string
	whole      bool // it refers to the first of its reply, as the end of something that began there
}

// postsOf are messages of these texts and nothing else.
func postsOf(texts []string) (posts []post) {
	for _, text := range texts {
		posts = append(posts, post{text: text})
	}
	return posts
}

// tell says a text in as many messages as it takes. One that is too long for that becomes a file, with its beginning as the
// message.
func (d *Discord) tell(ctx context.Context, p place, r bot.Delivery, text *markdown.Text) (string, error) {
	parts := messages(text)
	if utf8.RuneCountInString(r.Text) > wholeLimit && len(parts) > 0 {
		name := "answer-" + nonceOf(r.Key, 0, r.Text)[:8] + ".md"
		begins := excerpt(rendered(head(r.Text)))
		receipt, err := d.postAll(ctx, p, r, []post{{
			text: begins + "\n\nThis is the beginning. The whole answer is in the file " + escape(name) + ".", name: name, file: r.Text,
		}})
		if !fileRefused(err) {
			return receipt, err
		}
	}
	return d.postAll(ctx, p, r, postsOf(parts))
}

// excerpt is how a text begins, as a message of its own that something is to follow.
func excerpt(text *markdown.Text) string {
	if begins := partsOf(text, excerptLimit); len(begins) > 0 {
		return begins[0]
	}
	return ""
}

// head is as much of a text as can be read as Markdown, at most.
func head(text string) string { return cut(text, markdown.Longest) }

// fileRefused reports whether Discord takes no file there, however often it is tried. Words still may be said.
func fileRefused(err error) bool {
	return code(err) == codeMissing || code(err) == codeTooLarge || status(err) == http.StatusRequestEntityTooLarge
}

// postAll posts messages in order, leaving out those that stand there from an earlier try.
func (d *Discord) postAll(ctx context.Context, p place, r bot.Delivery, posts []post) (receipt string, err error) {
	if len(posts) == 0 {
		return "", nil
	}
	channel, err := d.rooms.channel(ctx, p)
	if err != nil {
		return "", err
	}
	t := d.ledger.Of(r)
	nonces := make([]string, len(posts))
	for i, m := range posts {
		if r.Unlinked {
			m.text = unlinked(m.text)
			posts[i] = m
		}
		nonces[i] = nonceOf(r.Key, i, m.card+m.text)
	}
	if err := d.recall(ctx, t, channel, posts, nonces); err != nil {
		return "", err
	}
	first := ""
	for i, m := range posts {
		id, said := t.Said[nonces[i]]
		if !said {
			if id, err = d.post(ctx, p, &channel, nonces[i], m, first); err != nil {
				if unsure(err) {
					t.Doubt()
				}
				return "", fmt.Errorf("post message %d of %d in %s: %w", i+1, len(posts), channel, err)
			}
			t.Said[nonces[i]] = id
		}
		if i == 0 {
			first = id
		}
		if receipt == "" || m.card != "" {
			receipt = message{channel, id}.String()
		}
	}
	d.bookmarks.begin(aboutOf(p.user, p.guild, channel), message{channel, first})
	return receipt, nil
}

// post posts one message. Where a thread is locked, it is said in the channel, as an answer to the message under which the
// thread is.
func (d *Discord) post(ctx context.Context, p place, channel *string, nonce string, m post, first string) (id string, err error) {
	id, err = d.api.post(ctx, *channel, nonce, sendingOf(m, p, *channel, first))
	if p.user == "" && *channel == p.thread && done(err, codeLocked, codeArchived) && err != nil {
		d.log.Warn("a thread is locked; what is said there is said in its channel", "thread", p.thread, "channel", p.channel)
		d.rooms.flat.Put(p.thread, p.channel)
		*channel = p.channel
		id, err = d.api.post(ctx, *channel, nonce, sendingOf(m, p, *channel, ""))
	}
	return id, err
}

// sendingOf is a message as it is sent. In a channel it answers the message that began the conversation.
func sendingOf(m post, p place, channel, first string) *discordgo.MessageSend {
	s := &discordgo.MessageSend{Content: m.text, Components: m.components}
	if m.name != "" {
		s.Files = []*discordgo.File{{Name: m.name, ContentType: "text/markdown", Reader: strings.NewReader(m.file)}}
	}
	refersTo := ""
	switch {
	case p.user == "" && channel == p.channel:
		refersTo = p.thread
	case m.whole:
		refersTo = first
	}
	if refersTo != "" {
		exists := false
		s.Reference = &discordgo.MessageReference{MessageID: refersTo, ChannelID: channel, FailIfNotExists: &exists}
	}
	return s
}

// aside is the last interaction of a person in a conversation, by which they can be told something that nobody else sees.
type aside struct {
	token string
	at    time.Time
}

func asideKey(address, user string) string { return address + " " + user }

// aside tells one person something in a shared place: where nobody else sees it, if they have pressed something there just now,
// and in direct messages otherwise.
func (d *Discord) aside(ctx context.Context, p place, r bot.Delivery) error {
	t := d.ledger.Of(r)
	if !t.Unsure.IsZero() {
		return &bot.SendError{Blind: true, Err: errors.New("what only one person sees cannot be looked up")}
	}
	user := userOf(r.To)
	if user == "" {
		return &bot.SendError{Gone: true, Err: errNobody}
	}
	text := cut(escape(r.Text), textLimit)
	if r.Unlinked {
		text = unlinked(text)
	}
	if by, known := d.asides.Get(asideKey(p.String(), user)); known && time.Since(by.at) < d.timing.Token {
		err := d.api.whisper(ctx, d.me().app, by.token, text)
		if err == nil || status(err) == 0 {
			if unsure(err) {
				t.Doubt()
			}
			return err
		}
	}
	_, err := d.postAll(ctx, place{user: user}, r, []post{{text: text}})
	return err
}

// decided settles a card: it says what was decided and has no buttons any more. A notify card says what it told, too. Where the
// card is not known or can no longer be changed, the outcome is said as a message.
func (d *Discord) decided(ctx context.Context, p place, r bot.Delivery) (string, error) {
	outcome := d.outcome(r.Reply, time.Now())
	card, known := parseMessage(r.Earlier)
	if !known {
		return d.postAll(ctx, p, r, []post{{text: outcome}})
	}
	text := outcome
	if r.IsFeedback() {
		text = d.judged(r.Reply, outcome)
	}
	if r.Unlinked {
		text = unlinked(text)
	}
	err := d.api.edit(ctx, card, text, nil)
	switch code(err) {
	case codeUnknownMessage, codeUnknownChannel, codeNotOwn, codeArchived, codeOld, codeLocked:
		return d.postAll(ctx, p, r, []post{{text: outcome}})
	}
	if err != nil {
		return "", fmt.Errorf("settle the card at %s: %w", card, err)
	}
	return card.String(), nil
}

// The reactions that are receipts.
const (
	sawIt    = "👀"
	readIt   = "✅"
	nextTime = "⏩"
)

// react puts the receipt of a message on that very message. A message that is gone needs none.
func (d *Discord) react(ctx context.Context, r agent.Reply) error {
	at, ok := parseMessage(r.ID)
	if !ok {
		return nil
	}
	emoji := map[string]string{agent.Stored: sawIt, agent.SeenAt: readIt, agent.NextTurn: nextTime}[r.State]
	if emoji == "" {
		return nil
	}
	if emoji != sawIt {
		if err := d.api.react(ctx, http.MethodDelete, at, sawIt); status(err) == 0 && err != nil {
			return fmt.Errorf("take a receipt off %s: %w", at, err)
		}
	}
	err := d.api.react(ctx, http.MethodPut, at, emoji)
	if err != nil && status(err) == 0 {
		return fmt.Errorf("put a receipt on %s: %w", at, err)
	}
	if err != nil {
		d.log.Warn("cannot put a receipt on a message; may the bot add reactions and read the history there?", "message", at, "error", err)
	}
	return nil
}
