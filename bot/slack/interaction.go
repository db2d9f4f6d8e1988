package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
)

// The action ids of the bot's buttons. A choice's number stands behind actionChoice.
const (
	actionApprove = "nudge_approve"
	actionDeny    = "nudge_deny"
	actionEdit    = "nudge_edit"
	actionAnswer  = "nudge_answer"
	actionChoice  = "nudge_choice_"
	actionMenu    = "nudge_choices" // a menu of choices
	actionAlways  = "nudge_always"
	actionStop    = "nudge_stop"

	actionApproveAll = "nudge_approve_all" // of a batch, by its last card
	actionDenyAll    = "nudge_deny_all"
)

// interaction is a click or a form. Only what is needed is read.
type interaction struct {
	Type     string `json:"type"`
	Callback string `json:"callback_id"` // of a shortcut
	ActionTS string `json:"action_ts"`   // of a shortcut
	Team     struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID   string `json:"id"`
		Team string `json:"team_id"`
	} `json:"user"`
	Channel struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"channel"`
	Container struct {
		Channel   string `json:"channel_id"`
		Message   string `json:"message_ts"`
		Thread    string `json:"thread_ts"`
		Ephemeral bool   `json:"is_ephemeral"`
	} `json:"container"`
	Message pointed  `json:"message"`
	Actions []click  `json:"actions"`
	Trigger string   `json:"trigger_id"`
	View    sentForm `json:"view"`
}

// click is one pressed button.
type click struct {
	Action string `json:"action_id"`
	Block  string `json:"block_id"`
	Value  string `json:"value"`
	TS     string `json:"action_ts"`
	Text   struct {
		Text string `json:"text"`
	} `json:"text"`
	Selected struct {
		Value string `json:"value"`
		Text  struct {
			Text string `json:"text"`
		} `json:"text"`
	} `json:"selected_option"`
}

// channel, thread and message are where the interaction was; each is "" where it was in none.
func (i interaction) channel() string { return cmp.Or(i.Container.Channel, i.Channel.ID) }
func (i interaction) thread() string  { return cmp.Or(i.Container.Thread, i.Message.Thread) }
func (i interaction) message() string { return cmp.Or(i.Container.Message, i.Message.TS) }

// team is the workspace of the person, or the bot's own where that is not told.
func (i interaction) team(own string) string { return cmp.Or(i.User.Team, i.Team.ID, own) }

// nameable reports whether its ids can be parts of an address.
func (i interaction) nameable() bool {
	return nameable(i.Team.ID, i.User.ID, i.User.Team, i.Channel.ID, i.Container.Channel, i.Container.Message, i.Container.Thread,
		i.Message.TS, i.Message.Thread)
}

// place is the conversation that a click belongs to: the one that the buttons were made for, which stands in their block, if
// that is where they stand, and otherwise the one in which they do.
func (i interaction) place(c click, ownTeam string) place {
	if p, ok := parsePlace(c.Block); ok && i.within(p) {
		return p
	}
	if p, ok := placeAtHome(c.Block); ok && i.channel() == "" {
		return p
	}
	if direct(i.channel()) || i.channel() == "" {
		p := place{team: i.team(ownTeam), user: i.User.ID, thread: i.thread()}
		if i.thread() == i.message() {
			p.thread = ""
		}
		return p
	}
	return place{team: cmp.Or(i.Team.ID, ownTeam), channel: i.channel(), thread: cmp.Or(i.thread(), i.message())}
}

// within reports whether an interaction was in the channel, or in the direct messages, of a conversation.
func (i interaction) within(p place) bool {
	if p.user != "" {
		return p.user == i.User.ID && direct(i.channel())
	}
	return p.channel == i.channel()
}

// interaction takes a click or a form.
func (s *Slack) interaction(ctx context.Context, in bot.Receiver, e envelope) {
	var i interaction
	if err := json.Unmarshal(e.Payload, &i); err != nil || i.User.ID == "" || !i.nameable() {
		s.log.Warn("slack sent a click or a form that cannot be read", "type", i.Type, "error", err)
		s.acknowledge(ctx, e, nil)
		return
	}
	switch {
	case i.Type == "block_actions" && len(i.Actions) > 0:
		s.clicked(ctx, in, e, i)
	case i.Type == "message_action":
		s.shortcut(ctx, e, i)
	case i.Type == "view_submission" && i.View.Callback == aboutCallback:
		s.askedAbout(ctx, in, e, i)
	case i.Type == "view_submission":
		s.submitted(ctx, in, e, i)
	default:
		s.acknowledge(ctx, e, nil)
	}
}

// clicked takes a pressed button. A form is opened before anything else is done, since Slack allows three seconds for it.
func (s *Slack) clicked(ctx context.Context, in bot.Receiver, e envelope, i interaction) {
	c := i.Actions[0]
	p := i.place(c, s.me().team)
	id := key("click", i.User.ID, i.message(), c.Action, c.TS)
	event := bot.Event{Keys: []string{id}, Address: p.String(), ID: message{i.channel(), i.message()}.String(), At: time.Now()}
	verdict, isForm := forms[c.Action]
	feedback, isFeedback := c.feedback()
	switch {
	case isFeedback:
		event.Feedback = feedback
	case isForm:
		opened, err := s.ask(ctx, in, i, c, event)
		if err != nil {
			s.lost(ctx, err)
			return
		}
		if opened {
			s.acknowledge(ctx, e, nil)
			return
		}
		event.Click = &agent.Decision{Card: c.Value, Verdict: verdict}
	case c.Action == actionApprove:
		event.Click = &agent.Decision{Card: c.Value, Verdict: agent.Approve}
	case c.Action == actionApproveAll:
		event.Click, event.Batch = &agent.Decision{Card: c.Value, Verdict: agent.Approve}, true
	case c.Action == actionDenyAll:
		event.Click, event.Batch = &agent.Decision{Card: c.Value, Verdict: agent.Deny}, true
	case strings.HasPrefix(c.Action, actionChoice), c.Action == actionMenu:
		var err error
		card, number, label := c.chosen()
		if event.Click, err = bot.Chosen(ctx, in, card, number, label); err != nil {
			s.lost(ctx, err)
			return
		}
	case c.Action == actionStop:
		event.Stop = true
	default:
		s.acknowledge(ctx, e, nil)
		return
	}
	s.pressed(ctx, in, e, i, event)
}

// pressed gives a decision or a Stop to the receiver, and reports whether it is kept. Somebody who is not let in is told so,
// where nobody else sees it.
func (s *Slack) pressed(ctx context.Context, in bot.Receiver, e envelope, i interaction, event bot.Event) (kept bool) {
	event.From, event.Standing = s.person(ctx, i.team(s.me().team), i.User.ID)
	admission, err := in.Receive(ctx, event)
	if err != nil {
		s.lost(ctx, err)
		return false
	}
	s.acknowledge(ctx, e, nil)
	switch {
	case i.channel() == "" && event.Click != nil:
		s.decidedAtHome(ctx, in, i, event.Click.Card)
	case admission == bot.Refused:
		s.whisper(ctx, i, bot.NotServed)
	case event.Stop && admission != bot.Declined:
		s.progress.pressed(ctx, event.Address, message{i.channel(), i.message()}, admission == bot.Taken)
	}
	return true
}

// whisper tells the person of an interaction something that nobody else sees. It is done as well as it can be.
func (s *Slack) whisper(ctx context.Context, i interaction, text string) {
	if i.channel() == "" {
		return
	}
	options := append(quiet(true), slack.MsgOptionText(escape(text), false))
	if thread := i.thread(); thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	if _, err := s.api.PostEphemeralContext(ctx, i.channel(), i.User.ID, options...); err != nil && ctx.Err() == nil {
		s.log.Warn("cannot tell somebody why a click did nothing", "error", err)
	}
}

// slashed is a slash command.
type slashed struct {
	Team    string `json:"team_id"`
	Channel string `json:"channel_id"`
	User    string `json:"user_id"`
	Text    string `json:"text"`
	Trigger string `json:"trigger_id"`
}

// slash takes a slash command. Slack does not tell in which thread it was given, so it is answered in direct messages.
func (s *Slack) slash(ctx context.Context, in bot.Receiver, e envelope) {
	var c slashed
	if err := json.Unmarshal(e.Payload, &c); err != nil || c.User == "" || !nameable(c.Team, c.User) {
		s.acknowledge(ctx, e, nil)
		return
	}
	team := cmp.Or(c.Team, s.me().team)
	who, standing := s.person(ctx, team, c.User)
	admission, err := in.Receive(ctx, bot.Event{
		Keys: []string{key("slash", cmp.Or(c.Trigger, e.ID))}, From: who, Standing: standing, At: time.Now(),
		Address: place{team: team, user: c.User}.String(), Text: "nudge " + cmp.Or(strings.TrimSpace(c.Text), "help"),
	})
	if err != nil {
		s.lost(ctx, err)
		return
	}
	var answer any
	switch {
	case !e.TakesPayload:
	case admission == bot.Refused:
		answer = map[string]string{"response_type": "ephemeral", "text": bot.NotServed}
	case !direct(c.Channel):
		answer = map[string]string{"response_type": "ephemeral", "text": "The answer is in your direct messages with me."}
	}
	s.acknowledge(ctx, e, answer)
}
