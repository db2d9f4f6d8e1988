//go:build linux || darwin || freebsd || netbsd || openbsd

package command

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"nudge/agent"
)

// Programs go through folders, and many follow the links there: grep -R, cp -rL, tar -h.
func TestNoFolderLeadsToOthers(t *testing.T) {
	presets := []Preset{
		{Name: "search", Run: []string{"grep", "-R", "word", "{file}"}, Parameters: anyFile, Effect: agent.Read},
		{Name: "here", Run: []string{"grep", "-R", "{file}", "."}, Parameters: map[string]Parameter{"file": {}}, Effect: agent.Read},
		{Name: "notes", Run: []string{"cat", "sub/notes.md"}, Effect: agent.Read},
		{Name: "boxed", Run: []string{"grep", "-R", "word", "{file}"}, Parameters: anyFile, Box: true, Effect: agent.Read},
	}
	for name, leads := range map[string]struct {
		target, link string // none for no link
		value        string
		search, here bool // is refused
	}{
		"no link":                        {"", "", ".", false, false},
		"a link within":                  {"../notes.md", "sub/n", ".", false, false},
		"a link to the folder itself":    {"..", "sub/up", ".", false, false},
		"a link to files of the system":  {"/etc/hosts", "sub/hosts", ".", false, false},
		"a link to a file":               {"../../p-bob/notes.md", "sub/n", ".", true, true},
		"a link to a folder":             {"../../../p-bob", "sub/deep/bob", ".", true, true},
		"below the named one":            {"../../../p-bob", "sub/deep/bob", "sub", true, true},
		"beside the named one":           {"../../p-bob", "else/bob", "sub", false, true},
		"behind a link":                  {"../../p-bob", "else/bob", "to-else", true, true},
		"to one that has the workspaces": {"/", "sub/root", ".", true, true},
		"up":                             {"", "", "../../../..", true, false},
		"everything":                     {"", "", "/", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManor(t, presets...)
			m.write(t, filepath.Join(m.ann, "sub", "plain.md"), "")
			m.link(t, "else", "to-else")
			if leads.link != "" {
				m.link(t, leads.target, leads.link)
			}
			checks, err := NewChecks(presets)
			if err != nil {
				t.Fatal(err)
			}
			check := checks.In(m.place(), "terminal:ann")
			for command, given := range map[string]struct {
				value   string
				refused bool
			}{"search": {leads.value, leads.search}, "here": {"word", leads.here}, "boxed": {leads.value, false}} {
				_, _, err := m.tool.Judge(calling(t, command, given.value))
				_, _, found := check(command, args{"file": given.value})
				if errors.Is(err, errTrespass) != given.refused || errors.Is(found, errTrespass) != given.refused {
					t.Errorf("%s: the call %v, the check %v", command, err, found)
				}
			}
		})
	}
}

// What the operator wrote alone leads where the operator wants, but for links that others have put into the workspace.
func TestNoLinkOfOthersInTheOperatorsWords(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile})
	other := filepath.Join(m.data, "reports")
	m.write(t, filepath.Join(other, "may.md"), "")
	m.link(t, "../../p-bob/notes.md", "sub/notes.md")
	for path, fine := range map[string]bool{"sub/notes.md": false, "--from=sub/notes.md": false, "./sub": false, other: true, other + "/may.md": true, "notes.md": true} {
		p, err := prepare(Preset{Name: "show", Run: []string{"cat", path}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.stays([]string{"cat", path}, nil, m.ann, []string{m.data}); errors.Is(err, errTrespass) == fine {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A value for which the operator has no pattern stays in the workspace, whatever links lie there, but for the programs
// of the system.
func TestAValueWithoutAPatternStays(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: map[string]Parameter{"file": {}}},
		Preset{Name: "free", Run: []string{"cat", "{file}"}, Parameters: anyFile},
		Preset{Name: "script", Run: []string{"sh", "-c", "cat /etc/hosts -I/opt/x:{file}"}, Parameters: map[string]Parameter{"file": {}}})
	m.link(t, "/etc/hosts", "hosts")
	m.link(t, "/etc", "etc")
	m.link(t, "/etc/hosts", "sub/h")
	m.link(t, "/usr/bin/env", "bin/env")
	m.link(t, "../notes.md", "bin/notes")
	m.link(t, "/nowhere/at/all", "nothing")
	m.link(t, "/etc", "http:")
	m.link(t, "/etc/hosts", "a%41")
	m.link(t, "/etc", "ssh:")
	for value, fine := range map[string]bool{
		"hosts": false, "etc": false, "etc/hosts": false, "sub": false, "sub/h": false, ".": false, "now hosts": false, "x=hosts": false, "h*": false, "nothing": false,
		"?%41": false, "a%41": false, "http://hosts": false, "see http://hosts": false, "ssh://hosts": false,
		"bin": true, "bin/env": true, "bin/notes": true, "notes.md": true, "new.md": true, "new/new.md": true, "https://x.test/?a=%2F&b": true, "see https://x.test": true, "ftp://x.test/a:b": true,
		"it costs $5, about ~10 minutes and/or 50%": true, "12:30": true, "ann@x.test": true, "(a|b)": true,
	} {
		for _, name := range []string{"show", "script"} {
			if _, _, err := m.tool.Judge(calling(t, name, value)); (err == nil) != fine || err != nil && !errors.Is(err, errStray) {
				t.Errorf("%s of %q: %v", name, value, err)
			}
		}
		if _, _, err := m.tool.Judge(calling(t, "free", value)); err != nil {
			t.Errorf("with a pattern, of %q: %v", value, err)
		}
	}
}

// Where there is too much to look at, nobody can tell where all of it leads.
func TestAVastFolder(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile})
	for _, name := range []string{"a", "b", "sub/c", "sub/d"} {
		m.write(t, filepath.Join(m.ann, name), "")
	}
	for left, want := range map[int]error{7: nil, 6: errUnclear} { // the folder, the five files and sub
		g, err := openGround(m.ann)
		if err != nil {
			t.Fatal(err)
		}
		w := g.wall([]string{g.dir}, []string{m.data})
		w.left = left
		if err := w.hold("."); !errors.Is(err, want) {
			t.Errorf("with %d: %v", left, err)
		}
		if err := w.hold("sub"); want == nil && err != nil {
			t.Errorf("what has been looked at is looked at again: %v", err)
		}
		g.close()
	}
}

// What cannot be read does not end the look at the rest.
func TestALookPastWhatIsClosed(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root reads everything: the folder is looked into")
	}
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile})
	m.write(t, filepath.Join(m.ann, "a", "x"), "")
	m.link(t, "../../p-bob", "b/bob")
	if err := os.Chmod(filepath.Join(m.ann, "a"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(m.ann, "a"), 0o700)
	g, err := openGround(m.ann)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if err := g.wall([]string{g.dir}, []string{m.data}).hold("."); !errors.Is(err, errTrespass) {
		t.Error(err)
	}
}
