package compact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nudge/agent/model"
)

// What is looked at of one text: a longer one is a document, of which only head and tail are read, since its own
// names and numbers are not the conversation's.
const (
	longestTold = 4000 // bytes
	edgeTold    = 1000
)

const (
	firstTold = 200 // runes of the first request that a summary must have
	lineTold  = 300 // runes of a decision or an open task that a summary must have
)

// undone stands before an item of a plan that is not done.
const undone = "☐ "

// facts are what a summary must keep word for word.
type facts struct {
	first     string   // the beginning of the first request
	names     []string // ids, paths, addresses, numbers of four digits and more
	tasks     []string // open items of the latest plan
	decisions []string // lines that say what a person decided, or is to decide
}

// all is every fact once, in the order in which a summary is checked.
func (f facts) all() []string {
	var out []string
	known := map[string]bool{"": true}
	for _, fact := range slices.Concat([]string{f.first}, f.tasks, f.decisions, f.names) {
		if !known[fact] {
			known[fact] = true
			out = append(out, fact)
		}
	}
	return out
}

// factsOf reads the facts of a conversation. Names in what was thought are no facts.
func factsOf(messages []model.Message) facts {
	var f facts
	for _, m := range messages {
		text := told(m.Text)
		if f.first == "" && m.Role == model.User && !isResult(m) && strings.TrimSpace(text) != "" {
			f.first = head(text, firstTold)
		}
		if tasks, ok := openTasks(text); ok {
			f.tasks = tasks
		}
		if m.Role == model.User || isResult(m) {
			f.decisions = append(f.decisions, decisions(text)...)
		}
		texts := []string{text}
		for _, c := range m.Calls {
			texts = append(texts, told(c.Arguments))
		}
		for _, text := range texts {
			f.names = append(f.names, names(text)...)
		}
	}
	return f
}

// told is what is looked at of a text.
func told(text string) string {
	if len(text) <= longestTold {
		return text
	}
	return text[:runeStart(text, edgeTold)] + "\n" + text[nextRune(text, len(text)-edgeTold):]
}

// named finds what may be a name, the surest kinds first: addresses, paths and files, and words, of which [isName]
// picks.
var named = regexp.MustCompile(`https?://[^\s<>"'` + "`" + `\\]+` +
	`|[\pL\pN_.+-]+@[\pL\pN-]+\.[\pL\pN.-]+` +
	`|(?:~|\.{1,2})?/?(?:[\pL\pN_.@-]+/)+[\pL\pN_.@-]*|/[\pL\pN_.@-]+` +
	`|[\pL\pN_-]+\.[a-z][a-z0-9]{1,4}\b` +
	`|#?[\pL\pN]+(?:[-_][\pL\pN]+)*`)

// cardID is an id that need not look like one: it follows "id" or "card".
var cardID = regexp.MustCompile(`^([a-z0-9-]{8,})[:),.]`)

// names are the identifiers in a text, in order.
func names(text string) []string {
	var out []string
	before := ""
	for field := range strings.FieldsSeq(text) {
		after := before
		before = strings.TrimLeft(field, "([")
		if after == "id" || after == "card" {
			if id := cardID.FindStringSubmatch(field); id != nil {
				out = append(out, id[1])
				continue
			}
		}
		// Most of prose is told from names by this, many times faster.
		if field = strings.TrimRight(field, ".,;:!?"); !strings.ContainsFunc(field, isTelling) {
			continue
		}
		for _, found := range named.FindAllString(field, -1) {
			if found = strings.TrimRight(found, ".,;:!?)]}*_-"); isName(found) {
				out = append(out, found)
			}
		}
	}
	return out
}

// isTelling reports whether a rune is one of those of which every name has some.
func isTelling(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune("/.@", r) }

// isName reports whether something is more than a word or two joined: it has four digits, or digits and letters, or
// the marks of a path, a file or an address.
func isName(word string) bool {
	letters, digits := 0, 0
	for _, r := range word {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		}
	}
	slashes := strings.Count(word, "/")
	switch {
	case digits >= 4:
		return true
	case slashes > 0:
		return letters > 1 && (slashes > 1 || digits > 0 || strings.ContainsAny(word, "._") || word[0] == '/')
	case strings.HasPrefix(word, "#"), strings.ContainsAny(word, "-_"):
		return digits > 0
	case strings.ContainsAny(word, ".@"):
		return letters > 1
	}
	return digits > 0 && letters > 0 && len(word) >= 5
}

// openTasks are the items of a plan that are not done; ok says that there is a plan in the text at all.
func openTasks(text string) (tasks []string, ok bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if task, open := strings.CutPrefix(line, undone); open {
			tasks, ok = append(tasks, head(task, lineTold)), true
		}
		ok = ok || strings.HasPrefix(line, "☑ ")
	}
	return tasks, ok
}

// decisions are the lines that say what a person decided about something, or is asked to.
func decisions(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if isDecision(strings.ToLower(line)) {
			out = append(out, head(line, lineTold))
		}
	}
	return out
}

func isDecision(line string) bool {
	for _, word := range []string{"approved", "denied", "withdrawn", "changed the arguments"} {
		if mentions(line, word) {
			return true
		}
	}
	return strings.HasPrefix(strings.TrimLeft(line, " \t["), "waiting for ")
}

// head is the beginning of a text, on one line.
func head(text string, runes int) string {
	line := strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(line) > runes {
		line = strings.TrimSpace(string([]rune(line)[:runes]))
	}
	return line
}

// CheckSummary reports whether a summary keeps what it must of the conversation that it is of, word for word but for
// white space: every identifier (ids, paths, file names, addresses, numbers of four digits and more), every open item
// of the latest plan, every line that says that something was approved or denied or waits for a person, and the
// beginning of the first request. Of a text of more than 4,000 bytes only the first and last 1,000 count. The error
// names what is missing.
func CheckSummary(original []model.Message, summary string) error {
	text := strings.Join(strings.Fields(summary), " ")
	if text == "" {
		return fmt.Errorf("check the summary of %d messages: it is empty", len(original))
	}
	var missing []string
	all := factsOf(original).all()
	for _, fact := range all {
		if !mentions(text, fact) {
			missing = append(missing, fact)
		}
	}
	if missing == nil {
		return nil
	}
	var some []string
	for _, fact := range missing[:min(len(missing), 5)] {
		some = append(some, fmt.Sprintf("%q", clip(fact, 80)))
	}
	return fmt.Errorf("check the summary of %d messages: it lacks %d of the %d things to keep, such as %s",
		len(original), len(missing), len(all), strings.Join(some, ", "))
}

// mentions reports whether a text has a fact that is not part of a longer word.
func mentions(text, fact string) bool {
	for at := 0; ; {
		found := strings.Index(text[at:], fact)
		if found < 0 {
			return false
		}
		at += found
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(fact):])
		first, _ := utf8.DecodeRuneInString(fact)
		last, _ := utf8.DecodeLastRuneInString(fact)
		if !(inWord(before) && inWord(first)) && !(inWord(after) && inWord(last)) {
			return true
		}
		at++
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
