//go:build !linux

package bolt

import "errors"

// disk is not known on these systems.
func disk(string) (kind uint32, room int64, err error) { return 0, 0, errors.ErrUnsupported }
