package agent

import (
	"encoding/json"
	"time"

	"nudge/agent/compact"
)

// Provenance says where a message comes from. It is set once, when the message is admitted, and never read out of
// its text.
type Provenance string

// The provenances.
const (
	Human     Provenance = "human"     // a person said it
	Heartbeat Provenance = "heartbeat" // a heartbeat woke
	Decided   Provenance = "decision"  // a person decided about a card, or a parked call ran after one
	Timer     Provenance = "timer"     // a time-out fell due
)

// Message is something said to a session. One of Text or Files, Stop, Decision, Wake and Note says what.
type Message struct {
	// Keys are what a redelivery of the same message has in common with this one; one that was seen refuses it.
	Keys       []string   `json:"-"`
	Session    string     `json:"-"` // a decision finds its session by the card
	Provenance Provenance `json:"provenance"`
	From       Person     `json:"from,omitzero"`
	At         time.Time  `json:"at,omitzero"`
	Address    string     `json:"address,omitempty"` // the conversation in which answers are given
	ID         string     `json:"id,omitempty"`      // the platform's id of the message; receipts go there
	Text       string     `json:"text,omitempty"`
	Files      []File     `json:"files,omitempty"` // attached to the text, or said without any

	Stop     bool      `json:"stop,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	Wake     *Wake     `json:"wake,omitempty"`
	Note     *Note     `json:"note,omitempty"`

	// Origin is that of a text which its person did not write, or not all of it.
	Origin compact.Origin `json:"origin,omitzero"`

	// Steer and During are set by Receive: the message came while one before it was not settled, and in that turn.
	Steer  bool   `json:"steer,omitempty"`
	During string `json:"during,omitempty"`
}

// Verdict is what a person decided about a card.
type Verdict string

// The verdicts. Expire is a timer's; withdrawn is what becomes of cards when the person said something else instead.
const (
	Approve   Verdict = "approve"
	Always    Verdict = "always" // approve, and save a rule that lets the same call run unasked, or all that differ in what is left open; see [Rule]
	Deny      Verdict = "deny"
	Edit      Verdict = "edit"
	AnswerIt  Verdict = "answer"
	Expire    Verdict = "expire"
	Withdrawn Verdict = "withdrawn"
)

// Decision is a person's answer to a card.
type Decision struct {
	Card      string          `json:"card"`
	Verdict   Verdict         `json:"verdict"`
	Text      string          `json:"text,omitempty"`      // the reason, or the answer to a question
	Arguments json.RawMessage `json:"arguments,omitempty"` // of an edit
	Open      []string        `json:"open,omitempty"`      // of Always: the names of what is left open, of what the card offers
}

// Note is something that a session shall know of and that nobody said in it: what a heartbeat told its person, or what
// became of a call that waited.
type Note struct {
	Heartbeat string `json:"heartbeat,omitempty"` // "" when none told it
	Text      string `json:"text"`
	Evidence  string `json:"evidence,omitempty"`
	Card      string `json:"card,omitempty"`   // by whose id the person can say what they make of it
	Once      bool   `json:"once,omitempty"`   // nothing comes again of which it tells
	Digest    bool   `json:"digest,omitempty"` // the text is a digest of what was held back; Evidence is what of it checks saw
	// Origin is what the text was made from; the evidence counts as outside text whatever it says.
	Origin compact.Origin `json:"origin,omitzero"`
}
