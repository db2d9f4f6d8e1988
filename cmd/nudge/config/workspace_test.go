package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What rules Nudge is out of reach of everybody's tools, by whatever path.
func TestASharedWorkspaceHoldsNothingOfNudges(t *testing.T) {
	top := t.TempDir()
	for _, folder := range []string{"team/docs", "data/workspace", "etc"} {
		if err := os.MkdirAll(filepath.Join(top, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"team/guard", "data/guard", "etc/guard", "data/workspace/guard"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(top, "team"), filepath.Join(top, "link")); err != nil {
		t.Skip("this system has no links: ", err)
	}
	for name, c := range map[string]struct {
		dir, data, file string
		hook, mcp       []string
		check, gauge    []string
		token           string
		want            string
	}{
		"apart":                   {dir: "team", data: "data", file: "etc/nudge.toml", hook: []string{"etc/guard"}, mcp: []string{"wiki-mcp", "etc/guard"}},
		"the default":             {data: "data", file: "etc/nudge.toml", hook: []string{"data/guard"}},
		"beside":                  {dir: "team", data: "team2", file: "team.toml"},
		"the data":                {dir: "data", data: "data", file: "nudge.toml", want: "the data directory"},
		"data below":              {dir: "team", data: "team/a/b", file: "nudge.toml", want: "the data directory"},
		"data below, by a link":   {dir: "team", data: "link/a/b", file: "nudge.toml", want: "the data directory"},
		"a link to all":           {dir: "link", data: "team/data", file: "nudge.toml", want: "the data directory"},
		"a longer way":            {dir: "etc/../team", data: "team/./data", file: "nudge.toml", want: "the data directory"},
		"the config":              {dir: "team", data: "data", file: "team/docs/nudge.toml", want: "the config"},
		"a hook":                  {dir: "team", data: "data", file: "nudge.toml", hook: []string{"team/guard"}, want: "a program of a hook"},
		"a hook's script":         {dir: "team", data: "data", file: "nudge.toml", hook: []string{"sh", "link/guard"}, want: "a program of a hook"},
		"a hook from the data":    {data: "data", file: "nudge.toml", hook: []string{"./workspace/guard"}, want: "a program of a hook"},
		"a hook that runs there":  {dir: "team", data: "data", file: "nudge.toml", hook: []string{"env", "--chdir=TOP/team", "./guard"}, want: "a program of a hook"},
		"a hook's words":          {dir: "team", data: "data", file: "nudge.toml", hook: []string{"python3", "-c", "exec(open('TOP/team/guard').read())"}, want: "a program of a hook"},
		"a folder for a server":   {dir: "team", data: "data", file: "nudge.toml", mcp: []string{"files-mcp", "team/docs", "--root=TOP/team"}},
		"a check":                 {dir: "team", data: "data", file: "nudge.toml", check: []string{"team/guard"}, want: "condition"},
		"a check's script":        {dir: "team", data: "data", file: "nudge.toml", check: []string{"bash", "-eu", "team/guard"}, want: "condition"},
		"what a check reads":      {dir: "team", data: "data", file: "nudge.toml", check: []string{"grep", "x", "team/guard"}},
		"a gauge":                 {dir: "team", data: "data", file: "nudge.toml", gauge: []string{"python3.12", "link/guard"}, want: "gauge disk"},
		"a token":                 {dir: "team", data: "data", file: "nudge.toml", token: "team/docs/token", want: "the file of a secret"},
		"a token elsewhere":       {dir: "team", data: "data", file: "nudge.toml", token: "etc/token"},
		"the program of a server": {dir: "team", data: "data", file: "nudge.toml", mcp: []string{"python3", "team/guard"}, want: "MCP server wiki"},
	} {
		all := func(command []string) (parts []string) {
			for _, part := range command {
				if strings.Contains(part, "/") && !strings.HasPrefix(part, ".") && !strings.Contains(part, "TOP") {
					part = filepath.Join(top, part)
				}
				parts = append(parts, strings.ReplaceAll(part, "TOP", top))
			}
			return parts
		}
		config := Config{File: filepath.Join(top, c.file), Workspace: Workspace{Scope: "shared"}}
		if c.dir != "" {
			config.Workspace.Dir = top + "/" + c.dir
		}
		config.Hooks = []Hook{{Run: all(c.hook)}}
		config.MCP = []MCP{{Name: "wiki", Command: all(c.mcp)}}
		config.Heartbeats = []Heartbeat{{Condition: Condition{Kind: "any", Of: []Condition{{Kind: "always"}, {Kind: "command", Run: all(c.check)}}}}}
		config.Gauges = []Gauge{{Name: "disk", Run: all(c.gauge)}}
		if c.token != "" {
			config.Web.APITokenEnv = filepath.Join(top, c.token)
		}
		err := config.CheckWorkspace(filepath.Join(top, c.data))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		config.Workspace.Scope = "person"
		if err := config.CheckWorkspace(filepath.Join(top, c.data)); err != nil {
			t.Errorf("%s, of persons: %v", name, err)
		}
	}
}
