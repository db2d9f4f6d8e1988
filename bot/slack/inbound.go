package slack

import (
	"strconv"
	"strings"
	"time"
)

// What people say is read from the text of a message and not from its rich_text block. The text is what Slack guarantees for
// every client, edit and mention; a block would have to be written back into marks, and whoever writes marks that were never
// typed is no longer verbatim. So marks, names of emoji and fences reach the model as they stand in the text, and only what
// Slack itself has put there is undone: the mentions, links and dates between < and >, and the three entities.

// entities are the three that Slack escapes. They are undone once.
// See https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// mentions reports whether a text as Slack sends it mentions a person.
func mentions(raw, user string) bool {
	return user != "" && (strings.Contains(raw, "<@"+user+">") || strings.Contains(raw, "<@"+user+"|"))
}

// plain is a text as Slack sends it in plain words: without the mention of the bot itself, with names for mentions and
// addresses for links, and unescaped once. In code a link is what was typed. name gives a person's name, or "".
func plain(raw, self string, name func(user string) string) string {
	h := hearing{self: self, name: name, code: codeIn(raw), called: map[string]string{}}
	for at := 0; at < len(raw); {
		open := strings.IndexByte(raw[at:], '<')
		if open < 0 {
			h.out.WriteString(entities.Replace(raw[at:]))
			break
		}
		open += at
		shut := strings.IndexByte(raw[open:], '>')
		if shut < 0 {
			h.out.WriteString(entities.Replace(raw[at:]))
			break
		}
		h.out.WriteString(entities.Replace(raw[at:open]))
		at = open + shut + 1
		at += h.token(raw[open+1:at-1], open, raw[at:])
	}
	return strings.TrimSpace(h.out.String())
}

// hearing spells out what stands in a text of Slack's.
type hearing struct {
	self   string
	name   func(string) string
	code   []stretch
	called map[string]string // who was called by a name: the name → the id
	out    strings.Builder
}

// stretch is a part of a text, in bytes.
type stretch struct{ begin, end int }

// token writes what stands between < and > at some place of the text, and says how much of the rest goes with it.
func (h *hearing) token(token string, at int, rest string) (skip int) {
	target, label, _ := strings.Cut(token, "|")
	switch {
	case target == "", strings.ContainsAny(token, "<\n"): // nothing of Slack's
		h.out.WriteString(entities.Replace("<" + token + ">"))
	case h.self != "" && target == "@"+h.self:
		return h.withoutMention(rest)
	case target[0] == '@':
		h.out.WriteString(h.person(target[1:], entities.Replace(label)))
	default:
		h.out.WriteString(spellOut(entities.Replace(target), entities.Replace(label), h.inCode(at)))
	}
	return 0
}

// withoutMention says how much of what follows a mention of the bot belongs to it.
func (h *hearing) withoutMention(rest string) int {
	said := h.out.String()
	switch {
	case strings.TrimSpace(said) == "":
		return len(rest) - len(strings.TrimLeft(rest, " \t,:\u00a0"))
	case strings.HasSuffix(said, " "):
		return len(rest) - len(strings.TrimPrefix(rest, " "))
	}
	return 0
}

// person is what a person who is mentioned is called. The id stands behind a name that two of them have, and for a name that
// is not known.
func (h *hearing) person(id, label string) string {
	called := strings.TrimPrefix(label, "@")
	if called == "" {
		called = h.name(id)
	}
	if called == "" {
		return "@" + id
	}
	if other, taken := h.called[called]; taken && other != id {
		return "@" + called + " (" + id + ")"
	}
	h.called[called] = id
	return "@" + called
}

// spellOut is what else stands between < and > in words: a channel, a group or all who are there, a date, or a link.
func spellOut(target, label string, code bool) string {
	switch target[0] {
	case '#':
		if label != "" {
			return "#" + strings.TrimPrefix(label, "#")
		}
		return target
	case '!':
		return command(target[1:], label)
	}
	return linkWords(target, label, code)
}

// command is what begins with a ! in words.
func command(command, label string) string {
	word, rest, _ := strings.Cut(command, "^")
	switch word {
	case "here", "channel", "everyone":
		return "@" + word
	case "date":
		return date(rest, label)
	case "subteam":
		if label == "" {
			return "@" + rest
		}
		return "@" + strings.TrimPrefix(label, "@")
	}
	if label != "" {
		return label
	}
	return "@" + word
}

// date is an instant that Slack shows in each reader's own way: as the text that stands for it elsewhere, or in UTC.
func date(date, label string) string {
	seconds, _, _ := strings.Cut(date, "^")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	switch {
	case label != "":
		return label
	case err != nil:
		return date
	}
	return time.Unix(unix, 0).UTC().Format("2006-01-02 15:04 UTC")
}

// linkWords is a link in words. In code the label is what was typed; Slack has made a link of it.
func linkWords(target, label string, code bool) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(target, "https://"), "http://"), "mailto:")
	bare = strings.TrimPrefix(bare, "tel:")
	mail := strings.HasPrefix(target, "mailto:") || strings.HasPrefix(target, "tel:")
	switch {
	case code && label != "":
		return label
	case mail && (label == "" || label == bare):
		return bare
	case label == "", label == target, strings.TrimSuffix(label, "/") == strings.TrimSuffix(bare, "/"):
		return target
	}
	return label + " (" + target + ")"
}

// codeIn finds the code in a text as Slack sends it: blocks between fences, and stretches between backticks within a line.
func codeIn(raw string) []stretch {
	var code []stretch
	for at := 0; at < len(raw); {
		open := strings.IndexByte(raw[at:], '`')
		if open < 0 {
			break
		}
		open += at
		mark, within := "`", raw[open+1:]
		if strings.HasPrefix(raw[open:], fence) {
			mark, within = fence, raw[open+len(fence):]
		} else if end := strings.IndexByte(within, '\n'); end >= 0 {
			within = within[:end]
		}
		begin := open + len(mark)
		shut := strings.Index(within, mark)
		if shut < 0 {
			at = begin
			continue
		}
		code = append(code, stretch{begin, begin + shut})
		at = begin + shut + len(mark)
	}
	return code
}

// inCode reports whether a place lies in code. Places are asked for in order.
func (h *hearing) inCode(at int) bool {
	for len(h.code) > 0 && h.code[0].end <= at {
		h.code = h.code[1:]
	}
	return len(h.code) > 0 && h.code[0].begin <= at
}
