package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func compiled(t testing.TB, text string) *Schema {
	t.Helper()
	schema, err := CompileSchema(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

const (
	healthSchema = `{"type":"object","properties":{}}`
	remindSchema = `{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`
	saveSchema   = `{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}},"note":{"type":"string"}},"required":["items"]}`
	readSchema   = `{"type":"object","properties":{"channel_id":{"type":["string","integer"]},"limit":{"type":"integer"}}}`
	paySchema    = `{"type":"object","properties":{"to":{"type":"string"},"cents":{"type":"integer"}},"required":["to","cents"],"additionalProperties":false}`
	mixedSchema  = `{"type":"object","properties":{
		"n":{"type":"number"},"i":{"type":"integer"},"b":{"type":"boolean"},"s":{"type":"string"},"o":{"$ref":"#/$defs/node"},
		"maybe":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"integer"}}]},"any":{},"when":{"type":"string","format":"date-time"}},
		"additionalProperties":false,
		"$defs":{"node":{"type":"object","properties":{"value":{"type":"integer","minimum":1},"next":{"$ref":"#/$defs/node"}},"additionalProperties":false}}}`
)

func TestArgumentsThatAreMended(t *testing.T) {
	for _, c := range []struct{ name, schema, text, want string }{
		{"nothing", healthSchema, "", `{}`},
		{"blanks", healthSchema, "  \n", `{}`},
		{"null", healthSchema, "null", `{}`},
		{"an empty object", healthSchema, "{}", `{}`},
		{"a blank string", healthSchema, `" "`, `{}`},
		{"an object", saveSchema, `{"items":["a"],"note":"n"}`, `{"items":["a"],"note":"n"}`},
		{"an object in a string", saveSchema, `"{\"items\":[\"a\"],\"note\":\"n\"}"`, `{"items":["a"],"note":"n"}`},
		{"an object in two strings", healthSchema, `"\"{}\""`, `{}`},
		{"an array in a string, a string that looks like one", saveSchema, `{"items":"[\"a\"]","note":"[1,2]"}`, `{"items":["a"],"note":"[1,2]"}`},
		{"all digits", readSchema, `{"channel_id":1729876543210987654,"limit":3.0}`, `{"channel_id":1729876543210987654,"limit":3}`},
		{"a number that may be a string", readSchema, `{"channel_id":"17"}`, `{"channel_id":"17"}`},
		{"an integer with exponent", readSchema, `{"limit":1.2e2}`, `{"limit":120}`},
		{"minus nought", readSchema, `{"limit":-0.0}`, `{"limit":0}`},
		{"a fence", paySchema, "```json\n{\"to\":\"a\",\"cents\":1}\n```", `{"cents":1,"to":"a"}`},
		{"a bare fence", paySchema, " ```\n{\"to\":\"a\",\"cents\":1}```\n", `{"cents":1,"to":"a"}`},
		{"no escaping for HTML", paySchema, `{"to":"a && <b>","cents":1}`, `{"cents":1,"to":"a && <b>"}`},
		{"a lone surrogate", paySchema, `{"to":"\ud99c end","cents":1}`, `{"cents":1,"to":"` + "\uFFFD" + ` end"}`},
		{"bad UTF-8", paySchema, "{\"to\":\"\xff\",\"cents\":1}", `{"cents":1,"to":"` + "\uFFFD" + `"}`},
		{"a number keeps its text", mixedSchema, `{"n":3.10}`, `{"n":3.10}`},
		{"wrapped scalars", mixedSchema, `{"n":"1.5","i":"2","b":"true","s":"true","any":"7"}`, `{"any":"7","b":true,"i":2,"n":1.5,"s":"true"}`},
		{"wrapped through references", mixedSchema, `{"o":"{\"value\":\"2\",\"next\":{\"value\":3.0}}"}`, `{"o":{"next":{"value":3},"value":2}}`},
		{"wrapped where null is the other choice", mixedSchema, `{"maybe":"[\"1\",2.0]"}`, `{"maybe":[1,2]}`},
		{"a value in two strings", mixedSchema, `{"i":"\"5\""}`, `{"i":5}`},
		{"an empty array stays one", saveSchema, `{"items":[]}`, `{"items":[]}`},
		{"a free object keeps its kinds", healthSchema, `{"x":"[1]","y":3.0}`, `{"x":"[1]","y":3.0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := compiled(t, c.schema).Check(c.text)
			if err != nil || string(got) != c.want {
				t.Errorf("Check(%s) = %s, %v; want %s", c.text, got, err, c.want)
			}
		})
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	const notOne = "the arguments are not one JSON object: "
	deep := strings.Repeat(`[`, maxNesting) + strings.Repeat(`]`, maxNesting)
	for _, c := range []struct{ name, schema, text, want string }{
		{"a missing field of nothing", remindSchema, "", `the property "at" is missing`},
		{"a missing field of null", remindSchema, "null", `the property "at" is missing`},
		{"two objects", paySchema, `{"to":"a","cents":1}{"to":"b","cents":2}`, notOne},
		{"text behind", paySchema, `{"to":"a","cents":1} trailing`, notOne},
		{"a property twice", paySchema, `{"to":"a","cents":1,"cents":900}`, notOne + `the property "cents" is given twice`},
		{"a property twice, deep down", healthSchema, `{"a":[{"b":1,"\u0062":2}]}`, notOne + `the property "b" is given twice`},
		{"a property twice in a string", mixedSchema, `{"o":"{\"value\":1,\"value\":2}"}`, `at "/o": got string, want object`},
		{"single quotes", paySchema, `{'to':'a','cents':1}`, notOne},
		{"NaN", paySchema, `{"to":"a","cents":NaN}`, notOne},
		{"half an object", paySchema, `{"to":"a"`, notOne + "unexpected end of JSON input"},
		{"a half fence", paySchema, "```json\n{}", notOne},
		{"text around a fence", paySchema, "Here: ```json\n{}\n```", notOne},
		{"an array", paySchema, `[1]`, notOne + "they are an array"},
		{"a number in a string", paySchema, `"5"`, notOne + "they are a number"},
		{"three strings", healthSchema, `"\"\\\"{}\\\"\""`, notOne + "they are inside more than 2 strings"},
		{"a value in three strings", mixedSchema, `{"i":"\"\\\"5\\\"\""}`, `at "/i": got string, want integer`},
		{"an unknown property", paySchema, `{"to":"a","cents":1,"cent":true}`, `the property "cent" is not known (the nearest is "cents")`},
		{"a property in capitals", paySchema, `{"to":"a","cents":1,"TO":"b"}`, `the property "TO" is not known (the nearest is "to")`},
		{"every fault", paySchema, `{"cents":"x","b":1,"c":1}`, `the arguments do not fit: at "/cents": got string, want integer; ` +
			`the property "b" is not known (the nearest is "to"); the property "c" is not known (the nearest is "to"); the property "to" is missing`},
		{"an unknown property deep down", mixedSchema, `{"o":{"next":{"valeu":1}}}`, `at "/o/next": the property "valeu" is not known (the nearest is "value")`},
		{"a pointer is escaped", `{"additionalProperties":{"type":"integer"}}`, `{"a/b~":true}`, `at "/a~1b~0": got boolean, want integer`},
		{"a fraction", readSchema, `{"limit":3.5}`, `at "/limit": got number, want integer`},
		{"a format", mixedSchema, `{"when":"tomorrow"}`, `at "/when": 'tomorrow' is not valid date-time`},
		{"too deep", healthSchema, `{"a":` + deep + `}`, notOne + "they are nested more than 100 levels deep"},
		{"too deep after unwrapping", `{"properties":{"a":{"type":"array"}}}`, `{"a":"` + deep + `"}`, notOne + "they are nested more than 100 levels deep"},
		{"too long", healthSchema, `{"a":"` + strings.Repeat("x", maxArguments) + `"}`, notOne + "they have"},
		{"a huge exponent", mixedSchema, `{"n":1e1000000000000}`, notOne + "the exponent of the number"},
		{"too many digits", mixedSchema, `{"n":` + strings.Repeat("1", 2000) + `}`, notOne + "a number has more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := compiled(t, c.schema).Check(c.text)
			if err == nil {
				t.Fatalf("Check gave %.200s", got)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
			if strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 4000 {
				t.Errorf("error is not one short line: %.500q", err)
			}
		})
	}
}

func TestManyFaultsAreBounded(t *testing.T) {
	items := strings.TrimSuffix(strings.Repeat(`1,`, 1000), ",")
	_, err := compiled(t, saveSchema).Check(`{"items":[` + items + `]}`)
	if err == nil || !strings.Contains(err.Error(), "and 980 more") {
		t.Errorf("error is %.300v", err)
	}
}

func TestSchemasOpenNothing(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "outside.json")
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"$ref":"file://` + filepath.ToSlash(secret) + `"}`,
		`{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`,
		`{"$ref":"other.json"}`,
		`{"$schema":"https://example.com/meta","type":"object"}`,
	} {
		if _, err := CompileSchema(json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), "outside the schema") {
			t.Errorf("CompileSchema(%s): %v", text, err)
		}
	}
}

func TestSchemasThatAreNone(t *testing.T) {
	for _, text := range []string{
		``, `true`, `[]`, `{`, `{"type":"objekt"}`, `{"$ref":"#/$defs/none"}`, `{"properties":{"a":{"pattern":"("}}}`, `{"minimum":1e999999999}`,
	} {
		_, err := CompileSchema(json.RawMessage(text))
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("CompileSchema(%s): %v", text, err)
		}
	}
}

// A schema that applies itself to the same value, and so never ends, is none.
func TestSchemasThatReferToThemselvesInPlace(t *testing.T) {
	for _, text := range []string{
		`{"$ref":"#"}`,
		`{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}`,
		`{"allOf":[{"$ref":"#"}],"properties":{"a":{"$ref":"#"}}}`,
	} {
		if _, err := CompileSchema(json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), "without end") {
			t.Errorf("CompileSchema(%s): %v", text, err)
		}
	}
}

// value draws a JSON value.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		most := 6
		if depth == 0 {
			most = 4
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.Int64().Draw(t, "int")
		case 3:
			return rapid.Float64Range(-1e9, 1e9).Draw(t, "float")
		case 4:
			return rapid.String().Draw(t, "string")
		case 5:
			return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "array")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"n", "i", "b", "s", "o", "maybe", "any", "value", "next"}), value(depth-1), 0, 5).Draw(t, "object")
	})
}

// TestCheckKeepsWhatFits compares with the plain reading: without a schema's wishes nothing is changed.
func TestCheckKeepsWhatFits(t *testing.T) {
	schema := compiled(t, `{"type":"object"}`)
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(rapid.StringN(0, 5, 20), value(3), 0, 5).Draw(t, "object")
		text, err := json.Marshal(object)
		if err != nil {
			t.Skip("not JSON")
		}
		got, err := schema.Check(string(text))
		if err != nil {
			t.Fatal(err)
		}
		var back any
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != string(want) {
			t.Fatalf("%s became %s", want, again)
		}
	})
}

// TestCheckUnwrapsWhateverIsWrapped wraps properties of an object that fits and expects the same result.
func TestCheckUnwrapsWhateverIsWrapped(t *testing.T) {
	schema := compiled(t, mixedSchema)
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]any{
			"n": rapid.Float64Range(-1e6, 1e6).Draw(t, "n"), "i": rapid.Int64().Draw(t, "i"), "b": rapid.Bool().Draw(t, "b"),
			"maybe": rapid.SliceOfN(rapid.Int32(), 1, 4).Draw(t, "maybe"), "o": map[string]any{"value": rapid.IntRange(1, 9).Draw(t, "value")},
		}
		bare, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		want, err := schema.Check(string(bare))
		if err != nil {
			t.Fatal(err)
		}
		for name, member := range object {
			for range rapid.IntRange(0, maxUnwraps).Draw(t, "wraps of "+name) {
				text, err := json.Marshal(member)
				if err != nil {
					t.Fatal(err)
				}
				member = string(text)
			}
			object[name] = member
		}
		wrapped, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		got, err := schema.Check(string(wrapped))
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s became %s, %v; want %s", wrapped, got, err, want)
		}
	})
}

func TestCheckIsCanonical(t *testing.T) {
	schema := compiled(t, mixedSchema)
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(rapid.SampledFrom([]string{"n", "i", "b", "s", "o", "maybe", "any"}), value(2), 0, 7).Draw(t, "object")
		text, err := json.MarshalIndent(object, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		checkFixedPoint(t, schema, string(text))
	})
}

func checkFixedPoint(t interface{ Fatalf(string, ...any) }, schema *Schema, text string) {
	once, err := schema.Check(text)
	if err != nil {
		if strings.ContainsAny(err.Error(), "\n\r") {
			t.Fatalf("the error has several lines: %q", err)
		}
		return
	}
	twice, err := schema.Check(string(once))
	if err != nil || string(twice) != string(once) {
		t.Fatalf("%q gave %s and then %s, %v", text, once, twice, err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		"", "null", `{"i":3.0,"n":"1e3","o":"{\"value\":2}"}`, "```json\n{}\n```", `"{\"maybe\":\"[1]\"}"`, `{"s":"\ud800"}`, `{"i":1e300}`,
		"{\"s\":\"\xff\u2028\"}", `{"any":{"a":[[[]]]}}`, `{"when":"2026-01-01T00:00:00Z"}`,
	} {
		f.Add(text)
	}
	schema := compiled(f, mixedSchema)
	f.Fuzz(func(t *testing.T, text string) { checkFixedPoint(t, schema, text) })
}

func FuzzCompileSchema(f *testing.F) {
	for _, text := range []string{healthSchema, saveSchema, mixedSchema, `{"$ref":"#"}`, `{"multipleOf":0}`, `{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`} {
		f.Add(text, `{"a":"1","items":"[]"}`)
	}
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		if compiled, err := CompileSchema(json.RawMessage(schema)); err == nil {
			checkFixedPoint(t, compiled, arguments)
		}
	})
}

func ExampleSchema_Check() {
	schema, err := CompileSchema(json.RawMessage(`{"type":"object","properties":{"count":{"type":"integer"}},"additionalProperties":false}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	checked, err := schema.Check("```json\n{\"count\": \"3\"}\n```")
	fmt.Println(string(checked), err)
	_, err = schema.Check(`{"cuont": 3}`)
	fmt.Println(err)
	// Output:
	// {"count":3} <nil>
	// the arguments do not fit: the property "cuont" is not known (the nearest is "count")
}
