//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks an open file for this process, or with shared for it and others that only read, and returns errHeld when
// another process has it. bbolt's own lock is the same one and is then there already.
func tryLock(f *os.File, shared bool) error {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errHeld
	}
	return err
}
