// Package schedule wakes people's agents later, again, and only when there is something to see.
//
// A [Heartbeat] is a prompt that falls due again. Its [Spec] describes a [Condition]: the check in code that says
// whether to wake. The [Clock] is the one place where time passes: it claims what is due in the store's due index,
// checks each condition once for all people of a time zone, and wakes those people through a function it was given. A
// condition that is [Personal] says of each of them whether they are woken.
// A tick whose condition is false costs two small writes, which others that are due share, and no model call. Each tick
// leaves one [Outcome] with its reason, and [Why] tells them until they have aged ([KeptFor]).
//
// What heartbeats told is a [Card] each, of which its person can say what they make of it ([Judge]). That is their
// [Attention], which bounds whom a tick wakes: nobody who has snoozed, and who asked for less of a heartbeat less often. A
// [Budget] bounds all that is said to each person unasked, by quiet hours and a daily cap; what these hold back is told once,
// in a digest ([Budget.TakeDigest]).
//
// A [Simulation] plays a stretch of time through with no model and nothing written. [Clock.Watch] tells when the clock itself
// does nothing any more. Who turns out to be beyond reach is woken for no more ([Lose], [Found]).
//
// Start with [Heartbeat], [ParseCron] and [NewClock]. Package condition builds the conditions, package process runs
// their commands. This package knows people only by their names and never what a wake does.
package schedule

import "context"

// Condition is a plain check that says whether to wake. A Condition may be checked by several goroutines at once.
type Condition interface {
	// Check looks once. previous is the State that an earlier Check gave and that was kept, "" at first. It returns
	// soon after ctx has ended. An error means that nothing is known: neither true nor false.
	Check(ctx context.Context, previous string) (Finding, error)
}

// Finding is what one check saw.
type Finding struct {
	// True says that there is something to see. For a condition that watches for a change it says that State
	// differs from a previous one that was known.
	True bool
	// State stands for what a watching condition saw; it is kept at once when True is false, otherwise when the
	// woken runs have ended well. It is "" for a condition that is just true or false.
	State string
	// Evidence is what was seen, in text for the model: valid UTF-8, at most [MaxEvidence] bytes, written by others.
	Evidence string
	// Public says that Evidence holds nothing that only this machine or the person could see, as a page of the internet does.
	Public bool
}

// MaxEvidence is the most bytes of evidence that a Finding holds.
const MaxEvidence = 4 << 10
