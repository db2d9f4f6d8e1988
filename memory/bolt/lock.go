package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"nudge/memory"
)

const (
	// lockPoll is how often a lock that another process has is asked for.
	lockPoll = 10 * time.Millisecond
	// lockGrace is how long after its time a question for a lock may stay without any answer.
	lockGrace = 3 * time.Second
)

var (
	errHeld = errors.New("another process has the lock")
	// errNoLock is the error for a file system that does not answer, as a network's does when its server is gone.
	errNoLock = errors.New("its file system does not answer when asked for a lock; put the data directory on a local disk")
)

// acquire opens the file at path and locks it, for others that only read as well when shared is set. It waits so long for
// another process to let go of it, then returns a [*memory.LockedError]. What it returns is the file that stands at
// path: one that was replaced during the wait is let go of.
func acquire(path string, shared bool, wait time.Duration) (*os.File, error) {
	flag := os.O_RDWR
	if shared {
		flag = os.O_RDONLY
	}
	deadline := time.Now().Add(wait)
	for {
		if info, err := os.Stat(path); err != nil {
			return nil, mayNot(err)
		} else if !info.Mode().IsRegular() {
			return nil, errors.New("it is not a file")
		}
		f, err := os.OpenFile(path, flag, 0)
		if err != nil {
			return nil, mayNot(err)
		}
		err = lockUntil(f, deadline, func() error { return tryLock(f, shared) })
		if errors.Is(err, errHeld) {
			return nil, lockedError(path)
		}
		if err != nil {
			return nil, err
		}
		if standsAt(f, path) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// lockUntil asks for a lock of f with try until it has it or the time is over, and closes f when it has not. Though try
// does not wait, the kernel may keep it waiting, so it has a goroutine of its own.
func lockUntil(f *os.File, deadline time.Time, try func() error) error {
	over := time.NewTimer(time.Until(deadline) + lockGrace)
	defer over.Stop()
	for {
		answer := make(chan error, 1)
		go func() { answer <- try() }()
		select {
		case err := <-answer:
			if err == nil {
				return nil
			}
			if !errors.Is(err, errHeld) || !time.Now().Add(lockPoll).Before(deadline) {
				return errors.Join(err, f.Close())
			}
		case <-over.C:
			go func() {
				<-answer
				_ = f.Close() // and with it the lock, should it have been given after all
			}()
			return errNoLock
		}
		time.Sleep(lockPoll)
	}
}

// standsAt reports whether path still names an open file.
func standsAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}

// mayNot says what to do about a file that this account may not open.
func mayNot(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; give this account the right to read and write it, or use another data directory", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; mount it for writing, or use another data directory", err)
	}
	return err
}

// lockedError names the holder as far as its note can be read.
func lockedError(path string) *memory.LockedError {
	locked := &memory.LockedError{Path: path}
	if h, ok := readHolder(path); ok {
		locked.PID, locked.Since = h.PID, h.Since
	}
	return locked
}
