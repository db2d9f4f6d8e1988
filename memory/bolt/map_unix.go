//go:build unix

package bolt

import (
	"os"
	"syscall"
)

// mapHeads maps the two heads of a file once more, to be looked at without bbolt.
func mapHeads(f *os.File, pageSize int64) (heads []byte, unmap func() error, err error) {
	heads, err = syscall.Mmap(int(f.Fd()), 0, int(2*pageSize), syscall.PROT_READ, syscall.MAP_SHARED)
	return heads, func() error { return syscall.Munmap(heads) }, err
}
