// Package queue lets calls of tools wait for each other where too many at once, or two that meet, would do harm.
//
// [Queues] are what is parted by name, such as people's folders, in each of which there is room for so much at once. [Places] bound
// how many calls run at once, and how many of them one person's. Who comes first is let in first.
package queue

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"nudge/agent"
)

// Queues have room for so much at once under each name. Their methods may be called concurrently.
type Queues struct {
	room  int64
	mu    sync.Mutex
	named map[string]*queue // in which somebody is, or wants to be
}

type queue struct {
	room  *semaphore.Weighted
	users int
}

// New makes queues in which nobody is.
func New(room int64) *Queues { return &Queues{room: room, named: map[string]*queue{}} }

// Enter waits for as much room as is wanted under a name, which must be no more than there is. The caller calls leave
// when it is done. The error is that of ctx.
func (q *Queues) Enter(ctx context.Context, name string, want int64) (leave func(), err error) {
	q.mu.Lock()
	at := q.named[name]
	if at == nil {
		at = &queue{room: semaphore.NewWeighted(q.room)}
		q.named[name] = at
	}
	at.users++
	q.mu.Unlock()
	if err := at.room.Acquire(ctx, want); err != nil {
		q.done(name, at)
		return nil, err
	}
	return func() {
		at.room.Release(want)
		q.done(name, at)
	}, nil
}

// done forgets a queue that nobody uses any more.
func (q *Queues) done(name string, at *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(q.named, name)
	}
}

// Places bound how many calls run at once. Their method may be called concurrently.
type Places struct {
	all  *semaphore.Weighted
	each *Queues // by person
}

// NewPlaces are so many for all people, and so many for each.
func NewPlaces(all, each int64) *Places { return &Places{semaphore.NewWeighted(all), New(each)} }

// Enter waits for a place for a person's call. The caller calls leave when it is done. The error is that of ctx.
func (p *Places) Enter(ctx context.Context, person agent.PersonID) (leave func(), err error) {
	own, err := p.each.Enter(ctx, string(person), 1)
	if err != nil {
		return nil, err
	}
	if err := p.all.Acquire(ctx, 1); err != nil {
		own()
		return nil, err
	}
	return func() {
		p.all.Release(1)
		own()
	}, nil
}
