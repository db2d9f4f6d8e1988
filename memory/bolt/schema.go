package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"

	"go.etcd.io/bbolt"
)

const (
	// schema is the version of what the buckets hold. A file with a higher one is refused.
	schema = 4
	// seenInOne is the version that kept all that was seen in one level.
	seenInOne = 3
	// seenByKey is the version that kept what was seen under whole keys, and once more in order of time.
	seenByKey = 2
	// nestedTables is the version whose tables lay in a bucket of their own, a page more for every commit.
	nestedTables = 1
)

var (
	schemaKey = []byte("schema")
	// tablesBucket held the tables in the version with that number: table → bucket of key → value.
	tablesBucket = []byte("tables")
	// seenTimeBucket held the order of time up to the version seenByKey: instant, key → nothing.
	seenTimeBucket = []byte("seen by time")
)

// settle refuses files of other programs and of later versions of this one, and brings those of an earlier one up
// to date.
func (s *Store) settle() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = refuse(p)
		}
	}()
	var found uint32
	err = s.db.View(func(tx *bbolt.Tx) (err error) {
		found, err = checkSchema(tx)
		return err
	})
	if err != nil || found == schema {
		return err
	}
	if s.readOnly {
		return fmt.Errorf("%w: it has schema %d, this one knows %d; start the program once, which brings it up to date", ErrOlder, found, schema)
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		s.grows(tx)
		if found == nestedTables {
			if err := raiseTables(tx); err != nil {
				return err
			}
		}
		if found <= seenByKey {
			if err := raiseSeen(tx); err != nil {
				return err
			}
		}
		if err := addLevels(tx); err != nil {
			return err
		}
		return putSchema(tx)
	})
	if err != nil {
		return fmt.Errorf("bring it from schema %d to %d: %w", found, schema, err)
	}
	s.log.Info("the data file was brought up to date; earlier versions of this program no longer open it",
		"file", s.path, "from", found, "to", schema)
	return nil
}

// checkSchema returns the schema of a file that is ours and has all that it should.
func checkSchema(tx *bbolt.Tx) (found uint32, err error) {
	b := tx.Bucket(storeBucket)
	if b == nil {
		return 0, refuse("another program wrote it")
	}
	row := b.Get(schemaKey)
	if len(row) != 4 {
		return 0, refuse("it has no schema number")
	}
	switch found = binary.BigEndian.Uint32(row); {
	case found > schema:
		return 0, fmt.Errorf("%w: it has schema %d, this one knows %d; start the newer version", ErrNewer, found, schema)
	case found < nestedTables:
		return 0, refuse(fmt.Sprintf("there is no schema %d", found))
	}
	needed := slices.Clone(places)
	if found <= seenInOne {
		needed = slices.DeleteFunc(needed, isUpperLevel)
	}
	if found <= seenByKey {
		needed = append(needed, seenTimeBucket)
	}
	if found == nestedTables {
		needed = append(needed, tablesBucket)
	}
	for _, name := range needed {
		if tx.Bucket(name) == nil {
			return 0, refuse(fmt.Sprintf("bucket %q is missing", name))
		}
	}
	return found, nil
}

func putSchema(tx *bbolt.Tx) error {
	return tx.Bucket(storeBucket).Put(schemaKey, binary.BigEndian.AppendUint32(nil, schema))
}

// raiseTables moves the tables out of their common bucket. No row is read or written, so it takes no longer for
// large ones.
func raiseTables(tx *bbolt.Tx) error {
	all := tx.Bucket(tablesBucket)
	var names [][]byte
	err := all.ForEachBucket(func(name []byte) error {
		names = append(names, clone(name))
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		// A bucket keeps its name when it is moved.
		if string(tableBucket(string(name))) != string(name) {
			return fmt.Errorf("table %q is called as a place is; rename it with the program that wrote it", name)
		}
		if err := tx.MoveBucket(name, all, nil); err != nil {
			return fmt.Errorf("move table %q: %w", name, err)
		}
	}
	return tx.DeleteBucket(tablesBucket)
}

// raiseSeen makes digests of the keys that were seen.
func raiseSeen(tx *bbolt.Tx) error {
	var stamps [][]byte
	err := tx.Bucket(seenBucket).ForEach(func(k, v []byte) error {
		if err := checkInstant(v); err != nil {
			return fmt.Errorf("key %q of what was seen: %w", k, err)
		}
		stamps = append(stamps, append(digestOf(string(k)), v...))
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range [][]byte{seenBucket, seenTimeBucket} {
		if err := tx.DeleteBucket(name); err != nil {
			return err
		}
	}
	b, err := tx.CreateBucket(seenBucket)
	if err != nil {
		return err
	}
	return layRuns(b, stamps)
}

// addLevels makes the levels of what was seen above the one that there was.
func addLevels(tx *bbolt.Tx) error {
	for _, l := range levels[:len(levels)-1] {
		if _, err := tx.CreateBucket(l.bucket); err != nil {
			return fmt.Errorf("make the place %q: %w", l.bucket, err)
		}
	}
	return nil
}

// isUpperLevel reports whether a place came with addLevels.
func isUpperLevel(place []byte) bool {
	return slices.ContainsFunc(levels[:len(levels)-1], func(l level) bool { return bytes.Equal(l.bucket, place) })
}
