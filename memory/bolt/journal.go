package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

// journal keeps each session's entries in a bucket of their own, numbered keys in a tree that grows at its end.
// bbolt keeps a small bucket inside its parent's page, so a session of a few words costs no page.
type journal struct{ tx *tx }

func (j journal) Append(session string, entries ...memory.Entry) (last uint64, err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return 0, fmt.Errorf("append to a journal: %w", err)
	}
	if len(entries) == 0 {
		return j.last(session)
	}
	all, err := j.tx.writing(journalBucket)
	if err != nil {
		return 0, fmt.Errorf("append to the journal of %q: %w", session, err)
	}
	b, err := all.CreateBucketIfNotExists([]byte(session))
	if err != nil {
		return 0, fmt.Errorf("append to the journal of %q: %w", session, err)
	}
	b.FillPercent = appendFill
	if last, err = newest(b); err != nil {
		return 0, j.tx.damagedBy(err)
	}
	for _, e := range entries {
		last++
		value := make([]byte, 0, timeSize+1+len(e.Kind)+len(e.Data))
		value = append(appendText(appendTime(value, e.At), e.Kind), e.Data...)
		if err := b.Put(appendNumber(nil, last), value); err != nil {
			return 0, fmt.Errorf("append entry %d to the journal of %q: %w", last, session, err)
		}
	}
	return last, nil
}

func (j journal) Read(session string, after uint64, fn func(memory.Entry) error) (err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return fmt.Errorf("read a journal: %w", err)
	}
	all, err := j.tx.reading(journalBucket)
	if err != nil {
		return fmt.Errorf("read the journal of %q: %w", session, err)
	}
	if after+1 == 0 {
		return nil
	}
	open := func() *bbolt.Bucket { return all.Bucket([]byte(session)) }
	return j.tx.walk(open, appendNumber(nil, after+1), false, func(k, v []byte) error {
		e, err := cutEntry(k, v)
		if err != nil {
			return j.tx.damagedBy(err)
		}
		return callRow(j.tx, fn, e)
	})
}

func (j journal) Last(session string) (last uint64, err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return 0, fmt.Errorf("find a journal's end: %w", err)
	}
	return j.last(session)
}

func (j journal) last(session string) (uint64, error) {
	all, err := j.tx.reading(journalBucket)
	if err != nil {
		return 0, fmt.Errorf("find the end of the journal of %q: %w", session, err)
	}
	b := all.Bucket([]byte(session))
	if b == nil {
		return 0, nil
	}
	last, err := newest(b)
	if err != nil {
		return 0, j.tx.damagedBy(err)
	}
	return last, nil
}

func (j journal) Erase(session string) (count int, err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return 0, fmt.Errorf("erase a journal: %w", err)
	}
	last, err := j.last(session)
	if err != nil {
		return 0, err
	}
	if last == 0 {
		return 0, nil
	}
	all, err := j.tx.writing(journalBucket)
	if err != nil {
		return 0, fmt.Errorf("erase the journal of %q: %w", session, err)
	}
	if err := all.DeleteBucket([]byte(session)); err != nil {
		return 0, fmt.Errorf("erase the journal of %q: %w", session, err)
	}
	return int(last), nil // numbers begin at 1 and have no gaps
}

func (j journal) Sessions(first string, fn func(session string, newest memory.Entry) error) (err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	all, err := j.tx.reading(journalBucket)
	if err != nil {
		return fmt.Errorf("list journals: %w", err)
	}
	return j.tx.walk(same(all), []byte(first), false, func(k, _ []byte) error {
		b := all.Bucket(k)
		if b == nil {
			return j.tx.damagedBy(fmt.Sprintf("the journal of %q is no bucket", k))
		}
		number, value := b.Cursor().Last()
		touch(number, value)
		e, err := cutEntry(number, value)
		if err != nil {
			return j.tx.damagedBy(err)
		}
		return j.call(fn, string(k), e)
	})
}

func (j journal) call(fn func(string, memory.Entry) error, session string, e memory.Entry) error {
	j.tx.user = true
	err := fn(session, e)
	j.tx.user = false
	return err
}

// newest returns the number of the last entry in a journal's bucket, 0 when it is empty.
func newest(b *bbolt.Bucket) (uint64, error) {
	k, _ := b.Cursor().Last()
	if k == nil {
		return 0, nil
	}
	n, _, err := cutNumber(k)
	return n, err
}

// cutEntry makes an entry of its own bytes from a row.
func cutEntry(k, v []byte) (e memory.Entry, err error) {
	if e.Seq, _, err = cutNumber(k); err != nil {
		return e, err
	}
	if e.At, v, err = cutTime(v); err != nil {
		return e, err
	}
	if e.Kind, v, err = cutText(v); err != nil {
		return e, err
	}
	e.Data = clone(v)
	return e, nil
}
