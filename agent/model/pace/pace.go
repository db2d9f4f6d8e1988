// Package pace keeps the sessions that share a provider from asking it more than it bears.
//
// A [Model] stands before a provider's [model.Model] and is shared by all who ask it. While the provider is well, calls
// pass through and nothing is held back. Refusals change that, each kind in its own way:
//
//   - One that says how long to wait shuts the gate: no call goes out before that instant. Those that waited, and those
//     that come in the second after, go out with small random gaps. A rest of more than a minute is not waited for.
//   - One that says only that there was too much halves how many calls may be out at once. Each answer adds one; once
//     there were enough and nobody waits, there is no bound again.
//
// Calls that are held back go out in the order in which they came. A call that is already out is never touched, and the
// time that it waited before is no part of the provider's timeouts. Retrying stays with the caller.
//
// To follow a call: pace.go lets it through while all is well, queue.go makes it wait, refusal.go reads how it ended.
package pace

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"nudge/agent/model"
)

// Config says how a provider is asked. The zero value sets no bound until the provider refuses.
type Config struct {
	// MaxParallel is how many calls may be out at once, however well the provider is; 0 or less is no bound.
	MaxParallel int
	// Held, unless nil, is told that calls are held back, at most once for each refusal and not for one that changes
	// nothing. It runs in the refused call's goroutine after that call has made room, so it may be called concurrently
	// and delays no other call; it must return at once, as that call's answer waits for it.
	Held func(Hold)
}

// Hold is how calls are held back after a refusal.
type Hold struct {
	Refusal *model.Error  // what the provider said
	Pause   time.Duration // how long from now nothing goes out; 0 when there is no pause
	AtOnce  int           // how many calls may be out at once after that; 0 is no bound
}

// noBound is a bound that no number of calls reaches.
const noBound = math.MaxInt64

// Model is a [model.Model] that holds calls back while its provider is refusing them. It may be used concurrently; all
// who ask one provider should share one. It starts no goroutine that outlives a call.
type Model struct {
	provider model.Model
	held     func(Hold) // may be nil
	most     int64      // the bound when the provider is well

	// A call that finds open adds itself to flying and goes, without the lock. Whoever sets open to false does so
	// before reading flying, and a call adds itself before reading open, so that none goes out uncounted.
	open   atomic.Bool
	flying atomic.Int64 // calls that are out
	shrunk atomic.Int64 // how often the bound was shrunk; written under mu

	mu    sync.Mutex // guards all below
	bound int64      // how many may be out at once: 1 to most
	calm  int        // answers since the bound was last shrunk
	gate  time.Time  // the provider wants no call before this
	next  time.Time  // no call goes out before this; never before gate
	queue list.List  // of *waiter, in the order in which they came
	timer *time.Timer
}

var _ model.Model = (*Model)(nil)

// New returns a model that asks m at the pace that it bears.
func New(m model.Model, c Config) *Model {
	p := &Model{provider: m, held: c.Held, most: noBound}
	if c.MaxParallel > 0 {
		p.most = int64(c.MaxParallel)
	}
	p.bound = p.most
	p.open.Store(p.bound == noBound)
	return p
}

// errLost stands for the end of a call that panicked, which is neither an answer nor a refusal.
var errLost = errors.New("ask the model: the call never returned")

// Answer asks once, when the provider is ready for it; see [model.Model]. While the call waits, the end of ctx ends it
// with ctx's cause. When the provider wants more than a minute's pause, the error is a passing [*model.Error] whose
// RetryAfter is the rest of that time, and nothing was asked. Everything else is passed through untouched.
func (m *Model) Answer(ctx context.Context, req model.Request, said func(piece string)) (answer model.Answer, err error) {
	epoch, err := m.enter(ctx)
	if err != nil {
		return model.Answer{}, err
	}
	err = errLost
	defer func() { m.leave(epoch, err) }()
	return m.provider.Answer(ctx, req, said)
}

// enter returns when the call may go out. Epoch is how often the bound had been shrunk by then.
func (m *Model) enter(ctx context.Context) (epoch int64, err error) {
	epoch = m.shrunk.Load()
	m.flying.Add(1)
	if m.open.Load() {
		return epoch, nil
	}
	m.flying.Add(-1)
	return m.wait(ctx)
}

// leave gives a call's place back and draws the lesson from how it ended.
func (m *Model) leave(epoch int64, err error) {
	if refusal := refusalIn(err); refusal != nil {
		m.refused(refusal, epoch)
		return
	}
	m.flying.Add(-1)
	if m.open.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.grow(epoch)
	}
	m.letOut()
}
