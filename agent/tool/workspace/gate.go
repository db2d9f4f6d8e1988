package workspace

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Gate lets calls into people's folders: those that only look together, one that changes something alone. So what a call was
// found to be, or approved as, is what runs, whatever its person does in other conversations meanwhile. Its methods may be called
// concurrently; who comes first enters first.
type Gate struct {
	mu      sync.Mutex
	folders map[string]*queue // in which somebody is, or wants to be
}

// NewGate makes a gate behind which nobody is.
func NewGate() *Gate { return &Gate{folders: map[string]*queue{}} }

// everybody is more than ever look into a folder at once.
const everybody = 1 << 30

type queue struct {
	places *semaphore.Weighted // one for who looks, all for who is alone
	users  int
}

// Enter waits until a folder may be looked into, or be changed by who is alone then. The caller calls leave once it is done. The error is
// that of ctx.
func (g *Gate) Enter(ctx context.Context, folder string, alone bool) (leave func(), err error) {
	g.mu.Lock()
	q := g.folders[folder]
	if q == nil {
		q = &queue{places: semaphore.NewWeighted(everybody)}
		g.folders[folder] = q
	}
	q.users++
	g.mu.Unlock()
	places := int64(1)
	if alone {
		places = everybody
	}
	if err := q.places.Acquire(ctx, places); err != nil {
		g.done(folder, q)
		return nil, fmt.Errorf("wait until what else runs in the workspace has ended: %w", err)
	}
	return func() {
		q.places.Release(places)
		g.done(folder, q)
	}, nil
}

// done forgets a folder that nobody uses any more.
func (g *Gate) done(folder string, q *queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(g.folders, folder)
	}
}
