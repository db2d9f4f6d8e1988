package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

// journal keeps the entries of all sessions in one tree, so that sessions which began at the same time share pages, and a
// commit for many writes few. A session gets a number with its first entry, and nobody else ever has it. Under that
// and 0 stands the session's name, and under that and an entry's number the entry.
type journal struct{ tx *tx }

const entryKeySize = 2 * numberSize

func entryKey(session, entry uint64) []byte {
	return appendNumber(appendNumber(make([]byte, 0, entryKeySize), session), entry)
}

func (j journal) Append(session string, entries ...memory.Entry) (last uint64, err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return 0, fmt.Errorf("append to a journal: %w", err)
	}
	if len(entries) == 0 {
		return j.last(session)
	}
	if last, err = j.append(session, entries); err != nil {
		return 0, fmt.Errorf("append to the journal of %q: %w", session, err)
	}
	return last, nil
}

func (j journal) append(session string, entries []memory.Entry) (last uint64, err error) {
	names, err := j.tx.writing(sessionBucket)
	if err != nil {
		return 0, err
	}
	rows, err := j.tx.reading(entryBucket)
	if err != nil {
		return 0, err
	}
	rows.FillPercent = appendFill
	number, err := j.number(names, session)
	if err == nil && number == 0 {
		number, err = begin(names, rows, session)
	} else if err == nil {
		last, err = j.newest(rows, number)
	}
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		last++
		value := make([]byte, 0, timeSize+1+len(e.Kind)+len(e.Data))
		value = append(appendText(appendTime(value, e.At), e.Kind), e.Data...)
		if err := rows.Put(entryKey(number, last), value); err != nil {
			return 0, fmt.Errorf("entry %d: %w", last, err)
		}
	}
	return last, nil
}

// begin gives a session its number.
func begin(names, rows *bbolt.Bucket, session string) (number uint64, err error) {
	if number, err = names.NextSequence(); err != nil {
		return 0, err
	}
	if err := names.Put([]byte(session), appendNumber(nil, number)); err != nil {
		return 0, err
	}
	return number, rows.Put(entryKey(number, 0), []byte(session))
}

func (j journal) Read(session string, after uint64, fn func(memory.Entry) error) (err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return fmt.Errorf("read a journal: %w", err)
	}
	rows, number, err := j.find(session)
	if err != nil {
		return fmt.Errorf("read the journal of %q: %w", session, err)
	}
	if number == 0 || after+1 == 0 {
		return nil
	}
	return j.tx.walk(same(rows), entryKey(number, after+1), false, func(k, v []byte) error {
		of, k, err := cutNumber(k)
		if err == nil && of != number {
			return memory.ErrStop
		}
		var e memory.Entry
		if err == nil {
			e, err = cutEntry(k, v)
		}
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

func (j journal) last(session string) (last uint64, err error) {
	rows, number, err := j.find(session)
	if err == nil && number != 0 {
		last, err = j.newest(rows, number)
	}
	if err != nil {
		return 0, fmt.Errorf("find the end of the journal of %q: %w", session, err)
	}
	return last, nil
}

func (j journal) Erase(session string) (count int, err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return 0, fmt.Errorf("erase a journal: %w", err)
	}
	rows, number, err := j.find(session)
	if err == nil && number != 0 {
		count, err = j.erase(rows, session, number)
	}
	if err != nil {
		return 0, fmt.Errorf("erase the journal of %q: %w", session, err)
	}
	return count, nil
}

func (j journal) erase(rows *bbolt.Bucket, session string, number uint64) (count int, err error) {
	last, err := j.newest(rows, number)
	if err != nil {
		return 0, err
	}
	names, err := j.tx.writing(sessionBucket)
	if err == nil {
		err = names.Delete([]byte(session))
	}
	for n := uint64(0); err == nil && n <= last; n++ { // numbers have no gaps
		err = rows.Delete(entryKey(number, n))
	}
	return int(last), err
}

func (j journal) Sessions(first string, fn func(session string, newest memory.Entry) error) (err error) {
	defer j.tx.guard(j.tx.enter(), &err)
	names, err := j.tx.reading(sessionBucket)
	if err != nil {
		return fmt.Errorf("list journals: %w", err)
	}
	rows, err := j.tx.reading(entryBucket)
	if err != nil {
		return fmt.Errorf("list journals: %w", err)
	}
	return j.tx.walk(same(names), []byte(first), false, func(k, v []byte) error {
		number, _, err := cutNumber(v)
		if err != nil {
			return j.tx.damagedBy(err)
		}
		key, value, err := newestRow(rows, number)
		var e memory.Entry
		if err == nil {
			e, err = cutEntry(key[numberSize:], value)
		}
		if err != nil {
			return j.tx.damagedBy(fmt.Errorf("the journal of %q: %w", k, err))
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

// find returns the entries of all sessions and a session's number, 0 when it has none.
func (j journal) find(session string) (rows *bbolt.Bucket, number uint64, err error) {
	names, err := j.tx.reading(sessionBucket)
	if err != nil {
		return nil, 0, err
	}
	if rows, err = j.tx.reading(entryBucket); err != nil {
		return nil, 0, err
	}
	number, err = j.number(names, session)
	return rows, number, err
}

func (j journal) number(names *bbolt.Bucket, session string) (number uint64, err error) {
	value, found := get(names, []byte(session))
	if !found {
		return 0, nil
	}
	if number, _, err = cutNumber(value); err != nil {
		return 0, j.tx.damagedBy(err)
	}
	return number, nil
}

// newest returns the number of the last entry of a session that has a number.
func (j journal) newest(rows *bbolt.Bucket, number uint64) (uint64, error) {
	k, _, err := newestRow(rows, number)
	if err != nil {
		return 0, j.tx.damagedBy(err)
	}
	n, _, err := cutNumber(k[numberSize:])
	return n, err
}

var errNoRows = errors.New("its rows are missing")

// newestRow returns the last row of a session that has a number, lent until the transaction's next change. It reads no
// more pages than those on the way to it, since others may be bad.
func newestRow(rows *bbolt.Bucket, number uint64) (k, v []byte, err error) {
	c := rows.Cursor()
	after := entryKey(number+1, 0)
	if at, _ := c.Seek(after); at == nil {
		k, v = c.Last() // there is one: the session's name, if nothing else
	} else {
		k, v = previous(c, after)
	}
	touch(k, v)
	if len(k) != entryKeySize || binary.BigEndian.Uint64(k) != number {
		return nil, nil, errNoRows
	}
	return k, v, nil
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
