package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"nudge/schedule"
)

// load writes a config file into a folder of its own and loads it.
func load(t *testing.T, document string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestLoadReadsEveryKindOfValue(t *testing.T) {
	c, err := load(t, `
data_dir = "data"
[model]
provider = "openai"
name = "small"
api_key_env = "./key"
price_in = 1
price_out = 2.5
call_timeout = "90s"
[limits]
max_cost_usd = 0.5
approval_timeout = "7d"
[access]
allow = ["slack:T1:U1", "discord:2", "api:*"]
[slack]
bot_token_env = "/run/secrets/bot"
app_token_env = "SLACK_APP_TOKEN"
[tools]
approve = { write_file = "owner" }
[[command]]
name = "wait"
run = ["sleep", "{seconds}"]
parameters = { seconds = "[0-9]+" }
[[command]]
name = "log"
run = ["tail", "{file}", "{kind}"]
effect = "read"
approve = "no"
[command.parameters.file]
pattern = "[a-z]+"
description = "which"
[command.parameters.kind]
choices = ["new", "old"]
description = "which"
[[hook]]
at = "before_tool"
run = ["guard", "-x"]
[[hook]]
at = "after_step"
run = ["./watch"]
timeout = "1m"
[[heartbeat]]
name = "daily"
cron = "0 9 * * *"
timezone = "Europe/Berlin"
for = ["web:me"]
prompt = "look"
until = 2030-01-31
condition = { kind = "any", of = [ { kind = "command", run = ["a"] }, { kind = "file", path = "x" } ] }
`)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(c.File)
	want := base()
	want.File = c.File
	want.DataDir = filepath.Join(folder, "data")
	want.Model.Provider, want.Model.Name = "openai", "small"
	want.Model.APIKeyEnv = filepath.Join(folder, "key")
	want.Model.PriceIn, want.Model.PriceOut = 1, 2.5
	want.Model.CallTimeout = Duration(90 * time.Second)
	want.Limits.MaxCostUSD = 0.5
	want.Limits.ApprovalTimeout = Duration(7 * 24 * time.Hour)
	want.Access.Allow = []string{"slack:T1:U1", "discord:2", "api:*"}
	want.Slack = Slack{BotTokenEnv: "/run/secrets/bot", AppTokenEnv: "SLACK_APP_TOKEN"}
	want.Tools.Approve = map[string]string{"write_file": "owner"}
	want.Commands = []Command{
		{Name: "wait", Run: []string{"sleep", "{seconds}"}, Effect: "effect", Approve: "ask",
			Parameters: map[string]Parameter{"seconds": {Pattern: "[0-9]+"}}},
		{Name: "log", Run: []string{"tail", "{file}", "{kind}"}, Effect: "read", Approve: "no",
			Parameters: map[string]Parameter{"file": {Pattern: "[a-z]+", Description: "which"}, "kind": {Choices: []string{"new", "old"}, Description: "which"}}},
	}
	want.Hooks = []Hook{
		{At: "before_tool", Run: []string{"guard", "-x"}, Timeout: Duration(5 * time.Second)},
		{At: "after_step", Run: []string{"./watch"}, Timeout: Duration(time.Minute)},
	}
	want.Heartbeats = []Heartbeat{{
		Name: "daily", Cron: "0 9 * * *", Timezone: "Europe/Berlin", For: []string{"web:me"}, Prompt: "look",
		Until: "2030-01-31", Missed: "once", Grace: Duration(time.Hour),
		Condition: Condition{Kind: "any", On: "change", Test: "exists", Of: []Condition{
			{Kind: "command", Test: "exists", Run: []string{"a"}},
			{Kind: "file", Test: "exists", Path: "x"},
		}},
	}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestLoadWithoutAFile(t *testing.T) {
	c, err := Load("")
	if err != nil || !reflect.DeepEqual(c, Default()) {
		t.Errorf("Load of no path = %+v, %v, want the defaults", c, err)
	}
	missing := filepath.Join(t.TempDir(), "none.toml")
	_, err = Load(missing)
	var fault *Error
	if !errors.Is(err, os.ErrNotExist) || errors.As(err, &fault) || !strings.Contains(err.Error(), missing) {
		t.Errorf("Load of a missing file = %v, want an error that names it and is no fault of the file", err)
	}
	long := filepath.Join(t.TempDir(), "long.toml")
	if err := os.WriteFile(long, make([]byte, longestFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(long); err == nil || !strings.Contains(err.Error(), "longer than 1 MiB") {
		t.Errorf("Load of a long file = %v", err)
	}
}

// TestDefaultPassesItsOwnChecks holds the embedded config against the rules that files are held against.
func TestDefaultPassesItsOwnChecks(t *testing.T) {
	c := Default()
	f := &faults{file: "default"}
	at := &place{keys: map[string]*place{}}
	check(&c, at, f)
	if err := f.err(); err != nil {
		t.Error(err)
	}
	if len(c.Commands) != 2 || c.Commands[0].Name != "wait" || c.Commands[1].Name != "disk" {
		t.Errorf("presets are %+v, want wait and disk", c.Commands)
	}
	for _, command := range c.Commands {
		if command.Effect != "read" || command.Approve != "no" {
			t.Errorf("preset %s has effect %q and policy %q", command.Name, command.Effect, command.Approve)
		}
	}
}

func TestFind(t *testing.T) {
	home, base := t.TempDir(), t.TempDir()
	write := func(folder string) string {
		path := filepath.Join(folder, "nudge", "config.toml")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	if got := Find(""); got != "" {
		t.Errorf("with no file Find = %q", got)
	}
	if got := Find("some.toml"); got != "some.toml" {
		t.Errorf("explicit Find = %q", got)
	}
	if want := write(filepath.Join(home, ".config")); Find("") != want {
		t.Errorf("Find = %q, want %q", Find(""), want)
	}
	t.Setenv("XDG_CONFIG_HOME", base)
	if got := Find(""); got != "" {
		t.Errorf("with an empty base directory Find = %q", got)
	}
	if want := write(base); Find("") != want {
		t.Errorf("Find = %q, want %q", Find(""), want)
	}
}

func TestFindDataDir(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	for _, test := range []struct {
		name, explicit, config, base, home, want string
	}{
		{"explicit", "/a", "/b", "/c", "/d", "/a"},
		{"explicit, relative", "a", "/b", "/c", "/d", filepath.Join(work, "a")},
		{"config", "", "/b", "/c", "/d", "/b"},
		{"base directory", "", "", "/c", "/d", "/c/nudge"},
		{"relative base directory", "", "", "c", "/d", "/d/.local/share/nudge"},
		{"home", "", "", "", "/d", "/d/.local/share/nudge"},
		{"nothing", "", "", "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("XDG_DATA_HOME", test.base)
			t.Setenv("HOME", test.home)
			got, err := Config{DataDir: test.config}.FindDataDir(test.explicit)
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestWorkspaceDir(t *testing.T) {
	if got := Default().WorkspaceDir("/data"); got != "/data/workspace" {
		t.Errorf("default workspace is %q", got)
	}
	t.Setenv("HOME", "/home/ann")
	for written, want := range map[string]string{"work": "", "/srv/work": "/srv/work", "~/work": "/home/ann/work"} {
		c, err := load(t, "[workspace]\ndir = \""+written+"\"\n")
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = filepath.Join(filepath.Dir(c.File), written)
		}
		if got := c.WorkspaceDir("/data"); got != want {
			t.Errorf("dir = %q gives %q, want %q", written, got, want)
		}
	}
}

// example gives the example file with the marked lines in use.
func example(t *testing.T, marked func(line string) (string, bool)) string {
	t.Helper()
	text, err := os.ReadFile("../../../config.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if used, ok := marked(line); ok {
			lines[i] = used
		}
	}
	return strings.Join(lines, "\n")
}

// Which lines of the example file are put to use.

func none(string) (string, bool) { return "", false }

func defaults(line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "# ")
	key, _, assigned := strings.Cut(rest, " = ")
	return rest, ok && assigned && key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") == ""
}

func examples(line string) (string, bool) { return strings.CutPrefix(line, "#~ ") }

func TestExampleShowsTheDefaults(t *testing.T) {
	for name, marked := range map[string]func(string) (string, bool){"as it is": none, "with its defaults": defaults} {
		c, err := load(t, example(t, marked))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := base()
		want.File = c.File
		// An empty list or table in the file means the same as none.
		for _, list := range []*[]string{&c.Access.Allow, &c.Access.Owners, &c.Tools.Only, &c.Tools.Deny, &c.Fetch.Hosts} {
			if len(*list) == 0 {
				*list = nil
			}
		}
		if len(c.Tools.Approve) == 0 {
			c.Tools.Approve = nil
		}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, c, want)
		}
	}
}

func TestExampleIsComplete(t *testing.T) {
	shown := map[string]bool{}
	for _, marked := range []func(string) (string, bool){defaults, examples} {
		document := example(t, marked)
		if _, err := load(t, document); err != nil {
			t.Fatal(err)
		}
		collect(outline([]byte(document)), "", shown)
	}
	for _, key := range knownKeys() {
		if shown[key] == exempt(key) {
			t.Errorf("key %s: in the example %t, available %t", key, shown[key], !exempt(key))
		}
	}
}

// collect notes every key that is written below a place.
func collect(at *place, key string, shown map[string]bool) {
	if key != "" {
		shown[strings.ReplaceAll(key, ".of.", ".")] = true
	}
	for name, child := range at.keys {
		collect(child, dotted(key, name), shown)
	}
	for _, item := range at.items {
		collect(item, key, shown)
	}
}

// exempt reports whether a key belongs to something that this version doesn't have.
func exempt(key string) bool {
	for part := key; part != ""; part = part[:max(0, strings.LastIndexByte(part, '.'))] {
		_, missing := notYet(part, "")
		if _, fixed := onlyDefaults(part); fixed || missing {
			return true
		}
	}
	name, inCondition := strings.CutPrefix(key, "heartbeat.condition.")
	if !inCondition {
		return false
	}
	readers, missing := 0, 0
	for kind, keys := range conditionKeys {
		for _, read := range keys {
			if read == name {
				readers++
				if _, yes := notYet("heartbeat.condition.kind", kind); yes {
					missing++
				}
			}
		}
	}
	return readers > 0 && readers == missing
}

// TestStrictDecoderAgrees lets the library's own strict decoder read the same documents into the same structs.
func TestStrictDecoderAgrees(t *testing.T) {
	decoder := toml.NewDecoder(strings.NewReader(example(t, defaults))).DisallowUnknownFields()
	want := base()
	if err := decoder.Decode(&want); err != nil {
		t.Fatal(err)
	}
	got, err := load(t, example(t, defaults))
	if err != nil {
		t.Fatal(err)
	}
	got.File = ""
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, key := range knownKeys() {
		if notTable := !strings.Contains(key, "."); notTable {
			continue
		}
		slip := key + "x"
		_, ours := load(t, slip+" = 1")
		theirs := toml.NewDecoder(strings.NewReader(slip + " = 1")).DisallowUnknownFields().Decode(&Config{})
		if ours == nil || theirs == nil {
			t.Errorf("unknown key %s: we say %v, the strict decoder %v", slip, ours, theirs)
		}
	}
}

func TestSecret(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for name, content := range map[string]string{"token": " s3cret\n", "empty": " \n", "long": strings.Repeat("x", longestSecret+1)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SOME_TOKEN", "s3cret ")
	t.Setenv("EMPTY_TOKEN", "  ")
	for _, test := range []struct{ ref, want, wrong string }{
		{ref: "SOME_TOKEN", want: "s3cret"},
		{ref: "./token", want: "s3cret"},
		{ref: filepath.Join(folder, "token"), want: "s3cret"},
		{ref: "EMPTY_TOKEN", wrong: "read a secret: environment variable EMPTY_TOKEN is not set"},
		{ref: "NO_TOKEN", wrong: "read a secret: environment variable NO_TOKEN is not set"},
		{ref: "", wrong: "read a secret: the environment variable named there is not set"},
		{ref: "skAbc123def", wrong: "read a secret: the environment variable named there is not set"},
		{ref: "/skAbc123def", wrong: "read a secret: the file named there: no such file or directory"},
		{ref: "/sk/Abc123def", wrong: "read a secret: the file named there: no such file or directory"},
		{ref: "./none", wrong: "read a secret: file ./none: no such file or directory"},
		{ref: "./empty", wrong: "read a secret: file ./empty is empty"},
		{ref: "./long", wrong: "read a secret: file ./long is longer than 64 KiB"},
		{ref: "./", wrong: "read a secret: file ./: is a directory"},
	} {
		got, err := Secret(test.ref)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != test.want || said != test.wrong {
			t.Errorf("Secret(%q) = %q, %q, want %q, %q", test.ref, got, said, test.want, test.wrong)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "72h": 72 * time.Hour, "7d": 7 * day, "1d12h": 36 * time.Hour, "0d": 0, "0s": 0, "1.5h": 90 * time.Minute,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.Std() != want {
			t.Errorf("%q is %v, %v, want %v", text, d, err, want)
		}
	}
	for _, text := range []string{"", "d", "7", "7 d", "-1s", "-1d", "1d-2h", "1d1d", "1.5d", "106752d", "106751d24h", "99999999999999999999d", "s3cret"} {
		d := Duration(1)
		if err := d.UnmarshalText([]byte(text)); err == nil || d != 1 {
			t.Errorf("%q is taken for %v", text, d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := Duration(rapid.Int64Min(0).Draw(t, "duration"))
		var got Duration
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Fatalf("%v is read as %v, %v", want, got, err)
		}
	})
}

func TestMoment(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[Moment]string{
		"2027-01-31":                "2027-01-31T23:00:00Z",
		"2027-03-28":                "2027-03-28T22:00:00Z", // a day of 23 hours
		"2027-01-31T18:00:00+01:00": "2027-01-31T17:00:00Z",
	} {
		at, err := text.In(berlin)
		if got := at.UTC().Format(time.RFC3339); err != nil || got != want {
			t.Errorf("%s is over at %s, %v, want %s", text, got, err, want)
		}
	}
	if _, err := Moment("s3cret").In(berlin); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a moment that is none: %v", err)
	}
}

func TestScheduledHeartbeats(t *testing.T) {
	h := newHeartbeat()
	h.Name, h.Cron, h.Prompt, h.Timezone, h.Until = "a", "@daily", "look", "Asia/Tokyo", "2030-01-31"
	h.Condition.Kind = "any"
	h.Condition.Of = []Condition{newPart(), newPart()}
	h.Condition.Of[0].Kind, h.Condition.Of[0].Run = "command", []string{"a"}
	h.Condition.Of[1].Kind, h.Condition.Of[1].Path = "file", "b"
	beat, err := h.Scheduled("web:me")
	if err != nil {
		t.Fatal(err)
	}
	if err := beat.Validate(); err != nil {
		t.Errorf("the schedule refuses it: %v", err)
	}
	if got := beat.Until.Format(time.RFC3339); got != "2030-01-31T15:00:00Z" {
		t.Errorf("its day ends at %s", got)
	}
	if !slices.Equal(beat.For, []string{"web:me"}) {
		t.Errorf("it is for %q", beat.For)
	}
	h.For, h.Until, h.Timezone = []string{"api:x"}, "", ""
	if beat, err = h.Scheduled("web:me"); err != nil || !beat.Until.IsZero() || !slices.Equal(beat.For, []string{"api:x"}) {
		t.Errorf("without an end it is %+v, %v", beat, err)
	}
	for _, wrong := range []Heartbeat{{Until: "soon"}, {Until: "2030-01-31", Timezone: "Mars/Phobos"}} {
		if _, err := wrong.Scheduled("web:me"); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

// TestCronFaultsAreToldWithoutTheSpec draws specs that are nearly right: one that the schedule refuses has a fault
// that is told and holds no word of it, and the config is refused exactly when the schedule would refuse it.
func TestCronFaultsAreToldWithoutTheSpec(t *testing.T) {
	field := rapid.SampledFrom([]string{"*", "0", "5", "31", "62", "*/7", "1-5", "9-2", "mon", "q7q", "1,,2", "?", "-", "2/"})
	rapid.Check(t, func(t *rapid.T) {
		spec := strings.Join(rapid.SliceOfN(field, 4, 6).Draw(t, "fields"), " ")
		if rapid.Bool().Draw(t, "word") {
			spec = rapid.SampledFrom([]string{"@every 5m", "@every -5m", "@every q7q", "@q7q", "@daily", "TZ=UTC 1 1 1 1 1"}).Draw(t, "spec")
		}
		_, refused := schedule.ParseCron(spec, "")
		_, err := read("c", "/", []byte(cron(spec)))
		if (err == nil) != (refused == nil) {
			t.Fatalf("%q: the config says %v, the schedule %v", spec, err, refused)
		}
		if err != nil && strings.Contains(err.Error(), "q7q") {
			t.Fatalf("%q is quoted: %v", spec, err)
		}
	})
}

func TestDefaultsOfWhatIsNotThereMayBeWritten(t *testing.T) {
	c, err := load(t, `
[diary]
embedder = "local"
min_score = 0
[telemetry]
prometheus = true
otlp_endpoint = ""
`)
	if err != nil {
		t.Fatal(err)
	}
	want := base()
	if c.Diary != want.Diary || c.Telemetry != want.Telemetry {
		t.Errorf("got %+v", c)
	}
}

func TestEveryToolMayBeNamed(t *testing.T) {
	c, err := load(t, `
[tools]
only = ["read_file", "ask_person", "plan", "notify", "run_command"]
deny = ["delegate", "list_files"]
approve = { overwrite_file = "owner", run_command = "second", fetch_page = "ask", write_file = "no", create_heartbeat = "owner" }
`)
	if err != nil || len(c.Tools.Approve) != 5 {
		t.Errorf("%+v, %v", c.Tools, err)
	}
	c, err = load(t, "[fetch]\nhosts = [\"example.org\", \"*.example.com\", \"example.net:9000\"]")
	if err != nil || len(c.Fetch.Hosts) != 3 {
		t.Errorf("%+v, %v", c.Fetch, err)
	}
}

func TestEachProviderHasItsQuirks(t *testing.T) {
	for provider, profile := range map[string]string{"openai": "text_tool_calls, no_stream", "anthropic": "no_cache, bearer", "demo": ""} {
		c, err := load(t, fmt.Sprintf("[model]\nprovider = %q\nname = \"x\"\nprofile = %q\n", provider, profile))
		if err != nil || c.Model.Profile != profile {
			t.Errorf("%s: %q, %v", provider, c.Model.Profile, err)
		}
	}
}

func TestASmallWindowHasASmallOutput(t *testing.T) {
	for window, want := range map[string]int{"8192": 1024, "4096": 512, "32768": 4096, "200000": 4096} {
		c, err := load(t, "[model]\ncontext_window = "+window+"\n")
		if err != nil || c.Model.MaxOutput != want {
			t.Errorf("a window of %s has an output of %d, want %d; error %v", window, c.Model.MaxOutput, want, err)
		}
	}
}
