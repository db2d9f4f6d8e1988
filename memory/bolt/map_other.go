//go:build !unix

package bolt

import "os"

// mapHeads does nothing where a file that is mapped cannot be cut off.
func mapHeads(*os.File, int64) (heads []byte, unmap func() error, err error) {
	return nil, func() error { return nil }, nil
}
