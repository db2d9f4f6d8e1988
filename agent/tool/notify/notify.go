// Package notify is the tool with which a run that a heartbeat woke speaks: its only voice.
//
// What it says is put into the outbox and into the person's own session together with the call's result, in one
// transaction, so it is said once. Whether it is a repeat is judged by the heartbeat, the key and the episode of
// the condition, never by the wording.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nudge/agent"
	"nudge/memory"
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
	row := rowKey(in, call.Key)
	var session string
	repeat := false
	err := store.View(ctx, func(tx memory.Tx) (err error) {
		if session, err = agent.SessionOf(tx, in.Wake.Route); err != nil {
			return err
		}
		last, found, err := read(tx, row)
		repeat = found && last.Episode == in.Wake.Episode
		return err
	})
	if err != nil {
		return agent.Result{}, fmt.Errorf("look up what was told: %w", err)
	}
	if repeat {
		return agent.Result{Text: fmt.Sprintf("not said: %q was told already and nothing has changed since; end without telling it again", call.Key)}, nil
	}
	note := agent.Note{Heartbeat: in.Wake.Heartbeat, Text: call.Text, Evidence: in.Wake.Evidence}
	return agent.Result{
		Text: "said to the person",
		Look: []string{session},
		Commit: func(tx memory.Tx) error {
			data, err := json.Marshal(told{Episode: in.Wake.Episode, At: time.Now().UTC()})
			if err != nil {
				return err
			}
			if err := tx.Table(table).Put(row, data); err != nil {
				return err
			}
			_, err = agent.Tell(tx, in.Wake.Route, note, call.Urgency, call.Key)
			return err
		},
	}, nil
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
