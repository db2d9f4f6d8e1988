package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// counted has the schema count its evaluations, and break off where there are far too many. What is found unfit by its kind, or
// by a list of values, is not counted.
func counted(s *Schema) *int {
	n := new(int)
	for _, part := range s.byLocation {
		part.Format = &jsonschema.Format{Name: "counted", Validate: func(any) error {
			if *n++; *n > 20*maxEffort {
				panic("too many evaluations")
			}
			return nil
		}}
	}
	return n
}

// doubling is a schema of n parts, each of which applies the next one twice.
func doubling(n int, apply string) string {
	var defs []string
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, strings.NewReplacer("X", next, "Y", next).Replace(apply)))
	}
	return fmt.Sprintf(`{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{%s,"d%d":{"minLength":1,"minItems":1}}}`, strings.Join(defs, ","), n)
}

func nested(deep int) string {
	return strings.Repeat(`{"a":`, deep) + `{}` + strings.Repeat(`}`, deep)
}

// Schemas of strangers whose evaluation would not end in a lifetime are refused when they are compiled, or their arguments are
// when they are checked.
func TestNoSchemaTakesForEver(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"x",`, 20_000), ",")
	for name, c := range map[string]struct{ schema, arguments string }{
		"all of":              {doubling(40, `{"allOf":[X,Y]}`), `{"a":"x"}`},
		"any of":              {doubling(40, `{"anyOf":[{"allOf":[X,{"maxLength":0}]},Y]}`), `{"a":"x"}`},
		"one of":              {doubling(40, `{"oneOf":[X,Y]}`), `{"a":"x"}`},
		"not":                 {doubling(40, `{"allOf":[{"not":X},{"not":Y}]}`), `{"a":"x"}`},
		"if and then":         {doubling(40, `{"if":X,"then":Y,"else":Y}`), `{"a":"x"}`},
		"dependent schemas":   {doubling(40, `{"dependentSchemas":{"x":X,"y":Y}}`), `{"a":{"x":1,"y":1}}`},
		"dependencies":        {doubling(40, `{"dependencies":{"x":X,"y":Y}}`), `{"a":{"x":1,"y":1}}`},
		"names of properties": {strings.Replace(doubling(12, `{"allOf":[X,Y]}`), `"properties":{"a":{`, `"propertyNames":{"not":{`, 1), `{` + strings.TrimSuffix(members(100), ",") + `}`},
		"deep arguments":      {`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, nested(50)},
		"deep in patterns":    {`{"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"}}}`, nested(50)},
		"deep in lists":       {`{"properties":{"a":{"$ref":"#/$defs/l"}},"$defs":{"l":{"items":{"$ref":"#/$defs/l"},"contains":{"$ref":"#/$defs/l"},"minContains":0}}}`, `{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`},
		"what is left":        {`{"unevaluatedProperties":{"anyOf":[{"allOf":[{"$ref":"#"},{"minProperties":2}]},{"$ref":"#"}]}}`, nested(50)},
		"itself in place":     {`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/c"}]},"b":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/c"}]},"c":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}},"$ref":"#/$defs/a"}`, `{}`},
		"a later anchor":      {`{"$id":"http://x/","$dynamicAnchor":"n","properties":{"a":{"$ref":"s"}},"allOf":[{"properties":{"a":{"$ref":"s"}}}],"$defs":{"s":{"$id":"s","$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}}}}}`, nested(50)},
		"an anchor of old":    {`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"allOf":[{"$recursiveRef":"#"},{"$recursiveRef":"#"}]}}}`, nested(50)},
		"many parts":          {`{"properties":{"a":{"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/s"},`, 700), ",") + `]}}},"$defs":{"s":{"minLength":1}}}`, `{"a":[` + many + `]}`},
		"a long text":         {doubling(12, `{"allOf":[X,Y],"pattern":"^(a|aa|aaa)*$"}`), `{"a":"` + strings.Repeat("a", 20_000) + `"}`},
		"many members":        {doubling(14, `{"allOf":[X,Y]}`), `{"a":{` + strings.TrimSuffix(members(2_000), ",") + `}}`},
		"a repeated pattern":  {`{"properties":{"a":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"(abcdefghijklmnop){1000}"},`, 30), ",") + `]}}}`, `{"a":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := CompileSchema(json.RawMessage(c.schema))
			if err == nil {
				n := counted(schema)
				if _, err = schema.Check(c.arguments); *n > maxEffort+effortOfBulk*(len(c.arguments)) {
					t.Errorf("%d evaluations", *n)
				}
			}
			if err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 4000 {
				t.Fatalf("the error is %v", err)
			}
			for _, says := range []string{"too long to check", "too often, or without end", "$dynamicAnchor", "$recursiveAnchor", "regular expressions"} {
				if strings.Contains(err.Error(), says) {
					return
				}
			}
			t.Errorf("the error is %q", err)
		})
	}
}

func members(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `"m%d":1,`, i)
	}
	return out.String()
}

// What people write is checked as ever: schemas that refer to themselves, large arguments, many properties.
func TestOrdinarySchemasAreChecked(t *testing.T) {
	logic := `{"properties":{"rule":{"$ref":"#/$defs/rule"}},"additionalProperties":false,"$defs":{"rule":{"anyOf":[
		{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/rule"}}},"required":["and"],"additionalProperties":false},
		{"type":"object","properties":{"or":{"type":"array","items":{"$ref":"#/$defs/rule"}}},"required":["or"],"additionalProperties":false},
		{"type":"object","properties":{"not":{"$ref":"#/$defs/rule"}},"required":["not"],"additionalProperties":false},
		{"type":"object","properties":{"var":{"type":"string"}},"required":["var"],"additionalProperties":false}]}}}`
	rule := `{"var":"x"}`
	for range 2 {
		rule = fmt.Sprintf(`{"and":[{"or":[%s,{"not":%s}]},%s]}`, rule, rule, rule)
		rule = fmt.Sprintf(`{"not":%s}`, rule)
	}
	var properties []string
	for i := range 500 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":["string","null"],"enum":["a","b",null],"description":"d"}`, i))
	}
	for name, c := range map[string]struct{ schema, arguments string }{
		"logic":            {logic, `{"rule":` + rule + `}`},
		"a tree":           {mixedSchema, `{"o":` + strings.Repeat(`{"value":1,"next":`, 60) + `{"value":2}` + strings.Repeat(`}`, 60) + `}`},
		"a dynamic tree":   {`{"$dynamicAnchor":"node","properties":{"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}`, `{"children":[{"children":[]}]}`},
		"a schema in it":   {`{"properties":{"s":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"s":` + logic + `}`},
		"a long list":      {saveSchema, `{"items":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 100_000), ",") + `]}`},
		"a long text":      {`{"properties":{"a":{"type":"string","pattern":"^[a-z ]+$","maxLength":2000000}}}`, `{"a":"` + strings.Repeat("word ", 200_000) + `"}`},
		"different things": {`{"properties":{"a":{"type":"array","uniqueItems":true,"items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}}`, `{"a":["a","b",3]}`},
		"many properties":  {`{"properties":{` + strings.Join(properties, ",") + `}}`, `{"p3":"a","p400":null}`},
	} {
		if _, err := compiled(t, c.schema).Check(c.arguments); err != nil {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// The effort that is counted is never less than what a check takes.
func TestEffortIsCountedAtItsMost(t *testing.T) {
	const parts = 5
	ref := rapid.Custom(func(t *rapid.T) any {
		return map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", rapid.IntRange(0, parts-1).Draw(t, "part"))}
	})
	refs := rapid.SliceOfN(ref, 1, 3)
	part := rapid.Custom(func(t *rapid.T) any {
		p := map[string]any{}
		for _, word := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "properties", "patternProperties", "additionalProperties",
			"items", "prefixItems", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "required",
		}), 0, 4).Draw(t, "words") {
			switch word {
			case "allOf", "anyOf", "oneOf", "prefixItems":
				p[word] = refs.Draw(t, word)
			case "dependentSchemas", "properties", "patternProperties":
				p[word] = rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), ref, 1, 2).Draw(t, word)
			case "required":
				p[word] = []string{"a"}
			default:
				p[word] = ref.Draw(t, word)
			}
		}
		return p
	})
	var below func(depth int) *rapid.Generator[any]
	below = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return rapid.SampledFrom([]any{"x", nil, true})
		}
		return rapid.OneOf(
			rapid.Map(rapid.SliceOfN(below(depth-1), 0, 3), func(v []any) any { return v }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), below(depth-1), 0, 3), func(v map[string]any) any { return v }),
		)
	}
	checked := 0
	rapid.Check(t, func(t *rapid.T) {
		defs := map[string]any{}
		for i := range parts {
			defs[fmt.Sprintf("d%d", i)] = part.Draw(t, "part")
		}
		text, err := json.Marshal(map[string]any{"$ref": "#/$defs/d0", "$defs": defs})
		if err != nil {
			t.Fatal(err)
		}
		schema, err := CompileSchema(text)
		if err != nil {
			if !strings.Contains(err.Error(), "without end") {
				t.Fatal(err)
			}
			return
		}
		n := counted(schema)
		at := placed(below(4).Draw(t, "arguments"))
		e := &effort{Schema: schema, limit: 10 * maxEffort, known: map[pair]int{}}
		most := e.of(schema.top, at)
		if most > e.limit {
			return
		}
		_ = guard(func() error { return schema.top.Validate(at.value) })
		checked++
		if *n > most {
			t.Fatalf("%d evaluations, %d were counted: %s", *n, most, text)
		}
	})
	if checked == 0 {
		t.Error("no check was made")
	}
}
