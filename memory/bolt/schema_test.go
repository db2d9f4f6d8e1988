package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"nudge/memory"
)

// change changes a closed data file behind the store's back.
func change(t *testing.T, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// lowerJournals brings a file back to the schema that kept each journal in a bucket of its own.
func lowerJournals(tx *bbolt.Tx) error {
	all, err := tx.CreateBucketIfNotExists(journalBucket)
	if err != nil {
		return err
	}
	err = tx.Bucket(sessionBucket).ForEach(func(session, number []byte) error {
		b, err := all.CreateBucket(session)
		if err != nil {
			return err
		}
		c := tx.Bucket(entryBucket).Cursor()
		for k, v := c.Seek(number); bytes.HasPrefix(k, number) && err == nil; k, v = c.Next() {
			if k = k[numberSize:]; !bytes.Equal(k, appendNumber(nil, 0)) {
				err = b.Put(k, v)
			}
		}
		return err
	})
	return errors.Join(err, tx.DeleteBucket(sessionBucket), tx.DeleteBucket(entryBucket), lowerSchema(tx, nestedJournals))
}

func lowerSchema(tx *bbolt.Tx, to uint32) error {
	return tx.Bucket(storeBucket).Put(schemaKey, binary.BigEndian.AppendUint32(nil, to))
}

// lowerLevels brings a file back to the schema that kept all that was seen in one level.
func lowerLevels(tx *bbolt.Tx) error {
	if err := lowerJournals(tx); err != nil {
		return err
	}
	var stamps [][]byte
	for _, l := range levels {
		err := tx.Bucket(l.bucket).ForEach(func(_, v []byte) error {
			for n := range run(v).len() {
				digest, at := run(v).stamp(n)
				stamps = append(stamps, slices.Concat(digest, at))
			}
			return nil
		})
		if err := errors.Join(err, tx.DeleteBucket(l.bucket)); err != nil {
			return err
		}
	}
	b, err := tx.CreateBucket(seenBucket)
	if err != nil {
		return err
	}
	return errors.Join(layRuns(b, stamps), lowerSchema(tx, seenInOne))
}

// lowerSeen brings a file, in which no other keys were seen than those of seed, back to the schema that kept whole keys.
func lowerSeen(tx *bbolt.Tx) error {
	if err := lowerLevels(tx); err != nil {
		return err
	}
	left := 0
	byDigest := map[string][]byte{}
	err := tx.Bucket(seenBucket).ForEach(func(_, v []byte) error {
		for n := range run(v).len() {
			digest, at := run(v).stamp(n)
			byDigest[string(digest)] = bytes.Clone(at)
			left++
		}
		return nil
	})
	err2 := tx.DeleteBucket(seenBucket)
	byKey, err3 := tx.CreateBucket(seenBucket)
	byTime, err4 := tx.CreateBucket(seenTimeBucket)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	for i := range 30 {
		for _, name := range []string{"alice", "bob"} {
			key := fmt.Append(nil, name, i)
			if at, found := byDigest[string(digestOf(string(key)))]; found {
				err = errors.Join(err, byKey.Put(key, at), byTime.Put(slices.Concat(at, key), []byte{}))
				left--
			}
		}
	}
	if left != 0 {
		return errors.New("other keys were seen")
	}
	return errors.Join(err, lowerSchema(tx, seenByKey))
}

// lower brings a file that seed made back to the first schema, whose tables lay in a bucket of their own.
func lower(tx *bbolt.Tx) error {
	if err := lowerSeen(tx); err != nil {
		return err
	}
	all, err := tx.CreateBucket(tablesBucket)
	if err != nil {
		return err
	}
	var tables [][]byte
	err = tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
		if !slices.ContainsFunc(slices.Concat(places, formerPlaces, [][]byte{tablesBucket}), func(b []byte) bool { return bytes.Equal(b, name) }) {
			tables = append(tables, bytes.Clone(name))
		}
		return nil
	})
	for _, name := range tables {
		err = errors.Join(err, tx.MoveBucket(name, nil, all))
	}
	return errors.Join(err, lowerSchema(tx, nestedTables))
}

// seedTables makes a file with tables of every size: whole in their parent's page, of one page, of many, and without a row.
func seedTables(t *testing.T) (path string) {
	t.Helper()
	path = seed(t)
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(context.Background(), func(tx memory.Tx) error {
		errs := []error{tx.Table("empty").Put("k", nil), tx.Table("empty").Delete("k")}
		for name, rows := range map[string]int{"a": 1, "two\x00words": 20, "many": 2000} {
			for i := range rows {
				errs = append(errs, tx.Table(name).Put(fmt.Sprintf("%04d", i), bytes.Repeat([]byte(name), 20)))
			}
		}
		return errors.Join(errs...)
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// contents returns every row of a closed file by bucket and key, and of what was seen every stamp: the same may lie in
// other runs and levels.
func contents(t *testing.T, path string) map[string]string {
	t.Helper()
	rows := map[string]string{}
	isLevel := func(at string) bool {
		return slices.ContainsFunc(levels, func(l level) bool { return fmt.Sprintf("%q", l.bucket) == at })
	}
	var walk func(at string, b *bbolt.Bucket) error
	walk = func(at string, b *bbolt.Bucket) error {
		if !isLevel(at) {
			rows[at] = fmt.Sprint("next ", b.Sequence())
		}
		return b.ForEach(func(k, v []byte) error {
			if v == nil {
				return walk(fmt.Sprintf("%s/%q", at, k), b.Bucket(k))
			}
			if r, err := cutRun(k, v); err == nil && isLevel(at) {
				for n := range r.len() {
					digest, instant := r.stamp(n)
					rows[fmt.Sprintf("seen %x", digest)] = string(instant)
				}
				return nil
			}
			rows[fmt.Sprintf("%s/%q", at, k)] = string(v)
			return nil
		})
	}
	change(t, path, func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return walk(fmt.Sprintf("%q", name), b) })
	})
	return rows
}

func TestEarlierSchema(t *testing.T) {
	t.Run("tables in a bucket", func(t *testing.T) { testEarlierSchema(t, lower, `"tables"/"many"/"1999"`) })
	t.Run("seen by key", func(t *testing.T) { testEarlierSchema(t, lowerSeen, `"seen"/"alice3"`) })
	t.Run("journals in buckets", func(t *testing.T) { testEarlierSchema(t, lowerJournals, `"journal"/"alice"`) })
	t.Run("seen in one level", func(t *testing.T) { testEarlierSchema(t, lowerLevels, `"store"/"schema"`) })
}

func testEarlierSchema(t *testing.T, lower func(tx *bbolt.Tx) error, had string) {
	path := seedTables(t)
	want := contents(t, path)
	change(t, path, lower)
	lowered := contents(t, path)
	if _, found := lowered[had]; !found || maps.Equal(lowered, want) {
		t.Fatal("the file was not lowered")
	}
	var log bytes.Buffer
	for range 2 {
		s, err := Open(path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := checkFile(t, s); err != nil {
			t.Fatal(err)
		}
		if got := contents(t, path); !maps.Equal(got, want) {
			t.Errorf("%d rows of %d, or others, are there", len(got), len(want))
		}
	}
	if n := strings.Count(log.String(), "brought up to date"); n != 1 {
		t.Errorf("brought up to date %d times: %s", n, log.String())
	}
	s := open(t, filepath.Dir(path), Options{})
	err := s.Update(context.Background(), func(tx memory.Tx) error {
		n := 0
		err := tx.Table("many").Scan("", func(string, []byte) error { n++; return nil })
		_, found, err2 := tx.Table("t").Get("alice3")
		if n != 2000 || !found {
			t.Errorf("%d rows of 2000; alice's found: %t", n, found)
		}
		swept, err3 := tx.Seen().Sweep(time.Unix(3, 0), 100)
		old, err4 := tx.Seen().Mark("alice2", time.Unix(9, 0))
		kept, err5 := tx.Seen().Mark("bob3", time.Unix(9, 0))
		if swept != 6 || !old || kept {
			t.Errorf("swept %d of what was seen; the old one is new: %t; the kept one is: %t", swept, old, kept)
		}
		return errors.Join(err, err2, err3, err4, err5, tx.Table("two\x00words").Put("more", nil))
	})
	if err := errors.Join(err, checkFile(t, s)); err != nil {
		t.Error(err)
	}
}

// Journals are moved a part at a time, and an opening that was cut off goes on where it was. Until then nobody reads the
// file.
func TestJournalsMoveInParts(t *testing.T) {
	path := seedTables(t)
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"large", "more", "x\x00y", "z"} { // in order of name, as they are moved

		err := s.Update(context.Background(), func(tx memory.Tx) error {
			_, err := tx.Journal().Append(name, slices.Repeat([]memory.Entry{{Kind: "k", Data: bytes.Repeat([]byte{'d'}, 1<<20)}}, 3)...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := mustClose(t, s)
	change(t, path, lowerJournals)
	change(t, path, func(tx *bbolt.Tx) error { // what never had an entry is no journal
		_, err := tx.Bucket(journalBucket).CreateBucket([]byte("empty"))
		return err
	})
	cut, parts := errors.New("cut off"), 0
	for err = cut; errors.Is(err, cut); {
		parts++
		done := 0
		s, err = Open(path, Options{step: func(string) error {
			if done++; done > 1 {
				return cut
			}
			return nil
		}})
		if err == nil {
			break
		}
		if _, err := OpenReadOnly(path, Options{}); !errors.Is(err, ErrOlder) {
			t.Errorf("read half-way, after part %d: %v", parts, err)
		}
	}
	if err != nil || parts < 3 {
		t.Fatalf("open it, the %d. time: %v", parts, err)
	}
	if err := checkFile(t, s); err != nil {
		t.Error(err)
	}
	if got := mustClose(t, s); !maps.Equal(got, want) {
		t.Errorf("%d rows of %d, or others, are there", len(got), len(want))
	}
}

// A file that cannot be brought up to date keeps its schema and everything in it.
func TestEarlierSchemaStays(t *testing.T) {
	nested := func(name string) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			_, err := tx.Bucket(tablesBucket).CreateBucket([]byte(name))
			return err
		}
	}
	cases := map[string]struct {
		change func(tx *bbolt.Tx) error
		want   string
	}{
		"no order":        {func(tx *bbolt.Tx) error { return tx.DeleteBucket(seenTimeBucket) }, `bucket "seen by time" is missing`},
		"seen at no time": {func(tx *bbolt.Tx) error { return tx.Bucket(seenBucket).Put([]byte("k"), []byte("v")) }, `key "k" of what was seen`},
		"no tables":       {func(tx *bbolt.Tx) error { return tx.DeleteBucket(tablesBucket) }, `bucket "tables" is missing`},
		"no journals":     {func(tx *bbolt.Tx) error { return tx.DeleteBucket(journalBucket) }, `bucket "journal" is missing`},
		"a place's name":  {nested("inbox"), `table "inbox" is called as a place is`},
		"nearly one":      {nested("due\x00"), `is called as a place is`},
	}
	for name, c := range cases {
		path := seedTables(t)
		change(t, path, lower)
		change(t, path, c.change)
		before := contents(t, path)
		for range 2 { // the second time too, so the first has let go of the lock
			s, err := Open(path, Options{})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !maps.Equal(contents(t, path), before) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// Journals that cannot be moved, or whose place is taken, end the opening with a line that says which it was.
func TestJournalsThatStay(t *testing.T) {
	in := func(fn func(all *bbolt.Bucket) error) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return fn(tx.Bucket(journalBucket)) }
	}
	cases := map[string]struct {
		change func(tx *bbolt.Tx) error
		want   string
	}{
		"a row":         {in(func(all *bbolt.Bucket) error { return all.Put([]byte("carol"), []byte("v")) }), `journal of "carol": it is no journal`},
		"no entry":      {in(func(all *bbolt.Bucket) error { return all.Bucket([]byte("bob")).Put([]byte("short"), []byte("v")) }), `journal of "bob": it has a row "short" that is no entry`},
		"a place taken": {func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(entryBucket); return err }, `table "journal entries" is called as a place is`},
	}
	for name, c := range cases {
		path := seed(t)
		change(t, path, lowerJournals)
		change(t, path, c.change)
		for range 2 {
			s, err := Open(path, Options{})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestTablesAndPlacesAreApart(t *testing.T) {
	for _, place := range places {
		if bytes.Equal(tableBucket(string(place)), place) {
			t.Errorf("table %q would be in the place", place)
		}
	}
	name := rapid.OneOf(
		rapid.Map(rapid.SampledFrom(places), func(b []byte) string { return string(b) }),
		rapid.StringOfN(rapid.RuneFrom([]rune{0, 'a'}), 1, 3, -1))
	zeros := rapid.Map(rapid.IntRange(0, 3), func(n int) string { return strings.Repeat("\x00", n) })
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a")+zeros.Draw(t, "end of a"), name.Draw(t, "b")+zeros.Draw(t, "end of b")
		if a != b && bytes.Equal(tableBucket(a), tableBucket(b)) {
			t.Errorf("tables %q and %q share a bucket", a, b)
		}
	})
	s := open(t, t.TempDir(), Options{})
	err := s.Update(context.Background(), func(tx memory.Tx) error {
		var errs []error
		for _, place := range places {
			for _, end := range []string{"", "\x00", "\x00\x00"} {
				errs = append(errs, tx.Table(string(place)+end).Put("k", []byte(end)))
			}
		}
		return errors.Join(append(errs, readRows(tx, places))...)
	})
	if err := errors.Join(err, readAll(s), checkFile(t, s)); err != nil {
		t.Error(err)
	}
}

func readRows(tx memory.Tx, names [][]byte) error {
	for _, name := range names {
		for _, end := range []string{"", "\x00", "\x00\x00"} {
			value, _, err := tx.Table(string(name) + end).Get("k")
			if err != nil || string(value) != end {
				return fmt.Errorf("table %q has %q: %w", string(name)+end, value, err)
			}
		}
	}
	return nil
}
