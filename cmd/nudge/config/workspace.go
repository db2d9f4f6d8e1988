package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// CheckWorkspace returns an error when people's tools could write over Nudge itself: when a shared workspace has the data
// directory, the config, or a program that a hook or an MCP server names in it. Links are followed, as far as there are any.
func (c Config) CheckWorkspace(dataDir string) error {
	if c.Workspace.Scope != "shared" {
		return nil // each person's is a folder of its own further below
	}
	dir := resolved(c.WorkspaceDir(dataDir))
	type thing struct{ what, path string }
	things := []thing{{"the data directory", dataDir}}
	if c.File != "" {
		things = append(things, thing{"the config", c.File})
	}
	add := func(what string, command []string) {
		for _, part := range command {
			if !filepath.IsAbs(part) { // programs run in the data directory
				part = filepath.Join(dataDir, part)
			}
			if _, err := os.Stat(part); err == nil {
				things = append(things, thing{what, part})
			}
		}
	}
	for _, h := range c.Hooks {
		add("a program of a hook", h.Run)
	}
	for _, m := range c.MCP {
		add("the program of MCP server "+m.Name, m.Command)
	}
	for _, t := range things {
		if within(dir, resolved(t.path)) {
			return fmt.Errorf("workspace.dir: %s has %s in it, %s, where everybody's tools could change it; use a folder of its own", dir, t.what, t.path)
		}
	}
	return nil
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
