// Package agent is the core of Nudge: it turns what people say into work done with tools, and what was done into
// words.
//
// A session is one conversation and has one journal, the only record. A session with something to do has one actor,
// a goroutine that owns all of its state, which is the journal folded (state.go); of that a model reads the view
// (view.go). The actor takes the session's mail, and runs the turn that it begins step by step (run.go): mail, limits,
// the model, then the calls that the model asked for (batch.go). Whatever must wait for a person ends the run; the
// person's decision comes as mail and begins the next. Who is asked about a call is in policy.go, the card that asks
// them in card.go, and what their decision does in decision.go; what a person has allowed from then on are rules
// (rule.go), which may leave arguments open (opening.go). What text of strangers does to a turn is in taint.go, and
// which addresses a person gave in address.go. Who decided what is read from the journals as well (audit.go); a person
// who is forgotten goes out of all of them (forget.go). What is remembered of a person is read with the words that
// begin a turn (notes.go). Of files that people attach only the names are journaled (file.go); what they hold is got
// when it is read (content.go).
//
// Words: session ⊃ turn ⊃ run ⊃ step. A turn lasts from a message until it is settled, across restarts and waits
// for people. A run is a stretch of a turn that ends settled or waiting. A step is one model call and the tools it asked
// for.
//
// Start with [Agent] and [Agent.Receive], then run.go, which is the loop. What goes in is a [Message], what comes out
// a [Reply], put into the store's outbox for others to deliver. Tools are values of [Tool]; packages under agent/tool have
// them. Nothing here knows a platform.
package agent
