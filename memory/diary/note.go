package diary

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Private is the scope of what was learned in private: only its person is shown it, and only in private. Every other scope
// names a shared conversation.
const Private = "private"

// Bounds of a note. What is longer is refused, but for aliases, of which the first are taken.
const (
	MaxText    = 256 << 10 // bytes
	MaxAliases = 16
	maxAlias   = 200 // bytes
	maxAbout   = 100 // bytes
)

// StaleAfter is the age from which a note is shown as one that may no longer hold.
const StaleAfter = 180 * 24 * time.Hour

// ErrBlank is wrapped by the error for a note that says nothing.
var ErrBlank = errors.New("there is nothing in the note")

// ErrLong is wrapped by the error for a note that is too long.
var ErrLong = errors.New("the note is too long")

// ErrUnknownNote is wrapped by the error for a note that its person does not have, or not in that place.
var ErrUnknownNote = errors.New("there is no such note")

// View is whose notes are meant, and where they would be shown. Without both nothing is found.
type View struct {
	Person string
	Scope  string
}

// sound is an error for a view that names nobody or no place.
func (v View) sound() error {
	if v.Person == "" || v.Scope == "" || strings.ContainsRune(v.Person, 0) || strings.ContainsRune(v.Scope, 0) {
		return errors.New("look into a diary: it is not said whose, or where")
	}
	return nil
}

// shows reports whether what was learned in a scope may be shown in the view's.
func (v View) shows(scope string) bool { return v.Scope == Private || v.Scope == scope }

// Note is one thing worth remembering of a person. Its JSON is a row of the data file.
type Note struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`
	Aliases []string  `json:"aliases,omitempty"` // other words by which it is found
	About   string    `json:"about,omitempty"`   // the subject: a newer note about the same takes an older one's place
	Scope   string    `json:"scope"`
	Said    time.Time `json:"said"`    // when the person stated it; notes are ordered by this
	Written time.Time `json:"written"` // when it was last written down
	Origin  Origin    `json:"origin"`
	Older   string    `json:"older,omitempty"` // the note in whose place it came
	Newer   string    `json:"newer,omitempty"` // the note that came in its place
}

// Origin says where a note came from.
type Origin struct {
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	By      string `json:"by,omitempty"`      // "model", or "person" for their own command
	Account string `json:"account,omitempty"` // with which the person spoke; "" where that is not known
	// Also are others of their accounts with which they have said the same.
	Also []string `json:"also,omitempty"`
	// Outside says that text of strangers was in the model's view when it wrote the note.
	Outside bool `json:"outside,omitempty"`
}

// meet takes in the origin of a note that said the same. What is known of neither side of it is not made known by the other.
func (o *Origin) meet(same Origin) {
	accounts := append(slices.Clone(o.Also), same.Also...)
	if same.Account == "" {
		accounts, o.Account = append(accounts, o.Account), ""
	} else {
		accounts = append(accounts, same.Account)
	}
	o.Also = o.but(accounts)
}

// but are accounts without repeats, and without the origin's first.
func (o Origin) but(accounts []string) []string {
	slices.Sort(accounts)
	return slices.DeleteFunc(slices.Compact(accounts), func(a string) bool { return a == "" || a == o.Account })
}

// of reports whether a note was said with an account, and what is its origin for those who have the other accounts: false when
// it was said with none of these.
func (o Origin) of(account string) (said bool, rest Origin, others bool) {
	rest = o
	rest.Also = slices.DeleteFunc(slices.Clone(o.Also), func(a string) bool { return a == account })
	if o.Account != account {
		return len(rest.Also) < len(o.Also), rest, true
	}
	if rest.Account = ""; len(rest.Also) > 0 {
		rest.Account, rest.Also = rest.Also[0], rest.Also[1:]
	}
	return true, rest, rest.Account != ""
}

// Draft is a note that is to be written, with its vectors where they could be had. Make one with [Diary.Draft].
type Draft struct {
	Note
	vectors [][]float32
	model   string
}

// check makes a note fit to be written, or says why it cannot be.
func (n *Note) check() error {
	n.Text = strings.TrimSpace(strings.ToValidUTF8(n.Text, "\uFFFD"))
	switch {
	case plain(n.Text) == "":
		return ErrBlank
	case len(n.Text) > MaxText:
		return fmt.Errorf("%w: it has %d bytes and may have %d", ErrLong, len(n.Text), MaxText)
	case n.Scope == "":
		return errors.New("the note has no scope")
	}
	n.About = cut(strings.TrimSpace(strings.ToValidUTF8(n.About, "")), maxAbout)
	n.Aliases = mergeAliases(nil, n.Aliases)
	if n.ID == "" {
		n.ID = newID()
	}
	return nil
}

// mergeAliases adds aliases to others, without blanks and repeats, and within the bound.
func mergeAliases(to, more []string) []string {
	seen := map[string]bool{}
	for _, a := range to {
		seen[plain(a)] = true
	}
	for _, a := range more {
		a = cut(strings.TrimSpace(strings.ToValidUTF8(a, "")), maxAlias)
		if key := plain(a); key != "" && !seen[key] && len(to) < MaxAliases {
			seen[key] = true
			to = append(to, a)
		}
	}
	return to
}

// newID is 8 letters and digits that are easy to type.
func newID() string {
	return "n" + strings.ToLower(rand.Text()[:7])
}

// plain is a text without what two spellings of the same words differ in: case, composed letters, spaces, and the marks at
// its end. Negations and all other words stay.
func plain(text string) string {
	text = cases.Fold().String(norm.NFC.String(text))
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), ".!?;,… ")
}

// cut is the beginning of a text, of at most limit bytes, with no rune split.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Age is how long ago the person stated it, in words, as of an instant.
func (n Note) Age(at time.Time) string {
	days := int(at.Sub(n.Said).Hours() / 24)
	count := func(number int, unit string) string {
		if number == 1 {
			return "1 " + unit + " ago"
		}
		return fmt.Sprintf("%d %ss ago", number, unit)
	}
	switch {
	case days < 1:
		return "today"
	case days < 60:
		return count(days, "day")
	case days < 730:
		return count(days/30, "month")
	}
	return count(days/365, "year")
}

// Stale reports whether a note is so old that it may no longer hold.
func (n Note) Stale(at time.Time) bool { return at.Sub(n.Said) > StaleAfter }
