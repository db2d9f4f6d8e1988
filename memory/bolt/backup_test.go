package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

var errStep = errors.New("it ended here")

// steps runs make once for each of its steps and has it end there. Before each, look sees what stands on the disk, as
// after a crash.
func steps(t *testing.T, make func(opts Options) error, look func(step string)) {
	t.Helper()
	for end := 1; ; end++ {
		n, name := 0, ""
		err := make(Options{step: func(step string) error {
			if n++; n == end {
				name = step
				look(step)
				return errStep
			}
			return nil
		}})
		if n < end {
			if err != nil || end < 3 {
				t.Errorf("with all of %d steps: %v", n, err)
			}
			return
		}
		if !errors.Is(err, errStep) {
			t.Errorf("ended at %q: %v", name, err)
		}
	}
}

func TestBackupBesideCommits(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	end := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := uint64(1); ; i++ {
			select {
			case <-end:
				return
			default:
			}
			err := s.Update(context.Background(), func(tx memory.Tx) error {
				_, err := tx.Journal().Append("s", memory.Entry{Data: make([]byte, 700)})
				return errors.Join(err, tx.Table("t").Put("n", fmt.Append(nil, i)), tx.Table("t").Put(fmt.Sprint(i%50), make([]byte, i%3000)))
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 20 {
		path := filepath.Join(dir, fmt.Sprint("copy", i))
		var last, total int64
		size, err := s.Backup(context.Background(), path, false, func(done, of int64) {
			if of == total && done < last {
				t.Errorf("progress %d of %d after %d of %d", done, of, last, total)
			}
			last, total = done, of
		})
		if err != nil {
			t.Error(err)
			continue
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() != size || last != total {
			t.Errorf("%v, %d bytes, progress %d of %d, %v", info, size, last, total, err)
		}
		problems, _, err := checkClosed(path)
		if err != nil || len(problems) > 0 {
			t.Errorf("check: %q, %v", problems, err)
		}
		c, err := OpenReadOnly(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = c.View(context.Background(), func(tx memory.Tx) error {
			last, err := tx.Journal().Last("s")
			n, found, err2 := tx.Table("t").Get("n")
			if found && string(n) != fmt.Sprint(last) {
				t.Errorf("copy %d has %d entries and the row says %s", i, last, n)
			}
			return errors.Join(err, err2)
		})
		if err := errors.Join(err, c.Close()); err != nil {
			t.Error(err)
		}
	}
	close(end)
	group.Wait()
}

func TestBackupRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Dir(seed(t)), Options{})
	there := filepath.Join(dir, "there")
	write(t, there, []byte("words"))
	ctx := context.Background()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx       context.Context
		path      string
		overwrite bool
		want      error
		text      string
	}{
		"is there":     {ctx, there, false, fs.ErrExist, ""},
		"itself":       {ctx, s.path, true, nil, "that is the data file itself"},
		"no file":      {ctx, dir, true, nil, "that is no file"},
		"no directory": {ctx, filepath.Join(dir, "none", "copy"), false, fs.ErrNotExist, ""},
		"ended":        {ended, filepath.Join(dir, "copy"), false, context.Canceled, ""},
	} {
		_, err := s.Backup(c.ctx, c.path, c.overwrite, nil)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	steps(t, func(opts Options) error {
		s.opts.step = opts.step
		_, err := s.Backup(ctx, there, true, nil)
		return err
	}, func(step string) {
		if old := string(read(t, there)) == "words"; old != (step != "sync directory") {
			t.Errorf("before %s the old backup is there: %t", step, old)
		}
		write(t, there, []byte("words"))
	})
	s.opts.step = nil
	s.opts.disk = func(string) (uint32, int64, error) { return 0, 1000, nil }
	if _, err := s.Backup(ctx, filepath.Join(dir, "copy"), false, nil); !errors.Is(err, memory.ErrFull) {
		t.Errorf("without room: %v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("files left: %v, %v", names, err)
	}
	if problems, _, err := checkClosed(there); err != nil || len(problems) > 0 {
		t.Errorf("the new backup: %q, %v", problems, err)
	}
	if same := maps.Equal(contents(t, there), mustClose(t, s)); !same {
		t.Error("the backup holds other rows")
	}
}

// mustClose closes a store and returns what its file holds.
func mustClose(t *testing.T, s *Store) map[string]string {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return contents(t, s.path)
}

// A damaged file gives no backup that looks like one.
func TestBackupOfDamage(t *testing.T) {
	path := seed(t)
	whole := read(t, path)
	m, used, _ := pagesOf(t, whole)
	var s *Store
	for id := m.pages - 1; s == nil && id > 1; id-- { // until it is one that is not read at opening
		if !used.has(id) || id == m.freelist || id == m.root {
			continue
		}
		b := bytes.Clone(whole)
		copy(b[id*pageSize:], bytes.Repeat([]byte{0xff}, pageSize))
		write(t, path, b)
		s, _ = Open(path, Options{})
	}
	if s == nil {
		t.Fatal("every page is read at opening")
	}
	t.Cleanup(func() { _ = s.Close() })
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := s.Backup(context.Background(), to, false, nil); !errors.Is(err, memory.ErrDamaged) {
		t.Errorf("backup: %v", err)
	}
	if names, err := filepath.Glob(to + "*"); err != nil || len(names) != 0 {
		t.Errorf("files left: %q, %v", names, err)
	}
}

// other makes a data file that holds something else than a seeded one.
func other(t *testing.T) (path string, rows map[string]string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "other.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Update(context.Background(), put("other")); err != nil {
		t.Fatal(err)
	}
	return path, mustClose(t, s)
}

func TestRestore(t *testing.T) {
	backup, want := other(t)
	older := filepath.Join(t.TempDir(), "older.db")
	write(t, older, read(t, backup))
	change(t, older, lower)
	for name, c := range map[string]struct {
		backup string
		before func(path string)
		kept   bool
	}{
		"over a good file":   {backup, func(string) {}, true},
		"over a damaged one": {backup, func(path string) { write(t, path, []byte("words")) }, true},
		"over an empty one":  {backup, func(path string) { write(t, path, nil) }, true},
		"over none":          {backup, func(path string) { _ = os.RemoveAll(filepath.Dir(path)) }, false},
		"what was left":      {backup, func(path string) { write(t, path+restoreEnd, []byte("words")) }, true},
		"an older one":       {older, func(string) {}, true},
	} {
		path := seed(t)
		c.before(path)
		old, _ := os.ReadFile(path)
		done, err := Restore(context.Background(), path, c.backup, Options{}, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (done.Kept != "") != c.kept || c.kept && !bytes.Equal(read(t, done.Kept), old) {
			t.Errorf("%s: %+v, or what was kept is not what was there", name, done)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if !maps.Equal(contents(t, path), want) {
			t.Errorf("%s: it holds other rows", name)
		}
		if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1+map[bool]int{true: 1}[c.kept] {
			t.Errorf("%s: files left: %v, %v", name, names, err)
		}
		again, err := Restore(context.Background(), path, c.backup, Options{}, nil)
		if err != nil || again.Kept == done.Kept {
			t.Errorf("%s, again: %+v, %v", name, again, err)
		}
	}
	if !maps.Equal(contents(t, backup), want) {
		t.Error("the backup was changed")
	}
}

func TestRestoreRefuses(t *testing.T) {
	good, _ := other(t)
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	write(t, bad, read(t, seed(t)))
	change(t, bad, func(tx *bbolt.Tx) error {
		return tx.Bucket(entryBucket).Delete(entryKey(1, 3))
	})
	newer := filepath.Join(dir, "newer")
	write(t, newer, read(t, good))
	change(t, newer, func(tx *bbolt.Tx) error {
		return tx.Bucket(storeBucket).Put(schemaKey, binary.BigEndian.AppendUint32(nil, schema+1))
	})
	words := filepath.Join(dir, "words")
	write(t, words, []byte("words"))
	path := seed(t)
	before := read(t, path)
	for backup, want := range map[string]error{
		bad: memory.ErrDamaged, words: memory.ErrDamaged, newer: ErrNewer, filepath.Join(dir, "none"): fs.ErrNotExist, dir: nil, path: nil,
	} {
		_, err := Restore(context.Background(), path, backup, Options{}, nil)
		if err == nil || want != nil && !errors.Is(err, want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("restore %s: %v", backup, err)
		}
		if want == memory.ErrDamaged && (!strings.Contains(err.Error(), "the backup is damaged: ") || strings.Contains(err.Error(), "data file is") || strings.Contains(err.Error(), wayOut)) {
			t.Errorf("restore %s: %v, which speaks of another file than the backup", backup, err)
		}
	}
	room := Options{disk: func(string) (uint32, int64, error) { return 0, 1000, nil }}
	if _, err := Restore(context.Background(), path, good, room, nil); !errors.Is(err, memory.ErrFull) {
		t.Errorf("without room: %v", err)
	}
	var locked *memory.LockedError
	s := open(t, filepath.Dir(good), Options{})
	mine, err := Open(good, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if _, err := Restore(context.Background(), path, good, Options{LockWait: time.Millisecond}, nil); !errors.As(err, &locked) || locked.Path != good {
		t.Errorf("a backup that is in use: %v", err)
	}
	if _, err := Restore(context.Background(), good, bad, Options{LockWait: time.Millisecond}, nil); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("over a file that is in use: %v", err)
	}
	if err := mine.Close(); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 || !bytes.Equal(read(t, path), before) {
		t.Errorf("a refused restore has left something: %v, %v", names, err)
	}
}

func TestRestoreEndsAnywhere(t *testing.T) {
	backup, want := other(t)
	path := seed(t)
	old := read(t, path)
	make := func(opts Options) error {
		_, err := Restore(context.Background(), path, backup, opts, nil)
		return err
	}
	steps(t, make, func(step string) {
		crashed := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(crashed, os.DirFS(filepath.Dir(path))); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(crashed, filepath.Base(path))
		if b := read(t, at); step != "sync directory" && !bytes.Equal(b, old) || step == "sync directory" && !maps.Equal(contents(t, at), want) {
			t.Errorf("before %s neither the old file nor the new one is there", step)
		}
		if _, err := Restore(context.Background(), at, backup, Options{}, nil); err != nil || !maps.Equal(contents(t, at), want) {
			t.Errorf("a restore after one that ended before %s: %v", step, err)
		}
		write(t, path, old)
	})
	if !maps.Equal(contents(t, path), want) {
		t.Error("it holds other rows")
	}
}

// Who waits for the lock of a file that is replaced meanwhile gets the new one.
func TestOpenWhatWasReplaced(t *testing.T) {
	new, _ := other(t)
	path := seed(t)
	synctest.Test(t, func(t *testing.T) {
		held, err := acquire(path, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error)
		var s *Store
		go func() {
			var err error
			s, err = Open(path, Options{LockWait: time.Hour})
			result <- err
		}()
		time.Sleep(time.Minute)
		if err := errors.Join(os.Rename(new, path), held.Close()); err != nil {
			t.Fatal(err)
		}
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if !has(t, s, "other") {
			t.Error("it has the file that was replaced")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
