package agent

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kinds is a set of kinds of JSON values.
type kinds uint8

// String names a single kind, with its article.
func (k kinds) String() string {
	switch k {
	case nullKind:
		return "null"
	case booleanKind:
		return "a boolean"
	case integerKind, fractionKind:
		return "a number"
	case stringKind:
		return "a string"
	case arrayKind:
		return "an array"
	case objectKind:
		return "an object"
	}
	return "a value"
}

func kindOf(value any) kinds {
	switch value := value.(type) {
	case nil:
		return nullKind
	case bool:
		return booleanKind
	case json.Number:
		if _, ok := integer(value); ok {
			return integerKind
		}
		return fractionKind
	case string:
		return stringKind
	case []any:
		return arrayKind
	}
	return objectKind
}

// integer gives the value of a number that has no fraction.
func integer(number json.Number) (*big.Int, bool) {
	text := number.String()
	if !strings.ContainsAny(text, ".eE") {
		return new(big.Int).SetString(text, 10)
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok || !exact.IsInt() {
		return nil, false
	}
	return exact.Num(), true
}

// fitter fits arguments to a schema, as far as the effort for it goes.
type fitter struct {
	*Schema
	left int // of the effort
}

// fitted is an object with all in it that can be read in one way only.
func (s *Schema) fitted(object map[string]any) (any, error) {
	f := fitter{s, maxEffort + effortOfBulk*placed(object).bulk}
	value := f.fit(object, []*jsonschema.Schema{s.top})
	switch {
	case f.left < 0:
		return nil, errEffort
	case nesting(value) > maxNesting:
		return nil, fmt.Errorf("the arguments are not one JSON object: %w", errNesting)
	}
	return value, nil
}

// fit unwraps the strings and rewrites the integers in value for which the schemas, all of which apply to it,
// leave no other reading. It changes objects and arrays in place.
func (f *fitter) fit(value any, schemas []*jsonschema.Schema) any {
	if len(schemas) == 0 || f.left < 0 {
		return value
	}
	wanted := kinds(anyKind)
	for _, schema := range schemas {
		wanted &= f.fitting(schema)
	}
	value = unwrap(value, wanted)
	schemas = f.applying(schemas, kindOf(value))
	switch value := value.(type) {
	case json.Number:
		return plain(value, wanted)
	case map[string]any:
		for name, member := range value {
			value[name] = f.fit(member, f.ofMember(schemas, name))
		}
	case []any:
		for i, item := range value {
			value[i] = f.fit(item, ofItem(schemas, i))
		}
	}
	return value
}

// unwrap takes a value of a wanted kind out of a string where no string is wanted.
func unwrap(value any, wanted kinds) any {
	inner := value
	for range maxUnwraps {
		text, ok := inner.(string)
		if !ok || wanted&stringKind != 0 {
			return value
		}
		var err error
		if inner, err = readJSON(text); err != nil {
			return value
		}
		if kindOf(inner)&wanted != 0 {
			return inner
		}
	}
	return value
}

// plain writes an integer without point and exponent where only an integer is wanted, since Go's integers are not
// read from 3.0.
func plain(number json.Number, wanted kinds) json.Number {
	if wanted&fractionKind != 0 || wanted&integerKind == 0 {
		return number
	}
	whole, ok := integer(number)
	if !ok {
		return number
	}
	if text := whole.String(); len(text) <= maxPlain {
		return json.Number(text)
	}
	return number
}

// applying adds to the schemas those that a value of this kind must fit as well: what they refer to, and an
// alternative that is the only one for the kind.
func (f *fitter) applying(schemas []*jsonschema.Schema, one kinds) []*jsonschema.Schema {
	var found []*jsonschema.Schema
	seen := map[*jsonschema.Schema]bool{}
	add := func(part *jsonschema.Schema) {
		if !seen[part] {
			seen[part] = true
			found = append(found, part)
		}
	}
	for _, schema := range schemas {
		add(schema)
	}
	for i := 0; i < len(found) && f.left >= 0; i++ {
		part := found[i]
		f.left -= 1 + len(part.AllOf) + len(part.AnyOf) + len(part.OneOf)
		for _, also := range requiredParts(part) {
			add(also)
		}
		for _, alternatives := range [][]*jsonschema.Schema{part.AnyOf, part.OneOf} {
			possible := slices.DeleteFunc(slices.Clone(alternatives), func(a *jsonschema.Schema) bool { return f.fitting(a)&one == 0 })
			if len(possible) == 1 {
				add(possible[0])
			}
		}
	}
	return found
}

// ofMember lists the schemas that apply to an object's property.
func (f *fitter) ofMember(schemas []*jsonschema.Schema, name string) []*jsonschema.Schema {
	var found []*jsonschema.Schema
	for _, schema := range schemas {
		known := false
		if property, ok := schema.Properties[name]; ok {
			found, known = append(found, property), true
		}
		for pattern, property := range schema.PatternProperties {
			if f.left -= 1 + matching(pattern, name); f.left >= 0 && pattern.MatchString(name) {
				found, known = append(found, property), true
			}
		}
		if rest, ok := schema.AdditionalProperties.(*jsonschema.Schema); ok && !known {
			found = append(found, rest)
		}
	}
	return found
}

// ofItem lists the schemas that apply to an array's item, in the older drafts' way and in the newest's.
func ofItem(schemas []*jsonschema.Schema, i int) []*jsonschema.Schema {
	var found []*jsonschema.Schema
	for _, schema := range schemas {
		first, rest := schema.PrefixItems, schema.Items2020
		switch items := schema.Items.(type) {
		case *jsonschema.Schema:
			rest = items
		case []*jsonschema.Schema:
			first = items
			rest, _ = schema.AdditionalItems.(*jsonschema.Schema)
		}
		switch {
		case i < len(first):
			found = append(found, first[i])
		case rest != nil:
			found = append(found, rest)
		}
	}
	return found
}
