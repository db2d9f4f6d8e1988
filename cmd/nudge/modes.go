package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"nudge/agent/tool/workspace"
)

// others is what anybody but this account may do with a file.
const others fs.FileMode = 0o077

// closeOff takes from others what they may do with the files and folders that are Nudge's own, as an earlier version or a copy
// may have left them, and warns of what it finds. The data file sees to itself. The data directory may be somebody's own
// choice: of that it warns only.
func closeOff(dataDir string, folders workspace.Dirs, log *slog.Logger) {
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(dataDir); err == nil && info.Mode().Perm()&others != 0 {
		log.Warn("others can look into the data directory; what is in it is closed to them, and `chmod 700` closes it as well", "directory", dataDir, "mode", info.Mode().Perm())
	}
	own := []string{filepath.Join(dataDir, "nudge.db.lock")}
	if filepath.Dir(folders.Dir) == filepath.Clean(dataDir) {
		own = append(own, folders.Dir)
	}
	if !folders.Shared {
		own = append(own, folders.All()...)
	}
	for _, path := range own {
		if err := closeOne(path, log); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("cannot close a file of mine to others", "path", path, "error", err)
		}
	}
}

// closeOne closes one file or folder, not what a link leads to.
func closeOne(path string, log *slog.Logger) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 || info.Mode().Perm()&others == 0 {
		return err
	}
	if err := os.Chmod(path, info.Mode().Perm()&^others); err != nil {
		return err
	}
	log.Warn("others could look into what is mine; they no longer can", "path", strings.ToValidUTF8(path, "?"), "mode", info.Mode().Perm())
	return nil
}
