package bolt

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"go.etcd.io/bbolt"
)

// seen keeps, for each key, a stamp: the key's digest and the instant at which it was first seen. Stamps lie in order of
// digest in runs, some dozen to a row, and in levels: keys come in no order, so that among many each would take a page of
// its own. A new stamp goes into the uppermost level, which is so small that its pages are written anyhow. A level that is
// over its room sinks into the next as a whole, and the pages of that one are shared by all that sinks.
type seen struct{ tx *tx }

// level is a bucket of runs.
type level struct {
	bucket []byte
	room   int // stamps
}

// levels are the levels from the uppermost down. The last has room for everything.
var levels = []level{
	{seenNewestBucket, fullRun}, // as one run it lies in its parent's page
	{seenNewerBucket, 8 * fullRun},
	{seenNewBucket, 64 * fullRun},
	{seenBucket, math.MaxInt},
}

const (
	digestSize = 16 // of SHA-256; two keys of one digest are not to be expected in any file's life
	stampSize  = digestSize + timeSize
	fullRun    = 32 // stamps; a run that would have more is divided
	laidRun    = 24 // stamps, at most, of each run that a longer one is divided into
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

// with returns a run with more stamps, which are in order and not in it.
func (r run) with(stamps []byte) run {
	both := make([]byte, 0, len(r.stamps())+len(stamps))
	for old := r.stamps(); len(old)+len(stamps) > 0; {
		from := &old
		if len(old) == 0 || len(stamps) > 0 && bytes.Compare(stamps[:digestSize], old[:digestSize]) < 0 {
			from = &stamps
		}
		both, *from = append(both, (*from)[:stampSize]...), (*from)[stampSize:]
	}
	return newRun(both)
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
	digest := digestOf(key)
	found, err := s.has(digest)
	if err == nil && !found {
		err = s.put(0, appendTime(digest, at))
	}
	if err != nil {
		return false, fmt.Errorf("mark %q as seen: %w", key, err)
	}
	return !found, nil
}

// has reports whether a level has a stamp with the digest.
func (s seen) has(digest []byte) (found bool, err error) {
	for _, l := range levels {
		b, err := s.tx.reading(l.bucket)
		if err != nil {
			return false, err
		}
		_, r, err := runOf(b, digest)
		if err != nil {
			return false, s.tx.damagedBy(err)
		}
		if _, found := r.find(digest); found {
			return true, nil
		}
	}
	return false, nil
}

// put adds stamps, which are in order, to a level. When that is then over its room, all of it goes into the next.
func (s seen) put(n int, stamps []byte) error {
	l := levels[n]
	b, err := s.tx.writing(l.bucket)
	if err != nil {
		return err
	}
	if err := s.merge(b, stamps); err != nil || l.room == math.MaxInt {
		return err
	}
	var all []byte
	err = b.ForEach(func(k, v []byte) error {
		r, err := cutRun(k, v)
		if err != nil {
			return s.tx.damagedBy(err)
		}
		all = append(all, r.stamps()...)
		return nil
	})
	if err != nil || len(all)/stampSize <= l.room {
		return err
	}
	if err := s.tx.bolt.DeleteBucket(l.bucket); err != nil {
		return err
	}
	if _, err := s.tx.bolt.CreateBucket(l.bucket); err != nil {
		return err
	}
	return s.put(n+1, all)
}

// merge adds stamps, which are in order, to the runs of a bucket.
func (s seen) merge(b *bbolt.Bucket, stamps []byte) error {
	for len(stamps) > 0 {
		from, r, err := runOf(b, stamps[:digestSize])
		if err != nil {
			return s.tx.damagedBy(err)
		}
		these := len(stamps)
		if next, _ := b.Cursor().Seek(append(clone(from), 0)); next != nil {
			touch(next, nil)
			before, _ := newRun(stamps).find(next)
			these = before * stampSize
		}
		if err := putRun(b, from, r.with(stamps[:these])); err != nil {
			return err
		}
		stamps = stamps[these:]
	}
	return nil
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

// putRun writes a run, as several when it is too long for one.
func putRun(b *bbolt.Bucket, from []byte, r run) error {
	if r.len() <= fullRun {
		return b.Put(from, r)
	}
	parts := (r.len() + laidRun - 1) / laidRun
	for i, begin := 0, 0; i < parts; i++ {
		end := (i + 1) * r.len() / parts
		if i > 0 {
			digest, _ := r.stamp(begin)
			from = clone(digest)
		}
		if err := b.Put(from, newRun(r.stamps()[begin*stampSize:end*stampSize])); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

func (s seen) Sweep(before time.Time, limit int) (count int, err error) {
	defer s.tx.guard(s.tx.enter(), &err)
	for _, l := range levels {
		n, err := s.sweep(l.bucket, appendTime(nil, before), limit-count)
		if err != nil {
			return 0, fmt.Errorf("sweep what was seen: %w", err)
		}
		count += n
	}
	return count, nil
}

// sweep removes at most limit stamps of a level from before an instant, and returns how many.
func (s seen) sweep(bucket, before []byte, limit int) (count int, err error) {
	old, count, err := s.outdated(bucket, before, limit)
	if err != nil || count == 0 {
		return 0, err
	}
	b, err := s.tx.writing(bucket)
	if err != nil {
		return 0, err
	}
	for _, o := range old {
		if o.left == nil {
			err = b.Delete(o.from)
		} else {
			err = b.Put(o.from, o.left)
		}
		if err != nil {
			return 0, err
		}
	}
	return count, nil
}

// outdated is a run of which something is to go.
type outdated struct {
	from []byte
	left run // nil when nothing is left
}

// outdated returns the runs of a level with stamps from before an instant, and how many stamps are to go, at most limit.
func (s seen) outdated(bucket, before []byte, limit int) (old []outdated, count int, err error) {
	b, err := s.tx.reading(bucket)
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
