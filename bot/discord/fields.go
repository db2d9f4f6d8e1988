package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/form"
)

// A form for an edit has a field for each argument ([form.Fields]), as far as Discord has room for them.

const (
	actionFields   = "fields-" // the action of such a form, with a stamp of its fields behind it
	mostFields     = 5
	fieldNameLimit = 45
	fieldHintLimit = 100
)

var formLimits = form.Limits{Input: inputLimit, Option: optionLimit, Options: mostOptions, Length: utf8.RuneCountInString}

// fieldsOf are the fields of the form for a call.
func fieldsOf(schema, arguments json.RawMessage) ([]form.Field, bool) {
	fields, ok := form.Fields(schema, arguments, formLimits)
	if !ok {
		return nil, false
	}
	return form.Squeeze(fields, mostFields), true
}

func fieldID(n int) string { return fmt.Sprint("argument-", n) }

// editForm is the form for an edit. Where a person has filled in one that could not be taken, it holds what they entered.
func (d *Discord) editForm(card agent.Reply, schema json.RawMessage, user string) *modal {
	draft, _ := d.drafts.Get(draftKey(card.ID, user))
	if fields, ok := fieldsOf(schema, card.Arguments); ok {
		return fieldsForm(card, fields, draft)
	}
	words := input{Type: typeInput, ID: formInput, Style: longInput, Most: inputLimit, Required: true}
	shown, kept := bot.Editable(card.Arguments)
	words.Value = cmp.Or(draft[formInput], shown)
	if utf8.RuneCountInString(words.Value) > inputLimit {
		return &modal{customID(actionEdit, card.ID), "Too long for a form", []any{formText{typeText,
			escape("These arguments are too long for a form of Discord's. Write instead, where the card stands:") + "\n\n" + escape("nudge edit "+card.ID+" {…}")}}}
	}
	return &modal{customID(actionEdit, card.ID), "Edit", []any{labelled{typeLabel, "Arguments, as a JSON object", cut(kept, fieldHintLimit), words}}}
}

func fieldsForm(card agent.Reply, fields []form.Field, draft map[string]string) *modal {
	m := &modal{ID: customID(actionFields+form.Stamp(fields), card.ID), Title: "Edit"}
	var kept []string
	for n, f := range fields {
		name, way := cmp.Or(bot.Visible(f.Name), `""`), f.Way()
		switch way {
		case form.Kept:
			kept = append(kept, fmt.Sprintf("%s (%d characters)", cut(name, fieldNameLimit), utf8.RuneCountInString(f.Shown())))
			continue
		case form.JSON:
			name = cut(name, fieldNameLimit-len(" (JSON)")) + " (JSON)"
		}
		value, drafted := draft[fieldID(n)]
		m.Components = append(m.Components, labelled{typeLabel, cut(name, fieldNameLimit), cut(f.Hint, fieldHintLimit), inputOf(f, fieldID(n), value, drafted)})
	}
	if len(kept) > 0 && len(m.Components) < mostFields {
		m.Components = append(m.Components, formText{typeText, escape("Too long for a form, so these stay as they are: " + cut(strings.Join(kept, ", "), 1000) + ".")})
	}
	return m
}

// inputOf is what a field is filled in with. It holds what was entered before, if something was, and otherwise the argument as it
// stands.
func inputOf(f form.Field, id, entered string, drafted bool) any {
	if f.Way() == form.Choice || f.Way() == form.Switch {
		choices := menu{Type: typeMenu, ID: id, Required: true}
		for _, o := range f.Options() {
			stands := o.Stands
			if drafted {
				stands = o.Value == entered
			}
			choices.Options = append(choices.Options, option{o.Name, o.Value, stands})
		}
		return choices
	}
	text := f.Shown()
	if drafted {
		text = entered
	}
	in := input{Type: typeInput, ID: id, Style: shortInput, Value: text, Most: inputLimit, Required: !f.Optional()}
	if f.Way() == form.JSON || strings.ContainsAny(text, "\r\n") || utf8.RuneCountInString(text) > 60 {
		in.Style = longInput
	}
	return in
}

// draftKey names what a person has entered in a form that could not be taken.
func draftKey(card, user string) string { return card + " " + user }

// fill puts what was entered into a form into a decision, and says what is wrong with it; "" when nothing is. stamp is that of
// the fields that the form was made with; "" when it had none.
func (d *Discord) fill(ctx context.Context, in bot.Receiver, decision *agent.Decision, stamp string, values map[string]string) (fault string, err error) {
	if stamp == "" {
		return bot.Fill(decision, values[formInput]), nil
	}
	card, waiting, err := in.Card(ctx, decision.Card)
	if err != nil {
		return "", fmt.Errorf("look up the card %s: %w", decision.Card, err)
	}
	schema := in.Schema(card.Tool)
	if !waiting || len(schema) == 0 {
		return "", nil // what became of it is told by whoever knows
	}
	fields, _ := fieldsOf(schema, card.Arguments)
	if form.Stamp(fields) != stamp {
		return "The tool " + card.Tool + " has changed since the form was opened.", nil
	}
	arguments, faults := form.Arguments(fields, func(n int) string { return values[fieldID(n)] })
	decision.Arguments = arguments
	var lines []string
	for n, f := range fields {
		if text := faults[n]; text != "" {
			lines = append(lines, bot.Visible(f.Name)+": "+text)
		}
	}
	return strings.Join(lines, "\n"), nil
}
