package bolt

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

// seed makes a data file with two journals of several pages and a few rows elsewhere, and returns its path.
func seed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nudge.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			var errs []error
			for _, name := range []string{"alice", "bob"} {
				e := memory.Entry{Kind: "said", Data: []byte(strings.Repeat("words of "+name+" ", 30))}
				_, err := tx.Journal().Append(name, e, e)
				_, err2 := tx.Inbox().Put(name, e.Data)
				_, err3 := tx.Outbox().Put(name, e.Data)
				_, err4 := tx.Seen().Mark(fmt.Sprint(name, i), time.Unix(int64(i), 0))
				errs = append(errs, err, err2, err3, err4, tx.Due().Put(memory.DueRow{Key: fmt.Sprint(name, i), Data: e.Data}), put(fmt.Sprint(name, i))(tx))
			}
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := writeFile(path, b); err != nil {
		t.Fatal(err)
	}
}

func writeFile(path string, b []byte) error { return os.WriteFile(path, b, 0o600) }

func TestOpenRefuses(t *testing.T) {
	whole := read(t, seed(t))
	m, _, err := newestMeta(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	used := int(m.pages) * pageSize
	cases := map[string]func(b []byte) []byte{
		"empty":                 func(b []byte) []byte { return nil },
		"cut inside a head":     func(b []byte) []byte { return b[:3000] },
		"cut after the heads":   func(b []byte) []byte { return b[:8192] },
		"cut by a page":         func(b []byte) []byte { return b[:used-pageSize] },
		"cut by a byte":         func(b []byte) []byte { return b[:used-1] },
		"text":                  func(b []byte) []byte { return bytes.Repeat([]byte("words\n"), 5000) },
		"both heads zeroed":     func(b []byte) []byte { clear(b[:64]); clear(b[pageSize : pageSize+64]); return b },
		"free list overwritten": func(b []byte) []byte { copy(b[int(m.freelist)*pageSize:], make([]byte, pageSize)); return b },
		"free list too long": func(b []byte) []byte {
			at := int(m.freelist) * pageSize
			binary.NativeEndian.PutUint16(b[at+10:], manyFree)
			binary.NativeEndian.PutUint64(b[at+16:], 1<<40)
			return b
		},
		"free list of used pages": func(b []byte) []byte {
			at := int(m.freelist) * pageSize
			binary.NativeEndian.PutUint64(b[at+16:], m.pages)
			return b
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "nudge.db")
			bad := damage(slices.Clone(whole))
			write(t, path, bad)
			s, err := Open(path, Options{})
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, memory.ErrDamaged) || strings.Contains(err.Error(), "\n") ||
				!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore a backup") {
				t.Errorf("open: %v", err)
			}
			if !bytes.Equal(read(t, path), bad) {
				t.Error("the damaged file was changed")
			}
			if names, err := filepath.Glob(path + "*"); err != nil || len(names) != 1 {
				t.Errorf("files left: %q, %v", names, err)
			}
		})
	}
}

func TestOpenForeignAndOtherSchemas(t *testing.T) {
	set := func(value []byte) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(storeBucket)
			return errors.Join(err, b.Put(schemaKey, value))
		}
	}
	cases := map[string]struct {
		change func(tx *bbolt.Tx) error
		want   error
	}{
		"newer":    {set([]byte{0, 0, 0, schema + 1}), ErrNewer},
		"none":     {set([]byte{0, 0, 0, 0}), memory.ErrDamaged},
		"short":    {set([]byte{1}), memory.ErrDamaged},
		"foreign":  {func(tx *bbolt.Tx) error { return tx.DeleteBucket(storeBucket) }, memory.ErrDamaged},
		"no inbox": {func(tx *bbolt.Tx) error { return tx.DeleteBucket(inboxBucket) }, memory.ErrDamaged},
	}
	for name, c := range cases {
		path := seed(t)
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(c.change), db.Close()); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time too, so the first has let go of the lock
			if s, err := Open(path, Options{}); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
				if err == nil {
					_ = s.Close()
				}
			}
		}
	}
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "f"), 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("b")); return err })
	path := db.Path()
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, memory.ErrDamaged) {
		t.Errorf("a file without a free list: %v", err)
	}
	if _, err := Open(t.TempDir(), Options{}); err == nil {
		t.Error("a directory: no error")
	}
}

func TestOneHeadDamaged(t *testing.T) {
	for _, page := range []int{0, 1} {
		path := seed(t)
		b := read(t, path)
		clear(b[page*pageSize : page*pageSize+64])
		write(t, path, b)
		var log bytes.Buffer
		s, err := Open(path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Errorf("head %d zeroed: %v", page, err)
			continue
		}
		if !strings.Contains(log.String(), "heads is damaged") {
			t.Errorf("head %d zeroed: logged %q", page, log.String())
		}
		if !has(t, s, "alice28") {
			t.Errorf("head %d zeroed: data of the last commit but one is gone", page)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// readAll reads everything there is.
func readAll(s *Store) error {
	var errs []error
	for _, name := range []string{"alice", "bob"} {
		errs = append(errs, s.View(context.Background(), func(tx memory.Tx) error {
			_, err := tx.Inbox().List(name)
			return errors.Join(err, tx.Journal().Read(name, 0, func(memory.Entry) error { return nil }))
		}))
	}
	return errors.Join(append(errs, s.View(context.Background(), func(tx memory.Tx) error {
		_, err := tx.Inbox().Sessions()
		return errors.Join(err,
			tx.Journal().Sessions("", func(string, memory.Entry) error { return nil }),
			tx.Outbox().List(0, func(memory.Parcel) error { return nil }),
			tx.Due().Scan(func(memory.DueRow) error { return nil }),
			tx.Table("t").Scan("", func(string, []byte) error { return nil }),
			tx.Table("t").ScanBack("", func(string, []byte) error { return nil }))
	}))...)
}

func writeAll(s *Store) error {
	return s.Update(context.Background(), func(tx memory.Tx) error {
		_, err := tx.Inbox().Put("alice", nil)
		_, err2 := tx.Journal().Append("alice", memory.Entry{})
		_, err3 := tx.Journal().Erase("bob")
		_, err4 := tx.Outbox().Put("alice", nil)
		_, err5 := tx.Seen().Sweep(time.Unix(1<<40, 0), 1000)
		return errors.Join(err, err2, err3, err4, err5, tx.Outbox().Remove(1, 2, 3, 4, 5, 6, 7, 8, 9), tx.Due().Remove("alice1"), put("k")(tx))
	})
}

// Every page in turn is made useless in several ways. Whatever is called then returns, and an error says damage.
func TestEveryPageDamaged(t *testing.T) {
	whole := read(t, seed(t))
	m, _, err := newestMeta(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(page []byte){
		"ones":   func(page []byte) { copy(page, bytes.Repeat([]byte{0xff}, pageSize)) },
		"zeros":  func(page []byte) { clear(page) },
		"mangle": func(page []byte) { copy(page[20:], bytes.Repeat([]byte{0x7f}, 60)) },
	}
	path := filepath.Join(t.TempDir(), "nudge.db")
	damages := 0
	for page := range int(m.pages) {
		for name, way := range ways {
			b := slices.Clone(whole)
			way(b[page*pageSize : (page+1)*pageSize])
			write(t, path, b)
			s, err := Open(path, Options{})
			errs := []error{err}
			if err == nil {
				errs = append(errs, readAll(s), writeAll(s), readAll(s), s.Close())
			}
			for i, err := range errs {
				if err != nil && !errors.Is(err, memory.ErrDamaged) {
					t.Errorf("page %d, %s, step %d: %v", page, name, i, err)
				}
				if err != nil {
					damages++
				}
			}
		}
	}
	if damages == 0 {
		t.Error("no damage was ever noticed")
	}
}

// A bad page in one session's journal fails that session's reads only, and ends all writing.
func TestDamagedSession(t *testing.T) {
	path := seed(t)
	b := read(t, path)
	found := 0
	for at := 2 * pageSize; at+pageSize <= len(b); at += pageSize {
		// In the inbox and elsewhere the words of both lie together.
		if page := b[at : at+pageSize]; bytes.Contains(page, []byte("words of alice")) && !bytes.Contains(page, []byte("bob")) {
			copy(page, bytes.Repeat([]byte{0xff}, pageSize))
			found++
		}
	}
	if found == 0 {
		t.Fatal("no page is alice's alone")
	}
	write(t, path, b)
	var log bytes.Buffer
	s := open(t, filepath.Dir(path), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	appendTo := func(name string) func(memory.Tx) error {
		return func(tx memory.Tx) error {
			_, err := tx.Journal().Append(name, memory.Entry{})
			return err
		}
	}
	if err := s.Update(context.Background(), appendTo("bob")); err != nil || s.Damage() != nil {
		t.Errorf("before the damage is met: %v, %v", err, s.Damage())
	}
	before := read(t, path)
	swallow := func(tx memory.Tx) error { _ = appendTo("alice")(tx); return put("swallowed")(tx) }
	for i, err := range together(s, appendTo("bob"), swallow, put("k")) {
		if !errors.Is(err, memory.ErrDamaged) {
			t.Errorf("update %d: %v", i, err)
		}
	}
	if err := s.Update(context.Background(), put("k")); !errors.Is(err, memory.ErrDamaged) || !errors.Is(s.Damage(), memory.ErrDamaged) {
		t.Errorf("an update afterwards: %v, %v", err, s.Damage())
	}
	readJournal := func(name string) error {
		return s.View(context.Background(), func(tx memory.Tx) error {
			return tx.Journal().Read(name, 0, func(memory.Entry) error { return nil })
		})
	}
	if err := readJournal("alice"); !errors.Is(err, memory.ErrDamaged) {
		t.Errorf("reading the damaged journal: %v", err)
	}
	if err := readJournal("bob"); err != nil {
		t.Errorf("reading the other: %v", err)
	}
	if has(t, s, "k") || has(t, s, "swallowed") {
		t.Error("something was written after the damage was met")
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the damaged file was changed")
	}
	if n := strings.Count(log.String(), "nothing more is written"); n != 1 {
		t.Errorf("told %d times: %s", n, log.String())
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "nudge.db")
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for range 2 {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for p, want := range map[string]os.FileMode{path: 0o600, path + ".lock": 0o600, dir: 0o700, filepath.Dir(dir): 0o700} {
			if got := mode(p); got != want {
				t.Errorf("%s has mode %v", p, got)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
			t.Errorf("files left: %v, %v", names, err)
		}
		if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path+".lock", []byte("{}"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "nudge.db")
		write(t, path+".lock", []byte(`{"pid":1,"since":"2001-01-01T00:00:00Z"}`)) // left by one long gone
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		since := time.Now()
		second := func() *memory.LockedError {
			begun := time.Now()
			_, err := Open(path, Options{})
			var locked *memory.LockedError
			if !errors.As(err, &locked) {
				t.Fatalf("second open: %v", err)
			}
			if waited := time.Since(begun); waited > time.Second {
				t.Errorf("waited %v", waited)
			}
			return locked
		}
		if l := second(); l.Path != path || l.PID != os.Getpid() || !l.Since.Equal(since) {
			t.Errorf("locked by %+v", l)
		}
		for _, note := range []string{"", "{", `"text"`} {
			write(t, path+".lock", []byte(note))
			if l := second(); l.PID != 0 || !l.Since.IsZero() {
				t.Errorf("with note %q locked by %+v", note, l)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// The file grows by blocks: what is about to be written has been, and nothing behind it.
func TestZerosAreLaidAhead(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	for i := range 200 {
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			return tx.Table("t").Put(fmt.Sprint(i), make([]byte, 10_000))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	info, err := s.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	used := int64(0)
	if err := s.db.View(func(tx *bbolt.Tx) error { used = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	if s.writer.laid < used-ahead || s.writer.laid > info.Size() {
		t.Errorf("zeros up to %d; %d in use, file of %d", s.writer.laid, used, info.Size())
	}
	s.writer.laid = 0 // as after opening; what is in use stays as it is
	if err := s.Update(context.Background(), put("k")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(readAll(s), checkFile(t, s)); err != nil {
		t.Error(err)
	}
}

// holdEnv, when set, makes the test program open the file it names, write on and on, and wait to be killed.
const holdEnv = "NUDGE_TEST_HOLD"

func holdFile(path string) {
	s, err := Open(path, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			_, err := tx.Journal().Append("s", memory.Entry{Data: make([]byte, 500)})
			return errors.Join(err, tx.Table("t").Put("n", fmt.Append(nil, i+1)))
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(i + 1)
	}
}

func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nudge.db")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holdEnv+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 20 {
		if !lines.Scan() {
			t.Fatal("the other process ended early")
		}
	}
	_, err = Open(path, Options{LockWait: time.Millisecond})
	var locked *memory.LockedError
	if !errors.As(err, &locked) || locked.PID != child.Process.Pid || locked.Since.IsZero() {
		t.Errorf("open while another holds it: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	answered := 20
	for lines.Scan() {
		answered++
	}
	if err := child.Wait(); err == nil {
		t.Error("the other process was not killed")
	}
	s, err := Open(path, Options{LockWait: time.Millisecond})
	if err != nil {
		t.Fatalf("open after a kill: %v", err)
	}
	err = s.View(context.Background(), func(tx memory.Tx) error {
		last, err := tx.Journal().Last("s")
		value, _, err2 := tx.Table("t").Get("n")
		if last < uint64(answered) || string(value) != fmt.Sprint(last) {
			t.Errorf("%d updates were answered; the journal has %d, the row says %s", answered, last, value)
		}
		return errors.Join(err, err2)
	})
	if err := errors.Join(err, checkFile(t, s)); err != nil {
		t.Error(err)
	}
}

// A commit that fails after readers can see it may be lost with the power: nothing may be built on it.
func TestUnknownOutcome(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	if err := s.Update(context.Background(), put("k")); err != nil {
		t.Fatal(err)
	}
	err := s.db.Update(func(tx *bbolt.Tx) error {
		if s.committed(tx.ID()) {
			t.Error("a transaction under way is taken for committed")
		}
		if !s.committed(tx.ID() - 1) {
			t.Error("the last commit is not seen")
		}
		return errStep
	})
	if !errors.Is(err, errStep) {
		t.Fatal(err)
	}
	cause := io.ErrShortWrite
	s.fail(cause)
	if err := s.Update(context.Background(), put("l")); !errors.Is(err, cause) {
		t.Errorf("update: %v", err)
	}
	if err := s.View(context.Background(), put("l")); !errors.Is(err, cause) {
		t.Errorf("view: %v", err)
	}
}
