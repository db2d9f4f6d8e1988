package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
)

// bounded is a desk whose folders hold little.
func bounded(t *testing.T, most holding) (desk, *tallies) {
	d := desk{t: t, dirs: Dirs{Dir: filepath.Join(t.TempDir(), "work")}, tools: map[string]agent.Tool{}}
	c := Config{Dirs: d.dirs, tallies: newTallies(d.dirs)}
	c.tallies.most = most
	for _, tool := range c.tools() {
		d.tools[tool.Name] = tool
	}
	return d, c.tallies
}

// held is what is in a folder, counted otherwise than the tools do.
func held(t fataler, folder string) (h holding) {
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		h.files++
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			h.bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

type fataler interface{ Fatal(...any) }

// Whatever the tools and others do to a folder, a write is done if and only if there is room for it, or it takes no more than
// what it replaces; and what is refused has changed nothing.
func TestAFolderHoldsWhatItMay(t *testing.T) {
	most := holding{12, 2000}
	d, _ := bounded(t, most)
	names := []string{"a", "b", "c", "d", "in/a", "in/b", "in/deep/er/a", "in/deep/er/b", "other/a"}
	rapid.Check(t, func(rt *rapid.T) {
		if err := os.RemoveAll(d.path()); err != nil {
			rt.Fatal(err)
		}
		folder := d.path()
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			name, size := rapid.SampledFrom(names).Draw(rt, "name"), rapid.IntRange(0, 900).Draw(rt, "size")
			full := filepath.Join(folder, name)
			switch rapid.SampledFrom([]string{"write", "write", "write", "delete", "put", "remove", "link"}).Draw(rt, "what") {
			case "write":
				before := held(rt, folder)
				old, was := os.Lstat(full)
				_, err := d.run("write_file", ann, args{"path": name, "content": strings.Repeat("x", size)})
				after := held(rt, folder)
				shrinks := was == nil && old.Mode().IsRegular() && int64(size) <= old.Size()
				switch {
				case err != nil && after != before:
					rt.Fatalf("a refused write (%v) made %v of %v", err, after, before)
				case err != nil && shrinks:
					rt.Fatalf("what makes %s smaller is refused: %v", name, err)
				case err == nil && !shrinks && (after.files > max(most.files, before.files) || after.bytes > max(most.bytes, before.bytes)):
					rt.Fatalf("a write made %v of %v", after, before)
				case err != nil && strings.Contains(err.Error(), "full") && fits(before, folder, name, size, most):
					rt.Fatalf("with %v there a write of %d to %s is refused: %v", before, size, name, err)
				case err != nil && !strings.Contains(err.Error(), "full") && !strings.Contains(err.Error(), "is a link"):
					rt.Fatal(err)
				}
			case "delete":
				_, _ = d.run("delete_file", ann, args{"path": name}) // it may not be there
			case "put": // others know no bound
				_ = os.Remove(full) // a link would lead elsewhere
				d.put(name, strings.Repeat("y", size))
			case "remove":
				_ = os.RemoveAll(filepath.Join(folder, strings.Split(name, "/")[0]))
			case "link":
				_ = os.Symlink("nowhere", full)
			}
		}
	})
}

// fits reports whether a file that is not there yet, or grows, has room.
func fits(before holding, folder, name string, size int, most holding) bool {
	then := before
	then.bytes += int64(size)
	if info, err := os.Lstat(filepath.Join(folder, name)); err == nil {
		return then.bytes-info.Size() <= most.bytes
	}
	for at := name; at != "."; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(folder, at)); err != nil {
			then.files++
		}
	}
	return then.files <= most.files && then.bytes <= most.bytes
}

// A full folder is one sentence that says what to do, takes what makes it smaller, and has room again once something is gone,
// whoever has taken it away.
func TestAFullFolder(t *testing.T) {
	d, _ := bounded(t, holding{3, 100})
	write := func(path string, size int) (string, error) {
		return d.run("write_file", ann, args{"path": path, "content": strings.Repeat("x", size)})
	}
	for _, name := range []string{"a", "in/b"} {
		if _, err := write(name, 40); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		size int
		want string
	}{
		{"c", 1, "the workspace is full: it has 3 files and folders, and may have 3; delete some that are not needed any more, then write this again"},
		{"a", 61, "the workspace is full: its files have 80 bytes and may have 100, so that there is no room for 21 more; delete some that are not needed any more, then write this again"},
	} {
		if _, err := write(c.path, c.size); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.path, err)
		}
		in := d.invocation("write_file", ann, args{"path": c.path, "content": strings.Repeat("x", c.size)})
		if _, _, err := d.tools["write_file"].Judge(in); err == nil || err.Error() != c.want {
			t.Errorf("%s is asked about: %v", c.path, err)
		}
	}
	if _, err := d.run("write_file", "slack:T1:UBOB", args{"path": "c", "content": "x"}); err != nil {
		t.Errorf("another person's folder: %v", err)
	}
	d.put("more", "") // as a command may
	if _, err := write("a", 41); err != nil {
		t.Errorf("a file too many, which this is not: %v", err)
	}
	d.put("much", strings.Repeat("x", 5000))
	for size, want := range map[int]bool{40: true, 39: true, 41: false} {
		d.put("a", strings.Repeat("x", 40))
		if _, err := write("a", size); (err == nil) != want {
			t.Errorf("40 bytes become %d: %v", size, err)
		}
	}
	d.must("delete_file", args{"path": "more"})
	d.must("delete_file", args{"path": "in/b"})
	d.must("delete_file", args{"path": "in"})
	if _, err := write("empty", 0); err != nil {
		t.Errorf("too many bytes, of which this has none: %v", err)
	}
	d.must("delete_file", args{"path": "much"})
	d.must("delete_file", args{"path": "empty"})
	if _, err := write("in/c", 1); err != nil {
		t.Errorf("after something was deleted: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(d.path(), "in")); err != nil {
		t.Fatal(err)
	}
	if _, err := write("one/two/three", 1); err == nil {
		t.Error("folders on the way do not count")
	}
	if _, err := write("one/two", 1); err != nil {
		t.Errorf("after others deleted something: %v", err)
	}
}

// A large folder is not counted at each write, and yet soon enough, and always before something is refused.
func TestALargeFolderIsCountedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, all := bounded(t, holding{3 * large, 1 << 20})
		for i := range 2 * large {
			d.put(fmt.Sprintf("many/%d", i), "x")
		}
		name := 0
		write := func() error {
			name++
			_, err := d.run("write_file", ann, args{"path": fmt.Sprintf("more/%d", name), "content": "x"})
			return err
		}
		counted := func() int64 {
			slot := all.lock(d.dirs.folder(ann))
			defer slot.mu.Unlock()
			return slot.counted.UnixNano()
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		first := counted()
		time.Sleep(perFile)
		if err := write(); err != nil || counted() != first {
			t.Errorf("it is counted again at once: %v", err)
		}
		for i := range large {
			d.put(fmt.Sprintf("outside/%d", i), "x")
		}
		time.Sleep(4 * large * perFile)
		if err := write(); err == nil {
			t.Error("what others put there never counts")
		}
		if err := os.RemoveAll(filepath.Join(d.path(), "outside")); err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil {
			t.Errorf("what others took away still counts: %v", err)
		}
		for name < 2*large { // without waiting: what the tools do is known
			if write() != nil {
				break
			}
		}
		if h := held(t, d.path()); h.files != 3*large {
			t.Errorf("it holds %d files", h.files)
		}
		d.must("delete_file", args{"path": "more/1"})
		if err := write(); err != nil {
			t.Errorf("what was deleted still counts: %v", err)
		}
		if err := write(); err == nil {
			t.Error("one more has room")
		}
	})
}

// Many conversations of one person have no more room together than one.
func TestWritesAtOnceShareTheRoom(t *testing.T) {
	for _, there := range []int{0, 2 * large} {
		most := holding{there + 20, 1 << 20}
		d, _ := bounded(t, most)
		for i := range there {
			d.put(fmt.Sprint("there", i), "")
		}
		var writers sync.WaitGroup
		refused := make(chan error, 100)
		for w := range 10 {
			writers.Go(func() {
				for i := range 4 {
					in := agent.Invocation{Person: agent.Person{ID: ann}, Arguments: json.RawMessage(fmt.Sprintf(`{"path":"%d-%d","content":"x"}`, w, i))}
					if _, err := d.tools["write_file"].Run(context.Background(), in); err != nil {
						refused <- err
					}
				}
			})
		}
		writers.Wait()
		if h := held(t, d.path()); h.files != most.files || len(refused) != 20 {
			t.Errorf("with %d there it holds %d files, and %d writes were refused", there, h.files, len(refused))
		}
	}
}

// What cannot be told is refused, and what may not be looked into hinders nobody.
func TestFoldersThatCannotBeCounted(t *testing.T) {
	d, _ := bounded(t, holding{300, 1 << 20})
	deep := strings.Repeat("d/", deepest) + "file"
	d.must("write_file", args{"path": deep, "content": "x"})
	d.refused("write_file", args{"path": "d/" + deep, "content": "x"}, "leads through more than 64 folders")
	closed := filepath.Join(d.path(), "closed")
	if err := os.Mkdir(closed, 0o000); err != nil {
		t.Fatal(err)
	}
	d.must("write_file", args{"path": "beside", "content": "x"})
	d.put(strings.Repeat("e/", 2*deepest+2)+"file", "x")
	d.refused("write_file", args{"path": "new", "content": "x"}, "folders inside each other")
	d.must("write_file", args{"path": deep, "content": ""}) // takes no more
	if err := os.RemoveAll(filepath.Join(d.path(), "e")); err != nil {
		t.Fatal(err)
	}
	for i := range 3001 {
		d.put(fmt.Sprintf("f/%d", i), "")
	}
	d.refused("write_file", args{"path": deep, "content": "more"}, "the workspace is full: it has more than 3000 files")
}

func BenchmarkCount(b *testing.B) {
	dir := b.TempDir()
	for i := range mostFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	for b.Loop() {
		if _, err := count(context.Background(), root, mostFiles); err != nil {
			b.Fatal(err)
		}
	}
}
