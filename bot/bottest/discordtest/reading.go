package discordtest

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Links are what people can press in the content of a message, as Discord's clients read it: addresses, also behind words and in
// angled brackets, invitations, and what leads to a person, a channel, a command or a place of a server. It is a reading of the
// rules as they are known from those who have written such readers for Discord's Markdown, and errs towards more links.
func Links(content string) []string {
	r := &reader{}
	r.blocks(content)
	r.found = append(r.found, invitation.FindAllString(content, -1)...)
	return r.found
}

var (
	invitation = regexp.MustCompile(`(?i)discord(?:app)?\.(?:gg|new|gift|com/(?:invite|gifts|template|events))/[\w-]+`)

	codeBlock = regexp.MustCompile("^```(?:[a-zA-Z0-9_+.#-]+\\n)?\\n*[^\\n](?s:.*?)\\n*```")
	autolink  = regexp.MustCompile(`^<([^: >]+:/[^ >]+)>`)
	address   = regexp.MustCompile(`^(?i)(?:https?|steam|discord)://[^\s<]+`)
	mailOrTel = regexp.MustCompile(`^<(?:mailto:|tel:|sms:)?(?:[^<>\s@]+@[^<>\s@]+\.[^<>\s@]+|\+?\d[\d ()-]{5,})>`)
	pressed   = regexp.MustCompile(`^<(?:@[!&]?\d+|#\d+|/[^<>\n]+:\d+|id:[a-z-]+)>`)
	escaped   = regexp.MustCompile(`^\\[^0-9A-Za-z\s]`)
	quoted    = regexp.MustCompile(`^ *(?:>>> (?s:.*)|>(?: [^\n]*)?(?:\n *>(?: [^\n]*)?)*)`)
	item      = regexp.MustCompile(`^ *(?:[*-]|\d+\.) `)
	quoteMark = regexp.MustCompile(`(?m)^ *>(?:>>)? ?`)
	itemMark  = regexp.MustCompile(`(?m)^ *(?:(?:[*-]|\d+\.) )?`)
	heading   = regexp.MustCompile(`^(?:#{1,3}|-#) +[^\n]*`)
)

type reader struct{ found []string }

// blocks reads what may begin lines.
func (r *reader) blocks(text string) {
	from, begins := 0, true
	for at := 0; at < len(text); {
		n := 0
		if begins {
			n = r.block(text[at:])
		}
		if n == 0 && strings.HasPrefix(text[at:], "```") && !strings.HasSuffix(text[:at], "\\") {
			n = len(codeBlock.FindString(text[at:]))
		}
		if n > 0 {
			r.inline(text[from:at])
			from = at + n
		}
		at += max(n, 1)
		begins = text[at-1] == '\n'
	}
	r.inline(text[from:])
}

// block reads a quote, a list or a heading, with what is in it, and returns how long it is; 0 for none.
func (r *reader) block(text string) int {
	if q := quoted.FindString(text); q != "" {
		r.blocks(quoteMark.ReplaceAllString(q, ""))
		return len(q)
	}
	if h := heading.FindString(text); h != "" {
		r.inline(strings.TrimLeft(h, "#- "))
		return len(h)
	}
	if item.MatchString(text) { // it goes on as long as lines are indented, or items
		end := 0
		for rest := text; ; {
			line, more, found := strings.Cut(rest, "\n")
			end += len(line)
			if !found || more == "" || more[0] != ' ' && !item.MatchString(more) {
				break
			}
			end++
			rest = more
		}
		first := len(item.FindString(text))
		r.blocks(itemMark.ReplaceAllString(text[first:end], ""))
		return end
	}
	return 0
}

// inline reads what stands within lines. What is opened first is closed first: emphasis does not care for code that it cuts.
func (r *reader) inline(text string) {
	for text != "" {
		n := r.token(text)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text)
		}
		text = text[n:]
	}
}

func (r *reader) token(text string) int {
	if !strings.ContainsRune("\\<[`*_~|hHsSdD", rune(text[0])) {
		return 0
	}
	switch text[0] {
	case '\\':
		if e := escaped.FindString(text); e != "" {
			return len(e)
		}
	case '<':
		if n := r.link(text, autolink, mailOrTel, pressed); n > 0 {
			return n
		}
	default:
		if !strings.Contains(text[:min(len(text), longestScheme)], ":") {
			break
		}
		if n := r.link(text, address); n > 0 {
			return n
		}
	}
	if n := r.masked(text); n > 0 {
		return n
	}
	for _, mark := range []string{"**", "__", "~~", "||", "*", "_"} {
		if inside, n := between(text, mark); n > 0 {
			r.inline(inside)
			return n
		}
	}
	return codeSpan(text)
}

// longestScheme is how many bytes the longest scheme of an address has, with its colon, also with the long s that counts as one.
const longestScheme = len("diſcord:")

// link reads the first of some kinds of links with which a text begins.
func (r *reader) link(text string, kinds ...*regexp.Regexp) int {
	for _, kind := range kinds {
		if l := kind.FindString(text); l != "" {
			r.found = append(r.found, l)
			return len(l)
		}
	}
	return 0
}

// masked reads [words](address).
func (r *reader) masked(text string) int {
	if text[0] != '[' {
		return 0
	}
	middle := strings.Index(text, "](")
	if middle < 0 {
		return 0
	}
	end := strings.IndexByte(text[middle:], ')')
	target := ""
	if end > 0 {
		target = strings.TrimSpace(text[middle+2 : middle+end])
	}
	if words := strings.Fields(target); !strings.Contains(target, ":") || len(words) > 1 && !strings.ContainsAny(words[1][:1], `"'`) {
		return 0
	}
	r.found = append(r.found, text[:middle+end+1])
	return middle + end + 1
}

// between reads a stretch between two marks.
func between(text, mark string) (inside string, n int) {
	if !strings.HasPrefix(text, mark) {
		return "", 0
	}
	for at := len(mark); at < len(text); at++ {
		switch {
		case text[at] == '\\':
			at++
		case at > len(mark) && strings.HasPrefix(text[at:], mark):
			return text[len(mark):at], at + len(mark)
		}
	}
	return "", 0
}

// codeSpan is how long the code is with which a text begins; 0 for none. It may reach over lines.
func codeSpan(text string) int {
	ticks := len(text) - len(strings.TrimLeft(text, "`"))
	if ticks == 0 {
		return 0
	}
	for at := ticks; at < len(text); {
		if text[at] != '`' {
			at++
			continue
		}
		run := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if run == ticks {
			return at + run
		}
		at += run
	}
	return 0
}
