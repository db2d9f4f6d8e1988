package form

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// sureDigits are the digits of a number that every program keeps exactly.
const sureDigits = 15

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

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && x.String() == y.String()
}

func jsonFault(text string) string {
	var any json.RawMessage
	if err := json.Unmarshal([]byte(text), &any); err != nil {
		return err.Error()
	}
	return ""
}

func indented(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return string(value)
	}
	return b.String()
}

// quoted is a text as JSON, with nothing escaped that JSON does not demand.
func quoted(text string) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
