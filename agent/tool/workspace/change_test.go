package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"time"
)

// What is new, or other than it was, is found wherever it lies; where it is much, its folders stand for it.
func TestWhatHasChanged(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	put := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"same", "longer", "touched", "gone", "in/same", "in/deep/longer"} {
		put(name, "x")
	}
	before := snap(root)
	put("longer", "xx")
	put("in/deep/longer", "xx")
	put("in/new", "x")
	if err := os.Chtimes(filepath.Join(dir, "touched"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("same", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got, want := snap(root).since(before), []string{"in/deep/longer", "in/new", "link", "longer", "touched"}; !reflect.DeepEqual(got, want) {
		t.Errorf("changed are %v, want %v", got, want)
	}
	if runtime.GOOS == "linux" { // an archive says itself how old its files are
		if before = snap(root); before == nil {
			t.Fatal("it is not known how it was")
		}
		info, err := root.Stat("same")
		if err != nil {
			t.Fatal(err)
		}
		put("same", "y")
		if err := os.Chtimes(filepath.Join(dir, "same"), time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if got := snap(root).since(before); !reflect.DeepEqual(got, []string{"same"}) {
			t.Errorf("one of the same size and age: changed are %v", got)
		}
	}
	before = snapshot{}
	for n := range mostChanged {
		put(fmt.Sprintf("many/%d", n), "")
	}
	if got, want := snap(root).since(before), []string{".", "in", "in/deep", "many"}; !reflect.DeepEqual(got, want) {
		t.Errorf("many changed: %v, want %v", got, want)
	}
	if got := snap(root).since(nil); !reflect.DeepEqual(got, []string{"."}) {
		t.Errorf("not known how it was: %v", got)
	}
}
