package bolt

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"go.etcd.io/bbolt"
)

// seen keeps, for each key, a stamp: the key's digest and the instant at which it was first seen. Stamps lie in order of
// digest in runs, some dozen to a row, since keys come in no order: with a row for each key, a commit that marks many
// would take apart as many pages of a hundred rows.
type seen struct{ tx *tx }

const (
	digestSize = 16 // of SHA-256; two keys of one digest are not to be expected in any file's life
	stampSize  = digestSize + timeSize
	fullRun    = 32 // stamps; a run that would have more becomes two
	laidRun    = 24 // stamps of a run that is made with others at once
)

// run is a row: the oldest of its instants, so that a sweep passes over a run without reading it, and its stamps. Its key
// is a digest: all of its stamps' digests are at or above it, and below the next run's.
type run []byte

var firstRun = make([]byte, digestSize)

func newRun(stamps []byte) run {
	oldest := stamps[digestSize:stampSize]
	for i := stampSize; i < len(stamps); i += stampSize {
		if at := stamps[i+digestSize : i+stampSize]; bytes.Compare(at, oldest) < 0 {
			oldest = at
		}
	}
	return append(append(make(run, 0, timeSize+len(stamps)), oldest...), stamps...)
}

func (r run) oldest() []byte { return r[:timeSize] }
func (r run) stamps() []byte { return r[min(timeSize, len(r)):] } // none of no run
func (r run) len() int       { return len(r.stamps()) / stampSize }

// stamp returns the nth stamp's digest and instant.
func (r run) stamp(n int) (digest, at []byte) {
	s := r.stamps()[n*stampSize:][:stampSize]
	return s[:digestSize], s[digestSize:]
}

// find returns the place of a digest, or that at which it would stand.
func (r run) find(digest []byte) (n int, found bool) {
	return sort.Find(r.len(), func(n int) int {
		d, _ := r.stamp(n)
		return bytes.Compare(digest, d)
	})
}

// with returns the run with one more stamp at a place.
func (r run) with(n int, digest, at []byte) run {
	return newRun(slices.Concat(r.stamps()[:n*stampSize], digest, at, r.stamps()[n*stampSize:]))
}

// without returns the run without its first stamps, at most limit, from before an instant, and how many those were.
func (r run) without(before []byte, limit int) (left run, removed int) {
	var stamps []byte
	for n := range r.len() {
		digest, at := r.stamp(n)
		if removed < limit && bytes.Compare(at, before) < 0 {
			removed++
			continue
		}
		stamps = append(append(stamps, digest...), at...)
	}
	if len(stamps) == 0 {
		return nil, removed
	}
	return newRun(stamps), removed
}

// check refuses a run whose stamps are not in order, from one digest on.
func (r run) check(from []byte) error {
	last := from
	for n := range r.len() {
		digest, at := r.stamp(n)
		if err := checkInstant(at); err != nil {
			return err
		}
		if c := bytes.Compare(digest, last); c < 0 || c == 0 && n > 0 {
			return errors.New("a digest is out of order")
		}
		last = digest
	}
	if !bytes.Equal(r.oldest(), newRun(r.stamps()).oldest()) {
		return errors.New("its oldest instant is another")
	}
	return nil
}

func digestOf(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:digestSize]
}

func (s seen) Mark(key string, at time.Time) (fresh bool, err error) {
	defer s.tx.guard(s.tx.enter(), &err)
	if err := checkName("key", key); err != nil {
		return false, fmt.Errorf("mark as seen: %w", err)
	}
	b, err := s.tx.reading(seenBucket)
	if err != nil {
		return false, fmt.Errorf("mark %q as seen: %w", key, err)
	}
	digest := digestOf(key)
	from, r, err := runOf(b, digest)
	if err != nil {
		return false, s.tx.damagedBy(err)
	}
	n, found := r.find(digest)
	if found {
		return false, nil
	}
	if b, err = s.tx.writing(seenBucket); err == nil {
		err = putRun(b, from, r.with(n, digest, appendTime(nil, at)))
	}
	if err != nil {
		return false, fmt.Errorf("mark %q as seen: %w", key, err)
	}
	return true, nil
}

// runOf returns the run in which a digest would stand, lent until the bucket's next change, and its key.
func runOf(b *bbolt.Bucket, digest []byte) (from []byte, r run, err error) {
	k, v := seek(b.Cursor(), append(clone(digest), 0), true)
	if k == nil {
		return firstRun, nil, nil
	}
	touch(k, v)
	r, err = cutRun(k, v)
	return clone(k), r, err
}

// cutRun makes a run of a row, still lent.
func cutRun(k, v []byte) (run, error) {
	if len(k) != digestSize || len(v) < timeSize+stampSize || (len(v)-timeSize)%stampSize != 0 {
		return nil, fmt.Errorf("run %x of what was seen: %w", k, errShort)
	}
	return v, nil
}

// putRun writes a run, as two when it is too long for one.
func putRun(b *bbolt.Bucket, from []byte, r run) error {
	if r.len() <= fullRun {
		return b.Put(from, r)
	}
	half := r.len() / 2
	middle, _ := r.stamp(half)
	if err := b.Put(from, newRun(r.stamps()[:half*stampSize])); err != nil {
		return err
	}
	return b.Put(clone(middle), newRun(r.stamps()[half*stampSize:]))
}

func (s seen) Sweep(before time.Time, limit int) (count int, err error) {
	defer s.tx.guard(s.tx.enter(), &err)
	old, count, err := s.outdated(appendTime(nil, before), limit)
	if err != nil {
		return 0, fmt.Errorf("sweep what was seen: %w", err)
	}
	if count == 0 {
		return 0, nil
	}
	b, err := s.tx.writing(seenBucket)
	if err != nil {
		return 0, fmt.Errorf("sweep what was seen: %w", err)
	}
	for _, o := range old {
		if o.left == nil {
			err = b.Delete(o.from)
		} else {
			err = b.Put(o.from, o.left)
		}
		if err != nil {
			return 0, fmt.Errorf("sweep what was seen: %w", err)
		}
	}
	return count, nil
}

// outdated is a run of which something is to go.
type outdated struct {
	from []byte
	left run // nil when nothing is left
}

// outdated returns the runs with stamps from before an instant, and how many stamps are to go, at most limit.
func (s seen) outdated(before []byte, limit int) (old []outdated, count int, err error) {
	b, err := s.tx.reading(seenBucket)
	if err != nil {
		return nil, 0, err
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil && count < limit; k, v = c.Next() {
		touch(k, v)
		r, err := cutRun(k, v)
		if err != nil {
			return nil, 0, s.tx.damagedBy(err)
		}
		if bytes.Compare(r.oldest(), before) >= 0 {
			continue
		}
		left, removed := r.without(before, limit-count)
		old, count = append(old, outdated{clone(k), left}), count+removed
	}
	return old, count, nil
}

// layRuns fills an empty bucket with stamps, which it puts in order. The runs have room for more.
func layRuns(b *bbolt.Bucket, stamps [][]byte) error {
	slices.SortFunc(stamps, func(x, y []byte) int { return bytes.Compare(x[:digestSize], y[:digestSize]) })
	b.FillPercent = appendFill
	from := firstRun
	for i := 0; i < len(stamps); i += laidRun {
		some := stamps[i:min(i+laidRun, len(stamps))]
		if i > 0 {
			from = some[0][:digestSize]
		}
		if err := b.Put(clone(from), newRun(slices.Concat(some...))); err != nil {
			return err
		}
	}
	return nil
}
