package discord

import (
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

const (
	formInput = "words"
	openInput = "open" // what a rule leaves open
)

// The components of forms (docs.discord.com/developers/components/reference). discordgo does not know labels.
const (
	typeMenu      = 3
	typeInput     = 4
	typeText      = 10
	typeLabel     = 18
	shortInput    = 1 // the styles of an input for a line
	longInput     = 2 // and for paragraphs
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
	Hint  string `json:"description,omitempty"`
	Input any    `json:"component"` // an input or a menu
}

type input struct {
	Type     int    `json:"type"`
	ID       string `json:"custom_id"`
	Style    int    `json:"style"`
	Value    string `json:"value,omitempty"`
	Most     int    `json:"max_length"`
	Required bool   `json:"required"`
}

type menu struct {
	Type     int      `json:"type"`
	ID       string   `json:"custom_id"`
	Options  []option `json:"options"`
	Required bool     `json:"required"`
	// Of one with which several can be chosen, or nothing:
	Least *int   `json:"min_values,omitempty"`
	Most  int    `json:"max_values,omitempty"`
	Holds string `json:"placeholder,omitempty"`
}

type option struct {
	Label   string `json:"label"`
	Value   string `json:"value"`
	Default bool   `json:"default,omitempty"`
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
	if event.Click.Verdict == agent.Edit {
		return d.editForm(card, in.Schema(card.Tool), i.user().ID), nil
	}
	return formFor(event.Click.Verdict, card), nil
}

// formFor is the form in which a verdict on a card is filled in, but for an edit; nil when there is none.
func formFor(verdict agent.Verdict, card agent.Reply) *modal {
	words := input{Type: typeInput, ID: formInput, Style: longInput, Most: inputLimit}
	switch verdict {
	case agent.Deny:
		return &modal{customID(actionDeny, card.ID), "Deny", []any{labelled{typeLabel, "Why not? The agent reads this.", "", words}}}
	case agent.AnswerIt:
		words.Required = true
		return &modal{customID(actionAnswer, card.ID), "Answer", []any{labelled{typeLabel, "Your answer", "", words}}}
	}
	if card.Always == nil {
		return nil // the agent says why not
	}
	return alwaysForm(card)
}

// alwaysForm shows the rule that would be saved: the call, for whom, where, and until when. What may be left open of
// the call is there to be chosen, and nothing of it is chosen at first.
func alwaysForm(card agent.Reply) *modal {
	rule := "From now on " + escape(bot.AlwaysText("")) + clock(*card.Always) + ". Everything else is asked about as before. " +
		"*nudge approvals* lists this and ends it."
	m := &modal{ID: customID(actionAlways, card.ID), Title: "Always allow this"}
	room := mostFormTexts - 1000
	if len(card.Open) > 0 {
		lines := cut(unfenced(bot.OpenLines(card)), room/2)
		rule += "\nWhere something is left open, " + escape(bot.OpenedText("")) + clock(*card.Always) + ". What may be left open:\n" + fence + "\n" + lines + "\n" + fence
		room -= utf8.RuneCountInString(lines) + 200
	}
	call := "**" + escape(cut(bot.Visible(card.Tool), 100)) + "**\n" + fence + "\n" + cut(unfenced(bot.ArgumentsText(card.Arguments)), room) + "\n" + fence
	m.Components = []any{formText{typeText, call}, formText{typeText, rule}}
	if len(card.Open) > 0 {
		m.Components = append(m.Components, labelled{typeLabel, "Leave open", "Nothing chosen: exactly this call.", openMenu(card.Open)})
	}
	return m
}

// openMenu is the menu from which a person chooses what is left open. It shows names alone, since their bounds are too long for an
// entry. It is a menu because no other choice has been in forms for as long
// (docs.discord.com/developers/components/reference#string-select).
func openMenu(open []agent.Opening) menu {
	m := menu{Type: typeMenu, ID: openInput, Least: new(0), Most: len(open), Holds: "Nothing"}
	for _, o := range open {
		m.Options = append(m.Options, option{"any " + o.Name, o.Name, false})
	}
	return m
}

// submitted takes a filled-in form. Discord has closed it, so that what is wrong with it is told beside the card.
func (d *Discord) submitted(ctx context.Context, in bot.Receiver, i interaction) {
	action, card := readCustomID(i.Data.ID)
	switch action {
	case actionAbout:
		d.askedAbout(ctx, in, i, card)
		return
	case actionOtherZone:
		d.saidZone(ctx, in, i, strings.TrimSpace(entered(i.Data.Components)[formInput]))
		return
	}
	d.answered(ctx, i, answer{Type: answerTaken})
	stamp := ""
	if of, isFields := strings.CutPrefix(action, actionFields); isFields {
		action, stamp = actionEdit, of
	}
	verdict, isForm := forms[action]
	if !isForm || card == "" {
		return
	}
	event := bot.Event{
		Keys: []string{"discord-interaction:" + i.ID}, From: i.person(), At: saidAt(i.ID), ID: message{i.Channel, i.Message.ID}.String(),
		Click: &agent.Decision{Card: card, Verdict: verdict}, Keeps: true,
	}
	values := entered(i.Data.Components)
	if open := values[openInput]; verdict == agent.Always && open != "" {
		event.Click.Open = strings.Split(open, "\n")
	}
	fault, err := d.fill(ctx, in, event.Click, stamp, values)
	at, ok := d.place(ctx, i)
	if err == nil && fault == "" && ok {
		event.Address = at.String()
		var objection *agent.Objection
		if objection, err = in.Weigh(ctx, event); objection != nil {
			fault = objection.Text
		}
	}
	draft := draftKey(card, i.user().ID)
	switch {
	case err != nil && ctx.Err() == nil:
		d.log.Error("a form could not be taken", "error", err)
		fault = "That could not be taken."
		fallthrough
	case fault != "":
		d.drafts.Put(draft, values)
		d.whisper(ctx, i, "Nothing was decided. "+fault+pressAgain(verdict))
	case ok:
		d.drafts.Take(draft)
		d.pressed(ctx, in, i, event)
	}
}

// pressAgain says how a form is opened again, which Discord has closed.
func pressAgain(verdict agent.Verdict) string {
	if verdict == agent.Edit {
		return "\nPress Edit once more: what you entered is still there."
	}
	return " Press the button once more."
}

// entered is what was entered in the inputs of a form, or chosen in its menus, which stand in labels or in rows.
// Several things that were chosen in one menu are on a line each.
func entered(components json.RawMessage) map[string]string {
	values := map[string]string{}
	var parts []struct {
		ID         string          `json:"custom_id"`
		Value      string          `json:"value"`
		Values     []string        `json:"values"` // of a menu
		Components json.RawMessage `json:"components"`
		Component  json.RawMessage `json:"component"`
	}
	if json.Unmarshal(components, &parts) != nil {
		return values
	}
	for _, part := range parts {
		if part.ID != "" {
			values[part.ID] = part.Value
			if len(part.Values) > 0 {
				values[part.ID] = strings.Join(part.Values, "\n")
			}
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
