package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nudge/cmd/nudge/config"
)

// No call of a command leads to what rules Nudge.
func TestClosed(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("s3cret-s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.File, c.Model.APIKeyEnv = filepath.Join(dir, "nudge.toml"), key
	for scope, want := range map[string][]string{
		"person": {filepath.Join(dir, "data"), filepath.Join(dir, "data", "workspace"), key, c.File},
		"shared": {filepath.Join(dir, "data"), key, c.File},
	} {
		c.Workspace.Scope = scope
		got := closed(c, filepath.Join(dir, "data"), workspaces(c, filepath.Join(dir, "data")))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: closed are %v, want %v", scope, got, want)
		}
	}
}

// TestTheDoctorTellsOfProgramsThatObeyFiles, where nobody is asked and there is no box.
func TestTheDoctorTellsOfProgramsThatObeyFiles(t *testing.T) {
	for _, c := range []struct {
		command config.Command
		noted   bool
	}{
		{config.Command{Name: "x", Run: []string{"make"}, Approve: "no"}, true},
		{config.Command{Name: "x", Run: []string{"make"}, Approve: "ask"}, false},
		{config.Command{Name: "x", Run: []string{"make"}, Approve: "no", Box: true}, false},
		{config.Command{Name: "x", Run: []string{"df"}, Approve: "no"}, false},
	} {
		cfg := config.Default()
		cfg.Commands = []config.Command{c.command}
		found := wideFindings(cfg)
		if (len(found) == 1) != c.noted || c.noted && !strings.Contains(found[0].text, "runs unasked and without a box") {
			t.Errorf("%+v: %+v", c.command, found)
		}
	}
}
