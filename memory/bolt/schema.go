package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"go.etcd.io/bbolt"
)

const (
	// schema is the version of what the buckets hold. A file with a higher one is refused.
	schema = 5
	// nestedJournals is the version that kept each session's journal in a bucket of its own, two pages more for every
	// session in a commit.
	nestedJournals = 4
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
	// journalBucket held the journals up to the version nestedJournals: session → bucket of number → instant, kind, data.
	// In a file of this version it has those that are yet to be moved.
	journalBucket = []byte("journal")

	// formerPlaces were places at the top of a file once, and are no tables' names.
	formerPlaces = [][]byte{seenTimeBucket, journalBucket}
)

// moveBatch is how many bytes of journals one commit moves, which bounds the memory it takes, but for a journal that is
// larger.
const moveBatch = 4 << 20

// worthTelling is the size from which on it is said beforehand that bringing a file up to date takes a while.
const worthTelling = 16 << 20

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
	unmoved := false
	err = s.db.View(func(tx *bbolt.Tx) (err error) {
		found, err = checkSchema(tx)
		unmoved = tx.Bucket(journalBucket) != nil
		return err
	})
	if err != nil || found == schema && !unmoved {
		return err
	}
	if unmoved {
		found = min(found, nestedJournals)
	}
	if s.readOnly {
		return fmt.Errorf("%w: it has schema %d, this one knows %d; start the program once, which brings it up to date", ErrOlder, found, schema)
	}
	if s.atOpen.Size > worthTelling {
		s.log.Info("the data file is being brought up to date; that can take a second for each ten megabytes of it", "file", s.path, "bytes", s.atOpen.Size)
	}
	if err := s.raise(); err != nil {
		return fmt.Errorf("bring it from schema %d to %d: %w", found, schema, full(err))
	}
	s.log.Info("the data file was brought up to date; earlier versions of this program no longer open it",
		"file", s.path, "from", found, "to", schema)
	return nil
}

// raise brings a file up to date: all but its journals in one transaction, and those, which can be most of it, in as many
// as it takes.
func (s *Store) raise() error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		s.grows(tx)
		found, err := checkSchema(tx)
		if err != nil || found == schema {
			return err
		}
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
		if found <= seenInOne {
			if err := addPlaces(tx, isUpperLevel); err != nil {
				return err
			}
		}
		if err := addPlaces(tx, isOfJournals); err != nil {
			return err
		}
		return putSchema(tx)
	})
	for more := true; more && err == nil; {
		err = s.db.Update(func(tx *bbolt.Tx) (err error) {
			s.grows(tx)
			if more, err = moveJournals(tx); err != nil {
				return err
			}
			return s.opts.at("move")
		})
	}
	return err
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
	if found <= nestedJournals {
		needed = append(slices.DeleteFunc(needed, isOfJournals), journalBucket)
	}
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

// addPlaces makes the places that came with a version.
func addPlaces(tx *bbolt.Tx, came func(place []byte) bool) error {
	for _, place := range places {
		if !came(place) {
			continue
		}
		if tx.Bucket(place) != nil {
			return fmt.Errorf("table %q is called as a place is; rename it with the program that wrote it", place)
		}
		if _, err := tx.CreateBucket(place); err != nil {
			return fmt.Errorf("make the place %q: %w", place, err)
		}
	}
	return nil
}

// moveJournals moves some of the journals that have buckets of their own, and reports whether there are more.
func moveJournals(tx *bbolt.Tx) (more bool, err error) {
	from := tx.Bucket(journalBucket)
	if from == nil {
		return false, nil
	}
	for size := 0; size < moveBatch; {
		name, value := from.Cursor().First()
		if name == nil {
			return false, tx.DeleteBucket(journalBucket)
		}
		name = clone(name)
		moved := 0
		if value == nil {
			moved, err = moveJournal(tx, string(name), from.Bucket(name))
		} else {
			err = errors.New("it is no journal")
		}
		if err == nil {
			err = from.DeleteBucket(name)
		}
		if err != nil {
			return true, fmt.Errorf("move the journal of %q: %w", name, err)
		}
		size += moved
	}
	return true, nil
}

// moveJournal copies a journal's entries to where all are, and returns how many bytes they have.
func moveJournal(tx *bbolt.Tx, session string, from *bbolt.Bucket) (size int, err error) {
	names, rows := tx.Bucket(sessionBucket), tx.Bucket(entryBucket)
	if first, _ := from.Cursor().First(); first == nil {
		return 0, nil
	}
	rows.FillPercent = appendFill
	number, err := begin(names, rows, session)
	if err != nil {
		return 0, err
	}
	err = from.ForEach(func(k, v []byte) error {
		if len(k) != numberSize || v == nil {
			return fmt.Errorf("it has a row %q that is no entry", k)
		}
		size += len(k) + len(v)
		return rows.Put(append(appendNumber(nil, number), k...), clone(v))
	})
	return size, err
}

// isUpperLevel reports whether a place came when what was seen was put into levels.
func isUpperLevel(place []byte) bool {
	return slices.ContainsFunc(levels[:len(levels)-1], func(l level) bool { return bytes.Equal(l.bucket, place) })
}

// isOfJournals reports whether a place came when journals were put into one tree.
func isOfJournals(place []byte) bool {
	return bytes.Equal(place, sessionBucket) || bytes.Equal(place, entryBucket)
}
