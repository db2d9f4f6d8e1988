package slack

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"nudge/bot/markdown"
)

const fence = "```"

// length is a text's length as Slack counts it at most: in UTF-16, and with what is escaped as it is sent.
func length(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// within is how many bytes of a text make up at most limit characters.
func within(text string, limit int) int {
	n := 0
	for i, r := range text {
		if n += utf16.RuneLen(r); n > limit {
			return i
		}
	}
	return len(text)
}

// cut shortens a text to at most limit characters. What is cut off is marked.
func cut(text string, limit int) string {
	if length(text) <= limit {
		return text
	}
	return text[:whole(text, within(text, limit-1))] + "…"
}

// whole moves a cut forward in the text to where nothing is cut through: no character as people see it, no entity and no
// link. If there is no such place it only spares runes.
func whole(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	last, end := 0, 0
	for rest := text; end <= at && rest != ""; rest = text[end:] {
		last = end
		n := len(token(rest))
		if n == 0 {
			n = len(graphemes.FromString(rest).First())
		}
		end += n
	}
	if last > 0 {
		return last
	}
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	if at == 0 {
		return end
	}
	return at
}

// verbatim is a text as it is, but for the fences that Slack sees in it.
func verbatim(text string) *markdown.Text {
	out := &markdown.Text{Escape: escape, Size: length}
	scan(out, markdown.Clean(text), out.Write)
	return out
}

// split makes messages of at most limit characters out of a text in Slack's markup. limit must be 64 or more.
func split(text string, limit int) []string {
	out := &markdown.Text{Size: length}
	scan(out, text, func(words string) { writeMarkup(out, words) })
	return messages(out, limit)
}

// messages are the messages that a text makes, without those that say nothing, which Slack would refuse.
func messages(text *markdown.Text, limit int) []string {
	var out []string
	for _, part := range text.Split(limit) {
		if tells(part) {
			out = append(out, part)
		}
	}
	return out
}

// tells reports whether there is anything to be seen in a text in Slack's markup.
func tells(markup string) bool {
	return strings.ContainsFunc(strings.ReplaceAll(markup, fence, ""), func(r rune) bool { return !unicode.IsSpace(r) && string(r) != apart })
}

// scan writes a text in which each fence opens or closes a block of code, also in the middle of a line.
func scan(out *markdown.Text, text string, write func(string)) {
	for code := false; text != ""; code = !code {
		part, rest, more := strings.Cut(text, fence)
		switch {
		case code:
			out.Open(fenced(part, more))
			write(strings.TrimSuffix(strings.TrimPrefix(part, "\n"), "\n"))
			out.Close()
		default:
			write(part)
		}
		if more && rest == "" && !code {
			out.Open(fenced("", false))
			out.Close()
		}
		text = rest
	}
}

// fenced is the markup around a block of code. One that is never closed is closed at the end.
func fenced(text string, closed bool) markdown.Mark {
	m := markdown.Mark{Enter: fence, Again: fence + "\n", Leave: fence, Code: true}
	if strings.HasPrefix(text, "\n") {
		m.Enter += "\n"
	}
	if !closed || len(text) > 1 && strings.HasSuffix(text, "\n") {
		m.Leave = "\n" + m.Leave
	}
	return m
}

// writeMarkup writes what is markup already, in which entities and links are whole.
func writeMarkup(out *markdown.Text, markup string) {
	for markup != "" {
		at := strings.IndexAny(markup, "&<")
		if at < 0 {
			out.Write(markup)
			return
		}
		out.Write(markup[:at])
		markup = markup[at:]
		if t := token(markup); t != "" {
			out.Whole(t)
			markup = markup[len(t):]
			continue
		}
		out.Write(markup[:1])
		markup = markup[1:]
	}
}

// token is the entity or the link that a text in Slack's markup begins with, or "".
func token(markup string) string {
	for _, entity := range []string{"&amp;", "&lt;", "&gt;"} {
		if strings.HasPrefix(markup, entity) {
			return entity
		}
	}
	if strings.HasPrefix(markup, "<") {
		if end := strings.IndexAny(markup[1:], "<>\n") + 1; end > 0 && end < longestLink && markup[end] == '>' {
			return markup[:end+1]
		}
	}
	return ""
}

// pieces cuts plain text into pieces of at most limit characters that are the text again when joined, but for blanks at
// the end.
func pieces(text string, limit int) []string {
	var out []string
	for strings.TrimSpace(text) != "" {
		at := within(text, limit)
		if at < len(text) {
			if line := strings.LastIndexByte(text[:at], '\n'); line > at/2 {
				at = line + 1
			} else {
				at = whole(text, at)
			}
		}
		out = append(out, text[:at])
		text = text[at:]
	}
	return out
}
