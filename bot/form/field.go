package form

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"nudge/bot"
)

// Way is how a field is filled in.
type Way string

// The ways.
const (
	Text   Way = "text"
	Number Way = "number"
	Choice Way = "choice"
	Switch Way = "switch" // yes or no
	JSON   Way = "json"
	Kept   Way = "kept" // too long for an input: it stays as it is
)

// Absent is the value of the choice that leaves an argument out. It is not JSON, so no other has it.
const Absent = "absent"

// Limits are those of a platform's forms.
type Limits struct {
	Input   int                   // what an input holds at most
	Option  int                   // the length of a choice
	Options int                   // choices of a menu
	Length  func(text string) int // as the platform counts it
}

// Field is one argument in a form.
type Field struct {
	Name     string
	Hint     string // what the schema says of it; "" for nothing
	part     schemaPart
	types    []string // that fit, without null; nil when the schema does not say so plainly
	nullable bool
	required bool
	value    json.RawMessage // as it stands; nil when it is left out
	hidden   bool            // something in it was hidden: it is shown empty, and stays as it is unless it is filled in
	rest     bool            // it stands for several arguments, as a JSON object
	limits   Limits
}

// keptHint stands at a field that is hidden.
const keptHint = "Hidden: it stays as it is unless you fill this in."

// Fields are the fields for arguments: those that the schema names in its order, then the others that are there. ok is false
// when there are none that could be filled in, or when they cannot be told apart in a form.
func Fields(schema, arguments json.RawMessage, limits Limits) (fields []Field, ok bool) {
	var top schemaPart
	if len(schema) == 0 || json.Unmarshal(schema, &top) != nil {
		return nil, false
	}
	names, parts, ok := members(top.Properties)
	_, values, isObject := members(arguments)
	if !ok || !isObject {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, known := parts[name]; !known {
			names = append(names, name)
		}
	}
	for _, name := range names {
		f := Field{Name: name, value: values[name], required: slices.Contains(top.Required, name), limits: limits}
		_ = json.Unmarshal(parts[name], &f.part) // true, or nothing, allows any JSON
		f.types, f.nullable = f.part.kinds()
		f.Hint = strings.TrimSpace(bot.Visible(f.part.Description))
		if f.hidden = bot.Conceals(f.value) || bot.Conceals(json.RawMessage(name)); f.hidden {
			f.value, f.Hint = nil, strings.TrimSpace(keptHint+" "+f.Hint)
		}
		fields = append(fields, f)
	}
	return fields, slices.ContainsFunc(fields, func(f Field) bool { return f.Way() != Kept })
}

// Squeeze makes fields fit into a form with so many inputs: those for which there is no room become one of JSON, which is the
// last. Those that are kept as they are need no room, and stand behind it.
func Squeeze(fields []Field, most int) (squeezed []Field) {
	var kept []Field
	for _, f := range fields {
		if f.Way() == Kept {
			kept = append(kept, f)
		} else {
			squeezed = append(squeezed, f)
		}
	}
	if len(squeezed) <= most {
		return append(squeezed, kept...)
	}
	rest := Field{Name: "All others", rest: true, types: []string{"object"}, required: true, limits: fields[0].limits}
	rest.value = object(squeezed[most-1:], func(f Field) json.RawMessage { return f.value })
	var names []string
	for _, f := range squeezed[most-1:] {
		name := f.Name
		if f.hidden {
			name += " (hidden, stays unless written)"
		}
		names = append(names, name)
	}
	rest.Hint = bot.Visible(strings.Join(names, ", "))
	return append(append(squeezed[:most-1:most-1], rest), kept...)
}

// Way is how a field is filled in.
func (f Field) Way() Way {
	text, isText := f.text()
	switch {
	case f.choices() != nil:
		return Choice
	case f.hidden && !f.only("string"):
		return JSON
	case f.only("boolean") && (f.isEmpty() || isBoolean(f.value)):
		return Switch
	case f.only("string") && (isText || f.isEmpty()):
		if f.limits.Length(text) > f.limits.Input {
			return Kept
		}
		return Text
	case (f.only("integer") || f.only("number")) && (f.isEmpty() || sureNumber(f.value)):
		return Number
	case f.limits.Length(f.Shown()) > f.limits.Input:
		return Kept
	}
	return JSON
}

// Optional reports whether a field may be left empty. A text that is required may be empty.
func (f Field) Optional() bool {
	return !f.required || f.hidden || f.nullable || f.Way() == Text && f.Shown() == ""
}

// Decimal reports whether a number may have a fraction.
func (f Field) Decimal() bool { return f.only("number") }

// Bounds are the least and the greatest number of a field, in digits that every program keeps; "" where there is none, or
// where it is left to the check.
func (f Field) Bounds() (least, greatest string) {
	bound := func(of json.Number) string {
		if !sureNumber(json.RawMessage(of)) || !f.Decimal() && strings.Contains(string(of), ".") {
			return ""
		}
		return string(of)
	}
	return bound(f.part.Minimum), bound(f.part.Maximum)
}

func (f Field) only(name string) bool { return len(f.types) == 1 && f.types[0] == name }

// isEmpty reports whether there is no value that an input could show.
func (f Field) isEmpty() bool { return f.value == nil || f.isNull() }

func (f Field) isNull() bool { return string(bytes.TrimSpace(f.value)) == "null" }

func (f Field) text() (text string, ok bool) {
	return text, !f.isEmpty() && json.Unmarshal(f.value, &text) == nil
}

// Shown is what an input shows of a field first.
func (f Field) Shown() string {
	if f.value == nil {
		return ""
	}
	text, isText := f.text()
	switch {
	case f.only("string") && isText:
		return text
	case f.isNull() && f.types != nil:
		return ""
	}
	shown := indented(f.value)
	if f.limits.Length(shown) > f.limits.Input {
		shown = string(f.value)
	}
	return shown
}

// choices are the values of an enum that fits into a menu; nil when there is none.
func (f Field) choices() []json.RawMessage {
	if f.hidden || len(f.part.Enum) == 0 || len(f.part.Enum) >= f.limits.Options {
		return nil
	}
	there := f.value == nil
	for i, value := range f.part.Enum {
		name := choiceName(value)
		twice := slices.ContainsFunc(f.part.Enum[:i], func(other json.RawMessage) bool { return sameJSON(other, value) })
		if name == "" || f.limits.Length(name) > f.limits.Option || f.limits.Length(string(value)) > f.limits.Option || twice {
			return nil
		}
		there = there || sameJSON(value, f.value)
	}
	if !there {
		return nil
	}
	return f.part.Enum
}

// choiceName is a value as a menu shows it.
func choiceName(value json.RawMessage) string {
	var text string // of null it is ""
	if json.Unmarshal(value, &text) == nil {
		return strings.TrimSpace(bot.Visible(text))
	}
	return string(value)
}

// Option is a value to choose.
type Option struct {
	Value  string // for [Arguments]
	Name   string
	Stands bool // it is the value as it is
}

// Options are what there is to choose from in a field that is filled in by [Choice] or [Switch], with one for none where the
// argument may be left out.
func (f Field) Options() (options []Option) {
	stands := false
	add := func(value json.RawMessage, name string) {
		o := Option{string(value), name, f.value != nil && sameJSON(value, f.value)}
		stands = stands || o.Stands
		options = append(options, o)
	}
	if f.Way() == Switch {
		add(json.RawMessage("true"), "Yes")
		add(json.RawMessage("false"), "No")
	} else {
		for _, value := range f.choices() {
			add(value, choiceName(value))
		}
	}
	if !f.required || f.nullable {
		options = append(options, Option{Absent, "(not set)", f.isEmpty() && !stands})
	}
	return options
}
