package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/bot"
)

// outer is what surrounds an event.
type outer struct {
	Type    string          `json:"type"`
	Team    string          `json:"team_id"`
	EventID string          `json:"event_id"`
	Event   json.RawMessage `json:"event"`
}

// said is an event about a message: a message or an app_mention. Only what is needed is read, so that a field of an
// unexpected type elsewhere does no harm.
type said struct {
	Type        string      `json:"type"`
	Subtype     string      `json:"subtype"`
	Channel     string      `json:"channel"`
	ChannelType string      `json:"channel_type"`
	User        string      `json:"user"`
	Bot         string      `json:"bot_id"`
	Text        string      `json:"text"`
	TS          string      `json:"ts"`
	Thread      string      `json:"thread_ts"`
	ClientID    string      `json:"client_msg_id"`
	Team        string      `json:"team"`
	UserTeam    string      `json:"user_team"`
	SourceTeam  string      `json:"source_team"`
	Files       attachments `json:"files"`
}

// The subtypes of messages that people write. All others tell of something that happened, such as an edit.
var written = []string{"", "file_share", "thread_broadcast", "me_message"}

// hear takes an envelope. It does not block.
func (s *Slack) hear(ctx context.Context, in bot.Receiver, e envelope) {
	switch e.Kind {
	case "events_api":
		var o outer
		var m said
		fault := json.Unmarshal(e.Payload, &o)
		if o.Type == "app_rate_limited" {
			s.log.Error("slack leaves events out, since there are more than 30,000 an hour; what people say may not be heard")
		}
		if fault == nil {
			fault = json.Unmarshal(o.Event, &m)
		}
		if fault == nil && s.spoken(o, m) {
			// Names are asked for side by side, so that many people in one channel do not wait for each other's.
			s.lanes.Do("person "+m.User, func() { s.directory.lookup(ctx, m.User) })
			s.lanes.Do(m.Channel, func() { s.message(ctx, in, e, o, m) })
			return
		}
		if s.happened(ctx, in, e, o) {
			return
		}
		if fault != nil && (m.Type == "message" || m.Type == "app_mention") {
			s.log.Error("something said in slack cannot be read, and is not heard", "channel", m.Channel, "ts", m.TS, "error", fault)
		}
	case "interactive":
		s.lanes.Do("interactive "+e.ID, func() { s.interaction(ctx, in, e) })
		return
	case "slash_commands":
		s.lanes.Do("slash "+e.ID, func() { s.slash(ctx, in, e) })
		return
	default:
		s.log.Warn("slack sent something of an unknown kind", "kind", e.Kind)
	}
	s.lanes.Do("other "+e.ID, func() { s.acknowledge(ctx, e, nil) })
}

// spoken reports whether an event is something that a person said to a place where it may concern the bot.
func (s *Slack) spoken(o outer, m said) bool {
	if m.Type != "message" && m.Type != "app_mention" || m.Channel == "" || m.TS == "" {
		return false
	}
	if !nameable(o.Team, m.Team, m.UserTeam, m.SourceTeam, m.Channel, m.User, m.TS, m.Thread) {
		return false
	}
	me := s.me()
	if m.User == "" || m.User == me.user || m.Bot != "" || m.User == slackbot || !slices.Contains(written, m.Subtype) {
		return false
	}
	return m.Type == "app_mention" || m.direct() || m.Thread != "" || mentions(m.Text, me.user)
}

func (m said) direct() bool {
	return m.ChannelType == "im" || m.ChannelType == "" && direct(m.Channel)
}

// message gives what a person said to the receiver.
func (s *Slack) message(ctx context.Context, in bot.Receiver, e envelope, o outer, m said) {
	if ctx.Err() != nil {
		return
	}
	me := s.me()
	team := cmp.Or(m.UserTeam, m.SourceTeam, m.Team, o.Team, me.team)
	at := m.place(cmp.Or(o.Team, me.team), team)
	event := bot.Event{
		Keys:      m.keys(o),
		Address:   at.String(),
		ID:        message{m.Channel, m.TS}.String(),
		At:        saidAt(m.TS),
		Text:      s.words(ctx, m),
		Files:     m.files(),
		Overheard: m.Type != "app_mention" && !m.direct() && !mentions(m.Text, me.user),
	}
	event.From, event.Standing = s.person(ctx, team, m.User)
	if m.direct() {
		s.directory.met(m.User, m.Channel)
		event.Zoneless = s.directory.zoneless(m.User)
	}
	admission, err := s.talk(ctx, in, at, event, m.User)
	if err == nil {
		err = s.catchUp(ctx, in, event, admission, m.Type == "app_mention")
	}
	if err != nil {
		s.lost(ctx, err)
		return
	}
	s.acknowledge(ctx, e, nil)
}

// catchUp gives the receiver the files of a mention that was taken without them: of the two events about one, the
// app_mention may come first and tell of no files.
func (s *Slack) catchUp(ctx context.Context, in bot.Receiver, event bot.Event, admission bot.Admission, mention bool) error {
	switch {
	case admission == bot.Taken && mention && len(event.Files) == 0:
		s.bare.Put(event.ID, true)
	case admission == bot.Repeat && len(event.Files) > 0 && s.bare.Has(event.ID):
		event.Keys, event.Text = []string{key("files", event.ID)}, ""
		_, err := in.Receive(ctx, event)
		return err
	}
	return nil
}

// talk gives words to the receiver, and shows that they are worked on if they begin a turn in a thread. It acknowledges
// nothing.
func (s *Slack) talk(ctx context.Context, in bot.Receiver, at place, event bot.Event, user string) (bot.Admission, error) {
	by := asker{user: user, team: teamOf(event.From.ID), title: titleOf(event.Text)}
	command := event.Quote == nil && bot.IsCommand(event.Text)
	var begins *bulletin
	if !command {
		begins = s.progress.expect(at, by)
	}
	admission, err := in.Receive(ctx, event)
	if err != nil {
		s.progress.forget(begins)
		return 0, err
	}
	if admission != bot.Taken || command {
		s.progress.forget(begins)
		return admission, nil
	}
	s.progress.asked(at, by)
	if begins != nil {
		// Its own lane, since Slack may be slow about it, and what is said next must not wait for that.
		s.lanes.Do("begin "+event.Address, func() {
			s.entitle(ctx, at, by.title)
			s.progress.begin(ctx, at, begins)
		})
	}
	return admission, nil
}

// keys are what all deliveries of the same message have in common: of one event, of the two events about one mention, and
// of a message that the sender's own program sent twice.
func (m said) keys(o outer) []string {
	keys := []string{key("message", o.Team, m.Channel, m.TS)}
	if o.EventID != "" {
		keys = append(keys, key("event", o.EventID))
	}
	if m.ClientID != "" {
		keys = append(keys, key("client", o.Team, m.ClientID))
	}
	return keys
}

// key joins the parts of a key. Parts from outside are cut, so that the store takes every key.
func key(parts ...string) string {
	for i, part := range parts {
		if len(part) > 100 {
			parts[i] = digestOf(part)
		}
	}
	return "slack-" + strings.Join(parts, ":")
}

// place is the conversation that a message belongs to. The first message of a thread carries its own ts as the thread's.
func (m said) place(team, userTeam string) place {
	if m.direct() {
		p := place{team: userTeam, user: m.User, thread: m.Thread}
		if m.Thread == m.TS {
			p.thread = ""
		}
		return p
	}
	return place{team: team, channel: m.Channel, thread: cmp.Or(m.Thread, m.TS)}
}

// files are those that came with the words.
func (m said) files() (files []agent.File) {
	for _, file := range m.Files {
		files = append(files, file.file())
	}
	return files
}

// words is what was said, in plain text; "" for files without words.
func (s *Slack) words(ctx context.Context, m said) string {
	text := plain(m.Text, s.me().user, func(user string) string {
		return s.directory.lookup(ctx, user).name
	})
	if strings.TrimSpace(text) == "" && len(m.Files) == 0 {
		return "[mentioned without words]"
	}
	return text
}

// acknowledge tells Slack that a thing was taken.
func (s *Slack) acknowledge(ctx context.Context, e envelope, payload any) {
	if ctx.Err() != nil {
		return
	}
	if err := e.acknowledge(ctx, payload); err != nil && ctx.Err() == nil {
		s.log.Warn("cannot acknowledge to slack, which will deliver again", "error", err)
	}
}

// lost logs that something could not be kept. Slack is told nothing, and delivers it again.
func (s *Slack) lost(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.log.Error("what was said in slack could not be kept; it is delivered again", "error", err)
	}
}

// saidAt is when something was said. A ts that is far off is not believed.
func saidAt(ts string) time.Time {
	now := time.Now()
	if t := instant(ts); now.Sub(t).Abs() < 24*time.Hour {
		return t
	}
	return now
}
