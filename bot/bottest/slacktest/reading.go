package slacktest

import "strings"

// Reading is what Slack makes of the text of a message that an app posts.
type Reading struct {
	Calls []string // what notifies somebody or leads into a channel: "@U1", "!channel", "#C1"
	Links []Link   // addresses that are links by < and >
	Code  []string // what stands in blocks of code, unescaped
	Shown string   // what people see, but for the marks of emphasis, which are left in it
	Fault string   // what Slack would have had to guess; "" if nothing
}

// Link is a link in a text.
type Link struct{ Target, Label string }

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// Read reads a text in Slack's markup, as https://docs.slack.dev/messaging/formatting-message-text describes it.
func Read(text string) Reading {
	var r Reading
	for i, part := range strings.Split(text, "```") {
		before := len(r.Shown)
		r.read(part)
		if i%2 == 1 {
			r.Code = append(r.Code, strings.Trim(r.Shown[before:], "\n"))
		}
	}
	if strings.Count(text, "```")%2 == 1 {
		r.Fault = "a block of code is never closed"
	}
	return r
}

func (r *Reading) read(text string) {
	for text != "" {
		open := strings.IndexAny(text, "<>")
		if open < 0 {
			open = len(text)
		}
		r.words(text[:open])
		text = text[open:]
		shut := strings.IndexByte(text, '>')
		switch {
		case text == "":
		case text[0] == '>' || shut < 0:
			r.Fault = "there is a bare < or >"
			r.Shown += text[:1]
			text = text[1:]
		default:
			r.token(text[1:shut])
			text = text[shut+1:]
		}
	}
}

func (r *Reading) words(text string) {
	for rest := text; ; {
		at := strings.IndexByte(rest, '&')
		if at < 0 {
			break
		}
		rest = rest[at:]
		if !strings.HasPrefix(rest, "&amp;") && !strings.HasPrefix(rest, "&lt;") && !strings.HasPrefix(rest, "&gt;") {
			r.Fault = "there is a bare &"
		}
		rest = rest[1:]
	}
	r.Shown += unescape.Replace(text)
}

func (r *Reading) token(token string) {
	if token == "" || strings.ContainsAny(token, "<\n") {
		r.Fault = "there is a < that begins nothing"
	}
	target, label, _ := strings.Cut(token, "|")
	if strings.ContainsAny(target[:min(1, len(target))], "@#!") {
		r.Calls = append(r.Calls, target)
	} else {
		r.Links = append(r.Links, Link{unescape.Replace(target), unescape.Replace(label)})
	}
	if label == "" {
		label = target
	}
	r.words(label)
}
