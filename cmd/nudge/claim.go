package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// errHeld says that another process has a lock.
var errHeld = errors.New("another process has the lock")

// takenError says who has claimed something.
type takenError struct{ holder string }

func (e *takenError) Error() string { return e.holder }

// claim lets this process alone, of all that this account runs on this machine, have something of which there is only one,
// such as an app of a platform. The data file's lock does that for processes with the same data directory; this is for those
// with others. It ends with the process at the latest, whatever ends that. A claim of another process is a [*takenError].
func claim(kind, secret, dataDir string) (release func() error, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a place for a lock: %w", err)
	}
	dir := filepath.Join(cache, "nudge")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for a lock: %w", err)
	}
	digest := sha256.Sum256([]byte(secret))
	path := filepath.Join(dir, kind+"-"+hex.EncodeToString(digest[:8])+".lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a lock: %w", err)
	}
	if err := lockFile(file); err != nil {
		_ = file.Close()
		if errors.Is(err, errHeld) {
			return nil, &takenError{readHolder(path)}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Who holds it is for people to read; the lock alone counts.
	if file.Truncate(0) == nil {
		_, _ = fmt.Fprintf(file, "pid %d, data directory %s\n", os.Getpid(), dataDir)
	}
	return file.Close, nil
}

// readHolder is what the holder of a lock has written into it.
func readHolder(path string) string {
	data, err := os.ReadFile(path)
	if text := strings.TrimSpace(string(data)); err == nil && text != "" {
		return text
	}
	return "which does not tell its name"
}
