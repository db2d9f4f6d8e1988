package bot

import (
	"bytes"
	"slices"
	"strings"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/bot/markdown"
)

// hiddenLine stands on a card that does not show all that runs.
const hiddenLine = secret.Mark + " stands for a secret that is not shown. What runs has it; an argument that you leave like that when you edit stays as it is."

// Hide is a reply as it may be shown: without the secrets in it, and where strangers may have had a hand in its words, without
// links; no platform is to make any of those, nor of what stands on the card of a call. A card of which something was hidden says
// so, since otherwise what it shows is what runs.
func Hide(r agent.Reply, secrets *secret.Redactor) agent.Reply {
	shown := r
	shown.Text, shown.Told, shown.Why = secrets.Text(r.Text), secrets.Text(r.Told), secrets.Text(r.Why)
	shown.Arguments, shown.Data = secrets.JSON(r.Arguments), secrets.JSON(r.Data)
	shown.Choices = slices.Clone(r.Choices)
	for i, choice := range shown.Choices {
		shown.Choices[i] = secrets.Text(choice)
	}
	shown.Open = slices.DeleteFunc(slices.Clone(r.Open), func(o agent.Opening) bool {
		return r.Kind == agent.Approval && secrets.Text(o.Within) != o.Within // nobody can agree to bounds that are hidden from them
	})
	for i, o := range shown.Open {
		shown.Open[i].Within = secrets.Text(o.Within)
	}
	shown.Unlinked = r.Tainted || r.Kind == agent.Approval
	if r.Tainted {
		unlink(&shown)
	}
	if r.Kind == agent.Approval && !bytes.Equal(shown.Arguments, r.Arguments) {
		shown.Text = strings.TrimSpace(shown.Text + "\n" + hiddenLine)
	}
	if slices.ContainsFunc(r.Calls, func(call agent.BatchCall) bool { return hasSecret(call, secrets) }) {
		shown.Batch, shown.Calls = nil, nil // decided at once is only what can be read
	}
	return shown
}

func hasSecret(call agent.BatchCall, secrets *secret.Redactor) bool {
	return !bytes.Equal(secrets.JSON(call.Arguments), call.Arguments) || secrets.Text(call.Text) != call.Text
}

// unlink takes the links out of the words of a reply. Arguments, and how they were changed, are not words.
func unlink(r *agent.Reply) {
	r.Text, r.Tainted = markdown.Unlinked(r.Text), false // it is no longer of consequence
	if !strings.HasPrefix(r.Told, "{") && r.Decision != agent.Edit {
		r.Told = markdown.Unlinked(r.Told)
	}
	for i, choice := range r.Choices {
		r.Choices[i] = markdown.Unlinked(choice)
	}
}
