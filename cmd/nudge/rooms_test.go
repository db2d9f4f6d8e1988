package main_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is a folder with Go files. Paths are slashed and start at the top of the module: "agent/model".
type room struct {
	path    string
	uses    []string // imports of the files that are built into it
	tests   []string // imports of its tests
	doc     bool     // has a package doc comment
	program bool     // has files that are no tests
}

const module = "nudge/"

// floors are the rooms at the top level, highest first. Arrows go down only.
var floors = []string{"cmd", "bot", "agent", "schedule", "memory"}

// coreMayUse are the rooms under agent that the core knows; below them is nothing of agent's.
var coreMayUse = []string{"agent/model", "agent/compact", "agent/secret", "agent/skill"}

// belowCore tells what the rooms below the core may use, the rooms inside them included.
var belowCore = map[string][]string{
	"agent/model":   {"agent/model"},
	"agent/compact": {"agent/compact", "agent/model"},
	"agent/secret":  {"agent/secret"},
	"agent/skill":   {"agent/skill", "agent/model"},
}

// libraries tells the only room that may use a module, the rooms inside it included. Tests may use any.
var libraries = map[string]string{
	"go.etcd.io/bbolt":                   "memory/bolt",
	"github.com/philippgille/chromem-go": "memory/diary",
	"github.com/robfig/cron":             "schedule",
	"github.com/expr-lang/expr":          "schedule/condition",
	"github.com/slack-go/slack":          "bot/slack",
	"github.com/bwmarrin/discordgo":      "bot/discord",
	"github.com/yuin/goldmark":           "bot",
}

// testRooms exist for tests and may be used by nothing else.
var testRooms = []string{"bottest", "discordtest", "slacktest", "stage", "memorytest", "modeltest", "agenttest", "conditiontest"}

// nonames say nothing about what is inside.
var nonames = []string{"util", "utils", "common", "helper", "helpers", "manager", "managers"}

// topLevel is all that stands there besides files that begin with a dot.
var topLevel = []string{
	"go.mod", "go.sum", "cmd", "bot", "agent", "memory", "schedule", "config.example.toml", "Dockerfile", "README.md", "LICENSE",
}

// within reports whether a path is that of a parent or of something inside it.
func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

func withinAny(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return within(path, parent) })
}

func floor(path string) int {
	top, _, _ := strings.Cut(path, "/")
	return slices.Index(floors, top)
}

// arrowFault tells what is wrong with one room's using another; "" when nothing is.
func arrowFault(from, to string) string {
	below := belowCoreOf(from)
	switch {
	case floor(from) < 0 || floor(to) < 0:
		return "is on no floor"
	case floor(to) < floor(from):
		return "is a floor higher"
	case from == "agent/model":
		return "is ours, and the model knows nothing of ours"
	case below != "" && !withinAny(to, belowCore[below]):
		return "isn't below the core"
	case from == "agent" && floor(to) == floor(from) && !slices.Contains(coreMayUse, to):
		return "is above the core"
	}
	return ""
}

// belowCoreOf is the room below the core that a path lies in; "" when it lies in none.
func belowCoreOf(path string) string {
	for _, below := range coreMayUse {
		if within(path, below) {
			return below
		}
	}
	return ""
}

func isTestRoom(name string) bool { return slices.Contains(testRooms, path.Base(name)) }

// useFault tells what is wrong with an import of a room's built files; "" when nothing is.
func useFault(from, used string) string {
	if to, ours := strings.CutPrefix(used, module); ours {
		if isTestRoom(to) && !isTestRoom(from) {
			return "is for tests only"
		}
		return arrowFault(from, to)
	}
	if within(used, "testing") && !isTestRoom(from) {
		return "is for tests only"
	}
	for library, home := range libraries {
		if within(used, library) && !within(from, home) {
			return "belongs to " + home
		}
	}
	return ""
}

// roomFaults holds every room against the rules.
func roomFaults(rooms []room) []string {
	var faults []string
	for _, r := range rooms {
		if r.program && !r.doc {
			faults = append(faults, r.path+" has no package doc comment")
		}
		if floor(r.path) < 0 {
			faults = append(faults, r.path+" is on no floor")
		}
		for _, used := range r.uses {
			if say := useFault(r.path, used); say != "" {
				faults = append(faults, fmt.Sprintf("%s uses %s, which %s", r.path, used, say))
			}
		}
	}
	return faults
}

// nameFaults holds the paths of all files against the rules for names and for the top level.
func nameFaults(files []string) []string {
	var faults []string
	for _, file := range files {
		top, _, _ := strings.Cut(file, "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(topLevel, top) {
			faults = append(faults, file+" has no place at the top level")
		}
		for _, part := range strings.Split(file, "/") {
			words := strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune("._-", r) })
			if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(nonames, strings.ToLower(word)) }) {
				faults = append(faults, file+" has a name that says nothing")
			}
		}
	}
	return faults
}

// top is the module's folder.
func top(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// readRooms reads every Go file below a folder, whatever system it is built for.
func readRooms(t *testing.T, folder string) []room {
	t.Helper()
	rooms := map[string]*room{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != folder && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return nil
		}
		inside, err := filepath.Rel(folder, filepath.Dir(name))
		if err != nil {
			return err
		}
		key := filepath.ToSlash(inside)
		if rooms[key] == nil {
			rooms[key] = &room{path: key}
		}
		return rooms[key].read(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []room
	for _, r := range rooms {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b room) int { return strings.Compare(a.path, b.path) })
	return list
}

// read adds what one file says.
func (r *room) read(name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return fmt.Errorf("read the imports of %s: %w", name, err)
	}
	var imports []string
	for _, spec := range file.Imports {
		used, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("read the imports of %s: %w", name, err)
		}
		imports = append(imports, used)
	}
	if strings.HasSuffix(name, "_test.go") {
		r.tests = append(r.tests, imports...)
		return nil
	}
	r.program = true
	r.doc = r.doc || file.Doc != nil && strings.TrimSpace(file.Doc.Text()) != ""
	r.uses = append(r.uses, imports...)
	return nil
}

// readFiles lists what belongs to the module: what git keeps or would keep, or without git all that is there.
func readFiles(t *testing.T, folder string) []string {
	t.Helper()
	git := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	git.Dir = folder
	if output, err := git.Output(); err == nil {
		// A file that was removed and not yet committed is still listed.
		return slices.DeleteFunc(strings.Split(strings.TrimRight(string(output), "\x00"), "\x00"), func(file string) bool {
			_, err := os.Lstat(filepath.Join(folder, file))
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	var files []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRooms(t *testing.T) {
	rooms := readRooms(t, top(t))
	if len(rooms) < 5 {
		t.Fatalf("found only %d rooms", len(rooms))
	}
	for _, fault := range roomFaults(rooms) {
		t.Error(fault)
	}
}

func TestNames(t *testing.T) {
	for _, fault := range nameFaults(readFiles(t, top(t))) {
		t.Error(fault)
	}
}

// TestRoomsCanFail breaks each rule once, beside a use that keeps it.
func TestRoomsCanFail(t *testing.T) {
	for _, test := range []struct{ from, used, want string }{
		{"memory", "nudge/schedule", "memory uses nudge/schedule, which is a floor higher"},
		{"schedule", "nudge/agent", "schedule uses nudge/agent, which is a floor higher"},
		{"agent/tool/files", "nudge/bot", "agent/tool/files uses nudge/bot, which is a floor higher"},
		{"bot/slack", "nudge/cmd/nudge/config", "bot/slack uses nudge/cmd/nudge/config, which is a floor higher"},
		{"agent", "nudge/internal/x", "agent uses nudge/internal/x, which is on no floor"},
		{"cmd/nudge", "nudge/memory/bolt", ""},
		{"bot", "nudge/memory", ""},
		{"agent/model", "nudge/memory", "agent/model uses nudge/memory, which is ours, and the model knows nothing of ours"},
		{"agent/model", "nudge/agent/model/openai", "agent/model uses nudge/agent/model/openai, which is ours, and the model knows nothing of ours"},
		{"agent/model/openai", "nudge/agent", "agent/model/openai uses nudge/agent, which isn't below the core"},
		{"agent/model/openai", "nudge/agent/model", ""},
		{"agent/compact", "nudge/agent/skill", "agent/compact uses nudge/agent/skill, which isn't below the core"},
		{"agent/compact", "nudge/memory", "agent/compact uses nudge/memory, which isn't below the core"},
		{"agent/skill", "nudge/agent/model", ""},
		{"agent", "nudge/agent/tool/files", "agent uses nudge/agent/tool/files, which is above the core"},
		{"agent", "nudge/agent/model/openai", "agent uses nudge/agent/model/openai, which is above the core"},
		{"agent", "nudge/agent/compact", ""},
		{"agent", "nudge/schedule", ""},
		{"agent/tool/files", "nudge/agent", ""},
		{"memory", "go.etcd.io/bbolt", "memory uses go.etcd.io/bbolt, which belongs to memory/bolt"},
		{"memory/bolt", "go.etcd.io/bbolt/errors", ""},
		{"agent", "github.com/philippgille/chromem-go", "agent uses github.com/philippgille/chromem-go, which belongs to memory/diary"},
		{"cmd/nudge", "github.com/robfig/cron/v3", "cmd/nudge uses github.com/robfig/cron/v3, which belongs to schedule"},
		{"schedule/condition", "github.com/robfig/cron/v3", ""},
		{"bot", "github.com/slack-go/slack/socketmode", "bot uses github.com/slack-go/slack/socketmode, which belongs to bot/slack"},
		{"bot/slack", "github.com/bwmarrin/discordgo", "bot/slack uses github.com/bwmarrin/discordgo, which belongs to bot/discord"},
		{"agent", "testing", "agent uses testing, which is for tests only"},
		{"agent", "testing/synctest", "agent uses testing/synctest, which is for tests only"},
		{"agent/agenttest", "testing", ""},
		{"bot", "nudge/memory/memorytest", "bot uses nudge/memory/memorytest, which is for tests only"},
		{"agent/agenttest", "nudge/memory/memorytest", ""},
		{"tools", "fmt", "tools is on no floor"},
	} {
		faults := roomFaults([]room{{path: test.from, uses: []string{test.used}, doc: true, program: true}})
		if got := strings.Join(faults, "; "); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	undocumented := roomFaults([]room{{path: "agent", program: true}, {path: "cmd/nudge"}})
	if want := []string{"agent has no package doc comment"}; !slices.Equal(undocumented, want) {
		t.Errorf("got %q, want %q", undocumented, want)
	}
	test := room{path: "memory", tests: []string{"go.etcd.io/bbolt", "testing", "nudge/memory/memorytest"}, doc: true, program: true}
	if faults := roomFaults([]room{test}); len(faults) != 0 {
		t.Errorf("tests are held to what is not for them: %q", faults)
	}
}

// TestReadingRoomsCanFail reads a small module with a fault in it.
func TestReadingRoomsCanFail(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"memory/store.go":         "package memory\n\nimport _ \"nudge/agent\"\n",
		"memory/doc_test.go":      "// Package memory has its doc in a test.\npackage memory\n\nimport _ \"testing\"\n",
		"memory/store_plan9.go":   "package memory\n\nimport _ \"testing\"\n",
		"memory/testdata/bad.go":  "no go at all",
		"agent/agent.go":          "// Package agent has a doc.\npackage agent\n",
		".hidden/hidden.go":       "no go at all",
		"agent/_left_out/left.go": "no go at all",
	} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"memory has no package doc comment",
		"memory uses nudge/agent, which is a floor higher",
		"memory uses testing, which is for tests only",
	}
	if got := roomFaults(readRooms(t, folder)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNamesCanFail(t *testing.T) {
	good := []string{".ci/run", ".gitignore", "README.md", "agent/run.go", "bot/slack/commonplace.go", "cmd/nudge/main.go"}
	if faults := nameFaults(good); len(faults) != 0 {
		t.Errorf("good names are refused: %q", faults)
	}
	for file, want := range map[string]string{
		"docs/design.md":           "docs/design.md has no place at the top level",
		"main.go":                  "main.go has no place at the top level",
		"agent/util/text.go":       "agent/util/text.go has a name that says nothing",
		"agent/helpers_test.go":    "agent/helpers_test.go has a name that says nothing",
		"bot/session_manager.go":   "bot/session_manager.go has a name that says nothing",
		"memory/common/common2.go": "memory/common/common2.go has a name that says nothing",
	} {
		if got := strings.Join(nameFaults([]string{file}), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
