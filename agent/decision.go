package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent/compact"
	"nudge/memory"
)

// decide takes a decision about a card of this session. The first one counts; the others are told what it was.
func (a *actor) decide(l letter, k *card) error {
	a.take(l)
	switch {
	case k == nil:
		return a.refuse(l, "I do not know a card with the id "+l.Decision.Card+".")
	case l.Decision.Verdict == Expire:
		if k.verdict != "" {
			return nil
		}
		return a.close(k, decidedEntry{Verdict: Expire})
	case k.verdict == "" && !l.At.Before(k.Expires):
		// The time-out's own mail has not come yet; the card has expired all the same.
		if err := a.close(k, decidedEntry{Verdict: Expire}); err != nil {
			return err
		}
		return a.tellOutcome(l, k)
	case k.verdict != "":
		return a.tellOutcome(l, k)
	}
	policy, err := a.decidedBy(k, l.Decision.Verdict)
	if err != nil {
		return err
	}
	if may, err := a.entitledNow(k.Asked, policy, l.From.ID); err != nil || !may {
		return errors.Join(err, a.refuseOthers(l, k, policy))
	}
	if why := a.unserved(k, l); why != "" {
		return a.refuse(l, why)
	}
	switch {
	case k.Resumes:
		return a.decideOffer(l, k)
	case k.Unknown:
		return a.decideUnknown(l, k)
	case k.Question:
		return a.decideQuestion(l, k)
	}
	return a.decideCall(l, k)
}

// decidedBy is the policy by which a verdict about a card is taken. Whoever could deny a call when it was asked still can.
func (a *actor) decidedBy(k *card, v Verdict) (Policy, error) {
	tool := a.box().named[k.Tool]
	if tool == nil || k.Question || k.Resumes || v != Approve && v != Always {
		return k.Policy, nil
	}
	person, err := a.personOf(k.Asked)
	if err != nil {
		return "", err
	}
	in := a.parkedInvocation(k, person)
	if c := a.state.open(k.Call); c != nil && c.card == k {
		in = a.invocation(c, k.Arguments)
	}
	policy, err := a.strictestOf(k.cardEntry, tool.Tool, in)
	if err != nil {
		return k.Policy, nil // what speaks against the call is its result, when it is to run
	}
	return policy, nil
}

// unserved says why a decision of somebody else's cannot let a call run: its person is not let in any more. It is "" else.
func (a *actor) unserved(k *card, l letter) string {
	if l.Decision.Verdict == Deny || l.From.ID == k.Asked || a.serves(k.Asked) {
		return ""
	}
	return fmt.Sprintf("%s is no longer let in here, so nothing is run for them; nothing was decided.", k.Asked)
}

// tellOutcome tells who comes late what was decided about a card.
func (a *actor) tellOutcome(l letter, k *card) error {
	a.say(Reply{Kind: Notice, ID: k.Card, Address: l.Address, To: l.From.ID, Text: k.outcome(l.From.Zone)})
	return nil
}

// decideOffer decides whether an ended turn goes on.
func (a *actor) decideOffer(l letter, k *card) error {
	switch d := l.Decision; {
	case d.Verdict == Approve, d.Verdict == Deny, d.Verdict == AnswerIt && chooses(d.Text, ChoiceContinue):
		return a.continueTurn(l, k)
	}
	return a.refuse(l, "This only asks whether to go on: answer with "+ChoiceContinue+", or say what else to do.")
}

// decideUnknown decides whether a call whose outcome is unknown is run again.
func (a *actor) decideUnknown(l letter, k *card) error {
	switch d := l.Decision; {
	case d.Verdict == Approve, d.Verdict == AnswerIt && chooses(d.Text, ChoiceAgain):
		return a.closeBy(l, k, decidedEntry{Verdict: Approve})
	case d.Verdict == Deny, d.Verdict == AnswerIt && chooses(d.Text, ChoiceLeave):
		return a.closeBy(l, k, decidedEntry{Verdict: Deny, Text: d.Text})
	}
	return a.refuse(l, "This only asks whether to run it again: answer with "+ChoiceAgain+" or "+ChoiceLeave+", or say what else to do.")
}

func (a *actor) decideQuestion(l letter, k *card) error {
	switch l.Decision.Verdict {
	case Approve, Always, Edit:
		return a.refuse(l, "That is a question; answer it in your own words.")
	}
	return a.answerQuestion(l, k, l.Decision.Text)
}

// decideCall decides whether a call is run.
func (a *actor) decideCall(l letter, k *card) error {
	switch d := l.Decision; d.Verdict {
	case AnswerIt:
		return a.refuse(l, "That is no question; approve it or deny it.")
	case Edit:
		return a.edit(l, k)
	case Always:
		return a.always(l, k)
	default:
		return a.closeBy(l, k, decidedEntry{Verdict: d.Verdict, Text: d.Text})
	}
}

// closeBy closes a card for the person who decided, and shows it to them as well.
func (a *actor) closeBy(l letter, k *card, d decidedEntry) error {
	d.By, d.Name = l.From.ID, l.From.Name
	a.tellDecider(l, k, d)
	return a.close(k, d)
}

// mark is what the places where a card stands are told of its decision.
func (d decidedEntry) mark() Reply {
	r := Reply{
		Kind: DecidedMark, Turn: d.Turn, ID: d.Card, Tool: d.Tool, Decision: d.Verdict, By: string(d.By), Text: d.Text, Arguments: d.Arguments, Rule: d.Rule, Open: d.Open,
	}
	if d.Rule != "" {
		r.Always = &d.Until
	}
	if d.Verdict == Edit {
		r.Told = d.Diff
	}
	return r
}

// tellDecider shows a decision where it was made, when the card stands elsewhere. What the card asks is not told where others
// read along who were not shown it.
func (a *actor) tellDecider(l letter, k *card, d decidedEntry) {
	if l.Address == "" || slices.Contains(a.showAt(k.cardEntry), l.Address) {
		return
	}
	about := k.about(d)
	d.Turn, d.Card, d.Tool, d.Arguments = k.Turn, k.Card, k.Tool, nil
	mark := d.mark()
	mark.Told, mark.Address, mark.Tainted = about, l.Address, a.taints(k.Origin, k.Asked)
	if !Direct(l.Address) {
		mark.Told, mark.Open = "", nil
	}
	a.say(mark)
}

// mostTold is how many bytes an outcome has of what its card asked.
const mostTold = 300

// about is what a card asked, in short, for its outcome: the arguments that run, or how they were changed, or the question.
func (k cardEntry) about(d decidedEntry) string {
	text := string(k.Arguments)
	var q questionArguments
	switch {
	case k.Resumes || k.Unknown:
		return ""
	case d.Verdict == Edit:
		return d.Diff
	case k.Question && json.Unmarshal(k.Arguments, &q) == nil:
		text = q.Question
	}
	return clip(text, mostTold)
}

func (a *actor) refuse(l letter, text string) error {
	a.say(Reply{Kind: Fault, ID: l.Decision.Card, Address: l.Address, To: l.From.ID, Text: text})
	return nil
}

// refuseOthers is refuse for somebody who may not decide under a policy.
func (a *actor) refuseOthers(l letter, k *card, policy Policy) error {
	var text string
	err := a.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		text, err = a.notYours(tx, cardEntry{Policy: policy, Asked: k.Asked})
		return err
	})
	if err != nil {
		return fmt.Errorf("look who may decide about card %s: %w", k.Card, err)
	}
	return a.refuse(l, text)
}

// close journals what was decided about a card, and everywhere the card stands says so. A call that shall not run
// gets its result in words.
func (a *actor) close(k *card, d decidedEntry) error {
	t := a.state.turn
	d.Turn, d.Card, d.Call, d.Tool, d.Question, d.Resumes = k.Turn, k.Card, k.Call, k.Tool, k.Question, k.Resumes
	if t != nil {
		d.Run = t.run
	}
	if err := a.add(d); err != nil {
		return err
	}
	if k.Parked && d.Verdict == Approve {
		a.owe()
	}
	a.settleCard(k, d)
	if k.Resumes {
		return nil
	}
	c := a.state.open(k.Call)
	if c == nil || c.card != k {
		if d.Verdict == Expire || d.Verdict == Deny {
			return a.notRun(k, d)
		}
		return nil
	}
	if k.Unknown && d.Verdict != Approve {
		return a.leave(c)
	}
	switch d.Verdict {
	case Deny:
		return a.answer(c, denied(d), false)
	case Expire:
		return a.answer(c, expired(k), false)
	}
	return nil
}

// settleCard takes a card from those that wait, and marks it everywhere it stands.
func (a *actor) settleCard(k *card, d decidedEntry) {
	id := k.Card
	a.also(func(tx memory.Tx) error {
		if err := tx.Table(tableWaiting).Delete(id); err != nil {
			return err
		}
		return tx.Due().Remove(timerKey(id))
	})
	for _, at := range a.showAt(k.cardEntry) {
		mark := d.mark()
		mark.Run, mark.Arguments, mark.Told, mark.Address = d.Run, nil, k.about(d), at
		mark.Tainted = a.taints(k.decidedOf(d), k.Asked)
		a.say(mark)
	}
}

// chooses reports whether words are a choice.
func chooses(words, choice string) bool {
	return strings.EqualFold(strings.Trim(words, " \t\r\n.!"), choice)
}

// expired is a time-out as the model reads it.
func expired(k *card) string {
	until := k.Expires.Format(time.RFC3339)
	if k.Question {
		return fmt.Sprintf("no answer came until %s; go on without one, and say what you assumed", until)
	}
	return fmt.Sprintf("not run: nobody decided about it until %s, so it counts as denied", until)
}

// notRun tells a person and the model of their session that a parked call is not going to run.
func (a *actor) notRun(k *card, d decidedEntry) error {
	why := denied(d)
	if d.Verdict == Expire {
		why = expired(k)
	}
	origin := k.decidedOf(d)
	a.say(Reply{
		Kind: Notice, Turn: k.Turn, ID: k.Card, Address: k.Address, Tainted: a.taints(origin, k.Asked),
		Text: fmt.Sprintf("%s (card %s): %s.", k.Tool, k.Card, strings.TrimSuffix(why, ".")),
	})
	note := Note{Text: fmt.Sprintf("the call of %s with %s that waited (card %s): %s", k.Tool, k.Arguments, k.Card, why), Origin: origin}
	a.send(k.Address, Message{Provenance: Decided, Note: &note})
	return nil
}

// decidedOf is what a decision about a card has in it: what the card was made from, and the words of whoever decided.
func (k *card) decidedOf(d decidedEntry) compact.Origin {
	if d.By == "" || d.By == k.Asked {
		return k.Origin
	}
	return k.Origin.With(compact.Origin{Speakers: []string{string(d.By)}})
}

// denied is a denial as the model reads it.
func denied(d decidedEntry) string {
	who := nameOf(Person{ID: d.By, Name: d.Name})
	if d.Text == "" {
		return fmt.Sprintf("not run: %s denied this call and gave no reason", who)
	}
	return fmt.Sprintf("not run: %s denied this call: %s", who, d.Text)
}

// edit decides a card with other arguments, which go through the policy anew.
func (a *actor) edit(l letter, k *card) error {
	tool := a.box().named[k.Tool]
	if tool == nil {
		return a.refuse(l, toolGone(k.Tool))
	}
	c := a.state.open(k.Call)
	if c == nil || c.card != k {
		return a.refuse(l, parkedEdit)
	}
	arguments, err := tool.schema.Check(string(l.Decision.Arguments))
	if err != nil {
		return a.refuse(l, "These arguments do not fit, and nothing was decided: "+err.Error())
	}
	c.tool = tool.Tool
	policy, err := a.policy(c, arguments)
	if err != nil {
		return a.refuse(l, "This cannot be run, and nothing was decided: "+err.Error())
	}
	if may, err := a.entitledNow(k.Asked, policy, l.From.ID); err != nil {
		return err
	} else if policy != PolicyNo && !may {
		return a.refuse(l, "With these arguments it is not yours to decide; nothing was decided.")
	}
	return a.closeBy(l, k, decidedEntry{
		Verdict: Edit, Arguments: arguments, Digest: a.digest(tool.Tool, a.invocation(c, arguments)), Diff: editDiff(k.Arguments, arguments),
	})
}

// editedBy tells the model, before a result, that a person changed the arguments.
func editedBy(k *card) string {
	if k == nil || k.verdict != Edit {
		return ""
	}
	return fmt.Sprintf("(%s changed the arguments to %s)\n", nameOf(k.by), k.Arguments)
}

// outcome is what was decided about a card, for a person who comes late.
func (k *card) outcome(zone string) string {
	if k.verdict == "" {
		return "it is not decided yet"
	}
	at := ""
	if zone != "" {
		at = " at " + local(k.at, zone)
	}
	switch k.verdict {
	case Approve:
		return fmt.Sprintf("It was already approved by %s%s.", nameOf(k.by), at)
	case Edit:
		return fmt.Sprintf("It was already approved by %s%s, with other arguments.", nameOf(k.by), at)
	case Always:
		return fmt.Sprintf("It was already approved by %s%s, and allowed from then on%s.", nameOf(k.by), at, withOpen(k.left))
	case Deny:
		return fmt.Sprintf("It was already denied by %s%s.", nameOf(k.by), at)
	case AnswerIt:
		return fmt.Sprintf("It was already answered by %s%s.", nameOf(k.by), at)
	case Expire:
		return "It had expired" + at + ", which counts as denied."
	}
	return "It was withdrawn" + at + "."
}
