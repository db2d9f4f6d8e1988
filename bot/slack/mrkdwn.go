package slack

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escaping is what Slack asks for, and all that it asks for. It also takes the power from everything that could notify
// somebody or show another address than the real one, since all of that stands between < and >.
var escaping = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escape(text string) string { return escaping.Replace(text) }

// apart is a space that is not seen. Slack takes a mark for markup only if no letter touches it from outside.
const apart = "\u200b"

// deepest is how deep marks inside marks are followed.
const deepest = 6

var (
	fenceLine   = regexp.MustCompile("^[ \t]*(`{3,}|~{3,})([^`]*)$")
	headingLine = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#*)?[ \t]*$`)
	bulletLine  = regexp.MustCompile(`^([ \t]*)[-*+][ \t]+(.*)$`)
	quoteLine   = regexp.MustCompile(`^ {0,3}>[ \t]?(.*)$`)
	delimiters  = regexp.MustCompile(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
)

// mrkdwn turns Markdown into Slack's own markup. The Markdown is a model's and not trusted: whatever it holds, nobody is
// notified by what comes out, and each link shows where it leads or a label that does not pretend to lead elsewhere.
func mrkdwn(markdown string) string {
	lines := strings.Split(strings.ReplaceAll(markdown, "\r\n", "\n"), "\n")
	var out []string
	for i := 0; i < len(lines); {
		if opening := fenceLine.FindStringSubmatch(lines[i]); opening != nil {
			code, n := fenced(lines[i:], opening[1])
			out = append(out, code)
			i += n
			continue
		}
		if n := tableLines(lines[i:]); n > 0 {
			out = append(out, table(lines[i:i+n]))
			i += n
			continue
		}
		out = append(out, line(lines[i]))
		i++
	}
	return strings.Join(out, "\n")
}

// fenced gives the code block that begins with the first line, and how many lines it has. One that is never closed goes
// on to the end.
func fenced(lines []string, mark string) (code string, n int) {
	indent := lines[0][:strings.IndexAny(lines[0], "`~")]
	var body []string
	for n = 1; n < len(lines); n++ {
		bare := strings.TrimSpace(lines[n])
		if len(bare) >= len(mark) && strings.Trim(bare, mark[:1]) == "" {
			n++
			break
		}
		body = append(body, strings.TrimPrefix(lines[n], indent))
	}
	return codeBlock(body), n
}

// codeBlock shows lines as they are. Three backticks among them would end the block.
func codeBlock(lines []string) string {
	code := strings.ReplaceAll(escape(strings.Join(lines, "\n")), fence, "``"+apart+"`")
	return fence + "\n" + code + "\n" + fence
}

// line turns one line that belongs to no code block and no table.
func line(text string) string {
	if ruled(text) {
		return "———"
	}
	if heading := headingLine.FindStringSubmatch(text); heading != nil {
		if title := inline(heading[1], style{bold: true}); title != "" {
			return "*" + title + "*"
		}
		return ""
	}
	if bullet := bulletLine.FindStringSubmatch(text); bullet != nil {
		return bullet[1] + "• " + inline(bullet[2], style{})
	}
	if quote := quoteLine.FindStringSubmatch(text); quote != nil {
		return "&gt; " + strings.TrimPrefix(line(quote[1]), "&gt; ")
	}
	return inline(text, style{})
}

// ruled reports whether a line is a rule: three or more of the same mark and nothing else.
func ruled(text string) bool {
	bare := strings.NewReplacer(" ", "", "\t", "").Replace(text)
	return len(bare) >= 3 && strings.Contains("-*_", bare[:1]) && strings.Trim(bare, bare[:1]) == ""
}

// style is what the text around a stretch of text is marked as already.
type style struct {
	bold, italic, strike bool
	depth                int
}

// inline turns what stands within a line.
func inline(text string, s style) string {
	if s.depth > deepest {
		return escape(text)
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		n, out := token(text, i, s)
		b.WriteString(out)
		i += n
	}
	return b.String()
}

// token turns what begins at i, and says how many bytes of the text that was.
func token(text string, i int, s style) (n int, out string) {
	rest := text[i:]
	switch c := rest[0]; c {
	case '\\':
		if len(rest) > 1 && strings.IndexByte("\\`*_{}[]()#+-.!~|<>", rest[1]) >= 0 {
			return 2, escape(rest[1:2])
		}
	case '`':
		return codeSpan(rest)
	case '!':
		if strings.HasPrefix(rest, "![") {
			if l, ok := readLink(rest[1:]); ok {
				return l.size + 1, escape(l.label)
			}
		}
	case '[':
		if l, ok := readLink(rest); ok {
			return l.size, l.String()
		}
	case '<':
		if end := strings.IndexByte(rest, '>'); end > 0 && web(rest[1:end]) && !strings.ContainsAny(rest[1:end], " \t<|") {
			return end + 1, escape(rest[1:end])
		}
	case 'h', 'H':
		if n := bareAddress(text, i); n > 0 {
			return n, escape(rest[:n])
		}
	case '*', '_', '~':
		return emphasis(text, i, s)
	}
	_, size := utf8.DecodeRuneInString(rest)
	return size, escape(rest[:size])
}

// codeSpan turns a stretch of code, or gives the backticks as they are when nothing closes them.
func codeSpan(rest string) (n int, out string) {
	n = runLength(rest, 0)
	for i := n; i < len(rest); {
		if rest[i] != '`' {
			i++
			continue
		}
		closing := runLength(rest, i)
		if closing == n {
			body := rest[n:i]
			if trimmed := strings.TrimSpace(body); trimmed != "" && n > 1 {
				body = trimmed
			}
			return i + n, "`" + escape(strings.ReplaceAll(body, "`", "ˋ")) + "`"
		}
		i += closing
	}
	return n, rest[:n]
}

// runLength is how often the byte at i is repeated from there on.
func runLength(text string, i int) int {
	n := 1
	for i+n < len(text) && text[i+n] == text[i] {
		n++
	}
	return n
}

// bareAddress is the length of a web address that begins at i; 0 if none does.
func bareAddress(text string, i int) int {
	if !web(text[i:]) || i > 0 && letter(before(text, i)) {
		return 0
	}
	end := strings.IndexFunc(text[i:], func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("<>\"`|", r) })
	if end < 0 {
		end = len(text) - i
	}
	return len(strings.TrimRight(text[i:i+end], "*_~.,;:!?')]}"))
}

func web(text string) bool {
	if len(text) < len("http://x") {
		return false
	}
	lower := strings.ToLower(text[:min(len(text), len("https://"))])
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// emphasis turns a stretch between marks, or gives the marks as they are when they mark nothing.
func emphasis(text string, i int, s style) (n int, out string) {
	n = runLength(text, i)
	literal := text[i : i+n]
	if !opens(text, i, n) {
		return n, literal
	}
	end := closer(text, i+n, text[i], n)
	if end < 0 {
		return n, literal
	}
	left, right := marks(text[i], n, &s)
	s.depth++
	body := inline(text[i+n:end], s)
	if left != "" && letter(before(text, i)) {
		left = apart + left
	}
	if after, _ := utf8.DecodeRuneInString(text[end+n:]); right != "" && letter(after) {
		right += apart
	}
	return end + n - i, left + body + right
}

// opens reports whether n marks at i can open a stretch.
func opens(text string, i, n int) bool {
	if n > 3 || text[i] == '~' && n != 2 {
		return false
	}
	next, _ := utf8.DecodeRuneInString(text[i+n:])
	if i+n >= len(text) || unicode.IsSpace(next) {
		return false
	}
	// Inside a word an underscore is part of a name, and a star between figures a multiplication.
	return !letter(before(text, i)) || text[i] != '_' && n > 1
}

// closer finds where n marks close a stretch that began before from; -1 if nothing does.
func closer(text string, from int, mark byte, n int) int {
	for j := from; j < len(text); {
		switch text[j] {
		case '\\':
			j += 2
		case '`':
			size, _ := codeSpan(text[j:])
			j += size
		case mark:
			r := runLength(text, j)
			after, _ := utf8.DecodeRuneInString(text[j+r:])
			inWord := letter(after) && (mark == '_' || n == 1)
			if r == n && j > from && !unicode.IsSpace(before(text, j)) && !inWord {
				return j
			}
			j += r
		default:
			j++
		}
	}
	return -1
}

// marks are Slack's marks for n of Markdown's, without those that hold already, which are added to the style.
func marks(mark byte, n int, s *style) (left, right string) {
	add := func(sign string, has *bool) {
		if !*has {
			left, right = left+sign, sign+right
		}
		*has = true
	}
	if mark == '~' {
		add("~", &s.strike)
		return left, right
	}
	if n >= 2 {
		add("*", &s.bold)
	}
	if n != 2 {
		add("_", &s.italic)
	}
	return left, right
}

func before(text string, i int) rune {
	r, _ := utf8.DecodeLastRuneInString(text[:i])
	return r
}

func letter(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// hyperlink is a link of Markdown's.
type hyperlink struct {
	label, target string
	size          int // bytes in the text
}

// readLink reads [label](target) or [label](target "title") at the beginning of a text.
func readLink(text string) (hyperlink, bool) {
	depth, end := 0, -1
	for i := 0; i < len(text) && end < 0; i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				end = i
			}
		}
	}
	if end < 0 || end+1 >= len(text) || text[end+1] != '(' {
		return hyperlink{}, false
	}
	depth = 0
	for i := end + 1; i < len(text); i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				target, _, _ := strings.Cut(strings.TrimSpace(text[end+2:i]), " ")
				if inner, ok := strings.CutPrefix(target, "<"); ok {
					target = strings.TrimSuffix(inner, ">")
				}
				return hyperlink{text[1:end], target, i + 1}, true
			}
		}
	}
	return hyperlink{}, false
}

// hostLike is a word that reads like a host or an address.
var hostLike = regexp.MustCompile(`(?i)(?:[a-z][a-z0-9+.-]*://)?(?:[\pL\pN-]+\.)+\pL{2,}`)

// String is the link as Slack shows it. A label that reads like another host is left out, and one that merely has such a
// word in it is followed by the address.
func (l hyperlink) String() string {
	label := strings.TrimSpace(strings.Trim(strings.TrimSpace(l.label), "*_`~"))
	label = strings.NewReplacer("|", "∣", "\n", " ", "\\", "", "。", ".", "．", ".", "․", ".").Replace(label)
	target, host, ok := safeTarget(l.target)
	if !ok {
		return strings.TrimSpace(escape(label + " (" + l.target + ")"))
	}
	if label == "" {
		return escape(target)
	}
	for _, word := range hostLike.FindAllString(label, -1) {
		_, bare, schemed := strings.Cut(word, "://")
		if !schemed {
			bare = word
		}
		switch {
		case strings.EqualFold(strings.TrimPrefix(bare, "www."), strings.TrimPrefix(host, "www.")):
		case strings.ContainsAny(label, " \t"):
			return escape(label) + " (" + escape(target) + ")"
		default:
			return escape(target)
		}
	}
	return "<" + escape(target) + "|" + escape(label) + ">"
}

// safeTarget reads an address that may become a link: of the web, or of mail. What Slack would read as the end of the
// address is written in another way.
func safeTarget(target string) (safe, host string, ok bool) {
	u, err := url.Parse(target)
	if err != nil || strings.ContainsFunc(target, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		ok, host = u.Host != "", u.Hostname()
	case "mailto":
		_, host, ok = strings.Cut(u.Opaque, "@")
	}
	return strings.NewReplacer("<", "%3C", ">", "%3E", "|", "%7C").Replace(target), host, ok
}
