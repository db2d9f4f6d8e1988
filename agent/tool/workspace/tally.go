package workspace

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"nudge/agent"
)

// What a person's folder may hold, so that a model that goes on writing fills no disk. In a folder that is everybody's, and may be
// one that was there before, it is sharedTimes as much. Whatever is in the folder counts, whoever has put it there; but only the
// writes of the tools here are held to it. What a command or an MCP server writes by itself meets no bound here.
const (
	mostFiles   = 10_000    // files, folders and links
	mostBytes   = 256 << 20 // of the files
	sharedTimes = 10
	deepest     = 64 // folders inside each other
)

// holding is how much is in a folder.
type holding struct {
	files int
	bytes int64
}

func (h holding) plus(other holding) holding {
	return holding{h.files + other.files, h.bytes + other.bytes}
}

// tallies know how much is in the folders that are written to. A small folder is counted at each write. The count of a large one
// is used again for a while, in proportion to what counting costs, and what the tools change meanwhile is added to it. Nothing is
// ever refused without counting anew. Their methods may be called concurrently.
type tallies struct {
	most  holding
	seed  maphash.Seed
	slots [64]tally // a folder's is found by its name; two that share one only make each other be counted
}

func newTallies(dirs Dirs) *tallies {
	most := holding{mostFiles, mostBytes}
	if dirs.Shared {
		most = holding{sharedTimes * mostFiles, sharedTimes * mostBytes}
	}
	return &tallies{most: most, seed: maphash.MakeSeed()}
}

// tally is how much was in a folder when it was counted, with what was changed since.
type tally struct {
	mu sync.Mutex // held while something is written to the folder or deleted
	holding
	folder  string
	counted time.Time // zero when it is not known
}

// large is from how many files on a folder is not counted each time, and perFile for how long a count is then good: several tens
// of times as long as it takes.
const (
	large   = 100
	perFile = 100 * time.Microsecond
)

// lock gives the tally of a folder for a change of it. The caller unlocks mu.
func (t *tallies) lock(folder string) *tally {
	slot := &t.slots[maphash.String(t.seed, folder)%uint64(len(t.slots))]
	slot.mu.Lock()
	if slot.folder != folder {
		slot.folder, slot.counted = folder, time.Time{}
	}
	return slot
}

// good reports whether what was counted can be taken for what is there.
func (t *tally) good() bool {
	return !t.counted.IsZero() && t.files >= large && time.Since(t.counted) < time.Duration(t.files)*perFile
}

// admit says why a change may not be made to a folder, in words for the model; nil when it may. A change that takes no more room
// always may, even where there is too much already.
func (t *tally) admit(ctx context.Context, root *os.Root, change, most holding) error {
	if change.files <= 0 && change.bytes <= 0 {
		return nil
	}
	if t.good() && over(t.holding, change, most) == nil {
		return nil
	}
	t.counted = time.Time{}
	now := time.Now()
	found, err := count(ctx, root, sharedTimes*most.files)
	if err != nil {
		return err
	}
	t.holding, t.counted = found, now
	return over(found, change, most)
}

// changed notes a change that was made. After an error nobody knows how much of it was, so that the folder is counted anew.
func (t *tally) changed(by holding, err error) {
	if err != nil {
		t.counted = time.Time{}
		return
	}
	t.holding = t.plus(by)
}

// over says what would be too much, in words for the model.
func over(has, change, most holding) error {
	then := has.plus(change)
	switch {
	case change.files > 0 && then.files > most.files:
		return fmt.Errorf("the workspace is full: it has %d files and folders, and may have %d; delete some that are not needed any more, then write this again", has.files, most.files)
	case change.bytes > 0 && then.bytes > most.bytes:
		return fmt.Errorf("the workspace is full: its files have %d bytes and may have %d, so that there is no room for %d more; delete some that are not needed any more, then write this again",
			has.bytes, most.bytes, change.bytes)
	}
	return nil
}

// count looks through a folder. A folder within that may not be looked into counts as one file: nothing here can write there
// either. Where it cannot tell, and where there is more than anybody has a use for, that is an error in words for the model.
func count(ctx context.Context, root *os.Root, atMost int) (h holding, err error) {
	folders := []string{"."}
	for len(folders) > 0 {
		name := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		within, err := countOne(ctx, root, name, &h, atMost)
		switch {
		case errors.Is(err, fs.ErrPermission) && name != ".", errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return h, said(err, "count what is in", name)
		case h.files > atMost:
			return h, fmt.Errorf("the workspace is full: it has more than %d files and folders; delete what is not needed any more, then write this again", atMost)
		case len(within) > 0 && strings.Count(within[0], "/") >= 2*deepest:
			return h, fmt.Errorf("the workspace has more than %d folders inside each other, so that it cannot be told how much it holds; delete some of them, then write this again", 2*deepest)
		}
		folders = append(folders, within...)
	}
	return h, nil
}

// countOne adds what is in one folder, and gives the folders in it.
func countOne(ctx context.Context, root *os.Root, name string, h *holding, atMost int) (folders []string, err error) {
	folder, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	for h.files <= atMost {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entries, err := folder.ReadDir(1000)
		for _, entry := range entries {
			h.files++
			switch info, err := entry.Info(); {
			case entry.IsDir():
				folders = append(folders, path.Join(name, entry.Name()))
			case err == nil && info.Mode().IsRegular():
				h.bytes += info.Size()
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return folders, nil
		case err != nil:
			return nil, err
		}
	}
	return folders, nil
}

// growth is what a write changes of what a folder holds.
func growth(root *os.Root, name string, size int) (change holding, err error) {
	if strings.Count(name, "/") > deepest {
		return change, fmt.Errorf("the path %q leads through more than %d folders; use fewer", agent.Head(name, 100)+"…", deepest)
	}
	before, err := replaceable(root, name)
	if err != nil {
		return change, err
	}
	if before != nil {
		return holding{bytes: int64(size) - before.Size()}, nil
	}
	change = holding{files: 1, bytes: int64(size)}
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if _, err := root.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break // it is there, or the write will say what is wrong with it
		}
		change.files++
	}
	return change, nil
}

// shrinkage is what deleting something changes.
func shrinkage(root *os.Root, name string) holding {
	change := holding{files: -1}
	if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
		change.bytes = -info.Size()
	}
	return change
}
