package bolt

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

// The buckets of a data file. Changing them or what is in them needs a new schema number.
var (
	storeBucket   = []byte("store")            // "schema" → version
	inboxBucket   = []byte("inbox")            // session, id → data
	sessionBucket = []byte("journal sessions") // session → its number
	entryBucket   = []byte("journal entries")  // session's number, 0 → session; session's number, entry's number → instant, kind, data
	outboxBucket  = []byte("outbox")           // id → conversation, state, tries, receipt, data
	seenBucket    = []byte("seen")             // digest → oldest instant, and digests with their instants; the last of the levels
	dueBucket     = []byte("due")              // key → instant
	dueTimeBucket = []byte("due by time")      // instant, key → data

	// The levels of what was seen above the last, each as that is.
	seenNewestBucket = []byte("seen newest")
	seenNewerBucket  = []byte("seen newer")
	seenNewBucket    = []byte("seen new")

	// places are the buckets that every file has. All others are tables: key → value.
	places = [][]byte{
		storeBucket, inboxBucket, sessionBucket, entryBucket, outboxBucket,
		seenNewestBucket, seenNewerBucket, seenNewBucket, seenBucket, dueBucket, dueTimeBucket,
	}
)

var (
	errTxEnded  = errors.New("the transaction has ended")
	errReadOnly = errors.New("the transaction only reads")
)

// appendFill is how full pages are left where keys come in order. Behind a session's last entry those of another may
// lie; they are moved to a page of their own once, and from then on its end is that of a page.
const appendFill = 1.0

// tx is one caller's share of a bbolt transaction.
type tx struct {
	store  *Store
	bolt   *bbolt.Tx
	writes int   // grows with every change
	damage error // the first met; nothing of the transaction may be kept after it
	ended  bool
	user   bool // a caller's function runs inside a scan; a panic is its own
}

var _ memory.Tx = (*tx)(nil)

func (t *tx) Inbox() memory.Inbox     { return inbox{t} }
func (t *tx) Journal() memory.Journal { return journal{t} }
func (t *tx) Outbox() memory.Outbox   { return outbox{t} }
func (t *tx) Seen() memory.Seen       { return seen{t} }
func (t *tx) Due() memory.Due         { return due{t} }

func (t *tx) Table(name string) memory.Table { return table{t, name} }

// spoilt reports whether a function that came to err has left something in the transaction that must not be kept.
func (t *tx) spoilt(err error) bool {
	return t.damage != nil || err != nil && t.writes > 0
}

// enter and guard stand around every method: defer t.guard(t.enter(), &err). A panic of bbolt's, or of ours on what
// bbolt returned, means a damaged page and becomes the method's error. A panic in a caller's function goes on.
func (t *tx) enter() (user bool) {
	user, t.user = t.user, false
	return user
}

func (t *tx) guard(user bool, err *error) {
	panicsItself := t.user
	t.user = user
	if panicsItself {
		return
	}
	if p := recover(); p != nil {
		*err = t.damagedBy(p)
	}
}

// damagedBy returns the error for a file that contradicts itself and keeps it, so that no such transaction commits, nor
// any later one.
func (t *tx) damagedBy(p any) error {
	err := damaged("use", t.store.path, p)
	t.store.harm(err)
	if t.damage == nil {
		t.damage = err
	}
	return err
}

// reading returns a bucket to read from.
func (t *tx) reading(name []byte) (*bbolt.Bucket, error) {
	if t.ended {
		return nil, errTxEnded
	}
	b := t.bolt.Bucket(name)
	if b == nil {
		return nil, t.damagedBy(fmt.Sprintf("bucket %q is missing", name))
	}
	return b, nil
}

// writing returns a bucket to write to.
func (t *tx) writing(name []byte) (*bbolt.Bucket, error) {
	if err := t.change(); err != nil {
		return nil, err
	}
	return t.reading(name)
}

// change admits a change. What follows counts as one, so it comes after all that can be refused.
func (t *tx) change() error {
	if t.ended {
		return errTxEnded
	}
	if !t.bolt.Writable() {
		return errReadOnly
	}
	t.writes++
	return nil
}

// get returns the value of a key, lent until the transaction's next change. bbolt's own Get cannot tell an empty
// value from none in every case.
func get(b *bbolt.Bucket, key []byte) (value []byte, found bool) {
	k, v := b.Cursor().Seek(key)
	if !bytes.Equal(k, key) {
		return nil, false
	}
	touch(k, v)
	return v, true
}

// touch reads the last byte of each. A damaged page can claim a row of gigabytes, for which memory would be sought
// before copying it failed; reading where the file has ended panics, which is caught.
func touch(k, v []byte) {
	_, _ = lastByte(k), lastByte(v)
}

//go:noinline
func lastByte(b []byte) byte { // not to be optimised away
	if len(b) == 0 {
		return 0
	}
	return b[len(b)-1]
}

// callRow runs a caller's function on one row of a scan.
func callRow[T any](t *tx, fn func(T) error, row T) error {
	t.user = true
	err := fn(row)
	t.user = false
	return err
}

// walk calls fn for the rows of a bucket in order of key: from the key at or after from on, or, backwards, from
// the last key before it on; then nil is the end. fn may change the bucket: the walk goes on from where it was, over
// what is then there. So the bucket is got through open, which returns nil when it is no more.
func (t *tx) walk(open func() *bbolt.Bucket, from []byte, back bool, fn func(k, v []byte) error) error {
	b := open()
	if b == nil {
		return nil
	}
	c := b.Cursor()
	k, v := seek(c, from, back)
	var at []byte
	for k != nil {
		touch(k, v)
		writes := t.writes
		if t.bolt.Writable() {
			at = append(at[:0], k...)
		}
		if err := fn(k, v); errors.Is(err, memory.ErrStop) {
			return nil
		} else if err != nil {
			return err
		}
		if t.writes == writes {
			if back {
				k, v = previous(c, at)
			} else {
				k, v = c.Next()
			}
			continue
		}
		if b = open(); b == nil {
			return nil
		}
		if !back {
			at = append(at, 0) // the very next key
		}
		c = b.Cursor()
		k, v = seek(c, at, back)
	}
	return nil
}

// seek moves to a key, or to the next if it is not there; backwards, to the last before it, of which nil is the end.
func seek(c *bbolt.Cursor, key []byte, back bool) (k, v []byte) {
	if !back {
		return c.Seek(key)
	}
	if key != nil {
		if k, _ := c.Seek(key); k != nil {
			return previous(c, key)
		}
	}
	// bbolt looks for the last key for ever when a transaction has deleted them all.
	if k, _ := c.First(); k == nil {
		return nil, nil
	}
	return c.Last()
}

// previous moves to the last key before below, from the first that is not before it. A transaction that deletes leaves
// pages empty, and bbolt takes such a page for the beginning.
func previous(c *bbolt.Cursor, below []byte) (k, v []byte) {
	k, v = c.Prev()
	if k != nil || !c.Bucket().Writable() {
		return k, v
	}
	first, _ := c.Bucket().Cursor().First()
	if first == nil || bytes.Compare(first, below) >= 0 {
		return nil, nil
	}
	for k == nil {
		k, v = c.Prev()
	}
	return k, v
}

// same is a bucket that cannot go away during a walk.
func same(b *bbolt.Bucket) func() *bbolt.Bucket {
	return func() *bbolt.Bucket { return b }
}
