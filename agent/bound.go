package agent

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// fewBadBytes is how many bytes that are no text are mended rather than taken as the sign of a binary: a short
	// text with a torn emoji at its end is still a text.
	fewBadBytes = 8
	// longestCluster is how many bytes a cut moves back so as not to part an emoji from its modifiers.
	longestCluster = 40
)

// Bound makes a tool's result fit to be sent: valid UTF-8 without NUL, each bad byte replaced by U+FFFD. A text of
// more than limit bytes keeps its head and its tail, with a line between them that says how many bytes were left
// out; no rune, and no emoji with modifiers, is split. A limit that has no room for that line leaves nothing else.
// Binary data is described instead of kept. The flag tells whether anything was left out.
func Bound(text string, limit int) (kept string, cut bool) {
	if Binary(text) {
		return fmt.Sprintf("binary, %d bytes", len(text)), true
	}
	clean := cleaned(text)
	if len(clean) <= limit {
		return clean, false
	}
	return headAndTail(clean, limit, ""), true
}

// cleaned is a text as valid UTF-8 without NUL.
func cleaned(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0 {
			return utf8.RuneError
		}
		return r
	}, text)
}

// headAndTail keeps the ends of a clean text, with a line between them that says what was left out and the way to it.
func headAndTail(clean string, limit int, way string) string {
	room := max(0, limit-len(leftOut(len(clean), way))) / 2
	head := clusterStart(clean, room)
	tail := nextCluster(clean, len(clean)-room)
	return clean[:head] + leftOut(tail-head, way) + clean[tail:]
}

func leftOut(bytes int, way string) string {
	return fmt.Sprintf("\n[… %d bytes left out%s …]\n", bytes, way)
}

// Head is the beginning of a text, of at most limit bytes and not much less. In what is valid UTF-8 no rune is split,
// nor an emoji with modifiers; where that would leave more than a few bytes away, only the rune is spared.
func Head(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:clusterStart(text, max(0, limit))]
}

// Binary reports whether data is no text: more than a tenth of its bytes, and more than a few, are invalid UTF-8 or
// control characters that texts don't have.
func Binary(data string) bool {
	bad := 0
	for i, r := range data {
		switch {
		case r == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(data[i:]); size == 1 {
				bad++
			}
		case r < ' ' && !strings.ContainsRune("\t\n\v\f\r\b\a\x1b", r), r == 0x7f:
			bad++
		}
	}
	return bad > fewBadBytes && bad > len(data)/10
}

// runeStart moves an index back to the start of the rune that it is in; in what is no UTF-8 it moves little.
func runeStart(text string, at int) int {
	for start := at; start >= 0 && start < len(text) && at-start < utf8.UTFMax; start-- {
		if utf8.RuneStart(text[start]) {
			return start
		}
	}
	return at
}

// clusterStart moves an index back to where a cut parts nothing that is drawn as one; it gives up, and only spares
// the rune, after longestCluster bytes.
func clusterStart(text string, at int) int {
	start := runeStart(text, at)
	for back := start; start-back <= longestCluster; {
		if back <= 0 || !joined(text, back) {
			return back
		}
		_, size := utf8.DecodeLastRuneInString(text[:back])
		back -= size
	}
	return start
}

// nextCluster is clusterStart forwards.
func nextCluster(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	start := at
	for at < len(text) && joined(text, at) {
		_, size := utf8.DecodeRuneInString(text[at:])
		if at += size; at-start > longestCluster {
			return start
		}
	}
	return at
}

// joined reports whether the runes before and after an index are drawn as one.
func joined(text string, at int) bool {
	const joiner = '\u200d'
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return before == joiner || after == joiner || unicode.In(after, unicode.Mn, unicode.Me, unicode.Mc) ||
		after >= 0x1f3fb && after <= 0x1f3ff // skin tones
}

// join puts two texts after each other, either of which may be empty.
func join(a, b string) string { return strings.Trim(a+"\n\n"+b, "\n") }

// oneLine is the first line of a text, not too long.
func oneLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 200 {
		return string(runes[:199]) + "…"
	}
	return line
}
