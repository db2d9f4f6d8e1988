package markdown

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// addressed finds the beginnings of addresses that say what they are, also where a backslash is to hide them from Markdown: those
// with two slashes, those of schemes that go without and that some program opens, and names that begin with www.
var addressed = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*\\?:\\?/\\?/|` +
	`\b(?:` + schemes + `)\\?:[^\s\\*]|www\.`)

// schemes are those of addresses without slashes.
const schemes = `mailto|tel|sms|callto|facetime|skype|sips?|xmpp|magnet|news|data|javascript|vbscript|intent|geo|file|slack|discord|steam|spotify`

// named finds what may be an address without that: a name with dots in it, in whatever script and with whichever dots, and a port
// and the beginning of a path behind it. The groups are the host and what comes behind that.
var named = regexp.MustCompile(`(` + label + `(?:` + dot + label + `)+)(` + dot + `?(?:\\?:(?:\d{1,5}|\\?/))?\\?[/?#]?)`)

const (
	label = `[\pL\pN](?:[\pL\pN\pM\p{Cf}_-]*[\pL\pN\pM\p{Cf}])?`
	dot   = `(?:\\?[.。．｡․﹒]\p{Cf}*)`
)

// plainly is a name in plain letters, as it may stand within words of a script that is written without blanks.
var plainly = regexp.MustCompile(`(?i)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+`)

// angled finds what angled brackets make something to press of: addresses, and for Discord people, channels, commands, places of a
// server, times and numbers.
var angled = regexp.MustCompile(`(?i)<(?:[a-z][a-z0-9+.-]{1,31}:|[^\s<>@]+@|[@#][!&]?\d|/[^<>\n]{1,100}:\d|:\w+:\d|t:-?\d|\+\d)`)

// Unlinked is Markdown without links and images: their words stay, and the address stands behind them as code, where all of
// it can be read and nothing follows it. It is for texts that somebody else than the model may have had a hand in, whose
// links could carry away what nobody was asked about, or lead elsewhere than they say. Code that every platform takes for
// code stays as it is. So do words with dots that lead nowhere, such as main.go; README.md does lead somewhere, and is code.
func Unlinked(text string) string {
	text = Clean(text)
	out := &unlinker{}
	at := 0
	for _, code := range codeIn(text) {
		out.words(text[at:code.from])
		out.code(text[code.from:code.to])
		at = code.to
	}
	out.words(text[at:])
	return out.String()
}

// unlinker writes a text in which nothing is a link.
type unlinker struct {
	strings.Builder
	angle bool // a < was written, and no blank since: what comes behind it may be read as an address up to the next >
}

// linking is what makes links, as it may stand. A backtick that begins no code could take the one away that does.
var linking = strings.NewReplacer("`", "ˋ", "](", "] (", "]:", "] :")

// words writes what is no code.
func (u *unlinker) words(text string) {
	next := finder{text: text}
	for at := 0; ; {
		from, to, found := next.address(at)
		if !found {
			u.plain(text[at:])
			return
		}
		before := text[at:from]
		if slashes := len(before) - len(strings.TrimRight(before, "\\")); slashes%2 == 1 {
			before = before[:len(before)-1] // it would take the backtick for a word
		}
		u.plain(before)
		u.address(strings.ReplaceAll(text[from:to], "\\", ""))
		at = to
	}
}

func (u *unlinker) plain(text string) {
	if strings.Contains(text, "<") {
		text = angled.ReplaceAllStringFunc(text, func(begins string) string { return "< " + begins[1:] })
	}
	open, shut := strings.LastIndexByte(text, '<'), strings.LastIndexAny(text, " >")
	u.angle = open > shut || u.angle && shut < 0
	u.WriteString(linking.Replace(text))
}

// longestCode is how many bytes of an address stand in one piece of code, so that no platform cuts one where a message ends.
const longestCode = 500

// address writes an address as code, a long one in several pieces.
func (u *unlinker) address(address string) {
	for len(address) > longestCode {
		end := longestCode
		for !utf8.RuneStart(address[end]) {
			end--
		}
		u.code("`" + address[:end] + "`")
		address = address[end:]
	}
	u.code("`" + address + "`")
}

// code writes code with its marks, apart from code before it, as marks that touch are others, and from a bracket that makes a link
// of whatever stands in it.
func (u *unlinker) code(text string) {
	if u.angle || strings.HasSuffix(u.String(), "`") {
		u.WriteByte(' ')
		u.angle = false
	}
	u.WriteString(text)
}

// finder finds addresses in a text, from front to back. What it has found and was not asked for yet it keeps.
type finder struct {
	text      string
	addressed extent
	named     extent
}

// address is the first address behind a place of the text.
func (f *finder) address(at int) (from, to int, found bool) {
	if f.addressed.from < at || at == 0 {
		f.addressed = extent{len(f.text), len(f.text)}
		if m := firstIn(f.text, at, addressed); m != nil {
			f.addressed = extent{m[0], m[1]}
		}
	}
	if f.named.from < at || at == 0 {
		f.named = f.name(at)
	}
	if f.addressed.from < f.named.from {
		known := f.addressed.to - f.addressed.from
		return f.addressed.from, f.addressed.from + len(addressOf(f.text[f.addressed.from:], known)), true
	}
	if f.named.from == len(f.text) {
		return 0, 0, false
	}
	end := f.named.to
	if strings.ContainsRune("/?#", rune(f.text[end-1])) { // without a path it ends with the name
		end = len(f.text)
	}
	from = f.named.from - len(f.before(at))
	return from, from + len(addressOf(f.text[from:end], f.named.to-from)), true
}

// blanks part words, and are no part of what the patterns of addresses match. Each of those matches one of telling.
const (
	blanks  = " \t\n\f\r"
	telling = ":.。．｡․﹒"
)

// firstIn is where the first match of a pattern of addresses and its groups stand behind a place of a text. Only words that can be
// addresses are looked at, each by itself: a search costs as much as what it may search is long, also where it ends soon.
func firstIn(text string, at int, pattern *regexp.Regexp) []int {
	for at < len(text) {
		end := len(text)
		if n := strings.IndexAny(text[at:], blanks); n >= 0 {
			end = at + n
		}
		if word := text[at:end]; strings.ContainsAny(word, telling) {
			if found := pattern.FindStringSubmatchIndex(word); found != nil {
				for i := range found {
					found[i] += at
				}
				return found
			}
		}
		at = end + 1
	}
	return nil
}

// before is what belongs to a name though it stands before it: who it is at, or a path.
func (f *finder) before(at int) string {
	text := f.text[at:f.named.from]
	ends := func(r rune) bool { return !word(r) && !strings.ContainsRune("_-./~", r) }
	if strings.HasSuffix(text, "@") {
		ends = func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("<>\"'`|()[]", r) }
	}
	if last := strings.LastIndexFunc(text, ends); last >= 0 {
		_, size := utf8.DecodeRuneInString(text[last:])
		text = text[last+size:]
	}
	return strings.TrimLeft(text, "_")
}

// name is the first name behind a place that is an address; behind the end if there is none.
func (f *finder) name(at int) extent {
	for {
		m := firstIn(f.text, at, named)
		if m == nil {
			return extent{len(f.text), len(f.text)}
		}
		from, host, end := m[0], m[3], m[1]
		who := from > 0 && f.text[from-1] == '@'
		if who || leads(f.text[from:host], strings.ContainsAny(f.text[host:end], ":/?#")) {
			return extent{from, end}
		}
		if within := plainly.FindStringIndex(f.text[from:host]); within != nil && leads(f.text[from+within[0]:from+within[1]], false) {
			return extent{from + within[0], from + within[1]}
		}
		at = host
	}
}

// leads reports whether a name with dots leads somewhere: to an end that there is in the world, or, where more stands behind it
// than a name, to any end that could be one, or an address in numbers.
func leads(host string, more bool) bool {
	ascii, err := hosts.ToASCII(strings.ReplaceAll(host, "\\", ""))
	if err != nil {
		return true // nobody knows what others make of it
	}
	last := ascii[strings.LastIndexByte(ascii, '.')+1:]
	if _, err := netip.ParseAddr(ascii); err == nil {
		return more
	}
	if more && len(last) > 1 && strings.Trim(last, "abcdefghijklmnopqrstuvwxyz") == "" {
		return true
	}
	suffix, official := publicsuffix.PublicSuffix(ascii)
	return official || strings.Contains(suffix, ".")
}

// hosts reads names as browsers do, who fold letters and dots and leave out what is not seen.
var hosts = idna.New(idna.MapForLookup(), idna.Transitional(true), idna.StrictDomainName(false))

// addressOf is the address with which a text begins, whose first bytes are known to belong to it: not what ends a sentence behind
// it, and not the brackets that stand around it.
func addressOf(text string, known int) string {
	const ends = "*_~.,;:!?'\\"
	end := len(text)
	for i, r := range text[known:] {
		inWords := strings.HasPrefix(text[known+i:], "](") // the words of a link that look like another
		if inWords || unicode.IsSpace(r) || strings.ContainsRune("<>\"`|", r) {
			end = known + i
			break
		}
	}
	address := strings.TrimRight(text[:end], ends)
	open, closed := strings.Count(address, "("), strings.Count(address, ")")
	for {
		switch {
		case strings.HasSuffix(address, ")") && closed > open:
			closed--
		case !strings.HasSuffix(address, "]"):
			if address == "" {
				return text[:1]
			}
			return address
		}
		address = strings.TrimRight(address[:len(address)-1], ends)
	}
}

// Defanged is a text for programs that find addresses in whatever is shown, in code as well, such as terminals: each stands with
// its colon and the dots of its host in brackets, where people read it and nothing follows it. A name alone, with neither a
// scheme nor a path, stays as it is.
func Defanged(text string) string {
	var out strings.Builder
	next := finder{text: text}
	for at := 0; ; {
		from, to, found := next.address(at)
		if !found {
			out.WriteString(text[at:])
			return out.String()
		}
		out.WriteString(text[at:from])
		out.WriteString(defanged(text[from:to]))
		at = to
	}
}

var (
	inHost = strings.NewReplacer(".", "[.]", "。", "[.]", "．", "[.]", "｡", "[.]")
	inAll  = strings.NewReplacer("://", "[:]//", "@", "[@]")
	begins = regexp.MustCompile(`(?i)((?:www|ftp)[\w-]*)\.|(` + schemes + `):`) // addresses within an address
)

func defanged(address string) string {
	behind := address[strings.LastIndexByte(address, '.')+1:] // of a version, as in pkg@1.2, a number
	if !addressed.MatchString(address) && !strings.ContainsAny(address, "/?#:") && (!strings.Contains(address, "@") || strings.Trim(behind, "0123456789") == "") {
		return address
	}
	scheme, rest, schemed := strings.Cut(address, ":")
	if schemed = schemed && addressed.MatchString(address) && !strings.ContainsAny(scheme, "/?#@"); !schemed {
		scheme, rest = "", address
	}
	rest = inAll.Replace(rest)
	slashes := len(rest) - len(strings.TrimLeft(rest, "/"))
	end := len(rest)
	if at := strings.IndexAny(rest[slashes:], "/?#"); at >= 0 {
		end = slashes + at
	}
	rest = inHost.Replace(rest[:end]) + rest[end:]
	if schemed {
		rest = scheme + "[:]" + rest
	}
	return begins.ReplaceAllStringFunc(rest, func(begin string) string {
		return begin[:len(begin)-1] + "[" + begin[len(begin)-1:] + "]"
	})
}

// extent is the bytes from one place of a text to another.
type extent struct{ from, to int }

// codeIn finds the code in a text, with its marks, that is code to whoever reads it: spans between single backticks in one
// line, and blocks between fences of three that have none inside. What only some platforms take for code is not among it.
func codeIn(text string) (found []extent) {
	tree, source, ok := Parse(text)
	if !ok {
		return nil
	}
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			if s, ok := spanAt(n, source); ok {
				found = append(found, s)
			}
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock:
			if s, ok := fenceAt(n, source); ok {
				found = append(found, s)
			}
		}
		return ast.WalkContinue, nil
	})
	slices.SortFunc(found, func(a, b extent) int { return a.from - b.from })
	return found
}

func spanAt(n *ast.CodeSpan, source []byte) (s extent, ok bool) {
	first, isText := n.FirstChild().(*ast.Text)
	last, alsoText := n.LastChild().(*ast.Text)
	if !isText || !alsoText {
		return s, false
	}
	s = extent{first.Segment.Start, last.Segment.Stop}
	for s.from > 0 && source[s.from-1] == ' ' {
		s.from--
	}
	for s.to < len(source) && source[s.to] == ' ' {
		s.to++
	}
	inside := source[s.from:s.to]
	if s.from < 1 || s.to >= len(source) || source[s.from-1] != '`' || source[s.to] != '`' || bytes.ContainsAny(inside, "`\n") {
		return s, false
	}
	s.from, s.to = s.from-1, s.to+1
	alone := (s.from == 0 || source[s.from-1] != '`') && (s.to == len(source) || source[s.to] != '`')
	return s, alone
}

func fenceAt(n *ast.FencedCodeBlock, source []byte) (s extent, ok bool) {
	lines := n.Lines()
	if lines.Len() == 0 {
		return s, false
	}
	s = extent{lineStart(source, lines.At(0).Start), lines.At(lines.Len() - 1).Stop}
	inside := source[s.from:s.to]
	if s.from == 0 || bytes.Contains(inside, []byte("`")) {
		return s, false
	}
	s.from = lineStart(source, s.from-1)
	end := s.to + max(bytes.IndexByte(source[s.to:], '\n'), 0)
	if end == s.to {
		end = len(source)
	}
	opening, closing := bytes.TrimSpace(source[s.from:lineStart(source, s.from+bytes.IndexByte(source[s.from:], '\n')+1)]), bytes.TrimSpace(source[s.to:end])
	s.to = end
	return s, bytes.HasPrefix(opening, []byte("```")) && bytes.Count(opening, []byte("`")) == 3 && !bytes.ContainsAny(opening, "[<:") && string(closing) == "```"
}

// lineStart is where the line begins that a place is in.
func lineStart(source []byte, at int) int { return bytes.LastIndexByte(source[:at], '\n') + 1 }
