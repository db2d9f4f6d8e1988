//go:build unix

package workspace

import "syscall"

// openWithoutWaiting keeps an open from waiting for somebody at the other end of a named pipe.
const openWithoutWaiting = syscall.O_NONBLOCK
