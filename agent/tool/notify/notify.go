// Package notify is the tool with which a run that a heartbeat woke speaks: its only voice.
//
// What it says is put into the outbox and into the person's own session together with the call's result, in one
// transaction, so it is said once. Whether it is a repeat is judged by the heartbeat, the key and the episode of the
// condition, never by the wording. What is said is a card, whose person can say what they make of it. To a person who has
// snoozed meanwhile nothing is said: it comes when the snooze ends.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// table keeps what was told last, by person, heartbeat and key.
const table = "told"

// told is its row.
type told struct {
	Episode string    `json:"episode"`
	At      time.Time `json:"at"`
}

// New returns the tool.
func New(store memory.Store) agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "notify",
			Description: "Tell the person something now. The same key is not told twice while the condition that woke you stays true.",
			Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":4000},` +
				`"urgency":{"enum":["low","normal","high"]},"key":{"type":"string","maxLength":100}},"required":["text"],"additionalProperties":false}`),
			Effect: agent.Idempotent,
			Labels: agent.Labels{WayOut: true},
			Place:  agent.InHeartbeat,
		},
		Run: func(ctx context.Context, in agent.Invocation) (agent.Result, error) { return run(ctx, store, in) },
	}
}

func run(ctx context.Context, store memory.Store, in agent.Invocation) (agent.Result, error) {
	call := struct{ Text, Urgency, Key string }{Urgency: "normal"}
	if err := in.Decode(&call); err != nil {
		return agent.Result{}, err
	}
	if in.Wake == nil {
		return agent.Result{}, errors.New("nothing is told unasked in a turn that a person began; just answer")
	}
	if call.Key == "" {
		call.Key = in.Wake.Heartbeat
	}
	t := telling{in: in, text: call.Text, urgency: call.Urgency, key: call.Key, row: rowKey(in, call.Key)}
	var session string
	var snoozed time.Time
	repeat := false
	err := store.View(ctx, func(tx memory.Tx) (err error) {
		if session, err = agent.SessionOf(tx, in.Wake.Route); err != nil {
			return err
		}
		attention, err := schedule.LoadAttention(tx, string(in.Person.ID))
		if err != nil {
			return err
		}
		snoozed = attention.SnoozedBy(in.Wake.Heartbeat, time.Now())
		last, found, err := read(tx, t.row)
		repeat = found && last.Episode == in.Wake.Episode
		return err
	})
	switch {
	case err != nil:
		return agent.Result{}, fmt.Errorf("look up what was told: %w", err)
	case repeat:
		return agent.Result{Text: fmt.Sprintf("not said: %q was told already and nothing has changed since; end without telling it again", call.Key)}, nil
	case !snoozed.IsZero():
		return agent.Result{Text: "not said: the person has just asked to be left alone for a while; you are woken again after that, so end now", Commit: t.commit}, nil
	}
	return agent.Result{Text: "said to the person", Look: []string{session}, Commit: t.commit}, nil
}

// telling is what is to be told.
type telling struct {
	in                 agent.Invocation
	text, urgency, key string
	row                string
}

// commit says it, or notes that it is to come when the person's snooze ends. The snooze may have begun since the result was
// made: not to speak then, and not to lose it, is worth a result that says too much.
func (t telling) commit(tx memory.Tx) error {
	now, person, wake := time.Now(), string(t.in.Person.ID), t.in.Wake
	until, err := schedule.Withhold(tx, person, wake.Heartbeat, wake.Episode, now)
	if err != nil || !until.IsZero() {
		return err
	}
	data, err := json.Marshal(told{Episode: wake.Episode, At: now.UTC()})
	if err != nil {
		return err
	}
	if err := tx.Table(table).Put(t.row, data); err != nil {
		return err
	}
	session, err := agent.SessionOf(tx, wake.Route)
	if err != nil {
		return err
	}
	tick := wake.Tick
	if tick.IsZero() {
		tick = now
	}
	card, err := schedule.AddCard(tx, schedule.Card{
		Person: person, Heartbeat: wake.Heartbeat, Address: wake.Route, Session: session, Text: t.text, Tick: tick, Told: now,
	})
	if err != nil {
		return err
	}
	note := agent.Note{Heartbeat: wake.Heartbeat, Text: t.text, Evidence: wake.Evidence, Card: card}
	_, err = agent.Tell(tx, wake.Route, note, t.urgency, t.key)
	return err
}

func rowKey(in agent.Invocation, key string) string {
	name, err := json.Marshal([]string{string(in.Person.ID), in.Wake.Heartbeat, key})
	if err != nil { // strings always encode
		return key
	}
	return string(name)
}

func read(tx memory.Tx, row string) (told, bool, error) {
	var last told
	data, found, err := tx.Table(table).Get(row)
	if err != nil || !found {
		return last, false, err
	}
	return last, true, json.Unmarshal(data, &last)
}
