package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"nudge/agent"
)

// fieldName matches the names of all fields. Package json also takes others for them that differ in case.
var fieldName = regexp.MustCompile(`^[a-z_]{1,40}$`)

// decode reads what a hook printed. It is stricter than package json, since a ruling that is read in another way than it
// was meant may let something through.
func decode(output []byte) (agent.Ruling, error) {
	if len(bytes.TrimSpace(output)) == 0 {
		return agent.Ruling{}, nil
	}
	if !utf8.Valid(output) {
		return agent.Ruling{}, errors.New("what it printed is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(output, &whole); err != nil {
		return agent.Ruling{}, fmt.Errorf("what it printed is not one JSON object: %w", err)
	}
	if whole[0] != '{' {
		return agent.Ruling{}, errors.New("what it printed is JSON, but not an object")
	}
	if err := inspect(json.NewDecoder(bytes.NewReader(whole))); err != nil {
		return agent.Ruling{}, fmt.Errorf("read its ruling: %w", err)
	}
	var r agent.Ruling
	decoder := json.NewDecoder(bytes.NewReader(whole))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return agent.Ruling{}, fmt.Errorf("read its ruling: %w", err)
	}
	if err := filled(r, whole); err != nil {
		return agent.Ruling{}, err
	}
	return r, nil
}

// inspect refuses what package json would read without a word: names in another case, names given twice, and null. The
// value has been found valid, which bounds its depth.
func inspect(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch token {
	case nil:
		return errors.New("there is a null in it; leave out what is not ruled")
	case json.Delim('{'):
		return inspectObject(decoder)
	case json.Delim('['):
		for decoder.More() {
			if err := inspect(decoder); err != nil {
				return err
			}
		}
		_, err = decoder.Token()
	}
	return err
}

func inspectObject(decoder *json.Decoder) error {
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		switch {
		case !fieldName.MatchString(name):
			return fmt.Errorf("unknown field %q", brief(name, 40))
		case seen[name]:
			return fmt.Errorf("the field %q stands there twice", name)
		}
		seen[name] = true
		if err := inspect(decoder); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

// filled refuses fields that were written and would count for nothing: a refusal whose reason came out empty must not
// become a permission.
func filled(r agent.Ruling, object json.RawMessage) error {
	var written map[string]json.RawMessage
	if err := json.Unmarshal(object, &written); err != nil {
		return fmt.Errorf("read its ruling: %w", err)
	}
	for _, part := range []struct {
		field string
		empty bool
	}{
		{"stop", strings.TrimSpace(r.Stop) == ""},
		{"refuse", strings.TrimSpace(r.Refuse) == ""},
		{"messages", len(r.Messages) == 0},
	} {
		if _, there := written[part.field]; there && part.empty {
			return fmt.Errorf("the ruling has an empty %q; leave it out or fill it", part.field)
		}
	}
	return nil
}
