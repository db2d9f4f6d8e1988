package form

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"nudge/agent"
)

// Stamp stands for the fields of a form, so that one that was made of others is known when it comes back. It has sixteen
// characters.
func Stamp(fields []Field) string {
	var b strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&b, "%q %s %v %v %v %q\n", f.Name, f.Way(), f.required, f.nullable, f.hidden, f.value)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}

// Arguments are the arguments as a form was filled in, or what is wrong with it, by the number of the field. entered gives what
// was written into a field or chosen there; "" for nothing. What is hidden and was not filled in is not among them:
// only who has the card whole can put it there.
func Arguments(fields []Field, entered func(n int) string) (arguments json.RawMessage, faults map[int]string) {
	faults = map[int]string{}
	values := map[string]json.RawMessage{}
	var all []Field
	for n, f := range fields {
		value, fault := f.read(entered(n))
		if fault != "" {
			faults[n] = fault
		}
		if !f.rest {
			all, values[f.Name] = append(all, f), value
			continue
		}
		names, others, _ := members(value)
		for _, name := range names {
			all, values[name] = append(all, Field{Name: name}), others[name]
		}
	}
	return object(all, func(f Field) json.RawMessage { return values[f.Name] }), faults
}

// object is a JSON object with the values of fields, but for those that have none.
func object(fields []Field, value func(Field) json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, f := range fields {
		if value := value(f); value != nil {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%s:%s", quoted(f.Name), value)
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// read is the argument as it was filled in; nil when it is left out.
func (f Field) read(entered string) (value json.RawMessage, fault string) {
	way := f.Way()
	text := strings.ReplaceAll(entered, "\r\n", "\n")
	if text == strings.ReplaceAll(f.Shown(), "\r\n", "\n") && (way == Text || way == Number || way == JSON) || way == Kept {
		return f.value, ""
	}
	none := json.RawMessage(nil)
	if f.hidden && text == "" {
		return nil, "" // not null, which would be something else than what it is
	}
	if f.isNull() || f.nullable && f.required {
		none = json.RawMessage("null")
	}
	switch way {
	case Choice, Switch:
		switch {
		case entered == "" || entered == Absent:
			return none, ""
		case json.Valid([]byte(entered)):
			return json.RawMessage(entered), ""
		}
		return nil, "Choose one of these."
	case Text:
		if text == "" && (!f.required || f.nullable) {
			return none, ""
		}
		return quoted(entered), ""
	}
	text = strings.TrimSpace(text)
	_, _, isObject := members(json.RawMessage(text))
	switch {
	case text == "":
		return none, ""
	case way == Number && !isNumber(text):
		return nil, "This is not a number."
	case !json.Valid([]byte(text)):
		return nil, "This is not JSON: " + jsonFault(text)
	case f.rest && !isObject:
		return nil, "This is not a JSON object."
	}
	return json.RawMessage(text), ""
}

// InPlace puts an objection to arguments where the fields are that it is about, by their numbers. What is about none of them
// stands at the first.
func InPlace(fields []Field, o agent.Objection) map[int]string {
	faults, first, all := map[int]string{}, -1, len(o.Fields) > 0
	for n, f := range fields {
		if f.Way() == Kept {
			continue
		}
		if first < 0 {
			first = n
		}
		if text := o.Fields[f.Name]; text != "" {
			faults[n] = text
		}
	}
	if !all || len(faults) < len(o.Fields) {
		faults[first] = o.Text
	}
	return faults
}
