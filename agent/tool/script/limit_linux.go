package script

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func bound(which int, value uint64) error {
	return unix.Setrlimit(which, &unix.Rlimit{Cur: value, Max: value})
}

// noNewRights keeps this process from rights that programs with other owners would give it.
func noNewRights() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new rights: %w", err)
	}
	return nil
}
