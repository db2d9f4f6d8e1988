package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nudge/memory"
)

// sparse makes a file most of which was deleted again, and returns what it holds.
func sparse(t *testing.T, megabytes int) (path string, rows map[string]string) {
	t.Helper()
	path = seedTables(t)
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range megabytes {
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			_, err := tx.Journal().Append(fmt.Sprint("session", i), memory.Entry{Data: make([]byte, 1<<20)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range megabytes {
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			_, err := tx.Journal().Erase(fmt.Sprint("session", i))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	space, err := s.Space()
	if err != nil || space.Size < int64(megabytes)<<20 || space.Free < space.Size*2/3 {
		t.Fatalf("space %+v, %v", space, err)
	}
	return path, mustClose(t, s)
}

func TestCompact(t *testing.T) {
	path, want := sparse(t, 20)
	before, after, err := Compact(path, Options{})
	if err != nil || before < 20<<20 || after > 1<<20 {
		t.Errorf("from %d to %d bytes: %v", before, after, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != after || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if !maps.Equal(contents(t, path), want) {
		t.Error("it holds other rows")
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("files left: %v, %v", names, err)
	}
	s := open(t, filepath.Dir(path), Options{})
	if err := errors.Join(writeAll(s), readAll(s), checkFile(t, s)); err != nil {
		t.Error(err)
	}
}

func TestCompactRefuses(t *testing.T) {
	path, _ := sparse(t, 2)
	before := read(t, path)
	if _, _, err := Compact(filepath.Join(filepath.Dir(path), "none"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, _, err := Compact(path, Options{disk: func(string) (uint32, int64, error) { return 0, 1 << 20, nil }}); !errors.Is(err, memory.ErrFull) {
		t.Errorf("without room: %v", err)
	}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var locked *memory.LockedError
	if _, _, err := Compact(path, Options{LockWait: time.Millisecond}); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("a file that is in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 || !bytes.Equal(read(t, path), before) {
		t.Errorf("a refused compaction has left something: %v, %v", names, err)
	}
}

func TestCompactEndsAnywhere(t *testing.T) {
	path, want := sparse(t, 2)
	whole := read(t, path)
	ended := map[string]bool{}
	compact := func(opts Options) error {
		_, _, err := Compact(path, opts)
		return err
	}
	steps(t, compact, func(step string) {
		ended[step] = true
		crashed := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(crashed, os.DirFS(filepath.Dir(path))); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(crashed, filepath.Base(path))
		if small := len(read(t, at)) < 1<<20; small != (step == "sync directory") || !maps.Equal(contents(t, at), want) {
			t.Errorf("before %s no whole file is there", step)
		}
		s, err := Open(at, Options{})
		if err != nil {
			t.Fatalf("after an end before %s: %v", step, err)
		}
		if err := checkFile(t, s); err != nil {
			t.Error(err)
		}
		if names, err := os.ReadDir(crashed); err != nil || len(names) != 1 {
			t.Errorf("left after an end before %s and an opening: %v, %v", step, names, err)
		}
	})
	if len(ended) != 5 || len(whole) < 2<<20 || !maps.Equal(contents(t, path), want) {
		t.Errorf("ended before %v", ended)
	}
}

func TestCompactAtOpen(t *testing.T) {
	for name, c := range map[string]struct {
		from  int64
		room  int64
		step  string
		small bool
		log   string
	}{
		"mostly free":   {1 << 20, 1 << 40, "", true, "the data file was compacted"},
		"small":         {16 << 20, 1 << 40, "", false, ""},
		"usual":         {0, 1 << 40, "", false, ""},
		"no room":       {1 << 20, 1000, "", false, "there is no room on the disk"},
		"failed":        {1 << 20, 1 << 40, "compare", false, "could not be compacted"},
		"replaced only": {1 << 20, 1 << 40, "sync directory", true, "could not be compacted"},
	} {
		path, want := sparse(t, 3)
		var log bytes.Buffer
		s, err := Open(path, Options{
			Log: slog.New(slog.NewTextHandler(&log, nil)), compact: c.from, disk: func(string) (uint32, int64, error) { return 0, c.room, nil },
			step: func(step string) error {
				if step == c.step {
					return errStep
				}
				return nil
			},
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if space, err := s.Space(); err != nil || (space.Size < 1<<20) != c.small || !strings.Contains(log.String(), c.log) || (c.log == "") != (log.Len() == 0) {
			t.Errorf("%s: %+v, %v; logged %s", name, space, err, log.String())
		}
		if err := s.Update(context.Background(), put("k")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := checkFile(t, s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := contents(t, path)
		if _, found := got[`"t"/"k"`]; !found || len(got) != len(want)+1 {
			t.Errorf("%s: %d rows of %d; the new one is there: %t", name, len(got), len(want)+1, found)
		}
		if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
			t.Errorf("%s: files left: %v, %v", name, names, err)
		}
	}
}
