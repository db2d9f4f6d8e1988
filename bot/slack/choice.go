package slack

import (
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
		buttons = append(buttons, button(fmt.Sprint(actionChoice, i), r.ID, bot.ChoiceLabel(i, choice, buttonLimit, cut), slack.StyleDefault))
	}
	return buttons
}

func choiceMenu(r agent.Reply) slack.BlockElement {
	menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, label("Choose…"), actionMenu)
	for i, choice := range r.Choices[:min(len(r.Choices), mostOptions)] {
		menu.Options = append(menu.Options, slack.NewOptionBlockObject(r.ID+" "+strconv.Itoa(i), label(bot.ChoiceLabel(i, choice, optionLimit, cut)), nil))
	}
	return menu
}

// shortened reports whether what stands for a choice does not have its whole text.
func shortened(r agent.Reply, choice string) bool {
	limit := buttonLimit
	if len(r.Choices) > mostChoices {
		limit = optionLimit
	}
	return len(r.Choices) > mostOptions || bot.ChoiceLabel(0, choice, limit, cut) != bot.Visible(choice)
}

// chosen is the card and the number of the choice that was pressed, or chosen in a menu, and what it shows.
func (c click) chosen() (card, number, label string) {
	if number, isButton := strings.CutPrefix(c.Action, actionChoice); isButton {
		return c.Value, number, c.Text.Text
	}
	card, number, _ = strings.Cut(c.Selected.Value, " ")
	return card, number, c.Selected.Text.Text
}
