// Package command gives the agent commands that the operator prepared, and no others.
//
// A [Preset] is a program with its arguments, some of which may have places for parameters. A parameter's value
// becomes part of one argument, is never split, and meets no shell. [New] makes the one tool run_command for all
// presets; package process runs them. What the operator declared of a parameter's values is what a rule may leave open of it.
//
// What a call's arguments name in the folder where its program runs is found in ground.go, by all names that a program may make of
// them (spelling.go): its contents are part of what is approved, and where it leads is held by walls.go. Heartbeats look by the same
// presets (check.go).
package command

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"nudge/agent"
)

// DefaultTimeout is how long a command may take when its preset does not say.
const DefaultTimeout = time.Minute

// DefaultPattern is what a parameter's value must match when the parameter does not say: one line of 1 to 200
// characters that does not begin with a dash, so that it is no option. Such a value must also not lead out of the folder in which
// the program runs: nowhere in it may stand two dots as a folder, nor a path from the top, in front or behind a sign
// such as = or @.
const DefaultPattern = `[^-\x00-\x1f][^\x00-\x1f]{0,199}`

// Preset is a command as the operator prepared it.
type Preset struct {
	Name string // letters, digits, _ and -
	// Run is the program, found in PATH, and its arguments. {NAME} in an argument stands for the parameter of that
	// name; braces around anything but small letters, digits and _ are ordinary text. The program itself is fixed.
	Run        []string
	Parameters map[string]Parameter // by name: a small letter, then small letters, digits and _
	Effect     agent.Effect         // agent.Effectful when empty
	Policy     agent.Policy         // agent.PolicyAsk when empty
	Timeout    time.Duration        // DefaultTimeout when 0
	Box        bool                 `json:",omitempty"` // it runs without a network and sees its folder alone, or not at all
}

// Parameter is a part of a command that the model fills in.
type Parameter struct {
	Pattern     string   // a regular expression that the whole value must match; DefaultPattern when there are no choices either
	Choices     []string `json:",omitempty"` // the value must be one of these; only without a pattern, and nil for none
	Description string   // for the model
	Default     *string  // the value when none is given, which need not be one that may be given; nil makes it required
}

var (
	presetName    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	parameterName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	plainChoice   = regexp.MustCompile(`^[\pL\pN_./:+@-]+$`)
	placeholder   = regexp.MustCompile(`\{[a-z][a-z0-9_]*\}`)
)

// prepared is a preset that was checked.
type prepared struct {
	Preset
	patterns map[string]*regexp.Regexp
	digest   string
}

// prepare checks a preset and fills in what it leaves out.
func prepare(preset Preset) (prepared, error) {
	p := prepared{Preset: preset, patterns: map[string]*regexp.Regexp{}}
	if p.Effect == "" {
		p.Effect = agent.Effectful
	}
	if p.Policy == "" {
		p.Policy = agent.PolicyAsk
	}
	if p.Timeout == 0 {
		p.Timeout = DefaultTimeout
	}
	if err := p.check(); err != nil {
		return prepared{}, fmt.Errorf("command %q: %w", preset.Name, err)
	}
	definition, err := json.Marshal(p.Preset)
	if err != nil {
		return prepared{}, fmt.Errorf("command %q: write its definition: %w", preset.Name, err)
	}
	p.digest = fmt.Sprintf("sha256:%x", sha256.Sum256(definition))
	return p, nil
}

func (p *prepared) check() error {
	switch {
	case !presetName.MatchString(p.Name):
		return errors.New("the name must be 1 to 64 letters, digits, _ or -")
	case len(p.Run) == 0 || p.Run[0] == "":
		return errors.New("run names no program")
	case placeholder.MatchString(p.Run[0]):
		return errors.New("the program itself cannot be a parameter")
	case slices.ContainsFunc(p.Run, func(part string) bool { return strings.ContainsRune(part, 0) }):
		return errors.New("run has a NUL in it")
	case !slices.Contains([]agent.Effect{agent.Read, agent.Idempotent, agent.Effectful}, p.Effect):
		return fmt.Errorf("effect %q is not known", p.Effect)
	case !slices.Contains([]agent.Policy{agent.PolicyNo, agent.PolicyAsk, agent.PolicyOwner, agent.PolicySecond}, p.Policy):
		return fmt.Errorf("policy %q is not known", p.Policy)
	case p.Timeout < 0:
		return fmt.Errorf("timeout %v is negative", p.Timeout)
	}
	return p.checkParameters()
}

func (p *prepared) checkParameters() error {
	used := map[string]bool{}
	for _, part := range p.Run {
		for _, place := range placeholder.FindAllString(part, -1) {
			name := strings.Trim(place, "{}")
			if _, declared := p.Parameters[name]; !declared {
				return fmt.Errorf("run has the placeholder %s, but there is no parameter %q", place, name)
			}
			used[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Parameters)) {
		parameter := p.Parameters[name]
		switch {
		case name == "name":
			return errors.New(`a parameter cannot be called "name", which is the command's own`)
		case !parameterName.MatchString(name):
			return fmt.Errorf("parameter %q: the name must be a small letter, then small letters, digits or _", name)
		case !used[name]:
			return fmt.Errorf("parameter %q is not used in run", name)
		case parameter.Default != nil && strings.ContainsRune(*parameter.Default, 0):
			return fmt.Errorf("parameter %q: the default has a NUL in it", name)
		}
		if err := parameter.checkChoices(); err != nil {
			return fmt.Errorf("parameter %q: %w", name, err)
		}
		pattern, err := anchored(parameter.Pattern)
		if err != nil {
			return fmt.Errorf("parameter %q: %w", name, err)
		}
		p.patterns[name] = pattern
	}
	return nil
}

func (p Parameter) checkChoices() error {
	chosen := map[string]bool{}
	for _, choice := range p.Choices {
		switch {
		case strings.ContainsRune(choice, 0):
			return errors.New("a choice has a NUL in it")
		case chosen[choice]:
			return fmt.Errorf("the choice %q stands there twice", choice)
		}
		chosen[choice] = true
	}
	switch {
	case p.Choices != nil && len(p.Choices) == 0:
		return errors.New("there are no choices in its list")
	case p.Choices != nil && p.Pattern != "":
		return errors.New("it has both choices and a pattern")
	}
	return nil
}

// anchored compiles a pattern for whole values. It is compiled alone as well: one such as "a)|(b" is wrong, but
// would be right, and match anything, inside the brackets.
func anchored(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		pattern = DefaultPattern
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return whole, nil
}

// argv puts values in their places, or says in one sentence everything that is wrong with them.
func (p prepared) argv(values map[string]string) ([]string, error) {
	filled := map[string]string{}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(p.Parameters)) {
		parameter := p.Parameters[name]
		value, given := values[name]
		switch {
		case !given && parameter.Default == nil:
			faults = append(faults, fmt.Sprintf("the parameter %q is missing", name))
		case !given:
			filled[name] = *parameter.Default
		case !p.takes(name, value):
			faults = append(faults, fmt.Sprintf("the value of %q must %s", name, p.wants(name)))
		case tooMany(value):
			faults = append(faults, fmt.Sprintf("the value of %q has more than %d parts that could each name a file", name, mostPieces))
		default:
			filled[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, declared := p.Parameters[name]; !declared {
			faults = append(faults, fmt.Sprintf("it has no parameter %q", name))
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("the command %q cannot run: %s", p.Name, strings.Join(faults, "; "))
	}
	argv := make([]string, len(p.Run))
	for i, part := range p.Run {
		// One pass, so that a value with braces in it is not looked at again.
		argv[i] = placeholder.ReplaceAllStringFunc(part, func(place string) string { return filled[strings.Trim(place, "{}")] })
	}
	return argv, nil
}

// betweenWords are the characters that stand between words where a shell or another program reads a part of run.
const betweenWords = " \t\n\"'`;|&<>()"

// Wide are the parameters of a preset for which a pattern of the operator's own allows paths that go up from the folder in which
// the program runs, in order of their names; none where it runs in a box. They are found by trying some such paths.
func (p Preset) Wide() (names []string) {
	if p.Box {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Parameters)) {
		pattern, err := anchored(p.Parameters[name].Pattern)
		if err != nil || p.Parameters[name].Pattern == "" {
			continue
		}
		begin, _ := regexp.MustCompile(p.Parameters[name].Pattern).LiteralPrefix()
		ups := []string{"../a", "../../a", "../a/b", "/../a", "a/../b", "a/../../b", "../a1", "../A"}
		if slices.ContainsFunc(ups, func(up string) bool {
			return slices.ContainsFunc([]string{"", ".txt", ".md", ".sh", ".log", ".json", ".csv"}, func(end string) bool { return pattern.MatchString(begin + up + end) })
		}) {
			names = append(names, name)
		}
	}
	return names
}

// plain are programs that do nothing that a file tells them: what they read is only shown, counted or compared.
var plain = []string{
	"basename", "cal", "cat", "cksum", "cmp", "comm", "cut", "date", "df", "diff", "dirname", "du", "echo", "expr", "false", "fold", "free", "grep", "head", "hostname",
	"id", "join", "ls", "md5sum", "nl", "nproc", "od", "paste", "printf", "ps", "pwd", "readlink", "realpath", "seq", "sha256sum", "shasum", "sleep", "sort", "stat", "strings",
	"tac", "tail", "test", "tr", "tree", "true", "uname", "uniq", "uptime", "wc", "who", "whoami",
}

// Obeys reports whether the preset's program may do what files of the folder tell it in which it runs, as make, git and npm do, and
// reach what the account can. A program in a box reaches nothing, and of some it is known that they do not.
func (p Preset) Obeys() bool {
	if p.Box || len(p.Run) == 0 {
		return false
	}
	folder, name := path.Split(p.Run[0])
	return !slices.Contains([]string{"", "/bin/", "/usr/bin/"}, folder) || !slices.Contains(plain, name)
}

// texts are those in a part of a call's argv that may each name something, the part itself first.
func (p prepared) texts(i int, part string, values map[string]string) (texts []string) {
	seen := map[string]bool{}
	for _, text := range append([]string{part}, p.inside(p.Run[i], values)...) {
		found, _ := pieces(text) // of a value that is given they are all: see argv
		for _, piece := range found {
			if !seen[piece] {
				seen[piece] = true
				texts = append(texts, piece)
			}
		}
	}
	return texts
}

// stays says in one sentence that a call leads to some closed folders and files, from the one in which the program
// runs. What of them lies in that one, or below the folder that the operator wrote in front of a value, is no fault. Of
// what the operator wrote alone only what lies in the folder counts, since others may have put links there. A value for
// which the operator has no pattern leads nowhere else either.
func (p prepared) stays(argv []string, values map[string]string, dir string, closed []string) error {
	if p.Box || len(closed) == 0 {
		return nil
	}
	ground, err := openGround(dir)
	if err != nil {
		return errors.New("the workspace cannot be opened")
	}
	defer ground.close()
	for i, part := range p.Run {
		own, texts := []string{ground.dir}, p.texts(i, argv[i], values)
		if at := placeholder.FindStringIndex(part); at == nil {
			texts = slices.DeleteFunc(texts, func(text string) bool { _, local := ground.plain(text); return !local })
		} else if slash := strings.LastIndex(part[:at[0]], "/"); slash >= 0 {
			front := part[:slash+1]
			front = front[strings.LastIndexAny(front, betweenPaths)+1:]
			if _, local := ground.plain(front); !local { // else a link may stand in its place, which others have put there
				own = append(own, ground.resolve(front))
			}
		}
		walls, strict := ground.wall(own, closed), ground.wall(own, closed)
		strict.strict = true
		err := walls.holdAll(texts)
		if err == nil {
			err = strict.holdAll(p.bound(part, values))
		}
		if err != nil {
			return fmt.Errorf("the command %q cannot run: %w", p.Name, err)
		}
	}
	return nil
}

// bound are the texts of a part of run that may name nothing outside the folder: those of values that were given for parameters for
// which the operator has neither a pattern nor choices.
func (p prepared) bound(part string, values map[string]string) (texts []string) {
	front := ""
	for n, at := range placeholder.FindAllStringIndex(part, -1) {
		if n == 0 {
			front = part[:at[0]]
			front = front[strings.LastIndexAny(front, betweenPaths)+1:]
		}
		name := strings.Trim(part[at[0]:at[1]], "{}")
		value, given := values[name]
		if parameter := p.Parameters[name]; !given || parameter.Pattern != "" || parameter.Choices != nil {
			continue
		}
		// Anything may be a name, also "http:"; but what stands behind it is not meant from the top.
		found, _ := pieces(value)
		texts = append(texts, slices.DeleteFunc(found, filepath.IsAbs)...)
		bare := []string{ofWeb.ReplaceAllString(value, "")}
		if n == 0 { // else what stands in front is another value's
			bare = append(bare, front+bare[0])
		}
		for _, text := range bare {
			found, _ := pieces(text)
			texts = append(texts, found...)
		}
	}
	return texts
}

// inside are the texts within a filled part of run that may name something though the part as a whole does not: from each value
// on, or from within the word in front of it, to the value's end, the word's or the part's. So notes.md is found in -fnotes.md, in
// @notes.md and in "cat notes.md | wc".
func (p prepared) inside(part string, values map[string]string) (texts []string) {
	fill := func(place string) string {
		name := strings.Trim(place, "{}")
		if value, given := values[name]; given || p.Parameters[name].Default == nil {
			return value
		}
		return *p.Parameters[name].Default
	}
	end := 0
	for _, at := range placeholder.FindAllStringIndex(part, -1) {
		front := part[end:at[0]]
		front = front[strings.LastIndexAny(front, betweenWords)+1:]
		value, rest := fill(part[at[0]:at[1]]), placeholder.ReplaceAllStringFunc(part[at[1]:], fill)
		word := rest
		if end := strings.IndexAny(rest, betweenWords); end >= 0 {
			word = rest[:end]
		}
		for i := range len(front) + 1 {
			texts = append(texts, front[i:]+value, front[i:]+value+word, front[i:]+value+rest)
		}
		end = at[1]
	}
	return texts
}

// tooMany reports whether a value has so many parts that it cannot be told what they name.
func tooMany(value string) bool {
	_, all := pieces(value)
	return !all
}

// takes reports whether a parameter may have a value.
func (p prepared) takes(name, value string) bool {
	if choices := p.Parameters[name].Choices; choices != nil {
		return slices.Contains(choices, value)
	}
	if p.Parameters[name].Pattern == "" && leadsOut(value) {
		return false
	}
	return !strings.ContainsRune(value, 0) && p.patterns[name].MatchString(value)
}

// wants says what a parameter's value must do.
func (p prepared) wants(name string) string {
	switch parameter := p.Parameters[name]; {
	case parameter.Choices != nil:
		return "be one of " + listed(parameter.Choices)
	case parameter.Pattern != "":
		return "match " + parameter.Pattern
	}
	return "match " + DefaultPattern + " (one line, at most 200 characters, no dash in front, no .. and no path from the top)"
}

// listed writes choices so that each can be told from the next.
func listed(choices []string) string {
	shown := make([]string, len(choices))
	for i, choice := range choices {
		if shown[i] = choice; !plainChoice.MatchString(choice) {
			shown[i] = strconv.Quote(choice)
		}
	}
	return strings.Join(shown, ", ")
}
