package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Zone is the IANA name of this machine's time zone; "UTC" when it cannot be told.
func Zone() string {
	if name := strings.TrimPrefix(os.Getenv("TZ"), ":"); known(name) {
		return name
	}
	if target, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, name, found := strings.Cut(target, "zoneinfo/"); found && known(name) {
			return name
		}
	}
	if data, err := os.ReadFile("/etc/timezone"); err == nil {
		if name := strings.TrimSpace(string(data)); known(name) {
			return name
		}
	}
	return "UTC"
}

func known(name string) bool {
	if name == "" || name == "Local" {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}
