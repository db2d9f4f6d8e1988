package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// heartbeatVerbs are what a person can do with a heartbeat by name. Each answers in words.
func heartbeatVerbs() map[string]func(h *Hub, tx memory.Tx, e Event, b schedule.Heartbeat) (agent.Kind, string, error) {
	return map[string]func(h *Hub, tx memory.Tx, e Event, b schedule.Heartbeat) (agent.Kind, string, error){
		"why": (*Hub).why, "pause": (*Hub).pauseBeat, "resume": (*Hub).resumeBeat, "run": (*Hub).runBeat, "delete": (*Hub).deleteBeat,
	}
}

// heartbeats lists what wakes for a person, or does something with one of these.
func (h *Hub) heartbeats(ctx context.Context, e Event, rest string) (Admission, error) {
	verb, name := cutWord(rest)
	if verb == "" {
		return h.answerAlone(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
			text, err := h.listBeats(tx, e)
			return agent.Notice, text, err
		})
	}
	do := heartbeatVerbs()[strings.ToLower(verb)]
	if do == nil || name == "" {
		word := func(verb string) string { return h.word(e.Address, "heartbeats "+verb+" NAME") }
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say what to do with which: %s, %s, %s, %s or %s.", word("why"), word("pause"), word("resume"), word("run"), word("delete")))
	}
	admission, err := h.answerAlone(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		beat, err := schedule.Load(tx, name)
		if err == nil && !h.concerns(beat, e.From.ID) || errors.Is(err, schedule.ErrNoHeartbeat) {
			return agent.Fault, fmt.Sprintf("No heartbeat %q wakes me for you. %s lists those that do.", name, h.word(e.Address, "heartbeats")), nil
		}
		if err != nil {
			return "", "", err
		}
		return do(h, tx, e, beat)
	})
	if err == nil && h.Rescheduled != nil {
		h.Rescheduled()
	}
	return admission, err
}

// listBeats tells what wakes for a person, a line each.
func (h *Hub) listBeats(tx memory.Tx, e Event) (string, error) {
	beats, err := heartbeatsFor(tx, e.From.ID)
	if err != nil {
		return "", err
	}
	attention, err := schedule.LoadAttention(tx, string(e.From.ID))
	if err != nil {
		return "", err
	}
	var lines []string
	for _, b := range beats {
		line := fmt.Sprintf("%s  %s%s: %s", b.Name, b.InWords(), whenOf(b.Condition), b.About())
		if b.Paused != "" {
			line += "  (paused: " + b.Paused + ")"
		}
		if said := attention.About(b.Name, e.at(), zoneOf(e.From)); len(said) > 0 {
			line += "  (" + strings.Join(said, "; ") + ")"
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return NothingWakes, nil
	}
	return strings.Join(lines, "\n"), nil
}

// whenOf says what a heartbeat's condition is, behind its times; "" for one that has none.
func whenOf(c schedule.Spec) string {
	asks := c.InWords()
	switch {
	case asks == "":
		return ""
	case c.Level():
		return ", if " + asks
	}
	return ", when " + asks
}

// concerns reports whether a heartbeat is a person's to know of: it wakes for them, they made it, or they are an owner.
func (h *Hub) concerns(b schedule.Heartbeat, person agent.PersonID) bool {
	return slices.Contains(b.For, string(person)) || b.By == string(person) || h.agent.Owns(person)
}

// governs reports whether a person may change a heartbeat for all whom it wakes: they made it, nobody else is woken, or they are
// an owner.
func (h *Hub) governs(b schedule.Heartbeat, person agent.PersonID) bool {
	return b.By == string(person) || len(b.For) == 1 && b.For[0] == string(person) || h.agent.Owns(person)
}

// refuseShared answers who may not change a heartbeat, since it wakes others too.
func (h *Hub) refuseShared(e Event, b schedule.Heartbeat) (agent.Kind, string, error) {
	return agent.Fault, fmt.Sprintf("%s wakes others too, so only who made it and owners may do that. %s keeps it from speaking to you.",
		b.Name, h.word(e.Address, "snooze tomorrow "+b.Name)), nil
}

// shownOutcomes is how many outcomes are told in a conversation; the command line tells more.
const shownOutcomes = 10

func (h *Hub) why(tx memory.Tx, e Event, b schedule.Heartbeat) (agent.Kind, string, error) {
	report, err := schedule.Why(tx, b.Name, e.at())
	if err != nil {
		return "", "", err
	}
	if !h.governs(b, e.From.ID) {
		report = report.For(string(e.From.ID))
	}
	report.Outcomes = report.Outcomes[:min(len(report.Outcomes), shownOutcomes)]
	return agent.Notice, strings.TrimSpace(report.String()), nil
}

func (h *Hub) pauseBeat(tx memory.Tx, e Event, b schedule.Heartbeat) (agent.Kind, string, error) {
	switch {
	case !h.governs(b, e.From.ID):
		return h.refuseShared(e, b)
	case b.Ended != "":
		return agent.Fault, fmt.Sprintf("%s has ended: %s.", b.Name, b.Ended), nil
	case b.Paused != "":
		return agent.Notice, fmt.Sprintf("%s is paused already: %s.", b.Name, b.Paused), nil
	}
	err := schedule.Pause(tx, b.Name, "paused by "+string(e.From.ID))
	return agent.Notice, fmt.Sprintf("%s is paused. %s lets it go on.", b.Name, h.word(e.Address, "heartbeats resume "+b.Name)), err
}

func (h *Hub) resumeBeat(tx memory.Tx, e Event, b schedule.Heartbeat) (agent.Kind, string, error) {
	switch {
	case !h.governs(b, e.From.ID):
		return h.refuseShared(e, b)
	case b.Ended != "":
		return agent.Fault, fmt.Sprintf("%s has ended: %s. Ask me for it anew.", b.Name, b.Ended), nil
	case b.Paused == "":
		return agent.Notice, fmt.Sprintf("%s is not paused.", b.Name), nil
	case b.Paused == pausedByAll && !h.agent.Owns(e.From.ID):
		return agent.Fault, "An owner has stopped everything, so that only an owner lets it go on.", nil
	}
	return agent.Notice, fmt.Sprintf("%s goes on.", b.Name), schedule.Resume(tx, b.Name, time.Now())
}

// runBeat lets a heartbeat check at once, for the one who asks.
func (h *Hub) runBeat(tx memory.Tx, e Event, b schedule.Heartbeat) (agent.Kind, string, error) {
	if !slices.Contains(b.For, string(e.From.ID)) {
		return agent.Fault, fmt.Sprintf("%s wakes others and not you.", b.Name), nil
	}
	_, known, err := agent.Home(tx, e.From.ID)
	if err != nil {
		return "", "", err
	}
	switch err := schedule.Ask(tx, b.Name, string(e.From.ID), known.Zone, time.Now()); {
	case errors.Is(err, schedule.ErrResting) && b.Ended != "":
		return agent.Fault, fmt.Sprintf("%s has ended: %s.", b.Name, b.Ended), nil
	case errors.Is(err, schedule.ErrResting):
		return agent.Fault, fmt.Sprintf("%s is paused: %s. %s lets it go on.", b.Name, b.Paused, h.word(e.Address, "heartbeats resume "+b.Name)), nil
	case err != nil:
		return "", "", err
	}
	return agent.Notice, fmt.Sprintf("%s looks now, and tells you if its condition is true. %s tells what came of it.", b.Name, h.word(e.Address, "heartbeats why "+b.Name)), nil
}

func (h *Hub) deleteBeat(tx memory.Tx, e Event, b schedule.Heartbeat) (agent.Kind, string, error) {
	switch {
	case !h.governs(b, e.From.ID):
		return h.refuseShared(e, b)
	case b.By == "" && b.Ended == "":
		return agent.Fault, fmt.Sprintf("%s stands in the config, and would be there again at the next start: take it out there. %s pauses it.",
			b.Name, h.word(e.Address, "heartbeats pause "+b.Name)), nil
	}
	return agent.Notice, fmt.Sprintf("%s is deleted, with what was remembered of it.", b.Name), schedule.Remove(tx, b.Name)
}
