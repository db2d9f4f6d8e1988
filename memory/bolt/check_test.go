package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"nudge/memory"
	"nudge/memory/memorytest"
)

// checkClosed checks a file that nobody holds. A file that is refused is a problem, too.
func checkClosed(path string) (problems []string, n Checked, err error) {
	s, err := OpenReadOnly(path, Options{})
	if errors.Is(err, memory.ErrDamaged) {
		return []string{err.Error()}, n, nil
	}
	if err != nil {
		return nil, n, err
	}
	n, err = s.Check(context.Background(), func(problem string) { problems = append(problems, problem) }, nil)
	return problems, n, errors.Join(err, s.Close())
}

func TestCheckCounts(t *testing.T) {
	path := seedTables(t)
	before := read(t, path)
	var last, total int64
	s, err := OpenReadOnly(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Check(context.Background(), func(problem string) { t.Error(problem) }, func(done, of int64) {
		if done <= last || done > of {
			t.Errorf("progress %d of %d after %d", done, of, last)
		}
		last, total = done, of
	})
	if err := errors.Join(err, s.Update(context.Background(), put("k"))); !errors.Is(err, errReadOnly) {
		t.Errorf("a write to what was opened to be read: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n.Sessions != 2 || n.Rows < 2021 || n.Pages != last || total*pageSize > int64(len(before)) || n.Problems != 0 {
		t.Errorf("checked %+v, progress up to %d of %d", n, last, total)
	}
	if names, err := filepath.Glob(path + "*"); err != nil || len(names) != 1 || !bytes.Equal(read(t, path), before) {
		t.Errorf("checking has left something: %q, %v", names, err)
	}
}

// Commits that go on beside a check are no problem, and the check is none for them.
func TestCheckBesideCommits(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	end := make(chan struct{})
	var group sync.WaitGroup
	for w := range 2 {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-end:
					return
				default:
				}
				err := s.Update(context.Background(), func(tx memory.Tx) error {
					_, err := tx.Journal().Append(fmt.Sprint(w), memory.Entry{Data: make([]byte, 300)})
					_, err2 := tx.Seen().Mark(fmt.Sprint(w, i), time.Unix(int64(i), 0))
					_, err3 := tx.Seen().Sweep(time.Unix(int64(i)-20, 0), 10)
					return errors.Join(err, err2, err3, tx.Due().Put(memory.DueRow{Key: fmt.Sprint(i % 10), At: time.Unix(int64(i), 0)}),
						tx.Table("t").Put(fmt.Sprint(i%100), make([]byte, i%5000)))
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 30 {
		if _, err := s.Check(context.Background(), func(problem string) { t.Error(problem) }, nil); err != nil {
			t.Error(err)
		}
		if space, err := s.Space(); err != nil || space.Free < 0 || space.Free >= space.Size {
			t.Errorf("space %+v, %v", space, err)
		}
	}
	close(end)
	group.Wait()
	if err := checkFile(t, s); err != nil {
		t.Error(err)
	}
}

// What belongs to one commit is read while none is under way.
func TestSnapshotWaitsForCommits(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	release := hold(s)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, _, err := s.snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("beside a commit: %v", err)
	}
	release()
}

func TestCheckEnds(t *testing.T) {
	s := open(t, filepath.Dir(seed(t)), Options{})
	ctx, cancel := context.WithCancel(context.Background())
	_, err := s.Check(ctx, func(string) {}, func(int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	err = s.Update(context.Background(), func(memory.Tx) error {
		_, err := s.Check(context.Background(), func(string) {}, nil)
		return err
	})
	if !errors.Is(err, ErrNested) {
		t.Errorf("a check inside an update: %v", err)
	}
}

// pagesOf are the pages of a whole file by use.
func pagesOf(t *testing.T, file []byte) (m meta, used, free bitmap) {
	t.Helper()
	m, _, err := newestMeta(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	w := pageWalk{ctx: context.Background(), file: bytes.NewReader(file), meta: m, report: func(problem string) { t.Fatal(problem) }}
	if err := w.walk(); err != nil || w.lost != 0 {
		t.Fatal(err, w.lost)
	}
	return m, w.used, w.free
}

func TestCheckFindsDamagedPages(t *testing.T) {
	whole := read(t, seed(t))
	m, used, free := pagesOf(t, whole)
	path := filepath.Join(t.TempDir(), "nudge.db")
	for page := range m.pages {
		for name, way := range map[string]func(page []byte){
			"ones":    func(page []byte) { copy(page, bytes.Repeat([]byte{0xff}, pageSize)) },
			"zeros":   func(page []byte) { clear(page) },
			"mangled": func(page []byte) { copy(page[20:], bytes.Repeat([]byte{0x7f}, 60)) },
		} {
			b := slices.Clone(whole)
			way(b[page*pageSize : (page+1)*pageSize])
			write(t, path, b)
			problems, _, err := checkClosed(path)
			if err != nil {
				t.Errorf("page %d, %s: %v", page, name, err)
			}
			if silent := free.has(page); silent != (len(problems) == 0) {
				t.Errorf("page %d, %s (used %t, free %t): %q", page, name, used.has(page), free.has(page), problems)
			}
			for _, problem := range problems {
				if strings.Contains(problem, "\n") || !strings.Contains(problem, "; ") {
					t.Errorf("page %d, %s: %q", page, name, problem)
				}
			}
		}
	}
}

// One page of a file with the rows of another's is what bbolt can walk round and round in.
func TestCheckFindsCircles(t *testing.T) {
	whole := read(t, seedTables(t))
	m, used, _ := pagesOf(t, whole)
	path := filepath.Join(t.TempDir(), "nudge.db")
	page := func(b []byte, id uint64) []byte { return b[id*pageSize : (id+1)*pageSize] }
	var branches []uint64
	for id := uint64(2); id < m.pages; id++ {
		if h := cutHeader(page(whole, id)); used.has(id) && h.id == id && h.flags == branchFlag {
			branches = append(branches, id)
		}
	}
	circles := 0
	rapid.Check(t, func(t *rapid.T) {
		inUse := rapid.Uint64Range(2, m.pages-1).Filter(used.has)
		from, to := rapid.OneOf(rapid.SampledFrom(branches), inUse).Draw(t, "from"), inUse.Draw(t, "to")
		b := slices.Clone(whole)
		copy(page(b, to), page(whole, from))
		binary.NativeEndian.PutUint64(page(b, to), to)
		if bytes.Equal(b, whole) {
			return
		}
		if err := writeFile(path, b); err != nil {
			t.Fatal(err)
		}
		problems, _, err := checkClosed(path)
		// Rows over rows can be as good as those before; what points to pages then does so twice, unless it lies over a root
		// that led to where it was: that leads elsewhere and breaks nothing, but loses what else it led to.
		points := cutHeader(page(whole, from)).flags == branchFlag && cutHeader(page(whole, to)).id == to && to != m.freelist
		// The store's own walk is the only one beside commits.
		w := pageWalk{ctx: context.Background(), file: bytes.NewReader(b), meta: m, report: func(string) {}}
		if err := errors.Join(err, w.walk()); err != nil || points && (len(problems) == 0 || w.bad == 0 && w.lost == 0) {
			t.Errorf("page %d over page %d: %d problems, %d bad, %d lost, %v", from, to, len(problems), w.bad, w.lost, err)
		}
		if points {
			circles++
		}
	})
	if circles == 0 {
		t.Error("no page was overwritten")
	}
}

func TestCheckFindsEmptiedPages(t *testing.T) {
	path := seedTables(t)
	whole := read(t, path)
	m, used, _ := pagesOf(t, whole)
	emptied := 0
	for id := range m.pages {
		page := whole[id*pageSize : (id+1)*pageSize]
		if h := cutHeader(page); !used.has(id) || h.id != id || h.flags != branchFlag {
			continue
		}
		below, _ := cutRow(page, branchFlag, 1)
		b := slices.Clone(whole)
		binary.NativeEndian.PutUint16(b[below.child*pageSize+10:], 0)
		write(t, path, b)
		if problems, _, err := checkClosed(path); err != nil || len(problems) == 0 {
			t.Errorf("page %d without rows: %q, %v", below.child, problems, err)
		}
		emptied++
	}
	if emptied == 0 {
		t.Error("no page points to others")
	}
}

// Whatever bytes a file has, it is refused or checked, and both come to an end.
func TestCheckAnyBytes(t *testing.T) {
	whole := read(t, seedTables(t))
	path := filepath.Join(t.TempDir(), "nudge.db")
	rapid.Check(t, func(t *rapid.T) {
		b := slices.Clone(whole)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			if rapid.Bool().Draw(t, "in a page's head") {
				at = at/pageSize*pageSize + at%64
			}
			b[at] = rapid.Byte().Draw(t, "byte")
		}
		if err := writeFile(path, b[:rapid.IntRange(len(b)/2, len(b)).Draw(t, "length")]); err != nil {
			t.Fatal(err)
		}
		if _, _, err := checkClosed(path); err != nil && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrOlder) {
			t.Error(err)
		}
	})
}

func TestCheckFindsRows(t *testing.T) {
	bucket := func(name []byte, fn func(b *bbolt.Bucket) error) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return fn(tx.Bucket(name)) }
	}
	set := func(name []byte, k, v []byte) func(tx *bbolt.Tx) error {
		return bucket(name, func(b *bbolt.Bucket) error { return b.Put(k, v) })
	}
	next := func(name []byte, id uint64) func(tx *bbolt.Tx) error {
		return bucket(name, func(b *bbolt.Bucket) error { return b.SetSequence(id) })
	}
	remove := func(name []byte, which int) func(tx *bbolt.Tx) error {
		return bucket(name, func(b *bbolt.Bucket) error {
			c := b.Cursor()
			k, _ := c.First()
			for range which {
				k, _ = c.Next()
			}
			return b.Delete(bytes.Clone(k))
		})
	}
	const alice, bob = 1, 2 // the numbers of their sessions, which have sixty entries
	cut := func(session, entry uint64) func(tx *bbolt.Tx) error {
		return bucket(entryBucket, func(b *bbolt.Bucket) error { return b.Delete(entryKey(session, entry)) })
	}
	nested := func(name []byte) func(tx *bbolt.Tx) error {
		return bucket(name, func(b *bbolt.Bucket) error { _, err := b.CreateBucket([]byte("nested")); return err })
	}
	both := func(a, b func(tx *bbolt.Tx) error) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return errors.Join(a(tx), b(tx)) }
	}
	long := bytes.Repeat([]byte("x"), memory.MaxID+1)
	noon := appendTime(nil, time.Unix(1, 0))
	low := append(make([]byte, digestSize-1), 1) // a digest, below which there is hardly another
	// stamped is a run of digests that begin with these bytes, of which the first was seen first.
	stamped := func(digests ...byte) run {
		var stamps []byte
		for i, d := range digests {
			digest := append([]byte{d}, low[1:]...)
			stamps = append(append(stamps, digest...), appendTime(nil, time.Unix(int64(2+i), 0))...)
		}
		return newRun(stamps)
	}
	cases := map[string]struct {
		change func(tx *bbolt.Tx) error
		want   string
	}{
		"gap":                  {cut(alice, 3), `journal of "alice" has entry 4 where 3 should be`},
		"begins late":          {cut(alice, 1), `has entry 2 where 1 should be`},
		"entry cut off":        {set(entryBucket, entryKey(alice, 2), []byte("short")), `entry 2 of the journal of "alice" cannot be read`},
		"number too long":      {set(entryBucket, append(entryKey(alice, 60), 1), append(noon, 0)), `its number is none`},
		"number cut off":       {set(entryBucket, appendNumber(nil, alice), append(noon, 0)), `a row is too short`},
		"no number":            {set(entryBucket, entryKey(0, 1), append(noon, 0)), `its number is none`},
		"bucket for an entry":  {bucket(entryBucket, func(b *bbolt.Bucket) error { _, err := b.CreateBucket(entryKey(alice, 61)); return err }), `a bucket stands where`},
		"empty journal":        {both(set(sessionBucket, []byte("carol"), appendNumber(nil, 3)), both(set(entryBucket, entryKey(3, 0), []byte("carol")), next(sessionBucket, 3))), `journal of "carol" is empty`},
		"unlisted journal":     {bucket(sessionBucket, func(b *bbolt.Bucket) error { return b.Delete([]byte("alice")) }), `journal of "alice" stands under another number`},
		"journal without name": {cut(bob, 0), `entries of session number 2 stand under no name`},
		"journal's other name": {set(entryBucket, entryKey(bob, 0), []byte("carol")), `journal of "bob" is not where its number says`},
		"one journal for two":  {set(sessionBucket, []byte("bob"), appendNumber(nil, alice)), `journal of "bob" is not where its number says`},
		"row for a journal":    {set(sessionBucket, []byte("carol"), []byte("v")), `journal sessions has a row "carol" that cannot be read`},
		"journal to come":      {set(sessionBucket, []byte("carol"), appendNumber(nil, 3)), `its id is 3, and the last that was given is 2`},
		"journal's long name":  {set(entryBucket, entryKey(bob, 0), long), "is of no session"},
		"mail without session": {set(inboxBucket, []byte("mail"), nil), `inbox has a row "mail" that cannot be read`},
		"mail without id":      {set(inboxBucket, appendName(nil, "alice"), nil), "a row is too short"},
		"mail's id too long":   {set(inboxBucket, append(appendNumber(appendName(nil, "alice"), 1), 1), nil), "its id is too long"},
		"mail's long session":  {set(inboxBucket, appendNumber(appendName(nil, string(long)), 1), nil), "session of 1025 bytes"},
		"mail to come":         {set(inboxBucket, appendNumber(appendName(nil, "alice"), 61), nil), "its id is 61, and the last that was given is 60"},
		"parcel cut off":       {set(outboxBucket, appendNumber(nil, 2), []byte{9}), "outbox has a row"},
		"parcel to come":       {set(outboxBucket, appendNumber(nil, 99), parcelRow(memory.Parcel{Conversation: "c"})), "its id is 99"},
		"parcel to nobody":     {set(outboxBucket, appendNumber(nil, 2), parcelRow(memory.Parcel{})), "conversation of 0 bytes"},
		"seen, cut off":        {set(seenBucket, low, stamped(1, 2)[:timeSize+stampSize-1]), "a row is too short"},
		"seen, a short digest": {set(seenBucket, low[1:], stamped(1, 2)), "a row is too short"},
		"seen at no time":      {set(seenBucket, low, newRun(slices.Concat(low, bytes.Repeat([]byte{0xff}, timeSize)))), "its instant is none"},
		"seen, out of order":   {set(seenBucket, low, stamped(2, 1)), "a digest is out of order"},
		"seen twice":           {set(seenBucket, low, stamped(1, 1)), "a digest is out of order"},
		"seen below its run":   {set(seenBucket, bytes.Repeat([]byte{1}, digestSize), stamped(0, 1)), "a digest is out of order"},
		"seen above its run":   {both(set(seenBucket, firstRun, stamped(0, 0xff)), set(seenBucket, bytes.Repeat([]byte{9}, digestSize), stamped(10))), "the run before it has digests that belong here"},
		"seen in two levels":   {both(set(seenNewerBucket, firstRun, stamped(1)), set(seenBucket, firstRun, stamped(0, 1))), "a digest that a lower level has as well"},
		"a new one, cut off":   {set(seenNewestBucket, firstRun, stamped(1)[:timeSize]), "seen newest has a row"},
		"seen, another oldest": {set(seenBucket, low, append(clone(noon), stamped(1, 2)[timeSize:]...)), "its oldest instant is another"},
		"due, not by time":     {remove(dueTimeBucket, 5), "of what is due"},
		"due by time only":     {remove(dueBucket, 5), "of what is due"},
		"due cut off":          {set(dueBucket, []byte("k"), []byte("short")), "due has a row"},
		"bucket in the seen":   {nested(seenBucket), "a bucket stands where"},
		"bucket in a table":    {nested([]byte("t")), `t has a row "nested"`},
		"table's long row":     {set([]byte("t"), long, nil), "row of 1025 bytes"},
	}
	for name, c := range cases {
		path := seed(t)
		change(t, path, c.change)
		problems, n, err := checkClosed(path)
		if err != nil || len(problems) == 0 || int(n.Problems) != len(problems) ||
			!slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) && strings.Contains(p, "; ") }) {
			t.Errorf("%s: %q, %v; want %q", name, problems, err, c.want)
		}
	}
}

// setFree writes a file's list of free pages anew.
func setFree(t *testing.T, path string, change func(ids []uint64, used bitmap) []uint64) {
	t.Helper()
	b := read(t, path)
	m, used, free := pagesOf(t, b)
	var ids []uint64
	for id := range m.pages {
		if free.has(id) {
			ids = append(ids, id)
		}
	}
	page := b[m.freelist*pageSize:]
	ids = change(ids, used)
	binary.NativeEndian.PutUint16(page[10:], uint16(len(ids)))
	for i, id := range ids {
		binary.NativeEndian.PutUint64(page[pageHeaderSize+8*i:], id)
	}
	write(t, path, b)
}

func TestCheckFindsLostSpace(t *testing.T) {
	path := seed(t)
	setFree(t, path, func(ids []uint64, _ bitmap) []uint64 { return ids[1:] })
	problems, _, err := checkClosed(path)
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "1 pages are neither in use nor free") || !strings.Contains(problems[0], "compact") {
		t.Errorf("%q, %v", problems, err)
	}
	if _, _, err := Compact(path, Options{}); err != nil {
		t.Error(err)
	}
	if problems, _, err := checkClosed(path); err != nil || len(problems) != 0 {
		t.Errorf("when compacted: %q, %v", problems, err)
	}
	path = seed(t)
	setFree(t, path, func(ids []uint64, used bitmap) []uint64 {
		for id := uint64(2); ; id++ {
			if used.has(id) {
				return slices.Sorted(slices.Values(append(ids, id)))
			}
		}
	})
	problems, _, err = checkClosed(path)
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "in use and free at once") {
		t.Errorf("%q, %v", problems, err)
	}
	if _, _, err := Compact(path, Options{}); !errors.Is(err, memory.ErrDamaged) {
		t.Errorf("compacting a file with a page in use and free: %v", err)
	}
}
