package schedule

import (
	"context"
	"sync"
	"time"
)

// quickCheck is how long a check keeps others waiting at most.
const quickCheck = 100 * time.Millisecond

// slot is what a check holds while it runs. One that takes long moves over to the places for slow checks, as long as there
// are any, so that it keeps nobody waiting.
type slot struct {
	slow  chan struct{}
	timer *time.Timer

	mu   sync.Mutex
	held chan struct{} // what it is a place of; nil once it was given up
}

// enter waits for a place among the checks.
func (c *Clock) enter(ctx context.Context) (*slot, error) {
	select {
	case c.checks <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p := &slot{slow: c.slow, held: c.checks}
	p.timer = time.AfterFunc(quickCheck, p.move)
	return p, nil
}

func (p *slot) move() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		return
	}
	select {
	case p.slow <- struct{}{}:
		<-p.held
		p.held = p.slow
	default:
	}
}

func (p *slot) leave() {
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	<-p.held
	p.held = nil
}
