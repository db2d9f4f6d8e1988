package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"nudge/memory"
	"nudge/memory/memorytest"
)

// inChild is what the test program does with the file that an environment variable names, instead of testing.
var inChild = map[string]func(path string){holdEnv: holdFile}

func TestMain(m *testing.M) {
	for env, run := range inChild {
		if path := os.Getenv(env); path != "" {
			run(path)
		}
	}
	goleak.VerifyTestMain(m)
}

// open opens the store in a directory and closes it after the test.
func open(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(filepath.Join(dir, "nudge.db"), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// checkFile has every page and row of a store's file checked, before it is closed and after.
func checkFile(t testing.TB, s *Store) error {
	t.Helper()
	told := func(problem string) { t.Errorf("check of %s: %s", s.path, problem) }
	if _, err := s.Check(context.Background(), told, nil); err != nil && !errors.Is(err, memory.ErrClosed) {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	closed, err := OpenReadOnly(s.path, Options{})
	if err != nil {
		return err
	}
	_, err = closed.Check(context.Background(), told, nil)
	return errors.Join(err, closed.Close())
}

// checked is a store whose file is checked whenever it is closed.
type checked struct {
	*Store
	close func() error
}

func (c *checked) Close() error { return c.close() }

func TestStore(t *testing.T) {
	memorytest.Run(t, func(t *testing.T, dir string) memory.Store {
		s, err := Open(filepath.Join(dir, "new", "nudge.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return &checked{Store: s, close: sync.OnceValue(func() error { return checkFile(t, s) })}
	})
}

func put(key string) func(memory.Tx) error {
	return func(tx memory.Tx) error { return tx.Table("t").Put(key, []byte("value of "+key)) }
}

func has(t *testing.T, s *Store, key string) (found bool) {
	t.Helper()
	err := s.View(context.Background(), func(tx memory.Tx) (err error) {
		_, found, err = tx.Table("t").Get(key)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// hold occupies the writer until the returned function is called, so that what comes meanwhile shares a batch.
func hold(s *Store) (release func()) {
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- s.Update(context.Background(), func(memory.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	return func() { close(end); <-done }
}

// queued waits until n calls wait for the writer.
func queued(s *Store, n int) {
	for len(s.writer.queue) < n {
		runtime.Gosched()
	}
}

// together runs the functions as one batch and returns their results in order.
func together(s *Store, fns ...func(memory.Tx) error) []error {
	release := hold(s)
	results := make([]error, len(fns))
	var group sync.WaitGroup
	for i, fn := range fns {
		group.Go(func() { results[i] = s.Update(context.Background(), fn) })
		queued(s, i+1)
	}
	release()
	group.Wait()
	return results
}

func TestUpdatesShareACommit(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	txid := func() (id int) {
		if err := s.db.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil }); err != nil {
			t.Fatal(err)
		}
		return id
	}
	before := txid()
	var fns []func(memory.Tx) error
	for i := range 100 {
		fns = append(fns, put(fmt.Sprint("k", i)))
	}
	if err := errors.Join(together(s, fns...)...); err != nil {
		t.Fatal(err)
	}
	if n := txid() - before; n != 1 {
		t.Errorf("100 updates took %d commits", n)
	}
	if err := s.Update(context.Background(), func(tx memory.Tx) error { _, _, err := tx.Table("t").Get("k"); return err }); err != nil {
		t.Error(err)
	}
	if n := txid() - before; n != 1 {
		t.Error("an update that wrote nothing was committed")
	}
}

func TestFailureInABatch(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	refused := errors.New("refused")
	var seen []bool
	results := together(s,
		put("a"),
		func(tx memory.Tx) error { return errors.Join(put("b")(tx), refused) },
		func(tx memory.Tx) error { _ = put("c")(tx); panic("on purpose\nand at length") },
		func(memory.Tx) error { return refused }, // wrote nothing: the others need not run again
		func(tx memory.Tx) error { _ = put("d")(tx); runtime.Goexit(); return nil },
		func(tx memory.Tx) error {
			seen = nil
			for _, key := range []string{"a", "b", "c", "d"} {
				_, found, err := tx.Table("t").Get(key)
				if err != nil {
					return err
				}
				seen = append(seen, found)
			}
			return put("e")(tx)
		},
		func(tx memory.Tx) error {
			_ = put("f")(tx)
			return tx.Table("t").Scan("", func(string, []byte) error { panic("in a scan") })
		},
	)
	if got := fmt.Sprint(seen); got != "[true false false false]" {
		t.Errorf("what the later one saw of the earlier: %s", got)
	}
	for i, want := range []string{"", "refused", "the function panicked: on purpose and at length", "refused", "ended its goroutine", "", "in a scan"} {
		if (results[i] == nil) != (want == "") || results[i] != nil && !strings.Contains(results[i].Error(), want) {
			t.Errorf("result %d: %v, want %q", i, results[i], want)
		}
		if errors.Is(results[i], memory.ErrDamaged) {
			t.Errorf("result %d takes a caller's mistake for damage: %v", i, results[i])
		}
	}
	for key, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false, "e": true, "f": false} {
		if has(t, s, key) != want {
			t.Errorf("%s kept: %t", key, !want)
		}
	}
	if err := s.Update(context.Background(), put("g")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := checkFile(t, s); err != nil {
		t.Error(err)
	}
}

// A function that runs on its caller's goroutine can end it. The next in turn go on as if it had not been.
func TestCallerEnds(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	begun, end := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	returned := false
	group.Go(func() {
		_ = s.Update(context.Background(), func(tx memory.Tx) error {
			_ = put("a")(tx)
			close(begun)
			<-end
			runtime.Goexit()
			return nil
		})
		returned = true
	})
	<-begun
	group.Go(func() {
		if err := s.Update(context.Background(), put("b")); err != nil {
			t.Error(err)
		}
	})
	queued(s, 1)
	close(end)
	group.Wait()
	if err := s.Update(context.Background(), put("c")); err != nil {
		t.Error(err)
	}
	if returned || has(t, s, "a") || !has(t, s, "b") || !has(t, s, "c") {
		t.Errorf("returned %t; a kept: %t; b kept: %t; c kept: %t", returned, has(t, s, "a"), has(t, s, "b"), has(t, s, "c"))
	}
	if err := checkFile(t, s); err != nil {
		t.Error(err)
	}
}

// Callers that come and go in ones and twos all get their turn.
func TestTurnsAreNotLost(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for n := range 100 {
				key := fmt.Sprint(w, "-", n)
				err := s.Update(context.Background(), func(tx memory.Tx) error {
					if n%10 == 0 {
						return put(key)(tx)
					}
					return nil // nothing to commit, so turns change quickly
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if !has(t, s, "7-90") {
		t.Error("a row is missing")
	}
}

func TestContextEndsInTheQueue(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	release := hold(s)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	ran := false
	go func() {
		result <- s.Update(ctx, func(tx memory.Tx) error { ran = true; return put("k")(tx) })
	}()
	queued(s, 1)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) { // answered although the writer is held up
		t.Errorf("update given up: %v", err)
	}
	release()
	if has(t, s, "k") || ran {
		t.Error("an update given up was run")
	}
}

func TestContextEndsWithAFullQueue(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	release := hold(s)
	var group sync.WaitGroup
	for i := range maxBatch {
		group.Go(func() {
			if err := s.Update(context.Background(), put(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	queued(s, maxBatch)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() { result <- s.Update(ctx, put("late")) }()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	group.Wait()
}

func TestNested(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	ctx := context.Background()
	err := s.Update(ctx, func(memory.Tx) error {
		if err := s.View(ctx, put("k")); !errors.Is(err, ErrNested) {
			t.Errorf("view in an update: %v", err)
		}
		if err := s.Close(); !errors.Is(err, ErrNested) {
			t.Errorf("close in an update: %v", err)
		}
		return s.Update(ctx, put("k"))
	})
	if !errors.Is(err, ErrNested) {
		t.Errorf("update in an update: %v", err)
	}
}

// Views inside views beside a writer that makes the file grow: none may wait for another.
func TestViewsDoNotHoldUpGrowing(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := range 60 {
			err := s.Update(context.Background(), func(tx memory.Tx) error {
				return tx.Table("t").Put(fmt.Sprint(i), make([]byte, 1<<20))
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	for range 300 {
		err := s.View(context.Background(), func(memory.Tx) error {
			runtime.Gosched()
			return s.View(context.Background(), func(tx memory.Tx) error { _, err := tx.Journal().Last("s"); return err })
		})
		if err != nil {
			t.Error(err)
		}
	}
	group.Wait()
}

func TestTransactionThatHasEnded(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	var kept memory.Tx
	if err := s.Update(context.Background(), func(tx memory.Tx) error { kept = tx; return put("k")(tx) }); err != nil {
		t.Fatal(err)
	}
	if err := put("l")(kept); !errors.Is(err, errTxEnded) {
		t.Errorf("writing with a transaction that has ended: %v", err)
	}
	if _, err := kept.Journal().Last("s"); !errors.Is(err, errTxEnded) {
		t.Errorf("reading with a transaction that has ended: %v", err)
	}
}

func TestPanicInView(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	func() {
		defer func() {
			if p := recover(); p != "on purpose" {
				t.Errorf("recovered %v", p)
			}
		}()
		_ = s.View(context.Background(), func(memory.Tx) error { panic("on purpose") })
	}()
	if err := s.Update(context.Background(), put("k")); err != nil {
		t.Error(err)
	} // and closing at the end waits for nothing
}

// A scan goes on over a table that its function changes, as one that takes rows out one by one does.
func TestChangesDuringAScan(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	const rows = 500 // several pages
	for _, back := range []bool{false, true} {
		var got []string
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			table := tx.Table("t")
			for i := range rows {
				if err := table.Put(fmt.Sprintf("%04d", i), make([]byte, 50)); err != nil {
					return err
				}
			}
			got = nil
			scan := table.Scan
			if back {
				scan = table.ScanBack
			}
			return scan("", func(key string, _ []byte) error {
				got = append(got, key)
				return errors.Join(table.Delete(key), table.Delete("0250"))
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != rows-1 || got[0] != fmt.Sprintf("%04d", map[bool]int{true: rows - 1}[back]) {
			t.Errorf("back %t: %d rows from %s on", back, len(got), got[0])
		}
		if has(t, s, "0000") || has(t, s, "0499") {
			t.Error("rows are left")
		}
	}
	err := s.Update(context.Background(), func(tx memory.Tx) error {
		j := tx.Journal()
		if _, err := j.Append("s", memory.Entry{}, memory.Entry{}, memory.Entry{}); err != nil {
			return err
		}
		calls := 0
		err := j.Read("s", 0, func(memory.Entry) error { calls++; _, err := j.Erase("s"); return err })
		if calls != 1 {
			t.Errorf("%d entries of an erased journal", calls)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := checkFile(t, s); err != nil {
		t.Error(err)
	}
}

// A row larger than the file was before is read back in the transaction that wrote it.
func TestLargeRow(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{})
	data := bytes.Repeat([]byte("large"), 1<<20)
	err := s.Update(context.Background(), func(tx memory.Tx) error {
		if err := tx.Table("t").Put("k", data); err != nil {
			return err
		}
		got, _, err := tx.Table("t").Get("k")
		if !bytes.Equal(got, data) {
			t.Error("read otherwise than written")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := checkFile(t, s); err != nil {
		t.Error(err)
	}
}

func TestFullDisk(t *testing.T) {
	s := open(t, memorytest.Dir(t), Options{maxBytes: 1 << 20})
	ctx := context.Background()
	big := func(key string) func(memory.Tx) error {
		return func(tx memory.Tx) error { return tx.Table("big").Put(key, make([]byte, 900<<10)) }
	}
	for i, err := range together(s, put("a"), big("x"), big("y")) {
		if !errors.Is(err, memory.ErrFull) || errors.Is(err, memory.ErrDamaged) || !strings.Contains(err.Error(), "commit to ") {
			t.Errorf("update %d that shared a commit with too much: %v", i, err)
		}
	}
	if has(t, s, "a") {
		t.Error("part of a failed commit was kept")
	}
	if err := s.Update(ctx, put("b")); err != nil {
		t.Errorf("a small update afterwards: %v", err)
	}
	if !has(t, s, "b") {
		t.Error("it was not kept")
	}
	if err := checkFile(t, s); err != nil {
		t.Error(err)
	}
}

func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(filepath.Join(t.TempDir(), "nudge.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		end := make(chan struct{})
		var viewed, updated error
		go func() { viewed = s.View(context.Background(), func(memory.Tx) error { <-end; return nil }) }()
		go func() {
			updated = s.Update(context.Background(), func(tx memory.Tx) error { <-end; return put("k")(tx) })
		}()
		synctest.Wait()
		closed := false
		go func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			closed = true
		}()
		time.Sleep(time.Hour) // in the bubble's time
		if closed {
			t.Error("closed under a view and an update")
		}
		close(end)
		if err := s.Close(); err != nil { // the second waits for the first
			t.Errorf("close: %v", err)
		}
		synctest.Wait()
		if err := errors.Join(viewed, updated); err != nil || !closed {
			t.Errorf("closed %t: %v", closed, err)
		}
	})
}
