package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// longestFile bounds, in bytes, what is read of a config file.
const longestFile = 1 << 20

// Find is the path of the config file that counts: explicit if it isn't "", otherwise nudge/config.toml in
// $XDG_CONFIG_HOME or $HOME/.config if that file exists, otherwise "", which Load takes for the defaults.
func Find(explicit string) string {
	if explicit != "" {
		return explicit
	}
	path := UserFile()
	if path == "" {
		return ""
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// UserFile is where the user's config file is, or would be; "" when that is not known.
func UserFile() string {
	folder, ok := userFolder("XDG_CONFIG_HOME", ".config")
	if !ok {
		return ""
	}
	return filepath.Join(folder, "config.toml")
}

// Load reads and checks a config file of at most 1 MiB; without a path it gives Default. What is wrong in the file is
// an *Error, the first one of the file; a file that can't be read is an error of another kind. Load reads no secret
// and changes nothing.
func Load(path string) (Config, error) {
	if path == "" {
		return Default(), nil
	}
	document, err := readFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the config: %w", err)
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return Config{}, fmt.Errorf("find the folder of %s: %w", path, err)
	}
	return read(path, folder, document)
}

// Check says what is wrong with a document that is to be the config file at a path, as Load would.
func Check(path string, document []byte) error {
	_, err := read(path, filepath.Dir(path), document)
	return err
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	document, err := io.ReadAll(io.LimitReader(file, longestFile+1))
	if err != nil {
		return nil, err
	}
	if len(document) > longestFile {
		return nil, fmt.Errorf("%s is longer than 1 MiB", path)
	}
	return document, nil
}

// read makes a Config of a document. Relative paths in it start at folder.
func read(path, folder string, document []byte) (Config, error) {
	values, places, err := parse(path, document)
	if err != nil {
		return Config{}, err
	}
	c := base()
	c.File = path
	f := filler{faults: &faults{file: path}, folder: folder}
	f.root(&c, values, places)
	check(&c, places, f.faults)
	if err := f.err(); err != nil {
		return Config{}, err
	}
	c.DataDir = absolute(folder, c.DataDir)
	c.Workspace.Dir = absolute(folder, c.Workspace.Dir)
	return c, nil
}

// absolute resolves a path of the config. "" stays, and "~/" is the user's home folder.
func absolute(folder, path string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// FindDataDir is the absolute path of the data directory: explicit if it isn't "", otherwise the config's data_dir,
// otherwise nudge in $XDG_DATA_HOME or $HOME/.local/share. It is an error when none of them is set. Nothing is made.
func (c Config) FindDataDir(explicit string) (string, error) {
	if explicit == "" {
		explicit = c.DataDir
	}
	if explicit != "" {
		path, err := filepath.Abs(explicit)
		if err != nil {
			return "", fmt.Errorf("find the data directory %s: %w", explicit, err)
		}
		return path, nil
	}
	folder, ok := userFolder("XDG_DATA_HOME", filepath.Join(".local", "share"))
	if !ok {
		return "", errors.New("find the data directory: neither --data, data_dir, XDG_DATA_HOME nor HOME is set")
	}
	return folder, nil
}

// WorkspaceDir is the absolute path of the folder that the file tools work in, given the data directory.
func (c Config) WorkspaceDir(dataDir string) string {
	if c.Workspace.Dir != "" {
		return c.Workspace.Dir
	}
	return filepath.Join(dataDir, "workspace")
}

// userFolder is Nudge's folder in one of the user's base directories. By the rule for these, a variable that holds no
// absolute path counts as not set.
func userFolder(variable, underHome string) (string, bool) {
	if base := os.Getenv(variable); filepath.IsAbs(base) {
		return filepath.Join(base, "nudge"), true
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", false
	}
	return filepath.Join(home, underHome, "nudge"), true
}
