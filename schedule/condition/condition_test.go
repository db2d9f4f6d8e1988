package condition_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"nudge/schedule"
	"nudge/schedule/condition"
	"nudge/schedule/condition/conditiontest"
	"nudge/schedule/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func build(t *testing.T, spec schedule.Spec, env condition.Env) schedule.Condition {
	t.Helper()
	c, err := condition.New(spec, env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func check(t *testing.T, c schedule.Condition, previous string) schedule.Finding {
	t.Helper()
	found, err := c.Check(t.Context(), previous)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// operators reports whether only the operator may set a condition of a kind.
func operators(spec schedule.Spec) bool {
	return slices.Contains([]string{"command", "http", "expr"}, spec.Kind) || slices.ContainsFunc(spec.Of, operators)
}

func TestContract(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "there"), strings.Repeat("text \xff\n", 2000))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hangs" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"state":"red","text":"`+strings.Repeat("ü", schedule.MaxEvidence)+`"}`)
	}))
	defer server.Close()
	gauges, err := condition.NewGauges([]condition.Gauge{{Name: "full", Run: []string{"echo", "97%"}, Every: time.Hour}, {Name: "hangs", Run: []string{"sleep", "300"}}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	env := condition.Env{Dir: dir, Gauges: gauges, Silent: func(context.Context, string) (time.Time, error) { return time.Unix(0, 0), nil }}
	file := func(path, test string) schedule.Spec {
		spec := schedule.Spec{Kind: "file", Path: path, Test: test}
		if test == "older_than" {
			spec.Age = time.Hour
		}
		return spec
	}
	specs := map[string]schedule.Spec{
		"always":       {Kind: "always"},
		"command":      {Kind: "command", Run: []string{"true"}},
		"command no":   {Kind: "command", Run: []string{"false"}},
		"command text": {Kind: "command", Run: []string{"printf", `\377\376`}},
		"all":          {Kind: "all", Of: []schedule.Spec{file("there", "exists"), file("not", "missing")}},
		"any":          {Kind: "any", Of: []schedule.Spec{file("there", "missing"), file("there", "changed")}},
		"http":         {Kind: "http", URL: server.URL},
		"http select":  {Kind: "http", URL: server.URL, Select: "$.state"},
		"http status":  {Kind: "http", URL: server.URL, Status: 200},
		"expr":         {Kind: "expr", Expr: "full > 90"},
		"expr no":      {Kind: "expr", Expr: "full > 99 and year > 2000"},
		"idle":         {Kind: "idle", After: time.Hour},
		"any of kinds": {Kind: "any", Of: []schedule.Spec{{Kind: "http", URL: server.URL}, {Kind: "expr", Expr: "full < 1"}, {Kind: "idle", After: time.Hour}}},
		"all watching": {Kind: "all", Of: []schedule.Spec{file("there", "exists"), file("there", "grows")}},
	}
	for _, test := range schedule.FileTests {
		specs["file "+test] = file("there", test)
		specs["no file "+test] = file("not", test)
		specs["folder "+test] = file(".", test)
	}
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			for _, confined := range []bool{false, true} {
				env.Confined = confined
				if confined && operators(spec) {
					continue
				}
				c := build(t, spec, env)
				if p, is := c.(schedule.Personal); is != spec.Personal() {
					t.Fatalf("it is personal: %v", is)
				} else if is {
					c = p.For("terminal:ann")
				}
				conditiontest.Contract(t, c)
				if spec.Test == "changed" || spec.Test == "grows" || spec.Kind == "http" && spec.Status == 0 {
					conditiontest.Watches(t, c)
				}
			}
		})
	}
	env.Confined = false
	for name, spec := range map[string]schedule.Spec{
		"command": {Kind: "command", Run: []string{"sleep", "300"}},
		"flood":   {Kind: "command", Run: []string{"yes"}},
		"http":    {Kind: "http", URL: server.URL + "/hangs"},
		"expr":    {Kind: "expr", Expr: "hangs > 1"},
		"all":     {Kind: "all", Of: []schedule.Spec{file("there", "exists"), {Kind: "http", URL: server.URL + "/hangs"}}},
	} {
		t.Run(name+" hangs", func(t *testing.T) { conditiontest.Hangs(t, build(t, spec, env)) })
	}
}

func TestCommands(t *testing.T) {
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	for _, test := range []struct {
		run  []string
		is   bool
		fail string
	}{
		{run: sh("true"), is: true},
		{run: sh("false")},
		{run: sh(`printf '\377\376'`), is: true},
		{run: sh("exit 3"), fail: "exit status 3"},
		{run: sh("kill -SEGV $$"), fail: "signal"},
		{run: sh("echo told; exit 1")},
		{run: []string{"no-such-program-anywhere"}, fail: "no-such-program-anywhere"},
		{run: sh("head -c 100000 /dev/zero | tr '\\0' 'y'"), is: true},
	} {
		c := build(t, schedule.Spec{Kind: "command", Run: test.run}, condition.Env{Dir: t.TempDir()})
		found, err := c.Check(t.Context(), "")
		if test.fail != "" {
			if err == nil || !strings.Contains(err.Error(), test.fail) {
				t.Errorf("%q: error %v, want %q", test.run, err, test.fail)
			}
			continue
		}
		if err != nil || found.True != test.is || len(found.Evidence) > schedule.MaxEvidence || !utf8.ValidString(found.Evidence) {
			t.Errorf("%q: %v, error %v, %d bytes of evidence", test.run, found.True, err, len(found.Evidence))
		}
	}
}

func TestCommandRunsInItsFolder(t *testing.T) {
	dir := t.TempDir()
	var got process.Spec
	run := func(_ context.Context, spec process.Spec) (process.Outcome, error) {
		got = spec
		return process.Outcome{}, nil
	}
	c := build(t, schedule.Spec{Kind: "command", Run: []string{"df", "-h"}}, condition.Env{Dir: dir, Run: run})
	check(t, c, "")
	if got.Dir != dir || len(got.Argv) != 2 || got.Limit > schedule.MaxEvidence {
		t.Errorf("ran %+v", got)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	now := time.Now()
	env := condition.Env{Dir: dir, Now: func() time.Time { return now }}
	test := func(name string) schedule.Condition {
		spec := schedule.Spec{Kind: "file", Path: "log", Test: name}
		if name == "older_than" {
			spec.Age = time.Hour
		}
		return build(t, spec, env)
	}
	exists, absent, changed, grows, old := test("exists"), test("missing"), test("changed"), test("grows"), test("older_than")
	if check(t, exists, "").True || !check(t, absent, "").True || check(t, old, "").True {
		t.Error("a file that is not there")
	}
	noFile, noSize := check(t, changed, "").State, check(t, grows, "").State
	write(t, path, "one\n")
	if !check(t, exists, "").True || check(t, absent, "").True || check(t, old, "").True {
		t.Error("a file that is there")
	}
	if !check(t, changed, noFile).True || !check(t, grows, noSize).True {
		t.Error("a file that appeared")
	}
	one, size := check(t, changed, noFile).State, check(t, grows, noSize).State
	write(t, path, "two\n")
	if !check(t, changed, one).True || check(t, grows, size).True {
		t.Error("a file of other content and the same size")
	}
	write(t, path, "two\nthree\n")
	if found := check(t, grows, size); !found.True || !strings.HasSuffix(found.Evidence, "three\n") {
		t.Errorf("a file that grew: %+v", found)
	}
	write(t, path, "")
	if found := check(t, grows, size); found.True || found.State != "0" {
		t.Errorf("a file that was emptied: %+v", found)
	}
	now = now.Add(2 * time.Hour)
	if !check(t, old, "").True {
		t.Error("a file that is old")
	}
}

func TestConfined(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, outside, "secret")
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	env := condition.Env{Dir: dir, Confined: true}
	for _, path := range []string{outside, "../secret", "a/../../b"} {
		if _, err := condition.New(schedule.Spec{Kind: "file", Path: path, Test: "exists"}, env); err == nil {
			t.Errorf("%q was accepted", path)
		}
	}
	link := build(t, schedule.Spec{Kind: "file", Path: "link", Test: "changed"}, env)
	if _, err := link.Check(t.Context(), ""); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("a link out of the folder: %v", err)
	}
	if _, err := condition.New(schedule.Spec{Kind: "command", Run: []string{"true"}}, env); err == nil {
		t.Error("a command was accepted")
	}
	inner := schedule.Spec{Kind: "any", Of: []schedule.Spec{{Kind: "command", Run: []string{"true"}}}}
	if _, err := condition.New(inner, env); err == nil {
		t.Error("a command within another condition was accepted")
	}
}

func TestCombined(t *testing.T) {
	dir := t.TempDir()
	env := condition.Env{Dir: dir}
	flag := schedule.Spec{Kind: "file", Path: "flag", Test: "exists"}
	data := schedule.Spec{Kind: "file", Path: "data", Test: "changed"}
	all := build(t, schedule.Spec{Kind: "all", Of: []schedule.Spec{flag, data}}, env)
	one := build(t, schedule.Spec{Kind: "any", Of: []schedule.Spec{flag, data}}, env)
	each := build(t, schedule.Spec{Kind: "any", On: "true", Of: []schedule.Spec{flag, data}}, env)

	start, startAny := check(t, all, ""), check(t, one, "")
	write(t, filepath.Join(dir, "data"), "new")
	held := check(t, all, start.State)
	if held.True {
		t.Error("all was true with one part false")
	}
	if !check(t, one, startAny.State).True {
		t.Error("any did not see the change")
	}
	write(t, filepath.Join(dir, "flag"), "")
	found := check(t, all, held.State)
	if !found.True {
		t.Error("the change was lost before the other part was true")
	}
	if check(t, all, found.State).True {
		t.Error("the change counted twice")
	}
	raised := check(t, one, startAny.State)
	if !raised.True || check(t, one, raised.State).True {
		t.Error("in an any a part that stays true counts once")
	}
	if !check(t, each, check(t, each, "").State).True {
		t.Error("in an any that wakes at every true tick a part that stays true counts each time")
	}
	broken := build(t, schedule.Spec{Kind: "any", Of: []schedule.Spec{flag, {Kind: "command", Run: []string{"sh", "-c", "exit 2"}}}}, env)
	if _, err := broken.Check(t.Context(), ""); err == nil {
		t.Error("a part that failed was passed over")
	}
}

func TestNewRefuses(t *testing.T) {
	for says, spec := range map[string]schedule.Spec{
		"no condition, no wake":               {},
		"idle cannot be used here":            {Kind: "idle", After: time.Hour},
		"heartbeat.condition.of[0]":           {Kind: "all", Of: []schedule.Spec{{Kind: "idle", After: time.Hour}}},
		"heartbeat.condition.kind: \"moon\"":  {Kind: "moon"},
		"heartbeat.condition.url: must hold":  {Kind: "http", URL: "https://ann:secret@example.com"},
		"heartbeat.condition.url: cannot":     {Kind: "http", URL: "https://"},
		"heartbeat.condition.select: it is":   {Kind: "http", URL: "https://example.com", Select: "a..b"},
		"heartbeat.condition.status: is no":   {Kind: "http", URL: "https://example.com", Status: 20},
		"the name \"disk\" is not known":      {Kind: "expr", Expr: "disk > 1"},
		"heartbeat.condition.expr: in line 1": {Kind: "expr", Expr: "hour >"},
		"is longer than 2000 bytes":           {Kind: "expr", Expr: "true or " + strings.Repeat("true or ", 300) + "true"},
	} {
		if _, err := condition.New(spec, condition.Env{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: error %v, want %q", spec, err, says)
		}
	}
	for _, spec := range []schedule.Spec{{Kind: "http", URL: "http://127.0.0.1"}, {Kind: "expr", Expr: "load > 1"}} {
		gauges, err := condition.NewGauges([]condition.Gauge{{Name: "load", Run: []string{"echo", "1"}}}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := condition.New(spec, condition.Env{Confined: true, Gauges: gauges}); err == nil {
			t.Errorf("%+v was accepted of somebody who is not the operator", spec)
		}
	}
}
