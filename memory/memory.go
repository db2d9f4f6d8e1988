// Package memory keeps everything that Nudge must not forget.
//
// It knows bytes and kinds, never what they mean: what a journal entry says is the agent's affair, when a
// heartbeat is due the schedule's. Five places and a set of tables stand behind one transaction:
//
//   - the inbox holds mail that a session has not yet taken into its journal;
//   - the journal is a session's record, append-only, numbered from 1;
//   - the outbox holds what was said and not yet delivered;
//   - seen remembers the keys of what was received, so that a repeat is known;
//   - due is the one index of all that shall happen later, ordered by instant;
//   - tables hold small rows that index or sum up the rest; [Rows] is one whose rows are values of one type.
//
// Start with [Store] and [Tx]. Package bolt is the store of one machine; package memorytest has the suite that
// every store passes and a store that fails on demand.
package memory

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxID is the longest session, conversation, key or table row name in bytes that a store accepts.
const MaxID = 1024

var (
	// ErrBadID is wrapped by the error for an empty name or one longer than [MaxID].
	ErrBadID = errors.New("name is empty or too long")
	// ErrClosed is wrapped by the error of every call on a store that was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrDamaged is wrapped by the error for a data file that cannot be read as one. Met while the store is open, it
	// is from then on also that of every Update, so that nothing is written over what may still be saved; what is not
	// damaged can be read.
	ErrDamaged = errors.New("the data file is damaged")
	// ErrFull is wrapped by the error of an Update for which there was no room on the disk. Nothing of it was kept, and
	// the store goes on working: the same Update succeeds when there is room again.
	ErrFull = errors.New("there is no room on the disk")
	// ErrStop, returned by the function given to a scan, ends the scan without an error.
	ErrStop = errors.New("stop the scan")
)

// LockedError says that another process holds the data file.
type LockedError struct {
	Path  string    // the data file
	PID   int       // of the holder; 0 when unknown
	Since time.Time // when the holder opened it; zero when unknown
}

// Error names the file and its holder in one line.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process; stop it first", e.Path)
	}
	return fmt.Sprintf("%s is in use by another process: pid %d, since %s; stop it first", e.Path, e.PID, e.Since.Format(time.DateTime))
}

// Store is the one place where anything is kept. All methods may be called concurrently.
type Store interface {
	// View runs fn in a read-only transaction over one consistent state.
	View(ctx context.Context, fn func(Tx) error) error
	// Update runs fn in a read-write transaction. It returns nil only after everything fn wrote is on disk, and
	// fn's error with nothing of it kept. Updates of many callers may share one commit, so fn may be run more
	// than once: it must change nothing but the transaction, or set what it sets outside anew each time. A panic
	// in fn comes back as an error. When ctx ends before fn has begun, nothing is written and ctx's error returned.
	Update(ctx context.Context, fn func(Tx) error) error
	// Close waits for the transactions that have begun and gives the data file free. Calling it twice does no harm.
	Close() error
}

// Tx is one transaction. It and everything got from it must not be used after the function it was given to has
// returned, nor by another goroutine, and no transaction may be opened while it is held. Bytes returned are copies.
type Tx interface {
	Inbox() Inbox
	Journal() Journal
	Outbox() Outbox
	Seen() Seen
	Due() Due
	// Table gives the named table, which need not exist yet.
	Table(name string) Table
}

// Mail is one message that a session has not yet taken up.
type Mail struct {
	ID      uint64 // grows with every Put, over all sessions
	Session string
	Data    []byte
}

// Inbox holds the mail of all sessions, each in order of arrival.
type Inbox interface {
	Put(session string, data []byte) (id uint64, err error)
	// List returns a session's mail, oldest first.
	List(session string) ([]Mail, error)
	// Remove takes mail out; what is not there is no error.
	Remove(session string, ids ...uint64) error
	// Sessions returns the sessions that have mail, in no promised order.
	Sessions() ([]string, error)
}

// Entry is one line of a session's journal.
type Entry struct {
	Seq  uint64 // from 1, without gaps; set by Append
	Kind string
	At   time.Time // to the nanosecond, in UTC
	Data []byte
}

// Journal is the record of every session. Appending costs the same however long the journal is.
type Journal interface {
	// Append adds entries in order and returns the number of the last.
	Append(session string, entries ...Entry) (last uint64, err error)
	// Read calls fn for each entry with a number greater than after, in order.
	Read(session string, after uint64, fn func(Entry) error) error
	// Last returns the number of a session's newest entry, 0 when there is none.
	Last(session string) (uint64, error)
	// Erase removes a session's whole journal and returns how many entries that were.
	Erase(session string) (int, error)
	// Sessions calls fn with each session that has entries, and its newest entry, in order of name from first on.
	Sessions(first string, fn func(session string, newest Entry) error) error
}

// Parcel is something said that awaits delivery. What State, Receipt and Tries mean is the sender's affair.
type Parcel struct {
	ID           uint64 // grows with every Put, over all conversations
	Conversation string
	State        string // "" when put
	Tries        int
	Receipt      string
	Data         []byte
}

// Outbox holds what was said and not yet delivered.
type Outbox interface {
	Put(conversation string, data []byte) (id uint64, err error)
	// List calls fn for each parcel with an ID greater than after, oldest first.
	List(after uint64, fn func(Parcel) error) error
	// Last returns the highest ID that was given to a parcel, 0 when there was none. It costs the same for a full outbox.
	Last() (uint64, error)
	// Set writes State, Tries and Receipt of a parcel that is there; one that is not is an error.
	Set(Parcel) error
	// Remove takes parcels out; what is not there is no error.
	Remove(ids ...uint64) error
}

// Seen remembers keys for a while.
type Seen interface {
	// Mark remembers key as seen at the given instant and reports whether it was new. A key already seen keeps
	// its first instant.
	Mark(key string, at time.Time) (fresh bool, err error)
	// Sweep forgets at most limit keys that were first seen before the given instant and returns how many it forgot.
	Sweep(before time.Time, limit int) (int, error)
}

// DueRow is something that shall happen at an instant.
type DueRow struct {
	Key  string    // unique; kinds of rows are told apart by its prefix
	At   time.Time // to the nanosecond, in UTC
	Data []byte
}

// Due is the index of all that shall happen later.
type Due interface {
	// Put adds a row or moves the one with the same key.
	Put(DueRow) error
	// Get returns the row with the key and whether there is one.
	Get(key string) (DueRow, bool, error)
	// Remove takes a row out; what is not there is no error.
	Remove(key string) error
	// Scan calls fn for each row in order of instant, then key.
	Scan(fn func(DueRow) error) error
}

// Table holds small rows by key.
type Table interface {
	// Get returns the row and whether there is one. A row may be empty.
	Get(key string) (value []byte, found bool, err error)
	Put(key string, value []byte) error
	// Delete takes a row out; what is not there is no error.
	Delete(key string) error
	// Scan calls fn for each row whose key begins with prefix, in order of key.
	Scan(prefix string, fn func(key string, value []byte) error) error
	// ScanBack is Scan in the opposite order.
	ScanBack(prefix string, fn func(key string, value []byte) error) error
}
