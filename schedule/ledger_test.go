package schedule

import (
	"cmp"
	"context"
	"errors"
	"maps"
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
	undo []func() // takes back what the Update under way has written, in opposite order
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
	remember(d.ledger, d.ledger.due, row.Key)
	d.ledger.due[row.Key] = row
	return nil
}

func (d ledgerDue) Get(key string) (memory.DueRow, bool, error) {
	row, found := d.ledger.due[key]
	return row, found, nil
}

func (d ledgerDue) Remove(key string) error {
	remember(d.ledger, d.ledger.due, key)
	delete(d.ledger.due, key)
	return nil
}

func (d ledgerDue) Scan(fn func(memory.DueRow) error) error {
	rows := slices.SortedFunc(maps.Values(d.ledger.due), func(a, b memory.DueRow) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Key, b.Key))
	})
	for _, row := range rows {
		if err := fn(row); err != nil {
			return unlessStop(err)
		}
	}
	return nil
}
