package command

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Programs, shells first of all, make other names of what they are given: of signs that stand for any name those that
// match, of braces each part, of %2e and \u002e a dot. So what a text names is looked for by each of these spellings as well.

const (
	mostSpellings = 500           // of one text
	mostMatched   = 20_000        // names that are looked at in one look at a call
	wildcards     = "*?["         // signs that stand for some part of a name
	spelled       = "*?[%\\~$'\"" // signs of which a program may make something else
)

// spelling is what programs may make of one text.
type spelling struct {
	paths []string // but for the text itself
	all   bool     // there are no others
}

// spellings are the paths that programs may make of a text.
func (g *ground) spellings(text string) spelling {
	if !strings.ContainsAny(text, spelled) || len(text) > maxPath {
		return spelling{all: true}
	}
	if known, ok := g.spelt[text]; ok {
		return known
	}
	m := matching{ground: g, all: true}
	for _, plain := range respelled(text, g.dir, &m.all) {
		if strings.ContainsAny(plain, wildcards) {
			m.match("", strings.Split(plain, "/"))
		}
		m.add(plain)
	}
	found := spelling{slices.DeleteFunc(m.found, func(path string) bool { return path == text }), m.all}
	g.spelt[text] = found
	return found
}

var (
	escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	choice = regexp.MustCompile(`\{([^{}]*)\}`)
	stars  = regexp.MustCompile(`\*{2,}`)
	quotes = strings.NewReplacer(`\`, "", `"`, "", `'`, "")
)

// character is how languages write one by its number: \u002e, \u{2e}, \U0000002e, \x2e, \56.
var character = regexp.MustCompile(`\\(?:u\{[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|x[0-9A-Fa-f]{1,2}|[0-7]{1,4})`)

// unescaped is a text with characters in the place of their numbers.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return character.ReplaceAllStringFunc(text, func(written string) string {
		base := 16
		number := strings.Trim(written[2:], "{}")
		if written[1] >= '0' && written[1] <= '7' {
			base, number = 8, written[1:]
		}
		code, err := strconv.ParseUint(number, base, 32)
		if err != nil || code > unicode.MaxRune {
			return written
		}
		return string(rune(code))
	})
}

// variants are a text and what becomes of it, and of that, by some function. all is set to false where there are more.
func variants(text string, all *bool, of func(text string, add func(string))) []string {
	texts := []string{text}
	add := func(other string) {
		switch {
		case slices.Contains(texts, other):
		case len(texts) >= mostSpellings:
			*all = false
		default:
			texts = append(texts, other)
		}
	}
	for i := 0; i < len(texts); i++ {
		of(texts[i], add)
	}
	return texts
}

// braced are a text and what becomes of it with one part of what stands in braces.
func braced(text string, all *bool) []string {
	return variants(text, all, func(text string, add func(string)) {
		at := choice.FindStringSubmatchIndex(text)
		if at == nil || !strings.Contains(text[at[2]:at[3]], ",") {
			return
		}
		for part := range strings.SplitSeq(text[at[2]:at[3]], ",") {
			add(text[:at[0]] + part + text[at[1]:])
		}
	})
}

// respelled are a text and what becomes of it where quotes, escapes and variables are read.
func respelled(text, dir string, all *bool) []string {
	return variants(text, all, func(text string, add func(string)) {
		add(quotes.Replace(text))
		add(unescaped(text))
		if escape.MatchString(text) {
			if plain, err := url.PathUnescape(text); err == nil {
				add(plain)
			}
		}
		if rest, ok := strings.CutPrefix(text, "~"); ok && (rest == "" || rest[0] == '/') {
			add(os.Getenv("HOME") + rest)
		}
		if strings.Contains(text, "$") {
			add(os.Expand(text, func(name string) string { return map[string]string{"HOME": os.Getenv("HOME"), "PWD": dir}[name] }))
		}
	})
}

// matching looks for the paths that match one with signs that stand for any part of a name.
type matching struct {
	*ground
	found []string
	all   bool
}

func (m *matching) add(path string) {
	switch {
	case slices.Contains(m.found, path):
	case len(m.found) >= mostSpellings:
		m.all = false
	default:
		m.found = append(m.found, path)
	}
}

// match adds what matches in a folder, "" for the one in which the program runs.
func (m *matching) match(folder string, names []string) {
	for len(names) > 0 && !strings.ContainsAny(names[0], wildcards) {
		if folder == "" && names[0] != "" {
			folder = names[0]
		} else {
			folder += "/" + names[0]
		}
		names = names[1:]
	}
	if len(names) == 0 {
		m.add(folder)
		return
	}
	pattern := anyOf(stars.ReplaceAllString(names[0], "*"))
	for _, name := range m.names(folder, names[0]) {
		if !m.all {
			return
		}
		if pattern.MatchString(name) {
			next := name
			if folder != "" {
				next = folder + "/" + name
			}
			m.match(next, names[1:])
		}
	}
}

// names are those in a folder that a program may take for a match; the one above is among them where it asks for a name that
// begins with a dot.
func (m *matching) names(folder, pattern string) []string {
	at := folder
	if !filepath.IsAbs(at) {
		at = filepath.Join(m.dir, at)
	}
	dir, err := os.Open(at)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(max(m.matched, 0) + 1) // an error is that there are none, or it is no folder
	if m.matched -= len(names); m.matched < 0 {
		m.all = false
		return nil
	}
	if strings.ContainsAny(pattern[:1], ".[") {
		names = append(names, "..")
	}
	return names
}

// anyOf is a name with signs as a pattern. What stands in brackets is taken for anything, since programs differ in that.
func anyOf(name string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for i := 0; i < len(name); i++ {
		switch end := strings.IndexByte(name[i:], ']'); {
		case name[i] == '*':
			b.WriteString(`.*`)
		case name[i] == '?':
			b.WriteString(`.`)
		case name[i] == '[' && end > 0:
			b.WriteString(`.*`)
			i += end
		default:
			b.WriteString(regexp.QuoteMeta(name[i : i+1]))
		}
	}
	pattern, err := regexp.Compile(b.String() + `$`)
	if err != nil { // of a name that is no UTF-8
		return regexp.MustCompile(`.*`)
	}
	return pattern
}

// printSpelled is printOf for one of many paths that a text stands for, within the bounds of what is looked at.
func (g *ground) printSpelled(text, path string) string {
	if name, local := g.plain(path); local {
		if info, err := g.root.Stat(name); err == nil && info.Mode().IsRegular() {
			if g.content -= info.Size(); g.content < 0 {
				g.large = text
				return fmt.Sprintf("size:%d:changed:%d", info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return g.printOf(path)
}
