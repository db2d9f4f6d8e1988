package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/wire"
)

// What the custom ids of the bot's buttons, menus and forms say: an action, and the card that it is about. A choice's number
// stands behind actionChoice.
const (
	actionApprove = "approve"
	actionDeny    = "deny"
	actionEdit    = "edit"
	actionAnswer  = "answer"
	actionChoice  = "choice-"
	actionMenu    = "choices" // a menu of choices
	actionAlways  = "always"
	actionStop    = "stop"
	actionUseful  = "useful"
	actionLess    = "less"
	actionSnooze  = "snooze" // a menu of spans

	actionApproveAll = "approve-all" // of a batch, by its last card
	actionDenyAll    = "deny-all"
)

const idPrefix = "nudge:"

func customID(action, card string) string { return idPrefix + action + ":" + card }

// readCustomID reads a custom id; "" for those that are not the bot's.
func readCustomID(id string) (action, card string) {
	rest, own := strings.CutPrefix(id, idPrefix)
	if !own {
		return "", ""
	}
	action, card, _ = strings.Cut(rest, ":")
	return action, card
}

// The types of interactions, and of their answers
// (docs.discord.com/developers/interactions/receiving-and-responding).
const (
	isCommand   = 2
	isComponent = 3
	isTyping    = 4 // of a command
	isForm      = 5

	answerThinking    = 5 // the answer comes later, and "is thinking" is shown until then
	answerTaken       = 6 // nothing is shown
	answerCompletions = 8
	answerForm        = 9
)

// The types of commands (docs.discord.com/developers/interactions/application-commands).
const (
	asSlash   = 1
	onMessage = 3
)

// interaction is a click, a form or a command. Only what is needed is read.
type interaction struct {
	ID      string `json:"id"`
	App     string `json:"application_id"`
	Type    int    `json:"type"`
	Token   string `json:"token"`
	Guild   string `json:"guild_id"`
	Channel string `json:"channel_id"`
	Room    room   `json:"channel"`
	Locale  string `json:"locale"`
	Member  struct {
		User user `json:"user"`
	} `json:"member"`
	User    user `json:"user"`
	Message struct {
		ID        string `json:"id"`
		Reference struct {
			Message string `json:"message_id"`
		} `json:"message_reference"`
	} `json:"message"`
	Data struct {
		ID         string          `json:"custom_id"`
		Values     []string        `json:"values"`
		Name       string          `json:"name"`
		Type       int             `json:"type"` // of a command
		Target     string          `json:"target_id"`
		Components json.RawMessage `json:"components"`
		Resolved   struct {
			Messages map[string]said `json:"messages"`
		} `json:"resolved"`
		Options []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

// user is whoever clicked: Discord tells of them in one way in servers and in another in direct messages.
func (i interaction) user() user {
	if i.Guild != "" {
		return i.Member.User
	}
	return i.User
}

// person is whoever clicked, with the language that they have set.
func (i interaction) person() agent.Person {
	p := i.user().person()
	p.Locale = i.Locale
	return p
}

// place is the conversation in which an interaction was. What stands in a channel itself answers the message that began its
// conversation. ok is false for a place in a channel that is nobody's conversation.
func (d *Discord) place(ctx context.Context, i interaction) (at place, ok bool) {
	if i.Guild == "" {
		return place{user: i.user().ID}, true
	}
	of := d.roomOf(ctx, i)
	switch began := i.Message.Reference.Message; {
	case of.isThread() && isID(of.Parent):
		d.rooms.begun.Put(i.Channel, true)
		return place{guild: i.Guild, channel: of.Parent, thread: i.Channel}, true
	case isID(began):
		return place{guild: i.Guild, channel: i.Channel, thread: began}, true
	}
	return place{guild: i.Guild, channel: i.Channel, thread: i.Message.ID}, isID(i.Message.ID)
}

// roomOf is the room in which an interaction was.
func (d *Discord) roomOf(ctx context.Context, i interaction) room {
	of := i.Room
	if of.ID != i.Channel || of.isThread() && !isID(of.Parent) {
		of, _ = d.rooms.room(ctx, i.Channel)
	}
	return of
}

// interaction takes a click, a form or a command. Discord allows three seconds for the first answer, which is given before
// anything else is done, but for a form.
func (d *Discord) interaction(ctx context.Context, in bot.Receiver, i interaction) {
	if i.App == "" {
		i.App = d.me().app
	}
	d.rooms.names.Put(i.user().ID, i.user().called())
	switch {
	case i.Type == isCommand && i.Data.Type == onMessage:
		d.about(ctx, i)
	case i.Type == isCommand:
		d.slash(ctx, in, i)
	case i.Type == isTyping:
		d.complete(ctx, in, i)
	case i.Type == isComponent:
		d.clicked(ctx, in, i)
	case i.Type == isForm:
		d.submitted(ctx, in, i)
	}
}

// answered answers an interaction in the first place, and reports whether the person may see that it was taken. An answer that
// was lost on the way is given again; that it was given already is an answer, too.
func (d *Discord) answered(ctx context.Context, i interaction, with any) bool {
	deadline, cancel := context.WithTimeout(ctx, discordgo.InteractionDeadline)
	defer cancel()
	err := d.api.answer(deadline, i, with)
	for tries := 0; err != nil && (unsure(err) || limited(err)) && deadline.Err() == nil && tries < 3; tries++ {
		if wire.Sleep(deadline, max(retryAfter(err), 100*time.Millisecond)) != nil {
			break
		}
		err = d.api.answer(deadline, i, with)
	}
	if done(err, codeAnswered) {
		return true
	}
	if ctx.Err() == nil {
		d.log.Warn("cannot answer an interaction in time; what it asks for is done all the same", "code", code(err), "error", err)
	}
	return false
}

type answer struct {
	Type int `json:"type"`
	Data any `json:"data,omitempty"`
}

// clicked takes a pressed button, or an entry of a menu.
func (d *Discord) clicked(ctx context.Context, in bot.Receiver, i interaction) {
	action, card := readCustomID(i.Data.ID)
	value := ""
	if len(i.Data.Values) > 0 {
		value = i.Data.Values[0]
	}
	switch action {
	case actionZone:
		d.saidZone(ctx, in, i, value)
		return
	case actionOtherZone:
		d.answered(ctx, i, answer{answerForm, zoneForm()})
		return
	}
	event := bot.Event{
		Keys: []string{"discord-interaction:" + i.ID}, From: i.person(), At: saidAt(i.ID), ID: message{i.Channel, i.Message.ID}.String(),
	}
	if verdict, isForm := forms[action]; isForm {
		event.Click = &agent.Decision{Card: card, Verdict: verdict}
		if opened := d.openForm(ctx, in, i, event); opened {
			return
		}
		d.pressed(ctx, in, i, event)
		return
	}
	d.answered(ctx, i, answer{Type: answerTaken})
	number, isChoice := strings.CutPrefix(action, actionChoice)
	judged, isFeedback := feedback(action, card, value)
	var err error
	switch {
	case isFeedback:
		event.Feedback = judged
	case action == actionApprove:
		event.Click = &agent.Decision{Card: card, Verdict: agent.Approve}
	case action == actionApproveAll:
		event.Click, event.Batch = &agent.Decision{Card: card, Verdict: agent.Approve}, true
	case action == actionDenyAll:
		event.Click, event.Batch = &agent.Decision{Card: card, Verdict: agent.Deny}, true
	case isChoice:
		event.Click, err = bot.Chosen(ctx, in, card, number, "")
	case action == actionMenu:
		event.Click, err = bot.Chosen(ctx, in, card, value, "")
	case action == actionStop:
		event.Stop = true
	default:
		return
	}
	if err != nil {
		d.log.Error("a choice could not be taken", "error", err)
		d.whisper(ctx, i, "That could not be taken. Please press the button once more.")
		return
	}
	d.pressed(ctx, in, i, event)
}

// pressed gives a decision, a judgement or a Stop to the receiver. Somebody who is not let in is told so, where nobody else sees
// it.
func (d *Discord) pressed(ctx context.Context, in bot.Receiver, i interaction, event bot.Event) {
	at, ok := d.place(ctx, i)
	if !ok {
		return
	}
	event.Address = at.String()
	button := message{i.Channel, i.Message.ID}
	if event.Stop && !d.stopped.Put(button.String(), true) {
		return // it was pressed before, and is about to go
	}
	d.asides.Put(asideKey(event.Address, i.user().ID), aside{i.Token, time.Now()})
	admission, err := d.take(ctx, in, event)
	if event.Stop && (err != nil || admission == bot.Refused || admission == bot.Declined) {
		d.stopped.Take(button.String()) // for somebody who may
	}
	switch {
	case err != nil:
	case admission == bot.Refused:
		d.whisper(ctx, i, bot.NotServed)
	case event.Stop && admission != bot.Declined:
		d.progress.pressed(ctx, at, button)
	}
}

// whisper tells the person of an interaction something that nobody else sees. It is done as well as it can be.
func (d *Discord) whisper(ctx context.Context, i interaction, text string) {
	if err := d.api.whisper(ctx, i.App, i.Token, cut(escape(text), textLimit)); err != nil && ctx.Err() == nil {
		d.log.Warn("cannot tell somebody why what they pressed did nothing", "error", err)
	}
}

// slashCommand is the slash command, in servers and in direct messages with the bot.
var slashCommand = map[string]any{
	"name": "nudge", "type": asSlash, "description": "Give Nudge a command; alone it lists them",
	"options": []map[string]any{{
		"type": 3, "name": "words", "description": "help, status, stop, approvals, heartbeats, snooze, usage …", "required": false, "autocomplete": true,
	}},
	"contexts": []int{0, 1}, "integration_types": []int{0},
}

// slash takes a slash command. In a thread it is about the conversation there; in a channel, where there is none, it is answered
// in direct messages.
func (d *Discord) slash(ctx context.Context, in bot.Receiver, i interaction) {
	d.answered(ctx, i, answer{answerThinking, map[string]any{"flags": discordgo.MessageFlagsEphemeral}})
	words := ""
	for _, option := range i.Data.Options {
		if option.Name == "words" {
			_ = json.Unmarshal(option.Value, &words) // what is no text is no command
		}
	}
	if words = strings.TrimSpace(words); words == "" {
		words = "help"
	}
	at, here := d.place(ctx, i)
	if !here {
		at = place{user: i.user().ID}
	}
	admission, err := d.take(ctx, in, bot.Event{
		Keys: []string{"discord-interaction:" + i.ID}, From: i.person(), At: saidAt(i.ID), Address: at.String(), Text: "nudge " + words,
	})
	said := "The answer is below."
	switch {
	case err != nil:
		return
	case admission == bot.Refused:
		said = bot.NotServed
	case !here:
		said = "The answer is in your direct messages with me."
	}
	d.finish(ctx, i, said)
}

// finish says something in place of "is thinking". It is done as well as it can be.
func (d *Discord) finish(ctx context.Context, i interaction, said string) {
	if err := d.api.finish(ctx, i.App, i.Token, said); err != nil && ctx.Err() == nil {
		d.log.Debug("cannot say where the answer to a command is", "error", err)
	}
}

// errSlow is of something that took longer than Discord waits for an answer.
var errSlow = errors.New("it took too long")

// inTime does something that has to be known before an interaction is answered, as long as there is time for it. What takes
// longer goes on, and its end is waited for with [Discord.Listen].
func inTime[T any](ctx context.Context, d *Discord, fn func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, d.timing.Answer)
	defer cancel()
	got := make(chan result, 1)
	d.lanes.Beside("in time", func() {
		value, err := fn(ctx)
		got <- result{value, err}
	})
	select {
	case r := <-got:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%w: %w", errSlow, ctx.Err())
	}
}
