package bot

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"nudge/agent"
)

// Cut shortens a text to at most limit characters, as a platform counts them. What is cut off is marked with "…".
type Cut func(text string, limit int) string

// ChoiceLabel is a choice of a question in a place of limited length. One that is cut short has its number in the text.
func ChoiceLabel(i int, choice string, limit int, cut Cut) string {
	name := strings.TrimSpace(Visible(choice))
	if name == "" || cut(name, limit) != name {
		name = fmt.Sprintf("%d) %s", i+1, name)
	}
	return cut(name, limit)
}

// Chosen is the decision that a chosen choice stands for. The card has its text whole; the label that was pressed may show it cut
// short, and stands for it where the card is not there any more.
func Chosen(ctx context.Context, in Receiver, card, number, label string) (*agent.Decision, error) {
	d := &agent.Decision{Card: card, Verdict: agent.AnswerIt, Text: label}
	n, err := strconv.Atoi(number)
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
