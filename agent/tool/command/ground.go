package command

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"nudge/agent/tool/workspace"
)

// Bounds of what is looked at of the folders that one call names. Beyond them, sizes and times of change stand for contents, and
// no rule can be about the call.
const (
	maxEntries = 2000     // files, links and folders
	maxContent = 64 << 20 // bytes
	maxListed  = 50_000   // entries of which as much as a time is looked at
)

const (
	maxLinks  = 40 // that are followed on one path, as systems do
	maxPath   = 4096
	mostSteps = 20_000 // parts of paths that are looked at in one look at a call
)

// ground is the folder that a program runs in: where paths begin that its arguments name, and what lies at them. A program follows
// links and goes up, so a path counts by where it leads and not by how it is written. It is for one look, and not concurrent.
type ground struct {
	dir     string // absolute, without links
	root    *os.Root
	prints  map[string]string   // by path, what lies there
	spelt   map[string]spelling // by text, what programs may make of it
	entries int                 // left of the bounds
	matched int                 // names that may still be looked at for what matches
	steps   int                 // parts of paths of which it may still be asked whether they are links; below zero there were more
	content int64
	large   string // a folder in which more lies than the bounds allow; "" for none
}

func openGround(dir string) (*ground, error) {
	if dir == "" {
		return nil, errors.New("the folder is not known")
	}
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return &ground{
		dir: real, root: root, prints: map[string]string{}, spelt: map[string]spelling{},
		entries: maxEntries, matched: mostMatched, steps: mostSteps, content: maxContent,
	}, nil
}

func (g *ground) close() { g.root.Close() }

// resolve is where a path leads, through all links, whether something is there or not. Where there are too many links the path is
// where it got to, and where too much was looked at already it means nothing: see lost.
func (g *ground) resolve(path string) string {
	at, links := g.dir, 0
	if filepath.IsAbs(path) {
		at = "/"
	}
	for rest := strings.Split(filepath.ToSlash(path), "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, name) // which goes up for two dots
		switch {
		case name == "" || name == ".":
			continue
		case next == "/proc/self" || next == "/proc/thread-self": // of the program, not of this process
			at = "/proc/self"
			continue
		case next == "/proc/self/cwd":
			at = g.dir
			continue
		}
		if g.steps--; g.steps < 0 {
			return at
		}
		target, err := os.Readlink(next)
		if err != nil || links == maxLinks {
			at = next
			continue
		}
		links++
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return at
}

// lost reports whether more was looked at than may be, so that nobody can tell where what was asked for leads.
func (g *ground) lost() bool { return g.steps < 0 }

// within is a path below a folder as it is there, "." for the folder itself; both are without links.
func within(folder, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(folder, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// named are the paths within the folder to which a text leads, as it is written and as a program reads it that shortens paths.
func (g *ground) named(text string) (names []string) {
	spelt := g.spellings(text)
	for _, path := range append(g.paths(text), spelt.paths...) {
		if name, ok := within(g.dir, g.resolve(path)); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !spelt.all || g.lost() {
		names = append(names, ".") // it may be anything
	}
	return names
}

// paths are the ways to read a text as one; none for what can be no path.
func (g *ground) paths(text string) []string {
	if text == "" || strings.ContainsRune(text, 0) {
		return nil
	}
	short := filepath.Clean(text)
	switch {
	case len(short) > maxPath:
		return nil
	case len(text) > maxPath || short == text:
		return []string{short}
	}
	return []string{text, short}
}

// print says what lies where a text leads, if that is in the folder, or the way there is: [workspace.Absent] for nothing.
func (g *ground) print(text string) string {
	var found []string
	for _, path := range g.paths(text) {
		if print := g.printOf(path); print != workspace.Absent && !slices.Contains(found, print) {
			found = append(found, print)
		}
	}
	spelt := g.spellings(text)
	for _, path := range spelt.paths {
		if print := g.printSpelled(text, path); print != workspace.Absent {
			found = append(found, path+" "+print)
		}
	}
	if !spelt.all || g.lost() {
		g.large, found = text, append(found, unknown())
	}
	if found == nil {
		return workspace.Absent
	}
	return strings.Join(found, "|")
}

func (g *ground) printOf(path string) string {
	if known, ok := g.prints[path]; ok {
		return known
	}
	print := g.look(path)
	g.prints[path] = print
	return print
}

func (g *ground) look(path string) string {
	real := g.resolve(path)
	plain, local := g.plain(path)
	name, inside := within(g.dir, real)
	switch {
	case inside && name == plain: // no links, and written as it is
		return g.at(name)
	case inside:
		print := g.at(name)
		if print == workspace.Absent && !g.isLink(plain) {
			return print
		}
		return "to " + name + ": " + print
	case local: // a link in the folder that leads out of it
		print := outside(real)
		if print == "folder" {
			g.large = plain
		}
		return "to " + real + ": " + print
	}
	return workspace.Absent
}

// plain is a path as it is written, within the folder; local says that it is there.
func (g *ground) plain(path string) (name string, local bool) {
	if !filepath.IsAbs(path) {
		path = g.dir + "/" + path
	}
	return within(g.dir, filepath.Clean(path))
}

func (g *ground) isLink(name string) bool {
	info, err := g.root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// outside says what lies at a path that a link leads to. A folder there is not looked into.
func outside(path string) string {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return unreadable // for a program that runs here as well
	}
	defer root.Close()
	return fingerprint(root, filepath.Base(path))
}

// unreadable stands for what this account may not read, or what is not there.
const unreadable = "unreadable"

// unknown is another one each time, so that no approval is good for it.
func unknown() string { return "unknown:" + rand.Text() }

// fingerprint is [workspace.Fingerprint], and for what cannot be read another one each time.
func fingerprint(root *os.Root, name string) string {
	print, err := workspace.Fingerprint(root, name)
	if err != nil {
		return unknown()
	}
	return print
}

// at says what lies at a path within the folder that has no links in it.
func (g *ground) at(name string) string {
	print := fingerprint(g.root, name)
	if print != "folder" {
		return print
	}
	sum, count := sha256.New(), 0
	// The error of a walk is one that this function has returned, and it returns none.
	_ = fs.WalkDir(g.root.FS(), name, func(path string, entry fs.DirEntry, err error) error {
		if path == name && err == nil {
			return nil
		}
		if count++; count > maxListed {
			g.large = name
			return fs.SkipAll
		}
		print := unreadable
		if err == nil {
			print = g.entry(name, path, entry)
		} else {
			g.large = name
		}
		fmt.Fprintf(sum, "%d:%s%d:%s", len(path), path, len(print), print)
		return nil
	})
	return fmt.Sprintf("folder:%x", sum.Sum(nil))
}

// entry says what one thing in a folder is.
func (g *ground) entry(folder, path string, entry fs.DirEntry) string {
	info, err := entry.Info()
	if err != nil {
		return unreadable
	}
	if g.entries--; g.entries < 0 {
		g.large = folder
	}
	switch {
	case info.IsDir():
		return "folder"
	case info.Mode()&fs.ModeSymlink != 0:
		return g.linked(folder, path)
	case !info.Mode().IsRegular():
		return info.Mode().Type().String()
	}
	if g.content -= info.Size(); g.content >= 0 && g.entries >= 0 {
		if print, err := workspace.Fingerprint(g.root, path); err == nil {
			return print
		}
	}
	g.large = folder
	return fmt.Sprintf("size:%d:changed:%d", info.Size(), info.ModTime().UnixNano())
}

// linked says what a link in a folder leads to. What lies in a folder at its end is not looked at, unless it is seen anyway.
func (g *ground) linked(folder, path string) string {
	target, err := g.root.Readlink(path)
	if err != nil {
		return unreadable
	}
	real := g.resolve(path)
	name, inside := within(g.dir, real)
	print := ""
	if inside {
		print = fingerprint(g.root, name)
	} else {
		print = outside(real)
	}
	if _, seen := within(filepath.Join(g.dir, folder), real); print == "folder" && !seen {
		g.large = folder
	}
	return "link:" + target + ":" + print
}

// betweenPaths are the characters that stand around a path within a value, such as in --file=notes.md, @notes.md and a:b.
const betweenPaths = betweenWords + "=@:,"

// mostPieces is how many parts of a value are read as paths. A value that has more is refused, since nobody can tell what
// it names.
const mostPieces = 1000

// pieces are the texts of which a value may consist that can each be a path: itself, what stands behind each sign that may
// stand before a path, and between two, behind an option's letters, and where it goes up, each with one part of what stands
// in braces. all is false where there are more than mostPieces.
func pieces(value string) (found []string, all bool) {
	had := map[string]bool{}
	all = true
	add := func(text string) {
		switch {
		case text == "" || had[text]:
		case len(found) == mostPieces:
			all = false
		default:
			found, had[text] = append(found, text), true
		}
	}
	addOption := func(text string) {
		add(text)
		letters := len(text)
		if end := strings.IndexAny(text, betweenPaths); end >= 0 {
			letters = end // what stands behind is found by itself
		}
		for i := 2; all && strings.HasPrefix(text, "-") && i < min(letters, mostLetters) && isLetter(text[i-1]); i++ {
			add(text[i:])
		}
	}
	texts := braced(value, &all) // the value itself is the first
	if plain := unescaped(value); plain != value {
		texts = append(texts, braced(plain, &all)...)
	}
	for _, text := range texts {
		addOption(text)
		for i, r := range text {
			if all && strings.ContainsRune(betweenPaths, r) {
				add(text[i+1:])
			}
			if all && strings.HasPrefix(text[i:], "../") { // behind whatever sign, as in sed's 1r../x
				add(text[i:])
			}
		}
		if all {
			for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(betweenPaths, r) }) {
				addOption(part)
			}
		}
	}
	return found, all
}

// isLetter reports whether a byte can be of an option's name.
func isLetter(b byte) bool {
	return b == '-' || b == '_' || '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z' || b >= 0x80
}

// mostLetters is how many letters of options may stand together before a path, as in -rfnotes.md: as many as a name may have.
const mostLetters = 255

// ofWeb is how addresses of hosts begin.
var ofWeb = regexp.MustCompile(`(?i)\b(https?|wss?|ftps?|ssh|git)://`)

// leadsOut reports whether a value goes up, or begins somewhere else than in the folder, wherever in it a path may begin. An
// address of a host does neither.
func leadsOut(value string) bool {
	found, _ := pieces(ofWeb.ReplaceAllString(value, ""))
	for _, piece := range found {
		if filepath.IsAbs(piece) || strings.HasPrefix(piece, "../") || strings.HasSuffix(piece, "/..") || piece == ".." || strings.Contains(piece, "/../") {
			return true
		}
	}
	return strings.Contains(strings.ToLower(value), "file:")
}
