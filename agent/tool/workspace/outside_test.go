package workspace

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"nudge/agent"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
)

// What is written while text of strangers is before the model is outside text for whoever reads it, until it is written anew.
func TestAFileKeepsWhereItsTextIsFrom(t *testing.T) {
	store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	d := newDesk(t)
	for _, tool := range Tools(Config{Dirs: d.dirs, Store: store}) {
		d.tools[tool.Name] = tool
	}
	write := func(p agent.PersonID, path string, tainted bool) {
		t.Helper()
		in := d.invocation("write_file", p, map[string]any{"path": path, "content": "x"})
		in.Tainted = tainted
		result, err := d.tools["write_file"].Run(context.Background(), in)
		if err == nil && result.Commit != nil {
			err = store.Update(context.Background(), func(tx memory.Tx) error { return result.Commit(tx) })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	outside := func(tool string, p agent.PersonID, path string) bool {
		return d.tools[tool].LabelsOf(d.invocation(tool, p, map[string]any{"path": path})).Outside
	}
	const bob = agent.PersonID("slack:T1:UBOB")
	write(ann, "own.md", false)
	write(ann, "a/page.md", true)
	for _, c := range []struct {
		tool string
		who  agent.PersonID
		path string
		want bool
	}{
		{"read_file", ann, "a/page.md", true}, {"read_file", ann, "./a//Page.md", true}, {"read_file", ann, "own.md", false}, {"read_file", bob, "a/page.md", false},
		{"list_files", ann, ".", true}, {"list_files", bob, ".", false}, {"read_file", ann, "file:F1", true}, {"read_file", ann, "result:0abc", true}, {"read_file", ann, "result:abc", false},
	} {
		if got := outside(c.tool, c.who, c.path); got != c.want {
			t.Errorf("%s of %s for %s is outside text: %v", c.tool, c.path, c.who, got)
		}
	}
	write(ann, "a/page.md", false)
	if outside("read_file", ann, "a/page.md") || outside("list_files", ann, ".") {
		t.Error("it still counts after it was written anew")
	}
	if err := os.Symlink("a", filepath.Join(d.path(), "short")); err != nil {
		t.Fatal(err)
	}
	write(ann, "short/two.md", true)
	write(ann, "a/one.md", true)
	for _, path := range []string{"a/one.md", "short/one.md", "a/two.md", "short/two.md"} {
		if !outside("read_file", ann, path) {
			t.Errorf("%s does not count, though the same file by another name does", path)
		}
	}
	write(ann, "short/one.md", false)
	if outside("read_file", ann, "a/one.md") || outside("read_file", ann, "a/none.md") {
		t.Error("one written anew through a link counts, or one that is not there")
	}
	copied := func(tainted bool, names ...string) {
		t.Helper()
		in := agent.Invocation{Person: agent.Person{ID: ann}, Tainted: tainted}
		if keep := (Config{Dirs: d.dirs, Store: store}).Copied(in, names); keep != nil {
			if err := store.Update(context.Background(), keep); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.put("plain.md", "x")
	d.put("sub/in/it.md", "x")
	copied(false, "plain.md", "sub", "-v", "none.md") // a/two.md may have been copied
	for path, want := range map[string]bool{"plain.md": true, "sub/in/it.md": true, "none.md": false, "own.md": false, "subway.md": false} {
		if got := outside("read_file", ann, path); got != want {
			t.Errorf("after a program that may copy, %s counts: %v", path, got)
		}
	}
	write(bob, "his.md", true)
	err = store.Update(context.Background(), func(tx memory.Tx) error {
		if n, err := ForgetOutside(tx, ann); n != 3 || err != nil {
			t.Errorf("%d files are forgotten, %v", n, err)
		}
		return nil
	})
	if err != nil || outside("list_files", ann, ".") || !outside("read_file", bob, "his.md") {
		t.Errorf("a forgotten person's files count, or others' do not: %v", err)
	}
	write(ann, "own.md", true)
	write(bob, "own.md", true)
	err = store.Update(context.Background(), func(tx memory.Tx) error { return d.dirs.ForgetOutside(tx, bob) })
	if err != nil || outside("list_files", bob, ".") || !outside("read_file", ann, "own.md") {
		t.Errorf("of one who was forgotten something is left, or of another it is not: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if !outside("read_file", ann, "own.md") || !outside("read_file", ann, "other.md") {
		t.Error("where the store does not say, it does not count")
	}
}
