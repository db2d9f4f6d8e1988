package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/bot"
)

// reload is the kind of a line that tells a tab to ask for a new snapshot: the conversation has another session now.
const reload agent.Kind = "reload"

// line is a reply as the page gets it: what cards say is told a second time, with nothing hidden in it.
type line struct {
	agent.Reply
	// Parcel is the same for the same reply wherever it turns up, so that the page shows it once; "" when it can
	// turn up in one place only.
	Parcel string `json:"parcel,omitempty"`
	// Shown are the arguments of an approval as a person reads them.
	Shown string `json:"shown,omitempty"`
	// Asks is what an approval asks, where that does not name its tool.
	Asks string `json:"asks,omitempty"`
	// Labels are the choices of a question as a person reads them, or the words on the first two buttons of an approval.
	Labels []string `json:"labels,omitempty"`
	// AlwaysMeans says, up to the time, what it means to allow an approval's call always.
	AlwaysMeans string `json:"always_means,omitempty"`
	// OpenMeans says the same of allowing it always with something left open, where that can be.
	OpenMeans string `json:"open_means,omitempty"`
	// Together says what the calls of a batch are, and TogetherLabels the words on the buttons that decide all of them.
	Together       string     `json:"together,omitempty"`
	TogetherLabels []string   `json:"together_labels,omitempty"`
	At             *time.Time `json:"at,omitempty"`
	// NoLinks says that the page is to make a link of nothing in it.
	NoLinks bool `json:"no_links,omitempty"`
}

// lineOf is a reply for the page.
func lineOf(r agent.Reply, parcel string) line {
	l := line{Reply: r, Parcel: parcel, NoLinks: r.Unlinked}
	switch r.Kind {
	case agent.Approval:
		l.Shown = bot.ArgumentsText(r.Arguments)
		approve, deny := bot.ButtonWords(r)
		l.Labels = []string{approve, deny}
		if before, tool, _ := bot.Question(r); tool == "" {
			l.Asks = before
		}
		if len(r.Batch) > 0 {
			approve, deny := bot.BatchWords(r)
			l.Together, l.TogetherLabels = bot.BatchHead(r)+"\n"+bot.BatchText(r), []string{approve, deny}
		}
		if r.Always != nil {
			l.AlwaysMeans = "From now on " + bot.AlwaysText("")
		}
		if len(r.Open) > 0 {
			l.OpenMeans = "From now on " + bot.OpenedText("")
		}
	case agent.Ask, agent.Notice:
		for _, choice := range r.Choices {
			l.Labels = append(l.Labels, bot.Visible(choice))
		}
	}
	return l
}

// without is the line without secrets, and without links where there are to be none. What was put aside is so already.
func (l line) without(secrets *secret.Redactor) line {
	clean := lineOf(bot.Hide(l.Reply, secrets), l.Parcel)
	l.Reply, l.Shown, l.Labels = clean.Reply, clean.Shown, clean.Labels
	l.Together, l.TogetherLabels, l.OpenMeans = clean.Together, clean.TogetherLabels, clean.OpenMeans
	l.NoLinks = l.NoLinks || clean.NoLinks
	return l
}

// visible is the line with the words of cards as a person reads them.
func (l line) visible() line {
	if l.IsCard() {
		l.Text, l.Why = bot.Visible(l.Text), bot.Visible(l.Why)
	}
	if l.Kind == agent.DecidedMark {
		l.Told = bot.Visible(l.Told)
	}
	l.Open = slices.Clone(l.Open)
	for i, o := range l.Open {
		l.Open[i].Within = bot.Visible(o.Within)
	}
	return l
}

// encoded is the JSON of a line for the page.
func (l line) encoded() ([]byte, error) {
	data, err := json.Marshal(l.visible())
	if err != nil {
		return nil, fmt.Errorf("encode a %s for the page: %w", l.Kind, err)
	}
	return data, nil
}

// identity is the same for a reply that was read from the journal and for the same one from the outbox; "" for
// kinds that the journal does not tell.
func (l line) identity() string {
	switch l.Kind {
	case agent.Final, agent.Notice:
		if l.IsCard() {
			return fmt.Sprint(l.Kind, " ", l.ID)
		}
		if l.Turn != "" {
			return fmt.Sprint(l.Kind, " ", l.Turn, " ", l.Text)
		}
	case agent.Approval, agent.Ask, agent.DecidedMark:
		return fmt.Sprint(l.Kind, " ", l.ID)
	case agent.Notify:
		if l.ID != "" {
			return fmt.Sprint(l.Kind, " ", l.ID)
		}
		return fmt.Sprint(l.Kind, " ", l.Heartbeat, " ", l.Text)
	}
	return ""
}
