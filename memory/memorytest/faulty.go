package memorytest

import (
	"context"
	"errors"
	"sync"

	"nudge/memory"
)

// ErrCrash is returned by every call on a [Faulty] store from its crash until it is revived.
var ErrCrash = errors.New("the store crashed on demand")

// Faulty is a store that crashes on demand, as if the process had been killed: from then on nothing gets through,
// and what was under way is not answered. A test that restarts its program after a crash revives the store and goes
// on with the same one. All methods may be called concurrently.
type Faulty struct {
	store memory.Store

	mu      sync.Mutex
	begun   int // updates
	failAt  int
	after   bool
	dead    bool
	crashed chan struct{}
}

var _ memory.Store = (*Faulty)(nil)

// NewFaulty wraps a store. Until [Faulty.FailAt] is called it does nothing but count.
func NewFaulty(store memory.Store) *Faulty {
	return &Faulty{store: store, crashed: make(chan struct{})}
}

// FailAt makes the nth Update crash, counted from 1 over the life of f as [Faulty.Count] does: with after it is
// committed first, otherwise it is not run. Either way it returns [ErrCrash]. 0 means never.
func (f *Faulty) FailAt(n int, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt, f.after = n, after
}

// Crash makes f crash at once, as if what it is called from were the program's last deed. Twice does no harm.
func (f *Faulty) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dead {
		f.dead = true
		close(f.crashed)
	}
}

// Count returns how many updates were begun so far. Those refused after a crash do not count.
func (f *Faulty) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

// Crashed returns a channel that is closed at the next crash, or is closed already when f has crashed.
func (f *Faulty) Crashed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashed
}

// Revive ends the crash and forgets what FailAt asked for.
func (f *Faulty) Revive() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt = 0
	if f.dead {
		f.dead = false
		f.crashed = make(chan struct{})
	}
}

// View is the wrapped store's View. One under way at a crash returns [ErrCrash].
func (f *Faulty) View(ctx context.Context, fn func(memory.Tx) error) error {
	crashed := f.Crashed()
	if over(crashed) {
		return ErrCrash
	}
	err := f.store.View(ctx, fn)
	if over(crashed) {
		return ErrCrash
	}
	return err
}

// Update is the wrapped store's Update. One under way at a crash returns [ErrCrash], kept or not.
func (f *Faulty) Update(ctx context.Context, fn func(memory.Tx) error) error {
	crashed, fail, after := f.begin()
	switch {
	case over(crashed):
		return ErrCrash
	case fail && !after:
		f.Crash()
		return ErrCrash
	}
	err := f.store.Update(ctx, func(tx memory.Tx) error {
		if over(crashed) {
			return ErrCrash
		}
		return fn(tx)
	})
	if fail {
		f.Crash()
	}
	if over(crashed) {
		return ErrCrash
	}
	return err
}

// Close closes the wrapped store, also after a crash, so that a test can open its files again.
func (f *Faulty) Close() error {
	return f.store.Close()
}

// begin counts an update and says whether it is the one to fail. crashed is closed when f is or will be dead.
func (f *Faulty) begin() (crashed <-chan struct{}, fail, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return f.crashed, false, false
	}
	f.begun++
	return f.crashed, f.begun == f.failAt, f.after
}

func over(crashed <-chan struct{}) bool {
	select {
	case <-crashed:
		return true
	default:
		return false
	}
}
