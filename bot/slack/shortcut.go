package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"nudge/bot"
)

const (
	shortcutAsk     = "nudge_ask"       // on a message; as in the manifest
	aboutCallback   = "nudge_ask_about" // the form that it opens
	aboutLimit      = 2000              // characters of a message that travel in the form
	privateLimit    = 3000              // characters of all that does
	aboutExcerpt    = 500
	reachFor        = 1500 * time.Millisecond // Slack waits three seconds for an answer to a form
	tooLongToTravel = "\n[the rest of the message could not be read]"
)

// pointed is the message that a shortcut was used on.
type pointed struct {
	TS     string `json:"ts"`
	Thread string `json:"thread_ts"`
	User   string `json:"user"`
	Name   string `json:"username"`
	Text   string `json:"text"`
}

// about is what a form asks about. It travels in the form, so that one filled in after a restart is understood.
type about struct {
	Channel string `json:"channel"`
	Where   string `json:"where"`
	Message string `json:"message"`
	Thread  string `json:"thread,omitempty"`
	User    string `json:"user,omitempty"`
	Name    string `json:"name,omitempty"`
	Text    string `json:"text"` // as Slack sends it
	Cut     bool   `json:"cut,omitempty"`
}

// root is the first message of the thread that the message stands in, or could begin.
func (a about) root() string { return cmp.Or(a.Thread, a.Message) }

// shortcut takes a shortcut on a message: it opens a form that asks what to do with it.
func (s *Slack) shortcut(ctx context.Context, e envelope, i interaction) {
	m := i.Message
	id := key("shortcut", i.User.ID, i.Channel.ID, m.TS, i.ActionTS)
	if i.Callback == shortcutAsk && i.Channel.ID != "" && m.TS != "" && s.shown.Put(id, true) {
		a := about{Channel: i.Channel.ID, Where: where(i), Message: m.TS, Thread: m.Thread, User: m.User, Name: cut(m.Name, 100), Text: m.Text}
		if _, err := s.api.OpenViewContext(ctx, i.Trigger, a.form()); err != nil && ctx.Err() == nil {
			s.log.Warn("cannot open a form", "error", err)
			s.whisper(ctx, i, "Slack would not open the form. Please choose it once more.")
		}
	}
	s.acknowledge(ctx, e, nil)
}

// where is the channel of an interaction in words. Slack's names for conversations that have none tell nothing.
func where(i interaction) string {
	switch name := i.Channel.Name; {
	case name == "" || name == "privategroup" || strings.HasPrefix(name, "mpdm-"):
		return "a private conversation"
	case name == "directmessage":
		return "direct messages"
	default:
		return "#" + cut(name, 100)
	}
}

func (a about) form() slack.ModalViewRequest {
	excerpt := cut(strings.TrimSpace(entities.Replace(a.Text)), aboutExcerpt)
	if excerpt == "" {
		excerpt = "(a message without text)"
	}
	input := slack.NewPlainTextInputBlockElement(nil, formInput)
	input.Multiline, input.MaxLength = true, inputLimit
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: label("Ask Nudge about this"), Submit: label("Ask"), Close: label("Cancel"),
		CallbackID: aboutCallback, PrivateMetadata: a.private(),
		Blocks: slack.Blocks{BlockSet: []slack.Block{section(excerpt), slack.NewInputBlock(formBlock, label("What shall I do with it?"), nil, input)}},
	}
}

// private is the text that travels, with as much of the message as there is room for.
func (a about) private() string {
	for limit := aboutLimit; ; limit /= 2 {
		if length(a.Text) > limit {
			a.Text, a.Cut = a.Text[:whole(a.Text, within(a.Text, limit))], true
		}
		if text := a.json(); length(text) <= privateLimit || limit == 0 {
			return text
		}
	}
}

// json is the form's purpose with nothing escaped that need not be, so that more of the message fits.
func (a about) json() string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(a) != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// askedAbout takes the filled-in form. The turn runs in the message's thread if the bot is there, and otherwise in the
// person's direct messages.
func (s *Slack) askedAbout(ctx context.Context, in bot.Receiver, e envelope, i interaction) {
	var a about
	if json.Unmarshal([]byte(i.View.Private), &a) != nil || a.Channel == "" || a.Message == "" || !nameable(a.Channel, a.Message, a.Thread) {
		s.acknowledge(ctx, e, nil)
		return
	}
	words := strings.TrimSpace(i.View.State.Values[formBlock][formInput].Value)
	if words == "" {
		s.acknowledge(ctx, e, faulty("Say what I shall do with it."))
		return
	}
	team := i.team(s.me().team)
	at := place{team: team, user: i.User.ID}
	if text, there := s.reach(ctx, a); there {
		switch {
		case !direct(a.Channel):
			at = place{team: cmp.Or(i.Team.ID, s.me().team), channel: a.Channel, thread: a.root()}
		case a.Thread != a.Message:
			at.thread = a.Thread
		}
		a.Text, a.Cut = text, false
	}
	event := bot.Event{
		Keys: []string{key("form", i.User.ID, i.View.ID)}, Address: at.String(), At: time.Now(), Text: words, Quote: s.quote(ctx, a),
	}
	event.From, event.Standing = s.person(ctx, team, i.User.ID)
	admission, err := s.talk(ctx, in, at, event, i.User.ID)
	switch {
	case err != nil:
		s.lost(ctx, err)
	case admission == bot.Refused:
		s.acknowledge(ctx, e, faulty(bot.NotServed))
	default:
		s.acknowledge(ctx, e, nil)
	}
}

func faulty(text string) *slack.ViewSubmissionResponse {
	return slack.NewErrorsViewSubmissionResponse(map[string]string{formBlock: text})
}

// reach reads a message where it stands, and reports whether the bot is there.
func (s *Slack) reach(ctx context.Context, a about) (text string, there bool) {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	messages, _, _, err := s.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: a.Channel, Timestamp: a.root(), Oldest: a.Message, Latest: a.Message, Inclusive: true, Limit: 2,
	})
	if err != nil {
		return "", false
	}
	for _, m := range messages {
		if m.Timestamp == a.Message {
			return m.Text, true
		}
	}
	return a.Text, true
}

// quote is the message in plain words, with its author's name.
func (s *Slack) quote(ctx context.Context, a about) *bot.Quote {
	author := a.Name
	if a.User != "" {
		author = cmp.Or(s.directory.lookup(ctx, a.User).name, author)
	}
	text := plain(a.Text, "", func(user string) string { return s.directory.lookup(ctx, user).name })
	if a.Cut {
		text += tooLongToTravel
	}
	return &bot.Quote{Author: cmp.Or(author, "somebody"), Where: a.Where, Text: cmp.Or(text, "[a message without text]")}
}
