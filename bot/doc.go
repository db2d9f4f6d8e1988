// Package bot stands between people and the agent: it hears what they say on a platform and says what the agent says.
//
// An [Adapter] speaks one platform. The [Hub] connects adapters with the agent: what an adapter hears is checked,
// committed to the store and only then acknowledged ([Hub.Receive]); what the agent says lies in the store's outbox until
// the adapter that serves its conversation has said it, in order for each conversation (outgoing.go). Before a try it is
// noted as being sent, so that after a crash it is known to be in doubt, and said again only so that nobody takes it for
// new (delivery.go); what cannot be said is kept as a [DeadLetter].
//
// Each kind of event goes its way from incoming.go: words, clicks (click.go), quotes (quote.go). Who is not let in is turned away
// and asked about (stranger.go), and nobody is heard without bounds (pace.go). Chat commands are read in command.go and answered
// here: those about cards in verdict.go and approvals.go, those about sessions in sessions.go, about heartbeats in
// heartbeat.go, for owners in owner.go. So is what people say of notify cards (feedback.go), what is remembered of them
// (diary.go), by which accounts they are one person (link.go) and that they want to be forgotten (forget.go). Cards of
// the hub's own, for which no turn waits, are requests (request.go). What a card says (card.go) and what a person sees
// of their own at a glance (overview.go) are made here, so that no platform shows another text than the others.
//
// [Lanes], [Recent] and [Ledger] are for adapters: what most of them need to take in what they hear in order, to know it again,
// and to know what they have said. [Chosen], [ChoiceLabel] and [Title] make the same of choices and of first words everywhere. What
// an adapter has to know after the next start it gives to the hub (kept.go), which also tells what a command that is being typed
// may become (complete.go), and keeps the time zones of people whose platform does not tell them (zone.go).
//
// Start with [Adapter], then [Hub]. Folders below have the adapters, and what these share of markup (markdown), forms
// (form) and calls (wire); package bottest has the suite that each of them passes.
package bot
