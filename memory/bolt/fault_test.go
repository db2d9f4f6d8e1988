package bolt

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"nudge/memory"
)

// A file that is cut off under an open store ends neither the process nor anybody's waiting, and stays as it was cut.
func TestShrinks(t *testing.T) {
	for _, size := range []int64{0, 100, pageSize, 2 * pageSize, 5 * pageSize, 20 * pageSize} {
		path := seed(t)
		var log bytes.Buffer
		s, err := Open(path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(readAll(s), s.Update(context.Background(), put("before"))); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if err := s.Update(context.Background(), put("after")); !errors.Is(err, memory.ErrDamaged) {
				t.Errorf("cut to %d, update %d: %v", size, i, err)
			}
			if err := readAll(s); !errors.Is(err, memory.ErrDamaged) {
				t.Errorf("cut to %d, view %d: %v", size, i, err)
			}
		}
		if _, err := s.Check(context.Background(), func(string) {}, nil); !errors.Is(err, memory.ErrDamaged) {
			t.Errorf("cut to %d, check: %v", size, err)
		}
		if _, err := s.Backup(context.Background(), filepath.Join(t.TempDir(), "copy"), false, nil); !errors.Is(err, memory.ErrDamaged) {
			t.Errorf("cut to %d, backup: %v", size, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("cut to %d, close: %v", size, err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != size {
			t.Errorf("cut to %d: %v, %v", size, info, err)
		}
		if n := strings.Count(log.String(), "nothing more is written"); n != 1 {
			t.Errorf("cut to %d: told %d times: %s", size, n, log.String())
		}
	}
}

// Nothing is written though what is to be written has nothing to do with what is gone.
func TestShrinksBehind(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	large := func(tx memory.Tx) error { return tx.Table("large").Put("k", make([]byte, 1<<20)) }
	if err := errors.Join(s.Update(context.Background(), large), s.Update(context.Background(), put("a")), s.Update(context.Background(), put("b"))); err != nil {
		t.Fatal(err)
	}
	m, _, _ := pagesOf(t, read(t, s.path))
	size := int64(m.pages-5) * pageSize
	if err := os.Truncate(s.path, size); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(context.Background(), put("c")); !errors.Is(err, memory.ErrDamaged) || has(t, s, "c") || !has(t, s, "b") {
		t.Errorf("update: %v", err)
	}
	if info, err := os.Stat(s.path); err != nil || info.Size() != size {
		t.Errorf("%v, %v", info, err)
	}
}

// Readers and writers that are under way when it happens all come back; only readers where the heads go as well.
func TestShrinksUnderUse(t *testing.T) {
	for _, size := range []int64{0, pageSize, 2 * pageSize} {
		path := seed(t)
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		var rounds atomic.Int64
		for w := range 6 {
			group.Go(func() {
				for {
					var err error
					if w%2 == 0 || size < 2*pageSize {
						err = readAll(s)
					} else {
						err = s.Update(context.Background(), put("k"))
					}
					if errors.Is(err, memory.ErrDamaged) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if rounds.Add(1) == 30 {
						if err := os.Truncate(path, size); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		group.Wait()
		if err := s.Close(); err != nil && !errors.Is(err, memory.ErrDamaged) {
			t.Error(err)
		}
	}
}

// Where bbolt can no longer begin a transaction, the store asks it for none, and still closes.
func TestBeginFails(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	s.headPages = nil // they are not looked at first
	if err := os.Truncate(s.path, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := readAll(s); !errors.Is(err, memory.ErrDamaged) {
			t.Errorf("view: %v", err)
		}
		if err := s.Update(context.Background(), put("k")); !errors.Is(err, memory.ErrDamaged) {
			t.Errorf("update: %v", err)
		}
	}
	w := open(t, t.TempDir(), Options{})
	if err := os.Truncate(w.path, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Update(context.Background(), put("k")); !errors.Is(err, memory.ErrDamaged) {
			t.Errorf("update: %v", err)
		}
	}
}
