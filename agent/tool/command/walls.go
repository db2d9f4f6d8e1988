package command

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// system is where programs lie that everybody can read.
const system = "/usr"

// mostReached is how many files, links and folders are looked at below the folders that one call names.
const mostReached = 200_000

var (
	errTrespass = errors.New("a value leads to files that are not in the person's workspace but Nudge's own or another person's")
	errStray    = errors.New("a value leads out of the workspace, by a link in it")
	errUnclear  = fmt.Errorf("a value can be read in too many ways, or names folders with more than %d files: it cannot be told that none leads to another person's", mostReached)
)

// walls stand around folders into which no call may lead: the closed ones, but for what of them lies below some of its own. Where
// they are strict, it may lead nowhere but into its own and to the programs of the system. They are for one look, as
// their ground is.
type walls struct {
	ground      *ground
	own, closed []string // without links
	strict      bool
	reached     map[string]bool // folders that are known to lead nowhere else
	left        int             // of mostReached
}

func (g *ground) wall(own, closed []string) *walls {
	w := &walls{ground: g, own: own, reached: map[string]bool{}, left: mostReached}
	for _, folder := range closed {
		w.closed = append(w.closed, g.resolve(folder))
	}
	return w
}

// holdAll says why one of some texts may not be given to a program.
func (w *walls) holdAll(texts []string) error {
	for _, text := range texts {
		if err := w.hold(text); err != nil {
			return err
		}
	}
	return nil
}

// hold says why a text may not be given to a program: it leads into a closed folder or to one that has such a folder in
// it, however it is read, itself or by a link in what it names.
func (w *walls) hold(text string) error {
	spelt := w.ground.spellings(text)
	if !spelt.all && strings.ContainsAny(text, "/.%") {
		return errUnclear
	}
	for _, path := range w.ground.paths(text) {
		if err := w.reach(w.ground.resolve(path)); err != nil {
			return err
		}
	}
	escaped := escape.MatchString(text)
	for _, path := range spelt.paths {
		real := w.ground.resolve(path)
		switch {
		case path == "" && w.strict: // nothing is named
		case escaped && filepath.IsAbs(path): // what reads addresses goes through no folders, and in many stands %2F
			if w.closes(real) {
				return errTrespass
			}
		default:
			if err := w.reach(real); err != nil {
				return err
			}
		}
	}
	return nil
}

// reach follows a path without links, then everything below it and every link there, as programs do that go through folders.
func (w *walls) reach(path string) error {
	for next := []string{path}; len(next) > 0; next = next[1:] {
		switch {
		case w.ground.lost():
			return errUnclear
		case w.trespasses(next[0]):
			return errTrespass
		case w.strict && !w.owns(next[0]) && !isBelow(next[0], []string{system}):
			return errStray
		}
		links, err := w.below(next[0])
		if err != nil {
			return err
		}
		next = append(next, links...)
	}
	return nil
}

// below is where the links lead that lie below a path. What this account cannot read no program of it can either.
func (w *walls) below(path string) (links []string, err error) {
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		isFolder := entry != nil && entry.IsDir()
		if isFolder && (err != nil || w.reached[at]) {
			return fs.SkipDir
		}
		if w.left--; w.left < 0 {
			return errUnclear
		}
		switch {
		case err != nil:
		case isFolder:
			w.reached[at] = true
		case entry.Type()&fs.ModeSymlink != 0:
			links = append(links, w.ground.resolve(at))
		}
		return nil
	})
	return links, err
}

// trespasses reports whether a path without links is in a closed folder, or has one in it.
func (w *walls) trespasses(path string) bool {
	return w.closes(path) || slices.ContainsFunc(w.closed, func(folder string) bool {
		_, above := within(path, folder)
		return above && !w.owns(folder)
	})
}

func (w *walls) closes(path string) bool { return isBelow(path, w.closed) && !w.owns(path) }

func (w *walls) owns(path string) bool { return isBelow(path, w.own) }

// isBelow reports whether a path lies in one of some folders; all are without links.
func isBelow(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		_, ok := within(folder, path)
		return ok
	})
}
