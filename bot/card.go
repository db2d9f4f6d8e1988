package bot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"nudge/agent"
)

// CardText is what a card says, whole, in plain text: for platforms and people without buttons, and for the text that a
// message with buttons carries besides them. Nothing in it is hidden: characters that are not seen are written out.
func CardText(r agent.Reply) string {
	var b strings.Builder
	if r.Kind == agent.Ask {
		fmt.Fprintf(&b, "%s", Visible(r.Text))
		for i, choice := range r.Choices {
			fmt.Fprintf(&b, "\n  %d) %s", i+1, Visible(choice))
		}
		fmt.Fprintf(&b, "\nReply here, or: /answer %s your words", r.ID)
		return b.String()
	}
	fmt.Fprintf(&b, "May I run %s?", r.Tool)
	fmt.Fprintf(&b, "\n%s", Visible(indented(r.Arguments)))
	if r.Text != "" {
		fmt.Fprintf(&b, "\n%s", Visible(r.Text))
	}
	fmt.Fprintf(&b, "\n%s may decide", strings.Join(r.MayDecide, ", "))
	if r.Expires != nil {
		fmt.Fprintf(&b, " until %s", r.Expires.Local().Format(time.DateTime))
	}
	fmt.Fprintf(&b, ".  /approve %s   /deny %s [reason]   /edit %s {arguments}", r.ID, r.ID, r.ID)
	return b.String()
}

func indented(arguments json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, arguments, "", "  ") != nil {
		return string(arguments)
	}
	return b.String()
}

// DecidedText is what a card says after it was decided.
func DecidedText(r agent.Reply) string {
	what := r.Tool
	by := r.By
	if by == "" {
		by = "nobody in time"
	}
	words := map[agent.Verdict]string{
		agent.Approve: "approved by " + by, agent.Edit: "approved with changes by " + by, agent.Deny: "denied by " + by,
		agent.AnswerIt: "answered by " + by, agent.Expire: "expired: decided by nobody in time", agent.Withdrawn: "withdrawn",
	}[r.Decision]
	if r.Text != "" && r.Decision == agent.Deny {
		words += ": " + Visible(r.Text)
	}
	return fmt.Sprintf("%s (%s): %s", what, r.ID, words)
}

// Visible writes out characters that a reader would not see, or that would change how the text around them looks:
// control and format characters, such as those that turn the direction of writing, and spaces other than the common one.
func Visible(text string) string {
	hidden := func(r rune) bool {
		switch {
		case r == '\n', r == '\t', r == ' ':
			return false
		}
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) || r == unicode.ReplacementChar ||
			unicode.In(r, unicode.Zl, unicode.Zp, unicode.Co) || r == '\u3164' || r == '\u115f' || r == '\u1160'
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "\\u{%X}", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
