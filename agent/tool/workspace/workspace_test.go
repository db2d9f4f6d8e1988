package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent"
)

const ann = agent.PersonID("slack:T1:UANN")

// desk is a workspace and its tools.
type desk struct {
	t     *testing.T
	dirs  Dirs
	tools map[string]agent.Tool
}

func newDesk(t *testing.T) desk {
	d := desk{t: t, dirs: Dirs{Dir: filepath.Join(t.TempDir(), "work")}, tools: map[string]agent.Tool{}}
	for _, tool := range Tools(Config{Dirs: d.dirs}) {
		d.tools[tool.Name] = tool
	}
	return d
}

// invocation checks the arguments as the agent would.
func (d desk) invocation(tool string, p agent.PersonID, arguments map[string]any) agent.Invocation {
	d.t.Helper()
	schema, err := agent.CompileSchema(d.tools[tool].Schema)
	if err != nil {
		d.t.Fatal(err)
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		d.t.Fatal(err)
	}
	checked, err := schema.Check(string(raw))
	if err != nil {
		d.t.Fatal(err)
	}
	return agent.Invocation{Person: agent.Person{ID: p}, Arguments: checked, Progress: func(string) {}}
}

func (d desk) run(tool string, p agent.PersonID, arguments map[string]any) (string, error) {
	d.t.Helper()
	result, err := d.tools[tool].Run(context.Background(), d.invocation(tool, p, arguments))
	told := fmt.Sprint(arguments["path"]) // a path that the model wrote is no news to it
	if err != nil && (strings.Contains(err.Error(), d.dirs.Dir) && !strings.Contains(told, d.dirs.Dir) || strings.Contains(err.Error(), "\n")) {
		d.t.Errorf("%s: the error has a path of the machine or several lines: %q", tool, err)
	}
	return result.Text, err
}

func (d desk) must(tool string, arguments map[string]any) string {
	d.t.Helper()
	text, err := d.run(tool, ann, arguments)
	if err != nil {
		d.t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	return text
}

func (d desk) refused(tool string, arguments map[string]any, why string) {
	d.t.Helper()
	text, err := d.run(tool, ann, arguments)
	if err == nil || !strings.Contains(err.Error(), why) {
		d.t.Errorf("%s %v gave %q, %v; want an error with %q", tool, arguments, text, err, why)
	}
}

func (d desk) path() string {
	d.t.Helper()
	path, err := d.dirs.Path(ann)
	if err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d desk) put(name, content string) {
	d.t.Helper()
	full := filepath.Join(d.path(), name)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

type args = map[string]any

func TestAFileFromBeginningToEnd(t *testing.T) {
	d := newDesk(t)
	if got := d.must("list_files", args{}); got != "The folder is empty." {
		t.Errorf("list: %q", got)
	}
	if got := d.must("write_file", args{"path": "notes/a.txt", "content": "one\ntwo\n"}); got != `Wrote the new file "notes/a.txt", 8 bytes.` {
		t.Errorf("write: %q", got)
	}
	if got := d.must("list_files", args{}); got != "notes/\n" {
		t.Errorf("list: %q", got)
	}
	if got := d.must("list_files", args{"path": "notes/"}); got != "a.txt (8 bytes)\n" {
		t.Errorf("list: %q", got)
	}
	if got := d.must("read_file", args{"path": "./notes/a.txt"}); got != "one\ntwo\n" {
		t.Errorf("read: %q", got)
	}
	if got := d.must("write_file", args{"path": "notes/a.txt", "content": ""}); got != `Replaced "notes/a.txt"; it has 0 bytes now.` {
		t.Errorf("replace: %q", got)
	}
	if got := d.must("read_file", args{"path": "notes/a.txt"}); got != "The file is empty." {
		t.Errorf("read: %q", got)
	}
	d.refused("delete_file", args{"path": "notes"}, `the folder "notes" is not empty`)
	if got := d.must("delete_file", args{"path": "notes/a.txt"}); got != `Deleted "notes/a.txt".` {
		t.Errorf("delete: %q", got)
	}
	d.must("delete_file", args{"path": "notes"})
	d.refused("read_file", args{"path": "notes/a.txt"}, `there is no file "notes/a.txt"; list_files shows what there is`)
}

func TestPathsThatAreRefused(t *testing.T) {
	d := newDesk(t)
	d.put("file", "x")
	d.put("full/x", "x")
	outside := filepath.Join(filepath.Dir(d.path()), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"absolute": outside, "up": "../secret", "dir": "..", "loop": "loop", "within": "file", "dangling": "nowhere", "dangling-out": "../new",
	} {
		if err := os.Symlink(target, filepath.Join(d.path(), name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"../secret", "a/../../secret", "/etc/passwd", outside, `..\secret`, "C:/x", "c:x", "absolute", "up", "dir/secret", "loop", "dangling-out",
		"", ".", "full", "file/below", "new/", strings.Repeat("x", 300), strings.Repeat("x/", 3000), "a\x00b", "a\nb", "a\u202eb", tempPrefix + "x", "a/" + tempPrefix + "x",
	} {
		for _, tool := range []string{"read_file", "write_file"} {
			arguments := args{"path": path}
			if tool == "write_file" {
				arguments["content"] = "overwritten"
			}
			if text, err := d.run(tool, ann, arguments); err == nil {
				t.Errorf("%s %q gave %q", tool, path, text)
			}
		}
		if path == "absolute" || path == "up" || path == "loop" || path == "dangling-out" {
			continue // a link itself may be deleted
		}
		if _, err := d.run("delete_file", ann, args{"path": path}); err == nil {
			t.Errorf("delete_file %q was done", path)
		}
	}
	d.refused("list_files", args{"path": "dir"}, "leads out of the workspace")
	d.refused("list_files", args{"path": "file"}, `"file" is a file`)
	d.refused("read_file", args{"path": "up"}, `"up" leads out of the workspace`)
	d.refused("write_file", args{"path": "within", "content": ""}, `"within" is a link`)
	if got := d.must("read_file", args{"path": "within"}); got != "x" {
		t.Errorf("a link within the workspace gave %q", got)
	}
	d.must("delete_file", args{"path": "up"})
	if got, err := os.ReadFile(outside); err != nil || string(got) != "secret" {
		t.Errorf("the file outside is %q, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(d.path()), "new")); err == nil {
		t.Error("a file was made outside")
	}
}

func TestJudgeAndDigest(t *testing.T) {
	d := newDesk(t)
	write, remove := d.tools["write_file"], d.tools["delete_file"]
	in := d.invocation("write_file", ann, args{"path": "a", "content": "1"})
	if policy, name, err := write.Judge(in); policy != agent.PolicyNo || name != "" || err != nil {
		t.Errorf("a new file: %q %q %v", policy, name, err)
	}
	absent := write.Digest(in)
	d.put("a", "old")
	if policy, name, err := write.Judge(in); policy != agent.PolicyAsk || name != Overwrite || err != nil {
		t.Errorf("an existing file: %q %q %v", policy, name, err)
	}
	old := write.Digest(in)
	if old != write.Digest(in) || old != remove.Digest(d.invocation("delete_file", ann, args{"path": "a"})) {
		t.Error("the digest of the same file differs")
	}
	d.put("a", "new")
	if changed := write.Digest(in); changed == old || changed == absent || absent == old {
		t.Errorf("digests %q %q %q", absent, old, changed)
	}
	out := d.invocation("write_file", ann, args{"path": "../a", "content": "1"})
	if _, _, err := write.Judge(out); err == nil {
		t.Error("a path that leads out was judged")
	}
	if one, two := write.Digest(out), write.Digest(out); one == two {
		t.Error("what cannot be read has a digest that an approval could be bound to")
	}
	if policy, _, err := remove.Judge(d.invocation("delete_file", ann, args{"path": "a"})); policy != agent.PolicyAsk || err != nil {
		t.Errorf("deleting: %q %v", policy, err)
	}
	if _, _, err := remove.Judge(d.invocation("delete_file", ann, args{"path": "none"})); err == nil {
		t.Error("deleting nothing would be asked about")
	}
	if d.tools["list_files"].Judge != nil || !d.tools["read_file"].Labels.Private || d.tools["read_file"].Effect != agent.Read || write.Effect != agent.Effectful {
		t.Error("effects or labels are not those of the design")
	}
}

func TestReadPages(t *testing.T) {
	d := newDesk(t)
	d.put("ten", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10")
	for _, c := range []struct {
		offset, limit int
		want          string
	}{
		{1, 100, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10"},
		{1, 2, "1\n2\n[lines 1 to 2; go on with offset 3; the file has 20 bytes]\n"},
		{3, 2, "3\n4\n[lines 3 to 4; go on with offset 5; the file has 20 bytes]\n"},
		{9, 2, "9\n10\n[lines 9 to 10, the last]\n"},
		{10, 5, "10\n[lines 10 to 10, the last]\n"},
	} {
		if got := d.must("read_file", args{"path": "ten", "offset": c.offset, "limit": c.limit}); got != c.want {
			t.Errorf("lines from %d, %d of them: %q, want %q", c.offset, c.limit, got, c.want)
		}
	}
	d.refused("read_file", args{"path": "ten", "offset": 11}, `"ten" has only 10 lines`)
	d.put("binary", strings.Repeat("\x00\xff", 500))
	if got := d.must("read_file", args{"path": "binary"}); got != "binary, 1000 bytes" {
		t.Errorf("binary: %q", got)
	}
	d.put("wide", "first\n"+strings.Repeat("x", maxPage+5)+"\nlast\n")
	if got := d.must("read_file", args{"path": "wide"}); got != "first\n[lines 1 to 1; go on with offset 2; the file has 20497 bytes]\n" {
		t.Errorf("before a wide line: %.80q", got)
	}
	if got, want := d.must("read_file", args{"path": "wide", "offset": 2, "limit": 1}), strings.Repeat("x", maxPage)+"\n[lines 2 to 2, the last of them cut; go on with offset 3; the file has 20497 bytes]\n"; got != want {
		t.Errorf("a wide line: …%q", got[max(0, len(got)-100):])
	}
	if got := d.must("read_file", args{"path": "wide", "offset": 3}); got != "xxxxx\nlast\n[lines 3 to 4, the last]\n" {
		t.Errorf("the rest of a wide line: %.80q", got)
	}
	d.put("partly", strings.Repeat("x", 9*maxPage)+"\n"+strings.Repeat("\x01", 500)+"\nend\n")
	if got := d.must("read_file", args{"path": "partly", "offset": 11, "limit": 1}); got != "binary, 501 bytes\n[lines 11 to 11; go on with offset 12; the file has 184826 bytes]\n" {
		t.Errorf("a stretch that is no text: %.80q", got)
	}
}

// TestPagingGivesTheWholeFile reads a file page by page, as the pages say, and gets it back.
func TestPagingGivesTheWholeFile(t *testing.T) {
	d := newDesk(t)
	d.must("list_files", args{})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-z ]{0,9}`), 1, 30).Draw(t, "lines")
		limit := rapid.IntRange(1, 7).Draw(t, "limit")
		d.put("file", strings.Join(lines, "\n")+"\n")
		var got strings.Builder
		for offset := 1; offset <= len(lines); offset += limit {
			text := d.must("read_file", args{"path": "file", "offset": offset, "limit": limit})
			content, _, _ := strings.Cut(text, "[")
			got.WriteString(content)
		}
		if want := strings.Join(lines, "\n") + "\n"; got.String() != want {
			t.Fatalf("got %q, want %q", got.String(), want)
		}
	})
}

func TestListings(t *testing.T) {
	d := newDesk(t)
	for i := range maxEntries + 7 {
		d.put(fmt.Sprintf("many/%04d", i), "x")
	}
	got := d.must("list_files", args{"path": "many"})
	if !strings.HasPrefix(got, "0000 (1 bytes)\n0001 (1 bytes)\n") || !strings.HasSuffix(got, "0499 (1 bytes)\n[… 500 of 507 entries are shown …]\n") {
		t.Errorf("many: …%q", got[max(0, len(got)-100):])
	}
	d.put("odd/a\nb (5 bytes)", "x")
	d.put("odd/"+tempPrefix+"left", "x")
	if err := os.Symlink("x", filepath.Join(d.path(), "odd", "link")); err != nil {
		t.Fatal(err)
	}
	if got := d.must("list_files", args{"path": "odd"}); got != `"a\nb (5 bytes)" (1 bytes)`+"\nlink (link)\n" {
		t.Errorf("odd: %q", got)
	}
	d.put("left/"+tempPrefix+"left", "x")
	if got := d.must("list_files", args{"path": "left"}); got != "The folder is empty." {
		t.Errorf("left: %q", got)
	}
	d.must("delete_file", args{"path": "left"})
}

func TestWritesAreBoundedAndWhole(t *testing.T) {
	d := newDesk(t)
	content := strings.Repeat("x", maxWrite)
	root, err := d.dirs.Root(ann)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := write(context.Background(), root, "big", content+"x"); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("too much: %v", err)
	}
	if _, err := write(context.Background(), root, "big", content); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := write(ctx, root, "big", "y"); err == nil {
		t.Error("a cancelled write was done")
	}
	if err := os.Chmod(filepath.Join(d.path(), "big"), 0o750); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 5 {
				if _, err := write(context.Background(), root, "big", strings.Repeat(string(rune('a'+i)), 10_000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	got, err := os.ReadFile(filepath.Join(d.path(), "big"))
	if err != nil || len(got) != 10_000 || strings.Trim(string(got), string(got[0])) != "" {
		t.Errorf("%d bytes, %v: writes were mixed", len(got), err)
	}
	info, err := os.Stat(filepath.Join(d.path(), "big"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode became %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(d.path())
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries are there, %v", len(entries), err)
	}
}

func TestPeopleAreApart(t *testing.T) {
	d := newDesk(t)
	d.must("write_file", args{"path": "diary", "content": "mine"})
	for _, other := range []agent.PersonID{"slack:T1:UANN2", "slack:T1:uann", "slack:T1:U_ANN", "discord:UANN", "slack:T1", "../p-slack+_t1+_u_a_n_n", "."} {
		if text, err := d.run("read_file", other, args{"path": "diary"}); err == nil {
			t.Errorf("%s read %q", other, text)
		}
	}
	if _, err := d.run("list_files", "", args{}); err == nil {
		t.Error("nobody has a workspace")
	}
	info, err := os.Stat(d.path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", info.Mode(), err)
	}
	if err := os.Symlink(filepath.Base(d.path()), filepath.Join(d.dirs.Dir, folderName("discord:EVE"))); err != nil {
		t.Fatal(err)
	}
	if text, err := d.run("read_file", "discord:EVE", args{"path": "diary"}); err == nil {
		t.Errorf("through a link Eve read %q", text)
	}
	shared := Dirs{Dir: d.path(), Shared: true}
	for _, p := range []agent.PersonID{"discord:1", "discord:2"} {
		if path, err := shared.Path(p); err != nil || path != d.path() {
			t.Errorf("shared: %q, %v", path, err)
		}
	}
}

func TestFolderNames(t *testing.T) {
	// Two ids with one name differing only in case would be one folder on some systems.
	seen := map[string]agent.PersonID{}
	rapid.Check(t, func(t *rapid.T) {
		id := agent.PersonID(rapid.OneOf(
			rapid.StringMatching(`[aA:._+=~/-]{1,5}`), rapid.StringMatching(`[aA]{190,210}`), rapid.String(),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 3), func(b []byte) string { return string(b) }),
		).Draw(t, "id"))
		name := folderName(id)
		if other, taken := seen[strings.ToLower(name)]; taken && other != id {
			t.Fatalf("%q and %q are both %q", id, other, name)
		}
		seen[strings.ToLower(name)] = id
		if len(name) > longestName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-+_=~") != "" {
			t.Fatalf("%q is no safe name", name)
		}
	})
}

// What lies in the folder of a version control names programs that a harmless command of it runs.
func TestNothingIsWrittenIntoVersionControl(t *testing.T) {
	d := newDesk(t)
	d.put(".git/HEAD", "ref: refs/heads/main")
	if err := os.Symlink(".git", filepath.Join(d.path(), "innocent")); err != nil {
		t.Fatal(err)
	}
	for path, fine := range map[string]bool{
		".git/config": false, "sub/.git": false, "sub/.git/hooks/x": false, ".GIT/config": false, "./.git//config": false, "innocent/config": false,
		".hg/hgrc": false, "a/.svn/x": false, ".gitignore": true, ".github/x.yml": true, "git/config": true, "x.git/config": true,
	} {
		in := d.invocation("write_file", ann, map[string]any{"path": path, "content": "x"})
		_, _, judged := d.tools["write_file"].Judge(in)
		_, ran := d.tools["write_file"].Run(t.Context(), in)
		for _, err := range []error{judged, ran} {
			if (err == nil) != fine || err != nil && !strings.Contains(err.Error(), "version control") {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
