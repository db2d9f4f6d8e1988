package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"nudge/agent/model"
)

// NameCalls gives an id to each call that has none, or one that an earlier call has.
func NameCalls(calls []model.Call) {
	taken := map[string]bool{}
	for _, c := range calls {
		taken[c.ID] = true
	}
	kept := map[string]bool{"": true}
	n := 0
	for i := range calls {
		if !kept[calls[i].ID] {
			kept[calls[i].ID] = true
			continue
		}
		for n++; taken["call_"+strconv.Itoa(n)]; n++ {
		}
		calls[i].ID = "call_" + strconv.Itoa(n)
	}
}

// anyObject is the schema of a tool that says nothing of its arguments.
var anyObject = json.RawMessage(`{"type":"object","properties":{}}`)

// SchemaOf returns the JSON Schema of a tool's arguments, which must be an object.
func SchemaOf(t model.Tool) (json.RawMessage, error) {
	switch {
	case len(t.Schema) == 0:
		return anyObject, nil
	case !IsObject(string(t.Schema)):
		return nil, fmt.Errorf("encode tool %q: its schema is not a JSON object", t.Name)
	}
	return t.Schema, nil
}

// IsObject says whether text is one JSON object and nothing else.
func IsObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid([]byte(text))
}
