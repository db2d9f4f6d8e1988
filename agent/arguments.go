package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a call's arguments. The ones on numbers exist because exact arithmetic on a huge one is slow.
const (
	maxArguments = 1 << 20 // bytes, as written and as passed on
	maxNesting   = 100     // objects and arrays within each other
	maxUnwraps   = 2       // strings around a value
	maxDigits    = 1000    // bytes of one number
	maxExponent  = 324     // of one number, either sign: the smallest that a float64 can hold has it
	maxPlain     = 40      // digits of an integer that is rewritten without point and exponent
	maxFaults    = 20      // that one error lists
	maxFaultText = 300     // bytes of each
	maxNameText  = 80      // bytes of a name in an error
)

// Check reads what a model wrote as a call's arguments and returns it as one JSON object that fits the schema, in
// one canonical form: compact, keys sorted, every digit kept, invalid text replaced by U+FFFD. Checking the result
// again gives the same bytes.
//
// What can only have been meant in one way is mended: nothing, blanks and null are {}; a Markdown fence around the
// whole is removed; an object inside up to two strings is taken out, and so is a value inside a string where the
// schema allows no string; an integer such as 3.0 is written 3. All else is an error, one sentence for the model
// that names every fault: two values, a property given twice, a property that is not known. What is one object and does not
// fit is an [*UnfitError]. What would take more than a second or so to check is an error as well, and is not looked into.
func (s *Schema) Check(arguments string) (json.RawMessage, error) {
	object, err := readObject(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not one JSON object: %w", err)
	}
	fitted, err := s.fitted(object)
	if err != nil {
		return nil, err
	}
	if err := s.affords(fitted); err != nil {
		return nil, err
	}
	err = guard(func() error { return s.top.Validate(fitted) })
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return nil, &UnfitError{Text: "the arguments do not fit: " + s.faults(invalid), Fields: s.fieldFaults(invalid)}
	}
	if err != nil {
		return nil, fmt.Errorf("check the arguments: %w", err)
	}
	return canonical(fitted)
}

// canonical writes a value in the one form that digests are taken of.
func canonical(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("write the arguments: %w", err)
	}
	text := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if len(text) > maxArguments {
		return nil, fmt.Errorf("the arguments have %d bytes, at most %d are allowed", len(text), maxArguments)
	}
	return text, nil
}

// readObject finds the one object in what a model wrote.
func readObject(text string) (map[string]any, error) {
	if len(text) > maxArguments {
		return nil, fmt.Errorf("they have %d bytes, at most %d are allowed", len(text), maxArguments)
	}
	text = unfence(text)
	for unwraps := 0; ; unwraps++ {
		if trimmed := strings.TrimSpace(text); trimmed == "" || trimmed == "null" {
			return map[string]any{}, nil
		}
		value, err := readJSON(text)
		if err != nil {
			return nil, err
		}
		switch value := value.(type) {
		case map[string]any:
			return value, nil
		case string:
			if unwraps == maxUnwraps {
				return nil, fmt.Errorf("they are inside more than %d strings", maxUnwraps)
			}
			text = value
		default:
			return nil, fmt.Errorf("they are %s", kindOf(value))
		}
	}
}

// unfence removes a Markdown code fence that stands around the whole text.
func unfence(text string) string {
	inner, opened := strings.CutPrefix(strings.TrimSpace(text), "```")
	inner, closed := strings.CutSuffix(inner, "```")
	if !opened || !closed {
		return text
	}
	if len(inner) >= 4 && strings.EqualFold(inner[:4], "json") {
		inner = inner[4:]
	}
	return inner
}

var errNesting = fmt.Errorf("they are nested more than %d levels deep", maxNesting)

// readJSON reads exactly one JSON value. Numbers keep their text; a property given twice is an error, since two
// readers of it could see two different values.
func readJSON(text string) (any, error) {
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("%w, at byte %d", err, syntax.Offset)
		}
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return readValue(decoder, 1)
}

func readValue(decoder *json.Decoder, level int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if level > maxNesting {
			return nil, errNesting
		}
		if token == '{' {
			return readMembers(decoder, level)
		}
		return readItems(decoder, level)
	case json.Number:
		return token, checkNumber(token.String())
	default:
		return token, nil
	}
}

func readMembers(decoder *json.Decoder, level int) (map[string]any, error) {
	object := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the property %q is given twice", clip(name, maxNameText))
		}
		if object[name], err = readValue(decoder, level+1); err != nil {
			return nil, err
		}
	}
	_, err := decoder.Token()
	return object, err
}

func readItems(decoder *json.Decoder, level int) ([]any, error) {
	items := []any{}
	for decoder.More() {
		item, err := readValue(decoder, level+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := decoder.Token()
	return items, err
}

// checkNumber refuses numbers on which exact arithmetic would take long.
func checkNumber(text string) error {
	if len(text) > maxDigits {
		return fmt.Errorf("a number has more than %d digits", maxDigits)
	}
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return nil
	}
	exponent, ok := new(big.Int).SetString(text[at+1:], 10)
	if !ok || exponent.CmpAbs(big.NewInt(maxExponent)) > 0 {
		return fmt.Errorf("the exponent of the number %s is beyond %d", clip(text, maxNameText), maxExponent)
	}
	return nil
}

// nesting counts the levels of objects and arrays in a value.
func nesting(value any) int {
	deepest := 0
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			deepest = max(deepest, nesting(member))
		}
	case []any:
		for _, item := range value {
			deepest = max(deepest, nesting(item))
		}
	default:
		return 0
	}
	return deepest + 1
}

// The kinds. A number without a fraction is an integer and nothing else, so that a schema's "number" is two kinds.
const (
	nullKind kinds = 1 << iota
	booleanKind
	integerKind
	fractionKind
	stringKind
	arrayKind
	objectKind
	anyKind = 1<<iota - 1
)

var kindsByName = map[string]kinds{
	"null": nullKind, "boolean": booleanKind, "integer": integerKind, "number": integerKind | fractionKind,
	"string": stringKind, "array": arrayKind, "object": objectKind,
}
