package bot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"nudge/agent"
)

// How much one person may say. Who sits at this machine, or holds its token, is not bounded.
const (
	paceBurst  = 120             // messages at once
	paceEvery  = time.Second     // and one more in so much time
	paceTold   = time.Minute     // for how long it is not said again that there is too much
	loopWithin = 2 * time.Second // words that come so soon after an answer were not typed
	loopAfter  = 25              // so many answers in a row that one person answers so soon are answered by a bot
	loopRest   = 10 * time.Minute
	mostPaced  = 10_000 // people and conversations that are looked after; those who said least of late are forgotten
	mostQuick  = 100    // people of one conversation of whom it is known how soon they answer
)

// pace bounds what people say. It is forgotten with the process: who says too much is heard to have done so again at once.
type pace struct {
	mu       sync.Mutex
	people   map[agent.PersonID]*bucket
	answered map[string]*exchange // by conversation
}

// bucket is how much a person may still say.
type bucket struct {
	left float64
	at   time.Time
	told time.Time
}

// exchange is how quickly a conversation goes.
type exchange struct {
	said time.Time // when the bot last answered there
	with map[agent.PersonID]*rounds
}

// rounds are what one person of a conversation has answered.
type rounds struct {
	last  time.Time // the answer that they answered last
	quick int       // answers in a row that they answered at once
	until time.Time // nothing of theirs is taken there before it
}

// takes reports whether something that a person says now is taken. If not, say is what they are told; "" when they were told.
func (p *pace) takes(who agent.PersonID, address string, now time.Time) (ok bool, say string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if say, looped := p.loops(who, address, now); looped {
		return false, say
	}
	b := p.people[who]
	if b == nil {
		if len(p.people) >= mostPaced {
			p.people = nil // they begin anew
		}
		if p.people == nil {
			p.people = map[agent.PersonID]*bucket{}
		}
		b = &bucket{left: paceBurst, at: now}
		p.people[who] = b
	}
	b.left = min(paceBurst, b.left+max(0, now.Sub(b.at).Seconds()/paceEvery.Seconds()))
	b.at = now
	if b.left >= 1 {
		b.left--
		return true, ""
	}
	if now.Sub(b.told) < paceTold {
		return false, ""
	}
	b.told = now
	return false, "That is more than I can take at once, so what you said just now was not taken. Wait a minute and say it again."
}

// loops reports whether a person and the bot answer each other as only two bots do. However much somebody says after one answer
// is one round, and what one person does keeps nobody else of the conversation from being heard. The caller holds mu.
func (p *pace) loops(who agent.PersonID, address string, now time.Time) (say string, looped bool) {
	x := p.answered[address]
	if x == nil {
		return "", false
	}
	r := x.of(who)
	switch {
	case now.Before(r.until):
		return "", true
	case now.Sub(x.said) >= loopWithin:
		r.quick = 0
		return "", false
	case r.last.Equal(x.said):
		return "", false
	}
	r.last = x.said
	if r.quick++; r.quick < loopAfter {
		return "", false
	}
	r.quick, r.until = 0, now.Add(loopRest)
	return fmt.Sprintf("%d times in a row you have answered me faster than people type, so I take you for a bot and do not hear you here for %d minutes.", loopAfter, int(loopRest.Minutes())), true
}

// of is what a person has answered in a conversation.
func (x *exchange) of(who agent.PersonID) *rounds {
	if r := x.with[who]; r != nil {
		return r
	}
	if x.with == nil || len(x.with) >= mostQuick {
		x.with = map[agent.PersonID]*rounds{}
	}
	r := &rounds{}
	x.with[who] = r
	return r
}

// answers notes that the bot has answered in a conversation.
func (p *pace) answers(address string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.answered[address]; x != nil {
		x.said = now
		return
	}
	if len(p.answered) >= mostPaced {
		p.answered = nil
	}
	if p.answered == nil {
		p.answered = map[string]*exchange{}
	}
	p.answered[address] = &exchange{said: now}
}

// tooMuch reports whether words are not taken since there are too many of them, and says so.
func (h *Hub) tooMuch(ctx context.Context, e Event) (bool, error) {
	if e.From.ID.Local() || e.Text == "" && len(e.Files) == 0 {
		return false, nil
	}
	ok, say := h.pace.takes(e.From.ID, e.Address, time.Now())
	if ok {
		return false, nil
	}
	h.Log.Warn("somebody says too much; it is not taken", "person", e.From.ID, "conversation", e.Address)
	if say == "" {
		return true, nil
	}
	_, err := h.aside(ctx, e, "", say)
	return true, err
}
