package memory

import (
	"encoding/json"
	"fmt"
)

// Rows is a table whose rows are values of one type, kept as JSON. It is the table's name, so that it can be a constant:
//
//	const tableGrants memory.Rows[Grant] = "grant" // by person
//
// Keys are bounded as those of every [Table] are. Errors about JSON name the table and the row.
type Rows[V any] string

// Table is the table itself, for what needs no value: keys alone, or rows as they lie there.
func (r Rows[V]) Table(tx Tx) Table { return tx.Table(string(r)) }

// Get returns the value of a row and whether there is one.
func (r Rows[V]) Get(tx Tx, key string) (value V, found bool, err error) {
	row, found, err := r.Table(tx).Get(key)
	if err != nil || !found {
		return value, false, err
	}
	value, err = r.read(key, row)
	return value, err == nil, err
}

// Put makes a value that of a row.
func (r Rows[V]) Put(tx Tx, key string, value V) error {
	row, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s %q: %w", string(r), key, err)
	}
	return r.Table(tx).Put(key, row)
}

// Has reports whether there is a row, readable or not.
func (r Rows[V]) Has(tx Tx, key string) (found bool, err error) {
	_, found, err = r.Table(tx).Get(key)
	return found, err
}

// Delete takes a row out; what is not there is no error.
func (r Rows[V]) Delete(tx Tx, key string) error { return r.Table(tx).Delete(key) }

// Scan calls fn for each row whose key begins with prefix, in order of key. A row that cannot be read ends it with an error.
func (r Rows[V]) Scan(tx Tx, prefix string, fn func(key string, value V) error) error {
	return r.Table(tx).Scan(prefix, r.each(fn))
}

// ScanBack is Scan in the opposite order.
func (r Rows[V]) ScanBack(tx Tx, prefix string, fn func(key string, value V) error) error {
	return r.Table(tx).ScanBack(prefix, r.each(fn))
}

// All returns the values of all rows whose key begins with prefix, in order of key.
func (r Rows[V]) All(tx Tx, prefix string) (all []V, err error) {
	err = r.Scan(tx, prefix, func(_ string, value V) error {
		all = append(all, value)
		return nil
	})
	return all, err
}

// Sweep takes out the rows that are over, and those that cannot be read, which would lie there for ever.
func (r Rows[V]) Sweep(tx Tx, over func(V) bool) error {
	_, err := RemoveRows(r.Table(tx), "", func(key string, row []byte) (bool, error) {
		value, err := r.read(key, row)
		return err != nil || over(value), nil
	})
	return err
}

func (r Rows[V]) each(fn func(key string, value V) error) func(string, []byte) error {
	return func(key string, row []byte) error {
		value, err := r.read(key, row)
		if err != nil {
			return err
		}
		return fn(key, value)
	}
}

func (r Rows[V]) read(key string, row []byte) (value V, err error) {
	if err := json.Unmarshal(row, &value); err != nil {
		return value, fmt.Errorf("read %s %q: %w", string(r), key, err)
	}
	return value, nil
}

// RemoveRows takes the rows out of a table whose key begins with prefix and for which is holds, nil for all, and returns their
// keys. None is taken out where is fails for one.
func RemoveRows(table Table, prefix string, is func(key string, row []byte) (bool, error)) (keys []string, err error) {
	err = table.Scan(prefix, func(key string, row []byte) error {
		goes := is == nil
		if !goes {
			if goes, err = is(key, row); err != nil {
				return err
			}
		}
		if goes {
			keys = append(keys, key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if err := table.Delete(key); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
