package slack

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/slack-go/slack"
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
	next map[string]time.Time // when a channel takes a message again
	held map[string]time.Time // until when Slack takes none
}

func newPace(gap time.Duration) *pace {
	return &pace{gap: gap, next: map[string]time.Time{}, held: map[string]time.Time{}}
}

// await waits for a channel's turn. It does not wait while Slack takes no messages there: then the error is a
// [*slack.RateLimitedError] that says for how long.
func (p *pace) await(ctx context.Context, channel string) error {
	at, err := p.turn(channel)
	if err != nil {
		return err
	}
	if err := sleep(ctx, time.Until(at)); err != nil {
		return &unsentError{err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusal(channel, time.Now())
}

// turn gives a channel's next turn away.
func (p *pace) turn(channel string) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if err := p.refusal(channel, now); err != nil {
		return time.Time{}, err
	}
	at := p.next[channel]
	if at.Before(now) {
		at = now
	}
	if len(p.next) > 1000 {
		maps.DeleteFunc(p.next, func(_ string, t time.Time) bool { return t.Before(now) })
	}
	p.next[channel] = at.Add(p.gap)
	return at, nil
}

// free takes a channel's turn if it is now, and otherwise says how long that will take. What can be left out does not
// stand in line.
func (p *pace) free(channel string) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if wait = p.next[channel].Sub(now); wait <= 0 {
		p.next[channel] = now.Add(p.gap)
	}
	return max(wait, 0)
}

// refusal is the error while Slack takes no messages in a channel. The caller holds mu.
func (p *pace) refusal(channel string, now time.Time) error {
	if wait := p.held[channel].Sub(now); wait > 0 {
		return &slack.RateLimitedError{RetryAfter: wait}
	}
	return nil
}

// hold lets a channel rest, and reports whether others rest already.
func (p *pace) hold(channel string, wait time.Duration) (others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.held, func(_ string, until time.Time) bool { return !until.After(now) })
	delete(p.held, channel)
	others = len(p.held) > 0
	until := now.Add(wait)
	p.held[channel] = until
	if p.next[channel].Before(until) {
		p.next[channel] = until
	}
	return others
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

// take reports whether a name is remembered, and forgets it.
func (r *recent) take(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.in[name]
	delete(r.in, name)
	return known
}
