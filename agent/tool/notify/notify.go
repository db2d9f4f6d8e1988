// Package notify says things to people who did not ask: what a run that a heartbeat woke tells them with the tool, its only
// voice; a heartbeat's fixed words, with no run at all; and the digest of what was held back.
//
// What is said is put into the outbox and into the person's own session in one transaction, with the call's result where
// there is one, so it is said once. Whether it is a repeat is judged by the heartbeat, the key and the episode of the
// condition, never by the wording. It is a card, whose person can say what they make of it. All of it is bounded by the
// person's attention: to one who has snoozed meanwhile nothing is said, and it comes when the snooze ends; what their quiet
// hours or their daily cap hold back comes in the digest.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nudge/agent"
	"nudge/agent/compact"
	"nudge/memory"
	"nudge/schedule"
)

// tableTold keeps what was told last, by person, heartbeat and key.
const tableTold memory.Rows[told] = "told"

// told is its row.
type told struct {
	Episode string    `json:"episode"`
	At      time.Time `json:"at"`
}

// Voice says things unasked, within a budget. It may be used concurrently.
type Voice struct {
	Store  memory.Store
	Budget schedule.Budget
}

// Tool returns the tool.
func (v Voice) Tool() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "notify",
			Description: "Tell the person something now. The same key is not told twice while the condition that woke you stays true.",
			Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":4000},` +
				`"urgency":{"enum":["low","normal","high"]},"key":{"type":"string","maxLength":100}},"required":["text"],"additionalProperties":false}`),
			Effect: agent.Idempotent,
			Labels: agent.Labels{WayOut: true, ToPerson: true},
			Place:  agent.InHeartbeat,
		},
		Run: v.run,
	}
}

func (v Voice) run(ctx context.Context, in agent.Invocation) (agent.Result, error) {
	call := struct{ Text, Urgency, Key string }{Urgency: "normal"}
	if err := in.Decode(&call); err != nil {
		return agent.Result{}, err
	}
	if in.Wake == nil {
		return agent.Result{}, errors.New("nothing is told unasked in a turn that a person began; just answer")
	}
	t := newTelling(v.Budget, in.Person, *in.Wake, call.Text, call.Urgency, call.Key)
	t.origin = in.Origin()
	result := agent.Result{Commit: t.commit}
	err := v.Store.View(ctx, func(tx memory.Tx) (err error) {
		result.Text, result.Look, err = t.foresee(tx)
		return err
	})
	if err != nil {
		return agent.Result{}, fmt.Errorf("look up what was told: %w", err)
	}
	return result, nil
}

// Say tells a person the fixed words of a heartbeat, with no run. It gives the session that has mail then, "" when nothing was
// said.
func (v Voice) Say(ctx context.Context, id agent.PersonID, wake agent.Wake) (session string, err error) {
	err = v.Store.Update(ctx, func(tx memory.Tx) error {
		session = ""
		route, person, err := agent.Home(tx, id)
		if err != nil {
			return err
		}
		wake.Route = route
		t := newTelling(v.Budget, person, wake, fixed(wake, zoneOf(person)), "normal", "")
		if err := t.commit(tx); err != nil || !t.said {
			return err
		}
		session, err = agent.SessionOf(tx, route)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("say the words of heartbeat %s: %w", wake.Heartbeat, err)
	}
	return session, nil
}

// late is how late fixed words are when they say for when they were.
const late = 5 * time.Minute

// fixed are a heartbeat's fixed words. What comes late says so.
func fixed(wake agent.Wake, zone *time.Location) string {
	if wake.Tick.IsZero() || time.Since(wake.Tick) < late {
		return wake.Text
	}
	return fmt.Sprintf("%s (This was for %s.)", wake.Text, wake.Tick.In(zone).Format("Mon 2 Jan 15:04"))
}

// telling is what is to be told.
type telling struct {
	budget             schedule.Budget
	person             agent.Person
	wake               agent.Wake
	text, urgency, key string
	kept               string         // the key by which it is kept that it was told
	origin             compact.Origin // of the text
	said               bool           // set by commit
}

func newTelling(budget schedule.Budget, person agent.Person, wake agent.Wake, text, urgency, key string) *telling {
	if key == "" {
		key = wake.Heartbeat
	}
	kept := key
	if wake.Asked { // it does not stand in the way of what comes unasked
		kept = "asked for: " + key
	}
	return &telling{budget: budget, person: person, wake: wake, origin: wake.Written(), text: text, urgency: urgency, key: key, kept: kept}
}

// foresee says what commit will do, for the model, and which session will have mail.
func (t *telling) foresee(tx memory.Tx) (text string, look []string, err error) {
	if repeat, err := t.repeats(tx); err != nil || repeat {
		return fmt.Sprintf("not said: %q was told already and nothing has changed since; end without telling it again", t.key), nil, err
	}
	attention, err := schedule.LoadAttention(tx, string(t.person.ID))
	if err != nil {
		return "", nil, err
	}
	now := time.Now()
	switch hold := t.budget.Hold(attention, now, zoneOf(t.person), t.breaksQuiet()); {
	case t.wake.Asked:
	case !attention.SnoozedBy(t.wake.Heartbeat, now).IsZero():
		return "not said: the person has just asked to be left alone for a while; you are woken again after that, so end now", nil, nil
	case hold.By == schedule.InQuiet:
		return "not said: these are the person's quiet hours; it comes in their digest, so end now", nil, nil
	case hold.Holds():
		return "not said: the person has heard enough unasked for today; it comes in their digest, so end now", nil, nil
	}
	session, err := agent.SessionOf(tx, t.wake.Route)
	return "said to the person", []string{session}, err
}

// breaksQuiet reports whether it may be said in quiet hours: what the run calls urgent, if the heartbeat's author allowed it.
// Fixed words are the author's own.
func (t *telling) breaksQuiet() bool {
	return t.wake.BreakQuiet && (t.urgency == "high" || t.wake.Text != "")
}

// repeats reports whether the same was told, or put into the digest, in this episode.
func (t *telling) repeats(tx memory.Tx) (bool, error) {
	row, err := rowKey(tx, t.person.ID, t.wake.Heartbeat, t.kept)
	if err != nil {
		return false, err
	}
	last, found, err := tableTold.Get(tx, row)
	return found && last.Episode == t.wake.Episode, err
}

// commit says it, or notes that it is to come later. What holds it back may have begun since the result was made: not to
// speak then, and not to lose it, is worth a result that says too much.
func (t *telling) commit(tx memory.Tx) error {
	t.said = false
	if repeat, err := t.repeats(tx); err != nil || repeat {
		return err
	}
	now := time.Now()
	hold, err := t.budget.Admit(tx, schedule.Unasked{
		Person: string(t.person.ID), Zone: zoneOf(t.person), Heartbeat: t.wake.Heartbeat, Key: t.key, Episode: t.wake.Episode,
		Text: t.text, BreaksQuiet: t.breaksQuiet(), Outside: t.origin.Outside, Private: t.origin.Private, Asked: t.wake.Asked,
	}, now)
	if err != nil || hold.By == schedule.BySnooze {
		return err
	}
	if err := noteTold(tx, t.person.ID, t.wake.Heartbeat, t.kept, told{Episode: t.wake.Episode, At: now.UTC()}); err != nil {
		return err
	}
	if hold.Holds() {
		return nil
	}
	t.said = true
	return t.tell(tx, now)
}

// tell puts it into the outbox, as a card, and into the person's session.
func (t *telling) tell(tx memory.Tx, now time.Time) error {
	session, err := agent.SessionOf(tx, t.wake.Route)
	if err != nil {
		return err
	}
	tick := t.wake.Tick
	if tick.IsZero() {
		tick = now
	}
	card, err := schedule.AddCard(tx, schedule.Card{
		Person: string(t.person.ID), Heartbeat: t.wake.Heartbeat, Address: t.wake.Route, Session: session, Text: t.text,
		Outside: t.origin.Outside != "" || t.wake.Evidence != "", Tick: tick, Told: now,
	})
	if err != nil {
		return err
	}
	note := agent.Note{Heartbeat: t.wake.Heartbeat, Text: t.text, Evidence: t.wake.Evidence, Card: card.ID, Once: card.Once, Origin: t.origin}
	note.Origin.Private = note.Origin.Private || t.wake.Private
	_, err = agent.Tell(tx, t.wake.Route, note, t.urgency, t.key)
	return err
}

func zoneOf(p agent.Person) *time.Location {
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// rowKey names the row of what a person was told last, with whichever of their accounts.
func rowKey(tx memory.Tx, account agent.PersonID, heartbeat, key string) (string, error) {
	person, err := schedule.PersonOf(tx, string(account))
	if err != nil {
		return "", err
	}
	name, err := json.Marshal([]string{person, heartbeat, key})
	return string(name), err
}

func noteTold(tx memory.Tx, account agent.PersonID, heartbeat, key string, t told) error {
	row, err := rowKey(tx, account, heartbeat, key)
	if err != nil {
		return err
	}
	return tableTold.Put(tx, row, t)
}
