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

// eachFault calls fn for each fault that a check found and that is not made up of others.
func eachFault(fault *jsonschema.ValidationError, fn func(*jsonschema.ValidationError)) {
	if len(fault.Causes) == 0 {
		fn(fault)
	}
	for _, cause := range fault.Causes {
		eachFault(cause, fn)
	}
}

// faults puts everything that a check found into one line, in a fixed order.
func (s *Schema) faults(invalid *jsonschema.ValidationError) string {
	var texts []string
	eachFault(invalid, func(fault *jsonschema.ValidationError) { texts = append(texts, s.faultTexts(fault)...) })
	return inOneLine(texts)
}

func inOneLine(texts []string) string {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if more := len(texts) - maxFaults; more > 0 {
		texts = append(texts[:maxFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// fieldFaults are the faults by the property at the top that they are about, without the place where that is the property
// itself.
func (s *Schema) fieldFaults(invalid *jsonschema.ValidationError) map[string]string {
	texts := map[string][]string{}
	eachFault(invalid, func(fault *jsonschema.ValidationError) {
		if len(fault.InstanceLocation) > 0 {
			name := fault.InstanceLocation[0]
			for _, text := range s.faultTexts(fault) {
				if len(fault.InstanceLocation) == 1 {
					text = strings.TrimPrefix(text, placeOf(fault))
				}
				texts[name] = append(texts[name], text)
			}
			return
		}
		switch what := fault.ErrorKind.(type) {
		case *kind.Required:
			for _, name := range what.Missing {
				texts[name] = append(texts[name], "it is missing")
			}
		case *kind.AdditionalProperties:
			for _, name := range what.Properties {
				texts[name] = append(texts[name], "it is not known")
			}
		}
	})
	fields := map[string]string{}
	for name, of := range texts {
		fields[name] = inOneLine(of)
	}
	return fields
}

// faultTexts describes one fault; several unknown properties of one object are several texts.
func (s *Schema) faultTexts(fault *jsonschema.ValidationError) []string {
	place := placeOf(fault)
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

// placeOf says where in the arguments a fault is, before its text; "" for the whole.
func placeOf(fault *jsonschema.ValidationError) string {
	if len(fault.InstanceLocation) == 0 {
		return ""
	}
	return fmt.Sprintf("at %q: ", clip(pointer(fault.InstanceLocation), maxNameText))
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
