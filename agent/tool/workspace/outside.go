package workspace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"nudge/agent"
	"nudge/memory"
)

// A file that is written while text of strangers is before the model may hold that text, and be read in a conversation that
// knows nothing of where it came from. So it is kept which files those are, until they are written without.

// tableOutside has a row for each such file: its folder, a slash, and its path in small letters, since there are file
// systems on which case does not count.
const tableOutside = "outside file"

// ForgetOutside takes that out for a person's own folder, with the names of their files. It returns how many files those were.
func ForgetOutside(tx memory.Tx, person agent.PersonID) (removed int, err error) {
	var keys []string
	err = tx.Table(tableOutside).Scan(Dirs{}.outsideKey(person, ""), func(key string, _ []byte) error {
		keys = append(keys, key)
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = tx.Table(tableOutside).Delete(key)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("forget which files of %s strangers' text may be in: %w", person, err)
	}
	return len(keys), nil
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

// Outside reports whether a file of a person's folder was written while text of strangers was before the model; for "" as
// its name, whether any was. Where that cannot be told it is taken for so.
func (c Config) Outside(person agent.PersonID, name string) bool {
	if c.Store == nil {
		return false
	}
	if name != "" {
		name = c.Dirs.real(person, name)
	}
	found := false
	err := c.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		found = false
		for at := name; at != "" && !found && err == nil; at = above(at) {
			_, found, err = tx.Table(tableOutside).Get(c.Dirs.outsideKey(person, at))
		}
		if name != "" {
			return err
		}
		return tx.Table(tableOutside).Scan(c.Dirs.outsideKey(person, ""), func(string, []byte) error {
			found = true
			return memory.ErrStop
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

// Copied gives what keeps, once a program has run in a person's folder that may write there, that strangers' text may be in the
// files and folders that its arguments name: where such a text was before the model, or is in any file, which the program may
// have copied. Nil where there is nothing to keep.
func (c Config) Copied(in agent.Invocation, names []string) func(tx memory.Tx) error {
	if c.Store == nil || !in.Tainted && !c.Outside(in.Person.ID, "") {
		return nil
	}
	var keys []string
	root, err := c.Dirs.Root(in.Person.ID)
	if err != nil {
		return nil // then nothing has run there
	}
	defer root.Close()
	for _, name := range names {
		if _, err := root.Lstat(name); err == nil {
			keys = append(keys, c.Dirs.outsideKey(in.Person.ID, c.Dirs.real(in.Person.ID, name)))
		}
	}
	return func(tx memory.Tx) error {
		for _, key := range keys {
			if err := tx.Table(tableOutside).Put(key, nil); err != nil {
				return fmt.Errorf("note that strangers' text may be in a file: %w", err)
			}
		}
		return nil
	}
}

// noteOutside keeps, before a call writes to a file, that strangers' text may be in it.
func (c Config) noteOutside(ctx context.Context, in agent.Invocation, name string) error {
	if c.Store == nil || !in.Tainted {
		return nil
	}
	key := c.Dirs.outsideKey(in.Person.ID, c.Dirs.real(in.Person.ID, name))
	err := c.Store.Update(ctx, func(tx memory.Tx) error { return tx.Table(tableOutside).Put(key, nil) })
	if err != nil {
		return errors.New("the file cannot be written now") // the store's words are not for the model
	}
	return nil
}

// forgetOutside takes that back with the result of a call that wrote a file anew, with nothing of strangers before it.
func (c Config) forgetOutside(in agent.Invocation, name string) func(tx memory.Tx) error {
	if c.Store == nil || in.Tainted || !c.Outside(in.Person.ID, name) {
		return nil
	}
	key := c.Dirs.outsideKey(in.Person.ID, c.Dirs.real(in.Person.ID, name))
	return func(tx memory.Tx) error {
		if err := tx.Table(tableOutside).Delete(key); err != nil {
			return fmt.Errorf("note that %q holds nothing of strangers: %w", name, err)
		}
		return nil
	}
}

// ForgetOutside forgets which files of a person's own folder strangers' text may be in, within a transaction. Of a folder that
// is everybody's nothing is forgotten.
func (d Dirs) ForgetOutside(tx memory.Tx, person agent.PersonID) error {
	if d.Shared {
		return nil
	}
	var keys []string
	err := tx.Table(tableOutside).Scan(d.outsideKey(person, ""), func(key string, _ []byte) error {
		keys = append(keys, key)
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = tx.Table(tableOutside).Delete(key)
		}
	}
	if err != nil {
		return fmt.Errorf("forget which files of %s hold text of strangers: %w", person, err)
	}
	return nil
}
