package slack

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
)

// choices are the choices of a question as buttons, or as a menu where they are many. Those for which there is no room stand
// in its text all the same.
func choices(r agent.Reply) []slack.BlockElement {
	if len(r.Choices) > mostChoices {
		return []slack.BlockElement{choiceMenu(r)}
	}
	var buttons []slack.BlockElement
	for i, choice := range r.Choices {
		buttons = append(buttons, button(fmt.Sprint(actionChoice, i), r.ID, choiceLabel(i, choice, buttonLimit), slack.StyleDefault))
	}
	return buttons
}

func choiceMenu(r agent.Reply) slack.BlockElement {
	menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, label("Choose…"), actionMenu)
	for i, choice := range r.Choices[:min(len(r.Choices), mostOptions)] {
		menu.Options = append(menu.Options, slack.NewOptionBlockObject(r.ID+" "+strconv.Itoa(i), label(choiceLabel(i, choice, optionLimit)), nil))
	}
	return menu
}

// choiceLabel is a choice in a place of limited length. One that is cut short has its number in the text.
func choiceLabel(i int, choice string, limit int) string {
	name := strings.TrimSpace(bot.Visible(choice))
	if name == "" || length(name) > limit {
		name = fmt.Sprintf("%d) %s", i+1, name)
	}
	return cut(name, limit)
}

// shortened reports whether what stands for a choice does not have its whole text.
func shortened(r agent.Reply, choice string) bool {
	limit := buttonLimit
	if len(r.Choices) > mostChoices {
		limit = optionLimit
	}
	name := bot.Visible(choice)
	return len(r.Choices) > mostOptions || strings.TrimSpace(name) != name || name == "" || length(name) > limit
}

// chosen is the card and the number of the choice that was pressed, or chosen in a menu.
func (c click) chosen() (card string, n int, ok bool) {
	number, isButton := strings.CutPrefix(c.Action, actionChoice)
	card = c.Value
	if !isButton {
		card, number, _ = strings.Cut(c.Selected.Value, " ")
	}
	n, err := strconv.Atoi(number)
	return card, n, err == nil && n >= 0 && card != ""
}

// choice is the decision that a chosen choice stands for. The card has its text whole; what was pressed may show it cut
// short.
func choice(ctx context.Context, in bot.Receiver, c click) (*agent.Decision, error) {
	id, n, ok := c.chosen()
	d := &agent.Decision{Card: id, Verdict: agent.AnswerIt, Text: c.Text.Text}
	if c.Action == actionMenu {
		d.Text = c.Selected.Text.Text
	}
	card, waiting, err := in.Card(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look up the question %s: %w", id, err)
	}
	if waiting && ok && n < len(card.Choices) {
		d.Text = card.Choices[n]
	}
	return d, nil
}
