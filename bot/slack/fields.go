package slack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
)

// A form for an edit has a field for each argument, made from the tool's JSON Schema and the arguments as they stand. It is
// made anew from both when it comes back filled in, so that it is understood after a restart; what is in a field that was
// not touched stays what it was, to the byte.

// Slack's limits of forms (https://docs.slack.dev/reference/views and .../block-kit/block-elements), in pieces and
// characters.
const (
	mostBlocks  = 100
	mostOptions = 100
	optionLimit = 75
	labelLimit  = 150 // of ours: a name
	hintLimit   = 300 // of ours: a description
	faultLimit  = 500 // of ours: what is wrong with a field
	sureDigits  = 15  // of a number that every program keeps exactly
)

// The ways in which fields are filled in, which are the action ids of their inputs.
const (
	fieldText   = "text"
	fieldNumber = "number"
	fieldChoice = "choice"
	fieldSwitch = "switch" // yes or no
	fieldJSON   = "json"
	fieldKept   = "kept" // too long for an input: it stays as it is
)

// absent is the value of the option that leaves an argument out. It is not JSON, so no choice has it.
const absent = "absent"

// schemaPart is what a form makes of a JSON Schema. What it does not know is checked all the same when it is sent.
type schemaPart struct {
	Type        json.RawMessage   `json:"type"` // a name, or a list of names
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	Minimum     json.Number       `json:"minimum"`
	Maximum     json.Number       `json:"maximum"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
}

// field is one argument in a form.
type field struct {
	name     string
	part     schemaPart
	types    []string // that fit, without null; nil when the schema does not say so plainly
	nullable bool
	required bool
	value    json.RawMessage // as it stands; nil when it is left out
}

// fieldsOf are the fields for arguments: those that the schema names in its order, then the others that are there. It gives
// false when there are none, or when they cannot be told apart in a form.
func fieldsOf(schema, arguments json.RawMessage) ([]field, bool) {
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
	var fields []field
	for _, name := range names {
		f := field{name: name, value: values[name], required: slices.Contains(top.Required, name)}
		_ = json.Unmarshal(parts[name], &f.part) // true, or nothing, allows any JSON
		f.types, f.nullable = f.part.kinds()
		fields = append(fields, f)
	}
	return fields, slices.ContainsFunc(fields, func(f field) bool { return f.way() != fieldKept }) && len(fields) < mostBlocks
}

// members are the members of a JSON object, and their names in order.
func members(object json.RawMessage) (names []string, values map[string]json.RawMessage, ok bool) {
	if json.Unmarshal(object, &values) != nil || values == nil {
		return nil, nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	_, _ = decoder.Token()
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err != nil || !isName || decoder.Decode(&value) != nil {
			return nil, nil, false
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, values, true
}

// kinds are the types that a schema allows by itself, and whether null is one; none when more than a type decides.
func (p schemaPart) kinds() (types []string, nullable bool) {
	var one string
	switch {
	case json.Unmarshal(p.Type, &one) == nil && one != "":
		types = []string{one}
	case json.Unmarshal(p.Type, &types) == nil:
	case len(p.AnyOf) == 2: // as generators write what may be null
		for _, alternative := range p.AnyOf {
			var of schemaPart
			if json.Unmarshal(alternative, &of) != nil || json.Unmarshal(of.Type, &one) != nil || len(of.Enum) > 0 {
				return nil, false
			}
			types = append(types, one)
		}
		if !slices.Contains(types, "null") {
			return nil, false
		}
	}
	without := slices.DeleteFunc(slices.Clone(types), func(name string) bool { return name == "null" })
	return without, len(without) < len(types)
}

// way is how a field is filled in.
func (f field) way() string {
	text, isText := f.text()
	switch {
	case f.choices() != nil:
		return fieldChoice
	case f.only("boolean") && (f.isEmpty() || isBoolean(f.value)):
		return fieldSwitch
	case f.only("string") && (isText || f.isEmpty()):
		if length(text) > inputLimit {
			return fieldKept
		}
		return fieldText
	case (f.only("integer") || f.only("number")) && (f.isEmpty() || sureNumber(f.value)):
		return fieldNumber
	case length(f.shown()) > inputLimit:
		return fieldKept
	}
	return fieldJSON
}

func (f field) only(name string) bool { return len(f.types) == 1 && f.types[0] == name }

// isEmpty reports whether there is no value that an input could show.
func (f field) isEmpty() bool { return f.value == nil || f.isNull() }

func (f field) isNull() bool { return string(bytes.TrimSpace(f.value)) == "null" }

func (f field) text() (text string, ok bool) {
	return text, !f.isEmpty() && json.Unmarshal(f.value, &text) == nil
}

func isBoolean(value json.RawMessage) bool {
	text := string(bytes.TrimSpace(value))
	return text == "true" || text == "false"
}

// sureNumber reports whether a number keeps its digits in whatever shows it.
func sureNumber(value json.RawMessage) bool {
	text := string(bytes.TrimSpace(value))
	return isNumber(text) && !strings.ContainsAny(text, "eE") && len(strings.Trim(text, "-")) <= sureDigits
}

func isNumber(text string) bool {
	return text != "" && json.Valid([]byte(text)) && (text[0] == '-' || text[0] >= '0' && text[0] <= '9')
}

// choices are the values of an enum that fits into a menu; nil when there is none.
func (f field) choices() []json.RawMessage {
	if len(f.part.Enum) == 0 || len(f.part.Enum) >= mostOptions {
		return nil
	}
	there := f.value == nil
	for i, value := range f.part.Enum {
		name := choiceName(value)
		twice := slices.ContainsFunc(f.part.Enum[:i], func(other json.RawMessage) bool { return sameJSON(other, value) })
		if name == "" || length(name) > optionLimit || length(string(value)) > optionLimit || twice {
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

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && x.String() == y.String()
}

// shown is what an input shows of a field first.
func (f field) shown() string {
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
	if length(shown) > inputLimit {
		shown = string(f.value)
	}
	return shown
}

// block is the field in a form; n is its number there.
func (f field) block(n int) slack.Block {
	name := cmp.Or(cut(bot.Visible(f.name), labelLimit), `""`)
	way := f.way()
	if way == fieldKept {
		return section(fmt.Sprintf("%s: %d characters, too long for a form. It stays as it is.", name, length(f.shown())))
	}
	if way == fieldJSON {
		name += " (JSON)"
	}
	block := slack.NewInputBlock(fieldBlock(n), label(name), nil, f.input(way))
	if hint := strings.TrimSpace(bot.Visible(f.part.Description)); hint != "" {
		block.Hint = label(cut(hint, hintLimit))
	}
	// A text that is required may be empty.
	block.Optional = !f.required || f.nullable || way == fieldText && f.shown() == ""
	return block
}

func fieldBlock(n int) string { return fmt.Sprint("argument-", n) }

func (f field) input(way string) slack.BlockElement {
	shown := f.shown()
	switch way {
	case fieldNumber:
		input := slack.NewNumberInputBlockElement(nil, way, f.types[0] == "number")
		input.InitialValue = shown
		input.MinValue, input.MaxValue = bound(f.part.Minimum, input.IsDecimalAllowed), bound(f.part.Maximum, input.IsDecimalAllowed)
		return input
	case fieldChoice:
		menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, way)
		menu.Options, menu.InitialOption = f.options(f.part.Enum, choiceName)
		return menu
	case fieldSwitch:
		buttons := slack.NewRadioButtonsBlockElement(way)
		buttons.Options, buttons.InitialOption = f.options([]json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}, func(value json.RawMessage) string {
			return map[string]string{"true": "Yes", "false": "No"}[string(value)]
		})
		return buttons
	}
	input := slack.NewPlainTextInputBlockElement(nil, way)
	input.InitialValue, input.MaxLength = shown, inputLimit
	input.Multiline = way == fieldJSON || strings.Contains(shown, "\n") || length(shown) > 80
	return input
}

// bound is the least or greatest number of an input, where Slack can keep to it; "" where it is left to the check.
func bound(of json.Number, decimal bool) string {
	if !sureNumber(json.RawMessage(of)) || !decimal && strings.Contains(string(of), ".") {
		return ""
	}
	return string(of)
}

// options are values to choose from, with one for none where the argument may be left out, and the one that stands.
func (f field) options(values []json.RawMessage, name func(json.RawMessage) string) (options []*slack.OptionBlockObject, stands *slack.OptionBlockObject) {
	for _, value := range values {
		option := slack.NewOptionBlockObject(string(value), label(name(value)), nil)
		if f.value != nil && sameJSON(value, f.value) {
			stands = option
		}
		options = append(options, option)
	}
	if !f.required || f.nullable {
		none := slack.NewOptionBlockObject(absent, label("(not set)"), nil)
		options = append(options, none)
		if f.isEmpty() && stands == nil {
			stands = none
		}
	}
	return options, stands
}

// entered is what came back in one input.
type entered struct {
	Value    string `json:"value"`
	Selected struct {
		Value string `json:"value"`
	} `json:"selected_option"`
}

// read is the argument as it was filled in; nil when it is left out.
func (f field) read(in map[string]entered) (value json.RawMessage, fault string) {
	way := f.way()
	got := in[way]
	text := strings.ReplaceAll(got.Value, "\r\n", "\n")
	if text == strings.ReplaceAll(f.shown(), "\r\n", "\n") && (way == fieldText || way == fieldNumber || way == fieldJSON) || way == fieldKept {
		return f.value, ""
	}
	none := json.RawMessage(nil)
	if f.isNull() || f.nullable && f.required {
		none = json.RawMessage("null")
	}
	switch way {
	case fieldChoice, fieldSwitch:
		switch chosen := got.Selected.Value; {
		case chosen == "" || chosen == absent:
			return none, ""
		case json.Valid([]byte(chosen)):
			return json.RawMessage(chosen), ""
		}
		return nil, "Choose one of these."
	case fieldText:
		if text == "" && (!f.required || f.nullable) {
			return none, ""
		}
		return quoted(got.Value), ""
	}
	switch text = strings.TrimSpace(text); {
	case text == "":
		return none, ""
	case way == fieldNumber && !isNumber(text):
		return nil, "This is not a number."
	case !json.Valid([]byte(text)):
		return nil, "This is not JSON: " + jsonFault(text)
	}
	return json.RawMessage(text), ""
}

func jsonFault(text string) string {
	var any json.RawMessage
	if err := json.Unmarshal([]byte(text), &any); err != nil {
		return err.Error()
	}
	return ""
}

// quoted is a text as JSON, with nothing escaped that JSON does not demand.
func quoted(text string) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// blocksOf are the blocks of a form with these fields.
func blocksOf(fields []field) []slack.Block {
	var blocks []slack.Block
	for n, f := range fields {
		blocks = append(blocks, f.block(n))
	}
	return blocks
}

// stampOf stands for the fields of a form, so that one that was made of others is known when it comes back.
func stampOf(fields []field) string {
	var b strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&b, "%q %s %v %v %q\n", f.name, f.way(), f.required, f.nullable, f.value)
	}
	return digestOf(b.String())
}

// argumentsOf are the arguments as a form was filled in, or what is wrong with it, by block.
func argumentsOf(fields []field, values map[string]map[string]entered) (arguments json.RawMessage, faults map[string]string) {
	faults = map[string]string{}
	var b bytes.Buffer
	b.WriteByte('{')
	for n, f := range fields {
		value, fault := f.read(values[fieldBlock(n)])
		switch {
		case fault != "":
			faults[fieldBlock(n)] = cut(fault, faultLimit)
		case value != nil:
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%s:%s", quoted(f.name), value)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), faults
}

// inPlace puts an objection to arguments where the fields are that it is about. What is about none of them stands at the
// first.
func inPlace(fields []field, o agent.Objection) map[string]string {
	faults, first, all := map[string]string{}, "", len(o.Fields) > 0
	for n, f := range fields {
		if f.way() == fieldKept {
			continue
		}
		if first == "" {
			first = fieldBlock(n)
		}
		if text := o.Fields[f.name]; text != "" {
			faults[fieldBlock(n)] = cut(text, faultLimit)
		}
	}
	if !all || len(faults) < len(o.Fields) {
		faults[first] = cut(o.Text, faultLimit)
	}
	return faults
}
