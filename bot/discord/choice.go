package discord

import (
	"fmt"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
	"nudge/bot"
)

// choices are the choices of a question as buttons, or as a menu where they are more than fit beside some other rows. Those for
// which there is no room stand in its text all the same.
func choices(r agent.Reply, otherRows int) []discordgo.MessageComponent {
	if len(r.Choices) > mostButtons(otherRows) {
		return []discordgo.MessageComponent{row(choiceMenu(r))}
	}
	var buttons []discordgo.MessageComponent
	for i, choice := range r.Choices {
		buttons = append(buttons, button(fmt.Sprint(actionChoice, i), r.ID, bot.ChoiceLabel(i, choice, buttonLimit, cut), discordgo.PrimaryButton))
	}
	return rows(buttons)
}

func mostButtons(otherRows int) int { return (mostRows - otherRows) * rowLength }

func choiceMenu(r agent.Reply) discordgo.MessageComponent {
	menu := discordgo.SelectMenu{CustomID: customID(actionMenu, r.ID), Placeholder: "Choose…"}
	for i, choice := range r.Choices[:min(len(r.Choices), mostOptions)] {
		menu.Options = append(menu.Options, discordgo.SelectMenuOption{Label: bot.ChoiceLabel(i, choice, optionLimit, cut), Value: strconv.Itoa(i)})
	}
	return menu
}

// shortened reports whether what stands for a choice does not have its whole text.
func shortened(r agent.Reply, choice string) bool {
	return len(r.Choices) > mostOptions || bot.ChoiceLabel(0, choice, buttonLimit, cut) != bot.Visible(choice)
}
