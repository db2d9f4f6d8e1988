package slack

import (
	"context"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
	"nudge/schedule"
)

// The action ids under a notify card. The buttons hold the card's id, an entry of the menu has the span behind it.
const (
	actionUseful = "nudge_useful"
	actionLess   = "nudge_less"
	actionSnooze = "nudge_snooze"
)

// notify says what a heartbeat tells: a message like any, with a row of buttons under its end. The receipt is that of the
// message with the row.
func (s *Slack) notify(ctx context.Context, p place, d bot.Delivery) (receipt string, err error) {
	if !d.TakesFeedback() || length(d.Text) > wholeLimit || strings.TrimSpace(d.Text) == "" {
		return s.tell(ctx, p, d, rendered)
	}
	posts := postsOf(messages(rendered(d.Text), textLimit))
	last := &posts[len(posts)-1]
	last.card, last.blocks = d.ID, append(paragraphs(last.text), feedbackRow(d.Reply))
	return s.postAll(ctx, p, d, posts)
}

// paragraphs show a text in Slack's markup, whole.
func paragraphs(text string) (blocks []slack.Block) {
	for _, piece := range split(text, sectionLimit) {
		blocks = append(blocks, paragraph(piece))
	}
	return blocks
}

func feedbackRow(r agent.Reply) slack.Block {
	var entries []*slack.OptionBlockObject
	for _, span := range schedule.Spans() {
		entries = append(entries, slack.NewOptionBlockObject(r.ID+" "+string(span), label(bot.SpanWords(span)), nil))
	}
	elements := []slack.BlockElement{button(actionUseful, r.ID, "Useful", slack.StyleDefault)}
	if r.TakesLess() {
		elements = append(elements, button(actionLess, r.ID, "Less of this", slack.StyleDefault))
	}
	return row(r.Address, append(elements, slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, label("Snooze"), actionSnooze, entries...))...)
}

// feedback reads a button of a notify card.
func (c click) feedback() (f *bot.Feedback, ok bool) {
	switch c.Action {
	case actionUseful:
		return &bot.Feedback{Card: c.Value, Said: schedule.Useful}, true
	case actionLess:
		return &bot.Feedback{Card: c.Value, Said: schedule.Less}, true
	case actionSnooze:
		card, span, _ := strings.Cut(c.Selected.Value, " ")
		return &bot.Feedback{Card: card, Said: schedule.Snooze, Span: schedule.Span(span)}, true
	}
	return nil, false
}

// judged is a notify card whose person has said what they make of it: what it tells still stands there, and in place of the
// row what was said and what that changes.
func (s *Slack) judged(r agent.Reply, now time.Time) (text string, blocks []slack.Block) {
	if r.At != nil {
		now = *r.At
	}
	outcome := s.outcome(r, now)
	told := ""
	if parts := messages(rendered(r.Told), textLimit); len(parts) > 0 {
		told = parts[len(parts)-1]
		blocks = paragraphs(told)
	}
	blocks = append(blocks, remark(outcome))
	return strings.TrimPrefix(cut(told, textLimit-length(outcome)-1)+"\n"+outcome, "\n"), blocks
}
