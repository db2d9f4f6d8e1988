package demo

import (
	"encoding/json"
	"slices"

	"nudge/agent/model"
)

// schema is the little that the demo model understands of a JSON Schema.
type schema struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// property is one argument's schema.
type property struct {
	Type any   `json:"type"`
	Enum []any `json:"enum"`
}

// schemaOf reads a tool's schema. One that can't be read asks for nothing.
func schemaOf(tool model.Tool) schema {
	var s schema
	if json.Unmarshal(tool.Schema, &s) != nil {
		return schema{}
	}
	return s
}

func (s schema) property(name string) property {
	var p property
	if raw, ok := s.Properties[name]; !ok || json.Unmarshal(raw, &p) != nil {
		return property{}
	}
	return p
}

// names lists the texts that an argument may be, in the schema's order.
func (p property) names() []string {
	var list []string
	for _, v := range p.Enum {
		if text, ok := v.(string); ok {
			list = append(list, text)
		}
	}
	return list
}

// trim drops arguments that a tool doesn't know. The parameters of a command may be declared elsewhere in its schema.
func (s schema) trim(tool string, arguments map[string]any) {
	if tool == "run_command" || len(s.Properties) == 0 {
		return
	}
	for name := range arguments {
		if _, ok := s.Properties[name]; !ok {
			delete(arguments, name)
		}
	}
}

// missing names an argument that is required and not there, or "".
func (s schema) missing(arguments map[string]any) string {
	i := slices.IndexFunc(s.Required, func(name string) bool { _, ok := arguments[name]; return !ok })
	if i < 0 {
		return ""
	}
	return s.Required[i]
}
