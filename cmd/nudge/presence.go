package main

import (
	"context"
	"fmt"
	"strings"

	"nudge/agent"
	"nudge/memory"
)

// serves reports whether this process serves a person.
func (p *program) serves(person agent.PersonID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.everyone || p.here[person] > 0
}

// host counts a chat of another process in until leave is called.
func (p *program) host() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guests++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.guests--
		p.left.Broadcast()
	}
}

// waitForGuests returns when no other process talks through this one, or when ctx ends.
func (p *program) waitForGuests(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.left.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	for ctx.Err() == nil && p.guests > 0 {
		p.left.Wait()
	}
}

// arrive lets this process serve a person, whose unfinished turns go on, until leave is called.
func (p *program) arrive(ctx context.Context, person agent.Person) (leave func(), err error) {
	p.mu.Lock()
	p.here[person.ID]++
	p.mu.Unlock()
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.here[person.ID]--
	}
	if err := p.store.Update(ctx, func(tx memory.Tx) error { return agent.Greet(tx, person) }); err != nil {
		leave()
		return nil, fmt.Errorf("remember who is talking: %w", err)
	}
	if err := p.resume(ctx, of(person.ID)); err != nil {
		leave()
		return nil, err
	}
	p.clock.Look()
	return leave, nil
}

// resume takes up what is unfinished in the sessions that are wanted, unless that may be what ends the program.
func (p *program) resume(ctx context.Context, want func(session string) bool) error {
	if !p.troubled {
		return p.agent.Resume(ctx, want)
	}
	p.log.Error("nothing that was unfinished is taken up", "why", "the program ended uncleanly too often")
	p.tellOwners(ctx, "", troubledLine)
	return nil
}

// wants reports whether a session is of the people that this process serves.
func (p *program) wants(session string) bool {
	return p.everyone || p.serves(personOf(session))
}

// of is true for the sessions of a person: their direct conversations, and the wakes for them.
func of(person agent.PersonID) func(session string) bool {
	return func(session string) bool { return personOf(session) == person }
}

// personOf is the person whose session it is; "" when it is shared.
func personOf(session string) agent.PersonID {
	if owner := agent.WakeOwner(session); owner != "" {
		return owner
	}
	session, _, _ = strings.Cut(session, "~")
	parts := strings.Split(session, ":")
	if len(parts) < 4 || parts[2] != "dm" {
		return ""
	}
	if parts[1] == "local" {
		return agent.PersonID(parts[0] + ":" + parts[3])
	}
	return agent.PersonID(parts[0] + ":" + parts[1] + ":" + parts[3])
}
