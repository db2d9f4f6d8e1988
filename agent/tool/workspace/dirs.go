// Package workspace gives the agent a folder of files, and people a folder each.
//
// [Dirs] says whose folder is whose, [Tools] makes the tools list_files, read_file, write_file and delete_file for
// them. Everything goes through [os.Root]: no path, however it is spelled and whatever links lie on the way, reaches
// anything outside the folder.
package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"nudge/agent"
)

// Dirs says where people's files are. It may be used concurrently.
type Dirs struct {
	Dir    string // holds a folder for each person
	Shared bool   // Dir itself is the one folder of everybody
}

// longestName is how many bytes a folder's name may have before a digest stands for it; file systems allow 255.
const longestName = 200

// Root opens the person's folder, which is created, for this account only, when it isn't there. Two people never
// share one unless all do. An empty id is an error. Whoever called it closes the root.
func (d Dirs) Root(p agent.PersonID) (*os.Root, error) {
	if p == "" {
		return nil, errors.New("open a workspace: the person is not known")
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the workspace of %s: %w", p, err)
	}
	all, err := os.OpenRoot(d.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace of %s: %w", p, err)
	}
	if d.Shared {
		return all, nil
	}
	defer all.Close()
	own, err := openOwn(all, folderName(p))
	if err != nil {
		return nil, fmt.Errorf("open the workspace of %s: %w", p, err)
	}
	return own, nil
}

// Path is the absolute path of the person's folder, for programs that run in it. It is created like Root's.
func (d Dirs) Path(p agent.PersonID) (string, error) {
	root, err := d.Root(p)
	if err != nil {
		return "", err
	}
	defer root.Close()
	path, err := filepath.Abs(filepath.Join(d.Dir, d.folder(p)))
	if err != nil {
		return "", fmt.Errorf("find the workspace of %s: %w", p, err)
	}
	return path, nil
}

// folder is where a person's folder is within Dir.
func (d Dirs) folder(p agent.PersonID) string {
	if d.Shared {
		return "."
	}
	return folderName(p)
}

// openOwn opens one person's folder. A link in its place is refused, for it could lead to another person's.
func openOwn(all *os.Root, name string) (*os.Root, error) {
	if err := all.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := all.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", name)
	}
	return all.OpenRoot(name)
}

// folderName writes an id as a name that every file system takes and that no other id gets, also where case does
// not count: a colon becomes +, a capital _ and its small letter, any other byte = and two hexadecimal digits. A
// name that gets too long is a digest behind ~, which no other name begins with.
func folderName(p agent.PersonID) string {
	var name strings.Builder
	name.WriteString("p-") // no name is one that some system reserves
	for i := range len(p) {
		switch c := p[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
			name.WriteByte(c)
		case c >= 'A' && c <= 'Z':
			name.WriteByte('_')
			name.WriteByte(c - 'A' + 'a')
		case c == ':':
			name.WriteByte('+')
		default:
			fmt.Fprintf(&name, "=%02x", c)
		}
	}
	if name.Len() > longestName {
		return fmt.Sprintf("~%x", sha256.Sum256([]byte(p)))
	}
	return name.String()
}

// Forget removes the person's folder with all files in it and returns how many those were; 0 when there is no folder, or one
// is shared by everybody, which is left as it is.
func (d Dirs) Forget(p agent.PersonID) (files int, err error) {
	if d.Shared || p == "" {
		return 0, nil
	}
	all, err := os.OpenRoot(d.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remove the workspace of %s: %w", p, err)
	}
	defer all.Close()
	name := folderName(p)
	err = fs.WalkDir(all.FS(), name, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files++
		}
		return nil // what cannot be counted is removed all the same
	})
	if err == nil {
		err = all.RemoveAll(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("remove the workspace of %s: %w", p, err)
	}
	return files, nil
}

// All are the paths of people's folders that are there; none when one is shared by everybody.
func (d Dirs) All() (paths []string) {
	entries, err := os.ReadDir(d.Dir)
	if err != nil || d.Shared {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), "p-") || strings.HasPrefix(entry.Name(), "~")) {
			paths = append(paths, filepath.Join(d.Dir, entry.Name()))
		}
	}
	return paths
}
