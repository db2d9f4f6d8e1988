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
	loopAfter  = 25              // such words in a row are a bot's that answers the bot
	loopRest   = 10 * time.Minute
	mostPaced  = 10_000 // people and conversations that are looked after; those who said least of late are forgotten
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
	said  time.Time // when the bot last answered there
	quick int       // words in a row that came at once
	until time.Time // nothing is taken before it
}

// takes reports whether something that a person says now is taken. If not, say is what they are told; "" when they were told.
func (p *pace) takes(who agent.PersonID, address string, now time.Time) (ok bool, say string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if say, looped := p.loops(address, now); looped {
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

// loops reports whether a conversation goes as only one between two bots does. The caller holds mu.
func (p *pace) loops(address string, now time.Time) (say string, looped bool) {
	x := p.answered[address]
	switch {
	case x == nil:
		return "", false
	case now.Before(x.until):
		return "", true
	case now.Sub(x.said) >= loopWithin:
		x.quick = 0
		return "", false
	}
	if x.quick++; x.quick < loopAfter {
		return "", false
	}
	x.quick, x.until = 0, now.Add(loopRest)
	return fmt.Sprintf("%d times in a row you have answered me faster than people type, so I take you for a bot and say nothing here for %d minutes.", loopAfter, int(loopRest.Minutes())), true
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
