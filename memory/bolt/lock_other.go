//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package bolt

import "os"

// tryLock leaves locking to bbolt, which on these systems has a way of its own.
func tryLock(*os.File, bool) error { return nil }
