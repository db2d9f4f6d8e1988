package bolt

import (
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

// errEnded is the result of a function that ended its goroutine instead of returning.
var errEnded = errors.New("the function ended its goroutine instead of returning")

// call is one Update on its way through the writer.
type call struct {
	ctx    context.Context
	fn     func(memory.Tx) error
	taken  atomic.Bool // set by whoever comes first: the one that begins fn, or the caller that gives up
	begun  bool        // who has the turn: skip is decided
	skip   bool        // who has the turn: fn is never to be run
	err    error       // who has the turn: what fn came to
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

// writer runs updates, one commit at a time. Whoever has the turn writes: a caller that finds nobody else runs its own
// function where it stands, since waking another goroutine costs more than all but the syncs. Calls that come meanwhile
// are queued, and a goroutine that lives while there are any runs them in batches. Only who has the turn touches the
// fields below it, save where said.
type writer struct {
	store *Store
	queue chan *call
	turn  chan struct{} // holds one while somebody has the turn

	batch   []*call     // begun or about to be; in order
	failed  []*call     // taken out of the batch, answered with it
	crowd   int         // how many shared the last commit
	laid    int64       // up to where the file is known to have no holes that are soon to be written
	stuck   bool        // bbolt's write transaction can neither be ended nor begun again
	running atomic.Bool // a caller's function runs; read by all
}

// do runs fn or has it run, and returns what came of it. When ctx ends first and fn has not begun it never will.
func (w *writer) do(ctx context.Context, fn func(memory.Tx) error) error {
	c := &call{ctx: ctx, fn: fn, answer: make(chan error, 1)}
	if len(w.queue) == 0 && w.take() {
		return w.write(c)
	}
	select {
	case w.queue <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.serve()
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

// take takes the turn unless somebody has it.
func (w *writer) take() bool {
	select {
	case w.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

// give ends the turn. Calls queued during it found it taken, so it is for the one who gives it to look for them.
func (w *writer) give() {
	<-w.turn
	if len(w.queue) > 0 {
		w.serve()
	}
}

// serve has the queue written unless somebody has the turn, who will see to it.
func (w *writer) serve() {
	if w.take() {
		go w.run()
	}
}

// stop takes the turn for good. No call may be under way.
func (w *writer) stop() { w.turn <- struct{}{} }

// write runs one call on its caller's goroutine, and no other call: a function can end the goroutine it runs on.
func (w *writer) write(c *call) error {
	defer func() {
		w.batch, w.failed = w.batch[:0], nil // not empty when the goroutine ends
		w.give()
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	w.batch = append(w.batch, c)
	for len(w.batch)+len(w.failed) > 0 {
		w.work(false)
	}
	return <-c.answer
}

// isCaller reports whether it is called from inside a function that a writer runs. It looks only while this one runs one,
// since the language has no quick way to tell.
func (w *writer) isCaller() bool { return w.running.Load() && insideRunOne() }

// run writes what is queued, with the turn, which it gives when there is no more. A caller's function may end the
// goroutine it runs on; then another takes over with what is left.
func (w *writer) run() {
	over := false
	defer func() {
		if over {
			w.give()
		} else {
			go w.run()
		}
	}()
	debug.SetPanicOnFault(true)
	for len(w.batch)+len(w.failed) > 0 || w.gather() {
		w.work(true)
	}
	over = true
}

// gather takes what is queued and reports whether that is anything.
func (w *writer) gather() bool {
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
	return len(w.batch) > 0
}

// absorb takes what is queued, without waiting.
func (w *writer) absorb() {
	for len(w.batch) < maxBatch {
		select {
		case c := <-w.queue:
			w.batch = append(w.batch, c)
		default:
			return
		}
	}
}

// work makes one attempt at the batch and answers it unless a part of it is to be run again. With sharing, calls that
// come meanwhile join it.
func (w *writer) work(sharing bool) {
	if again, err := w.attempt(sharing); !again {
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
	if err := s.refused(); err != nil {
		return false, fmt.Errorf("write %s: %w", s.path, err)
	}
	b, err := s.beginTx(true)
	if err != nil {
		return false, fmt.Errorf("write %s: %w", s.path, err)
	}
	txid := b.ID()
	defer w.end(b)
	defer func() {
		if p := recover(); p != nil {
			again, err = false, damaged("commit to", s.path, p)
			s.harm(err)
		}
	}()
	again, wrote, err := w.fill(b, sharing)
	if err == nil && !again && wrote {
		err = b.Commit()
	}
	if err == nil {
		return again, nil
	}
	err = fmt.Errorf("commit to %s: %w", s.path, full(err))
	if s.committed(txid) {
		// The new state stands in the file but perhaps not on the disk, and no later sync would tell.
		err = fmt.Errorf("%w; whether it was kept is not known until the next start", err)
		s.fail(err)
	}
	return false, err
}

// fill has the batch write into a transaction. wrote is false when there is nothing to commit.
func (w *writer) fill(b *bbolt.Tx, sharing bool) (again, wrote bool, err error) {
	s := w.store
	if err := s.isWhole(b.Size()); err != nil {
		return false, false, err
	}
	s.grows(b)
	if again, wrote = w.runAll(b, sharing); again || !wrote {
		return again, false, nil
	}
	if err := s.refused(); err != nil { // damage was met, in one of these or by a reader
		return false, false, err
	}
	w.layAhead(b.Size())
	return false, true, nil
}

// end takes back what a transaction has not committed.
func (w *writer) end(b *bbolt.Tx) {
	defer func() {
		if p := recover(); p != nil {
			w.stuck = true
			w.store.harm(damaged("use", w.store.path, p))
		}
	}()
	if b.DB() != nil {
		_ = b.Rollback() // it is open, so it can be ended
	}
}

// zeros are never written to.
var zeros [ahead]byte

// layAhead writes zeros behind the last page in use, where that is not yet done. bbolt lengthens the file by a hole,
// and a page written into a hole has the sync wait for the file system's own journal, with all that others have in it.
// Nothing depends on the zeros, so nothing is said when they cannot be written.
func (w *writer) layAhead(used int64) {
	if used < w.laid {
		return
	}
	w.laid = used
	info, err := w.store.file.Stat()
	if err != nil {
		return
	}
	if n := min(info.Size()-used, ahead); n > 0 {
		if _, err := w.store.file.WriteAt(zeros[:n], used); err == nil {
			w.laid += n
		}
	}
}

// runAll runs the batch's functions, and with sharing those that come meanwhile. out says that one failed after it
// had written and was taken out; wrote that there is something to commit.
func (w *writer) runAll(b *bbolt.Tx, sharing bool) (out, wrote bool) {
	for i := 0; i < len(w.batch); i++ {
		t := &tx{store: w.store, bolt: b}
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
	b, err := s.beginTx(false)
	if err != nil {
		return false
	}
	defer func() { _ = s.endRead(b) }() // of a read, which has nothing to undo
	return b.ID() >= txid
}

// isWhole returns an error when the file no longer has so many bytes. What bbolt then wrote behind the gap would make
// zeros of it, which nobody could tell from data.
func (s *Store) isWhole(size int64) error {
	info, err := s.file.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	err = damaged("write", s.path, fmt.Sprintf("it has shrunk to %d bytes of %d", info.Size(), size))
	s.harm(err)
	return err
}

// fail makes every later call return err.
func (s *Store) fail(err error) {
	s.broken.CompareAndSwap(nil, &err)
}

// harm makes every later Update return err, and says so the first time.
func (s *Store) harm(err error) {
	if s.harmed.CompareAndSwap(nil, &err) {
		s.log.Error("the data file is damaged; nothing more is written to it, and what can be read is; restore a backup",
			"file", s.path, "error", err)
	}
}

// refused returns why nothing is written any more, nil when it is.
func (s *Store) refused() error {
	for _, why := range []*error{s.broken.Load(), s.harmed.Load()} {
		if why != nil {
			return fmt.Errorf("nothing more is written to it: %w", *why)
		}
	}
	return nil
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

// insideRunOne reports whether runOne is among the callers of this goroutine.
func insideRunOne() bool {
	var callers [64]uintptr
	for skip := 0; ; skip += len(callers) {
		n := runtime.Callers(skip, callers[:])
		frames := runtime.CallersFrames(callers[:n])
		for more := n > 0; more; {
			var frame runtime.Frame
			if frame, more = frames.Next(); strings.HasSuffix(frame.Function, "memory/bolt.(*writer).runOne") {
				return true
			}
		}
		if n < len(callers) {
			return false
		}
	}
}
