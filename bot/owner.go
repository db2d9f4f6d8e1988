package bot

import (
	"context"
	"fmt"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// pausedByAll is why heartbeats are paused by `stop all`, so that `go on` resumes those and no others.
const pausedByAll = "stop all"

// stopAll stops every turn and pauses every heartbeat, in one transaction, so that it holds after a restart too.
func (h *Hub) stopAll(ctx context.Context, e Event, _ string) (Admission, error) {
	var turns map[string]string
	admission, err := h.ofOwners(ctx, e, func(tx memory.Tx) (string, error) {
		var err error
		if turns, err = agent.StopAll(tx, e.From, e.At); err != nil {
			return "", err
		}
		beats, err := schedule.List(tx)
		if err != nil {
			return "", err
		}
		paused := 0
		for _, b := range beats {
			if b.Paused != "" || b.Ended != "" {
				continue
			}
			if err := schedule.Pause(tx, b.Name, pausedByAll); err != nil {
				return "", err
			}
			paused++
		}
		return fmt.Sprintf("Stopped: %s. Paused: %s. `go on` lets the heartbeats go on.", schedule.Counted(len(turns), "turn"), schedule.Counted(paused, "heartbeat")), nil
	})
	if err == nil {
		h.agent.Interrupt(turns)
	}
	return admission, err
}

func (h *Hub) goOn(ctx context.Context, e Event, _ string) (Admission, error) {
	admission, err := h.ofOwners(ctx, e, func(tx memory.Tx) (string, error) {
		beats, err := schedule.List(tx)
		if err != nil {
			return "", err
		}
		resumed := 0
		for _, b := range beats {
			if b.Paused != pausedByAll {
				continue
			}
			if err := schedule.Resume(tx, b.Name, time.Now()); err != nil {
				return "", err
			}
			resumed++
		}
		return fmt.Sprintf("Going on: %s.", schedule.Counted(resumed, "heartbeat")), nil
	})
	if h.Rescheduled != nil {
		h.Rescheduled()
	}
	return admission, err
}

// ofOwners does something that only owners may, and answers with its text.
func (h *Hub) ofOwners(ctx context.Context, e Event, do func(memory.Tx) (string, error)) (Admission, error) {
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		if !h.agent.Owns(e.From.ID) {
			return agent.Fault, "Only an owner may do that.", nil
		}
		text, err := do(tx)
		return agent.Notice, text, err
	})
}
