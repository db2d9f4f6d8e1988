package bolt

import (
	"encoding/json"
	"errors"
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
	// An old note may have a wider mode, which writing into it would keep. What somebody puts there meanwhile, such as a link, is
	// not written to.
	if err := removeHolder(path); err != nil {
		return err
	}
	file, err := os.OpenFile(holderPath(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(note, '\n'))
	return errors.Join(err, file.Close())
}

func removeHolder(path string) error { return removeIfThere(holderPath(path)) }

// readHolder reads the note as far as it can be read.
func readHolder(path string) (h holder, ok bool) {
	note, err := os.ReadFile(holderPath(path))
	return h, err == nil && json.Unmarshal(note, &h) == nil
}
