package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"nudge/agent"
	"nudge/bot"
)

// forms are the buttons behind which there is a form, with what a filled-in form decides.
var forms = map[string]agent.Verdict{
	actionDeny: agent.Deny, actionEdit: agent.Edit, actionAnswer: agent.AnswerIt, actionAlways: agent.Always,
}

const formInput = "words"

// The components of forms (docs.discord.com/developers/components/reference). discordgo does not know labels.
const (
	typeInput     = 4
	typeText      = 10
	typeLabel     = 18
	longInput     = 2 // the style of an input for paragraphs
	mostFormTexts = 4000
)

type modal struct {
	ID         string `json:"custom_id"`
	Title      string `json:"title"`
	Components []any  `json:"components"`
}

type labelled struct {
	Type  int    `json:"type"`
	Label string `json:"label"`
	Input input  `json:"component"`
}

type input struct {
	Type     int    `json:"type"`
	ID       string `json:"custom_id"`
	Style    int    `json:"style"`
	Value    string `json:"value,omitempty"`
	Most     int    `json:"max_length"`
	Required bool   `json:"required"`
}

type formText struct {
	Type    int    `json:"type"`
	Content string `json:"content"`
}

// openForm opens the form behind a button. It opens none, and gives false, where something speaks against the decision already:
// then the click is one that comes too late or from somebody else, and gets its answer from the agent.
func (d *Discord) openForm(ctx context.Context, in bot.Receiver, i interaction, event bot.Event) (opened bool) {
	form, err := inTime(ctx, d, func(ctx context.Context) (*modal, error) { return d.form(ctx, in, i, event) })
	if err == nil && form != nil {
		d.answered(ctx, i, answer{answerForm, form})
		return true
	}
	d.answered(ctx, i, answer{Type: answerTaken})
	if err != nil && ctx.Err() == nil {
		d.log.Warn("cannot open a form", "error", err)
		d.whisper(ctx, i, "I could not open the form in time. Please press the button once more.")
	}
	return err != nil
}

// form is the form for a click; nil when there is to be none.
func (d *Discord) form(ctx context.Context, in bot.Receiver, i interaction, event bot.Event) (*modal, error) {
	card, waiting, err := in.Card(ctx, event.Click.Card)
	if err != nil {
		return nil, fmt.Errorf("look up the card %s: %w", event.Click.Card, err)
	}
	at, ok := d.place(ctx, i)
	if !waiting || !ok {
		return nil, nil
	}
	event.Address = at.String()
	objection, err := in.Weigh(ctx, event)
	if err != nil {
		return nil, fmt.Errorf("look at what speaks against a form for the card %s: %w", card.ID, err)
	}
	if objection != nil {
		return nil, nil
	}
	return formFor(event.Click.Verdict, card), nil
}

// formFor is the form in which a verdict on a card is filled in; nil when there is none.
func formFor(verdict agent.Verdict, card agent.Reply) *modal {
	words := labelled{Type: typeLabel, Input: input{Type: typeInput, ID: formInput, Style: longInput, Most: inputLimit}}
	switch verdict {
	case agent.Deny:
		words.Label = "Why not? The agent reads this."
		return &modal{customID(actionDeny, card.ID), "Deny", []any{words}}
	case agent.AnswerIt:
		words.Label, words.Input.Required = "Your answer", true
		return &modal{customID(actionAnswer, card.ID), "Answer", []any{words}}
	case agent.Always:
		if card.Always == nil {
			return nil // the agent says why not
		}
		return alwaysForm(card)
	}
	words.Label, words.Input.Required = "Arguments, as a JSON object", true
	words.Input.Value = indented(card.Arguments)
	if utf8.RuneCountInString(words.Input.Value) > inputLimit {
		return &modal{customID(actionEdit, card.ID), "Too long for a form", []any{formText{typeText,
			escape("These arguments are too long for a form of Discord's. Write instead, where the card stands:") + "\n\n" + escape("nudge edit "+card.ID+" {…}")}}}
	}
	return &modal{customID(actionEdit, card.ID), "Edit", []any{words}}
}

// alwaysForm shows the rule that would be saved: the call, for whom, where, and until when.
func alwaysForm(card agent.Reply) *modal {
	rule := "From now on " + escape(bot.AlwaysText("")) + clock(*card.Always) + ". Everything else is asked about as before. " +
		"*nudge approvals* lists this and ends it."
	call := "**" + escape(cut(bot.Visible(card.Tool), 100)) + "**\n" + fence + "\n" +
		cut(strings.ReplaceAll(bot.ArgumentsText(card.Arguments), fence, "`"+apart+"`"+apart+"`"), mostFormTexts-1000) + "\n" + fence
	return &modal{customID(actionAlways, card.ID), "Always allow this", []any{formText{typeText, call}, formText{typeText, rule}}}
}

func indented(arguments json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, arguments, "", "  ") != nil {
		return string(arguments)
	}
	return b.String()
}

// submitted takes a filled-in form. Discord has closed it, so that what is wrong with it is told beside the card.
func (d *Discord) submitted(ctx context.Context, in bot.Receiver, i interaction) {
	d.answered(ctx, i, answer{Type: answerTaken})
	action, card := readCustomID(i.Data.ID)
	verdict, isForm := forms[action]
	if !isForm || card == "" {
		return
	}
	event := bot.Event{
		Keys: []string{"discord-interaction:" + i.ID}, From: i.person(), At: saidAt(i.ID), ID: message{i.Channel, i.Message.ID}.String(),
		Click: &agent.Decision{Card: card, Verdict: verdict},
	}
	if fault := bot.Fill(event.Click, entered(i.Data.Components)[formInput]); fault != "" {
		d.whisper(ctx, i, "Nothing was decided. "+fault+" Press the button once more.")
		return
	}
	at, ok := d.place(ctx, i)
	if !ok {
		return
	}
	event.Address = at.String()
	objection, err := in.Weigh(ctx, event)
	if err == nil && objection != nil {
		d.whisper(ctx, i, objection.Text)
		return
	}
	d.pressed(ctx, in, i, event)
}

// entered is what was entered in the inputs of a form, which stand in labels or in rows.
func entered(components json.RawMessage) map[string]string {
	values := map[string]string{}
	var parts []struct {
		ID         string          `json:"custom_id"`
		Value      string          `json:"value"`
		Components json.RawMessage `json:"components"`
		Component  json.RawMessage `json:"component"`
	}
	if json.Unmarshal(components, &parts) != nil {
		return values
	}
	for _, part := range parts {
		if part.ID != "" {
			values[part.ID] = part.Value
		}
		for _, inner := range []json.RawMessage{part.Components, fmt.Appendf(nil, "[%s]", part.Component)} {
			if len(inner) > 2 {
				for id, value := range entered(inner) {
					values[id] = value
				}
			}
		}
	}
	return values
}
