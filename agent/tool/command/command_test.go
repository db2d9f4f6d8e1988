//go:build linux || darwin || freebsd || netbsd || openbsd

package command

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func text(value string) *string { return &value }

var presets = []Preset{
	{Name: "disk", Run: []string{"df", "-h"}, Effect: agent.Read, Policy: agent.PolicyNo},
	{Name: "show", Run: []string{"printf", "<%s>", "{word}", "--in={place}"}, Parameters: map[string]Parameter{
		"word":  {Description: "what to show"},
		"place": {Pattern: `[a-z]+`, Default: text("Here")},
	}},
	{Name: "pick", Run: []string{"printf", "<%s>", "{kind}"}, Parameters: map[string]Parameter{
		"kind": {Choices: []string{"new", "--old", "a b", "", "two\nlines"}, Description: "how old"},
	}},
	{Name: "fail", Run: []string{"sh", "-c", "echo broken >&2; exit 3"}, Effect: agent.Idempotent, Policy: agent.PolicyOwner},
	{Name: "where", Run: []string{"pwd"}},
	{Name: "slow", Run: []string{"sh", "-c", "echo begun; sleep 1000"}, Timeout: 50 * time.Millisecond},
	{Name: "forever", Run: []string{"sh", "-c", "echo > begun; sleep 1000"}, Timeout: time.Hour},
	{Name: "hit", Run: []string{"sh", "-c", "kill -KILL $$"}},
	{Name: "absent", Run: []string{"no-such-program-at-all"}},
	{Name: "flood", Run: []string{"sh", "-c", "head -c 3000000 /dev/zero | tr '\\000' x"}},
}

// shop is the tool for the presets above, in a folder.
type shop struct {
	tool   agent.Tool
	schema *agent.Schema
	dir    string
}

func newShop(t *testing.T) shop {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tool, err := New(presets, Place{Dir: func(p agent.PersonID) (string, error) {
		if p != "terminal:ann" {
			return "", errors.New("open /secret/place: nobody")
		}
		return dir, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := agent.CompileSchema(tool.Schema)
	if err != nil {
		t.Fatal(err)
	}
	return shop{tool, schema, dir}
}

func (s shop) invocation(t interface{ Fatal(...any) }, arguments map[string]string) agent.Invocation {
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := s.schema.Check(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return agent.Invocation{Person: agent.Person{ID: "terminal:ann"}, Arguments: checked, Progress: func(string) {}}
}

type args = map[string]string

func TestCommandsRun(t *testing.T) {
	s := newShop(t)
	for _, c := range []struct {
		arguments args
		want      string
		failed    bool
	}{
		{args{"name": "show", "word": "a b; $(id) {place} *"}, `The command "show" ended with exit status 0. It wrote:` + "\n<a b; $(id) {place} *><--in=Here>", false},
		{args{"name": "show", "word": "x", "place": "there"}, `The command "show" ended with exit status 0. It wrote:` + "\n<x><--in=there>", false},
		{args{"name": "pick", "kind": "--old"}, `The command "pick" ended with exit status 0. It wrote:` + "\n<--old>", false},
		{args{"name": "pick", "kind": "two\nlines"}, `The command "pick" ended with exit status 0. It wrote:` + "\n<two\nlines>", false},
		{args{"name": "pick", "kind": ""}, `The command "pick" ended with exit status 0. It wrote:` + "\n<>", false},
		{args{"name": "fail"}, `The command "fail" ended with exit status 3. It wrote:` + "\nbroken\n", true},
		{args{"name": "where"}, `The command "where" ended with exit status 0. It wrote:` + "\n" + s.dir + "\n", false},
		{args{"name": "slow"}, `The command "slow" was killed because its time was up (it may take 50ms).`, true},
		{args{"name": "hit"}, `The command "hit" was ended by a signal: killed. It wrote nothing.`, true},
	} {
		result, err := s.tool.Run(context.Background(), s.invocation(t, c.arguments))
		if err != nil || !strings.HasPrefix(result.Text, c.want) || result.Failed != c.failed {
			t.Errorf("%v gave %q, failed %v, %v; want %q", c.arguments, result.Text, result.Failed, err, c.want)
		}
	}
	result, err := s.tool.Run(context.Background(), s.invocation(t, args{"name": "flood"}))
	if err != nil || len(result.Text) > 1<<20 || !strings.Contains(result.Text, "bytes left out") {
		t.Errorf("the flood gave %d bytes, %v", len(result.Text), err)
	}
}

func TestCallsThatAreRefused(t *testing.T) {
	s := newShop(t)
	for _, c := range []struct {
		arguments args
		want      string
	}{
		{args{"name": "show"}, `the command "show" cannot run: the parameter "word" is missing`},
		{args{"name": "show", "word": "-rf", "place": "../x"}, `the value of "place" must match [a-z]+; the value of "word" must match [^-`},
		{args{"name": "show", "word": "a\nb"}, `the value of "word" must match`},
		{args{"name": "show", "word": ""}, `the value of "word" must match`},
		{args{"name": "show", "word": "a\x00b"}, `the value of "word" must match`},
		{args{"name": "show", "word": strings.Repeat("x", 201)}, `at most 200 characters`},
		{args{"name": "show", "word": "x", "place": "abc\n"}, `the value of "place" must match`},
		{args{"name": "pick", "kind": "ne"}, `the value of "kind" must be one of new, --old, "a b", "", "two\nlines"`},
		{args{"name": "pick", "kind": "new\n"}, `the value of "kind" must be one of`},
		{args{"name": "pick", "kind": "new, --old"}, `the value of "kind" must be one of`},
		{args{"name": "pick"}, `the parameter "kind" is missing`},
		{args{"name": "disk", "word": "x"}, `the command "disk" cannot run: it has no parameter "word"`},
	} {
		in := s.invocation(t, c.arguments)
		_, err := s.tool.Run(context.Background(), in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v gave %v; want %q", c.arguments, err, c.want)
		}
		if _, _, err := s.tool.Judge(in); err == nil {
			t.Errorf("%v would be asked about", c.arguments)
		}
		if s.tool.EffectOf(in) != agent.Effectful {
			t.Errorf("%v is taken for harmless", c.arguments)
		}
	}
	if _, err := s.schema.Check(`{"name":"rm"}`); err == nil {
		t.Error("the schema allows an unknown command")
	}
	in := s.invocation(t, args{"name": "disk"})
	in.Arguments = json.RawMessage(`{"name":"rm"}`)
	if _, err := s.tool.Run(context.Background(), in); err == nil || !strings.Contains(err.Error(), `there is no command "rm"; there are absent, disk,`) {
		t.Errorf("an unknown command: %v", err)
	}
	if _, err := s.tool.Run(context.Background(), s.invocation(t, args{"name": "absent"})); err == nil || !strings.Contains(err.Error(), `the command "absent" cannot run: its program is not installed`) {
		t.Errorf("a missing program: %v", err)
	}
	in = s.invocation(t, args{"name": "disk"})
	in.Person.ID = "terminal:eve"
	if _, err := s.tool.Run(context.Background(), in); err == nil || strings.Contains(err.Error(), "/secret") {
		t.Errorf("without a workspace: %v", err)
	}
}

func TestPolicyEffectAndDigestAreThePresets(t *testing.T) {
	s := newShop(t)
	for _, c := range []struct {
		arguments args
		policy    agent.Policy
		effect    agent.Effect
	}{
		{args{"name": "disk"}, agent.PolicyNo, agent.Read},
		{args{"name": "fail"}, agent.PolicyOwner, agent.Idempotent},
		{args{"name": "where"}, agent.PolicyAsk, agent.Effectful},
	} {
		in := s.invocation(t, c.arguments)
		policy, name, err := s.tool.Judge(in)
		if policy != c.policy || name != "run_command" || err != nil || s.tool.EffectOf(in) != c.effect {
			t.Errorf("%v: %q %q %q %v", c.arguments, policy, name, s.tool.EffectOf(in), err)
		}
	}
	changed := slices.Clone(presets)
	changed[0].Run = []string{"df", "-i"}
	other, err := New(changed, Place{Dir: func(agent.PersonID) (string, error) { return s.dir, nil }})
	if err != nil {
		t.Fatal(err)
	}
	disk, where := s.invocation(t, args{"name": "disk"}), s.invocation(t, args{"name": "where"})
	if s.tool.Digest(disk) == other.Digest(disk) || s.tool.Digest(where) != other.Digest(where) || s.tool.Digest(disk) == s.tool.Digest(where) {
		t.Error("the digest does not stand for the preset")
	}
	for _, in := range []agent.Invocation{disk, where} {
		if labels := s.tool.LabelsOf(in); !labels.Private || labels.WayOut != (s.tool.EffectOf(in) != agent.Read) {
			t.Errorf("%s is labelled %+v", in.Arguments, labels)
		}
	}
	if s.tool.Timeout <= time.Hour {
		t.Errorf("the tool's time-out %v comes before that of a command", s.tool.Timeout)
	}
}

// TestADefinitionHasTheSameDigestForLong holds what saved rules are bound to: what the program of today says of presets that were
// there before.
func TestADefinitionHasTheSameDigestForLong(t *testing.T) {
	for i, want := range []string{
		"sha256:e8a386f9512ef1b621075916eb11490829425793663cbbc752c4285601465fb5",
		"sha256:6890e5330186c8e8cbab8f7d6d96023eb70e522ff9f9a37db24527cc8bc1fbb4",
	} {
		if p, err := prepare(presets[i]); err != nil || p.digest != want {
			t.Errorf("the digest of %s is %s, error %v", p.Name, p.digest, err)
		}
	}
}

func TestTheModelReads(t *testing.T) {
	s := newShop(t)
	for _, want := range []string{"- disk: df -h", `- show: printf <%s> {word} --in={place}; place (default "Here"); word is what to show (required)`,
		`- pick: printf <%s> {kind}; kind is how old, one of new, --old, "a b", "", "two\nlines" (required)`} {
		if !strings.Contains(s.tool.Description, want) {
			t.Errorf("the description lacks %q:\n%s", want, s.tool.Description)
		}
	}
	again, err := New(presets, Place{})
	if err != nil || again.Description != s.tool.Description || string(again.Schema) != string(s.tool.Schema) {
		t.Errorf("what the model reads is not the same each time: %v", err)
	}
}

// A stand-in for bubblewrap shows what it is asked for, and then runs the command without a box.
func TestACommandInABox(t *testing.T) {
	s := newShop(t)
	preset := Preset{Name: "look", Run: []string{"printf", "<%s>", "{word}"}, Parameters: map[string]Parameter{"word": {}}, Box: true}
	tool, err := New([]Preset{preset}, Place{Dir: func(agent.PersonID) (string, error) { return s.dir, nil }})
	if err != nil {
		t.Fatal(err)
	}
	in := agent.Invocation{Arguments: json.RawMessage(`{"name":"look","word":"a b"}`)}
	programs := t.TempDir()
	t.Setenv("PATH", programs)
	if _, err := tool.Run(context.Background(), in); err == nil || !strings.Contains(err.Error(), `the command "look" cannot run: it runs only in a box`) {
		t.Errorf("without bubblewrap: %v", err)
	}
	standIn := "#!/bin/sh\nPATH=/usr/bin:/bin\nwhile [ \"$1\" != -- ]; do echo \"$1\"; shift; done\nshift\nexec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(programs, "bwrap"), []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	result, err := tool.Run(context.Background(), in)
	if err != nil || !strings.HasSuffix(result.Text, "<a b>") {
		t.Fatalf("it gave %q, %v", result.Text, err)
	}
	asked := strings.Join(strings.Split(result.Text, "\n"), " ")
	for _, want := range []string{" --unshare-all ", " --die-with-parent ", " --new-session ", " --tmpfs /tmp --bind " + s.dir + " " + s.dir + " --chdir " + s.dir + " "} {
		if !strings.Contains(asked, want) {
			t.Errorf("%q is not in %q", want, asked)
		}
	}
	open := preset
	open.Box = false
	other, err := New([]Preset{open}, Place{Dir: func(agent.PersonID) (string, error) { return s.dir, nil }})
	if err != nil || other.Digest(in) == tool.Digest(in) {
		t.Errorf("the digest is the same without the box, %v", err)
	}
}

func TestCancelEndsACommand(t *testing.T) {
	s := newShop(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan agent.Result, 1)
	go func() {
		result, err := s.tool.Run(ctx, s.invocation(t, args{"name": "forever"}))
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	give, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	for {
		if _, err := os.Stat(filepath.Join(s.dir, "begun")); err == nil {
			break
		}
		select {
		case <-give.Done():
			t.Fatal("it never began")
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if result := <-done; !result.Failed || result.Text != `The command "forever" was killed because it was cancelled. It wrote nothing.` {
		t.Errorf("got %+v", result)
	}
}

func TestPresetsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		preset Preset
		want   string
	}{
		{"no name", Preset{Run: []string{"df"}}, `command "": the name must be`},
		{"a name with a space", Preset{Name: "a b", Run: []string{"df"}}, `command "a b": the name`},
		{"no program", Preset{Name: "a"}, "run names no program"},
		{"a program to choose", Preset{Name: "a", Run: []string{"{x}"}, Parameters: map[string]Parameter{"x": {}}}, "cannot be a parameter"},
		{"an unknown placeholder", Preset{Name: "a", Run: []string{"df", "-{x}"}}, `command "a": run has the placeholder {x}`},
		{"an unused parameter", Preset{Name: "a", Run: []string{"df"}, Parameters: map[string]Parameter{"x": {}}}, `parameter "x" is not used`},
		{"a parameter called name", Preset{Name: "a", Run: []string{"df", "{name}"}, Parameters: map[string]Parameter{"name": {}}}, `cannot be called "name"`},
		{"a parameter in capitals", Preset{Name: "a", Run: []string{"df", "{X}"}, Parameters: map[string]Parameter{"X": {}}}, `parameter "X"`},
		{"a bad pattern", Preset{Name: "a", Run: []string{"df", "{x}"}, Parameters: map[string]Parameter{"x": {Pattern: "("}}}, `parameter "x": pattern`},
		{"a pattern that breaks out", Preset{Name: "a", Run: []string{"df", "{x}"}, Parameters: map[string]Parameter{"x": {Pattern: "a)|(?:b"}}}, `parameter "x": pattern`},
		{"choices and a pattern", Preset{Name: "a", Run: []string{"df", "{x}"}, Parameters: map[string]Parameter{"x": {Pattern: "a", Choices: []string{"a"}}}}, `parameter "x": it has both`},
		{"no choices", Preset{Name: "a", Run: []string{"df", "{x}"}, Parameters: map[string]Parameter{"x": {Choices: []string{}}}}, `parameter "x": there are no choices`},
		{"a choice twice", Preset{Name: "a", Run: []string{"df", "{x}"}, Parameters: map[string]Parameter{"x": {Choices: []string{"b", "a", "b"}}}}, `parameter "x": the choice "b" stands there twice`},
		{"an unknown effect", Preset{Name: "a", Run: []string{"df"}, Effect: "none"}, `effect "none"`},
		{"an unknown policy", Preset{Name: "a", Run: []string{"df"}, Policy: "yes"}, `policy "yes"`},
		{"a negative time", Preset{Name: "a", Run: []string{"df"}, Timeout: -1}, "negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := New([]Preset{c.preset}, Place{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; want %q", err, c.want)
			}
		})
	}
	if _, err := New([]Preset{presets[0], presets[0]}, Place{}); err == nil || !strings.Contains(err.Error(), `command "disk": there are two`) {
		t.Errorf("two of one name: %v", err)
	}
	if _, err := New(nil, Place{}); err == nil {
		t.Error("no commands make a tool")
	}
	if _, err := New([]Preset{{Name: "a", Run: []string{"awk", "{ print }"}}}, Place{}); err != nil {
		t.Errorf("braces around other text: %v", err)
	}
}

// TestValuesStayInOneArgument puts any text in and looks for it, whole, in its one place.
func TestValuesStayInOneArgument(t *testing.T) {
	s := newShop(t)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z{} ;|&$'"*?\\é]{1,20}`).Draw(t, "word")
		_, argv, err := runner{presets: prepareAll(t)}.read(s.invocation(t, args{"name": "show", "word": word}))
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"printf", "<%s>", word, "--in=Here"}; !slices.Equal(argv, want) {
			t.Fatalf("got %q, want %q", argv, want)
		}
	})
}

func prepareAll(t *rapid.T) map[string]prepared {
	all := map[string]prepared{}
	for _, preset := range presets {
		p, err := prepare(preset)
		if err != nil {
			t.Fatal(err)
		}
		all[p.Name] = p
	}
	return all
}

// An approval, and a rule, is about the script as it was: of a file in the workspace that a command's arguments name, the
// content counts.
func TestDigestKnowsTheFilesThatACommandRuns(t *testing.T) {
	dir := t.TempDir()
	tool, err := New([]Preset{
		{Name: "deploy", Run: []string{"sh", "./deploy.sh", "--with=notes.md", "{where}", "-f{where}.txt; ls"}, Parameters: map[string]Parameter{"where": {}}, Effect: agent.Effectful, Policy: agent.PolicyAsk},
	}, Place{Dir: func(agent.PersonID) (string, error) { return dir, nil }})
	if err != nil {
		t.Fatal(err)
	}
	in := agent.Invocation{Person: agent.Person{ID: "terminal:ann"}, Arguments: json.RawMessage(`{"name":"deploy","where":"there"}`)}
	seen := map[string]string{tool.Digest(in): "nothing there"}
	for _, c := range []struct{ file, content string }{{"deploy.sh", "echo hello"}, {"deploy.sh", "rm -rf ."}, {"notes.md", "a"}, {"notes.md", "b"}, {"there", "c"}, {"there.txt", "a"}, {"there", "d"}} {
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		digest := tool.Digest(in)
		if before, same := seen[digest]; same {
			t.Errorf("with %s %q the digest is that with %s", c.file, c.content, before)
		}
		if again := tool.Digest(in); again != digest {
			t.Errorf("with %s %q the digest changes by itself", c.file, c.content)
		}
		seen[digest] = c.file + " " + c.content
	}
}

// TestTheDigestHoldsWhereNothingCanBe gives values that are the name of nothing, however long they are or whatever stands in front.
func TestTheDigestHoldsWhereNothingCanBe(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	tool, err := New([]Preset{
		{Name: "say", Run: []string{"say", "--to=x", "{words}"}, Parameters: map[string]Parameter{"words": {Pattern: "(?s).*"}}},
	}, Place{Dir: func(agent.PersonID) (string, error) { return dir, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("long words ", 1000), "k=" + strings.Repeat("a", 300), strings.Repeat("a/", 5000) + "a", "file/x", "file/x/y", "k=file/x", "\xff", "",
	} {
		raw, err := json.Marshal(map[string]string{"name": "say", "words": words})
		if err != nil {
			t.Fatal(err)
		}
		in := agent.Invocation{Person: agent.Person{ID: "terminal:ann"}, Arguments: raw}
		if first, again := tool.Digest(in), tool.Digest(in); first != again {
			t.Errorf("with %.20q, of %d bytes, the digest changes by itself: %s", words, len(words), first)
		}
	}
}

// What a program has copied is told by the paths that its arguments name, when it may have changed something.
func TestWhatMayHaveBeenCopiedIsTold(t *testing.T) {
	dir := t.TempDir()
	var told []string
	kept := false
	tool, err := New([]Preset{
		{Name: "look", Run: []string{"true", "{what}"}, Parameters: map[string]Parameter{"what": {}}, Effect: agent.Read},
		{Name: "copy", Run: []string{"true", "--from={what}", "../out", "sub//to.md"}, Parameters: map[string]Parameter{"what": {}}},
	}, Place{Dir: func(agent.PersonID) (string, error) { return dir, nil }, Copied: func(context.Context, agent.Invocation) (func([]string) func(memory.Tx) error, error) {
		return func(names []string) func(memory.Tx) error {
			told = names
			return func(memory.Tx) error { kept = true; return nil }
		}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"look", "copy"} {
		in := agent.Invocation{Person: agent.Person{ID: "terminal:ann"}, Arguments: json.RawMessage(`{"name":"` + name + `","what":"a.md"}`)}
		result, err := tool.Run(t.Context(), in)
		if err != nil || (result.Commit != nil) != (name == "copy") {
			t.Fatalf("%s gave %+v, %v", name, result, err)
		}
		if result.Commit != nil {
			err = result.Commit(nil)
		}
		if err != nil || kept != (name == "copy") {
			t.Errorf("%s: kept %v, %v", name, kept, err)
		}
	}
	if !slices.Contains(told, "a.md") || !slices.Contains(told, "sub/to.md") || slices.Contains(told, "../out") {
		t.Errorf("told of %q", told)
	}
}

// Programs that may do what a file tells them are known by what they are not.
func TestObeys(t *testing.T) {
	for run, want := range map[string]bool{
		"df": false, "/bin/cat": false, "/usr/bin/grep": false, "git": true, "make": true, "sh": true, "./cat": true, "/opt/bin/cat": true, "sub/cat": true, "/usr/bin/../lib/cat": true, "cat ": true, "find": true, "sed": true, "jq": true,
	} {
		if got := (Preset{Name: "x", Run: []string{run}}).Obeys(); got != want {
			t.Errorf("%q obeys: %v", run, got)
		}
		if (Preset{Name: "x", Run: []string{run}, Box: true}).Obeys() {
			t.Errorf("%q in a box obeys", run)
		}
	}
}

// While text of strangers lies where a program runs that may do what it says, a call of it is a way out, and no check runs it.
func TestAProgramAmongFilesOfStrangers(t *testing.T) {
	for _, strangers := range []bool{false, true} {
		at := Place{Dir: func(agent.PersonID) (string, error) { return t.TempDir(), nil }, Outside: func(agent.PersonID) bool { return strangers }}
		list := []Preset{{Name: "status", Run: []string{"git", "status"}, Effect: agent.Read}, {Name: "free", Run: []string{"df"}, Effect: agent.Read}, {Name: "send", Run: []string{"df"}}}
		tool, err := New(list, at)
		if err != nil {
			t.Fatal(err)
		}
		checks, err := NewChecks(list)
		if err != nil {
			t.Fatal(err)
		}
		for name, out := range map[string]bool{"status": strangers, "free": false, "send": true} {
			in := agent.Invocation{Person: agent.Person{ID: "terminal:ann"}, Arguments: json.RawMessage(`{"name":"` + name + `"}`)}
			if got := tool.LabelsOf(in); got.WayOut != out || got.Outside != strangers || !got.Private || got.Obeys != (name == "status" && strangers) {
				t.Errorf("strangers: %v: %s is labelled %+v", strangers, name, got)
			}
			if _, _, err := checks.In(at, "terminal:ann")(name, nil); name != "send" && (err != nil) != (out && strangers) {
				t.Errorf("strangers: %v: a check by %s: %v", strangers, name, err)
			}
		}
	}
}

// What a call was checked for is what its program reads: it is looked at anew once nobody else can change it.
func TestALinkThatIsExchangedMeanwhile(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile, Effect: agent.Read})
	m.link(t, "notes.md", "n")
	var alone []bool
	at := m.place()
	at.Hold = func(_ context.Context, _ agent.PersonID, only bool) (func(), error) {
		alone = append(alone, only)
		if err := errorsOf(os.Remove(filepath.Join(m.ann, "n")), os.Symlink("../p-bob/notes.md", filepath.Join(m.ann, "n"))); err != nil {
			t.Error(err)
		}
		return func() { alone = nil }, nil
	}
	tool, err := New([]Preset{{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile, Effect: agent.Read}, {Name: "do", Run: []string{"cat", "{file}"}, Parameters: anyFile}}, at)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tool.Judge(calling(t, "show", "n")); err != nil {
		t.Fatal(err)
	}
	if result, err := tool.Run(t.Context(), calling(t, "show", "n")); !errors.Is(err, errTrespass) || alone != nil {
		t.Errorf("it gave %q, %v, and is held: %v", result.Text, err, alone)
	}
	at.Hold = func(_ context.Context, _ agent.PersonID, only bool) (func(), error) {
		alone = append(alone, only)
		return nil, context.Canceled
	}
	if tool, err = New([]Preset{{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile, Effect: agent.Read}, {Name: "do", Run: []string{"cat", "{file}"}, Parameters: anyFile}}, at); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"show", "do"} {
		if _, err := tool.Run(t.Context(), calling(t, name, "notes.md")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s ran without having been let in: %v", name, err)
		}
	}
	if !slices.Equal(alone, []bool{false, true}) {
		t.Errorf("alone were %v, want only what changes something", alone)
	}
}

// However a value is put together, a look at it is bounded, and one of which nobody can tell where it leads is refused.
func TestALookIsBounded(t *testing.T) {
	m := newManor(t, Preset{Name: "show", Run: []string{"cat", "{file}"}, Parameters: anyFile})
	for _, value := range []string{strings.Repeat(" a/", 999), strings.Repeat("b/a=", 900)} {
		in := calling(t, "show", value)
		if _, _, err := m.tool.Judge(in); !errors.Is(err, errUnclear) {
			t.Errorf("%.20s…: %v", value, err)
		}
		if first, again := m.tool.Digest(in), m.tool.Digest(in); first == again {
			t.Errorf("%.20s…: an approval of it is good for another call", value)
		}
	}
	g, err := openGround(m.ann)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	for range mostSteps {
		g.resolve("a")
	}
	if g.lost() {
		t.Error("what may be looked at is refused")
	}
	if g.resolve("a"); !g.lost() {
		t.Error("more is looked at than may be")
	}
}

// Whatever is written into a workspace, git takes only a folder for a repository that is named as one.
func TestGitIsToldWhatARepositoryIs(t *testing.T) {
	tool, err := New([]Preset{{Name: "env", Run: []string{"env"}, Effect: agent.Read}}, Place{Dir: func(agent.PersonID) (string, error) { return t.TempDir(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	result, err := tool.Run(t.Context(), agent.Invocation{Arguments: json.RawMessage(`{"name":"env"}`)})
	if err != nil || !strings.Contains(result.Text, "GIT_CONFIG_KEY_0=safe.bareRepository\n") || !strings.Contains(result.Text, "GIT_CONFIG_VALUE_0=explicit") {
		t.Errorf("%v, %s", err, result.Text)
	}
}

// Characters are read by their numbers, whatever the language, and what is no such number stays as it is.
func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		`\u002e\x2E\56\u{2f}\U0000002fa`: "...//a", `\q\`: `\q\`, `\u{110000}`: `\u{110000}`, "plain": "plain", `a\u00e9`: "aé", `\xzz`: `\xzz`, `\u{0}`: "\x00",
	} {
		if got := unescaped(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	m := newManor(t, Preset{Name: "query", Run: []string{"jq", "-n", "{file}"}, Parameters: map[string]Parameter{"file": {}}})
	for _, filter := range []string{`import "budget" as $d {search:"\u002e\u002e\u002fp-bob"}; $d`, `import "b" as $d {search:"\u002fetc"}; $d`, `"\x2fetc"`} {
		if _, _, err := m.tool.Judge(calling(t, "query", filter)); err == nil {
			t.Errorf("%s is let through", filter)
		}
	}
}

// What was noted before a program is taken back when it could not be started.
func TestNothingIsNotedOfAProgramThatIsNotThere(t *testing.T) {
	noted := 0
	tool, err := New([]Preset{{Name: "gone", Run: []string{"no-such-program-anywhere"}}}, Place{
		Dir: func(agent.PersonID) (string, error) { return t.TempDir(), nil },
		Copied: func(context.Context, agent.Invocation) (func([]string) func(memory.Tx) error, error) {
			noted++
			return func([]string) func(memory.Tx) error { return func(memory.Tx) error { noted--; return nil } }, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := tool.Run(t.Context(), agent.Invocation{Arguments: json.RawMessage(`{"name":"gone"}`)})
	if err != nil || !result.Failed || !strings.Contains(result.Text, "is not installed here") || result.Commit == nil {
		t.Fatalf("%+v, %v", result, err)
	}
	if err := result.Commit(nil); err != nil || noted != 0 {
		t.Errorf("noted %d, %v", noted, err)
	}
}
