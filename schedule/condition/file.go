package condition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"nudge/schedule"
)

const (
	maxHashed  = 32 << 20 // a longer file is compared by size and time
	maxEntries = 10_000   // of a folder
	missing    = "missing"
)

// file looks at one file or folder.
type file struct {
	path     string // as it was written
	dir      string
	confined bool
	test     string
	age      time.Duration
	now      func() time.Time
}

func newFile(spec schedule.Spec, env Env) (schedule.Condition, error) {
	if env.Confined && !filepath.IsLocal(spec.Path) {
		return nil, fmt.Errorf("heartbeat.condition.path: %q leads out of the folder", spec.Path)
	}
	return file{path: spec.Path, dir: env.Dir, confined: env.Confined, test: spec.Test, age: spec.Age, now: env.Now}, nil
}

func (f file) Check(ctx context.Context, previous string) (schedule.Finding, error) {
	finding, err := f.check(ctx, previous)
	if err != nil {
		return schedule.Finding{}, fmt.Errorf("check file %q: %w", f.path, plain(err))
	}
	return finding, nil
}

// plain leaves the path out of an error, which names it already and perhaps in full.
func plain(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func (f file) check(ctx context.Context, previous string) (schedule.Finding, error) {
	if err := ctx.Err(); err != nil {
		return schedule.Finding{}, err
	}
	opener, err := f.opener()
	if err != nil {
		return schedule.Finding{}, err
	}
	defer opener.close()
	info, err := opener.stat()
	if errors.Is(err, fs.ErrNotExist) {
		return f.absent(previous), nil
	}
	if err != nil {
		return schedule.Finding{}, err
	}
	found := schedule.Finding{Evidence: evidence(fmt.Sprintf("%s: %d bytes, changed %s", f.path, info.Size(), info.ModTime().UTC().Format(time.RFC3339)))}
	switch f.test {
	case "exists":
		found.True = true
	case "older_than":
		found.True = f.now().Sub(info.ModTime()) > f.age
	case "changed":
		found.State, err = digest(ctx, opener, info)
		found.True = previous != "" && found.State != previous
	case "grows":
		found.State = strconv.FormatInt(info.Size(), 10)
		found.True = grew(previous, info.Size())
		if found.True {
			found.Evidence = evidence(found.Evidence + "\n" + tail(opener, previous, info.Size()))
		}
	}
	return found, err
}

func (f file) absent(previous string) schedule.Finding {
	found := schedule.Finding{True: f.test == missing, Evidence: evidence(f.path + " does not exist")}
	switch f.test {
	case "changed":
		found.State = missing
		found.True = previous != "" && previous != missing
	case "grows":
		found.State = "0"
	}
	return found
}

func grew(previous string, size int64) bool {
	before, err := strconv.ParseInt(previous, 10, 64)
	return err == nil && size > before
}

// tail gives the end of what was added.
func tail(opener opener, previous string, size int64) string {
	before, err := strconv.ParseInt(previous, 10, 64)
	if err != nil {
		return ""
	}
	opened, err := opener.open()
	if err != nil {
		return ""
	}
	defer opened.Close()
	const most = schedule.MaxEvidence / 2
	data := make([]byte, min(size-before, most))
	n, err := opened.ReadAt(data, size-int64(len(data)))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return string(data[:n])
}

// digest stands for what a file or the list of a folder holds.
func digest(ctx context.Context, opener opener, info fs.FileInfo) (string, error) {
	if !info.IsDir() && (!info.Mode().IsRegular() || info.Size() > maxHashed) {
		return fmt.Sprintf("%d@%d", info.Size(), info.ModTime().UnixNano()), nil
	}
	opened, err := opener.open()
	if err != nil {
		return "", err
	}
	defer opened.Close()
	hash := sha256.New()
	if info.IsDir() {
		err = list(hash, opened)
	} else {
		_, err = io.Copy(hash, io.LimitReader(reader{ctx, opened}, maxHashed))
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

func list(to io.Writer, folder *os.File) error {
	entries, err := folder.Readdir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	lines := make([]string, 0, len(entries))
	for _, entry := range entries {
		lines = append(lines, fmt.Sprintf("%q %d %d\n", entry.Name(), entry.Size(), entry.ModTime().UnixNano()))
	}
	// The order in which a folder lists its entries is not its content.
	slices.Sort(lines)
	_, err = io.WriteString(to, strings.Join(lines, ""))
	return err
}

// reader ends with its context, so that a long file does not hold up a check that is out of time.
type reader struct {
	ctx  context.Context
	file io.Reader
}

func (r reader) Read(into []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.file.Read(into)
}

// opener reaches the file: freely, or through a root that it cannot leave.
type opener struct {
	stat  func() (fs.FileInfo, error)
	open  func() (*os.File, error)
	close func()
}

func (f file) opener() (opener, error) {
	if !f.confined {
		path := f.path
		if !filepath.IsAbs(path) {
			path = filepath.Join(f.dir, path)
		}
		return opener{
			stat:  func() (fs.FileInfo, error) { return os.Stat(path) },
			open:  func() (*os.File, error) { return os.Open(path) },
			close: func() {},
		}, nil
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return opener{}, err
	}
	return opener{
		stat:  func() (fs.FileInfo, error) { return root.Stat(f.path) },
		open:  func() (*os.File, error) { return root.Open(f.path) },
		close: func() { _ = root.Close() },
	}, nil
}
