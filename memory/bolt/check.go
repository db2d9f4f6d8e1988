package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"go.etcd.io/bbolt"
)

// remedy ends the report of what cannot be put right.
const remedy = "restore a backup, or stop the program and keep a copy of the file as it is"

// Checked is how much a check has looked at.
type Checked struct {
	Pages    int64
	Rows     int64
	Sessions int64
	Problems int64
}

// Check looks at every page and every row of the state of the last commit, while the store goes on, and calls report
// with each problem: one line that says what is wrong and what to do. It looks at the pages' bounds, order and use, then,
// when these are right, whether each row can be read, whether journals have no gap, and whether each index agrees with
// what it indexes. progress, which may be nil, is called with the pages that were looked at and how many there are. The
// error is of the check itself: a file that cannot be read, or ctx.
func (s *Store) Check(ctx context.Context, report func(problem string), progress func(done, total int64)) (Checked, error) {
	return s.check(ctx, report, report, progress)
}

// check is Check with what is called with problems that a new copy of the file has not.
func (s *Store) check(ctx context.Context, report, slight func(problem string), progress func(done, total int64)) (n Checked, err error) {
	if err := s.begin(); err != nil {
		return n, fmt.Errorf("check %s: %w", s.path, err)
	}
	defer s.begun.Done()
	b, m, spare, err := s.snapshot(ctx)
	if err != nil {
		return n, fmt.Errorf("check %s: %w", s.path, err)
	}
	defer func() { _ = s.endRead(b) }() // of a read, which has nothing to undo
	told := func(problem string) {
		n.Problems++
		report(problem)
	}
	pages := pageWalk{ctx: ctx, file: s.file, meta: m, report: told, progress: progress}
	if err := pages.walk(); err != nil {
		return n, fmt.Errorf("check %s: %w", s.path, err)
	}
	n.Pages = int64(pages.done)
	if pages.bad > 0 {
		return n, nil // reading rows could lead anywhere
	}
	if pages.lost > 0 {
		n.Problems++
		slight(fmt.Sprintf("%d pages are neither in use nor free: their space is lost, and nothing else; compact the data file to have it back", pages.lost))
	}
	if !spare {
		n.Problems++
		slight("one of the two heads is damaged, and the other is used: nothing is lost yet; make a backup, then compact the data file to have both")
	}
	if s.readOnly && spare && pages.lost == 0 { // beside commits bbolt's own check takes the free pages of a later state for those of this one
		for problem := range b.Check() {
			told(oneLine(problem) + "; " + remedy)
		}
	}
	rows := rowWalk{ctx: ctx, bolt: b, report: told, n: &n}
	if err := rows.walk(); err != nil {
		return n, fmt.Errorf("check %s: %w", s.path, err)
	}
	return n, nil
}

// snapshot begins a reading transaction and returns the head that belongs to it; spare is false when the other head is
// damaged. The caller ends it.
func (s *Store) snapshot(ctx context.Context) (b *bbolt.Tx, m meta, spare bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	select {
	case s.writer.turn <- struct{}{}: // so that no commit comes in between
		defer s.writer.give()
	case <-ctx.Done():
		return nil, m, false, ctx.Err()
	}
	info, err := s.file.Stat()
	if err != nil {
		return nil, m, false, err
	}
	if b, err = s.beginTx(false); err != nil {
		return nil, m, false, err
	}
	m, spare, err = newestMeta(s.file, info.Size())
	if err == nil {
		err = m.fits(info.Size())
	}
	if err == nil && m.number != uint64(b.ID()) {
		err = fmt.Errorf("its head is of commit %d, and the last was %d", m.number, b.ID())
	}
	if err != nil {
		_ = s.endRead(b)
		err = refuse(err)
		s.harm(err)
		return nil, m, false, err
	}
	return b, m, spare, nil
}

// rowWalk looks at every row of one state of a file whose pages are right.
type rowWalk struct {
	ctx    context.Context
	bolt   *bbolt.Tx
	report func(problem string)
	n      *Checked
}

// walk looks at every place, and at every table.
func (w *rowWalk) walk() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			w.problem("the rows cannot be read: %s", oneLine(p))
		}
	}()
	if _, err := checkSchema(w.bolt); err != nil {
		w.report(oneLine(err))
		return nil
	}
	for _, place := range []func() error{w.inbox, w.journals, w.outbox, w.seen, w.due, w.tables} {
		if err := place(); err != nil {
			return err
		}
	}
	return nil
}

func (w *rowWalk) problem(format string, args ...any) {
	w.report(fmt.Sprintf(format, args...) + "; " + remedy)
}

// each calls fn for every row of a bucket and counts it. fn gets nil for the value of a bucket.
func (w *rowWalk) each(b *bbolt.Bucket, fn func(k, v []byte) error) error {
	return b.ForEach(func(k, v []byte) error {
		w.n.Rows++
		if err := w.ctx.Err(); err != nil {
			return err
		}
		return fn(k, v)
	})
}

// eachRow is each for a place that has no buckets in it. What is wrong with a row, fn returns.
func (w *rowWalk) eachRow(name []byte, fn func(k, v []byte) error) error {
	return w.each(w.bolt.Bucket(name), func(k, v []byte) error {
		err := errBucket
		if v != nil {
			err = fn(k, v)
		}
		if err != nil {
			w.problem("%s has a row %q that cannot be read: %v", name, k, err)
		}
		return nil
	})
}

var errBucket = errors.New("a bucket stands where a row should")

func (w *rowWalk) inbox() error {
	last := w.bolt.Bucket(inboxBucket).Sequence()
	return w.eachRow(inboxBucket, func(k, _ []byte) error {
		session, rest, err := cutName(k)
		if err != nil {
			return err
		}
		if err := checkName("session", session); err != nil {
			return err
		}
		return checkNumber(rest, last)
	})
}

// checkNumber refuses the id of a row that is not whole, or that will be given to another row.
func checkNumber(b []byte, last uint64) error {
	id, rest, err := cutNumber(b)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return errors.New("its id is too long")
	case id == 0 || id > last:
		return fmt.Errorf("its id is %d, and the last that was given is %d", id, last)
	}
	return nil
}

func (w *rowWalk) outbox() error {
	last := w.bolt.Bucket(outboxBucket).Sequence()
	return w.eachRow(outboxBucket, func(k, v []byte) error {
		if err := checkNumber(k, last); err != nil {
			return err
		}
		p, err := cutParcel(k, v)
		if err != nil {
			return err
		}
		return checkName("conversation", p.Conversation)
	})
}

// journals compares the names of sessions with the names that stand before their entries, and looks for gaps in those.
func (w *rowWalk) journals() error {
	last := w.bolt.Bucket(sessionBucket).Sequence()
	err := w.eachRow(sessionBucket, func(k, v []byte) error {
		w.n.Sessions++
		if err := checkNumber(v, last); err != nil {
			return err
		}
		number, _, _ := cutNumber(v)
		if name, found := get(w.bolt.Bucket(entryBucket), entryKey(number, 0)); !found || !bytes.Equal(name, k) {
			w.problem("the journal of %q is not where its number says", k)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at := journalWalk{rowWalk: w}
	err = w.eachRow(entryBucket, at.row)
	at.end()
	return err
}

// journalWalk looks at the rows of the journals in order.
type journalWalk struct {
	*rowWalk
	number uint64 // of the session, 0 before the first
	name   []byte
	last   uint64 // of the session's entries so far
}

func (w *journalWalk) row(k, v []byte) error {
	number, rest, err := cutNumber(k)
	if err != nil {
		return err
	}
	entry, rest, err := cutNumber(rest)
	if err == nil && (len(rest) > 0 || number == 0) {
		err = errors.New("its number is none")
	}
	if err != nil {
		return err
	}
	if number != w.number {
		w.end()
		w.number, w.name, w.last = number, nil, 0
	}
	if entry == 0 {
		w.begin(v)
		return nil
	}
	if w.name == nil {
		w.name = fmt.Appendf(nil, "session number %d", number)
		w.problem("entries of %s stand under no name", w.name)
	}
	if w.last++; entry != w.last {
		w.problem("the journal of %q has entry %d where %d should be", w.name, entry, w.last)
		w.last = entry
	}
	if _, err := cutEntry(k[numberSize:], v); err != nil {
		w.problem("entry %d of the journal of %q cannot be read: %v", entry, w.name, err)
	}
	return nil
}

// begin looks at the name that stands before a session's entries.
func (w *journalWalk) begin(name []byte) {
	w.name = clone(name)
	if err := checkName("session", string(name)); err != nil {
		w.problem("a journal is of no session: %v", err)
	}
	if value, _ := get(w.bolt.Bucket(sessionBucket), name); !bytes.Equal(value, appendNumber(nil, w.number)) {
		w.problem("the journal of %q stands under another number than its own", name)
	}
}

// end looks back at the session whose rows are over.
func (w *journalWalk) end() {
	if w.number != 0 && w.last == 0 {
		w.problem("the journal of %q is empty", w.name)
	}
}

// seen looks at each level of what was seen, and that no stamp is in two.
func (w *rowWalk) seen() error {
	for n := range levels {
		if err := w.seenLevel(n); err != nil {
			return err
		}
	}
	return nil
}

func (w *rowWalk) seenLevel(n int) error {
	var last []byte // the highest digest so far
	return w.eachRow(levels[n].bucket, func(k, v []byte) error {
		r, err := cutRun(k, v)
		if err == nil {
			err = r.check(k)
		}
		if err != nil {
			return err
		}
		if last != nil && bytes.Compare(last, k) >= 0 {
			return errors.New("the run before it has digests that belong here")
		}
		for i := range r.len() {
			digest, _ := r.stamp(i)
			if w.isBelow(n, digest) {
				return errors.New("it has a digest that a lower level has as well")
			}
			last = clone(digest)
		}
		return nil
	})
}

// isBelow reports whether a level below the nth has a digest. One that cannot be read is a problem of its own.
func (w *rowWalk) isBelow(n int, digest []byte) bool {
	return slices.ContainsFunc(levels[n+1:], func(l level) bool {
		_, r, err := runOf(w.bolt.Bucket(l.bucket), digest)
		if err != nil {
			return false
		}
		_, found := r.find(digest)
		return found
	})
}

// due compares keys that have an instant each with the same in order of instant.
func (w *rowWalk) due() error {
	plain, ordered := w.bolt.Bucket(dueBucket), w.bolt.Bucket(dueTimeBucket)
	err := w.eachRow(dueBucket, func(k, v []byte) error {
		if err := checkInstant(v); err != nil {
			return err
		}
		if _, found := get(ordered, slices.Concat(v, k)); !found {
			w.problem("of what is due, %q is missing in the order of time", k)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.eachRow(dueTimeBucket, func(k, _ []byte) error {
		_, key, err := cutTime(k)
		if err != nil {
			return err
		}
		if instant, found := get(plain, key); !found || !bytes.Equal(instant, k[:timeSize]) {
			w.problem("of what is due, %q stands in the order of time where it should not", key)
		}
		return nil
	})
}

func checkInstant(v []byte) error {
	_, rest, err := cutTime(v)
	if err == nil && (len(rest) > 0 || binary.BigEndian.Uint32(v[8:]) >= 1e9) {
		err = errors.New("its instant is none")
	}
	return err
}

func (w *rowWalk) tables() error {
	return w.bolt.ForEach(func(name []byte, b *bbolt.Bucket) error {
		if b == nil {
			w.problem("%q is no table", name)
			return nil
		}
		if slices.ContainsFunc(places, func(place []byte) bool { return bytes.Equal(place, name) }) {
			return nil
		}
		return w.eachRow(name, func(k, _ []byte) error { return checkName("row", string(k)) })
	})
}
