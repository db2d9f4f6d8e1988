package memorytest

import (
	"os"
	"testing"
)

// Dir is a folder for a test's store, gone when the test has ended. It is no disk's where there is such a place: in most tests
// it is the program that dies, not the machine, and waiting for a disk is most of what they would do. A benchmark, which measures
// that as well, gets a disk's.
func Dir(t testing.TB) string {
	t.Helper()
	if _, measured := t.(*testing.B); measured {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "nudge-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
