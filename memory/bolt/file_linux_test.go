//go:build amd64 || arm64

package bolt

import (
	"errors"
	"log/slog"
	"syscall"
	"testing"
)

// Where the mapping that is wished for cannot be had, the file opens with a small one.
func TestLittleAddressSpace(t *testing.T) {
	s := &Store{path: seed(t), log: slog.New(slog.DiscardHandler)}
	if err := s.load(Options{}, 1<<47); !errors.Is(err, syscall.ENOMEM) {
		t.Fatalf("mapping more than there is: %v", err)
	}
	if err := s.load(Options{}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
}
