package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
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

// schemaURL is where a schema is said to stand, so that a relative reference leads nowhere.
const schemaURL = "tool:///arguments"

// Schema is a compiled JSON Schema of a tool's arguments. It may be used concurrently.
type Schema struct {
	top        *jsonschema.Schema
	byLocation map[string]*jsonschema.Schema
	kinds      map[*jsonschema.Schema]kinds // what a value that fits can be, at most
}

// CompileSchema compiles a JSON Schema, which must be an object of at most 1 MiB and 100 levels. Drafts 4 to
// 2020-12 are known, the last is the default, and formats are checked. A reference to anything outside the schema
// is an error: nothing is ever opened or fetched.
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
	schema := &Schema{byLocation: map[string]*jsonschema.Schema{}, kinds: map[*jsonschema.Schema]kinds{}}
	err = guard(func() error {
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(noLoader{})
		compiler.AssertFormat()
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
	s.kindsOf(part)
	for _, below := range subschemas(part) {
		s.index(below)
	}
}

// Check reads what a model wrote as a call's arguments and returns it as one JSON object that fits the schema, in
// one canonical form: compact, keys sorted, every digit kept, invalid text replaced by U+FFFD. Checking the result
// again gives the same bytes.
//
// What can only have been meant in one way is mended: nothing, blanks and null are {}; a Markdown fence around the
// whole is removed; an object inside up to two strings is taken out, and so is a value inside a string where the
// schema allows no string; an integer such as 3.0 is written 3. All else is an error, one sentence for the model
// that names every fault: two values, a property given twice, a property that is not known.
func (s *Schema) Check(arguments string) (json.RawMessage, error) {
	object, err := readObject(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not one JSON object: %w", err)
	}
	fitted := s.fit(object, []*jsonschema.Schema{s.top})
	if nesting(fitted) > maxNesting {
		return nil, fmt.Errorf("the arguments are not one JSON object: %w", errNesting)
	}
	err = guard(func() error { return s.top.Validate(fitted) })
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return nil, fmt.Errorf("the arguments do not fit: %s", s.faults(invalid))
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

// kinds is a set of kinds of JSON values.
type kinds uint8

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

// fit unwraps the strings and rewrites the integers in value for which the schemas, all of which apply to it,
// leave no other reading. It changes objects and arrays in place.
func (s *Schema) fit(value any, schemas []*jsonschema.Schema) any {
	if len(schemas) == 0 {
		return value
	}
	wanted := kinds(anyKind)
	for _, schema := range schemas {
		wanted &= s.fitting(schema)
	}
	value = unwrap(value, wanted)
	schemas = s.applying(schemas, kindOf(value))
	switch value := value.(type) {
	case json.Number:
		return plain(value, wanted)
	case map[string]any:
		for name, member := range value {
			value[name] = s.fit(member, ofMember(schemas, name))
		}
	case []any:
		for i, item := range value {
			value[i] = s.fit(item, ofItem(schemas, i))
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
func (s *Schema) applying(schemas []*jsonschema.Schema, one kinds) []*jsonschema.Schema {
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
	for i := 0; i < len(found); i++ {
		part := found[i]
		for _, also := range requiredParts(part) {
			add(also)
		}
		for _, alternatives := range [][]*jsonschema.Schema{part.AnyOf, part.OneOf} {
			possible := slices.DeleteFunc(slices.Clone(alternatives), func(a *jsonschema.Schema) bool { return s.fitting(a)&one == 0 })
			if len(possible) == 1 {
				add(possible[0])
			}
		}
	}
	return found
}

// ofMember lists the schemas that apply to an object's property.
func ofMember(schemas []*jsonschema.Schema, name string) []*jsonschema.Schema {
	var found []*jsonschema.Schema
	for _, schema := range schemas {
		known := false
		if property, ok := schema.Properties[name]; ok {
			found, known = append(found, property), true
		}
		for pattern, property := range schema.PatternProperties {
			if pattern.MatchString(name) {
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

// subschemas lists the schemas directly below one.
func subschemas(part *jsonschema.Schema) []*jsonschema.Schema {
	below := []*jsonschema.Schema{
		part.Ref, part.RecursiveRef, part.Not, part.If, part.Then, part.Else, part.PropertyNames,
		part.UnevaluatedProperties, part.Contains, part.Items2020, part.UnevaluatedItems, part.ContentSchema,
	}
	below = slices.Concat(below, part.AllOf, part.AnyOf, part.OneOf, part.PrefixItems)
	for _, property := range part.Properties {
		below = append(below, property)
	}
	for _, property := range part.PatternProperties {
		below = append(below, property)
	}
	for _, schema := range part.DependentSchemas {
		below = append(below, schema)
	}
	if part.DynamicRef != nil {
		below = append(below, part.DynamicRef.Ref)
	}
	loose := []any{part.AdditionalProperties, part.Items, part.AdditionalItems}
	for _, dependency := range part.Dependencies {
		loose = append(loose, dependency)
	}
	for _, one := range loose {
		switch one := one.(type) {
		case *jsonschema.Schema:
			below = append(below, one)
		case []*jsonschema.Schema:
			below = append(below, one...)
		}
	}
	return below
}

// faults puts everything that a check found into one line, in a fixed order.
func (s *Schema) faults(invalid *jsonschema.ValidationError) string {
	var texts []string
	var collect func(*jsonschema.ValidationError)
	collect = func(fault *jsonschema.ValidationError) {
		if len(fault.Causes) == 0 {
			texts = append(texts, s.faultTexts(fault)...)
		}
		for _, cause := range fault.Causes {
			collect(cause)
		}
	}
	collect(invalid)
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if more := len(texts) - maxFaults; more > 0 {
		texts = append(texts[:maxFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// faultTexts describes one fault; several unknown properties of one object are several texts.
func (s *Schema) faultTexts(fault *jsonschema.ValidationError) []string {
	place := ""
	if len(fault.InstanceLocation) > 0 {
		place = fmt.Sprintf("at %q: ", clip(pointer(fault.InstanceLocation), maxNameText))
	}
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
