package workspace

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nudge/agent"
)

func TestTheCardOfAWriteShowsWhatChanges(t *testing.T) {
	dir := t.TempDir()
	dirs := Dirs{Dir: dir, Shared: true}
	tool := Config{Dirs: dirs}.writeFile()
	for _, c := range []struct{ name, before, after, want string }{
		{"a line", "one\ntwo\nthree\n", "one\n2\nthree\nfour\n", "What would change in \"f.txt\":\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four"},
		{"nothing", "one\n", "one\n", `Nothing in "f.txt" would change.`},
		{"all", "", "new\n", "What would change in \"f.txt\":\n@@ -0,0 +1 @@\n+new"},
		{"a file that is none", strings.Repeat("\x00\x01", 50), "text", `"f.txt" has 100 bytes now and would have 4.`},
		{"much", strings.Repeat("a\n", maxCompared), "b", `"f.txt" has 262144 bytes now and would have 1.`},
		{"many lines", strings.Repeat("a\n", 500), strings.Repeat("b\n", 500), "[… 921 lines more; the arguments have all of the new content …]"},
		{"a long line", "x", strings.Repeat("y", 1000), "[… 701 bytes more …]"},
		{"a header in it", "--- a\n+++ after\n", "--- b\n+++ after\n", "\n---- a\n+--- b\n +++ after"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "f.txt"), []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		if card := tool.Card(writing(t, "f.txt", c.after)); !strings.Contains(card, c.want) {
			t.Errorf("%s: the card says %q, want %q", c.name, card, c.want)
		}
	}
	if card := tool.Card(writing(t, "new/g.txt", "12345")); card != `"new/g.txt" is a new file of 5 bytes.` {
		t.Errorf("of a new file the card says %q", card)
	}
	if card := tool.Card(writing(t, "../x", "1")); card != "" {
		t.Errorf("of what cannot be written the card says %q", card)
	}
}

// A text in which something was hidden from the model takes the place of no file.
func TestWhatWasHiddenIsNotWrittenOver(t *testing.T) {
	dir := t.TempDir()
	tool := toolNamed(t, "write_file", Tools(Config{Dirs: Dirs{Dir: dir, Shared: true}}))
	if err := os.WriteFile(filepath.Join(dir, "f.txt"), []byte("key: 1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tool.Judge(writing(t, "f.txt", "key: [secret]")); err == nil || !strings.Contains(err.Error(), "hidden from you") {
		t.Errorf("got %v", err)
	}
	if _, _, err := tool.Judge(writing(t, "g.txt", "key: [secret]")); err != nil {
		t.Errorf("a new file: %v", err)
	}
}

func writing(t *testing.T, path, content string) agent.Invocation {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"path": path, "content": content})
	if err != nil {
		t.Fatal(err)
	}
	return agent.Invocation{Person: agent.Person{ID: "terminal:ann"}, Arguments: arguments}
}

// FuzzPaths holds every path against the one thing that must never be: reaching something outside the folder.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{"a.txt", "../secret", "/etc/passwd", "a/../../secret", "link/secret", "linked", "..\\secret", "C:/x", "a\x00b", "./a/./b", "a//b", "~/x", "\u202etxt", "..%2fsecret", "…/secret", ".nudge-tmp-x", "a/.", strings.Repeat("a/", 3000), "\xff\xfe", "．．/secret", "con", "a.", "a "} {
		f.Add(path)
	}
	outer := f.TempDir()
	inner := filepath.Join(outer, "inner")
	const kept = "what is outside stays as it is"
	for _, make := range []error{
		os.Mkdir(inner, 0o700), os.WriteFile(filepath.Join(outer, "secret"), []byte(kept), 0o600),
		os.Symlink(outer, filepath.Join(inner, "link")), os.Symlink(filepath.Join(outer, "secret"), filepath.Join(inner, "linked")),
	} {
		if make != nil {
			f.Fatal(make)
		}
	}
	tools := Tools(Config{Dirs: Dirs{Dir: inner, Shared: true}})
	f.Fuzz(func(t *testing.T, path string) {
		for _, tool := range tools {
			in := writing(t, path, "written")
			if tool.Judge != nil {
				_, _, _ = tool.Judge(in)
			}
			result, err := tool.Run(t.Context(), in)
			if strings.Contains(result.Text, kept) || err != nil && (strings.Contains(err.Error(), outer) || strings.Contains(err.Error(), kept)) {
				t.Fatalf("%s of %q gave %q, %v", tool.Name, path, result.Text, err)
			}
		}
		if text, err := os.ReadFile(filepath.Join(outer, "secret")); err != nil || string(text) != kept {
			t.Fatalf("%q changed what is outside: %q, %v", path, text, err)
		}
		if entries, err := os.ReadDir(outer); err != nil || len(entries) != 2 {
			t.Fatalf("%q left %v outside, %v", path, entries, err)
		}
	})
}

func toolNamed(t *testing.T, name string, tools []agent.Tool) agent.Tool {
	t.Helper()
	at := slices.IndexFunc(tools, func(tool agent.Tool) bool { return tool.Name == name })
	if at < 0 {
		t.Fatalf("there is no tool %s", name)
	}
	return tools[at]
}

// Where others read along, the card of a write tells nothing of what stands in a person's own file.
func TestTheCardOfAWriteAmongOthersKeepsTheFile(t *testing.T) {
	const inIt = "a private diagnosis"
	for _, shared := range []bool{false, true} {
		dirs := Dirs{Dir: t.TempDir(), Shared: shared}
		tool := Config{Dirs: dirs}.writeFile()
		root, err := dirs.Root(ann)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(root.WriteFile("f.txt", []byte(inIt+"\n"), 0o600), root.Close()); err != nil {
			t.Fatal(err)
		}
		for address, direct := range map[string]bool{"slack:T1:C1:1700.1": false, "discord:1:2:": false, "slack:T1:dm:U1": true, "terminal:local:dm:ann": true} {
			for _, after := range []string{"x", inIt + "\n"} {
				in := writing(t, "f.txt", after)
				in.Person, in.Address = agent.Person{ID: ann}, address
				if card := tool.Card(in); (card != notDiffered) != (shared || direct) || card == "" {
					t.Errorf("in %s, in a folder of one's own: %v, the card says %q", address, !shared, card)
				}
			}
			in := writing(t, "new.txt", "x")
			in.Person, in.Address = agent.Person{ID: ann}, address
			if card := tool.Card(in); !strings.Contains(card, "is a new file") {
				t.Errorf("in %s, of a new file the card says %q", address, card)
			}
		}
	}
}

// What is read of a folder of one's own is one's own; what was attached or read in the conversation, and a folder of all, are not.
func TestWhatIsOnesOwn(t *testing.T) {
	for _, shared := range []bool{false, true} {
		tools := Tools(Config{Dirs: Dirs{Dir: t.TempDir(), Shared: shared}})
		for path, own := range map[string]bool{"notes.md": true, "./a/../notes.md": true, "../x": true, ".": true, "FILE:1": true, agent.FilePrefix + "F1": false, agent.SavedPrefix + "abc": false} {
			arguments, err := json.Marshal(map[string]string{"path": path})
			if err != nil {
				t.Fatal(err)
			}
			in := agent.Invocation{Person: agent.Person{ID: ann}, Arguments: arguments}
			if got := toolNamed(t, "read_file", tools).LabelsOf(in).Own; got != (own && !shared) {
				t.Errorf("%q is one's own: %v, in a folder of all: %v", path, got, shared)
			}
			if got := toolNamed(t, "list_files", tools).LabelsOf(in).Own; got == shared {
				t.Errorf("names are one's own: %v, in a folder of all: %v", got, shared)
			}
		}
	}
}
