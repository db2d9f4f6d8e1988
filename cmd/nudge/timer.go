package main

import (
	"context"
	"slices"

	"nudge/agent"
	"nudge/memory"
)

// expired hands a timer that fell due to its session.
func (p *program) expired(_ context.Context, tx memory.Tx, row memory.DueRow) error {
	session, err := agent.Expired(tx, row)
	if err == nil {
		p.hasMail(session)
	}
	return err
}

// digest tells a person what was held back from them.
func (p *program) digest(_ context.Context, tx memory.Tx, row memory.DueRow) error {
	session, err := p.voice.Digest(tx, row)
	if err == nil && session != "" {
		p.hasMail(session)
	}
	return err
}

// hasMail notes a session to be looked at once what fell due is on disk.
func (p *program) hasMail(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.fired, session) {
		p.fired = append(p.fired, session)
	}
}

func (p *program) lookAtFired() {
	p.mu.Lock()
	fired := p.fired
	p.fired = nil
	p.mu.Unlock()
	for _, session := range fired {
		if p.wants(session) {
			p.agent.Look(session)
		}
	}
	p.hub.Outgoing()
}
