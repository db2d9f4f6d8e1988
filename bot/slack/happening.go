package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/slack-go/slack"

	"nudge/bot"
)

// happening is an event that is no message, as far as it is read.
type happening struct {
	Type    string          `json:"type"`
	Channel string          `json:"channel"`
	Thread  string          `json:"thread_ts"`
	User    json.RawMessage `json:"user"` // an id, or the whole person
	TS      string          `json:"event_ts"`
	Tab     string          `json:"tab"`
	Pane    struct {
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"assistant_thread"`
}

// id is the user, if the event names them by their id.
func (h happening) id() (user string) {
	if json.Unmarshal(h.User, &user) != nil {
		return ""
	}
	return user
}

// What a person has open beside the bot (app_context_changed, assistant_thread_context_changed) is not subscribed to,
// since nothing reads it; nor are the names that people give to sessions (agent_session_title_changed), which are never
// changed here.

// happened takes an event that is no message, and reports whether it is one that is served.
func (s *Slack) happened(ctx context.Context, in bot.Receiver, e envelope, o outer) bool {
	var h happening
	if json.Unmarshal(o.Event, &h) != nil {
		return false
	}
	user := h.id()
	if !nameable(o.Team, user, h.Channel, h.Thread, h.Pane.User, h.Pane.Channel, h.Pane.Thread) {
		return false
	}
	switch {
	case h.Type == "agent_session_stopped" && user != "" && h.Channel != "" && h.Thread != "":
		s.lanes.Do("stop "+e.ID, func() { s.sessionStopped(ctx, in, e, o, h) })
	case h.Type == "app_home_opened" && user != "" && h.Tab == "home":
		s.lanes.Do("home "+user, func() {
			s.acknowledge(ctx, e, nil)
			s.showHome(ctx, in, s.directory.lookup(ctx, user).home(cmp.Or(o.Team, s.me().team)), user, "")
		})
	case h.Type == "app_home_opened" && user != "" && h.Tab == "messages" && h.Channel != "":
		s.lanes.Do("pane "+user, func() {
			s.directory.met(user, h.Channel)
			s.acknowledge(ctx, e, nil)
			s.suggest(ctx, h.Channel, "")
		})
	case h.Type == "assistant_thread_started" && h.Pane.Channel != "" && h.Pane.Thread != "":
		s.lanes.Do("pane "+h.Pane.User, func() {
			s.directory.met(h.Pane.User, h.Pane.Channel)
			s.panes.Put(h.Pane.Channel+":"+h.Pane.Thread, true)
			s.acknowledge(ctx, e, nil)
			s.suggest(ctx, h.Pane.Channel, h.Pane.Thread)
		})
	case h.Type == "user_change":
		var u slack.User
		if json.Unmarshal(h.User, &u) != nil || u.ID == "" {
			return false
		}
		s.lanes.Do("person "+u.ID, func() { s.changed(ctx, in, e, u) })
	default:
		return false
	}
	return true
}

// sessionStopped takes a press of the Stop button that Slack shows itself.
func (s *Slack) sessionStopped(ctx context.Context, in bot.Receiver, e envelope, o outer, h happening) {
	user, own := h.id(), cmp.Or(o.Team, s.me().team)
	p := s.directory.lookup(ctx, user)
	team := p.home(own)
	at := place{team: own, channel: h.Channel, thread: h.Thread}
	if direct(h.Channel) {
		at = place{team: team, user: user, thread: h.Thread}
	}
	event := bot.Event{
		Keys: []string{key("stopped", own, h.Channel, h.Thread, user, h.TS)},
		From: p.person(team, user), Standing: p.standing, Address: at.String(), At: time.Now(), Stop: true,
	}
	admission, err := in.Receive(ctx, event)
	if err != nil {
		s.lost(ctx, err)
		return
	}
	s.acknowledge(ctx, e, nil)
	if admission == bot.Refused {
		var i interaction
		i.User.ID, i.Container.Channel, i.Container.Thread = user, h.Channel, h.Thread
		s.whisper(ctx, i, bot.NotServed)
	}
	s.progress.stopped(ctx, at, h.Channel, admission)
}

// prompts are what may be said to the bot to begin with. They need no model, so that they always do what they say.
var prompts = []slack.AssistantThreadsPrompt{
	{Title: "What can I say to you?", Message: "nudge help"},
	{Title: "What waits for my decision?", Message: "nudge approvals"},
	{Title: "What wakes you for me?", Message: "nudge heartbeats"},
	{Title: "What have I spent today?", Message: "nudge usage"},
}

// suggest shows the prompts: in a thread of the pane of an assistant, or with no thread in the messages of an agent.
func (s *Slack) suggest(ctx context.Context, channel, thread string) {
	const method = "assistant.threads.setSuggestedPrompts"
	if s.refused.has(method, channel) {
		return
	}
	err := s.api.SetAssistantThreadsSuggestedPromptsContext(ctx, slack.AssistantThreadsSetSuggestedPromptsParameters{
		ChannelID: channel, ThreadTS: thread, Prompts: prompts,
	})
	if err != nil && ctx.Err() == nil {
		s.refused.note(method, channel, err)
		s.log.Warn("cannot suggest what to say", "error", err)
	}
}

// entitle gives a thread of an assistant's pane its title, with its first words. Sessions of agents get theirs when they
// begin.
func (s *Slack) entitle(ctx context.Context, at place, title string) {
	if at.user == "" || title == "" {
		return
	}
	channel, err := s.directory.channel(ctx, at)
	if err != nil {
		return
	}
	if _, fresh := s.panes.Take(channel + ":" + at.thread); !fresh {
		return
	}
	err = s.api.SetAssistantThreadsTitleContext(ctx, slack.AssistantThreadsSetTitleParameters{ChannelID: channel, ThreadTS: at.thread, Title: title})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("cannot give a thread its title", "error", err)
	}
}
