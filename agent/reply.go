package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"nudge/memory"
	"nudge/schedule"
)

// Kind says what a reply is.
type Kind string

// The kinds of what a session says.
const (
	Final    Kind = "final"    // the answer that ends a turn
	Progress Kind = "progress" // what is being done; may be dropped, never stored
	Notify   Kind = "notify"   // an unasked message
	Ask      Kind = "ask"      // a question to a person
	Approval Kind = "approval" // a question about one exact call
	Notice   Kind = "notice"   // stop lines, answers to commands, alarms to owners
	Fault    Kind = "error"    // a notice that something asked for was not done
)

// The kinds of marks: no words to a person, but what becomes of words said before. Adapters show them where the
// platform can: a reaction, an edited card, a status line.
const (
	DecidedMark Kind = "decided" // a card was decided
	SteerMark   Kind = "steer"   // the receipt of a message said during a turn
	WaitingMark Kind = "waiting" // the turn waits for a person
	SettledMark Kind = "settled" // the turn has ended
)

// The states of a steer's receipt.
const (
	Stored   = "stored"    // kept; nothing has read it yet
	SeenAt   = "seen"      // the request of Step carries it
	NextTurn = "next_turn" // it begins the next turn
)

// Reply is something that a session says, or a mark on what was said. Its JSON is a line of `nudge chat --json`.
type Reply struct {
	Kind    Kind   `json:"kind"`
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	Run     string `json:"run,omitempty"`
	ID      string `json:"id,omitempty"` // of the card, or of the message that a receipt is about
	Text    string `json:"text,omitempty"`

	Choices  []string   `json:"choices,omitempty"`  // ask; of a notice that offers to go on: ChoiceContinue
	Deadline *time.Time `json:"deadline,omitempty"` // ask, notice with choices

	Tool      string          `json:"tool,omitempty"`       // approval, decided, progress
	Arguments json.RawMessage `json:"arguments,omitempty"`  // approval: an object; decided: as they were edited
	MayDecide []string        `json:"may_decide,omitempty"` // approval: ids, or words where the set is open
	Expires   *time.Time      `json:"expires,omitempty"`    // approval
	Parked    bool            `json:"parked,omitempty"`     // approval: its turn has gone on, so it cannot be edited
	// Batch are the cards of like calls that were asked for together, this one the last: they can be decided at once. It is
	// empty where what they ask for is too much for one card.
	Batch []string `json:"batch,omitempty"`
	// Calls are what the cards of Batch ask for, in their order.
	Calls []BatchCall `json:"calls,omitempty"`
	Why   string      `json:"why,omitempty"` // approval: it is asked, where the tool's policy alone would not ask

	Heartbeat string `json:"heartbeat,omitempty"` // notify, decided: the card is a notify card of this heartbeat, or of a digest for none
	Urgency   string `json:"urgency,omitempty"`   // notify
	Key       string `json:"key,omitempty"`       // notify
	Once      bool   `json:"once,omitempty"`      // notify: it does not come again, so that there can be no less of it

	Decision Verdict `json:"decision,omitempty"` // decided
	By       string  `json:"by,omitempty"`       // decided
	Told     string  `json:"told,omitempty"`     // decided: what the notify card tells, or in short what the card asked

	// Always is until when the same call may run unasked: of an approval, if that is decided, nil where it cannot be; of a
	// decided mark, as it was.
	Always *time.Time `json:"always,omitempty"`
	Rule   string     `json:"rule,omitempty"` // decided: the id of the rule that was saved
	// Open is what such a rule leaves open: of an approval, what it may; of a decided mark, what it does.
	Open []Opening `json:"open,omitempty"`

	State string `json:"state,omitempty"` // steer
	Step  int    `json:"step,omitempty"`  // steer

	// Tainted says that text of strangers was before the model when it wrote this, so that its links may not be its own.
	Tainted bool `json:"tainted,omitempty"` // final, notify, progress, ask, notice, decided: not yet shown
	// Unlinked says that a platform is to make a link of nothing in it. It is of what is shown and kept nowhere.
	Unlinked bool `json:"-"`

	Data json.RawMessage `json:"data,omitempty"` // final: the arguments of the tool that ended the turn, as data

	*Totals // settled

	// To is the one person who is meant, where others listen: whoever pressed a button that was not theirs.
	To PersonID `json:"to,omitempty"`

	// At is when it was said, in a transcript.
	At *time.Time `json:"at,omitempty"`

	// Address is the conversation in which it is said.
	Address string `json:"-"`
}

// BatchCall is what one card of a batch asks for.
type BatchCall struct {
	Arguments json.RawMessage `json:"arguments"`
	// Text is what the tool says of the call; "" where that is what the card says anyway.
	Text string `json:"text,omitempty"`
}

// The bounds of what can be decided at once: all of it is read on one card.
const (
	mostTogether      = 20   // cards
	mostTogetherBytes = 1500 // of what they ask for
)

// together lets a card decide some others with it, if there are others and they can be read on it.
func (r *Reply) together(cards []*Reply) {
	if len(cards) < 2 || len(cards) > mostTogether {
		return
	}
	var ids []string
	var calls []BatchCall
	size := 0
	for _, card := range cards {
		call := BatchCall{Arguments: card.Arguments, Text: card.Text}
		if call.Text == r.Text {
			call.Text = ""
		}
		ids, calls = append(ids, card.ID), append(calls, call)
		size += len(call.Arguments) + len(call.Text)
	}
	if size <= mostTogetherBytes {
		r.Batch, r.Calls = ids, calls
	}
}

// IsCard reports whether a reply is a card, which waits for a decision under its ID: a question, an approval, or the
// line with which a limit ended a turn and that offers to go on.
func (r Reply) IsCard() bool { return r.Kind == Approval || r.Kind == Ask || r.IsOffer() }

// IsOffer reports whether a reply is the line with which a limit ended a turn and that offers to go on.
func (r Reply) IsOffer() bool { return r.Kind == Notice && r.ID != "" && len(r.Choices) > 0 }

// IsContinuation reports whether a reply is an offer to go on with a turn, which has no other choice. It is meant only where
// nothing else waits.
func (r Reply) IsContinuation() bool { return r.IsOffer() && len(r.Choices) == 1 }

// TakesFeedback reports whether a reply is a notify card: its person can say what they make of it, by its ID.
func (r Reply) TakesFeedback() bool { return r.Kind == Notify && r.ID != "" }

// IsFeedback reports whether a reply is the mark that a person has said what they make of a notify card. Its Decision is
// what they said, and its Text what that changes.
func (r Reply) IsFeedback() bool {
	return r.Kind == DecidedMark && strings.HasPrefix(r.ID, schedule.CardPrefix)
}

// TakesLess reports whether its person can ask for less of what a notify card tells.
func (r Reply) TakesLess() bool { return r.TakesFeedback() && !r.Once }

// Totals is what a turn came to, over all its runs.
type Totals struct {
	Reason    StopReason `json:"reason"`
	Steps     int        `json:"steps"`
	ToolCalls int        `json:"tool_calls"`
	TokensIn  int        `json:"tokens_in"`
	TokensOut int        `json:"tokens_out"`
	CostUSD   float64    `json:"cost_usd"`
	// Unknown is true when some call's tokens are not known, so that the totals are less than what was used.
	Unknown bool `json:"unknown,omitempty"`

	// For who waits for the end in this process: what was said of it, unless that is an answer; whether the model's provider
	// does not accept the key or the account, so that trying again is of no use; whether a call did more than read or notify.
	Say     string `json:"-"`
	Refused bool   `json:"-"`
	Changed bool   `json:"-"`
}

// Send puts a reply into the outbox for the conversation in r.Address.
func Send(tx memory.Tx, r Reply) error { return r.pack()(tx) }

// pack encodes a reply and returns what puts it into the outbox.
func (r Reply) pack() func(memory.Tx) error {
	data, err := plainJSON(r)
	return func(tx memory.Tx) error {
		if err != nil {
			return fmt.Errorf("encode a %s for %s: %w", r.Kind, r.Address, err)
		}
		_, err := tx.Outbox().Put(r.Address, data)
		return err
	}
}

// ReadReply gives the reply that a parcel holds.
func ReadReply(p memory.Parcel) (Reply, error) {
	var r Reply
	if err := json.Unmarshal(p.Data, &r); err != nil {
		return r, fmt.Errorf("read parcel %d for %s: %w", p.ID, p.Conversation, err)
	}
	r.Address = p.Conversation
	return r, nil
}
