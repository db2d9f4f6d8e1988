package discord

import (
	"regexp"
	"slices"
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

// rendered is a model's Markdown, which is Discord's own. It is only cut where it is too long, and never within code without
// ending that and beginning it again.
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
			writeWords(out, part)
		}
		text = rest
		if more && rest == "" && !code {
			out.Write(fence) // that opens nothing
		}
	}
	return out
}

// writeWords writes what stands between blocks of code. Code within a line is code in each of two messages.
func writeWords(out *markdown.Text, text string) {
	from := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '`':
			mark := text[at : at+ticksOf(text[at:])]
			inside := closedBy(text[at+len(mark):], mark)
			if inside > 0 {
				out.Write(text[from:at])
				out.Open(markdown.Mark{Enter: mark, Leave: mark, Code: true})
				out.Write(text[at+len(mark) : at+len(mark)+inside])
				out.Close()
				from = at + len(mark) + inside + len(mark)
				at = from - 1
				continue
			}
			at += len(mark) - 1
		}
	}
	out.Write(text[from:])
}

// ticksOf is how many backticks a text begins with.
func ticksOf(text string) int { return len(text) - len(strings.TrimLeft(text, "`")) }

// closedBy is how much stands before as many backticks as a mark has, and no more; -1 if there are none.
func closedBy(text, mark string) int {
	for at := 0; at < len(text); {
		if text[at] != '`' {
			at++
			continue
		}
		n := ticksOf(text[at:])
		if n == len(mark) {
			return at
		}
		at += n
	}
	return -1
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

// longestCode is how many bytes such code may have; longer ones would be parted where a message ends.
const longestCode = 1000

// addressCodes finds where it stands in a text.
func addressCodes(text string) [][]int {
	return slices.DeleteFunc(addressCode.FindAllStringIndex(text, -1), func(at []int) bool { return at[1]-at[0] > longestCode })
}

// escape takes the meaning of all that could be markup, and leaves words that have none as they are, and addresses that stand
// as code.
func escape(text string) string {
	if !strings.ContainsAny(text, special) {
		return text
	}
	var b strings.Builder
	code := addressCodes(text)
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

// These are what Discord makes links of wherever they stand but in code: addresses with a scheme; and what it shows an invitation
// for, there too and without a scheme.
var (
	schemed = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*):(//)`)
	invites = regexp.MustCompile(`(?i)(discord(?:app)?)\.(gg|com|gift|new)`)
)

// unlinked is the content of a message in which Discord makes a link of no address. It is the last that is done to it, when it is
// cut already: a mark that was parted from its other one makes no code. Colon and dot give way to signs that look like them, so
// that it gets no longer.
func unlinked(content string) string {
	content = invites.ReplaceAllString(content, "${1}․${2}")
	var b strings.Builder
	for at := 0; at < len(content); {
		from, to := codeIn(content, at)
		b.WriteString(schemed.ReplaceAllString(strings.ReplaceAll(content[at:from], "](", "]（"), "${1}∶${2}"))
		b.WriteString(content[from:to])
		at = to
	}
	return b.String()
}

// codeIn is where the first code behind a place of a content stands that is code however it is read: in one line, or a block that
// begins one, and without a mark of emphasis or of a link that may have been opened before, which would end sooner. It is at the
// end when there is none, and where one is in doubt, as then nobody knows which marks belong together behind it.
func codeIn(content string, at int) (from, to int) {
	for ; at < len(content); at++ {
		switch content[at] {
		case '\\':
			at++
		case '`':
			ticks := ticksOf(content[at:])
			inside := closedBy(content[at+ticks:], content[at:at+ticks])
			end := at + ticks + inside + ticks
			switch {
			case inside < 0: // it closes nothing and is closed by nothing
				at += ticks - 1
			case isCode(content, at, ticks, end):
				return at, end
			default:
				return len(content), len(content)
			}
		}
	}
	return len(content), len(content)
}

// isCode reports whether what stands between two marks of so many backticks is code without any doubt.
func isCode(content string, at, ticks, end int) bool {
	code := content[at+ticks : end-ticks]
	opened := func(r rune) bool { return strings.ContainsRune("*_~|", r) && strings.ContainsRune(content[:at], r) }
	switch {
	case code == "", ticks > len(fence), strings.Contains(code, fence), strings.ContainsFunc(code, opened):
		return false
	case strings.Contains(code, "](") && strings.Contains(content[:at], "["):
		return false
	case ticks == len(fence):
		return lineBefore(content, at) == ""
	}
	return !strings.Contains(code, "\n")
}

// verbatim is a text as it is, with nothing in it that is markup but addresses that stand as code.
func verbatim(text string) *markdown.Text {
	out := &markdown.Text{Escape: escape}
	text = markdown.Clean(text)
	at := 0
	for _, code := range addressCodes(text) {
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
func messages(text *markdown.Text) []string { return partsOf(text, textLimit) }

// partsOf are messages of at most limit characters.
func partsOf(text *markdown.Text, limit int) []string {
	var out []string
	for _, part := range text.Split(limit) {
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
