//go:build linux

package bolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"nudge/memory"
)

// fillEnv, when set, makes the test program fill the file it names up to a limit of the process.
const fillEnv = "NUDGE_TEST_FILL"

func init() { inChild[fillEnv] = fillFile }

func fillFile(path string) {
	signal.Ignore(syscall.SIGXFSZ) // as the program does
	limit := func(bytes uint64) error {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
			return err
		}
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: now.Max})
	}
	if err := errors.Join(limit(1<<20), fill(path, func() error { return limit(8 << 20) })); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// fill writes to a new file until there is no room, goes on trying for a while, then makes room and writes on. In the end
// there must be what was answered for, nothing else, and a file without fault, also when it is opened anew.
func fill(path string, makeRoom func() error) error {
	ctx := context.Background()
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	kept, refused := map[string]int{}, 0
	update := func(i int) error {
		key, size := fmt.Sprint("k", i), random.IntN(3000)
		if i%7 == 0 {
			size = random.IntN(200_000)
		}
		gone := ""
		for key := range kept {
			if i%5 == 0 {
				gone = key // some pages become free, so that commits fail in many ways
			}
			break
		}
		err := s.Update(ctx, func(tx memory.Tx) error {
			_, err := tx.Journal().Append("s", memory.Entry{Data: []byte(key)})
			if gone != "" {
				err = errors.Join(err, tx.Table("t").Delete(gone))
			}
			return errors.Join(err, tx.Table("t").Put(key, make([]byte, size)))
		})
		switch {
		case errors.Is(err, memory.ErrFull):
			refused++
			return nil
		case err != nil:
			return err
		}
		delete(kept, gone)
		kept[key] = size
		return nil
	}
	i := 0
	for ; refused < 300; i++ {
		if err := update(i); err != nil {
			return fmt.Errorf("update %d, after %d were refused: %w", i, refused, err)
		}
	}
	answered := i - refused
	if err := checkRows(s, kept, answered); err != nil {
		return fmt.Errorf("while there is no room: %w", err)
	}
	if err := makeRoom(); err != nil {
		return err
	}
	refused = 0
	for end := i + 100; i < end; i++ {
		if err := update(i); err != nil {
			return fmt.Errorf("update %d, with room: %w", i, err)
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d updates were refused with room", refused)
	}
	for range 2 {
		if err := errors.Join(checkRows(s, kept, answered+100), s.Close()); err != nil {
			return err
		}
		if s, err = Open(path, Options{}); err != nil {
			return err
		}
	}
	return s.Close()
}

// checkRows compares what a store has with what it should have.
func checkRows(s *Store, want map[string]int, entries int) error {
	var errs []error
	told := func(problem string) { errs = append(errs, errors.New(problem)) }
	_, err := s.Check(context.Background(), told, nil)
	err2 := s.View(context.Background(), func(tx memory.Tx) error {
		rows := 0
		err := tx.Table("t").Scan("", func(key string, value []byte) error {
			rows++
			if size, found := want[key]; !found || size != len(value) {
				errs = append(errs, fmt.Errorf("row %s of %d bytes, want %d", key, len(value), size))
			}
			return nil
		})
		last, err2 := tx.Journal().Last("s")
		if rows != len(want) || last != uint64(entries) {
			errs = append(errs, fmt.Errorf("%d rows of %d, %d entries of %d", rows, len(want), last, entries))
		}
		return errors.Join(err, err2)
	})
	return errors.Join(append(errs, err, err2)...)
}

func TestFullByLimit(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fillEnv+"="+filepath.Join(t.TempDir(), "nudge.db"))
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// On a disk of its own the file grows and then there is no room for the pages themselves.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("file systems cannot be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	err := fill(filepath.Join(dir, "nudge.db"), func() error {
		return unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT, "size=16m")
	})
	if err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rest"), make([]byte, 20<<20), 0o600); !errors.Is(full(err), memory.ErrFull) {
		t.Errorf("filling the rest: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "new.db"), Options{}); !errors.Is(err, memory.ErrFull) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a new file without room: %v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("files left: %v, %v", names, err)
	}
}
