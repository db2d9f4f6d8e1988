package workspace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"

	"nudge/agent"
)

// maxHashed is the size in bytes up to which a file's content is hashed. Beyond it, its size and time of change
// stand for it: hashing would take seconds.
const maxHashed = 64 << 20

// judgeWrite gives the policy for writing to a path, by what is there.
func judgeWrite(root *os.Root, name string) (agent.Policy, string, error) {
	info, err := replaceable(root, name)
	if err != nil {
		return "", "", err
	}
	if info == nil {
		return agent.PolicyNo, "", nil
	}
	return agent.PolicyAsk, Overwrite, nil
}

// replaceable describes the file that a write would replace; nil when there is none.
func replaceable(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, said(err, "write", name)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%q is a link; write to the file that it leads to", name)
	}
	return info, regular(info, name)
}

// write puts a new file in place in one step: whoever reads, and whatever crashes, finds the old content or the new.
func write(ctx context.Context, root *os.Root, name, content string) (string, error) {
	if len(content) > maxWrite {
		return "", fmt.Errorf("the content has %d bytes; at most %d can be written to a file", len(content), maxWrite)
	}
	before, err := replaceable(root, name)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	mode := fs.FileMode(0o600)
	if before != nil {
		mode = before.Mode().Perm()
	}
	folder := path.Dir(name)
	if err := root.MkdirAll(folder, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = syscall.ENOTDIR
		}
		return "", said(err, "write", name)
	}
	temp := path.Join(folder, tempPrefix+rand.Text())
	err = writeSynced(root, temp, content, mode)
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		// A leftover that cannot be removed either stays hidden, and goes with its folder.
		_ = root.Remove(temp)
		return "", said(err, "write", name)
	}
	if err := syncFolder(root, folder); err != nil {
		return "", said(err, "write", name)
	}
	if before != nil {
		return fmt.Sprintf("Replaced %q; it has %d bytes now.", name, len(content)), nil
	}
	return fmt.Sprintf("Wrote the new file %q, %d bytes.", name, len(content)), nil
}

func writeSynced(root *os.Root, name, content string, mode fs.FileMode) (err error) {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
	}()
	if _, err := file.WriteString(content); err != nil {
		return err
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder makes a rename last through a power cut.
func syncFolder(root *os.Root, name string) error {
	if runtime.GOOS == "windows" { // folders cannot be synced there
		return nil
	}
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// judgeDelete refuses what cannot be deleted, so that nobody is asked about it.
func judgeDelete(root *os.Root, name string) error {
	if name == "." {
		return errors.New("the workspace itself cannot be deleted")
	}
	info, err := root.Lstat(name)
	if err != nil {
		return said(err, "delete", name)
	}
	if !info.IsDir() {
		return nil
	}
	entries, _, err := entriesOf(context.Background(), root, name)
	if err != nil {
		return said(err, "delete", name)
	}
	if len(entries) > 0 {
		return fmt.Errorf("the folder %q is not empty; delete what is in it first", name)
	}
	return nil
}

// remove deletes a file, a link itself, or an empty folder.
func remove(ctx context.Context, root *os.Root, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := judgeDelete(root, name); err != nil {
		return "", err
	}
	err := root.Remove(name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		if err = removeLeftovers(ctx, root, name); err == nil {
			err = root.Remove(name)
		}
	}
	if err != nil {
		return "", said(err, "delete", name)
	}
	return fmt.Sprintf("Deleted %q.", name), nil
}

// removeLeftovers empties a folder in which only files being written are left, as after a crash.
func removeLeftovers(ctx context.Context, root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, leftover := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !strings.HasPrefix(leftover, tempPrefix) {
			continue
		}
		if err := root.Remove(path.Join(name, leftover)); err != nil {
			return err
		}
	}
	return nil
}

// digestOf stands for what is at the path of a call. What cannot be read gets a digest of its own each time, so
// that no approval is ever good for it.
func digestOf(dirs Dirs, in agent.Invocation) string {
	result, err := within(dirs, in, cleaned, Fingerprint)
	if err != nil {
		return "unknown:" + rand.Text()
	}
	return result.Text
}

// Absent is the [Fingerprint] of a path where nothing is, and of one at which nothing can be: below a file, or with too
// long a name.
const Absent = "absent"

// Fingerprint says what is at a path of a folder and, for a file of at most 64 MiB, a hash of its content; for a larger one
// its size and time of change. What is neither file, folder nor link is told by its kind. The error may hold a path.
func Fingerprint(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return Absent, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "folder", nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return "link:" + target, err
	case !info.Mode().IsRegular():
		return "special:" + info.Mode().Type().String(), nil
	}
	file, info, err := openRegular(root, name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info.Size() > maxHashed {
		return fmt.Sprintf("size:%d:changed:%d", info.Size(), info.ModTime().UnixNano()), nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(file, maxHashed)); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), nil
}
