package bottest

import (
	"context"
	"errors"
	"sync"

	"nudge/memory"
)

var errDiskFull = errors.New("the disk is full")

// gate is a store whose writes can be held up or fail.
type gate struct {
	memory.Store

	mu      sync.Mutex
	held    chan struct{} // closed when writes may go on; nil when they are not held up
	failing bool
	dead    bool          // no write gets through any more
	left    int           // of writes before it is dead; 0 when that is not asked for
	reached chan struct{} // closed by the first write that was held up or failed
}

// hold lets writes wait. It returns a channel that is closed when one does, and what lets them go on.
func (g *gate) hold() (reached <-chan struct{}, release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := make(chan struct{})
	g.held, g.reached = held, make(chan struct{})
	return g.reached, sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.held = nil
		close(held)
	})
}

// fail lets the next write fail. It returns a channel that is closed when one has.
func (g *gate) fail() (reached <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing, g.reached = true, make(chan struct{})
	return g.reached
}

// crash lets n more writes through, or none, and no write after them. It returns a channel that is closed when one was
// refused. Only a new gate lets writes through again.
func (g *gate) crash(n int) (reached <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.dead, g.reached = n, n == 0, make(chan struct{})
	return g.reached
}

// Update is the store's, when it is let through.
func (g *gate) Update(ctx context.Context, fn func(memory.Tx) error) error {
	g.mu.Lock()
	held, failing := g.held, g.failing || g.dead
	g.failing = false
	if g.left > 0 {
		g.left--
		g.dead = g.left == 0
	}
	if (held != nil || failing) && g.reached != nil {
		close(g.reached)
		g.reached = nil
	}
	g.mu.Unlock()
	if failing {
		return errDiskFull
	}
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.Store.Update(ctx, fn)
}
