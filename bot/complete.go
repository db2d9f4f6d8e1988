package bot

import (
	"context"
	"strings"

	"nudge/agent"
	"nudge/schedule"
)

// Completion is a command, or the beginning of one, that a person may mean.
type Completion struct {
	Words string // as it is typed behind "nudge"
	About string // in words, for display
}

// Complete gives what a person may mean who has typed the beginning of a command: the commands, or what the command is about
// that they have typed already. People who are not let in are told nothing.
func (h *Hub) Complete(ctx context.Context, of agent.Person, typed string) (completions []Completion, err error) {
	o, err := h.Overview(ctx, of, Member)
	if err != nil || !o.Served {
		return nil, err
	}
	typed = strings.ToLower(strings.TrimLeft(typed, " "))
	add := func(words, about string) {
		if strings.HasPrefix(strings.ToLower(words), typed) {
			completions = append(completions, Completion{words, oneLine(about)})
		}
	}
	word, _ := cutWord(typed)
	if !strings.ContainsRune(typed, ' ') {
		for _, c := range chatCommands() {
			add(c.name, c.help)
		}
		if len(completions) != 1 {
			return completions, nil
		}
		word, typed = completions[0].Words, completions[0].Words
	}
	switch word {
	case "approve", "deny", "edit", "answer":
		for _, card := range o.Cards {
			if (card.Kind == agent.Ask) == (word == "answer") {
				add(word+" "+card.ID, strings.TrimSpace(card.Tool+" "+string(card.Arguments)+" "+card.Text))
			}
		}
	case "useful", "less":
		for _, b := range o.Heartbeats {
			add(word+" "+b.Name, b.Schedule)
		}
	case "snooze":
		for _, span := range schedule.Spans() {
			add(word+" "+string(span), SpanWords(span))
			for _, b := range o.Heartbeats {
				add(word+" "+string(span)+" "+b.Name, SpanWords(span)+", only "+b.Name)
			}
		}
		add(word+" off", "ends every snooze")
	}
	return completions, nil
}
