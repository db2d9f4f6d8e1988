//go:build linux || darwin || freebsd || netbsd || openbsd

package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent"
)

// manor is a data folder with workspaces of two people in it, and the tool for presets there.
type manor struct {
	data, ann, bob string
	tool           agent.Tool
}

func newManor(t *testing.T, presets ...Preset) manor {
	t.Helper()
	data, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := manor{data: data, ann: filepath.Join(data, "workspace", "p-ann"), bob: filepath.Join(data, "workspace", "p-bob")}
	m.write(t, filepath.Join(data, "nudge.db"), "all")
	m.write(t, filepath.Join(m.bob, "notes.md"), "of Bob")
	m.write(t, filepath.Join(m.ann, "notes.md"), "of Ann")
	m.tool, err = New(presets, m.place())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// place is Ann's.
func (m manor) place() Place {
	return Place{Dir: func(agent.PersonID) (string, error) { return m.ann, nil }, Closed: []string{m.data, filepath.Join(m.data, "workspace")}}
}

func (manor) write(t interface{ Fatal(...any) }, path, content string) {
	if err := errorsOf(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (m manor) link(t interface{ Fatal(...any) }, target, name string) {
	path := filepath.Join(m.ann, name)
	if err := errorsOf(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
}

func calling(t interface{ Fatal(...any) }, name, value string) agent.Invocation {
	raw, err := json.Marshal(args{"name": name, "file": value})
	if err != nil {
		t.Fatal(err)
	}
	return agent.Invocation{Person: agent.Person{ID: "terminal:ann"}, Arguments: raw, Progress: func(string) {}}
}

var anyFile = map[string]Parameter{"file": {Pattern: "(?s).*"}}

// manyWords are as many as a message may have.
var manyWords = strings.Repeat("a ", 300)

// What a long text names is known as well.
func TestALongValue(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile})
	m.link(t, "../p-bob", "bob")
	for _, path := range []string{"../p-bob/notes.md", "bob/notes.md now"} {
		if _, _, err := m.tool.Judge(calling(t, "show", manyWords+path)); err == nil {
			t.Errorf("%s behind many words is let through", path)
		}
	}
	in := calling(t, "show", manyWords+"notes.md")
	before := m.tool.Digest(in)
	m.write(t, filepath.Join(m.ann, "notes.md"), "changed")
	if _, _, err := m.tool.Judge(in); err != nil || m.tool.Digest(in) == before {
		t.Errorf("a file behind many words may change unseen: %v", err)
	}
}

// A value of which nobody can tell what it names is refused, in a box too.
func TestAValueOfTooManyParts(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile}, Preset{Name: "boxed", Run: []string{"cat", "{file}"}, Parameters: anyFile, Box: true})
	for _, name := range []string{"show", "boxed"} {
		for _, sign := range []string{" ", "=a,", "\n/"} {
			in := calling(t, name, strings.Repeat("a"+sign, 1001)+"../p-bob/notes.md")
			_, _, judged := m.tool.Judge(in)
			_, ran := m.tool.Run(t.Context(), in)
			for _, err := range []error{judged, ran} {
				if err == nil || !strings.Contains(err.Error(), "more than 1000 parts") {
					t.Errorf("%s with %q: %v", name, sign, err)
				}
			}
		}
	}
	deep := strings.Repeat("./", maxPath) + "../p-bob/notes.md" // longer than a path may be, but not for a program that shortens it
	if _, _, err := m.tool.Judge(calling(t, "show", deep)); err == nil {
		t.Error("a long way to another's file is let through")
	}
}

// Whatever path leads to a file of the workspace, an approval is about what the file holds, and no rule leaves the value open.
func TestAFileIsKnownByEveryPath(t *testing.T) {
	m := newManor(t, Preset{Name: "run", Run: []string{"sh", "{file}"}, Parameters: anyFile}, Preset{Name: "with", Run: []string{"sh", "--file={file}"}, Parameters: anyFile})
	m.link(t, "deploy.sh", "d")
	m.link(t, "d", "dd")
	m.link(t, ".", "here")
	m.link(t, filepath.Join(m.ann, "sub"), "abs")
	m.link(t, m.ann, "top")
	m.write(t, filepath.Join(m.ann, "sub", "deep", "x"), "x")
	outer := filepath.Join(t.TempDir(), "outer")
	if err := os.Symlink(m.ann, outer); err != nil {
		t.Fatal(err)
	}
	m.link(t, outer, "out")
	script := filepath.Join(m.ann, "deploy.sh")
	paths := []string{
		"deploy.sh", "./deploy.sh", "sub/../deploy.sh", "../p-ann/deploy.sh", "../../workspace/p-ann/deploy.sh", script, "/" + script, outer + "/deploy.sh",
		"d", "dd", "here/here/d", "top/d", "abs/../deploy.sh", "out/dd", outer + "/sub/../d", "/proc/self/cwd/deploy.sh", "none/../deploy.sh", "here/", ".", m.ann, "../p-ann", "top",
		"*.sh", "deploy.s?", "./[d]eploy.sh", "h*/d*.sh", "{deploy,x}.sh", "depl%6fy.sh", `deploy\.sh`, "$PWD/d",
	}
	around := []string{"%s", "--file=%s", "@%s", "x=@%s", "-f=%s", "a:%s", "%s:b", "x:%s:ro", "a,%s", "run %s now", "'%s'", "if=%s", "file:%s", "user@host:%s", "-f%s", "now -rf%s", "--configuration%s"}
	for _, name := range []string{"run", "with"} {
		for _, path := range paths {
			for _, form := range around {
				in := calling(t, name, fmt.Sprintf(form, path))
				m.write(t, script, "echo hello")
				before := m.tool.Digest(in)
				if again := m.tool.Digest(in); again != before {
					t.Errorf("%s %s: the digest changes by itself", name, in.Arguments)
				}
				m.write(t, script, "rm -rf .")
				if m.tool.Digest(in) == before {
					t.Errorf("%s %s: the digest is the same though the file has changed", name, in.Arguments)
				}
				if open, _ := opened(m.tool, in); len(open) > 0 {
					t.Errorf("%s %s: %q may be left open", name, in.Arguments, open)
				}
			}
		}
	}
}

// A link is what it leads to, wherever that is, and a folder what lies in it, at any depth.
func TestADigestKnowsWhatLiesBehind(t *testing.T) {
	elsewhere := t.TempDir()
	for name, c := range map[string]struct {
		value  string
		before func(m manor)
		after  func(m manor)
	}{
		"a link to another file":   {"d", func(m manor) { m.link(t, "a", "d") }, func(m manor) { os.Remove(m.ann + "/d"); m.link(t, "b", "d") }},
		"a file out of it":         {"d", func(m manor) { m.write(t, elsewhere+"/x", "1"); m.link(t, elsewhere+"/x", "d") }, func(m manor) { m.write(t, elsewhere+"/x", "2") }},
		"a link in a folder":       {"f", func(m manor) { m.write(t, m.ann+"/a", "1"); m.link(t, "../a", "f/d") }, func(m manor) { m.write(t, m.ann+"/a", "2") }},
		"a file in a folder":       {"f", func(m manor) { m.write(t, m.ann+"/f/g/a", "1") }, func(m manor) { m.write(t, m.ann+"/f/g/a", "2") }},
		"a new file in a folder":   {"f", func(m manor) { m.write(t, m.ann+"/f/g/a", "1") }, func(m manor) { m.write(t, m.ann+"/f/g/b", "1") }},
		"a file that is gone":      {"f", func(m manor) { m.write(t, m.ann+"/f/g/a", "1") }, func(m manor) { os.Remove(m.ann + "/f/g/a") }},
		"a file under a new name":  {"f", func(m manor) { m.write(t, m.ann+"/f/a", "1") }, func(m manor) { os.Rename(m.ann+"/f/a", m.ann+"/f/b") }},
		"a folder through a link":  {"d/f", func(m manor) { m.write(t, m.ann+"/s/f/a", "1"); m.link(t, "s", "d") }, func(m manor) { m.write(t, m.ann+"/s/f/a", "2") }},
		"a new folder in a folder": {"f", func(m manor) { m.write(t, m.ann+"/f/a", "1") }, func(m manor) { os.Mkdir(m.ann+"/f/b", 0o700) }},
		"nothing, and then a link": {"d", func(manor) {}, func(m manor) { m.link(t, "nowhere", "d") }},
	} {
		m := newManor(t, Preset{Name: "run", Run: []string{"sh", "{file}"}, Parameters: anyFile})
		c.before(m)
		in := calling(t, "run", c.value)
		before := m.tool.Digest(in)
		if m.tool.Digest(in) != before || m.tool.Once(in) || m.tool.Card(in) != "" {
			t.Errorf("%s: the digest changes by itself, or the call can be approved only once", name)
		}
		c.after(m)
		if m.tool.Digest(in) == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

// Of a folder in which too much lies for that, a call can be approved, but not always, and the card says why.
func TestAFolderThatIsTooLarge(t *testing.T) {
	elsewhere := t.TempDir()
	for name, make := range map[string]func(m manor){
		"many files":        func(m manor) { many(t, m.ann+"/f", maxEntries+1) },
		"a large file":      func(m manor) { m.write(t, m.ann+"/f/a", ""); os.Truncate(m.ann+"/f/a", maxContent+1) },
		"another folder":    func(m manor) { m.write(t, m.ann+"/other/a", "x"); m.link(t, "../other", "f/d") },
		"one out of it":     func(m manor) { m.link(t, elsewhere, "f/d") },
		"itself out of it":  func(m manor) { m.link(t, elsewhere, "f") },
		"a part not for us": func(m manor) { m.write(t, m.ann+"/f/g/a", "x"); os.Chmod(m.ann+"/f/g", 0) },
	} {
		m := newManor(t, Preset{Name: "run", Run: []string{"sh", "{file}"}, Parameters: anyFile})
		make(m)
		if name == "a part not for us" {
			defer os.Chmod(m.ann+"/f/g", 0o700)
			if _, err := os.ReadDir(m.ann + "/f/g"); err == nil {
				continue // nothing is closed to this account
			}
		}
		in := calling(t, "run", "f")
		if one := m.tool.Digest(in); m.tool.Digest(in) != one {
			t.Errorf("%s: no approval is good for it", name)
		}
		if open, _ := opened(m.tool, in); !m.tool.Once(in) || !strings.Contains(m.tool.Card(in), "once and not always") || len(open) > 0 {
			t.Errorf("%s: it can be approved always; the card says %q", name, m.tool.Card(in))
		}
	}
}

func many(t *testing.T, folder string, n int) {
	for i := range n {
		manor{}.write(t, fmt.Sprintf("%s/%d", folder, i), "")
	}
}

// A value for which the operator has declared nothing stays in the folder, however it is written.
func TestAPlainValueStaysInTheFolder(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: map[string]Parameter{"file": {}}})
	for _, value := range []string{
		"../p-bob/notes.md", "..", "a/../../p-bob", "sub/..", m.bob + "/notes.md", "/etc/passwd", "//etc/passwd", "x=/etc/passwd", "x=../y", "@/etc/passwd", "@../y", "a=@/etc/passwd",
		"a:/etc", "a:../y", "x://etc/passwd", "file:///etc/passwd", "FILE:/etc/passwd", "https:///etc/passwd", "a ../b", "a '/etc/passwd'", "./../x", "a,/etc/passwd", "a -f../x", "a -f/etc/passwd", "a -rf../x",
	} {
		if _, err := m.tool.Run(t.Context(), calling(t, "show", value)); err == nil || !strings.Contains(err.Error(), "no .. and no path from the top") {
			t.Errorf("%s: %v", value, err)
		}
	}
	for _, value := range []string{"notes.md", "./notes.md", "sub/a.b..c", "https://example.com/a/b?c=d", "ssh://git@example.com/a.git", "v1.2...v1.3", "a, b and c", "feature/x", "user@example.com", "10:30", "...", "a -b c", "a -bc-d"} {
		if _, _, err := m.tool.Judge(calling(t, "show", value)); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Whatever the operator's pattern allows, no value leads to Nudge's own files or another person's, unless a box hides them.
func TestNoValueLeadsToOthers(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile},
		Preset{Name: "with", Run: []string{"cat", "--x={file}"}, Parameters: anyFile},
		Preset{Name: "boxed", Run: []string{"cat", "{file}"}, Parameters: anyFile, Box: true, Effect: agent.Read})
	m.link(t, "../p-bob", "bob")
	m.link(t, "bob/notes.md", "n")
	m.link(t, "../../nudge.db", "db")
	m.link(t, "../p-bob/new.md", "new")
	checks, err := NewChecks([]Preset{{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile, Effect: agent.Read}})
	if err != nil {
		t.Fatal(err)
	}
	check := checks.In(m.place(), "terminal:ann")
	closed := []string{"../p-bob/notes.md", "../../nudge.db", "../..", "..", m.data, m.bob + "/notes.md", "bob", "bob/notes.md", "n", "db", "new", "../p-bob/new.md", "../p-new/x", "sub/../../p-bob", "none/../../p-bob", "/proc/self/cwd/../p-bob", "../p-ann/../p-bob/notes.md"}
	bobs := m.bob + "/notes.md"
	closed = append(closed, // as a shell, curl or another program reads it
		".?/p-bob/notes.md", ".*/p-bob/notes.md", ".[.]/p-bob/notes.md", "{.,x}./p-bob/notes.md", "%2e%2E/p-bob/notes.md", "1r../p-bob/notes.md", "!../p-bob", `.\./p-bob/notes.md`, `\u002e\u002e\u002fp-bob`, `\x2e\x2e/p-bob`, `\56\56/p-bob`, `\u{2e}./p-bob`, `\U0000002e./p-bob`, `\\u002e./p-bob`, "[n]", "b*/notes.md", "$PWD/../p-bob/notes.md",
		strings.Replace(bobs, "p-bob", "p-b?b", 1), strings.Replace(bobs, "workspace", "work*ace", 1), strings.Replace(bobs, "workspace", "w[o-o]rkspace", 1),
		strings.Replace(bobs, "workspace", "{x,work{space,}}", 1), strings.Replace(bobs, "workspace", "w%6frkspace", 1), strings.Replace(bobs, "workspace", `work\space`, 1))
	for _, path := range closed {
		for _, form := range []string{"%s", "x=%s", "@%s", "a:%s:b", "cat %s", "-- %s", "-f%s", "now -rf%s"} {
			value := fmt.Sprintf(form, path)
			for _, name := range []string{"show", "with"} {
				in := calling(t, name, value)
				_, _, judged := m.tool.Judge(in)
				_, ran := m.tool.Run(t.Context(), in)
				for _, err := range []error{judged, ran} {
					if err == nil || !strings.Contains(err.Error(), "Nudge's own or another person's") || strings.Contains(err.Error(), m.data) {
						t.Errorf("%s %s: %v", name, value, err)
					}
				}
			}
			if _, _, err := check("show", args{"file": value}); err == nil {
				t.Errorf("a check with %s: it is found", value)
			}
			if _, _, err := m.tool.Judge(calling(t, "boxed", value)); err != nil {
				t.Errorf("%s in a box: %v", value, err)
			}
		}
	}
	for _, path := range []string{
		"notes.md", m.ann + "/notes.md", "../p-ann/notes.md", "/etc/hosts", "sub", "a b", "no*.md", "s/a.*b/c/", "[a-z]+/[0-9]*", "x{2,3}", "100%", "~/none", "https://x.test/?a[]=1&b=%2F", "$HOME/none", `a\b`,
	} {
		if _, _, err := m.tool.Judge(calling(t, "show", path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, _, err := check("show", args{"file": path}); err != nil {
			t.Errorf("a check with %s: %v", path, err)
		}
	}
}

// Where the operator has written a folder in front of a value, what lies below it can be named, and nothing else.
func TestAFolderOfTheOperators(t *testing.T) {
	data, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := prepare(Preset{Name: "show", Run: []string{"cat", data + "/reports/{file}"}, Parameters: anyFile})
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(data, "own")
	manor{}.write(t, own+"/x", "")
	for value, fine := range map[string]bool{"may.md": true, "may/1.md": true, "../nudge.db": false, "../own/x": true, "may/../../nudge.db": false} {
		values := args{"file": value}
		argv, err := p.argv(values)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.stays(argv, values, own, []string{data}); (err == nil) != fine {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// A folder that the operator wrote in front of a value and that is in the workspace is the workspace's: others may put a link in its
// place.
func TestAFolderOfTheOperatorsInTheWorkspace(t *testing.T) {
	for _, run := range [][]string{{"cat", "docs/{file}"}, {"cat", "--from=./docs/{file}"}, {"cp", "notes.md", "docs/sub/{file}"}} {
		for name, parameters := range map[string]map[string]Parameter{"a pattern": anyFile, "none": {"file": {}}} {
			m := newManor(t, Preset{Name: "show", Run: run, Parameters: parameters, Effect: agent.Read})
			m.write(t, filepath.Join(m.ann, "docs", "sub", "may.md"), "")
			if _, _, err := m.tool.Judge(calling(t, "show", "may.md")); err != nil {
				t.Errorf("%v with %s: %v", run, name, err)
			}
			if err := os.RemoveAll(filepath.Join(m.ann, "docs")); err != nil {
				t.Fatal(err)
			}
			m.link(t, "../p-bob", "docs")
			for _, file := range []string{"notes.md", "new.md", "."} {
				if _, _, err := m.tool.Judge(calling(t, "show", file)); err == nil {
					t.Errorf("%v with %s: %s of another person is let through", run, name, file)
				}
			}
		}
	}
}

// Where a path leads is where the system says it does.
func TestPathsLeadWhereTheSystemSays(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c", "..", ".", "a/b", "b/..", "c/c"}
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n), "x")
		for _, folder := range []string{"", "a", "b", "a/b", "c"} {
			if rapid.Bool().Draw(t, "folder") || folder == "" {
				if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, link := range []string{"a", "b", "c", "a/b", "a/c"} {
			target := strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, "target"), "/")
			if rapid.Bool().Draw(t, "absolute") {
				target = dir + "/" + target
			}
			_ = os.Symlink(target, filepath.Join(dir, link)) // where something is, it stays
		}
		g, err := openGround(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer g.close()
		path := strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 5).Draw(t, "path"), "/")
		want, err := filepath.EvalSymlinks(dir + "/" + path)
		if err == nil && g.resolve(path) != want {
			t.Fatalf("%s leads to %s, the system says %s", path, g.resolve(path), want)
		}
	})
}

func TestWideParameters(t *testing.T) {
	for pattern, wide := range map[string]bool{
		".*": true, "[a-z./]+": true, `[\w./-]{1,80}`: true, `reports/.*`: true, `[^ ]+\.md`: true, `(\.\./)?[a-z]+`: true,
		"": false, "[a-z]+": false, `[a-z]+/[a-z]+`: false, `v[0-9.]+`: false, `[a-z]+(/[a-z]+)*\.md`: false,
	} {
		p := Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: map[string]Parameter{"file": {Pattern: pattern}}}
		if (len(p.Wide()) == 1) != wide {
			t.Errorf("%s: wide are %q", pattern, p.Wide())
		}
		p.Box = true
		if len(p.Wide()) > 0 {
			t.Errorf("%s is wide in a box", pattern)
		}
	}
	if wide := (Preset{Parameters: map[string]Parameter{"file": {Choices: []string{"../a"}}}}).Wide(); len(wide) > 0 {
		t.Errorf("choices are wide: %q", wide)
	}
}

// However much a value asks to be matched, a look reads so many names; what it then cannot tell, it refuses or has asked about.
func TestAValueThatMatchesTooMuch(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile})
	for i := range 40 {
		m.write(t, filepath.Join(m.ann, fmt.Sprint("d", i), "x"), "")
	}
	many(t, filepath.Join(m.ann, "d0"), mostSpellings+1)
	if _, _, err := m.tool.Judge(calling(t, "show", "*/*")); err == nil {
		t.Error("a value of which not all matches can be looked at is let through")
	}
	in := calling(t, "show", "d*")
	before := m.tool.Digest(in)
	m.write(t, filepath.Join(m.ann, "d7", "x"), "changed")
	if _, _, err := m.tool.Judge(in); err != nil || m.tool.Digest(in) == before {
		t.Errorf("what lies in a folder that matches may change unseen: %v", err)
	}
	words := ""
	for i := range 300 {
		words += fmt.Sprintf("d*/*%d ", i)
	}
	if _, _, err := m.tool.Judge(calling(t, "show", words)); err == nil {
		t.Error("a value that has more names looked at than are is let through")
	}
}
