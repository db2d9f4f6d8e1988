package discord

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
	"nudge/bot"
	"nudge/schedule"
)

// notify says what a heartbeat tells: a message like any, with buttons under its end. The receipt is that of the message with
// the buttons.
func (d *Discord) notify(ctx context.Context, p place, r bot.Delivery) (receipt string, err error) {
	parts := messages(rendered(r.Text))
	if !r.TakesFeedback() || len(parts) == 0 {
		return d.tell(ctx, p, r, rendered(r.Text))
	}
	posts := postsOf(parts)
	last := &posts[len(posts)-1]
	last.card, last.components = r.ID, feedbackRows(r.Reply)
	return d.postAll(ctx, p, r, posts)
}

// feedbackRows are one or two buttons, and below them a menu, which takes a row of its own.
func feedbackRows(r agent.Reply) []discordgo.MessageComponent {
	menu := discordgo.SelectMenu{CustomID: customID(actionSnooze, r.ID), Placeholder: "Snooze"}
	for _, span := range schedule.Spans() {
		menu.Options = append(menu.Options, discordgo.SelectMenuOption{Label: bot.SpanWords(span), Value: string(span)})
	}
	buttons := []discordgo.MessageComponent{button(actionUseful, r.ID, "Useful", discordgo.SecondaryButton)}
	if r.TakesLess() {
		buttons = append(buttons, button(actionLess, r.ID, "Less of this", discordgo.SecondaryButton))
	}
	return []discordgo.MessageComponent{row(buttons...), row(menu)}
}

// feedback reads a button of a notify card.
func feedback(action, card, value string) (f *bot.Feedback, ok bool) {
	switch action {
	case actionUseful:
		return &bot.Feedback{Card: card, Said: schedule.Useful}, true
	case actionLess:
		return &bot.Feedback{Card: card, Said: schedule.Less}, true
	case actionSnooze:
		return &bot.Feedback{Card: card, Said: schedule.Snooze, Span: schedule.Span(value)}, true
	}
	return nil, false
}

// judged is a notify card whose person has said what they make of it: what it tells still stands there, and below it what was
// said and what that changes.
func (d *Discord) judged(r agent.Reply, outcome string) string {
	all := messages(rendered(r.Told))
	if len(all) == 0 {
		return outcome
	}
	told := all[len(all)-1]
	if room := textLimit - utf8.RuneCountInString(outcome) - len("…\n"); utf8.RuneCountInString(told) > room {
		told = partsOf(rendered(told), room)[0] + "…"
	}
	return strings.TrimSpace(told + "\n" + outcome)
}
