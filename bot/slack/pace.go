package slack

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"nudge/bot/wire"
)

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
	if err := wire.Sleep(ctx, time.Until(at)); err != nil {
		return &wire.UnsentError{Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rests(channel, time.Now())
}

// turn gives a channel's next turn away.
func (p *pace) turn(channel string) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if err := p.rests(channel, now); err != nil {
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

// rests is the error while Slack takes no messages in a channel. The caller holds mu.
func (p *pace) rests(channel string, now time.Time) error {
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
