package memorytest

import (
	"context"
	"fmt"
	"slices"

	"nudge/memory"
)

// failer is what a check needs of a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// view runs a reading that must not fail.
func view(t failer, store memory.Store, fn func(memory.Tx) error) {
	t.Helper()
	if err := store.View(context.Background(), fn); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// update runs a writing that must not fail.
func update(t failer, store memory.Store, fn func(memory.Tx) error) {
	t.Helper()
	if err := store.Update(context.Background(), fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

func entries(tx memory.Tx, session string, after uint64) (list []memory.Entry, err error) {
	err = tx.Journal().Read(session, after, func(e memory.Entry) error { list = append(list, e); return nil })
	return list, err
}

func parcels(tx memory.Tx, after uint64) (list []memory.Parcel, err error) {
	err = tx.Outbox().List(after, func(p memory.Parcel) error { list = append(list, p); return nil })
	return list, err
}

func dueRows(tx memory.Tx) (list []memory.DueRow, err error) {
	err = tx.Due().Scan(func(r memory.DueRow) error { list = append(list, r); return nil })
	return list, err
}

func tableRows(tx memory.Tx, table, prefix string) (list []row, err error) {
	err = tx.Table(table).Scan(prefix, func(k string, v []byte) error { list = append(list, row{k, v}); return nil })
	return list, err
}

func tableRowsBack(tx memory.Tx, table, prefix string) (list []row, err error) {
	err = tx.Table(table).ScanBack(prefix, func(k string, v []byte) error { list = append(list, row{k, v}); return nil })
	return list, err
}

// journals returns the sessions with entries from first on, each with its newest entry.
func journals(tx memory.Tx, first string) (sessions []string, newest []memory.Entry, err error) {
	err = tx.Journal().Sessions(first, func(s string, e memory.Entry) error {
		sessions, newest = append(sessions, s), append(newest, e)
		return nil
	})
	return sessions, newest, err
}

// differ describes two lists that are not the same; nil when they are.
func differ[T any](what string, got, want []T, same func(a, b T) bool) error {
	if slices.EqualFunc(got, want, same) {
		return nil
	}
	return fmt.Errorf("%s: got %d: %.2000s, want %d: %.2000s", what, len(got), fmt.Sprintf("%+v", got), len(want), fmt.Sprintf("%+v", want))
}

// expect describes a value that is not the wanted one; nil when it is.
func expect[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s: got %v, want %v", what, got, want)
}

func sameString(a, b string) bool { return a == b }
