package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"nudge/agent"
	"nudge/memory"
)

// A file that is written while text of strangers is before the model may hold that text, and be read in a conversation that
// knows nothing of where it came from. So it is kept which files those are, until they are written without or deleted. In a folder
// that is everybody's, what one person has had written is text of somebody else's for the next, as in a conversation of several:
// there it is kept of each file who had it written.

// tableOutside has a row for the paths of such files that differ in case at most: the folder, a slash, and the path in small
// letters → [writers].
const tableOutside = "outside file"

// writers tells for each path who has had written what stands there. The paths are as they were given, since there are file systems
// on which case counts. The writer "" stands for strangers, and the path "" for all paths of the row.
type writers map[string]agent.PersonID

// writersAt reads a row; none has no writers. One of an earlier version is empty, and tells of strangers.
func writersAt(tx memory.Tx, key string) (writers, error) {
	data, found, err := tx.Table(tableOutside).Get(key)
	if err != nil || !found {
		return writers{}, err
	}
	return readWriters(data)
}

func readWriters(data []byte) (w writers, err error) {
	if len(data) == 0 {
		return writers{"": ""}, nil
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("read who has written a file: %w", err)
	}
	return w, nil
}

// put keeps a row, or takes it out when it tells nothing any more.
func (w writers) put(tx memory.Tx, key string) error {
	if len(w) == 0 {
		return tx.Table(tableOutside).Delete(key)
	}
	data, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("keep who has written a file: %w", err)
	}
	return tx.Table(tableOutside).Put(key, data)
}

// ForgetOutside takes out which files strangers' text may be in for a person's own folder, with the names of the files. It returns
// how many those were. Of files in a folder that is everybody's it only forgets who had them written.
func ForgetOutside(tx memory.Tx, person agent.PersonID) (removed int, err error) {
	changed := map[string]writers{}
	err = tx.Table(tableOutside).Scan(Dirs{}.outsideKey(person, ""), func(key string, data []byte) error {
		removed++
		changed[key] = nil
		return nil
	})
	if err == nil {
		err = tx.Table(tableOutside).Scan(Dirs{Shared: true}.outsideKey(person, ""), func(key string, data []byte) error {
			w, err := readWriters(data)
			for path, by := range w {
				if by == person {
					w[path] = ""
					changed[key] = w
				}
			}
			return err
		})
	}
	for key, w := range changed {
		if err == nil {
			err = w.put(tx, key)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("forget which files of %s strangers' text may be in: %w", person, err)
	}
	return removed, nil
}

// real is the path to which one of a person's folder leads, past the links on the way: the same file counts by whatever name it
// is read. What is not there yet is where it would be.
func (d Dirs) real(person agent.PersonID, name string) string {
	folder, err := d.Path(person)
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return name
	}
	there, rest := name, ""
	for {
		at, err := filepath.EvalSymlinks(filepath.Join(folder, filepath.FromSlash(there)))
		if err == nil {
			if inside, err := filepath.Rel(folder, at); err == nil && filepath.IsLocal(inside) {
				return path.Join(filepath.ToSlash(inside), rest)
			}
			return name // it leads out, and is not read
		}
		if there == "." {
			return name
		}
		there, rest = path.Dir(there), path.Join(path.Base(there), rest)
	}
}

// outsideKey names the row of a file; "" for path is the beginning of those of its folder.
func (d Dirs) outsideKey(person agent.PersonID, path string) string {
	folder := "shared"
	if !d.Shared {
		folder = folderName(person)
	}
	return folder + "/" + strings.ToLower(path)
}

// strange reports whether somebody's text is that of a stranger to a person.
func (c Config) strange(by, person agent.PersonID) bool {
	return by == "" || by != person && (c.Trusts == nil || !c.Trusts(by))
}

// strangers reports whether any of the writers is a stranger to a person.
func (c Config) strangers(w writers, person agent.PersonID) bool {
	for _, by := range w {
		if c.strange(by, person) {
			return true
		}
	}
	return false
}

// Outside reports whether a file of a person's folder may hold text of strangers to them; for "" as its name, whether any does.
// Where that cannot be told it is taken for so.
func (c Config) Outside(person agent.PersonID, name string) bool {
	if c.Store == nil {
		return false
	}
	if name != "" {
		name = c.Dirs.real(person, name)
	}
	found := false
	err := c.Store.View(context.Background(), func(tx memory.Tx) error {
		found = false
		for at := name; at != "" && !found; at = above(at) {
			w, err := writersAt(tx, c.Dirs.outsideKey(person, at))
			if err != nil {
				return err
			}
			found = c.strangers(w, person)
		}
		if name != "" {
			return nil
		}
		return tx.Table(tableOutside).Scan(c.Dirs.outsideKey(person, ""), func(_ string, data []byte) error {
			w, err := readWriters(data)
			if err == nil && c.strangers(w, person) {
				found, err = true, memory.ErrStop
			}
			return err
		})
	})
	return found || err != nil
}

// above is the folder that a file or a folder is in; "" for the whole folder.
func above(name string) string {
	if name == "." {
		return ""
	}
	return path.Dir(name)
}

// writer is whose text a call writes, and whether that is kept.
func (c Config) writer(in agent.Invocation, tainted bool) (by agent.PersonID, kept bool) {
	switch {
	case c.Store == nil:
		return "", false
	case tainted:
		return "", true
	}
	return in.Person.ID, c.Dirs.Shared
}

// Copied must be asked before a program runs in a person's folder that may write there, and then gives, once it has
// run, what keeps whose text may be in the files and folders that its arguments name, and in those that have become
// others meanwhile: that of strangers where such a text was before the model, or is in any file, which the program may
// have copied. Nil where there is nothing to keep.
//
// While the program runs all of the folder counts, so that nothing is missed if this program ends first.
func (c Config) Copied(ctx context.Context, in agent.Invocation) (after func(names []string) func(tx memory.Tx) error, err error) {
	by, kept := c.writer(in, in.Tainted || c.Outside(in.Person.ID, ""))
	if !kept {
		return nil, nil
	}
	before, running := c.snap(in), "./"+in.Key
	err = c.Store.Update(ctx, func(tx memory.Tx) error { return c.mark(tx, in, ".", running, by) })
	if err != nil {
		return nil, errors.New("what it leaves cannot be noted now") // the store's words are not for the model
	}
	return func(names []string) func(tx memory.Tx) error {
		var paths []string
		for _, name := range append(c.snap(in).since(before), names...) {
			if path := c.Dirs.real(in.Person.ID, name); c.Dirs.has(in.Person.ID, name) && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
		return func(tx memory.Tx) error {
			if err := c.unmark(tx, in, ".", running); err != nil {
				return err
			}
			for _, path := range paths {
				if err := c.keep(tx, in, path, by); err != nil {
					return err
				}
			}
			return nil
		}
	}, nil
}

// snap notes how everything in the folder of a call's person is; nil where that cannot be told.
func (c Config) snap(in agent.Invocation) snapshot {
	root, err := c.Dirs.Root(in.Person.ID)
	if err != nil {
		return nil
	}
	defer root.Close()
	return snap(root)
}

// has reports whether something is there in a person's folder.
func (d Dirs) has(person agent.PersonID, name string) bool {
	root, err := d.Root(person)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Lstat(name)
	return err == nil
}

// keep notes whose text is at a path.
func (c Config) keep(tx memory.Tx, in agent.Invocation, path string, by agent.PersonID) error {
	return c.mark(tx, in, path, path, by)
}

// drop notes that there is no text of strangers at a path.
func (c Config) drop(tx memory.Tx, in agent.Invocation, path string) error {
	return c.unmark(tx, in, path, path)
}

// mark notes under a name, in the row of a path, whose text is there.
func (c Config) mark(tx memory.Tx, in agent.Invocation, path, name string, by agent.PersonID) error {
	key := c.Dirs.outsideKey(in.Person.ID, path)
	w, err := writersAt(tx, key)
	if err == nil {
		delete(w, "") // of an earlier version
		w[name] = by
		err = w.put(tx, key)
	}
	if err != nil {
		return fmt.Errorf("note whose text is in a file: %w", err)
	}
	return nil
}

// unmark takes a note out of the row of a path.
func (c Config) unmark(tx memory.Tx, in agent.Invocation, path, name string) error {
	key := c.Dirs.outsideKey(in.Person.ID, path)
	w, err := writersAt(tx, key)
	if err == nil && len(w) > 0 {
		delete(w, "") // of an earlier version
		delete(w, name)
		err = w.put(tx, key)
	}
	if err != nil {
		return fmt.Errorf("note that a file holds nothing of strangers: %w", err)
	}
	return nil
}

// beforeWrite notes, before a call writes to a file, whose text will be in it. Until the new text is there for certain, the old one
// may still be; where that was somebody else's, the file counts as text of strangers so long.
func (c Config) beforeWrite(ctx context.Context, in agent.Invocation, name string) error {
	by, kept := c.writer(in, in.Tainted)
	if !kept {
		return nil
	}
	path := c.Dirs.real(in.Person.ID, name)
	err := c.Store.Update(ctx, func(tx memory.Tx) error {
		w, err := writersAt(tx, c.Dirs.outsideKey(in.Person.ID, path))
		if err != nil {
			return err
		}
		until := by
		for _, before := range w {
			if before != by {
				until = ""
			}
		}
		return c.keep(tx, in, path, until)
	})
	if err != nil {
		return errors.New("the file cannot be written now") // the store's words are not for the model
	}
	return nil
}

// afterWrite gives what notes, with the result of a call that wrote a file anew, whose text is in it now. Nil where there is
// nothing to note.
func (c Config) afterWrite(in agent.Invocation, name string) func(tx memory.Tx) error {
	by, kept := c.writer(in, in.Tainted)
	if c.Store == nil || !kept && !c.Outside(in.Person.ID, name) {
		return nil
	}
	path := c.Dirs.real(in.Person.ID, name)
	if !kept {
		return func(tx memory.Tx) error { return c.drop(tx, in, path) }
	}
	return func(tx memory.Tx) error { return c.keep(tx, in, path, by) }
}

// afterDelete gives what forgets, with the result of a call that deletes something, whose text that was. It must be
// called before the deletion, which leaves what a link leads to. Nil where there is nothing to forget.
func (c Config) afterDelete(in agent.Invocation, root *os.Root, name string) func(tx memory.Tx) error {
	info, err := root.Lstat(name)
	if c.Store == nil || err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	path := c.Dirs.real(in.Person.ID, name)
	return func(tx memory.Tx) error { return c.drop(tx, in, path) }
}
