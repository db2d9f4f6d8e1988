//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"errors"
	"os"
)

// lockFile cannot lock here.
func lockFile(*os.File) error { return errors.ErrUnsupported }
