package workspace

import (
	"io/fs"
	"syscall"
)

// altered is when anything of a file was changed, by the system's clock.
func altered(info fs.FileInfo) int64 {
	if of, known := info.Sys().(*syscall.Stat_t); known {
		return of.Ctim.Nano()
	}
	return 0
}
