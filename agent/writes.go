package agent

import (
	"context"
	"fmt"
	"time"

	"nudge/memory"
)

// writes is what one transaction puts on disk for a session, all or nothing.
type writes struct {
	entries   []memory.Entry          // applied to the state already
	alongside []func(memory.Tx) error // what is written with them
	after     []func()                // run once that is on disk
	taken     map[uint64]bool         // the mail that leaves the inbox with them
}

func (w *writes) empty() bool { return len(w.entries)+len(w.alongside) == 0 }

// save makes the transaction and returns the number of the session's newest entry.
func (w *writes) save(store memory.Store, session string, last uint64) (uint64, error) {
	// Nothing may cut a commit short: a Stop would leave the state ahead of the disk.
	err := store.Update(context.Background(), func(tx memory.Tx) (err error) {
		if len(w.entries) > 0 {
			if last, err = tx.Journal().Append(session, w.entries...); err != nil {
				return err
			}
		}
		for _, fn := range w.alongside {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return last, fmt.Errorf("write to session %s: %w", session, err)
	}
	for _, fn := range w.after {
		fn()
	}
	return last, nil
}

// lag is how long writes wait on which nothing outside depends. A model that answers sooner has them written together
// with what it leads to.
const lag = 3 * time.Millisecond

// late is writes that are made a moment later, beside what the actor does meanwhile.
type late struct {
	writes
	due   time.Time // when they are made at the latest
	timer *time.Timer
	done  chan struct{} // closed when they were made
	last  uint64
	err   error
}

// commitSoon puts on disk what is pending, within a few milliseconds, while the actor goes on. The next commit comes
// after it and tells if it failed: then the state is ahead of the disk, as after a crash in between.
func (a *actor) commitSoon() error {
	if a.out.empty() {
		return nil
	}
	due := time.Now().Add(lag)
	if a.late != nil && a.late.due.Before(due) {
		due = a.late.due // what waits already does not wait longer
	}
	if err := a.recall(); err != nil {
		return err
	}
	l := &late{writes: a.out, due: due, done: make(chan struct{}), last: a.state.last}
	a.out, a.late = writes{}, l
	l.timer = time.AfterFunc(time.Until(due), func() {
		defer close(l.done)
		l.last, l.err = l.save(a.Store, a.session, l.last)
	})
	return nil
}

// recall takes late writes back into those that are pending, or waits for them if they have begun.
func (a *actor) recall() error {
	l := a.late
	if l == nil {
		return nil
	}
	a.late = nil
	if !l.timer.Stop() {
		<-l.done
		a.state.last = l.last
		return l.err
	}
	w := l.writes
	w.entries, w.alongside, w.after = append(w.entries, a.out.entries...), append(w.alongside, a.out.alongside...), append(w.after, a.out.after...)
	for id := range a.out.taken {
		w.take(id)
	}
	a.out = w
	return nil
}

func (w *writes) take(id uint64) {
	if w.taken == nil {
		w.taken = map[uint64]bool{}
	}
	w.taken[id] = true
}

// commit puts everything that is pending on disk, all or nothing. After an error the state is ahead of the disk, so
// the actor must end.
func (a *actor) commit() error {
	if err := a.recall(); err != nil || a.out.empty() {
		return err
	}
	last, err := a.out.save(a.Store, a.session, a.state.last)
	if err != nil {
		return err
	}
	a.state.last, a.out = last, writes{}
	return nil
}

// abandon gives up what is pending: what is on disk is the truth.
func (a *actor) abandon() {
	if a.late != nil && !a.late.timer.Stop() {
		<-a.late.done
	}
	a.late, a.out = nil, writes{}
	a.mu.Lock()
	a.looked = false // mail that was to be taken is there again
	a.mu.Unlock()
}
