package discord

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

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
		buttons = append(buttons, button(fmt.Sprint(actionChoice, i), r.ID, choiceLabel(i, choice, buttonLimit), discordgo.PrimaryButton))
	}
	return rows(buttons)
}

func mostButtons(otherRows int) int { return (mostRows - otherRows) * rowLength }

func choiceMenu(r agent.Reply) discordgo.MessageComponent {
	menu := discordgo.SelectMenu{CustomID: customID(actionMenu, r.ID), Placeholder: "Choose…"}
	for i, choice := range r.Choices[:min(len(r.Choices), mostOptions)] {
		menu.Options = append(menu.Options, discordgo.SelectMenuOption{Label: choiceLabel(i, choice, optionLimit), Value: strconv.Itoa(i)})
	}
	return menu
}

// choiceLabel is a choice in a place of limited length. One that is cut short has its number in the text.
func choiceLabel(i int, choice string, limit int) string {
	name := strings.TrimSpace(bot.Visible(choice))
	if name == "" || utf8.RuneCountInString(name) > limit {
		name = fmt.Sprintf("%d) %s", i+1, name)
	}
	return cut(name, limit)
}

// shortened reports whether what stands for a choice does not have its whole text.
func shortened(r agent.Reply, choice string) bool {
	name := bot.Visible(choice)
	return len(r.Choices) > mostOptions || strings.TrimSpace(name) != name || name == "" || utf8.RuneCountInString(name) > buttonLimit
}

// choice is the decision that a chosen choice stands for. The card has its text whole; what was pressed may show it cut short.
// It gives nil where the card is not there any more and what was pressed does not tell.
func choice(ctx context.Context, in bot.Receiver, card, number, label string) (*agent.Decision, error) {
	n, err := strconv.Atoi(number)
	d := &agent.Decision{Card: card, Verdict: agent.AnswerIt, Text: label}
	if err != nil || n < 0 {
		return d, nil
	}
	asked, waiting, err := in.Card(ctx, card)
	if err != nil {
		return nil, fmt.Errorf("look up the question %s: %w", card, err)
	}
	if waiting && n < len(asked.Choices) {
		d.Text = asked.Choices[n]
	}
	return d, nil
}
