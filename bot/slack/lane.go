package slack

import (
	"context"
	"sync"
	"time"
)

// lanes does things side by side, but those of one lane in the order in which they came. The zero value works.
type lanes struct {
	mu      sync.Mutex
	waiting map[string][]func() // by lane; a lane that is there has a goroutine
	running sync.WaitGroup
}

// do does something after all that came before it in its lane. It does not block.
func (l *lanes) do(lane string, fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[string][]func(){}
	}
	queue, runs := l.waiting[lane]
	l.waiting[lane] = append(queue, fn)
	if !runs {
		l.running.Go(func() { l.work(lane) })
	}
}

func (l *lanes) work(lane string) {
	for {
		l.mu.Lock()
		queue := l.waiting[lane]
		if len(queue) == 0 {
			delete(l.waiting, lane)
			l.mu.Unlock()
			return
		}
		l.waiting[lane] = queue[1:]
		l.mu.Unlock()
		queue[0]()
	}
}

// wait returns when everything was done. Nothing may be added meanwhile.
func (l *lanes) wait() { l.running.Wait() }

// pace keeps a time between the messages of one channel.
type pace struct {
	gap time.Duration

	mu   sync.Mutex
	next map[string]time.Time // by channel
}

func newPace(gap time.Duration) *pace { return &pace{gap: gap, next: map[string]time.Time{}} }

// await waits for a channel's turn.
func (p *pace) await(ctx context.Context, channel string) error {
	now := time.Now()
	p.mu.Lock()
	at := p.next[channel]
	if at.Before(now) {
		at = now
	}
	if len(p.next) > 1000 {
		for c, t := range p.next {
			if t.Before(now) {
				delete(p.next, c)
			}
		}
	}
	p.next[channel] = at.Add(p.gap)
	p.mu.Unlock()
	return sleep(ctx, time.Until(at))
}

// recent remembers the last names that it was told.
type recent struct {
	mu   sync.Mutex
	ring []string
	at   int
	in   map[string]bool
}

func newRecent(size int) *recent { return &recent{ring: make([]string, size), in: map[string]bool{}} }

// has reports whether a name is among them.
func (r *recent) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in[name]
}

// add reports whether a name is new, and remembers it.
func (r *recent) add(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in[name] {
		return false
	}
	delete(r.in, r.ring[r.at])
	r.ring[r.at], r.in[name] = name, true
	r.at = (r.at + 1) % len(r.ring)
	return true
}
