package config

import "strings"

// unavailable lists what the file may come to say but this version can't do. Using it is a fault: a guard that is
// written down and silently not there would be worse than none. A line is dropped when its feature is built.
var unavailable = []struct {
	key   string
	value string // "" means the key with any value
	write string // as it is written in a file
}{
	{key: "hook", write: "[[hook]]"},
	{key: "review", write: "[[review]]"},
	{key: "mcp", write: "[[mcp]]"},
	{key: "skills", write: "[skills]"},
	{key: "subagent", write: "[[subagent]]"},
	{key: "attention", write: "[attention]"},
	{key: "gauge", write: "[[gauge]]"},
	{key: "model.fallbacks", write: "model.fallbacks"},
	{key: "model.provider", value: "anthropic", write: `model.provider = "anthropic"`},
	{key: "store.kind", value: "postgres", write: `store.kind = "postgres"`},
	{key: "store.url_env", write: "store.url_env"},
	{key: "heartbeat.condition.kind", value: "http", write: `heartbeat.condition.kind = "http"`},
	{key: "heartbeat.condition.kind", value: "expr", write: `heartbeat.condition.kind = "expr"`},
	{key: "heartbeat.condition.kind", value: "idle", write: `heartbeat.condition.kind = "idle"`},
}

// notYet reports whether a key, or a key with this value, is not available, and how it is written. Conditions inside
// other conditions count like the outer one.
func notYet(key, value string) (write string, yes bool) {
	if outer, inner, found := strings.Cut(key, ".of."); found {
		key = outer + "." + lastPart(inner)
	}
	for _, feature := range unavailable {
		if feature.key == key && feature.value == value {
			return feature.write, true
		}
	}
	return "", false
}
