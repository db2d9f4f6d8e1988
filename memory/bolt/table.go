package bolt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

// table keeps its rows in a bucket of its own, which is made with the first row. It stands beside those of the
// places: every commit writes the page that has their roots, and a small table whole.
type table struct {
	tx   *tx
	name string
}

// tableBucket returns the name of a table's bucket: the table's own, or, when it is a place's, present or former, but for
// zero bytes at the end, that with one more.
func tableBucket(name string) []byte {
	b := []byte(name)
	isPlace := func(place []byte) bool { return bytes.Equal(place, bytes.TrimRight(b, "\x00")) }
	if slices.ContainsFunc(places, isPlace) || slices.ContainsFunc(formerPlaces, isPlace) {
		b = append(b, 0)
	}
	return b
}

// open returns the table's bucket, nil when there is none.
func (t table) open() *bbolt.Bucket { return t.tx.bolt.Bucket(tableBucket(t.name)) }

func (t table) Get(key string) (value []byte, found bool, err error) {
	defer t.tx.guard(t.tx.enter(), &err)
	if err := t.check(key); err != nil {
		return nil, false, fmt.Errorf("get a row: %w", err)
	}
	if t.tx.ended {
		return nil, false, fmt.Errorf("get row %q of table %q: %w", key, t.name, errTxEnded)
	}
	b := t.open()
	if b == nil {
		return nil, false, nil
	}
	lent, found := get(b, []byte(key))
	if !found {
		return nil, false, nil
	}
	return clone(lent), true, nil
}

func (t table) Put(key string, value []byte) (err error) {
	defer t.tx.guard(t.tx.enter(), &err)
	if err := t.check(key); err != nil {
		return fmt.Errorf("put a row: %w", err)
	}
	if err := t.tx.change(); err != nil {
		return fmt.Errorf("put row %q of table %q: %w", key, t.name, err)
	}
	b, err := t.tx.bolt.CreateBucketIfNotExists(tableBucket(t.name))
	if err == nil {
		err = b.Put([]byte(key), clone(value))
	}
	if err != nil {
		return fmt.Errorf("put row %q of table %q: %w", key, t.name, err)
	}
	return nil
}

func (t table) Delete(key string) (err error) {
	defer t.tx.guard(t.tx.enter(), &err)
	if err := t.check(key); err != nil {
		return fmt.Errorf("delete a row: %w", err)
	}
	if err := t.tx.change(); err != nil {
		return fmt.Errorf("delete row %q of table %q: %w", key, t.name, err)
	}
	b := t.open()
	if b == nil {
		return nil
	}
	if err := b.Delete([]byte(key)); err != nil {
		return fmt.Errorf("delete row %q of table %q: %w", key, t.name, err)
	}
	return nil
}

func (t table) Scan(prefix string, fn func(key string, value []byte) error) (err error) {
	defer t.tx.guard(t.tx.enter(), &err)
	return t.scan(prefix, []byte(prefix), false, fn)
}

func (t table) ScanBack(prefix string, fn func(key string, value []byte) error) (err error) {
	defer t.tx.guard(t.tx.enter(), &err)
	return t.scan(prefix, keyAfter(prefix), true, fn)
}

func (t table) scan(prefix string, from []byte, back bool, fn func(key string, value []byte) error) error {
	if err := checkName("table", t.name); err != nil {
		return fmt.Errorf("scan a table: %w", err)
	}
	if t.tx.ended {
		return fmt.Errorf("scan table %q: %w", t.name, errTxEnded)
	}
	return t.tx.walk(t.open, from, back, func(k, v []byte) error {
		key := string(k)
		if !strings.HasPrefix(key, prefix) {
			return memory.ErrStop
		}
		value := clone(v)
		t.tx.user = true
		err := fn(key, value)
		t.tx.user = false
		return err
	})
}

// check refuses a bad name of the table or the row.
func (t table) check(key string) error {
	if err := checkName("table", t.name); err != nil {
		return err
	}
	return checkName("row", key)
}

// keyAfter returns the first key after all that begin with prefix, nil when there is none.
func keyAfter(prefix string) []byte {
	after := []byte(prefix)
	for i := len(after) - 1; i >= 0; i-- {
		if after[i] < 0xff {
			after[i]++
			return after[:i+1]
		}
	}
	return nil
}
