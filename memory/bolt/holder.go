package bolt

import (
	"encoding/json"
	"os"
	"time"
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

func removeHolder(path string) error { return removeIfThere(holderPath(path)) }

// readHolder reads the note as far as it can be read.
func readHolder(path string) (h holder, ok bool) {
	note, err := os.ReadFile(holderPath(path))
	return h, err == nil && json.Unmarshal(note, &h) == nil
}
