//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// A file that may not grow any more is an error of the write to it, as a full disk is, not the program's end.
func init() { signal.Ignore(syscall.SIGXFSZ) }
