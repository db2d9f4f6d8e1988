package workspace

import (
	"io/fs"
	"os"
	"path"
	"slices"
)

const (
	mostSeen    = 200_000 // files and folders of which it is noted how they were before a command
	mostChanged = 500     // that are told one by one
)

// snapshot is how files were, by path; nil where there are too many.
type snapshot map[string]fileState

type fileState struct {
	mode    fs.FileMode
	size    int64
	changed int64 // when its content was, in nanoseconds, as far as whoever wrote it wants that to be known
	altered int64 // when anything of it was, where the system tells that; no program sets it
}

// snap notes how everything in a folder is. What cannot be read is left out.
func snap(root *os.Root) snapshot {
	seen := snapshot{}
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := entry.Info(); err == nil && !info.IsDir() {
			seen[name] = fileState{info.Mode(), info.Size(), info.ModTime().UnixNano(), altered(info)}
		}
		if len(seen) > mostSeen {
			seen = nil
			return fs.SkipAll
		}
		return nil
	})
	return seen
}

// since are the files that are new or other than they were before, or the folders that have them where they are many: the whole
// folder, ".", where that cannot be told.
func (s snapshot) since(before snapshot) (changed []string) {
	if s == nil || before == nil {
		return []string{"."}
	}
	for name, state := range s {
		if before[name] != state {
			changed = append(changed, name)
		}
	}
	for len(changed) > mostChanged {
		for i, name := range changed {
			changed[i] = path.Dir(name)
		}
		slices.Sort(changed)
		changed = slices.Compact(changed)
	}
	slices.Sort(changed)
	return changed
}
