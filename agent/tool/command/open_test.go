//go:build linux || darwin || freebsd || netbsd || openbsd

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
)

// opened are the openings of a call, by name.
func opened(tool agent.Tool, in agent.Invocation) (open map[string]string, depends string) {
	list, depends := tool.Open(in)
	open = map[string]string{}
	for _, o := range list {
		open[o.Name] = o.Within
	}
	return open, depends
}

func TestWhatMayBeLeftOpen(t *testing.T) {
	dir := t.TempDir()
	if err := errorsOf(os.WriteFile(filepath.Join(dir, "v1"), []byte("one"), 0o600), os.Mkdir(filepath.Join(dir, "staging"), 0o700), os.Symlink("nowhere", filepath.Join(dir, "v3"))); err != nil {
		t.Fatal(err)
	}
	preset := Preset{
		Name: "deploy", Run: []string{"deploy", "{env}", "--version={version}", "-m{note}", "{channel}:{note}", "{size}"},
		Parameters: map[string]Parameter{
			"env": {Choices: []string{"staging", "production", "a b"}}, "version": {Pattern: `v[0-9.]+`}, "note": {}, "size": {Pattern: "a b\n|c", Default: text("-")},
			"channel": {Pattern: `[a-z]+`, Default: text("beta")},
		},
	}
	tool, err := New([]Preset{preset}, Place{Dir: func(p agent.PersonID) (string, error) { return map[agent.PersonID]string{"terminal:ann": dir}[p], nil }})
	if err != nil {
		t.Fatal(err)
	}
	base := args{"name": "deploy", "env": "production", "version": "v2", "note": "now"}
	with := func(more args) args {
		all := maps.Clone(base)
		maps.Copy(all, more)
		return all
	}
	for _, c := range []struct {
		why       string
		arguments args
		want      args
	}{
		{"nothing hangs", base, args{"env": `of staging, production, "a b"`, "version": "that matches v[0-9.]+"}},
		{"a parameter that is given is open, one that is left to its default is not", with(args{"channel": "dev", "size": "c"}), args{
			"env": `of staging, production, "a b"`, "version": "that matches v[0-9.]+", "channel": "that matches [a-z]+", "size": `that matches "a b\n|c"`,
		}},
		{"a file", with(args{"version": "v1"}), args{"env": `of staging, production, "a b"`}},
		{"a link", with(args{"version": "v3"}), args{"env": `of staging, production, "a b"`}},
		{"a file behind an option", with(args{"channel": "dev", "note": "v1"}), args{"env": `of staging, production, "a b"`, "version": "that matches v[0-9.]+"}},
		{"a folder", with(args{"env": "staging"}), args{"version": "that matches v[0-9.]+"}},
		{"outside the pattern", with(args{"version": "2"}), args{}},
		{"outside the choices", with(args{"env": "moon"}), args{}},
		{"an unknown parameter", with(args{"more": "x"}), args{}},
		{"without a parameter that is needed", args{"name": "deploy", "env": "staging"}, args{}},
		{"an unknown command", with(args{"name": "other"}), args{}},
	} {
		raw, err := json.Marshal(c.arguments)
		if err != nil {
			t.Fatal(err)
		}
		in := agent.Invocation{Person: agent.Person{ID: "terminal:ann"}, Arguments: raw}
		if open, _ := opened(tool, in); !maps.Equal(open, c.want) {
			t.Errorf("%s: %q may be left open, want %q", c.why, open, c.want)
		}
		in.Person.ID = "terminal:eve"
		if open, _ := opened(tool, in); len(open) > 0 {
			t.Errorf("%s: without a workspace %q may be left open", c.why, open)
		}
	}
}

// TestAnotherDefinitionIsAnotherCommand changes each part of a definition, one at a time.
func TestAnotherDefinitionIsAnotherCommand(t *testing.T) {
	dir := t.TempDir()
	preset := func() Preset {
		return Preset{Name: "deploy", Run: []string{"deploy", "{env}", "{version}"}, Parameters: map[string]Parameter{
			"env": {Choices: []string{"staging", "production"}}, "version": {Pattern: `v[0-9.]+`},
		}}
	}
	frame := func(p Preset) string {
		tool, err := New([]Preset{p}, Place{Dir: func(agent.PersonID) (string, error) { return dir, nil }})
		if err != nil {
			t.Fatal(err)
		}
		_, depends := tool.Open(agent.Invocation{Arguments: json.RawMessage(`{"name":"deploy","env":"staging","version":"v1"}`)})
		return depends
	}
	if once, again := frame(preset()), frame(preset()); once != again {
		t.Error("the same definition is another one")
	}
	for name, change := range map[string]func(p *Preset){
		"the program":       func(p *Preset) { p.Run[0] = "destroy" },
		"an argument":       func(p *Preset) { p.Run = append(p.Run, "--force") },
		"the order":         func(p *Preset) { p.Run[1], p.Run[2] = p.Run[2], p.Run[1] },
		"the open pattern":  func(p *Preset) { p.Parameters["version"] = Parameter{Pattern: `v[0-9.]*`} },
		"the bound choices": func(p *Preset) { p.Parameters["env"] = Parameter{Choices: []string{"staging"}} },
		"a description": func(p *Preset) {
			p.Parameters["env"] = Parameter{Choices: p.Parameters["env"].Choices, Description: "where"}
		},
		"a default": func(p *Preset) {
			p.Parameters["env"] = Parameter{Choices: p.Parameters["env"].Choices, Default: text("x")}
		},
		"what it can change": func(p *Preset) { p.Effect = agent.Idempotent },
		"who must agree":     func(p *Preset) { p.Policy = agent.PolicyNo },
		"how long it takes":  func(p *Preset) { p.Timeout = 7 },
		"a box":              func(p *Preset) { p.Box = true },
		"a parameter's name": func(p *Preset) {
			p.Run[1] = "{place}"
			p.Parameters = map[string]Parameter{"place": p.Parameters["env"], "version": p.Parameters["version"]}
		},
		"two that change names": func(p *Preset) {
			p.Parameters["env"], p.Parameters["version"] = Parameter{Pattern: `.+`}, Parameter{Pattern: `v.+`}
		},
	} {
		changed := preset()
		change(&changed)
		if frame(changed) == frame(preset()) {
			t.Errorf("with another definition of %s it is the same command", name)
		}
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The parts of random presets and calls.
var (
	patterns = []string{
		"", `v[0-9.]+`, `a|ab`, `ab|a`, `(?i)x+`, `[^x]*`, `^a$`, `(?m)^a$`, `.*`, `(?s).*`, `\Qa.b\E`, `a?`, `\pL+`, `a\z`, `\w+\b`, `(?:a|b)*?`, `v1\.2`, `x{2}`, ``,
	}
	choices = [][]string{{"a", "ab"}, {"", "a b", "--force"}, {"v1.2", "é", "a\nb"}, {"X"}}
	values  = []string{
		"", "v1.2", "v1.2\n", "\nv1.2", "v1x2", "a", "ab", "A", "a\nb", "a\na", "é", "e\u0301", "x", "xx", "X", "ſ", "--force", "a b", "a.b", "a\u200b", "file", "folder", "link", "file/x", "../file", "de",
		"{b}", "a\x00", "*", `a","b":"ab`, "v١", "=file", "k=file", "\u2028", "<&>",
	}
	runs = [][]string{
		{"tool", "{a}", "{b}"}, {"tool", "--a={a}", "{b}.{c}"}, {"tool", "{a}{a}", "file", "{b}"}, {"file", "x-{a}", "{{b}}", "{c}={a}"}, {"tool", "{c}"}, {"tool"},
		{"tool", "-f{a}", "(cat fol{b}r|wc)", "@{c}/x"}, {"tool", "x {a}{b} y"},
	}
)

func randomPreset(r *rapid.T, name string) Preset {
	p := Preset{Name: name, Run: rapid.SampledFrom(runs).Draw(r, "run"), Parameters: map[string]Parameter{}, Policy: agent.PolicyAsk}
	if rapid.Bool().Draw(r, "reads") {
		p.Effect = agent.Read
	}
	for _, parameter := range []string{"a", "b", "c"} {
		if !strings.Contains(strings.Join(p.Run, " "), "{"+parameter+"}") {
			continue
		}
		var of Parameter
		if rapid.IntRange(0, 2).Draw(r, "kind") == 0 {
			of.Choices = rapid.SampledFrom(choices).Draw(r, "choices")
		} else {
			of.Pattern = rapid.SampledFrom(patterns).Draw(r, "pattern")
		}
		if rapid.IntRange(0, 3).Draw(r, "optional") == 0 {
			of.Default = text(rapid.SampledFrom([]string{"", "v1.2", "ab", "file"}).Draw(r, "default"))
		}
		p.Parameters[parameter] = of
	}
	return p
}

// randomCall is a call of one of some presets, mostly one that can run.
func randomCall(r *rapid.T, presets []Preset) map[string]string {
	p := rapid.SampledFrom(presets).Draw(r, "preset")
	call := map[string]string{"name": p.Name}
	for name, parameter := range p.Parameters {
		if parameter.Default != nil && rapid.Bool().Draw(r, "left out") {
			continue
		}
		pool := values
		if rapid.IntRange(0, 9).Draw(r, "any") > 0 {
			pool = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return !slowlyWithin(parameter, value) })
		}
		if len(pool) > 0 {
			call[name] = rapid.SampledFrom(pool).Draw(r, "value")
		}
	}
	return call
}

// slowlyWithin reads a pattern by itself: a value is within if the longest of the matches that begin first is all of it.
func slowlyWithin(p Parameter, value string) bool {
	if p.Choices != nil {
		for _, choice := range p.Choices {
			if choice == value {
				return true
			}
		}
		return false
	}
	pattern := p.Pattern
	if pattern == "" {
		pattern = DefaultPattern
	}
	if p.Pattern == "" && strings.Contains(value, "..") {
		return false
	}
	re := regexp.MustCompile(pattern)
	re.Longest()
	at := re.FindStringIndex(value)
	return at != nil && at[0] == 0 && at[1] == len(value) && !strings.ContainsRune(value, 0)
}

// slowRule is what a person allowed, as it is remembered in words: all that was there then.
type slowRule struct {
	id     string
	preset Preset
	reads  string // what the model is told of all commands
	call   map[string]string
	open   []string
	names  []string // what each argument of the program named in the workspace; that of an open one is not looked at
}

// slowlyNamed says what an argument of a program names in a folder: as it stands, from within a word of it to a value's
// end, the word's or its own, and in each of these whatever stands behind or between signs that stand around paths.
// Values stand between NULs.
func slowlyNamed(dir, marked string) string {
	texts := []string{strings.ReplaceAll(marked, "\x00", "")}
	for pieces := strings.Split(marked, "\x00"); len(pieces) > 2; pieces = pieces[2:] {
		for word := pieces[0]; ; word = word[1:] {
			if behind := strings.Join(pieces[2:], ""); !strings.ContainsAny(word, betweenWords) {
				of := strings.FieldsFunc("."+behind, func(r rune) bool { return strings.ContainsRune(betweenWords, r) })[0][1:]
				texts = append(texts, word+pieces[1], word+pieces[1]+of, word+pieces[1]+behind)
			}
			if word == "" {
				break
			}
		}
	}
	var names []string
	for _, text := range texts {
		names = append(names, text)
		for i := range len(text) {
			if !strings.ContainsRune(betweenPaths, rune(text[i])) {
				continue
			}
			names = append(names, text[i+1:])
		}
		names = append(names, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(betweenPaths, r) })...)
	}
	for _, name := range slices.Clone(names) { // as a shell reads it
		if matches, err := filepath.Glob(dir + "/" + name); err == nil && strings.Contains(name, "*") {
			for _, match := range matches {
				names = append(names, strings.TrimPrefix(match, dir+"/"))
			}
		}
	}
	slices.Sort(names)
	said := ""
	for _, name := range slices.Compact(names) {
		if name == "" || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") || strings.ContainsRune(name, 0) {
			continue
		}
		at := filepath.Join(dir, name)
		info, err := os.Lstat(at)
		switch {
		case os.IsNotExist(err), errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil:
			said += "unknown "
		case info.IsDir():
			said += "folder "
			_ = filepath.WalkDir(at, func(path string, _ os.DirEntry, _ error) error {
				content, _ := os.ReadFile(path)
				said += path + " " + string(content) + " "
				return nil
			})
		case info.Mode().IsRegular():
			content, _ := os.ReadFile(at)
			said += "file " + string(content) + " "
		default:
			content, _ := os.ReadFile(at)
			said += "link " + string(content) + " "
		}
	}
	return said
}

// slowlyFilled are the arguments of a preset's program, with their values between NULs, and the parameters that stand in each.
func slowlyFilled(p Preset, call map[string]string) (argv []string, stand [][]string) {
	for _, part := range p.Run {
		var in []string
		filled := part
		for _, name := range []string{"a", "b", "c"} {
			if !strings.Contains(part, "{"+name+"}") {
				continue
			}
			in = append(in, name)
			value, given := call[name]
			if !given {
				value = *p.Parameters[name].Default
			}
			filled = strings.ReplaceAll(filled, "{"+name+"}", "\x00"+strings.ReplaceAll(value, "{", "\x01")+"\x00")
		}
		argv, stand = append(argv, strings.ReplaceAll(filled, "\x01", "{")), append(stand, in)
	}
	return argv, stand
}

// runnable reports whether a call can run at all.
func runnable(p Preset, call map[string]string) bool {
	for name, parameter := range p.Parameters {
		value, given := call[name]
		if !given && parameter.Default == nil || given && !slowlyWithin(parameter, value) {
			return false
		}
	}
	return true
}

// lets is the slow reading of a rule: the same definition, the bound arguments equal, the open ones within what is declared and
// naming nothing, and all that the others name as it was.
func (s slowRule) lets(dir string, p Preset, reads string, call map[string]string) bool {
	if !reflect.DeepEqual(s.preset, p) || s.reads != reads || len(s.call) != len(call) {
		return false
	}
	for name, value := range call {
		was, given := s.call[name]
		if !given || !slices.Contains(s.open, name) && was != value || slices.Contains(s.open, name) && !slowlyWithin(p.Parameters[name], value) {
			return false
		}
	}
	argv, stand := slowlyFilled(p, call)
	for i, part := range argv {
		isOpen := slices.ContainsFunc(stand[i], func(name string) bool { return slices.Contains(s.open, name) })
		named := slowlyNamed(dir, part)
		if strings.Contains(named, "unknown") || isOpen && named != "" || !isOpen && named != s.names[i] {
			return false
		}
	}
	return true
}

// mayOpen is the slow reading of what a card offers.
func mayOpen(dir string, p Preset, call map[string]string) (names []string) {
	argv, stand := slowlyFilled(p, call)
	for _, name := range []string{"a", "b", "c"} {
		parameter := p.Parameters[name]
		if _, given := call[name]; !given || parameter.Pattern == "" && parameter.Choices == nil {
			continue
		}
		hangs := false
		for i, part := range argv {
			hangs = hangs || slices.Contains(stand[i], name) && slowlyNamed(dir, part) != ""
		}
		if !hangs {
			names = append(names, name)
		}
	}
	return names
}

// quay is an agent with presets that change, and a workspace whose files do.
type quay struct {
	*agenttest.World
	r       *rapid.T
	dir     string
	presets []Preset
	reads   string
	ran     int
	number  int
}

// fit gives the agent the presets of now.
func (q *quay) fit() {
	tool, err := New(q.presets, Place{Dir: func(agent.PersonID) (string, error) { return q.dir, nil }})
	if err != nil {
		q.r.Fatal(err)
	}
	tool.Run = func(context.Context, agent.Invocation) (agent.Result, error) {
		q.ran++
		return agent.Result{Text: "done"}, nil
	}
	q.Config.Tools, q.reads = []agent.Tool{tool}, tool.Description+string(tool.Schema)
}

func (q *quay) pass(m agent.Message) []agent.Reply {
	q.number++
	m.Keys = []string{fmt.Sprint("k", q.number)}
	if _, err := q.Pass(m); err != nil {
		q.r.Fatal(err)
	}
	return q.Rest()
}

// asks has the model ask for a call, and gives the card that comes of it, if one does.
func (q *quay) asks(call map[string]string) *agent.Reply {
	raw, err := json.Marshal(call)
	if err != nil {
		q.r.Fatal(err)
	}
	said := q.pass(agent.Message{Provenance: agent.Human, Text: "run " + string(raw)})
	if cards := agenttest.Only(said, agent.Approval); len(cards) > 0 {
		return &cards[0]
	}
	return nil
}

// change changes what rules are bound to: a preset, or a file.
func (q *quay) change() {
	switch at := filepath.Join(q.dir, rapid.SampledFrom([]string{"file", "ab", "a", "v1.2", "x-a"}).Draw(q.r, "file")); rapid.IntRange(0, 3).Draw(q.r, "what") {
	case 0:
		i := rapid.IntRange(0, len(q.presets)-1).Draw(q.r, "which")
		q.presets = slices.Clone(q.presets)
		if p := &q.presets[i]; rapid.Bool().Draw(q.r, "slightly") {
			p.Timeout++ // which nothing tells
		} else {
			*p = randomPreset(q.r, p.Name)
		}
		q.fit()
		q.Restart()
	case 1:
		_ = os.Remove(at)
	default:
		if err := os.WriteFile(at, []byte(rapid.SampledFrom([]string{"one", "two"}).Draw(q.r, "content")), 0o600); err != nil {
			q.r.Fatal(err)
		}
	}
}

// TestRulesOfCommands compares what is asked about with the slow reading of what was allowed.
func TestRulesOfCommands(t *testing.T) {
	cards, frees, opens := 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "nudge.db"), bolt.Options{})
		if err != nil {
			r.Fatal(err)
		}
		defer store.Close()
		q := &quay{r: r, dir: t.TempDir(), presets: []Preset{randomPreset(r, "deploy"), randomPreset(r, "drop")}, World: &agenttest.World{Config: agent.Config{Store: store}}}
		if err := errorsOf(os.WriteFile(filepath.Join(q.dir, "file"), []byte("one"), 0o600), os.Mkdir(filepath.Join(q.dir, "folder"), 0o700), os.Symlink("file", filepath.Join(q.dir, "link"))); err != nil {
			r.Fatal(err)
		}
		q.fit()
		q.World = agenttest.Start(t, agent.Config{
			Store: store, Spec: agent.ModelSpec{MaxOutput: 1000}, Tools: q.Config.Tools,
			Model: &agenttest.Model{T: t, Script: func(req model.Request) model.Answer {
				said := agenttest.LastUser(req)
				if len(agenttest.Results(req)) > 0 {
					return agenttest.Say("done")
				}
				return agenttest.Do(model.Call{ID: fmt.Sprint("c", len(req.Messages)), Name: toolName, Arguments: said[strings.LastIndex(said, "run {")+len("run "):]})
			}},
		})
		defer q.Kill()
		var rules []slowRule
		for range rapid.IntRange(2, 10).Draw(r, "steps") {
			if rapid.IntRange(0, 4).Draw(r, "change") == 0 {
				q.change()
			}
			call := randomCall(r, q.presets)
			if len(rules) > 0 && rapid.IntRange(0, 3).Draw(r, "near") > 0 {
				call = maps.Clone(rapid.SampledFrom(rules).Draw(r, "rule").call)
				if name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "differs"); call[name] != "" || name == "d" {
					call[name] = rapid.SampledFrom(values).Draw(r, "other")
				}
				delete(call, "d")
			}
			p := q.presets[slices.IndexFunc(q.presets, func(p Preset) bool { return p.Name == call["name"] })]
			known := !slices.ContainsFunc(slices.Collect(maps.Keys(call)), func(name string) bool {
				_, declared := p.Parameters[name]
				return name != "name" && !declared
			})
			can := known && runnable(p, call)
			free := can && slices.ContainsFunc(rules, func(s slowRule) bool { return s.lets(q.dir, p, q.reads, call) })
			ran := q.ran
			card := q.asks(call)
			if (card != nil) != (can && !free) || (q.ran > ran) != free {
				r.Fatalf("%q: the card is %v and it ran %d times; it can run: %v, free: %v", call, card, q.ran-ran, can, free)
			}
			if free {
				frees++
			}
			if card == nil {
				if len(rules) > 0 && rapid.IntRange(0, 2).Draw(r, "revoke") == 0 {
					i := rapid.IntRange(0, len(rules)-1).Draw(r, "ended")
					err := store.Update(t.Context(), func(tx memory.Tx) error {
						n, err := agent.RevokeRules(tx, agenttest.Ann.ID, rules[i].id)
						if n != 1 {
							r.Fatalf("%d rules are ended by %s", n, rules[i].id)
						}
						return err
					})
					if err != nil {
						r.Fatal(err)
					}
					rules = slices.Delete(rules, i, i+1)
				}
				continue
			}
			cards++
			var offered []string
			for _, o := range card.Open {
				offered = append(offered, o.Name)
			}
			if want := mayOpen(q.dir, p, call); !slices.Equal(offered, want) {
				r.Fatalf("%q: %q may be left open, want %q", call, offered, want)
			}
			d := &agent.Decision{Card: card.ID, Verdict: agent.Always}
			for _, name := range offered {
				if rapid.Bool().Draw(r, "open") {
					d.Open = append(d.Open, name)
				}
			}
			argv, stand := slowlyFilled(p, call)
			rule := slowRule{preset: p, reads: q.reads, call: call, open: d.Open}
			for i, part := range argv {
				named := slowlyNamed(q.dir, part)
				if slices.ContainsFunc(stand[i], func(name string) bool { return slices.Contains(d.Open, name) }) {
					named = ""
				}
				rule.names = append(rule.names, named)
			}
			if rapid.IntRange(0, 5).Draw(r, "deny") == 0 {
				d.Verdict, d.Open = agent.Deny, nil
			}
			marks := agenttest.Only(q.pass(agent.Message{Provenance: agent.Decided, Decision: d}), agent.DecidedMark)
			if len(marks) != 1 {
				r.Fatalf("%q: decided %+v, there are %d marks", call, d, len(marks))
			}
			if d.Verdict != agent.Always {
				continue
			}
			if len(d.Open) > 0 {
				opens++
			}
			rule.id = marks[0].Rule
			// One about the same calls takes the place of the one before it.
			rules = slices.DeleteFunc(rules, func(s slowRule) bool { return sameCalls(s, rule) })
			rules = append(rules, rule)
		}
		err = store.View(t.Context(), func(tx memory.Tx) error {
			return agent.Check(tx, func(problem string) { r.Errorf("check: %s", problem) })
		})
		if err != nil {
			r.Fatal(err)
		}
	})
	t.Logf("%d cards, %d rules with something open, %d calls that a rule let run", cards, opens, frees)
}

// sameCalls reports whether two rules are about the same calls.
func sameCalls(s, o slowRule) bool {
	if !reflect.DeepEqual(s.preset, o.preset) || s.reads != o.reads || !slices.Equal(s.open, o.open) || !slices.Equal(s.names, o.names) || len(s.call) != len(o.call) {
		return false
	}
	for name, value := range s.call {
		other, given := o.call[name]
		if !given || !slices.Contains(s.open, name) && other != value {
			return false
		}
	}
	return true
}
