// Package compact makes a conversation shorter when it no longer fits a model's window.
//
// Everything here is a function of what it is given: [Compact] says what to leave out, as a [Change] that a journal can
// hold and [Apply] repeats to the byte. What was said stays in the journal; only what is sent is changed. A change is
// large and rare rather than small and often, because each one makes a provider's cache of the conversation worthless
// from the changed message on: between two compactions every request begins with the one before it.
//
// What goes first is what can be had again: old results of repeatable reads become a line each. Then whole old
// exchanges go, with one note in their place, which a summary can fill ([SummaryParts], [SummaryRequest],
// [Output.Removed], [Summarize]). Then the same happens within the exchanges that are kept, step by step. Last, what
// is too large for the window by itself loses its middle. A call is never parted from its results.
//
// The package knows of the product's rooms only agent/model. Nothing is shared between conversations but the counts
// of texts.
package compact

import (
	"fmt"
	"strings"

	"nudge/agent/model"
)

const (
	// AssumedWindow is the tokens of a window that nobody told.
	AssumedWindow = 32 << 10
	// MaxStuck is how many compactions in a row may gain nothing before the core stops trying.
	MaxStuck = 2

	keptExchanges = 2
	leastCap      = 48 // tokens that every message may keep
	fairPart      = 8  // of the room: what every message may keep while old words can go instead
)

// The shares of the room, in percent, at which a compaction begins, to which it leads, and at which the exchanges
// that are kept are left in peace.
const startShare, enoughShare, targetShare = 80, 65, 50

// Level says how far a compaction went.
type Level int

// The levels. Each includes those before it.
const (
	Untouched  Level = iota
	Noted            // messages were replaced by shorter ones
	Dropped          // messages went, with a note in their place
	Summarized       // the note holds a summary
)

// Input is a conversation and the room that there is for it. It is only read.
type Input struct {
	Count    Counter         // must not be nil
	Messages []model.Message // the conversation as it would be sent, each result after its call
	Marks    []Mark          // one for each message; those missing at the end count as zero
	Window   int             // tokens of the model's window; 0 for AssumedWindow
	Reserve  int             // of those, for the answer; more than half the window counts as half
	Used     int             // tokens that the next request has, everything included; 0 counts the messages only
	Keep     int             // exchanges, and steps in the last one, that are left alone while possible; 0 for two
	Stuck    int             // Output.Stuck of the compaction before
	Tools    []string        // whose names a note may tell; nil for all
}

// Output is a conversation after a compaction.
type Output struct {
	Messages []model.Message
	Marks    []Mark // one for each message
	Change   Change // what led from the input's messages to these
	// Removed are the messages that went, as they were last sent, in order: what a summary is made of. The summary of an
	// earlier note stands among them as a result.
	Removed []model.Message
	// Lost says that something went which cannot be had again, words or what came of calls with effects: then a summary is
	// worth a request.
	Lost   bool
	Level  Level
	Tokens int    // of the next request, estimated
	Fits   bool   // that is within the window, with room for the answer
	Note   string // what was done, in words for a person
	Counts Counts
	// Stuck counts the compactions in a row that were needed and gained nothing worth it. At MaxStuck the core
	// stops compacting in this turn, and says Note to the person.
	Stuck int
}

// Counts tells what a compaction did.
type Counts struct {
	Results   int // results of repeatable reads that became a line
	Messages  int // that went
	Shortened int // messages that lost their middle
	Before    int // tokens
	After     int // tokens, estimated
}

// Compact makes a conversation shorter if it takes more than four fifths of the room, which is the window without
// what is reserved for the answer; it aims at half of the room. The flag reports whether anything was changed.
// Without a change the output has the input's messages.
//
// The first message of the last exchange and the last words of the user stay as they are, as what is pinned does,
// as long as they fit the room when all else has gone.
func Compact(in Input) (Output, bool) {
	room := in.room()
	start := room * startShare / 100
	if in.Used > 0 && in.Used <= start {
		return in.untouched(in.Used), false // without counting each message anew
	}
	d := newDraft(in)
	before := d.total()
	if before <= start {
		return in.untouched(before), false
	}
	d.noteResults(0, d.tail, d.target)
	d.dropExchanges()
	if d.total() > d.enough {
		d.noteResults(d.tail, d.fresh, d.target)
		d.dropSteps(d.tail, d.fresh, d.target)
	}
	d.shortenLongest()
	if d.total() >= before {
		out := in.untouched(before)
		out.Stuck = max(in.Stuck, 0) + 1
		out.Note = stuckNote(before, room, out.Stuck)
		return out, false
	}
	return d.output(before), true
}

func stuckNote(tokens, room, times int) string {
	again := ""
	if times >= MaxStuck {
		again = " It was tried before too, so it is not tried again. Begin a new conversation to go on."
	}
	return fmt.Sprintf("The conversation has %s tokens of the %s that fit, and nothing in it can be left out.%s", grouped(tokens), grouped(room), again)
}

// worth is the share of the room, in percent, that a compaction must gain unless it ends below the start.
const worth = 5

// output is what the draft comes to.
func (d *draft) output(before int) Output {
	out := Output{Change: d.change(), Removed: d.removed(), Lost: d.loses(), Level: Noted, Tokens: d.total(), Counts: d.counts(before)}
	if len(out.Removed) > 0 {
		out.Level = Dropped
	}
	out.Messages = Apply(d.messages, out.Change)
	out.Marks = ApplyMarks(d.marks, len(d.messages), out.Change)
	out.Fits = out.Tokens <= d.room
	out.Note = out.Counts.words()
	if out.Tokens > d.start && (before-out.Tokens)*100 < worth*d.room {
		out.Stuck = max(d.stuck, 0) + 1
		out.Note += " " + stuckNote(out.Tokens, d.room, out.Stuck)
	}
	return out
}

// untouched is the conversation as it was.
func (in Input) untouched(tokens int) Output {
	return Output{
		Messages: in.Messages, Marks: ApplyMarks(in.Marks, len(in.Messages), Change{}),
		Tokens: tokens, Fits: tokens <= in.room(), Counts: Counts{Before: tokens, After: tokens},
	}
}

// words is what was done, for a person.
func (c Counts) words() string {
	var did []string
	for _, part := range []struct {
		n        int
		one, any string
	}{
		{c.Results, "1 old result became a line", "%s old results became a line each"},
		{c.Messages, "1 old message was left out", "%s old messages were left out"},
		{c.Shortened, "1 long message lost its middle", "%s long messages lost their middle"},
	} {
		switch {
		case part.n == 1:
			did = append(did, part.one)
		case part.n > 1:
			did = append(did, fmt.Sprintf(part.any, grouped(part.n)))
		}
	}
	return fmt.Sprintf("The conversation was compacted from %s to %s tokens: %s.", grouped(c.Before), grouped(c.After), strings.Join(did, ", "))
}
