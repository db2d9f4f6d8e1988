package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"nudge/agent/compact"
	"nudge/memory"
)

// Effect says what running a tool can change, and so what may be done about a call that was cut off.
type Effect string

// The effects. Reads of one step run side by side; all others run in the order asked for. A read or an idempotent
// call that was cut off is run again; one with an effect never is.
const (
	Read       Effect = "read"
	Idempotent Effect = "idempotent"
	Effectful  Effect = "effect"
)

// Labels say which way a tool moves what it touches. What follows from them is in taint.go.
type Labels struct {
	Private bool // reads private data
	// Keeper is who has that data anyway and to whom the tool sends what it is given, if that is a server: what was read there can
	// be sent back, by a call that only reads. "" for this machine.
	Keeper string
	// Own says that this is the turn's own person's alone, and that others of a conversation in which it is read would see it.
	Own     bool
	Outside bool // reads text written by strangers
	WayOut  bool // sends something out
	// ToPerson says that what is sent out reaches the turn's own person and nobody else.
	ToPerson bool
	// Lasting says that it changes what outlives the conversation and speaks in later ones: the diary, the schedule.
	Lasting bool
	// Obeys says that it may do what text of strangers tells it that it comes upon, with private data and a way out at hand: then a
	// person is asked, whatever was read before.
	Obeys bool
}

// Place says in which turns a tool is offered.
type Place string

// The places. The zero value is every turn.
const (
	Anywhere    Place = ""
	WithPerson  Place = "person" // only in turns that a person began
	InHeartbeat Place = "wake"   // only in turns that a heartbeat began
)

// Spec is what is known of a tool before it runs. Name and Description and Schema are what the model reads.
type Spec struct {
	Name        string // letters, digits and underscores, unique
	Description string // a sentence or two
	Schema      json.RawMessage
	Effect      Effect
	Labels      Labels
	Policy      Policy        // PolicyNo when empty
	Place       Place         // where it is offered
	Timeout     time.Duration // of one call; 0 means the configured tool_timeout
	// EachTime says that every call that is asked about is asked about anew: no rule lets one run without a card.
	EachTime bool
	// EndsTurn says that a call that does not fail ends the turn: its result is the answer in words, its checked arguments
	// are the answer as data.
	EndsTurn bool
	// Foreign says in words whose text Description and Schema are where strangers wrote them and nobody has agreed to them; ""
	// where that is not so. While the tool is offered, this is outside text before the model.
	Foreign string
	// Pages says that the tool reads saved results by "result:ID" as its path; see [Saved].
	Pages bool
}

// Tool is a spec and the function behind it, which the model never sees.
type Tool struct {
	Spec
	// Run does the work. Its error's text is what the model reads, so it is one sentence that says what to do and
	// holds no path outside the workspace and no secret. When ctx ends, Run returns within milliseconds. Run may be called
	// concurrently.
	Run func(ctx context.Context, in Invocation) (Result, error)
	// Judge, if set, gives the policy of one call instead of Spec.Policy, and the name under which the config's
	// [tools] approve may set another ("" for the tool's own). An error refuses the call.
	Judge func(in Invocation) (policy Policy, name string, err error)
	// EffectOf, if set, gives the effect of one call instead of Spec.Effect.
	EffectOf func(in Invocation) Effect
	// LabelsOf, if set, gives the labels of one call; Spec.Labels are then all that some call of it can have.
	LabelsOf func(in Invocation) Labels
	// Useful, if set, says whether the tool is offered in a turn: it is asked once for each, before the model is. It must
	// be quick, and may be called concurrently. Each change of what it says costs what a provider has cached of a
	// conversation, so it should say the same for long.
	Useful func(ctx context.Context, person PersonID, address string) bool
	// Card, if set, gives what the card says of a call besides its arguments, such as a diff.
	Card func(in Invocation) string
	// Digest, if set, gives a text that stands for everything besides the arguments that the call depends on, such
	// as the content of a file. An approval is bound to it.
	Digest func(in Invocation) string
	// Open, if set, says which arguments of a call a rule may leave open: those for which the operator has declared what values
	// they have, whose present value is one of them, and on whose value nothing hangs for which Digest stands. depends is like
	// Digest's text, and the same for calls that differ in nothing but the values of such arguments.
	Open func(in Invocation) (open []Opening, depends string)
	// Once, if set, says that a call can be approved once and not always: Digest cannot stand for all that it depends on. Card
	// says why.
	Once func(in Invocation) bool
}

// Invocation is one call as a tool gets it.
type Invocation struct {
	Session   string
	Turn      string
	Call      string          // the call's id, unique in the turn
	Key       string          // the same for every try of this call, and for no other call
	Person    Person          // whose turn it is
	Address   string          // the conversation in which the turn answers
	Wake      *Wake           // what woke the turn; nil in a turn that a person began
	Arguments json.RawMessage // one JSON object, checked against the schema
	// Tainted says that text written by strangers is in what the model was sent when it asked for this call, or something
	// that was made from such a text.
	Tainted bool
	// Given reports whether the turn's person wrote an address of the web in this session: the same one, with or without
	// its "https://". Never nil, and may be called concurrently.
	Given func(address string) bool
	// origin is what the model had before it when it asked for this call.
	origin compact.Origin
	stands func() error // see Stands; nil where nothing can have changed
	// Progress tells the person what the tool is doing, in one line. It may be dropped. Never nil.
	Progress func(line string)
}

// Result is what a tool found or did.
type Result struct {
	Text string // for the model; bounded and made valid UTF-8 by the agent
	// Commit, if set, is run in the transaction that journals the result, so that what it writes and the result
	// are kept together or not at all. A tool whose whole effect is in Commit is Idempotent.
	Commit func(tx memory.Tx) error
	// Look names the sessions for which Commit puts mail into the inbox.
	Look []string
	// After, if set, is called once Commit's writes are on disk. It must not block.
	After func()
	// Outside says in words where text in the result came from that strangers may have written; "" when there is none, or
	// the labels tell it already.
	Outside string
	// Failed marks a result that is an error in words, such as a command's exit status.
	Failed bool
}

// ErrPermanent is wrapped by a tool's error when no call of it can succeed now, whatever its arguments: what it needs is
// gone, or was never set up. The turn ends with it, since the model cannot mend that.
var ErrPermanent = errors.New("it cannot work until that is mended")

// NotRun marks a tool's error as that of a call that has done nothing, such as one that waited in vain for its turn. Else a
// call whose time is up counts as one that may have done something.
func NotRun(err error) error { return notRun{err} }

type notRun struct{ error }

func (n notRun) Unwrap() error { return n.error }

// Origin is that of whatever the call writes down: what it was made from.
func (in Invocation) Origin() compact.Origin { return in.origin }

// Stands says why the call may not run any more: what it depends on is not what was approved, or it has become a call
// that a person is asked about. The agent has looked right before it ran the tool. A tool that then waits until nothing
// else changes what its calls depend on asks once more.
func (in Invocation) Stands() error {
	if in.stands == nil {
		return nil
	}
	return in.stands()
}

// Decode reads the arguments into a struct. The arguments were checked against the schema before, so an error is
// a mistake of the tool's.
func (in Invocation) Decode(into any) error { return json.Unmarshal(in.Arguments, into) }
