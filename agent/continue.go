package agent

import (
	"fmt"
	"slices"
	"strings"

	"nudge/memory"
)

// A turn that a limit ended can go on: its last line offers Continue, and whoever it belongs to may grant it as much
// again. The offer is a card like any other, so it survives a restart, expires, is decided once, and a late click gets
// a true answer. It is withdrawn when something else begins a turn.

// ChoiceContinue is the one choice of an offer.
const ChoiceContinue = "Continue"

// resumable are the reasons after which a turn can go on in the same session.
var resumable = []StopReason{StepLimit, ToolLimit, TokenLimit, Budget, TimedOut, Repeated, TooManyErrs, ModelError}

// use is how much of its limits a turn has used.
type use struct {
	steps, toolCalls, tokens int
	spent                    Money
}

// used is what the turn has used since its last allowance was granted.
func (t *turn) used() use {
	return use{
		steps: t.steps - t.before.steps, toolCalls: t.toolCalls - t.before.toolCalls,
		tokens: t.tokens() - t.before.tokens, spent: t.spent - t.before.spent,
	}
}

// tokens are those that the turn has used, and the most that it may have used where nobody knows.
func (t *turn) tokens() int { return t.tokensIn + t.tokensOut + t.uncounted }

// grant begins the turn's allowance anew.
func (t *turn) grant() {
	t.before = use{steps: t.steps, toolCalls: t.toolCalls, tokens: t.tokens(), spent: t.spent}
	t.model, t.sentTokens, t.sentBytes = 0, 0, 0 // the first model is tried again
	t.ran, t.failures, t.empties, t.repeats, t.broken = 0, 0, 0, repeats{}, ""
}

// offer lets the turn's person grant it more. It returns the line that says why the turn ends and offers to go on; it has
// no ID when there is nobody to ask or nothing to grant.
func (a *actor) offer(why *halt) (Reply, error) {
	t := a.state.turn
	if t.provenance == Heartbeat || why.final || !slices.Contains(resumable, why.reason) || t.used().steps == 0 {
		return Reply{}, nil // of an allowance that bought no step another buys none either
	}
	invites := "Say continue to let me go on, or say what to do instead."
	if why.reason == ModelError {
		invites = "Say continue to try again."
	}
	k := cardEntry{Turn: t.id, Run: t.run, Card: newID(""), Policy: PolicyAsk, Asked: t.person.ID, Resumes: true, Address: t.address, Expires: now().Add(a.Limits.Question)}
	line := Reply{
		Kind: Notice, Session: a.session, Turn: k.Turn, Run: k.Run, ID: k.Card, Text: strings.TrimSuffix(why.say, ".") + ". " + invites,
		Choices: []string{ChoiceContinue}, Deadline: &k.Expires, Tainted: a.tainted(),
	}
	if err := a.add(k); err != nil {
		return Reply{}, err
	}
	return line, a.register(k, line)
}

// continuation is the offer to go on that can still be taken.
func (s *state) continuation() *card {
	if s.halted == nil {
		return nil
	}
	k := s.cards[s.halted.offer]
	if k == nil || k.verdict != "" {
		return nil
	}
	return k
}

// continues reports whether words mean: go on with the turn that was ended.
func (a *actor) continues(l letter) bool {
	k := a.state.continuation()
	return k != nil && l.Provenance == Human && l.From.ID == k.Asked && now().Before(k.Expires) &&
		len(l.Files) == 0 && chooses(l.Text, ChoiceContinue)
}

// continueTurn takes the decision about an offer: the ended turn goes on with a new allowance, or stays ended.
func (a *actor) continueTurn(l letter, k *card) error {
	if l.Decision.Verdict == Deny {
		return a.closeBy(l, k, decidedEntry{Verdict: Deny, Text: l.Decision.Text})
	}
	id := a.state.halted.id
	if err := a.closeBy(l, k, decidedEntry{Verdict: Approve}); err != nil {
		return err
	}
	a.also(func(tx memory.Tx) error { return tx.Table(tableOpen).Put(a.session, []byte(id)) })
	return a.beginRun("continue")
}

// overtake withdraws the offer to go on with a turn when another begins.
func (a *actor) overtake(by Person) error {
	k := a.state.continuation()
	if k == nil {
		return nil
	}
	return a.close(k, decidedEntry{Verdict: Withdrawn, By: by.ID, Name: by.Name})
}

// reopen makes the ended turn the session's turn again.
func (s *state) reopen(by Person) {
	s.turn, s.halted = s.halted, nil
	s.turn.grant()
	s.sayUser(fmt.Sprintf("[%s lets you go on, with as much again: go on with the work.]", nameOf(by)))
}
