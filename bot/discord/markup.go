package discord

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"nudge/bot/markdown"
)

// Discord's limits, in characters.
const (
	textLimit    = 2000  // of a message (docs.discord.com/developers/resources/message#create-message)
	wholeLimit   = 12000 // of a text that is said in messages; longer ones become a file
	excerptLimit = 1500
	outcomeLimit = 1000 // of what was decided
	askedLimit   = 400  // of what was asked, and of an answer
	buttonLimit  = 80
	optionLimit  = 100
	inputLimit   = 4000
	mostOptions  = 25
	rowLength    = 5 // buttons in a row
	mostRows     = 5
)

const (
	fence = "```"
	apart = "\u200b" // a space that is not seen
)

// rendered is a model's Markdown, which is Discord's own. It is only cut where it is too long, and never within a block of code
// without ending that and beginning it again.
func rendered(source string) *markdown.Text {
	out := &markdown.Text{}
	text := tabled(markdown.Clean(source))
	for code := false; text != ""; code = !code {
		part, rest, more := strings.Cut(text, fence)
		if code {
			mark, body := fenced(part, more)
			out.Open(mark)
			out.Write(body)
			out.Close()
		} else {
			out.Write(part)
		}
		text = rest
		if more && rest == "" && !code {
			out.Write(fence) // that opens nothing
		}
	}
	return out
}

// fenced is the markup around a block of code, and what is in it. One that is never closed is closed at the end.
func fenced(text string, closed bool) (markdown.Mark, string) {
	head, body, lines := strings.Cut(text, "\n")
	m := markdown.Mark{Enter: fence, Again: fence + "\n", Leave: fence, Code: true}
	if lines && !strings.ContainsFunc(head, unicode.IsSpace) && len(head) < 30 {
		m.Enter, m.Again, text = fence+head+"\n", fence+head+"\n", body
	}
	if !closed || strings.HasSuffix(text, "\n") {
		m.Leave = "\n" + fence
	}
	return m, strings.TrimSuffix(text, "\n")
}

// special are the characters that can be markup for Discord.
const special = "\\*_~|`>#-[<@+."

// addressCode finds addresses that stand as code: see [markdown.Unlinked]. Without its backticks Discord makes a link of one.
var addressCode = regexp.MustCompile("`(?i:[a-z][a-z0-9+.-]*:|www\\.)[^`\\s]*`")

// escape takes the meaning of all that could be markup, and leaves words that have none as they are, and addresses that stand
// as code.
func escape(text string) string {
	if !strings.ContainsAny(text, special) {
		return text
	}
	var b strings.Builder
	code := addressCode.FindAllStringIndex(text, -1)
	for i, r := range text {
		for len(code) > 0 && i >= code[0][1] {
			code = code[1:]
		}
		if within := len(code) > 0 && i >= code[0][0]; !within && marks(text, i, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// marks reports whether a character could be markup where it stands.
func marks(text string, at int, r rune) bool {
	switch r {
	case '\\', '*', '_', '~', '|', '`', '<', '[', '@':
		return true
	case '>', '#', '-', '+', '.':
		return strings.TrimSpace(lineBefore(text, at)) == "" || r == '.' && strings.Trim(lineBefore(text, at), " 0123456789") == ""
	}
	return false
}

func lineBefore(text string, at int) string {
	return text[strings.LastIndexByte(text[:at], '\n')+1 : at]
}

// verbatim is a text as it is, with nothing in it that is markup but addresses that stand as code.
func verbatim(text string) *markdown.Text {
	out := &markdown.Text{Escape: escape}
	text = markdown.Clean(text)
	at := 0
	for _, code := range addressCode.FindAllStringIndex(text, -1) {
		out.Write(text[at:code[0]])
		out.Whole(text[code[0]:code[1]])
		at = code[1]
	}
	out.Write(text[at:])
	return out
}

var codeMark = markdown.Mark{Enter: fence + "\n", Leave: "\n" + fence, Code: true, Alone: true}

// writeCode writes lines as they are. Three backticks in them would end the block, and are written out.
func writeCode(out *markdown.Text, text string) {
	out.Open(codeMark)
	out.Write(unfenced(strings.TrimRight(text, "\n")))
	out.Close()
}

// unfenced is a text that ends no block of code.
func unfenced(text string) string {
	return strings.ReplaceAll(text, fence, strings.Repeat(`\u{60}`, 3))
}

// messages are the messages that a text makes, without those that say nothing, which Discord would refuse.
func messages(text *markdown.Text) []string {
	var out []string
	for _, part := range text.Split(textLimit) {
		if strings.ContainsFunc(strings.ReplaceAll(part, fence, ""), func(r rune) bool { return !unicode.IsSpace(r) && string(r) != apart }) {
			out = append(out, part)
		}
	}
	return out
}

// cut shortens a text to at most limit characters, none of which is cut through as people see them. What is cut off is marked.
func cut(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	at, n := 0, 0
	for g := graphemes.FromString(text); g.Next(); at = g.End() {
		if n += utf8.RuneCountInString(g.Value()); n > limit-1 {
			break
		}
	}
	return text[:at] + "…"
}
