package config

import (
	"slices"
	"strings"
)

// unavailable lists what the file may come to say but this version can't do. Using it is a fault: a guard that is
// written down and silently not there would be worse than none. A line is dropped when its feature is built.
var unavailable = []struct {
	key   string
	value string // "" means the key with any value
	write string // as it is written in a file
}{
	{key: "review", write: "[[review]]"},
	{key: "skills", write: "[skills]"},
	{key: "subagent", write: "[[subagent]]"},
	{key: "store.kind", value: "postgres", write: `store.kind = "postgres"`},
	{key: "store.url_env", write: "store.url_env"},
}

// fixed lists the tables that do nothing in this version. Their keys may be written with their defaults, which ask for
// nothing. A line is dropped when its feature is built.
var fixed = []string{"telemetry"}

// onlyDefaults reports whether a table's keys may hold nothing but their defaults, and how the table is written.
func onlyDefaults(table string) (write string, yes bool) {
	return "[" + table + "]", slices.Contains(fixed, table)
}

// available are the words for a key that this version knows.
func available(key string, words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		_, missing := notYet(key, word)
		return missing
	})
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
