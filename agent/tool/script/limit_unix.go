//go:build linux || darwin || freebsd

package script

import (
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// processMemory is what the process may take in all, in bytes: the script's values, and Go itself.
const processMemory = 512 << 20

// confine bounds this process for good: the bounds cannot be raised again. It can open nothing any more, write no file, and
// is killed when it works longer than a script may.
func confine() error {
	time.AfterFunc(0, func() {}) // what Go opens for its timers must be open before
	debug.SetMemoryLimit(maxMemory * 2)
	debug.SetMaxStack(processMemory / 2)
	bounds := []struct {
		name  string
		which int
		value uint64
	}{
		{"memory", unix.RLIMIT_DATA, processMemory},
		{"working time", unix.RLIMIT_CPU, uint64((maxTime + 2*time.Second) / time.Second)},
		{"files", unix.RLIMIT_FSIZE, 0},
		{"dumps", unix.RLIMIT_CORE, 0},
		{"open files", unix.RLIMIT_NOFILE, 3}, // those that it has
	}
	for _, b := range bounds {
		if err := bound(b.which, b.value); err != nil {
			return fmt.Errorf("bound its %s: %w", b.name, err)
		}
	}
	return noNewRights()
}
