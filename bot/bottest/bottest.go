// Package bottest is the suite that every adapter passes.
//
// It wires an adapter with a real hub, a real agent, a data file and a scripted model, plays people on the adapter's
// platform through a [Rig], and looks at what the platform shows them. Start with [Run].
package bottest

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
)

// Rig is a platform, or something that behaves like it, with an adapter that can be linked to it and people whom a
// test plays on it. Its methods are called by one goroutine at a time, and fail the test when the platform would
// refuse what they ask for.
//
// What a platform can besides is said by the other interfaces of this package: a Rig implements those that its
// platform can play.
type Rig interface {
	// Adapter gives a new adapter that is linked to the platform once it listens. It is called again after the adapter
	// before it has ended, as after a restart of the program: the platform and what it shows stay.
	Adapter(p Program) bot.Adapter
	// People are those whom the test plays.
	People() People
	// Say writes a message as a person would, in plain text, and does not wait until it was heard. Messages of one
	// place reach the adapter in their order. It returns a name by which [Receipts] knows the message.
	Say(from agent.Person, at Place, text string) (message string)
	// Press decides about a card that stands at a place: by its button and the form behind that, where cards have them,
	// and otherwise by a command. A person who would not find the button presses it all the same, and a card that was
	// settled is pressed as it stood before. It does not wait until it was heard.
	Press(from agent.Person, at Place, d agent.Decision)
	// PressAll takes one decision about all cards of a batch, which are given in their order: by the button of the last of
	// them, where cards have them, and otherwise by a command. It is like Press otherwise.
	PressAll(from agent.Person, at Place, cards []string, verdict agent.Verdict)
	// Judge says what a person makes of a notify card that a heartbeat told at a place: by its buttons, where cards have
	// them, and otherwise by a command such as [Judgement] gives. A person who would not find a button presses it all the
	// same, and a card that was settled is pressed as it stood before. It does not wait until it was heard.
	Judge(from agent.Person, at Place, heartbeat string, f bot.Feedback)
	// Stop presses the Stop button, or writes the word where there is none.
	Stop(from agent.Person, at Place)
	// Shown is what the bot has said at a place and a person sees there now, in the order in which it stands there.
	// [Direct] means the person's own direct conversation.
	Shown(to agent.Person, at Place) []Line
}

// Program is what an adapter may need of the program around it.
type Program struct {
	Store memory.Store
	// Rest returns when nothing runs and all that can be said has been said, or when ctx ends.
	Rest func(ctx context.Context) error
}

// People are those whom a test plays. Ann's conversations are used most. On a platform that has only one person the
// others are zero, and what needs them is left out.
type People struct {
	Ann agent.Person // is allowed in
	Bob agent.Person // is allowed in too, and present in the shared place
	Eve agent.Person // is not allowed in, and present in the shared place
}

// Place is where something is said.
type Place int

// The places. Shared is used only if there is more than one person: somewhere all of them are, such as a channel, where
// the bot is spoken to by what the platform has for that.
const (
	Direct Place = iota
	Shared
)

// String is the place in a word.
func (p Place) String() string {
	if p == Shared {
		return "shared"
	}
	return "direct"
}

// Line is one thing that stands in a conversation.
type Line struct {
	// Text is what a person reads: what the platform escapes is not escaped, and of a card it is the whole card.
	Text string
	Card *Card // set if it is a card, a question or a notify card
}

// Card is a card as it stands now.
type Card struct {
	ID   string
	Open bool // it looks as if it could still be decided; a notify card without buttons does for ever
	// Outcome is what a settled card says of how it was settled. It may stand in a line of its own, but is told here.
	Outcome string
}

// Redeliverer is a Rig whose platform may deliver a thing twice. It does so only when it is told to.
type Redeliverer interface {
	// Redeliver delivers what was said or pressed last once more, and returns when the platform has nothing more to wait for.
	Redeliver()
}

// Acknowledger is a Rig whose platform knows whether the adapter has taken a thing.
type Acknowledger interface {
	// Acknowledged is how many deliveries the adapter has acknowledged as taken. A refusal that lets the person or the
	// platform know that the thing was not taken does not count.
	Acknowledged() int
}

// Receipts is a Rig whose platform shows what became of words that were said during a turn.
type Receipts interface {
	// Receipt is the state that stands at a message of Ann's, such as [agent.Stored]; "" when there is none.
	Receipt(message string) string
}

// Flaky is a Rig whose platform can fail to show what the adapter says.
type Flaky interface {
	// FailSends lets the next n tries to say something fail in a way that passes, without anything being shown. What the
	// platform asks adapters to wait should be short.
	FailSends(n int)
}

// Forgetful is a Rig whose platform can show what the adapter says without telling it so.
type Forgetful interface {
	// LoseAnswers lets the next n things that the adapter says be shown, and the answers to it be lost.
	LoseAnswers(n int)
}

// Limiter is a Rig whose platform may be asked for too much.
type Limiter interface {
	// LimitSends refuses the next n tries to say something, because there were too many, without anything being shown.
	// The wait that is asked for should be short.
	LimitSends(n int)
}

// Refuser is a Rig whose platform can refuse a thing for good.
type Refuser interface {
	// RefuseSends refuses the next n tries to say something, as if the conversation were not there any more.
	RefuseSends(n int)
}

// Dropper is a Rig whose platform has a link that can be cut.
type Dropper interface {
	// DropLink cuts the link. The adapter is expected to link anew by itself; what is said meanwhile is delivered then.
	DropLink()
}

// Run runs the suite. open makes a fresh platform; what it begins must have ended when the test's cleanups have run.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	tests := []struct {
		name string
		run  func(w *world)
	}{
		{"a message is answered once", answeredOnce},
		{"text is verbatim both ways", verbatim},
		{"a long text arrives whole", longText},
		{"a command is answered", commandAnswered},
		{"an attached file is read where it was attached", attachedFile},
		{"order is kept", orderKept},
		{"a redelivery is not answered again", redelivery},
		{"nothing is acknowledged before it is kept", acknowledgedWhenKept},
		{"what could not be kept is not acknowledged", notAcknowledgedWhenLost},
		{"an approved call runs once", approve},
		{"a call is always allowed until that is revoked", always},
		{"a call is always allowed with something left open", leftOpen},
		{"a card shows everything", cardComplete},
		{"a card hides nothing", cardHidesNothing},
		{"a card says why it asks", cardSaysWhy},
		{"like calls are decided at once, or each", atOnce},
		{"like calls are decided at once after a restart", atOnceLater},
		{"a stranger decides nothing at once", strangersAtOnce},
		{"a card can be edited", edit},
		{"a denial reaches the model", deny},
		{"a card outlives a restart", cardAfterRestart},
		{"words withdraw a card", withdraw},
		{"a notify card takes feedback", feedback},
		{"a stranger decides nothing", strangers},
		{"a question is answered by a choice", askChoice},
		{"a question is answered in words", askWords},
		{"stop ends the work", stopWork},
		{"a correction gets its receipts", steer},
		{"a failed reply is said later", failedReply},
		{"a reply that was held up is said in its order", limitedReply},
		{"a reply whose answer was lost is said once", lostAnswer},
		{"a refused reply is kept as a dead letter", refusedReply},
		{"a crash in the middle of a send says nothing twice unlabelled", crashedSend},
		{"a crash before a send loses nothing", crashedBefore},
		{"a cut link comes back", droppedLink},
		{"the outbox outlives a restart", outboxAfterRestart},
		{"a turn outlives a restart", turnAfterRestart},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) })
			test.run(begin(t, open))
		})
	}
}

// decision is a verdict on a card, with a reason or the arguments of an edit.
func decision(card string, verdict agent.Verdict, text string, arguments string) agent.Decision {
	d := agent.Decision{Card: card, Verdict: verdict, Text: text}
	if arguments != "" {
		d.Arguments = json.RawMessage(arguments)
	}
	return d
}
