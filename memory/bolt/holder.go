package bolt

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"nudge/memory"
)

// holder is the note beside the data file that says which process has it open. It is for people: the lock itself is
// the kernel's and ends with the process, so a note left behind refuses nobody.
type holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

func holderPath(path string) string { return path + ".lock" }

// writeHolder notes this process. The caller holds the lock.
func writeHolder(path string) error {
	note, err := json.Marshal(holder{PID: os.Getpid(), Since: time.Now().UTC()})
	if err != nil {
		return err
	}
	// An old note may have a wider mode, which writing into it would keep.
	if err := removeHolder(path); err != nil {
		return err
	}
	return os.WriteFile(holderPath(path), append(note, '\n'), 0o600)
}

func removeHolder(path string) error {
	if err := os.Remove(holderPath(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockedError names the holder as far as the note can be read.
func lockedError(path string) *memory.LockedError {
	locked := &memory.LockedError{Path: path}
	var h holder
	note, err := os.ReadFile(holderPath(path))
	if err == nil && json.Unmarshal(note, &h) == nil {
		locked.PID, locked.Since = h.PID, h.Since
	}
	return locked
}
