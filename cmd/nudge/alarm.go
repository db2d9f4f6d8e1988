package main

import (
	"context"
	"slices"

	"nudge/agent"
	"nudge/memory"
)

// alarm tells the owners of a heartbeat in trouble.
func (p *program) alarm(ctx context.Context, heartbeat, text string) {
	p.log.Warn("heartbeat in trouble", "heartbeat", heartbeat, "text", text)
	p.tellOwners(ctx, heartbeat, text)
}

// needsMending tells that a platform is out of order until somebody mends it, also where that platform is not needed to
// hear of it.
func (p *program) needsMending(text string) {
	p.log.Error("somebody has to mend this", "text", text)
	p.tellOwners(context.Background(), "", text, "web:me")
}

// tellOwners says something to the owners unasked, of a heartbeat or of none, and to others.
func (p *program) tellOwners(ctx context.Context, heartbeat, text string, others ...agent.PersonID) {
	err := p.store.Update(ctx, func(tx memory.Tx) error {
		told := p.alarmed()
		for _, other := range others {
			if !slices.Contains(told, other) {
				told = append(told, other)
			}
		}
		for _, owner := range told {
			address, _, err := agent.Home(tx, owner)
			if err != nil {
				return err
			}
			if err := agent.Send(tx, agent.Reply{Kind: agent.Notice, Text: text, Heartbeat: heartbeat, Address: address}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		p.log.Error("cannot tell the owners", "error", err)
	}
	p.hub.Outgoing()
}

// alarmed are those who hear of trouble: the owners of the config, or web:me where there are none, and who is at a
// terminal of this machine now.
func (p *program) alarmed() []agent.PersonID {
	alarmed := people(p.config.Access.Owners)
	if len(alarmed) == 0 {
		alarmed = []agent.PersonID{"web:me"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for person, terminals := range p.here {
		if terminals > 0 && !slices.Contains(alarmed, person) {
			alarmed = append(alarmed, person)
		}
	}
	return alarmed
}
