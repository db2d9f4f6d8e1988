package command

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nudge/agent"
	"nudge/agent/tool/workspace"
	"nudge/memory"
	"nudge/schedule/process"
)

// toolName is the tool's name, and the one under which the config can set another policy.
const toolName = "run_command"

const (
	slack    = 5 * time.Second // how much later the agent's own time-out comes, so that a command's is reported with its output
	patience = time.Minute     // how long a call waits at most for others in its workspace
)

// Place is where programs run, and whom its files are of.
type Place struct {
	// Dir gives the folder in which programs run for a turn's person.
	Dir func(agent.PersonID) (string, error)
	// Outside, if set, reports whether text of strangers lies in that folder. A program may come upon it, and do what it says.
	Outside func(agent.PersonID) bool
	// Copied, if set, is asked before a program runs that may change something. An error keeps that from running, and is for the
	// model. What it gives, unless that is nil, is called once the program has run, with the paths that its arguments
	// name, as far as they lie in that folder, and gives what is to be kept of that with the result, or nil.
	Copied func(ctx context.Context, in agent.Invocation) (after func(names []string) func(memory.Tx) error, err error)
	// Hold, if set, waits until a program may look into that folder, or may change it alone, and gives what ends that. Without it
	// nothing keeps others from changing what a call was checked for before its program reads it.
	Hold func(ctx context.Context, person agent.PersonID, alone bool) (leave func(), err error)
	// Closed are folders and files, such as Nudge's data, to which no call leads, but for what of them is the person's own: such a
	// call is refused, unless its program runs in a box.
	Closed []string
}

// runner is the presets, and where their programs run.
type runner struct {
	Place
	presets map[string]prepared
}

// New makes the tool run_command for the presets. A preset that cannot be right is an error that names it, and so are two of one
// name, and none at all.
func New(presets []Preset, at Place) (agent.Tool, error) {
	if len(presets) == 0 {
		return agent.Tool{}, errors.New("make the tool run_command: there are no commands")
	}
	r := runner{at, map[string]prepared{}}
	var longest time.Duration
	for _, preset := range presets {
		p, err := prepare(preset)
		if err != nil {
			return agent.Tool{}, err
		}
		if _, twice := r.presets[p.Name]; twice {
			return agent.Tool{}, fmt.Errorf("command %q: there are two of that name", p.Name)
		}
		r.presets[p.Name] = p
		longest = max(longest, p.Timeout)
	}
	schema, err := r.schema()
	if err != nil {
		return agent.Tool{}, err
	}
	return agent.Tool{
		Spec: agent.Spec{
			Name:        toolName,
			Description: r.description(),
			Schema:      schema,
			Effect:      agent.Effectful,
			Labels:      agent.Labels{Private: true, Outside: true, WayOut: r.sends()},
			Policy:      agent.PolicyAsk,
			Timeout:     patience + longest + slack,
		},
		Run:      r.run,
		Judge:    r.judge,
		EffectOf: r.effect,
		LabelsOf: r.labels,
		Card:     r.card,
		Digest:   r.digest,
		Open:     r.open,
		Once:     func(in agent.Invocation) bool { return r.large(in) != "" },
	}, nil
}

// names lists the presets in a fixed order, so that the model reads the same text each time.
func (r runner) names() []string { return slices.Sorted(maps.Keys(r.presets)) }

func (r runner) description() string {
	var out strings.Builder
	out.WriteString("Runs one of these commands, in the workspace and without a shell:")
	for _, name := range r.names() {
		p := r.presets[name]
		fmt.Fprintf(&out, "\n- %s: %s", name, quoted(p.Run))
		for _, parameter := range slices.Sorted(maps.Keys(p.Parameters)) {
			fmt.Fprintf(&out, "; %s", describe(parameter, p.Parameters[parameter]))
		}
	}
	return out.String()
}

func describe(name string, parameter Parameter) string {
	text := name
	if parameter.Description != "" {
		text += " is " + oneLine(parameter.Description)
	}
	if parameter.Choices != nil {
		text += ", one of " + listed(parameter.Choices)
	}
	if parameter.Default != nil {
		return fmt.Sprintf("%s (default %q)", text, *parameter.Default)
	}
	return text + " (required)"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// quoted writes arguments so that each can be told from the next.
func quoted(argv []string) string {
	shown := make([]string, len(argv))
	for i, part := range argv {
		shown[i] = part
		if part == "" || strings.ContainsAny(part, " \t\n\"'\\") {
			shown[i] = strconv.Quote(part)
		}
	}
	return strings.Join(shown, " ")
}

// schema has the parameters of all presets side by side, each optional; argv checks them for the one that is named.
func (r runner) schema() (json.RawMessage, error) {
	type property struct {
		Type        string   `json:"type"`
		Enum        []string `json:"enum,omitempty"`
		Description string   `json:"description"`
	}
	properties := map[string]property{"name": {Type: "string", Enum: r.names(), Description: "The command to run."}}
	for _, name := range r.names() {
		for parameter, declared := range r.presets[name].Parameters {
			shared := properties[parameter]
			shared.Type = "string"
			if shared.Description != "" {
				shared.Description += " "
			}
			shared.Description += fmt.Sprintf("For %s: %s.", name, strings.TrimSuffix(describe(parameter, declared), "."))
			properties[parameter] = shared
		}
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": []string{"name"}, "additionalProperties": false,
	})
	if err != nil {
		return nil, fmt.Errorf("write the schema of run_command: %w", err)
	}
	return schema, nil
}

// read finds the preset that a call names, and the arguments of its program.
func (r runner) read(in agent.Invocation) (prepared, []string, error) {
	var values map[string]string
	if err := in.Decode(&values); err != nil {
		return prepared{}, nil, err
	}
	p, known := r.presets[values["name"]]
	if !known {
		return prepared{}, nil, fmt.Errorf("there is no command %q; there are %s", values["name"], strings.Join(r.names(), ", "))
	}
	delete(values, "name")
	argv, err := p.argv(values)
	return p, argv, err
}

func (r runner) judge(in agent.Invocation) (agent.Policy, string, error) {
	p, argv, err := r.read(in)
	if err != nil {
		return "", "", err
	}
	if dir, err := r.Dir(in.Person.ID); err == nil { // without one it does not run
		if err := r.stays(in, p, argv, dir); err != nil {
			return "", "", err
		}
	}
	return p.Policy, toolName, nil
}

// stays says why a call's values lead where they may not.
func (r runner) stays(in agent.Invocation, p prepared, argv []string, dir string) error {
	var values map[string]string
	if err := in.Decode(&values); err != nil {
		return err
	}
	return p.stays(argv, values, dir, r.Closed)
}

// effect is the strictest for a call that will be refused.
func (r runner) effect(in agent.Invocation) agent.Effect {
	p, _, err := r.read(in)
	if err != nil {
		return agent.Effectful
	}
	return p.Effect
}

// sends reports whether a preset may send something out.
func (r runner) sends() bool {
	return slices.ContainsFunc(r.names(), func(name string) bool { return r.presets[name].Effect != agent.Read || r.presets[name].Obeys() })
}

// labels of a call: a program can read what is in the workspace. One that changes something may send it anywhere, and so may one
// that only reads, and does what strangers have written there.
func (r runner) labels(in agent.Invocation) agent.Labels {
	of := agent.Labels{Private: true, WayOut: true, Outside: r.Outside != nil && r.Outside(in.Person.ID)}
	if p, _, err := r.read(in); err == nil {
		of.Obeys = of.Outside && p.Obeys()
		of.WayOut = p.Effect != agent.Read || of.Obeys
	}
	return of
}

// digest changes with the preset and with every file of the workspace that its arguments name, so that an approval given
// before the config or a script was changed is not good after. What cannot be read gets a digest of its own each time.
func (r runner) digest(in agent.Invocation) string {
	p, argv, err := r.read(in)
	if err != nil {
		return "none"
	}
	seen, err := r.look(in, p, argv)
	if err != nil {
		return unknown()
	}
	return fmt.Sprintf("%s sha256:%x", p.digest, sha256.Sum256([]byte(strings.Join(slices.Concat(seen.prints...), " "))))
}

// sight is what the parts of a call's argv name in its person's workspace.
type sight struct {
	prints [][]string // by part, what lies there
	names  []string   // where, within the workspace
	large  string     // a folder of which not all could be looked at; "" for none
}

// look finds what each part of a call's argv names in its person's workspace, by whatever path. What a text within a part names
// is told only where there is something: mostly there is not.
func (r runner) look(in agent.Invocation, p prepared, argv []string) (seen sight, err error) {
	var values map[string]string
	if err := in.Decode(&values); err != nil {
		return sight{}, err
	}
	dir, err := r.Dir(in.Person.ID)
	if err != nil {
		return sight{}, err
	}
	ground, err := openGround(dir)
	if err != nil {
		return sight{}, err
	}
	defer ground.close()
	named := map[string]bool{}
	seen.prints = make([][]string, len(argv))
	for i, part := range argv {
		for j, text := range p.texts(i, part, values) {
			print := ground.print(text)
			for _, name := range ground.named(text) {
				named[name] = true
			}
			if j == 0 { // the part as a whole
				seen.prints[i] = append(seen.prints[i], print)
			} else if print != workspace.Absent {
				seen.prints[i] = append(seen.prints[i], text+":"+print)
			}
		}
	}
	seen.names, seen.large = slices.Sorted(maps.Keys(named)), ground.large
	return seen, nil
}

// large is a folder that a call names and of which not all could be looked at; "" for none.
func (r runner) large(in agent.Invocation) string {
	p, argv, err := r.read(in)
	if err != nil {
		return ""
	}
	seen, _ := r.look(in, p, argv)
	return seen.large
}

// card says what is to be known of a call besides its arguments.
func (r runner) card(in agent.Invocation) string {
	if large := r.large(in); large != "" {
		return fmt.Sprintf("More lies in the folder %s of the workspace, or behind links in it, than I can look at, so this can be approved once and not always.", strconv.Quote(large))
	}
	return ""
}

// maxOutput is how many bytes of what a command writes are kept, which is as much as the agent saves of one result with
// the line before it. The model reads head and tail and may page through the rest.
const maxOutput = agent.MaxSaved - 1<<10

func (r runner) run(ctx context.Context, in agent.Invocation) (agent.Result, error) {
	p, argv, err := r.read(in)
	if err != nil {
		return agent.Result{}, err
	}
	dir, err := r.Dir(in.Person.ID)
	if err != nil {
		return agent.Result{}, errors.New("the workspace cannot be opened") // the reason has a path in it
	}
	leave, err := r.hold(ctx, in, p)
	if err != nil {
		return agent.Result{}, err
	}
	defer leave()
	if err := r.stays(in, p, argv, dir); err != nil {
		return agent.Result{}, err
	}
	boxless := argv
	if p.Box {
		if argv, err = boxed(argv, dir); err != nil {
			return agent.Result{}, fmt.Errorf("the command %q cannot run: %w", p.Name, err)
		}
	}
	keep, err := r.leaves(ctx, in, p, boxless)
	if err != nil {
		return agent.Result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	outcome, err := process.Run(limited, process.Spec{Argv: argv, Dir: dir, Limit: maxOutput, Env: gitEnvironment})
	if err != nil {
		if err = notStarted(p, err); keep(false) == nil {
			return agent.Result{}, err
		}
		// With an error nothing would be kept: what was noted before is taken back.
		return agent.Result{Text: err.Error(), Failed: true, Commit: keep(false)}, nil
	}
	return agent.Result{Text: report(p, outcome, ctx.Err() != nil), Failed: outcome.Exit != 0, Commit: keep(true)}, nil
}

// leaves gives what keeps, with the result, what a program has left of strangers' text once it ran, if it did.
func (r runner) leaves(ctx context.Context, in agent.Invocation, p prepared, argv []string) (keep func(ran bool) func(memory.Tx) error, err error) {
	nothing := func(bool) func(memory.Tx) error { return nil }
	if r.Copied == nil || p.Effect == agent.Read {
		return nothing, nil
	}
	seen, err := r.look(in, p, argv)
	if err != nil {
		return nil, errors.New("the workspace cannot be opened")
	}
	after, err := r.Copied(ctx, in)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the command %q cannot run: %w", p.Name, err)
	case after == nil:
		return nothing, nil
	}
	return func(ran bool) func(memory.Tx) error {
		if !ran {
			return after(nil)
		}
		return after(seen.names)
	}, nil
}

// hold waits until nothing else changes what a call was checked for, and checks that it is still the one that may run.
func (r runner) hold(ctx context.Context, in agent.Invocation, p prepared) (leave func(), err error) {
	leave = func() {}
	if r.Hold != nil {
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if leave, err = r.Hold(waiting, in.Person.ID, p.Effect != agent.Read); err != nil {
			return nil, agent.NotRun(fmt.Errorf("the command %q did not run: %w", p.Name, err))
		}
	}
	if err := in.Stands(); err != nil {
		leave()
		return nil, agent.NotRun(err)
	}
	return leave, nil
}

// gitEnvironment keeps git from taking a folder for a repository that has its parts without being named .git, since any file may be
// written there: https://git-scm.com/docs/git-config#Documentation/git-config.txt-safebareRepository
var gitEnvironment = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.bareRepository", "GIT_CONFIG_VALUE_0=explicit"}

// notStarted says why a program did not start, without the machine's paths.
func notStarted(p prepared, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("the command %q cannot run: its program is not installed here", p.Name)
	case errors.Is(err, process.ErrUnsupported):
		return fmt.Errorf("the command %q cannot run: %w", p.Name, process.ErrUnsupported)
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("the command %q could not be started: %w", p.Name, number)
	}
	return fmt.Errorf("the command %q could not be started", p.Name)
}

// report says how a command ended, and then what it wrote. turnEnded says that the time that was up is the turn's.
func report(p prepared, outcome process.Outcome, turnEnded bool) string {
	var ended string
	switch {
	case outcome.TimedOut && turnEnded:
		ended = fmt.Sprintf("The command %q was killed because there was no time left for it.", p.Name)
	case outcome.TimedOut:
		ended = fmt.Sprintf("The command %q was killed because its time was up (it may take %v).", p.Name, p.Timeout)
	case outcome.Cancelled:
		ended = fmt.Sprintf("The command %q was killed because it was cancelled.", p.Name)
	case outcome.Signal != "":
		ended = fmt.Sprintf("The command %q was ended by a signal: %s.", p.Name, outcome.Signal)
	default:
		ended = fmt.Sprintf("The command %q ended with exit status %d.", p.Name, outcome.Exit)
	}
	if len(outcome.Output) == 0 {
		return ended + " It wrote nothing."
	}
	return ended + " It wrote:\n" + string(outcome.Output)
}
