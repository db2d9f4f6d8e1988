package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"nudge/agent"
)

// Adapter speaks one platform. Say may be called concurrently for different conversations.
type Adapter interface {
	// Platform is the first part of the addresses and person ids that are this adapter's, such as "slack".
	Platform() string
	// Serves reports whether this adapter, as it is running, can say something in a conversation.
	Serves(address string) bool
	// Abilities says what the platform can show.
	Abilities() Abilities
	// Listen gives what people say to in until ctx ends or there is no more to come, and returns only after
	// everything it began has ended. It acknowledges a thing to its platform only after in has returned without an error.
	Listen(ctx context.Context, in Receiver) error
	// Say says one reply in its conversation, and returns the platform's name for what was said, if it can be changed
	// or referred to later. It returns nil only when the platform has taken it. An error that is not a [*SendError] is
	// taken as passing and, where sends can be in doubt, as unsure.
	Say(ctx context.Context, d Delivery) (receipt string, err error)
}

// Resident is an adapter that is at home in some of the conversations that it serves. Where several adapters serve
// one, such as two terminals of one person, the one that resides there speaks.
type Resident interface {
	Resides(address string) bool
}

// Filer is an adapter that can get the files that people attach to what they say.
type Filer interface {
	// Fetch gets a file that the adapter told of in an [Event], by its id; limit is how many bytes are wanted at most. It
	// refuses a longer one, and gives nothing but the file's own bytes: no sign-in page, nothing from another place. An error,
	// also one of the reader's, is read by models and people: it is one sentence that says what to do, without a secret or an
	// address. Whoever called it closes the reader, which ends with ctx.
	Fetch(ctx context.Context, file agent.File, limit int64) (io.ReadCloser, error)
}

// Delivery is one reply on its way to its conversation, which is d.Address.
type Delivery struct {
	agent.Reply
	// Key is the same for every try of the same reply and no other; "" for progress, which is not tried again.
	Key string
	// Earlier is, for a mark about a card or a notify card, the receipt that it got in this conversation; "" when unknown.
	Earlier string
	// Doubtful is when a try under this key began of which nobody knows what became, perhaps in an earlier process; zero
	// when there was none. Adapters that find out see to it that what the try has said is not said again.
	Doubtful time.Time
}

// Abilities is what a platform can show. The hub words commands by Slash; an adapter itself keeps to the others when it
// shows cards and splits texts.
type Abilities struct {
	Buttons   bool // cards have buttons, so that no command need be typed
	Edits     bool // what was said can be changed
	Threads   bool // a reply in a channel goes into a thread under its message
	Reactions bool // a receipt can be put on the very message it is about
	Private   bool // one person can be told something in a shared place
	TextLimit int  // characters of one message; 0 for no limit
	Doubt     Doubt
	// Slash is what stands before a chat command: "/" where commands are typed as text, "" where a command is
	// the word "nudge" and then its own.
	Slash string
}

// Doubt is what an adapter can do about a reply of which nobody knows whether it was said, because the answer of the
// platform was lost or the program was killed before it came.
type Doubt int

// The kinds of doubt.
const (
	// NoDoubt is for adapters that say things themselves, such as on a terminal, and have no answer to wait for. What
	// was said when the program was killed may be said again.
	NoDoubt Doubt = iota
	// FindsOut is for adapters that may be given a reply again under the same key, and see to it that it stands there
	// once: they look, or their platform knows the key. One that cannot this time returns a [SendError] that is Blind.
	FindsOut
	// CannotTell is for all others. They get such a reply once more, under another key and with words before it that say
	// that it may be a repeat.
	CannotTell
)

// Event is what an adapter heard. One of Text or Files, Click, Feedback and Stop says what.
type Event struct {
	// Keys are what every redelivery of the same thing has in common with this one. There is at least one.
	Keys []string
	From agent.Person
	// Standing is what the platform says of the person. It decides whether a pattern of the allow list is enough to let
	// them in.
	Standing Standing
	Address  string // the conversation: platform:team:channel:thread, or platform:team:dm:person
	ID       string // the platform's id of the message, for receipts
	At       time.Time
	Text     string       // plain, unescaped, without the bot's own mention
	Files    []agent.File // attached to the text, or said without any; not read yet
	// Quote is what somebody else said that the text is about. A text with a quote is never a command.
	Quote *Quote
	Click *agent.Decision // a button of a card
	// Batch says that Click is about all cards of a batch, of which its card is the last.
	Batch bool
	// Keeps says of an edit that arguments of which something was hidden stay as they are where it does not have them:
	// its form showed them empty.
	Keeps bool
	// Feedback is a button of a notify card.
	Feedback *Feedback
	Stop     bool // the Stop button
	// Overheard says that nobody spoke to the bot: words in a thread without a mention. They are taken only if a
	// conversation of the bot's lives there.
	Overheard bool
	// Zoneless says that the platform tells where people are, and does not of this one: once, in their direct messages, they are
	// asked for their time zone.
	Zoneless bool

	zoneTold bool // the platform tells the person's zone
}

// Quote is a message that a person points at. It is nobody's order: the model reads it as data.
type Quote struct {
	Author string // a name, for display
	Where  string // such as "#general"; "" when unknown
	Text   string // plain
}

// Standing is what a platform says of a person's place in the organisation that the bot serves.
type Standing int

// The standings. Who may come in is decided by [Hub.Receive]: a member may if any entry of the allow list fits; a guest
// or an outsider only if an entry is their very id; an automaton never. Of one who is unknown it cannot be told, so that
// only their very id lets them in, and where a pattern fits the event is an error, to be delivered again.
const (
	Member    Standing = iota // also everybody on a platform that knows no others
	Guest                     // invited into some places of the organisation
	Outsider                  // of another organisation
	Automaton                 // a bot or an app
	Unknown                   // the platform did not say
)

// String is a standing in words.
func (s Standing) String() string {
	switch s {
	case Member:
		return "a member"
	case Guest:
		return "a guest"
	case Outsider:
		return "of another organisation"
	case Automaton:
		return "a bot"
	case Unknown:
		return "not told by the platform"
	}
	return fmt.Sprintf("standing %d", int(s))
}

// Admission is what became of an event.
type Admission int

// The admissions. In each case the event can be acknowledged.
const (
	Taken    Admission = iota // it is on disk and will be answered
	Repeat                    // it was received before
	Refused                   // its person is not allowed in
	Ignored                   // it was overheard where the bot has no part
	Declined                  // its person may not do that here, and is told so
)

// Receiver takes what adapters hear.
type Receiver interface {
	// Receive returns after the event is on disk. After an error it is not, and must not be acknowledged.
	Receive(ctx context.Context, e Event) (Admission, error)
	// Card gives a card that still awaits a decision, for a form that is filled in from it. It is as it may be shown:
	// an argument in which something was hidden [Conceals] it.
	Card(ctx context.Context, id string) (card agent.Reply, waiting bool, err error)
	// Schema is the JSON Schema of a tool's arguments, for a form with a field for each; nil when the tool is not there.
	Schema(tool string) json.RawMessage
	// Weigh says what speaks against a click before it is received, for a form that shows its faults in place; nil when
	// nothing does. Nothing is decided or kept. See [agent.Agent.Weigh].
	Weigh(ctx context.Context, e Event) (*agent.Objection, error)
	// Overview gives what a person may see of their own at a glance.
	Overview(ctx context.Context, of agent.Person, standing Standing) (Overview, error)
	// Renew keeps what has changed of a person, such as their zone, if anything is kept of them.
	Renew(ctx context.Context, p agent.Person) error
	// Complete gives what a person may mean who is typing a command. Nobody else may see it.
	Complete(ctx context.Context, of agent.Person, typed string) ([]Completion, error)
	// Kept gives what was kept with Keep, by name.
	Kept(ctx context.Context, platform string) (map[string]string, error)
	// Keep keeps what an adapter has to know after the next start: short texts by name. A name is what the text is for, a
	// space, and the person or the conversation that it is about, of whom it can be forgotten; "" takes a text out.
	Keep(ctx context.Context, platform string, changes map[string]string) error
}

// SendError says what is known of a reply that could not be said.
type SendError struct {
	// Gone is true when no later try can succeed: the conversation or the person is not there any more.
	Gone bool
	// Left is true beside Gone when it is the person or the place that is not there, or takes nothing, and not this one reply
	// that can never be said.
	Left bool
	// Closed is true when the adapter can say nothing more in this process. The reply is kept for another.
	Closed bool
	// Unsure is true when the reply, or a part of it, may have been said all the same.
	Unsure bool
	// Blind is true when a doubtful delivery was not said, because the adapter cannot find out whether it was before.
	Blind      bool
	RetryAfter time.Duration // what the platform asked for; 0 when it did not
	Err        error
}

// Error says what happened.
func (e *SendError) Error() string { return fmt.Sprintf("say something: %v", e.Err) }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
