// Package bolt is the store of one machine: one bbolt file that one process holds at a time.
//
// All writing takes turns. A lone [Store.Update] runs its function and commits where it stands and waits for nobody.
// Those that come meanwhile are run together by a goroutine of the store's, in one bbolt transaction with one commit,
// so that many callers share the price of one sync to disk. Reading goes on beside it, each [Store.View] over the
// state of the last commit.
//
// A file that cannot be trusted is refused before it is mapped, and damage met later comes back as an error that
// wraps [memory.ErrDamaged]: a page that is bad, or is no longer there, fails the reads that touch it and no others, and
// from then on every write, so that what can be saved is not written over. A damaged file is never written to at opening
// and never replaced. What cannot be caught is a page that was overwritten with a whole page of another place, so that
// bbolt walks in a circle; bbolt keeps no sums of its pages that would tell. [Store.Check] finds that, too. And should a
// file lose its first two pages in the very instant in which a reader begins, a commit under way waits for a lock of
// bbolt's for ever.
//
// A commit for which there is no room leaves the file as it was but for its length, and the next is as good as any. Its
// error wraps [memory.ErrFull].
//
// [Store.Backup] copies the file while it is used, [Restore] puts a copy in its place, and [Compact] gives back space
// that deleting has left free; each checks what it made before it counts, and leaves a whole file wherever it ends.
// [Store.Wipe] writes over that space instead, while the file is used, so that what was deleted cannot be read there.
//
// Inside the file each place of package memory and each table has a bucket. The entries of all sessions lie in one, by
// the number of the session and of the entry: appending touches the end of that session's entries only, however many
// there are. Names are kept as they are, any bytes; where a number or another key follows a name in one key, the name is
// escaped so that order is kept. A file of an earlier version is brought up to date when it is opened, in transactions
// that are bounded: what ends it has it gone on with at the next opening.
//
// What a commit costs is two syncs and, well behind, the pages it writes. So small tables lie in the page that every
// commit writes, the pages of a commit lie together, and the file grows by blocks rather than by holes.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

var (
	// ErrNewer is wrapped by the error for a data file that a newer version of the program wrote.
	ErrNewer = errors.New("the data file was written by a newer version of this program")
	// ErrOlder is wrapped by the error for a data file of an earlier version that is to be read only.
	ErrOlder = errors.New("the data file was written by an earlier version of this program")
	// ErrNested is wrapped by the error for a transaction opened inside the function of an Update, which would
	// wait for itself.
	ErrNested = errors.New("a transaction was opened inside another")
)

// Options say how a data file is opened. The zero value works.
type Options struct {
	// LockWait bounds the wait for another process to let go of the file; 0 means one second.
	LockWait time.Duration
	// Log gets a warning for what was put right or borne at opening; nil is silent.
	Log *slog.Logger

	// For tests:
	maxBytes int                                                    // above which the file does not grow; 0 means no bound
	disk     func(path string) (kind uint32, room int64, err error) // nil means the system's
	compact  int64                                                  // from which size on a file is compacted at opening; 0 means the usual, below it never
	step     func(name string) error                                // called before each step of what replaces a file; nil does nothing
}

// Store is a [memory.Store] in one file. All methods may be called concurrently.
type Store struct {
	path     string
	file     *os.File // bbolt's own handle, which holds the lock
	db       *bbolt.DB
	log      *slog.Logger
	readOnly bool
	opts     Options
	pageSize int64
	atOpen   Space

	mu     sync.Mutex // guards closed, and the order of begun.Add and begun.Wait
	closed bool
	begun  sync.WaitGroup // calls of View and Update under way
	close  func() error

	headPages []byte // mapped once more
	unmap     func() error

	heads   sync.Mutex         // held where bbolt takes its lock of the heads; guards lost and reading
	lost    bool               // bbolt will never let go of that lock
	reading map[*bbolt.Tx]bool // the reading transactions under way

	writer writer
	broken atomic.Pointer[error] // set once when the state of the file in memory is no longer known
	harmed atomic.Pointer[error] // set once when the file was found damaged
}

var _ memory.Store = (*Store)(nil)

// View runs fn over the state of the last commit, on the caller's goroutine. A panic in fn goes on to the caller.
// A View inside a View's function is a mistake, though a harmless one until the file has outgrown its mapping.
func (s *Store) View(ctx context.Context, fn func(memory.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	defer s.begun.Done()
	// A bad page can point outside the file; reading there shall be a panic, which is caught, not the process's end.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	b, err := s.beginTx(false)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	t := &tx{store: s, bolt: b}
	defer func() {
		t.ended = true
		if e := s.endRead(b); err == nil && e != nil {
			err = fmt.Errorf("end the reading of %s: %w", s.path, e)
		}
	}()
	return fn(t)
}

// beginTx begins a transaction of bbolt's. It returns an error where bbolt would panic with one of its locks in hand,
// for which all others would then wait for ever: it looks at the heads first, and when they go at that very moment, bbolt
// is never asked again. The caller has set debug.SetPanicOnFault.
func (s *Store) beginTx(writable bool) (b *bbolt.Tx, err error) {
	s.heads.Lock()
	defer s.heads.Unlock()
	if s.lost {
		return nil, s.Damage()
	}
	if err := s.touchHeads(); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = damaged("use", s.path, p)
			s.harm(err)
		}
	}()
	s.lost = true // unless it returns
	b, err = s.db.Begin(writable)
	s.lost = false
	if err == nil && !writable {
		if s.reading == nil {
			s.reading = map[*bbolt.Tx]bool{}
		}
		s.reading[b] = true
	}
	return b, err
}

// touchHeads returns an error when the heads of the file are no longer there.
func (s *Store) touchHeads() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged("use", s.path, p)
			s.harm(err)
		}
	}()
	if len(s.headPages) > 0 {
		touch(s.headPages[:s.pageSize], s.headPages)
	}
	return nil
}

// endRead ends a reading transaction.
func (s *Store) endRead(b *bbolt.Tx) error {
	s.heads.Lock()
	defer s.heads.Unlock()
	delete(s.reading, b)
	if s.lost {
		return nil
	}
	return b.Rollback()
}

// Update runs fn on the caller's goroutine or, when others write, on one of the store's; so fn must not wait for
// anything that itself needs the store. When fn ends its goroutine, as a failing test does, nothing of it is kept: the
// caller ends too, or gets an error. The error of a commit goes to every call that shared it, and the store stays
// usable unless it cannot tell whether the commit took place.
func (s *Store) Update(ctx context.Context, fn func(memory.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.readOnly {
		return fmt.Errorf("write %s: %w", s.path, errReadOnly)
	}
	if err := s.begin(); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	defer s.begun.Done()
	return s.writer.do(ctx, fn)
}

// Damage is what was found damaged in the data file since it was opened, nil when nothing was. While it is not nil, every
// Update fails.
func (s *Store) Damage() error {
	if why := s.harmed.Load(); why != nil {
		return *why
	}
	return nil
}

// Close waits for the calls that have begun, then ends the writer and lets go of the file. It must not be called
// inside a transaction's function.
func (s *Store) Close() error {
	if s.writer.isCaller() {
		return fmt.Errorf("close %s: %w", s.path, ErrNested)
	}
	return s.close()
}

// begin admits one call, which must end with s.begun.Done.
func (s *Store) begin() error {
	if s.writer.isCaller() {
		return ErrNested
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return memory.ErrClosed
	}
	if err := s.broken.Load(); err != nil {
		return *err
	}
	s.begun.Add(1)
	return nil
}

// shut is Close's work, done once.
func (s *Store) shut() (err error) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.begun.Wait()
	s.writer.stop()
	// While the lock is still held, or the note of the next holder would go instead.
	if !s.readOnly {
		if e := removeHolder(s.path); e != nil {
			s.log.Warn("the note of who holds the data file stays behind", "error", e)
		}
	}
	if s.lost || s.writer.stuck {
		// bbolt would wait for a lock of its own that can never be had; the file's goes with the file's handle.
		return s.file.Close()
	}
	if e := s.unmap(); e != nil {
		s.log.Warn("the heads of the data file stay mapped", "error", e)
	}
	defer func() {
		if p := recover(); p != nil {
			err = damaged("close", s.path, p)
		}
	}()
	if e := s.db.Close(); e != nil {
		return fmt.Errorf("close %s: %w", s.path, e)
	}
	return nil
}
