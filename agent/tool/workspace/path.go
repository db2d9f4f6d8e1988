package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"nudge/agent"
)

// tempPrefix begins the names of files that are being written. They are never shown and cannot be named.
const tempPrefix = ".nudge-tmp-"

// longestPath is in bytes, as Linux has it.
const longestPath = 4096

// cleaned checks a path as the model wrote it and gives it in its shortest form; "." is the folder itself. The
// root would refuse most of what is refused here; this says why in words.
func cleaned(name string) (string, error) {
	switch {
	case len(name) > longestPath:
		return "", errors.New("the path is too long")
	case strings.HasPrefix(name, "/"), len(name) > 1 && name[1] == ':':
		return "", fmt.Errorf("the path %q must be relative to the workspace", name)
	case strings.Contains(name, `\`):
		return "", fmt.Errorf("the path %q has a backslash; write / between folders", name)
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return "", fmt.Errorf("the path %q has characters that cannot be seen", name)
	}
	short := path.Clean(name)
	if short == ".." || strings.HasPrefix(short, "../") {
		return "", fmt.Errorf("the path %q leads out of the workspace", name)
	}
	for part := range strings.SplitSeq(short, "/") {
		if strings.HasPrefix(part, tempPrefix) {
			return "", fmt.Errorf("the name %q is kept for files being written", part)
		}
	}
	return short, nil
}

// cleanedFile is cleaned for a path that must name a file.
func cleanedFile(name string) (string, error) {
	short, err := cleaned(name)
	if err != nil {
		return "", err
	}
	if short == "." || strings.HasSuffix(name, "/") {
		return "", fmt.Errorf("the path %q names a folder, not a file", name)
	}
	return short, nil
}

// histories are the folders in which version control keeps what it has and which programs it runs.
var histories = []string{".git", ".hg", ".svn", ".bzr", ".jj"}

// inHistory reports whether a path leads into such a folder, by whatever letters: for some file systems those are all the same.
func inHistory(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.ContainsFunc(histories, func(folder string) bool { return strings.EqualFold(part, folder) }) {
			return true
		}
	}
	return false
}

// writable says why a call may not write to a path: what is written into the folder of a version control names programs
// that a harmless command of it runs.
func (d Dirs) writable(in agent.Invocation, name string) error {
	if inHistory(name) || inHistory(d.real(in.Person.ID, name)) {
		return fmt.Errorf("%q is in a folder of version control, into which no file is written by hand", name)
	}
	return nil
}

// said puts an error of the file system into one sentence for the model, without the machine's paths.
func said(err error, doing, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return missing(name)
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s %q: a part of the path is a file, not a folder", doing, name)
	case errors.Is(err, syscall.ELOOP):
		return fmt.Errorf("%s %q: too many links", doing, name)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%s %q: the name is too long", doing, name)
	case escapes(err):
		return fmt.Errorf("%q leads out of the workspace", name)
	}
	// The reason is the system's own word, such as "permission denied"; other errors may hold paths and are not shown.
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("%s %q: %w", doing, name, number)
	}
	return fmt.Errorf("%s %q failed", doing, name)
}

// escapes recognises the root's refusal, to which package os gives no name.
func escapes(err error) bool {
	why, ok := errors.AsType[*fs.PathError](err)
	return ok && strings.Contains(why.Err.Error(), "escapes")
}

func missing(name string) error {
	return fmt.Errorf("there is no file %q; list_files shows what there is", name)
}
