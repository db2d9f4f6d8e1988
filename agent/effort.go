package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schemas come from strangers too, and what evaluates them does so to the end: forty parts, each of which applies the next one
// twice, are 2^40 evaluations. So the effort of a check is counted before it is made, at its most, and one that would be too great
// is an error instead. Counting remembers what it has counted, and so never takes longer than the effort that it allows.

// Bounds of effort. One of it is about what one evaluation of a small part takes, well below a thousandth of a second.
const (
	maxEffort    = 50_000  // of checking arguments, and as much as effortOfBulk more for each of its values
	effortOfBulk = 4       // a schema looks at the same value several times
	bulkOfBytes  = 64      // bytes of text that count as one value more
	maxPatterns  = 200_000 // instructions of all regular expressions of a schema, each counted twice
	matchedAtOne = 1024    // bytes of text times instructions, as far as one unit of effort goes
)

var errEffort = errors.New("it would take too long to check the arguments against the tool's schema; give fewer or less deeply nested ones")

// place is a value within arguments. Equal ones at two places are two.
type place struct {
	value   any
	bulk    int // how many values it is, with itself
	members map[string]*place
	items   []*place
}

// placed makes places of a value and everything within it.
func placed(value any) *place {
	p := &place{value: value, bulk: bulkOf(value)}
	switch value := value.(type) {
	case map[string]any:
		p.members = make(map[string]*place, len(value))
		for name, member := range value {
			p.members[name] = placed(member)
			p.bulk += p.members[name].bulk + len(name)/bulkOfBytes
		}
	case []any:
		for _, item := range value {
			below := placed(item)
			p.items, p.bulk = append(p.items, below), p.bulk+below.bulk
		}
	}
	return p
}

// bulkOf is that of a value alone.
func bulkOf(value any) int {
	switch value := value.(type) {
	case string:
		return 1 + len(value)/bulkOfBytes
	case json.Number:
		return 1 + len(value)/bulkOfBytes
	}
	return 1
}

// affords says whether a value can be checked with the effort that is allowed.
func (s *Schema) affords(value any) error {
	at := placed(value)
	e := &effort{Schema: s, limit: maxEffort + effortOfBulk*at.bulk, known: map[pair]int{}}
	if e.of(s.top, at) > e.limit {
		return errEffort
	}
	return nil
}

// effort counts what it takes to check values.
type effort struct {
	*Schema
	limit int
	steps int // of counting
	known map[pair]int
}

// pair is a part of a schema and a value that is checked against it.
type pair struct {
	part *jsonschema.Schema
	at   *place
}

// of is how much it takes at most to check a value, or more than the limit where that is passed.
func (e *effort) of(part *jsonschema.Schema, at *place) int {
	key := pair{part, at}
	if known, ok := e.known[key]; ok {
		return known
	}
	e.known[key] = e.limit + 1 // for a part that comes back to itself, which none does that was compiled
	total := e.own(part, at)
	add := func(part *jsonschema.Schema, at *place) bool {
		if part != nil {
			e.steps++
			total += e.of(part, at)
		}
		return total <= e.limit && e.steps <= e.limit
	}
	for _, same := range inPlace(part) {
		if !add(same, at) {
			break
		}
	}
	e.ofMembers(part, at, add)
	e.ofItems(part, at, add)
	if e.steps > e.limit {
		total = e.limit + 1
	}
	e.known[key] = total
	return total
}

// ofMembers adds what checking an object's members takes.
func (e *effort) ofMembers(part *jsonschema.Schema, at *place, add func(*jsonschema.Schema, *place) bool) {
	rest, _ := part.AdditionalProperties.(*jsonschema.Schema)
	for name, member := range at.members {
		listed := []*jsonschema.Schema{part.Properties[name], rest, part.UnevaluatedProperties}
		for _, also := range part.PatternProperties {
			listed = append(listed, also)
		}
		for _, below := range listed {
			if !add(below, member) {
				return
			}
		}
		if part.PropertyNames != nil && !add(part.PropertyNames, &place{value: name, bulk: bulkOf(name)}) {
			return
		}
	}
}

// ofItems adds what checking an array's items takes.
func (e *effort) ofItems(part *jsonschema.Schema, at *place, add func(*jsonschema.Schema, *place) bool) {
	for i, item := range at.items {
		for _, below := range append(ofItem([]*jsonschema.Schema{part}, i), part.Contains, part.UnevaluatedItems) {
			if !add(below, item) {
				return
			}
		}
	}
}

// own is what a part takes of a value besides what is below it.
func (e *effort) own(part *jsonschema.Schema, at *place) int {
	total := e.weights[part] + (len(at.members)+len(at.items))/4
	if text, ok := at.value.(string); ok {
		total += at.bulk/4 + matching(part.Pattern, text)
	}
	for name := range at.members {
		for pattern := range part.PatternProperties {
			total += 1 + matching(pattern, name)
		}
	}
	if part.UniqueItems {
		total += at.bulk * max(2, min(len(at.items), 20)/2) // up to 20 are compared each with each
	}
	return total
}

// weightOf is what a part takes of the smallest value.
func weightOf(part *jsonschema.Schema) int {
	names := len(part.Required)
	for _, also := range part.DependentRequired {
		names += len(also)
	}
	weight := 1 + names/4
	if part.Const != nil {
		weight += placed(*part.Const).bulk
	}
	if part.Enum != nil {
		weight += placed(part.Enum.Values).bulk
	}
	return weight
}

// pattern is a regular expression of a schema's.
type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// matching is what it takes to match a text.
func matching(with jsonschema.Regexp, text string) int {
	if p, ok := with.(*pattern); ok {
		return p.size * len(text) / matchedAtOne
	}
	return len(text) / matchedAtOne
}

// patterns compiles the regular expressions of one schema, as long as they are not too large: a short one can repeat a long one
// a thousand times.
func patterns() jsonschema.RegexpEngine {
	left := maxPatterns
	return func(text string) (jsonschema.Regexp, error) {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return nil, err
		}
		size := instructions(parsed)
		if left -= size; left < 0 {
			return nil, errors.New("the regular expressions of the schema are too large")
		}
		compiled, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		return &pattern{compiled, size}, nil
	}
}

// instructions is about how many a regular expression becomes, or more than are allowed.
func instructions(re *syntax.Regexp) int {
	size := 1
	if re.Op == syntax.OpLiteral {
		size = len(re.Rune)
	}
	for _, sub := range re.Sub {
		size += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min+1, re.Max)
	}
	return min(size, maxPatterns+1)
}

// bound refuses a schema that no arguments could be checked against with the effort that is allowed, and one whose effort cannot be
// told before.
func (s *Schema) bound(document any) error {
	if err := s.boundAnchors(document); err != nil {
		return err
	}
	reach := map[*jsonschema.Schema]int{}
	for _, part := range s.byLocation {
		if reached(part, reach) > maxEffort {
			return errBoundless
		}
	}
	shallow := 0
	for _, below := range subschemas(s.top) {
		shallow += reach[below]
	}
	if shallow > maxEffort+effortOfBulk*len(s.byLocation) {
		return errBoundless
	}
	return nil
}

var errBoundless = errors.New("it applies parts of itself to the same value too often, or without end, so that nothing can be checked against it")

// reached is how many parts are evaluated at most for a value of a part's that has nothing within it.
func reached(part *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if part == nil {
		return 0
	}
	if n, ok := known[part]; ok {
		return n
	}
	known[part] = maxEffort + 1 // for a part that comes back to itself, which never ends
	total := 1
	for _, same := range inPlace(part) {
		total = min(total+reached(same, known), maxEffort+1)
	}
	known[part] = total
	return total
}

// boundAnchors refuses references of which only the check knows where they lead: which of two parts with the same anchor is
// meant depends on the way by which the check has come.
func (s *Schema) boundAnchors(document any) error {
	anchors := map[string]int{}
	recursive := false
	var look func(value any)
	look = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if name, ok := value["$dynamicAnchor"].(string); ok {
				anchors[name]++
			}
			recursive = recursive || value["$recursiveAnchor"] == true
			for _, member := range value {
				look(member)
			}
		case []any:
			for _, item := range value {
				look(item)
			}
		}
	}
	look(document)
	if recursive {
		return errors.New("it has a $recursiveAnchor; name what is meant with $ref")
	}
	for _, part := range s.byLocation {
		ref := part.DynamicRef
		if ref == nil || ref.Anchor == "" || ref.Ref.DynamicAnchor != ref.Anchor {
			continue
		}
		if n := anchors[ref.Anchor]; n > 1 || n == 1 && !strings.HasPrefix(ref.Ref.Location, schemaURL) {
			return fmt.Errorf("it has the $dynamicAnchor %q more than once; name what is meant with $ref", clip(ref.Anchor, maxNameText))
		}
	}
	return nil
}
