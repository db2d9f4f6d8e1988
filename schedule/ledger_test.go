package schedule

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"nudge/memory"
)

// ledger is a store in memory with the two places that this package uses. It spares tests of many thousand ticks the
// disk.
type ledger struct {
	mu   sync.Mutex
	rows map[string]string // of all tables, by table and key
	due  map[string]memory.DueRow
	next [][]memory.DueRow // the rows of due in their order, in pieces that are cheap to change
	undo []func()          // takes back what the Update under way has written, in opposite order
}

func newLedger() *ledger { return &ledger{rows: map[string]string{}, due: map[string]memory.DueRow{}} }

func (l *ledger) View(ctx context.Context, fn func(memory.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return fn(ledgerTx{ledger: l})
}

func (l *ledger) Update(ctx context.Context, fn func(memory.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undo = nil
	err := fn(ledgerTx{ledger: l})
	if err != nil {
		for _, undo := range slices.Backward(l.undo) {
			undo()
		}
	}
	return err
}

func compareRows(a, b memory.DueRow) int {
	return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Key, b.Key))
}

// longestPiece is how many rows a piece of the order has at most.
const longestPiece = 64

// find gives the place of a row in the order: that of its piece, and within it.
func (l *ledger) find(row memory.DueRow) (piece, at int) {
	piece, _ = slices.BinarySearchFunc(l.next, row, func(piece []memory.DueRow, row memory.DueRow) int {
		return compareRows(piece[len(piece)-1], row)
	})
	if piece == len(l.next) {
		return piece, 0
	}
	at, _ = slices.BinarySearchFunc(l.next[piece], row, compareRows)
	return piece, at
}

// place puts a due row in the place of the one of that key, or only takes that out.
func (l *ledger) place(key string, row memory.DueRow, there bool) {
	if old, found := l.due[key]; found {
		piece, at := l.find(old)
		if l.next[piece] = slices.Delete(l.next[piece], at, at+1); len(l.next[piece]) == 0 {
			l.next = slices.Delete(l.next, piece, piece+1)
		}
		delete(l.due, key)
	}
	if !there {
		return
	}
	l.due[key] = row
	piece, at := l.find(row)
	if piece == len(l.next) {
		l.next = append(l.next, []memory.DueRow{row})
		return
	}
	l.next[piece] = slices.Insert(l.next[piece], at, row)
	if half := len(l.next[piece]) / 2; half*2 >= longestPiece {
		l.next = slices.Insert(l.next, piece+1, slices.Clone(l.next[piece][half:]))
		l.next[piece] = l.next[piece][:half]
	}
}

// replace is place that can be taken back.
func (l *ledger) replace(key string, row memory.DueRow, there bool) {
	old, found := l.due[key]
	l.undo = append(l.undo, func() { l.place(key, old, found) })
	l.place(key, row, there)
}

// remember notes how to put the entry back as it is now.
func remember[V any](l *ledger, entries map[string]V, key string) {
	value, found := entries[key]
	l.undo = append(l.undo, func() {
		delete(entries, key)
		if found {
			entries[key] = value
		}
	})
}

func (l *ledger) Close() error { return nil }

// ledgerTx has no place but those that ledger keeps: a use of another one fails the test.
type ledgerTx struct {
	memory.Tx
	ledger *ledger
}

func (t ledgerTx) Table(name string) memory.Table { return ledgerTable{t.ledger, name + "\x00"} }
func (t ledgerTx) Due() memory.Due                { return ledgerDue{t.ledger} }

type ledgerTable struct {
	ledger *ledger
	name   string
}

func (t ledgerTable) Get(key string) ([]byte, bool, error) {
	value, found := t.ledger.rows[t.name+key]
	return []byte(value), found, nil
}

func (t ledgerTable) Put(key string, value []byte) error {
	remember(t.ledger, t.ledger.rows, t.name+key)
	t.ledger.rows[t.name+key] = string(value)
	return nil
}

func (t ledgerTable) Delete(key string) error {
	remember(t.ledger, t.ledger.rows, t.name+key)
	delete(t.ledger.rows, t.name+key)
	return nil
}

func (t ledgerTable) Scan(prefix string, fn func(string, []byte) error) error {
	return t.scan(prefix, fn, strings.Compare)
}

func (t ledgerTable) ScanBack(prefix string, fn func(string, []byte) error) error {
	return t.scan(prefix, fn, func(a, b string) int { return strings.Compare(b, a) })
}

func (t ledgerTable) scan(prefix string, fn func(string, []byte) error, order func(a, b string) int) error {
	var keys []string
	for key := range t.ledger.rows {
		if strings.HasPrefix(key, t.name+prefix) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, order)
	for _, key := range keys {
		if err := fn(strings.TrimPrefix(key, t.name), []byte(t.ledger.rows[key])); err != nil {
			return unlessStop(err)
		}
	}
	return nil
}

func unlessStop(err error) error {
	if errors.Is(err, memory.ErrStop) {
		return nil
	}
	return err
}

type ledgerDue struct{ ledger *ledger }

func (d ledgerDue) Put(row memory.DueRow) error {
	row.At = row.At.UTC().Round(0)
	d.ledger.replace(row.Key, row, true)
	return nil
}

func (d ledgerDue) Get(key string) (memory.DueRow, bool, error) {
	row, found := d.ledger.due[key]
	return row, found, nil
}

func (d ledgerDue) Remove(key string) error {
	d.ledger.replace(key, memory.DueRow{}, false)
	return nil
}

func (d ledgerDue) Scan(fn func(memory.DueRow) error) error {
	for _, piece := range d.ledger.next {
		for _, row := range piece {
			if err := fn(row); err != nil {
				return unlessStop(err)
			}
		}
	}
	return nil
}
