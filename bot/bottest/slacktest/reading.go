package slacktest

import (
	"regexp"
	"strings"
)

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

// Links are what people can press in a message: what stands between < and >, and, unless that was turned off for a text, what
// Slack makes a link of by itself, in code as well (docs.slack.dev/reference/methods/chat.postMessage and chat.update under
// parse, docs.slack.dev/reference/block-kit/composition-objects/text-object under verbatim). The text of a message with blocks
// is shown where there is no room for them, and counts as well. It errs towards more links.
func (m Message) Links() []string {
	links := linksIn(m.Text, m.Parse == "none")
	for _, b := range m.Blocks {
		if b.Text != nil && b.Text.Type == "mrkdwn" {
			links = append(links, linksIn(b.Text.Text, b.Text.Verbatim)...)
		}
		for _, e := range b.Elements {
			if e.Type == "mrkdwn" {
				links = append(links, linksIn(e.Label(), e.Verbatim)...)
			}
			for _, part := range e.Parts {
				if part.Type == "link" {
					links = append(links, part.Label())
				}
			}
		}
	}
	return links
}

// found is what Slack takes for an address: with a scheme, a name that ends as names of the web do, one of mail, and a number of a
// telephone.
var found = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s<>|]+|(?:mailto|tel|sms):[^\s<>|]+|` +
	`[\w.+-]+@[\w-]+(?:\.[\w-]+)+|` +
	`[\pL\pN-]+(?:[.。．｡][\pL\pN-]+)*[.。．｡](?:com|net|org|io|md|sh|py|rs|gg|test|xn--[a-z0-9-]+|рф|ｃｏｍ)(?:[:/?#][^\s<>|]*)?|` +
	`\+?\d[\d-]{7,}\d`)

func linksIn(text string, verbatim bool) (links []string) {
	read := Read(text)
	for _, l := range read.Links {
		links = append(links, l.Target)
	}
	for _, call := range read.Calls {
		if !strings.HasPrefix(call, "!date") {
			links = append(links, call)
		}
	}
	if !verbatim {
		links = append(links, found.FindAllString(read.Shown, -1)...)
	}
	return links
}
