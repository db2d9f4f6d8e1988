package diary

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"nudge/memory/diary"
)

// brackets end the marks and blocks in which notes stand.
var brackets = strings.NewReplacer("[", `\u005b`, "]", `\u005d`)

// quote is a text as JSON, at most so many bytes of it, in which no bracket stands as itself.
func quote(text string, limit int) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit] + "…"
	}
	quoted, err := json.Marshal(text) // which writes < and > as escapes too
	if err != nil {                   // texts always encode
		return `""`
	}
	return brackets.Replace(string(quoted))
}

// Line tells of a note that was found, for a model: its date and age, its words, what was said before it, and what speaks
// against relying on it.
func Line(h diary.Hit, at time.Time, zone string, limit int) string {
	where, err := time.LoadLocation(zone)
	if err != nil {
		where = time.UTC
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", h.Said.In(where).Format(time.DateOnly), h.Age(at), quote(h.Text, limit))
	if h.Before != nil {
		fmt.Fprintf(&b, "; before that, on %s: %s", h.Before.Said.In(where).Format(time.DateOnly), quote(h.Before.Text, limit))
	}
	if ofStrangers(h) {
		b.WriteString("; written while text of strangers was in view")
	}
	if h.Stale(at) {
		b.WriteString("; old: if it matters, ask whether it still holds")
	}
	return b.String()
}

// ofStrangers reports whether something that is told of a note was written while text of strangers was in view.
func ofStrangers(h diary.Hit) bool {
	return h.Origin.Outside || h.Before != nil && h.Before.Origin.Outside
}
