package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// CheckWorkspace returns an error when people's tools could write over what rules Nudge: when a shared workspace has the data
// directory, the config, the file of a secret, or a program that a hook, an MCP server, a gauge or a condition of a heartbeat
// runs in it. Links are followed, as far as there are any. A folder that a program is given is no fault, nor is a file that a
// gauge or a condition reads.
func (c Config) CheckWorkspace(dataDir string) error {
	if c.Workspace.Scope != "shared" {
		return nil // each person's is a folder of its own further below
	}
	w := shared{written: c.WorkspaceDir(dataDir), dataDir: dataDir}
	w.dir = resolved(w.written)
	w.look("the data directory", dataDir)
	if c.File != "" {
		w.look("the config", c.File)
	}
	for _, file := range c.secretFiles() {
		w.look("the file of a secret", file)
	}
	for _, h := range c.Hooks {
		w.program("a program of a hook", h.Run)
	}
	for _, m := range c.MCP {
		w.program("the program of MCP server "+m.Name, m.Command)
	}
	for _, g := range c.Gauges {
		w.program("the program of gauge "+g.Name, g.run())
	}
	for _, h := range c.Heartbeats {
		for _, run := range h.Condition.runs() {
			w.program("the program of a heartbeat's condition", Gauge{Run: run}.run())
		}
	}
	return w.fault
}

// Files are those that only the operator reads: the config, and those that have a secret in them.
func (c Config) Files() []string {
	if c.File == "" {
		return c.secretFiles()
	}
	return append(c.secretFiles(), c.File)
}

func (c Config) secretFiles() []string {
	return slices.DeleteFunc(references(reflect.ValueOf(c)), func(ref string) bool { return !isFile(ref) })
}

// shared is a look at what lies in a workspace of everybody's.
type shared struct {
	dir, written string // without links, and as the config has it
	dataDir      string // where programs run
	fault        error  // the first
}

// look notes it when something lies in the workspace.
func (w *shared) look(what, path string) {
	if w.fault == nil && within(w.dir, resolved(path)) {
		w.fault = fmt.Errorf("workspace.dir: %s has %s in it, %s, where everybody's tools could change it; use a folder of its own", w.dir, what, path)
	}
}

// program looks at the files that a program and its arguments name, also where one stands within an argument.
func (w *shared) program(what string, command []string) {
	from := []string{w.dataDir}
	var parts []string
	for _, part := range command {
		parts = append(parts, part)
		for _, dir := range []string{w.dir, w.written} {
			if at := strings.Index(part, dir); at >= 0 {
				from = append(from, w.dir) // it may be told to run there
				parts = append(parts, strings.FieldsFunc(part[at:], func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;|&<>()=,", r) })...)
			}
		}
	}
	for _, part := range parts {
		for _, folder := range from {
			path := part
			if !filepath.IsAbs(path) {
				path = filepath.Join(folder, path)
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				w.look(what, path)
			}
		}
	}
}

// interpreters run what one of their arguments says.
var interpreters = regexp.MustCompile(`^(?:(?:ba|da|z|k|fi)?sh|python|node|deno|bun|perl|ruby|php|lua|Rscript|env|nohup|nice|timeout|xargs|sudo|busybox)[\d.]*$`)

// run is what of a command may be a program: of one that runs others all of it.
func (g Gauge) run() []string {
	if len(g.Run) > 0 && !interpreters.MatchString(filepath.Base(g.Run[0])) {
		return g.Run[:1]
	}
	return g.Run
}

// runs are the commands of a condition and those that it is made of.
func (c Condition) runs() (all [][]string) {
	if len(c.Run) > 0 {
		all = append(all, c.Run)
	}
	for _, part := range c.Of {
		all = append(all, part.runs()...)
	}
	return all
}

// within reports whether a path is a folder or lies in it.
func within(folder, path string) bool {
	way, err := filepath.Rel(folder, path)
	return err == nil && way != ".." && !strings.HasPrefix(way, ".."+string(filepath.Separator))
}

// resolved is where a path leads, of which the end need not be there yet.
func resolved(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for at, rest := absolute, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return absolute
		}
	}
}
