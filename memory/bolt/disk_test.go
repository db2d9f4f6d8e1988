package bolt

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

func TestFileSystems(t *testing.T) {
	const ext4, overlay = 0xef53, 0x794c7630
	for name, c := range map[string]struct {
		kind    uint32
		refused bool
		log     string
	}{
		"NFS": {0x6969, true, "may be damaged"}, "SMB": {0x517b, true, "may be damaged"}, "SMB2": {0xfe534d42, true, "may be damaged"},
		"CIFS": {0xff534d42, true, "may be damaged"}, "FUSE": {0x65735546, true, "may be damaged"},
		"ext4": {ext4, false, ""}, "overlay": {overlay, false, ""}, "tmpfs": {0x01021994, false, "in memory"},
	} {
		for _, set := range []string{"", "0", "1"} {
			t.Setenv(UnsafeEnv, set)
			path := filepath.Join(t.TempDir(), "new", "nudge.db")
			var log bytes.Buffer
			s, err := Open(path, Options{
				Log: slog.New(slog.NewTextHandler(&log, nil)), disk: func(string) (uint32, int64, error) { return c.kind, 1 << 40, nil },
			})
			if c.refused && set != "1" {
				_, made := os.Stat(filepath.Dir(path))
				if !errors.Is(err, ErrFileSystem) || !strings.Contains(err.Error(), UnsafeEnv+"=1") || !errors.Is(made, fs.ErrNotExist) {
					t.Errorf("%s: %v; made something: %v", name, err, made)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %q: %v", name, set, err)
				continue
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if !strings.Contains(log.String(), c.log) || (c.log == "") != (log.Len() == 0) {
				t.Errorf("%s: logged %s", name, log.String())
			}
		}
	}
}

// A kernel that does not answer at all does not keep anybody waiting.
func TestLockWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		begun, answer := time.Now(), make(chan error)
		if err := lockUntil(f, begun.Add(time.Second), func() error { return <-answer }); !errors.Is(err, errNoLock) {
			t.Error(err)
		}
		if waited := time.Since(begun); waited > 5*time.Second {
			t.Errorf("waited %v", waited)
		}
		answer <- nil
		synctest.Wait()
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a file that was locked too late is still open: %v", err)
		}
	})
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for err, want := range map[error]string{fs.ErrPermission: "give this account", syscall.EACCES: "give this account", syscall.EROFS: "mount it for writing"} {
		if got := mayNot(err); !errors.Is(got, err) || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
	for _, err := range []error{syscall.ENOSPC, &fs.PathError{Op: "write", Err: syscall.EDQUOT}, errors.New("file resize error: truncate f: " + syscall.EFBIG.Error())} {
		if got := full(err); !errors.Is(got, memory.ErrFull) || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if err := full(fs.ErrPermission); errors.Is(err, memory.ErrFull) || full(nil) != nil {
		t.Errorf("taken for a full disk: %v", err)
	}
}
