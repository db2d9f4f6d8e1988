package openai

import (
	"fmt"
	"strings"
)

// Profile says how a server differs from what most of them do. The zero value is the usual one.
type Profile struct {
	MaxTokensField string // how the output limit is called: "max_tokens", which "" means too, or "max_completion_tokens"
	TextToolCalls  bool   // calls that the model wrote as text are taken as calls, if they name an offered tool
	EchoReasoning  bool   // what the model thought is sent back to it
	NoStream       bool   // answers are asked for whole
	StrictRoles    bool   // the chat template wants user and assistant to take turns
}

const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// quirks are the words that a profile is written with.
var quirks = []struct {
	name string
	set  func(*Profile)
}{
	{maxCompletionTokens, func(p *Profile) { p.MaxTokensField = maxCompletionTokens }},
	{"text_tool_calls", func(p *Profile) { p.TextToolCalls = true }},
	{"echo_reasoning", func(p *Profile) { p.EchoReasoning = true }},
	{"no_stream", func(p *Profile) { p.NoStream = true }},
	{"strict_roles", func(p *Profile) { p.StrictRoles = true }},
}

// ParseProfile reads a comma-separated list of quirks, in any order; "" is the zero value. An unknown quirk is an
// error that lists those there are.
func ParseProfile(list string) (Profile, error) {
	var p Profile
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if err := p.add(word); err != nil {
			return Profile{}, err
		}
	}
	return p, nil
}

func (p *Profile) add(word string) error {
	names := make([]string, 0, len(quirks))
	for _, q := range quirks {
		if q.name == word {
			q.set(p)
			return nil
		}
		names = append(names, q.name)
	}
	return fmt.Errorf("read the model's profile: unknown quirk %q; known are %s", word, strings.Join(names, ", "))
}

func (p Profile) check() error {
	switch p.MaxTokensField {
	case "", maxTokens, maxCompletionTokens:
		return nil
	}
	return fmt.Errorf("set up the model: the output limit cannot be called %q", p.MaxTokensField)
}
