package script

import "golang.org/x/sys/unix"

func bound(which int, value uint64) error {
	return unix.Setrlimit(which, &unix.Rlimit{Cur: value, Max: value})
}
