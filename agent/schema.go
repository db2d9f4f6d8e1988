package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaURL is where a schema is said to stand, so that a relative reference leads nowhere.
const schemaURL = "tool:///arguments"

// Schema is a compiled JSON Schema of a tool's arguments. It may be used concurrently.
type Schema struct {
	top        *jsonschema.Schema
	byLocation map[string]*jsonschema.Schema
	kinds      map[*jsonschema.Schema]kinds // what a value that fits can be, at most
	weights    map[*jsonschema.Schema]int   // what a part takes to be looked at; see effort
}

// CompileSchema compiles a JSON Schema, which must be an object of at most 1 MiB and 100 levels. Drafts 4 to
// 2020-12 are known, the last is the default, and formats are checked. A reference to anything outside the schema
// is an error: nothing is ever opened or fetched. So is a schema against which nothing could be checked in good time, or of
// whose references only the check could tell where they lead.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	if len(raw) > maxArguments {
		return nil, fmt.Errorf("compile the schema: it has %d bytes, at most %d are allowed", len(raw), maxArguments)
	}
	document, err := readJSON(string(raw))
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	if _, ok := document.(map[string]any); !ok {
		return nil, errors.New("compile the schema: it is not a JSON object")
	}
	schema := &Schema{byLocation: map[string]*jsonschema.Schema{}, kinds: map[*jsonschema.Schema]kinds{}, weights: map[*jsonschema.Schema]int{}}
	err = guard(func() error {
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(noLoader{})
		compiler.AssertFormat()
		compiler.UseRegexpEngine(patterns())
		if err := compiler.AddResource(schemaURL, document); err != nil {
			return err
		}
		schema.top, err = compiler.Compile(schemaURL)
		return err
	})
	if unfit, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = unfit.Err
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return nil, fmt.Errorf("compile the schema: %s", schema.faults(invalid))
	}
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	schema.index(schema.top)
	if err := schema.bound(document); err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	return schema, nil
}

// noLoader refuses every document that is not part of the schema itself, local files above all.
type noLoader struct{}

// Load returns an error.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside the schema and is not read", clip(url, maxNameText))
}

// guard turns a panic of the schema library into an error: schemas of peers are input too.
func guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the schema could not be used: %s", clip(fmt.Sprint(p), maxFaultText))
		}
	}()
	return fn()
}

// index fills the maps for a schema and everything below it.
func (s *Schema) index(part *jsonschema.Schema) {
	if part == nil || s.byLocation[part.Location] != nil {
		return
	}
	s.byLocation[part.Location] = part
	s.weights[part] = weightOf(part)
	s.kindsOf(part)
	for _, below := range subschemas(part) {
		s.index(below)
	}
}

// kindsOf says what kinds of values can fit a schema: a kind that is missing never fits. It remembers, so that a
// schema that refers to the same part many times costs no more than its length.
func (s *Schema) kindsOf(part *jsonschema.Schema) kinds {
	if known, ok := s.kinds[part]; ok {
		return known
	}
	s.kinds[part] = anyKind // for a part that refers to itself
	fitting := kinds(anyKind)
	if part.Types != nil {
		fitting = 0
		for _, name := range part.Types.ToStrings() {
			fitting |= kindsByName[name]
		}
	}
	for _, also := range requiredParts(part) {
		fitting &= s.kindsOf(also)
	}
	for _, alternatives := range [][]*jsonschema.Schema{part.AnyOf, part.OneOf} {
		if len(alternatives) == 0 {
			continue
		}
		var either kinds
		for _, alternative := range alternatives {
			either |= s.kindsOf(alternative)
		}
		fitting &= either
	}
	s.kinds[part] = fitting
	return fitting
}

// fitting is kindsOf for checks, which run concurrently and so only read the map.
func (s *Schema) fitting(part *jsonschema.Schema) kinds {
	if known, ok := s.kinds[part]; ok {
		return known
	}
	return anyKind
}

// requiredParts lists the schemas that a value must fit whenever it fits this one.
func requiredParts(part *jsonschema.Schema) []*jsonschema.Schema {
	if part.Ref == nil {
		return part.AllOf
	}
	return append([]*jsonschema.Schema{part.Ref}, part.AllOf...)
}

// subschemas lists the schemas directly below one.
func subschemas(part *jsonschema.Schema) []*jsonschema.Schema {
	below := append(inPlace(part), part.PropertyNames, part.UnevaluatedProperties, part.Contains, part.Items2020, part.UnevaluatedItems, part.ContentSchema)
	below = append(below, part.PrefixItems...)
	for _, property := range part.Properties {
		below = append(below, property)
	}
	for _, property := range part.PatternProperties {
		below = append(below, property)
	}
	for _, one := range []any{part.AdditionalProperties, part.Items, part.AdditionalItems} {
		switch one := one.(type) {
		case *jsonschema.Schema:
			below = append(below, one)
		case []*jsonschema.Schema:
			below = append(below, one...)
		}
	}
	return below
}

// inPlace lists the schemas that one applies to the value that it is applied to itself, or may. Some are nil.
func inPlace(part *jsonschema.Schema) []*jsonschema.Schema {
	same := []*jsonschema.Schema{part.Ref, part.RecursiveRef, part.Not, part.If, part.Then, part.Else}
	same = slices.Concat(same, part.AllOf, part.AnyOf, part.OneOf)
	for _, schema := range part.DependentSchemas {
		same = append(same, schema)
	}
	for _, dependency := range part.Dependencies {
		if schema, ok := dependency.(*jsonschema.Schema); ok {
			same = append(same, schema)
		}
	}
	if part.DynamicRef != nil {
		same = append(same, part.DynamicRef.Ref)
	}
	return same
}
