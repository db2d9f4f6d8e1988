package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

// maxBatch bounds how many updates share a commit, and so how long the first of them waits for the rest.
const maxBatch = 512

// errUnchanged ends a bbolt transaction in which nothing was written: there is nothing to sync.
var errUnchanged = errors.New("nothing was written")

// errEnded is the result of a function that ended its goroutine instead of returning.
var errEnded = errors.New("the function ended its goroutine instead of returning")

// call is one Update on its way through the writer.
type call struct {
	ctx    context.Context
	fn     func(memory.Tx) error
	taken  atomic.Bool // set by whoever comes first: the writer that begins fn, or the caller that gives up
	begun  bool        // the writer's: skip is decided
	skip   bool        // the writer's: fn is never to be run
	err    error       // the writer's: what fn came to
	answer chan error  // holds one
}

// begin decides, once, whether fn is to be run, and says so.
func (c *call) begin() bool {
	if !c.begun {
		c.begun = true
		c.skip = !c.taken.CompareAndSwap(false, true)
		if !c.skip {
			c.err = c.ctx.Err() // it can have ended without the caller having noticed yet
			c.skip = c.err != nil
		}
	}
	return !c.skip
}

// writer runs updates in batches. Only its own goroutine touches the fields below queue, save where said.
type writer struct {
	store *Store
	queue chan *call
	done  chan struct{} // closed when the goroutine has ended for good

	batch   []*call // begun or about to be; in order
	failed  []*call // taken out of the batch, answered with it
	alone   []*call // to be run one by one, since their shared commit met damage
	crowd   int     // how many shared the last commit
	stuck   bool    // bbolt's write transaction can neither be ended nor begun again
	id      atomic.Uint64
	running atomic.Bool // a caller's function runs; read by all
}

// do hands fn to the writer and waits for its answer. When ctx ends first and fn has not begun it never will.
func (w *writer) do(ctx context.Context, fn func(memory.Tx) error) error {
	c := &call{ctx: ctx, fn: fn, answer: make(chan error, 1)}
	select {
	case w.queue <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
		if c.taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return <-c.answer
	}
}

// stop ends the writer. No call may be under way.
func (w *writer) stop() {
	close(w.queue)
	<-w.done
}

// isCaller reports whether it is called from inside a function that the writer runs.
func (w *writer) isCaller() bool {
	return w.running.Load() && goroutineID() == w.id.Load()
}

// run is the writer's goroutine. A caller's function may end the goroutine it runs on; then another takes over
// with what is left.
func (w *writer) run() {
	over := false
	defer func() {
		if over {
			close(w.done)
		} else {
			go w.run()
		}
	}()
	debug.SetPanicOnFault(true)
	w.id.Store(goroutineID())
	for len(w.batch)+len(w.failed)+len(w.alone) > 0 || w.gather() {
		w.work()
	}
	over = true
}

// gather waits for the next call and takes what else is there; false means that no more will come.
func (w *writer) gather() bool {
	c, ok := <-w.queue
	if !ok {
		return false
	}
	w.batch = append(w.batch, c)
	w.absorb()
	// Those who shared the last commit have just been answered and, when busy, come again at once. Letting them
	// run first is cheaper than a commit for the quickest alone.
	for len(w.batch) < w.crowd {
		n := len(w.batch)
		runtime.Gosched()
		w.absorb()
		if len(w.batch) == n {
			break
		}
	}
	return true
}

// absorb takes what is queued, without waiting.
func (w *writer) absorb() {
	for len(w.batch) < maxBatch {
		select {
		case c, ok := <-w.queue:
			if !ok {
				return
			}
			w.batch = append(w.batch, c)
		default:
			return
		}
	}
}

// work makes one attempt at the batch and answers it unless a part of it is to be run again.
func (w *writer) work() {
	if len(w.batch)+len(w.failed) == 0 {
		w.batch, w.alone = append(w.batch, w.alone[0]), w.alone[1:]
	}
	sharing := len(w.alone) == 0
	again, err := w.attempt(sharing)
	switch {
	case again:
	case errors.Is(err, memory.ErrDamaged) && len(w.batch) > 1:
		// Which of them touched the bad page is not known; on its own each fails or succeeds for itself.
		w.alone, w.batch = append(w.alone, w.batch...), nil
	default:
		w.finish(err)
	}
}

// finish answers everyone in the batch.
func (w *writer) finish(commit error) {
	w.crowd = len(w.batch)
	for _, c := range slices.Concat(w.batch, w.failed) {
		// What failed saw what the others wrote, so when that is not kept its own result means nothing.
		if commit != nil {
			c.err = commit
		}
		c.answer <- c.err
	}
	clear(w.batch)
	w.batch, w.failed = w.batch[:0], nil
}

// attempt runs the batch in one transaction. It returns again when a call was taken out of the batch and the rest
// must be run anew, and else the result of the commit.
func (w *writer) attempt(sharing bool) (again bool, err error) {
	s := w.store
	if broken := s.broken.Load(); broken != nil {
		return false, fmt.Errorf("write %s: %w", s.path, *broken)
	}
	var b *bbolt.Tx
	var txid int
	defer func() {
		if p := recover(); p != nil {
			again, err = false, damaged("commit to", s.path, p)
			if b != nil && b.DB() != nil {
				w.stuck = true
				s.fail(err)
			}
		}
	}()
	err = s.db.Update(func(tx *bbolt.Tx) error {
		b, txid = tx, tx.ID()
		s.db.AllocSize = int(min(max(tx.Size()/growShare, minGrow), maxGrow)) // read by this commit only
		out, wrote := w.runAll(tx, sharing)
		again = out
		if out || !wrote {
			return errUnchanged
		}
		return nil
	})
	if err == nil || errors.Is(err, errUnchanged) {
		return again, nil
	}
	err = fmt.Errorf("commit to %s: %w", s.path, err)
	if b != nil && s.committed(txid) {
		// The new state stands in the file but perhaps not on the disk, and no later sync would tell.
		err = fmt.Errorf("%w; whether it was kept is not known until the next start", err)
		s.fail(err)
	}
	return false, err
}

// runAll runs the batch's functions, and with sharing those that come meanwhile. out says that one failed after it
// had written and was taken out; wrote that there is something to commit.
func (w *writer) runAll(b *bbolt.Tx, sharing bool) (out, wrote bool) {
	for i := 0; i < len(w.batch); i++ {
		t := &tx{path: w.store.path, bolt: b}
		if w.runOne(w.batch[i], t); t.spoilt(w.batch[i].err) {
			w.failed = append(w.failed, w.batch[i])
			w.batch = slices.Delete(w.batch, i, i+1)
			return true, false
		}
		wrote = wrote || t.writes > 0
		if sharing && i == len(w.batch)-1 {
			w.absorb()
		}
	}
	return false, wrote
}

// runOne runs one call's function and sets the call's error.
func (w *writer) runOne(c *call, t *tx) {
	if !c.begin() {
		return
	}
	returned := false
	defer func() {
		t.ended = true
		w.running.Store(false)
		if p := recover(); p != nil {
			c.err = fmt.Errorf("write %s: %w", w.store.path, panicError(p))
		} else if !returned {
			c.err = errEnded
			w.failed = append(w.failed, c)
			w.batch = slices.DeleteFunc(w.batch, func(b *call) bool { return b == c })
		}
	}()
	w.running.Store(true)
	c.err = c.fn(t)
	if c.err == nil {
		c.err = t.damage
	}
	returned = true
}

// committed reports whether the transaction with the number is what readers see.
func (s *Store) committed(txid int) bool {
	b, err := s.db.Begin(false)
	if err != nil {
		return false
	}
	defer func() { _ = b.Rollback() }() // of a read, which has nothing to undo
	return b.ID() >= txid
}

// fail makes every later call return err.
func (s *Store) fail(err error) {
	s.broken.CompareAndSwap(nil, &err)
}

// panicError makes an error of one line from a recovered panic.
func panicError(p any) error {
	if err, ok := p.(error); ok {
		return fmt.Errorf("the function panicked: %w", err)
	}
	return fmt.Errorf("the function panicked: %s", oneLine(p))
}

// damaged is the error for a panic inside bbolt, which panics where the file contradicts itself.
func damaged(what, path string, p any) error {
	return fmt.Errorf("%s %s: %w: %s; restore a backup", what, path, memory.ErrDamaged, oneLine(p))
}

func oneLine(v any) string {
	return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
}

// goroutineID returns the number by which the runtime calls the current goroutine in its traces. The language has
// no other way to tell that a call comes from inside a function that one is running.
func goroutineID() (id uint64) {
	var buf [64]byte
	trace := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	for _, digit := range trace {
		if digit < '0' || digit > '9' {
			break
		}
		id = id*10 + uint64(digit-'0')
	}
	return id
}
