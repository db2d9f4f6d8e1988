package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/memory"
)

// Conceals reports whether something was hidden in an argument of a card. A form shows it as an empty field.
func Conceals(argument json.RawMessage) bool { return bytes.Contains(argument, []byte(secret.Mark)) }

// Editable is what a form of JSON shows of a card's arguments: those in which nothing was hidden, indented. about says
// which are not there, for the person; "" when all are.
func Editable(arguments json.RawMessage) (shown, about string) {
	values := map[string]json.RawMessage{}
	if Conceals(arguments) && json.Unmarshal(arguments, &values) == nil {
		var kept []string
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if Conceals(values[name]) || Conceals(json.RawMessage(name)) {
				delete(values, name)
				kept = append(kept, Visible(name))
			}
		}
		arguments, about = objectOf(values), "Kept as they are unless you write them: "+strings.Join(kept, ", ")
	}
	var b bytes.Buffer
	if json.Indent(&b, arguments, "", "  ") != nil {
		return string(arguments), about
	}
	return b.String(), about
}

// whole is a decision with what was hidden on its card, and came back as it was shown there, as the card has it. keeps is as in
// [Event].
func (h *Hub) whole(ctx context.Context, d *agent.Decision, keeps bool) (*agent.Decision, error) {
	edits := d.Verdict == agent.Edit && len(d.Arguments) > 0
	if !edits && d.Verdict != agent.AnswerIt {
		return d, nil
	}
	var card agent.Reply
	waiting := false
	err := h.Store.View(ctx, func(tx memory.Tx) (err error) {
		card, waiting, err = agent.WaitingCardOf(tx, d.Card)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look what card %s does not show: %w", d.Card, err)
	}
	if !waiting {
		return d, nil // what became of it is told
	}
	filled := *d
	if edits {
		filled.Arguments = refilled(d.Arguments, card.Arguments, h.Secrets, keeps)
	} else if at := slices.Index(Hide(card, h.Secrets).Choices, d.Text); at >= 0 {
		filled.Text = card.Choices[at]
	}
	return &filled, nil
}

// refilled are edited arguments in which those of the card's that do not show all stay what they are, if they came back
// as they were shown or, where keeps says so, not at all.
func refilled(edited, card json.RawMessage, secrets *secret.Redactor, keeps bool) json.RawMessage {
	var values, was map[string]json.RawMessage
	if json.Unmarshal(edited, &values) != nil || values == nil || json.Unmarshal(card, &was) != nil {
		return edited
	}
	changed := false
	for name, value := range was {
		shownName, shown := secrets.Text(name), json.RawMessage(secrets.JSON(value))
		if !Conceals(shown) && !Conceals(json.RawMessage(shownName)) {
			continue
		}
		if back, there := values[shownName]; !there && keeps || there && alike(back, shown) {
			delete(values, shownName)
			values[name], changed = value, true
		}
	}
	if !changed {
		return edited
	}
	return objectOf(values)
}

// objectOf is a JSON object of values, which stay as they are written.
func objectOf(values map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(values) // what was read as JSON can be written
	return bytes.TrimSpace(b.Bytes())
}

// alike reports whether two JSON values are written alike but for blanks.
func alike(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && x.String() == y.String()
}

// hidden is an objection as it may be shown.
func (h *Hub) hidden(o *agent.Objection) *agent.Objection {
	if o == nil {
		return nil
	}
	shown := *o
	shown.Text, shown.Fields = h.Secrets.Text(o.Text), maps.Clone(o.Fields)
	for name, text := range shown.Fields {
		shown.Fields[name] = h.Secrets.Text(text)
	}
	return &shown
}
