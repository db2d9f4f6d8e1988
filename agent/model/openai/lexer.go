package openai

import "strings"

// kind is what a piece of a model's text is.
type kind int

const (
	plain      kind = iota
	code            // of a code span or a fenced block, where tags mean nothing
	openThink       // <think>
	closeThink      // </think>
	callMarkup      // the opening tag of a call written as text
)

// tags are the marks that models put into their text, in lower case.
var tags = []struct {
	mark string
	kind kind
}{
	{"<think>", openThink},
	{"<thinking>", openThink},
	{"</think>", closeThink},
	{"</thinking>", closeThink},
	{toolCallTag, callMarkup},
	{functionTag, callMarkup},
}

// maxHeld bounds how much text waits for a code span or a fence's first line to end, in bytes. What is longer is no code.
const maxHeld = 4 << 10

// lexer tells apart what stands in code and what does not. It sees text as it comes, and waits rather than guess.
type lexer struct {
	fence   string // the marks that opened the block it is in
	midLine bool
}

// next says what s begins with and how long that is. A length of 0 means that this depends on what comes next; it
// never is 0 when s is the final piece and not empty.
func (l *lexer) next(s string, final bool) (kind, int) {
	if s == "" {
		return plain, 0
	}
	if l.fence != "" {
		return code, l.inFence(s, final)
	}
	if !l.midLine {
		n, fence, sure := openingFence(s, final)
		switch {
		case !sure:
			return code, 0
		case fence != "":
			l.fence, l.midLine = fence, !strings.HasSuffix(s[:n], "\n")
			return code, n
		}
	}
	switch s[0] {
	case '\n':
		l.midLine = false
		return plain, 1
	case '`':
		return l.codeSpan(s, final)
	case '<':
		return l.tag(s, final)
	}
	l.midLine = true
	if n := strings.IndexAny(s, "`<\n"); n > 0 {
		return plain, n
	}
	return plain, len(s)
}

// inFence returns the length of what surely belongs to the block that l is in, and notices its end.
func (l *lexer) inFence(s string, final bool) int {
	end := strings.IndexByte(s, '\n')
	switch {
	case l.midLine && end < 0:
		return len(s)
	case end < 0 && !final && len(s) < maxHeld && strings.Trim(strings.TrimSpace(s), l.fence[:1]) == "":
		return 0 // it may become the end
	case end < 0:
		end = len(s) - 1
	}
	if !l.midLine && closes(s[:end+1], l.fence) {
		l.fence = ""
	}
	l.midLine = s[end] != '\n'
	return end + 1
}

func closes(line, fence string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == ""
}

// openingFence looks for a fence at the start of a line, however far it is indented, and returns its marks and where
// its line ends. It is not sure while too little of the line has come.
func openingFence(s string, final bool) (n int, fence string, sure bool) {
	waits := !final && len(s) < maxHeld
	marks := strings.TrimLeft(s, " \t")
	if marks == "" {
		return 0, "", !waits
	}
	if marks[0] != '`' && marks[0] != '~' {
		return 0, "", true
	}
	rest := strings.TrimLeft(marks, marks[:1])
	if rest == "" && waits {
		return 0, "", false
	}
	fence = marks[:len(marks)-len(rest)]
	if len(fence) < 3 {
		return 0, "", true
	}
	end := strings.IndexByte(rest, '\n')
	info := rest
	if end >= 0 {
		info = rest[:end]
	}
	switch {
	case fence[0] == '`' && strings.Contains(info, "`"):
		return 0, "", true // a code span on one line
	case end >= 0:
		return len(s) - len(rest) + end + 1, fence, true
	case waits:
		return 0, "", false
	}
	return len(s), fence, true
}

// codeSpan handles a run of backticks: a code span if as many follow on the same line, else just marks.
func (l *lexer) codeSpan(s string, final bool) (kind, int) {
	waits := !final && len(s) < maxHeld
	n := len(s) - len(strings.TrimLeft(s, "`"))
	if n == len(s) && waits {
		return code, 0
	}
	l.midLine = true
	for i := n; i < len(s); {
		switch s[i] {
		case '\n':
			return plain, n
		case '`':
			run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
			if i+run == len(s) && waits {
				return code, 0
			}
			if run == n {
				return code, i + run
			}
			i += run
		default:
			i++
		}
	}
	if waits {
		return code, 0
	}
	return plain, n
}

func (l *lexer) tag(s string, final bool) (kind, int) {
	for _, t := range tags {
		switch {
		case hasPrefixFold(s, t.mark):
			l.midLine = t.kind != closeThink // the answer begins anew after it
			return t.kind, len(t.mark)
		case !final && len(s) < len(t.mark) && hasPrefixFold(t.mark, s):
			return plain, 0
		}
	}
	l.midLine = true
	return plain, 1
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
