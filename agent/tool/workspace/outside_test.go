package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
		keep, err := (Config{Dirs: d.dirs, Store: store}).Copied(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		if keep != nil {
			if err := store.Update(context.Background(), keep(names)); err != nil {
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
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if !outside("read_file", ann, "own.md") || !outside("read_file", ann, "other.md") {
		t.Error("where the store does not say, it does not count")
	}
}

// shelf is a folder whose files keep whose text is in them.
type shelf struct {
	desk
	store memory.Store
	files Config
}

func newShelf(t *testing.T, shared bool) *shelf {
	store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r := &shelf{desk: newDesk(t), store: store}
	r.dirs.Shared = shared
	r.files = Config{Dirs: r.dirs, Store: store, Trusts: func(id agent.PersonID) bool { return id == owner }}
	for _, tool := range Tools(r.files) {
		r.tools[tool.Name] = tool
	}
	return r
}

const (
	bob   = agent.PersonID("slack:T1:UBOB")
	owner = agent.PersonID("slack:T1:UOWN")
)

// do runs a tool, and keeps what its result has kept; unless it is cut off before.
func (r *shelf) do(tool string, p agent.PersonID, path string, tainted, cut bool) {
	r.t.Helper()
	arguments := args{"path": path}
	if tool == "write_file" {
		arguments["content"] = "x"
	}
	in := r.invocation(tool, p, arguments)
	in.Tainted = tainted
	result, err := r.tools[tool].Run(context.Background(), in)
	if err == nil && result.Commit != nil && !cut {
		err = r.store.Update(context.Background(), func(tx memory.Tx) error { return result.Commit(tx) })
	}
	if err != nil {
		r.t.Fatalf("%s %s: %v", tool, path, err)
	}
}

// outsideFor says for whom a file is outside text.
func (r *shelf) outsideFor(path string) (who string) {
	for _, p := range []agent.PersonID{ann, bob, owner} {
		if r.files.Outside(p, path) {
			who += string(p[len("slack:T1:U")])
		}
	}
	return who
}

// In a folder that is everybody's, what somebody has had written is outside text for all others, but for an owner's; what was
// written while text of strangers was in view is so for all.
func TestWhoseTextIsInASharedFolder(t *testing.T) {
	const nobody, everybody, butAnn, butBob = "", "ABO", "BO", "AO"
	for name, c := range map[string]struct {
		do   func(r *shelf)
		want string
	}{
		"put there by people":               {func(r *shelf) { r.put("f", "x") }, nobody},
		"written by one":                    {func(r *shelf) { r.do("write_file", ann, "f", false, false) }, butAnn},
		"written by an owner":               {func(r *shelf) { r.do("write_file", owner, "f", false, false) }, nobody},
		"written with outside text in view": {func(r *shelf) { r.do("write_file", ann, "f", true, false) }, everybody},
		"by an owner with outside text":     {func(r *shelf) { r.do("write_file", owner, "f", true, false) }, everybody},
		"of another case": {func(r *shelf) {
			r.do("write_file", ann, "F", true, false)
			r.do("write_file", ann, "f", false, false)
		}, everybody},
		"written anew by another": {func(r *shelf) {
			r.do("write_file", ann, "f", true, false)
			r.do("write_file", bob, "f", false, false)
		}, butBob},
		"cut off before it is known": {func(r *shelf) { r.do("write_file", ann, "f", false, true) }, butAnn},
		"cut off while written anew": {func(r *shelf) {
			r.do("write_file", ann, "f", false, false)
			r.do("write_file", owner, "f", false, true)
		}, everybody},
		"cut off, strangers' before": {func(r *shelf) {
			r.do("write_file", ann, "f", true, false)
			r.do("write_file", ann, "f", false, true)
		}, everybody},
		"deleted": {func(r *shelf) {
			r.do("write_file", ann, "f", true, false)
			r.do("delete_file", bob, "f", false, false)
			r.put("f", "anew")
		}, nobody},
		"a link to it deleted": {func(r *shelf) {
			r.do("write_file", ann, "f", true, false)
			if err := os.Symlink("f", filepath.Join(r.path(), "link")); err != nil {
				r.t.Fatal(err)
			}
			r.do("delete_file", bob, "link", false, false)
		}, everybody},
		"named to a command": {func(r *shelf) {
			r.put("f", "x")
			r.copied(ann, "f")
		}, butAnn},
		"named to a command where others' text is": {func(r *shelf) {
			r.put("f", "x")
			r.do("write_file", bob, "g", false, false)
			r.copied(ann, "f")
		}, everybody},
		"of somebody forgotten": {func(r *shelf) {
			r.do("write_file", ann, "f", false, false)
			r.do("write_file", bob, "g", false, false)
			r.forget(ann)
		}, everybody},
		"of an earlier version": {func(r *shelf) {
			err := r.store.Update(context.Background(), func(tx memory.Tx) error { return tx.Table(tableOutside).Put("shared/f", nil) })
			if err != nil {
				r.t.Fatal(err)
			}
		}, everybody},
	} {
		r := newShelf(t, true)
		if c.do(r); r.outsideFor("f") != c.want {
			t.Errorf("%s: it is outside text for %q, want %q", name, r.outsideFor("f"), c.want)
		}
		if all := r.outsideFor(""); len(all) < len(c.want) {
			t.Errorf("%s: the folder is outside text for %q alone", name, all)
		}
	}
}

// In folders of their own, people's own words are nobody's outside text, and nothing is kept of them.
func TestNothingIsKeptOfFilesOfOnesOwn(t *testing.T) {
	r := newShelf(t, false)
	r.do("write_file", ann, "f", false, false)
	r.copied(ann, "f")
	r.do("write_file", bob, "g", true, false)
	r.do("delete_file", bob, "g", false, false)
	if who := r.outsideFor("f") + r.outsideFor("") + r.outsideFor("g"); who != "" {
		t.Errorf("it is outside text for %q", who)
	}
	if rows := r.rows(); len(rows) > 0 {
		t.Errorf("kept is %q", rows)
	}
}

// Who is forgotten is named by no row any more, and no other's is touched.
func TestForgottenWritersAreNotNamed(t *testing.T) {
	r := newShelf(t, true)
	for i, p := range []agent.PersonID{ann, bob, ann} {
		r.do("write_file", p, fmt.Sprint(i), false, false)
	}
	r.forget(ann)
	rows := strings.Join(r.rows(), "\n")
	if strings.Contains(rows, string(ann)) || !strings.Contains(rows, string(bob)) || strings.Count(rows, "\n") != 2 {
		t.Errorf("kept is\n%s", rows)
	}
}

// What a program leaves in a folder counts, whatever its arguments name: tar names the archive alone.
func TestWhatAProgramLeaves(t *testing.T) {
	for _, tainted := range []bool{false, true} {
		store, err := bolt.Open(filepath.Join(t.TempDir(), "db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		d := newDesk(t)
		c := Config{Dirs: d.dirs, Store: store}
		d.put("before.md", "x")
		after, err := c.Copied(context.Background(), agent.Invocation{Person: agent.Person{ID: ann}, Tainted: tainted})
		if err != nil || (after != nil) != tainted {
			t.Fatalf("tainted: %v: something is kept: %v", tainted, after != nil)
		}
		if after == nil {
			continue
		}
		d.put("sub/unpacked.md", "x")
		if !c.Outside(ann, "before.md") || !c.Outside(ann, "sub/unpacked.md") {
			t.Error("while the program runs, something does not count")
		}
		if err := store.Update(context.Background(), after(nil)); err != nil {
			t.Fatal(err)
		}
		if !c.Outside(ann, "sub/unpacked.md") || c.Outside(ann, "before.md") {
			t.Error("what was unpacked does not count, or what was there before does")
		}
	}
}

// Each program that runs makes the folder count, until it has ended itself.
func TestTwoProgramsAtOnce(t *testing.T) {
	store, err := bolt.Open(filepath.Join(t.TempDir(), "db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	d := newDesk(t)
	c := Config{Dirs: d.dirs, Store: store}
	d.put("mine.md", "x")
	var ends []func([]string) func(memory.Tx) error
	for _, key := range []string{"t1/1/c1", "t2/1/c1"} {
		after, err := c.Copied(context.Background(), agent.Invocation{Person: agent.Person{ID: ann}, Key: key, Tainted: true})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, after)
	}
	for n, end := range ends {
		if !c.Outside(ann, "mine.md") {
			t.Errorf("after %d of two have ended the folder does not count", n)
		}
		if err := store.Update(context.Background(), end(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if c.Outside(ann, "mine.md") {
		t.Error("after both have ended a file counts that none has changed")
	}
}

func (r *shelf) copied(p agent.PersonID, names ...string) {
	r.t.Helper()
	keep, err := r.files.Copied(context.Background(), agent.Invocation{Person: agent.Person{ID: p}})
	if err != nil {
		r.t.Fatal(err)
	}
	if keep != nil {
		if err := r.store.Update(context.Background(), keep(names)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *shelf) forget(p agent.PersonID) {
	r.t.Helper()
	err := r.store.Update(context.Background(), func(tx memory.Tx) error {
		_, err := ForgetOutside(tx, p)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// rows are all that are kept.
func (r *shelf) rows() (all []string) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) error {
		return tx.Table(tableOutside).Scan("", func(key string, data []byte) error {
			all = append(all, key+" "+string(data))
			return nil
		})
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}
