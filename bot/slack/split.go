package slack

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const fence = "```"

// length is a text's length as Slack counts it.
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

// split makes messages of at most limit characters out of a text in Slack's markup. It cuts between paragraphs where it
// can, else between lines or words, and never inside a character, an entity or a link. A fence that is cut is closed, and
// opened again in the next message. limit must be 64 or more.
func split(text string, limit int) []string {
	var parts []string
	fenced := false
	for rest := text; rest != ""; {
		head := ""
		if fenced {
			head = fence + "\n"
		}
		if length(head+rest) <= limit && !open(head+rest) {
			parts = append(parts, head+rest)
			break
		}
		at := cutAt(rest, limit-len(head)-len(fence)-1, fenced)
		part := head + rest[:at]
		rest, fenced = rest[at:], open(part)
		if fenced {
			rest = strings.TrimPrefix(rest, "\n")
			part = strings.TrimSuffix(part, "\n") + "\n" + fence
		} else {
			rest = strings.TrimLeft(rest, "\n ")
			part = strings.TrimRight(part, "\n ")
		}
		parts = append(parts, part)
	}
	return telling(parts)
}

// telling leaves out what says nothing, which Slack would refuse.
func telling(parts []string) []string {
	var out []string
	for _, part := range parts {
		if strings.ContainsFunc(part, func(r rune) bool { return r != '`' && !unicode.IsSpace(r) }) {
			out = append(out, part)
		}
	}
	return out
}

// open reports whether a fence is open at the end of a text.
func open(text string) bool { return strings.Count(text, fence)%2 == 1 }

// cutAt is where a text that is longer than room is cut.
func cutAt(text string, room int, fenced bool) int {
	most := within(text, room)
	if most == len(text) {
		return most
	}
	window := text[:most]
	low := most / 4
	if open(window) == fenced {
		if at := strings.LastIndex(window, "\n\n"); at > most/2 {
			return at
		}
	}
	if at := strings.LastIndexByte(window, '\n'); at > low {
		return beforeFence(window, at, fenced)
	}
	for at := strings.LastIndexByte(window, ' '); at > low; at = strings.LastIndexByte(window[:at], ' ') {
		if sound(text, at) {
			return at
		}
	}
	return whole(text, most)
}

// beforeFence moves a cut at a line's end before the fence that the line opens, where something stands before it.
func beforeFence(window string, at int, fenced bool) int {
	line := strings.LastIndexByte(window[:at], '\n')
	if line > 0 && window[line+1:at] == fence && open(window[:at]) != fenced {
		return line
	}
	return at
}

// longestToken is how many bytes behind a cut an entity, a link or a character of many parts is looked for.
const longestToken = 3200

// whole moves a cut forward in the text to where nothing is cut through. If there is no such place it only spares runes.
func whole(text string, at int) int {
	for i := at; i > 0 && i > at-longestToken; i-- {
		if sound(text, i) {
			return i
		}
	}
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	if at == 0 {
		_, at = utf8.DecodeRuneInString(text)
	}
	return at
}

// sound reports whether a cut leaves characters, entities, links and fences whole.
func sound(text string, at int) bool {
	if at <= 0 || at >= len(text) {
		return true
	}
	if !utf8.RuneStart(text[at]) || text[at-1] == '`' && text[at] == '`' {
		return false
	}
	before := text[max(0, at-longestToken):at]
	if amp := strings.LastIndexByte(before, '&'); amp >= 0 && len(before)-amp < 5 {
		for _, entity := range []string{"&amp;", "&lt;", "&gt;"} {
			tail := before[amp:]
			if len(tail) < len(entity) && strings.HasPrefix(entity, tail) && strings.HasPrefix(text[at:], entity[len(tail):]) {
				return false
			}
		}
	}
	if left := strings.LastIndexByte(before, '<'); left >= 0 && !strings.ContainsAny(before[left:], ">\n") {
		if end := strings.IndexAny(text[at:], "<>\n"); end >= 0 && text[at+end] == '>' {
			return false
		}
	}
	return !joined(text, at)
}

// joined reports whether the characters on both sides of a cut are shown as one.
func joined(text string, at int) bool {
	left, _ := utf8.DecodeLastRuneInString(text[:at])
	right, _ := utf8.DecodeRuneInString(text[at:])
	const joiner = '\u200d'
	switch {
	case left == '\r' && right == '\n', left == joiner, right == joiner, unicode.Is(unicode.M, right):
		return true
	case right >= 0x1F3FB && right <= 0x1F3FF, right >= 0xE0020 && right <= 0xE007F: // skin tones, tags
		return true
	case right >= 0x1160 && right <= 0x11FF: // later parts of a Korean syllable
		return true
	case flag(left) && flag(right): // flags are pairs
		n := 0
		for rest := text[:at]; rest != ""; n++ {
			r, size := utf8.DecodeLastRuneInString(rest)
			if !flag(r) {
				break
			}
			rest = rest[:len(rest)-size]
		}
		return n%2 == 1
	}
	return false
}

func flag(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// pieces cuts plain text into pieces of at most limit characters that are the text again when joined, but for blanks at the end.
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
