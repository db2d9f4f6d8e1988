package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

// due keeps rows in order of instant and key, and for each key its instant, to find the row again.
type due struct{ tx *tx }

func (d due) Put(row memory.DueRow) (err error) {
	defer d.tx.guard(d.tx.enter(), &err)
	if err := checkName("key", row.Key); err != nil {
		return fmt.Errorf("put a due row: %w", err)
	}
	byKey, byTime, err := d.writing()
	if err != nil {
		return fmt.Errorf("put due row %q: %w", row.Key, err)
	}
	instant := appendTime(nil, row.At)
	if err = take(byKey, byTime, row.Key); err == nil {
		err = byKey.Put([]byte(row.Key), instant)
	}
	if err == nil {
		err = byTime.Put(append(clone(instant), row.Key...), clone(row.Data))
	}
	if err != nil {
		return fmt.Errorf("put due row %q: %w", row.Key, err)
	}
	return nil
}

func (d due) Get(key string) (row memory.DueRow, found bool, err error) {
	defer d.tx.guard(d.tx.enter(), &err)
	if err := checkName("key", key); err != nil {
		return row, false, fmt.Errorf("get a due row: %w", err)
	}
	byKey, err := d.tx.reading(dueBucket)
	if err != nil {
		return row, false, fmt.Errorf("get due row %q: %w", key, err)
	}
	byTime, err := d.tx.reading(dueTimeBucket)
	if err != nil {
		return row, false, fmt.Errorf("get due row %q: %w", key, err)
	}
	instant, found := get(byKey, []byte(key))
	if !found {
		return row, false, nil
	}
	ordered := append(clone(instant), key...)
	data, found := get(byTime, ordered)
	if !found {
		return row, false, d.tx.damagedBy(fmt.Sprintf("due row %q is in one index only", key))
	}
	if row, err = cutDue(ordered, data); err != nil {
		return row, false, d.tx.damagedBy(err)
	}
	return row, true, nil
}

func (d due) Remove(key string) (err error) {
	defer d.tx.guard(d.tx.enter(), &err)
	if err := checkName("key", key); err != nil {
		return fmt.Errorf("remove a due row: %w", err)
	}
	byKey, byTime, err := d.writing()
	if err != nil {
		return fmt.Errorf("remove due row %q: %w", key, err)
	}
	if err = take(byKey, byTime, key); err == nil {
		err = byKey.Delete([]byte(key))
	}
	if err != nil {
		return fmt.Errorf("remove due row %q: %w", key, err)
	}
	return nil
}

func (d due) Scan(fn func(memory.DueRow) error) (err error) {
	defer d.tx.guard(d.tx.enter(), &err)
	byTime, err := d.tx.reading(dueTimeBucket)
	if err != nil {
		return fmt.Errorf("scan due rows: %w", err)
	}
	return d.tx.walk(same(byTime), nil, false, func(k, v []byte) error {
		row, err := cutDue(k, v)
		if err != nil {
			return d.tx.damagedBy(err)
		}
		return callRow(d.tx, fn, row)
	})
}

func (d due) writing() (byKey, byTime *bbolt.Bucket, err error) {
	if byKey, err = d.tx.writing(dueBucket); err != nil {
		return nil, nil, err
	}
	byTime, err = d.tx.writing(dueTimeBucket)
	return byKey, byTime, err
}

// take removes a key's row from the order of instants, if there is one.
func take(byKey, byTime *bbolt.Bucket, key string) error {
	instant, found := get(byKey, []byte(key))
	if !found {
		return nil
	}
	return byTime.Delete(append(clone(instant), key...))
}

// cutDue makes a row of its own bytes from one in order of instant.
func cutDue(k, v []byte) (row memory.DueRow, err error) {
	at, key, err := cutTime(k)
	if err != nil {
		return row, err
	}
	return memory.DueRow{Key: string(key), At: at, Data: clone(v)}, nil
}
