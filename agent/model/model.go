// Package model says what a language model is to Nudge: something that answers one request.
//
// It knows nothing of sessions, people or tools beyond their specs; the agent builds a [Request] and gets an
// [Answer]. Packages openai and demo are the models there are; package modeltest has the suite that each of them
// passes. An error that a model returns is, or wraps, an [*Error], which says whether trying again can help.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Role says who speaks in a message.
type Role string

// The roles of a conversation. The system prompt is no message: see [Request.System].
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of a conversation. It is not changed after it was first sent, so that a request's bytes
// begin with those of the request before it and providers' caches hit.
type Message struct {
	Role   Role   `json:"role"`
	Text   string `json:"text,omitempty"`
	Calls  []Call `json:"calls,omitempty"`   // of an assistant
	CallID string `json:"call_id,omitempty"` // of a tool message: the call that it answers
	// Reasoning is what the model thought before it answered, kept to be sent back to providers that ask for it.
	Reasoning string `json:"reasoning,omitempty"`
}

// Call is a tool call that a model asked for. Arguments is the text as the model wrote it, which need not be JSON.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is what a model reads of a tool. Schema is the JSON Schema of its arguments, an object.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Request is everything that a model is told.
type Request struct {
	System    string
	Messages  []Message
	Tools     []Tool
	MaxOutput int   // tokens that the answer may have; 0 sends no limit
	Memo      *Memo // of this conversation; nil means none
}

// Usage counts tokens. Known is false when the provider reported none: unknown is not free.
type Usage struct {
	In     int  `json:"in"`
	Out    int  `json:"out"`
	Cached int  `json:"cached,omitempty"` // of In, read from the provider's cache
	Known  bool `json:"known"`
}

// Finish says why a model stopped writing.
type Finish string

// The ways in which an answer ends. An answer whose stream broke off is none of them: it is an error.
const (
	FinishStop   Finish = "stop"   // it was done
	FinishCalls  Finish = "calls"  // it wants tools
	FinishLength Finish = "length" // the output limit cut it off
	FinishFilter Finish = "filter" // the provider withheld the rest
)

// Answer is what a model says to a request.
type Answer struct {
	Text      string
	Reasoning string
	Calls     []Call // each with a non-empty ID, unique in the answer
	Finish    Finish
	Usage     Usage
	Model     string // who answered, as the provider names it
}

// Model answers requests. It may be called concurrently.
type Model interface {
	// Answer asks once, without retrying. While the answer is being written, said (unless it is nil) is called
	// with each new piece of its text, from the calling goroutine. When ctx ends, Answer returns at once with ctx's cause.
	// The error is or wraps an *Error for everything but that.
	Answer(ctx context.Context, req Request, said func(piece string)) (Answer, error)
}

// Fault says what kind of error a model returned.
type Fault string

// The faults. Only a passing one is worth trying again.
const (
	FaultPassing   Fault = "passing"   // overloaded, rate-limited, unreachable, the line dropped
	FaultRefused   Fault = "refused"   // the key, the credit, the model's name or the request is not accepted
	FaultMalformed Fault = "malformed" // what came back was not an answer
	FaultTooLong   Fault = "too long"  // the request does not fit the model's window
)

// Error is what went wrong with a request.
type Error struct {
	Fault      Fault
	Status     int           // of HTTP; 0 when there was none
	RetryAfter time.Duration // how long the provider asked to wait; 0 when it did not say
	Began      bool          // some of the answer had come, so the provider may charge for it
	Say        string        // one line for a person: no HTML, no keys, no ids
	Err        error         // the detail, for logs; may be nil
}

// Error returns the detail, for logs.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Say, e.Err)
	}
	return e.Say
}

// Unwrap returns the detail.
func (e *Error) Unwrap() error { return e.Err }
