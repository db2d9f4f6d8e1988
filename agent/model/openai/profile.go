package openai

import (
	"fmt"

	"nudge/agent/model/wire"
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
var quirks = []wire.Quirk[Profile]{
	{Name: maxCompletionTokens, Set: func(p *Profile) { p.MaxTokensField = maxCompletionTokens }},
	{Name: "text_tool_calls", Set: func(p *Profile) { p.TextToolCalls = true }},
	{Name: "echo_reasoning", Set: func(p *Profile) { p.EchoReasoning = true }},
	{Name: "no_stream", Set: func(p *Profile) { p.NoStream = true }},
	{Name: "strict_roles", Set: func(p *Profile) { p.StrictRoles = true }},
}

// ParseProfile reads a comma-separated list of quirks, in any order; "" is the zero value. An unknown quirk is an
// error that lists those there are.
func ParseProfile(list string) (Profile, error) { return wire.ParseProfile(list, quirks) }

func (p Profile) check() error {
	switch p.MaxTokensField {
	case "", maxTokens, maxCompletionTokens:
		return nil
	}
	return fmt.Errorf("set up the model: the output limit cannot be called %q", p.MaxTokensField)
}
