package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// known is a person with what is remembered of them where the platform does not tell: their zone and their language.
func (h *Hub) known(ctx context.Context, p agent.Person) (agent.Person, error) {
	if p.Zone != "" && p.Locale != "" {
		return p, nil
	}
	err := h.Store.View(ctx, func(tx memory.Tx) error {
		_, had, err := agent.Home(tx, p.ID)
		if p.Zone == "" {
			p.Zone = had.Zone
		}
		if p.Locale == "" {
			p.Locale = had.Locale
		}
		return err
	})
	if err != nil {
		return p, fmt.Errorf("look up what is known of %s: %w", p.ID, err)
	}
	return p, nil
}

// zone says which time zone a person is in, or remembers it for people of platforms that do not tell.
func (h *Hub) zone(ctx context.Context, e Event, rest string) (Admission, error) {
	now := func(zone *time.Location) string { return e.at().In(zone).Format("15:04") }
	if rest == "" {
		if e.From.Zone == "" {
			return h.answer(ctx, e, agent.Notice, fmt.Sprintf("I do not know your time zone, so UTC counts. %s sets it.", h.word(e.Address, "zone Europe/Berlin")))
		}
		return h.answer(ctx, e, agent.Notice, fmt.Sprintf("Your time zone is %s; it is %s there.", e.From.Zone, now(zoneOf(e.From))))
	}
	if e.zoneTold {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Your time zone is %s, as it is set where you write from; change it there.", e.From.Zone))
	}
	zone, err := loadZone(rest)
	if err != nil {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("I know no time zone %q. Write it as in %s, with a large city of yours.", cutZone(rest), h.word(e.Address, "zone Europe/Berlin")))
	}
	admission, err := h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		p := e.From
		p.Zone = zone.String()
		return agent.Notice, fmt.Sprintf("Your time zone is %s from now on; it is %s there.", p.Zone, now(zone)), agent.Greet(tx, p)
	})
	if err == nil && h.Rescheduled != nil {
		h.Rescheduled()
	}
	return admission, err
}

// zoneOf is the zone that a person is in; UTC as long as it is not known.
func zoneOf(p agent.Person) *time.Location {
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// keptZone begins the name under which it is kept that a person was asked for their zone.
const keptZone = "zone "

// askZone asks a person for their zone, unless it is known or they were asked before. It is done as well as it can be.
func (h *Hub) askZone(ctx context.Context, e Event) {
	platform, _, _ := strings.Cut(e.Address, ":")
	name := keptKey(platform, keptZone+string(e.From.ID))
	err := h.Store.Update(ctx, func(tx memory.Tx) error {
		_, known, err := agent.Home(tx, e.From.ID)
		if err != nil || known.Zone != "" {
			return err
		}
		asked, _, err := tx.Table(tableKept).Get(name)
		if err != nil || len(asked) > 0 {
			return err
		}
		if err := tx.Table(tableKept).Put(name, []byte("asked")); err != nil {
			return err
		}
		return agent.Send(tx, agent.Reply{Kind: agent.Notice, To: e.From.ID, Address: e.From.ID.Home(), Text: fmt.Sprintf(
			"I ask this once: which time zone are you in? I do not know it, so reminders and quiet hours go by UTC. %s sets it.", h.word(e.Address, "zone Europe/Berlin"))})
	})
	if err != nil {
		h.Log.Warn("cannot ask somebody for their time zone", "person", e.From.ID, "error", err)
		return
	}
	h.Outgoing()
}

// loadZone reads the name of a zone as people write it: with blanks, and in any case.
func loadZone(name string) (*time.Location, error) {
	name = strings.ReplaceAll(strings.TrimSpace(name), " ", "_")
	if strings.EqualFold(name, "utc") {
		return time.UTC, nil
	}
	parts := strings.Split(strings.ToLower(name), "/")
	for i, part := range parts {
		words := strings.Split(part, "_")
		for j, word := range words {
			if word != "" && word != "of" && word != "es" {
				words[j] = strings.ToUpper(word[:1]) + word[1:]
			}
		}
		parts[i] = strings.Join(words, "_")
	}
	for _, spelling := range []string{name, strings.Join(parts, "/")} {
		// One word is an abbreviation, or the zone of this machine.
		if zone, err := time.LoadLocation(spelling); err == nil && strings.Contains(spelling, "/") {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("there is no time zone %q", name)
}

func cutZone(name string) string {
	if runes := []rune(name); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return name
}
