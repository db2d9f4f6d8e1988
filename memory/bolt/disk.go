package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"

	"nudge/memory"
)

// UnsafeEnv names the environment variable that, set to 1, has a data file opened on a file system that is otherwise
// refused. It is for those who know that theirs keeps locks and mappings right.
const UnsafeEnv = "NUDGE_UNSAFE_DATA"

// ErrFileSystem is wrapped by the error for a data file on a file system where locks or mappings cannot be trusted.
var ErrFileSystem = errors.New("its file system is not safe for a data file")

// The file systems that need a word, by their numbers in linux/magic.h and the kernel's sources of each.
var (
	// distant ones may keep a lock from nobody, or answer late or never, and a mapping there may show what was once.
	distant = map[uint32]string{
		0x00006969: "NFS", 0x0000517b: "SMB", 0xfe534d42: "SMB", 0xff534d42: "CIFS", 0x65735546: "FUSE",
		0x01021997: "9P", 0x00c36400: "Ceph", 0x5346414f: "AFS",
	}
	fleeting = map[uint32]string{0x01021994: "tmpfs", 0x858458f6: "ramfs"}
)

// checkDisk refuses file systems where a data file would be lost sooner or later, and warns of those that keep nothing.
// Where the file system is not known, it is taken to be a good one.
func (o Options) checkDisk(path string) error {
	kind, _, err := o.disk(path)
	if err != nil {
		return nil
	}
	if name, found := distant[kind]; found {
		if os.Getenv(UnsafeEnv) != "1" {
			return fmt.Errorf("%w: it is on %s; put the data directory on a local disk, or set %s=1 to use it all the same",
				ErrFileSystem, name, UnsafeEnv)
		}
		o.Log.Warn("the data file is on a file system where it may be damaged", "file", path, "file_system", name)
	}
	if name, found := fleeting[kind]; found {
		o.Log.Warn("the data file is in memory and is gone when the machine stops", "file", path, "file_system", name)
	}
	return nil
}

// diskOf is disk for a path that need not exist yet: then the nearest directory that does.
func diskOf(path string) (kind uint32, room int64, err error) {
	for {
		kind, room, err = disk(path)
		above := filepath.Dir(path)
		if !errors.Is(err, os.ErrNotExist) || above == path {
			return kind, room, err
		}
		path = above
	}
}

func inMB(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// full wraps an error that means that there is no room with [memory.ErrFull].
func full(err error) error {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return fmt.Errorf("%w: %w", memory.ErrFull, err)
	}
	for _, no := range noRoom {
		// Of a file that could not be lengthened bbolt passes on the text only.
		if errors.Is(err, no) || err != nil && strings.HasSuffix(err.Error(), no.Error()) {
			return fmt.Errorf("%w: %w", memory.ErrFull, err)
		}
	}
	return err
}

// noRoom are the system's errors for a full disk, a used-up quota and the account's limit of a file's size.
var noRoom = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
