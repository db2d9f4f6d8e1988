package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"nudge/agent/model"
)

// HookTimeout is how long a hook may take to decide at most.
const HookTimeout = time.Minute

// HookPoint is where in a step a hook is asked.
type HookPoint string

// The points of a step, in order.
const (
	BeforeStep  HookPoint = "before_step"  // the mail is read, nothing is reserved yet
	BeforeModel HookPoint = "before_model" // with the request that is about to be sent
	BeforeTool  HookPoint = "before_tool"  // with one call that is about to run, approved if it needed that
	AfterTool   HookPoint = "after_tool"   // with one call's result, before the model reads it
	AfterStep   HookPoint = "after_step"   // with what the model said
)

// Hook is a check of the operator's own at one point of every step. What it rules is done; a hook that fails or runs
// out of time has not decided, which refuses whatever it was asked about.
type Hook struct {
	Name string // unique; people and the log read it
	At   HookPoint
	// Rule decides. It may be called concurrently by different sessions and returns soon after ctx ends.
	Rule func(ctx context.Context, asked HookQuestion) (Ruling, error)
}

// HookQuestion is what a hook is asked. Its JSON is what a hook command reads.
type HookQuestion struct {
	At         HookPoint  `json:"at"`
	Session    string     `json:"session"`
	Turn       string     `json:"turn"`
	Run        string     `json:"run,omitempty"`
	Step       int        `json:"step,omitempty"` // counted from 1
	Person     PersonID   `json:"person"`
	Provenance Provenance `json:"provenance,omitempty"`

	Request *HookRequest `json:"request,omitempty"` // before_model: a copy that may be changed
	Summary bool         `json:"summary,omitempty"` // before_model: it asks for a summary of what is left out, not for an answer

	Tool      string          `json:"tool,omitempty"`      // before_tool, after_tool
	Effect    Effect          `json:"effect,omitempty"`    // before_tool, after_tool
	Arguments json.RawMessage `json:"arguments,omitempty"` // before_tool, after_tool: one object
	Result    string          `json:"result,omitempty"`    // after_tool
	Failed    bool            `json:"failed,omitempty"`    // after_tool

	Text  string   `json:"text,omitempty"`  // after_step: what the model said
	Calls []string `json:"calls,omitempty"` // after_step: the names of the tools that it asked for

	call string // the id of the call, for the journal
}

// HookRequest is a request as hooks see it.
type HookRequest struct {
	System   string          `json:"system"`
	Messages []model.Message `json:"messages"`
	Tools    []string        `json:"tools"` // names
}

// Ruling is what a hook decides. Its zero value lets everything be. What does not belong to the hook's point is an
// error, so that a guard in the wrong place is noticed. Its JSON is what a hook command prints.
type Ruling struct {
	Stop string `json:"stop,omitempty"` // any point but after_tool: ends the turn; the person reads it

	// Of before_model, for this one call of the model only.
	System   *string         `json:"system,omitempty"`   // replaces the system prompt
	Messages []model.Message `json:"messages,omitempty"` // replaces the conversation
	Append   string          `json:"append,omitempty"`   // is put at the end of the last message
	Hide     []string        `json:"hide,omitempty"`     // tools that are not offered

	// Of before_tool.
	Refuse string  `json:"refuse,omitempty"` // the call is not run; the model reads why
	Answer *string `json:"answer,omitempty"` // the call is not run; this is its result

	// Of after_tool.
	Result *string `json:"result,omitempty"` // what the model reads instead
}

// hookPoints are all points.
var hookPoints = []HookPoint{BeforeStep, BeforeModel, BeforeTool, AfterTool, AfterStep}

// Fits tells in an error what of a ruling does not belong to the point at which it was given, or contradicts itself;
// nil when nothing does.
func (r Ruling) Fits(at HookPoint) error {
	if !slices.Contains(hookPoints, at) {
		return fmt.Errorf("there is no point %q", at)
	}
	for _, part := range []struct {
		field        string
		set, belongs bool
	}{
		{"stop", r.Stop != "", at != AfterTool},
		{"system", r.System != nil, at == BeforeModel},
		{"messages", r.Messages != nil, at == BeforeModel},
		{"append", r.Append != "", at == BeforeModel},
		{"hide", r.Hide != nil, at == BeforeModel},
		{"refuse", r.Refuse != "", at == BeforeTool},
		{"answer", r.Answer != nil, at == BeforeTool},
		{"result", r.Result != nil, at == AfterTool},
	} {
		if part.set && !part.belongs {
			return fmt.Errorf("the ruling has %q, which a hook at %s cannot rule", part.field, at)
		}
	}
	if r.Refuse != "" && r.Answer != nil {
		return errors.New(`the ruling has both "refuse" and "answer"; it must have one of them`)
	}
	return nil
}

// isZero reports whether a ruling lets everything be.
func (r Ruling) isZero() bool {
	return r.Stop == "" && r.System == nil && r.Messages == nil && r.Append == "" && r.Hide == nil && r.Refuse == "" && r.Answer == nil && r.Result == nil
}
