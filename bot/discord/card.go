package discord

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/markdown"
)

func button(action, id, text string, style discordgo.ButtonStyle) discordgo.MessageComponent {
	return discordgo.Button{Label: cut(text, buttonLimit), Style: style, CustomID: customID(action, id)}
}

func row(components ...discordgo.MessageComponent) discordgo.MessageComponent {
	return discordgo.ActionsRow{Components: components}
}

// rows puts buttons into as many rows as they take.
func rows(buttons []discordgo.MessageComponent) (rows []discordgo.MessageComponent) {
	for len(buttons) > 0 {
		n := min(len(buttons), rowLength)
		rows = append(rows, row(buttons[:n]...))
		buttons = buttons[n:]
	}
	return rows
}

// card posts a card with its buttons. One that is too long for a message stands in several, and the last of them, with the
// buttons, refers to the first.
func (d *Discord) card(ctx context.Context, p place, r bot.Delivery) (string, error) {
	parts := messages(d.cardText(r.Reply))
	if len(parts) == 0 {
		parts = []string{"A question without words."}
	}
	var posts []post
	for _, part := range parts {
		posts = append(posts, post{text: part})
	}
	last := &posts[len(posts)-1]
	last.card, last.components, last.whole = r.ID, components(r.Reply), len(posts) > 1
	return d.postAll(ctx, p, r, posts)
}

// cardText is all that a card says. Nothing in it is markup but what is written here.
func (d *Discord) cardText(r agent.Reply) *markdown.Text {
	out := &markdown.Text{}
	if r.Kind != agent.Approval {
		out.Write(escape(bot.Visible(r.Text)))
		for i, choice := range r.Choices {
			if shortened(r, choice) {
				out.Lines(1)
				out.Write(escape(fmt.Sprintf("%d) %s", i+1, strings.ReplaceAll(bot.Visible(choice), "\n", `\u{A}`))))
			}
		}
		return out
	}
	before, tool, after := bot.Question(r)
	out.Write(before)
	if tool != "" {
		out.Whole("**" + escape(bot.Visible(tool)) + "**")
		out.Write(after)
	}
	out.Lines(1)
	if r.Why != "" {
		out.Write(escape(bot.Visible(r.Why)))
		out.Lines(1)
	}
	writeCode(out, bot.ArgumentsText(r.Arguments))
	switch text := bot.Visible(r.Text); {
	case strings.Contains(text, "\n"): // a diff, or a list
		out.Lines(1)
		writeCode(out, text)
	case text != "":
		out.Lines(1)
		out.Write(escape(text))
	}
	out.Lines(1)
	out.Write(escape(d.deciders(r)))
	if r.Expires != nil {
		out.Write(" until ")
		out.Whole(clock(*r.Expires))
	}
	if len(r.Batch) > 0 {
		out.Lines(1)
		out.Write(bot.BatchHead(r))
		out.Lines(1)
		writeCode(out, bot.BatchText(r))
	}
	return out
}

// components are the buttons of a card.
func components(r agent.Reply) []discordgo.MessageComponent {
	switch r.Kind {
	case agent.Ask:
		return append(choices(r, 1), row(button(actionAnswer, r.ID, "Answer…", discordgo.SecondaryButton)))
	case agent.Notice:
		return choices(r, 0)
	}
	approve, deny := bot.ButtonWords(r)
	buttons := []discordgo.MessageComponent{
		button(actionApprove, r.ID, approve, discordgo.SuccessButton),
		button(actionDeny, r.ID, deny, discordgo.DangerButton),
	}
	if !r.Parked {
		buttons = append(buttons, button(actionEdit, r.ID, "Edit", discordgo.SecondaryButton))
	}
	if r.Always != nil {
		buttons = append(buttons, button(actionAlways, r.ID, "Always allow this…", discordgo.SecondaryButton))
	}
	if len(r.Batch) == 0 {
		return rows(buttons)
	}
	approveAll, denyAll := bot.BatchWords(r)
	return append(rows(buttons), row(
		button(actionApproveAll, r.ID, approveAll, discordgo.SuccessButton),
		button(actionDenyAll, r.ID, denyAll, discordgo.DangerButton),
	))
}

// deciders says who may decide.
func (d *Discord) deciders(r agent.Reply) string {
	var names []string
	for _, who := range r.MayDecide {
		names = append(names, cut(d.called(who), 100))
	}
	return cut(strings.Join(names, ", "), 1000) + " may decide"
}

// called is a person's name where it is known, with the id that tells who it is.
func (d *Discord) called(id string) string {
	if name, known := d.rooms.names.Get(strings.TrimPrefix(id, platform+":")); known && name != "" {
		return bot.Visible(name) + " (" + id + ")"
	}
	return id
}

// clock is an instant that Discord shows in each reader's own zone.
func clock(t time.Time) string { return fmt.Sprintf("<t:%d:f>", t.Unix()) }

// outcome is what a card says after it was decided: what, by whom, and when.
func (d *Discord) outcome(r agent.Reply, now time.Time) string {
	if r.At != nil {
		now = *r.At
	}
	until, by, open := r.Always, r.By, r.Open
	r.Always, r.Open = nil, nil // Discord shows the time in the reader's own zone, and what is left open as code
	text := cut(escape(strings.TrimSpace(bot.DecidedText(r))), outcomeLimit)
	if until != nil {
		text += " until " + clock(*until)
	}
	if user := userOf(agent.PersonID(by)); user != "" {
		// A mention that notifies nobody shows the name that people know.
		text = strings.Replace(text, "by "+escape(by), "by <@"+user+">", 1)
	}
	text += " (" + clock(now) + ")" + askedOf(r)
	if room := textLimit - utf8.RuneCountInString(text) - len("\nwith ``"); len(open) > 0 && room > 0 {
		text += "\nwith `" + cut(strings.ReplaceAll(bot.Visible(agent.OpenText(open)), "`", `\u{60}`), room) + "`"
	}
	return text
}

// askedOf is the line of an outcome that shows what its card asked, with the answer to a question; "" where none is known.
func askedOf(r agent.Reply) string {
	if r.Told == "" || r.IsFeedback() {
		return ""
	}
	line := "\n" + asked(bot.Visible(r.Told))
	if r.Decision == agent.AnswerIt {
		line += " → " + cut(escape(bot.Visible(r.Text)), askedLimit)
	}
	return line
}

// asked shows what a card asked: arguments as code, in which a backtick is written as JSON can, and a question as words.
func asked(about string) string {
	if !strings.HasPrefix(about, "{") || strings.Contains(about, "\n") {
		return cut(escape(about), askedLimit)
	}
	return "`" + cut(strings.ReplaceAll(about, "`", `\u0060`), askedLimit) + "`"
}
