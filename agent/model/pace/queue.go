package pace

import (
	"container/list"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"nudge/agent/model"
)

const (
	longest = 60 * time.Second      // a pause with more than this to go is not waited for
	spread  = time.Second           // how long after a pause calls go out with gaps
	maxGap  = 50 * time.Millisecond // the longest of these gaps
)

// waiter is a call that is held back. Epoch and err are written before out is closed, and not after.
type waiter struct {
	out   chan struct{} // closed when the call may go out, or is turned away with err
	epoch int64
	err   error
}

// wait stands in the queue until the call may go out.
func (m *Model) wait(ctx context.Context) (epoch int64, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	w := &waiter{out: make(chan struct{})}
	m.mu.Lock()
	if rest := time.Until(m.gate); rest > longest {
		m.mu.Unlock()
		return 0, pause(rest)
	}
	place := m.queue.PushBack(w)
	m.letOut()
	m.mu.Unlock()

	select {
	case <-w.out:
		return w.epoch, w.err
	case <-ctx.Done():
		m.giveUp(place, w)
		return 0, context.Cause(ctx)
	}
}

// giveUp takes a call out of the queue that does not want to go any more. The place of one that was let out in the
// same moment goes to the next.
func (m *Model) giveUp(place *list.Element, w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-w.out:
		if w.err == nil {
			m.flying.Add(-1)
		}
	default:
		m.queue.Remove(place)
	}
	m.letOut()
}

// letOut lets out whoever may go now, and sees to it that the next one's time is not missed: when the bound is in the
// way, the next call that leaves lets out again. It is called, with mu held, after everything that could make room.
func (m *Model) letOut() {
	now := time.Now()
	for m.queue.Len() > 0 {
		if m.flying.Load() >= m.bound {
			return
		}
		if wait := m.next.Sub(now); wait > 0 {
			m.wakeIn(wait)
			return
		}
		w := m.queue.Remove(m.queue.Front()).(*waiter)
		m.flying.Add(1)
		w.epoch = m.shrunk.Load()
		close(w.out)
		m.leaveGap(now)
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	m.open.Store(m.bound == noBound && now.Sub(m.gate) >= spread)
}

// leaveGap sets when the next call may go out. The gaps are such that all who wait are out when the spread is over.
func (m *Model) leaveGap(now time.Time) {
	rest := spread - now.Sub(m.gate)
	if rest <= 0 {
		return
	}
	mean := rest / time.Duration(m.queue.Len()+1)
	m.next = now.Add(rand.N(min(2*mean, maxGap) + 1))
}

// wakeIn lets out again after a while.
func (m *Model) wakeIn(wait time.Duration) {
	if m.timer != nil {
		m.timer.Reset(wait)
		return
	}
	m.timer = time.AfterFunc(wait, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.letOut()
	})
}

// turnAway ends the wait of all, because the pause has too long to go.
func (m *Model) turnAway(rest time.Duration) {
	for m.queue.Len() > 0 {
		w := m.queue.Remove(m.queue.Front()).(*waiter)
		w.err = pause(rest)
		close(w.out)
	}
}

// pause is the error of a call that was not made.
func pause(rest time.Duration) *model.Error {
	return &model.Error{
		Fault: model.FaultPassing, RetryAfter: rest,
		Say: "the model's provider wants a pause; try again in " + inWords(rest),
		Err: fmt.Errorf("ask the model: held back, as the provider wants no call for another %v", rest.Round(time.Second)),
	}
}

// inWords writes a time of more than a minute for people, rounded up.
func inWords(d time.Duration) string {
	unit, name := time.Minute, "minutes"
	switch {
	case d > 48*time.Hour:
		unit, name = 24*time.Hour, "days"
	case d > 2*time.Hour:
		unit, name = time.Hour, "hours"
	}
	return fmt.Sprintf("%d %s", (d-1)/unit+1, name)
}
