package slack

import (
	"strings"
)

// entities are the three that Slack escapes. They are undone once.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// mentions reports whether a text as Slack sends it mentions a person.
func mentions(raw, user string) bool {
	return user != "" && (strings.Contains(raw, "<@"+user+">") || strings.Contains(raw, "<@"+user+"|"))
}

// plain is a text as Slack sends it in plain words: without the mention of the bot itself, with names for mentions and
// addresses for links, and unescaped once. name gives a person's name, or "".
func plain(raw, self string, name func(user string) string) string {
	var b strings.Builder
	for raw != "" {
		open := strings.IndexByte(raw, '<')
		if open < 0 {
			break
		}
		shut := strings.IndexByte(raw[open:], '>')
		if shut < 0 {
			break
		}
		b.WriteString(entities.Replace(raw[:open]))
		token := raw[open+1 : open+shut]
		raw = raw[open+shut+1:]
		if id, _, _ := strings.Cut(token, "|"); self != "" && id == "@"+self {
			raw = withoutMention(&b, raw)
			continue
		}
		b.WriteString(entities.Replace(spellOut(token, name)))
	}
	b.WriteString(entities.Replace(raw))
	return strings.TrimSpace(b.String())
}

// withoutMention takes away what stood around a mention of the bot and belongs to it.
func withoutMention(b *strings.Builder, rest string) string {
	if strings.TrimSpace(b.String()) == "" {
		return strings.TrimLeft(rest, " \t,:\u00a0")
	}
	if strings.HasSuffix(b.String(), " ") {
		return strings.TrimPrefix(rest, " ")
	}
	return rest
}

// spellOut is what stands between < and > in words.
func spellOut(token string, name func(string) string) string {
	target, label, labelled := strings.Cut(token, "|")
	if target == "" {
		return "<" + token + ">"
	}
	switch target[0] {
	case '@':
		if labelled && label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		if known := name(target[1:]); known != "" {
			return "@" + known
		}
		return target
	case '#':
		if labelled && label != "" {
			return "#" + strings.TrimPrefix(label, "#")
		}
		return target
	case '!':
		if labelled && label != "" {
			return label
		}
		word, _, _ := strings.Cut(target[1:], "^")
		return "@" + word
	}
	return linkWords(target, label)
}

// linkWords is a link in words.
func linkWords(target, label string) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(target, "https://"), "http://"), "mailto:")
	switch {
	case strings.HasPrefix(target, "mailto:") && (label == "" || label == bare):
		return bare
	case label == "", label == target, strings.TrimSuffix(label, "/") == strings.TrimSuffix(bare, "/"):
		return target
	}
	return label + " (" + target + ")"
}
