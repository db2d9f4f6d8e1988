package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const maxSteps = 32 // of a path

// selection is a path into a JSON value, as in "$.builds[0].state", "items[*].id" or `labels["a.b"]`.
type selection struct {
	text  string
	steps []step
}

// step goes from a value into a part of it, or into all of its parts.
type step struct {
	name  string // of an object's member; "" for the others
	index int    // of a list's element; from its end when negative
	kind  byte   // 'n' a name, 'i' an index, '*' all
}

// parseSelection reads a path. The $ that stands for the whole may be left out.
func parseSelection(text string) (*selection, error) {
	s := &selection{text: text}
	rest := strings.TrimPrefix(text, "$")
	if len(rest) == len(text) && !strings.HasPrefix(text, "[") {
		rest = "." + text
	}
	for rest != "" {
		next, after, err := nextStep(rest)
		if err != nil {
			return nil, err
		}
		if s.steps = append(s.steps, next); len(s.steps) > maxSteps {
			return nil, fmt.Errorf("it has more than %d steps", maxSteps)
		}
		rest = after
	}
	return s, nil
}

var errSelection = errors.New(`it is no path; write it like builds[0].state or items[*].id`)

func nextStep(rest string) (next step, after string, err error) {
	switch {
	case strings.HasPrefix(rest, "[\""), strings.HasPrefix(rest, "['"):
		name, after, found := strings.Cut(rest[2:], rest[1:2]+"]")
		if !found {
			return step{}, "", errSelection
		}
		return step{kind: 'n', name: name}, after, nil
	case strings.HasPrefix(rest, "["):
		inside, after, found := strings.Cut(rest[1:], "]")
		if inside == "*" && found {
			return step{kind: '*'}, after, nil
		}
		index, err := strconv.Atoi(inside)
		if err != nil || !found {
			return step{}, "", errSelection
		}
		return step{kind: 'i', index: index}, after, nil
	case strings.HasPrefix(rest, "."):
		rest = rest[1:]
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		if name == "" || strings.ContainsAny(name, " ]\"'()?@") {
			return step{}, "", errSelection
		}
		if name == "*" {
			return step{kind: '*'}, rest[end:], nil
		}
		return step{kind: 'n', name: name}, rest[end:], nil
	}
	return step{}, "", errSelection
}

// from gives what a path selects of a JSON text, in one form whatever its spaces and the order of its keys; a lone string
// without its quotes. What is not there is null, so that its coming and going are changes.
func (s *selection) from(body []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // a number keeps its digits
	var whole any
	if err := decoder.Decode(&whole); err != nil {
		return nil, errors.New("its answer is no JSON, so that nothing can be selected from it")
	}
	found := pick(whole, s.steps)
	if text, alone := found.(string); alone {
		return []byte(text), nil
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("write what was selected: %w", err)
	}
	return text, nil
}

func pick(value any, steps []step) any {
	if len(steps) == 0 {
		return value
	}
	next, rest := steps[0], steps[1:]
	switch value := value.(type) {
	case map[string]any:
		switch next.kind {
		case 'n':
			return pick(value[next.name], rest)
		case '*':
			all := make(map[string]any, len(value))
			for name, part := range value {
				all[name] = pick(part, rest)
			}
			return all
		}
	case []any:
		switch {
		case next.kind == '*':
			all := make([]any, len(value))
			for i, part := range value {
				all[i] = pick(part, rest)
			}
			return all
		case next.kind == 'i' && next.index < 0 && -next.index <= len(value):
			return pick(value[len(value)+next.index], rest)
		case next.kind == 'i' && next.index >= 0 && next.index < len(value):
			return pick(value[next.index], rest)
		}
	}
	return nil
}
