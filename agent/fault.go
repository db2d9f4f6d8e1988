package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// faults puts everything that a check found into one line, in a fixed order.
func (s *Schema) faults(invalid *jsonschema.ValidationError) string {
	var texts []string
	var collect func(*jsonschema.ValidationError)
	collect = func(fault *jsonschema.ValidationError) {
		if len(fault.Causes) == 0 {
			texts = append(texts, s.faultTexts(fault)...)
		}
		for _, cause := range fault.Causes {
			collect(cause)
		}
	}
	collect(invalid)
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if more := len(texts) - maxFaults; more > 0 {
		texts = append(texts[:maxFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// faultTexts describes one fault; several unknown properties of one object are several texts.
func (s *Schema) faultTexts(fault *jsonschema.ValidationError) []string {
	place := ""
	if len(fault.InstanceLocation) > 0 {
		place = fmt.Sprintf("at %q: ", clip(pointer(fault.InstanceLocation), maxNameText))
	}
	var texts []string
	switch what := fault.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for i, name := range slices.Sorted(slices.Values(what.Properties)) {
			text := fmt.Sprintf("%sthe property %q is not known", place, clip(name, maxNameText))
			if i < maxFaults {
				text += s.suggestion(fault.SchemaURL, name)
			}
			texts = append(texts, text)
		}
	case *kind.Required:
		for _, name := range what.Missing {
			texts = append(texts, fmt.Sprintf("%sthe property %q is missing", place, name))
		}
	default:
		text := what.LocalizedString(message.NewPrinter(language.English))
		texts = append(texts, place+clip(strings.Join(strings.Fields(text), " "), maxFaultText))
	}
	return texts
}

// suggestion names the known property that is most like an unknown one.
func (s *Schema) suggestion(location, name string) string {
	part := s.byLocation[location]
	if part == nil || len(part.Properties) == 0 {
		return ""
	}
	best, least := "", 0
	for known := range part.Properties {
		far := distance(clip(strings.ToLower(name), maxNameText), clip(strings.ToLower(known), maxNameText))
		if best == "" || far < least || far == least && known < best {
			best, least = known, far
		}
	}
	return fmt.Sprintf(" (the nearest is %q)", best)
}

// distance counts the letters to add, remove or replace to get from one word to another.
func distance(from, to string) int {
	a, b := []rune(from), []rune(to)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// pointer writes a place in a document as a JSON pointer.
func pointer(tokens []string) string {
	var out strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, token := range tokens {
		out.WriteByte('/')
		out.WriteString(escape.Replace(token))
	}
	return out.String()
}

// clip shortens a text to about limit bytes, between runes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:runeStart(text, limit)] + "…"
}
