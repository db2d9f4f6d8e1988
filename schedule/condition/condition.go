// Package condition builds the checks that say whether a heartbeat wakes.
//
// [New] turns a description into a [schedule.Condition]. Kinds: always is true at every tick; command runs a program
// (exit status 0 is true, 1 is false, everything else an error); http asks an address; file looks at one file or folder;
// expr computes with the operator's [Gauges] and the time; idle is true of a person who has been silent; all and any combine
// others. One in which idle stands is a [schedule.Personal]: it is about each person by themselves. A condition keeps nothing
// between two checks: what it must remember it is given back. One that was not written by the operator is confined: see [Env].
// A condition written in Go is any [schedule.Condition]; package conditiontest has the suite that every one passes.
package condition

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"nudge/schedule"
	"nudge/schedule/process"
)

// Env is where conditions look.
type Env struct {
	// Dir is the folder in which commands run and from which relative paths are meant: the data directory.
	Dir string
	// Confined is for conditions that were not written by the operator: files stay within Dir, also over symbolic links, a
	// command is one of Preset's, addresses are read through Public, and there are no gauges.
	Confined bool
	// Preset finds a command that the operator prepared and that only reads, by its name: its program, with values in the
	// places of its parameters, and how long that may take. Without it there are none.
	Preset func(name string, parameters map[string]string) (argv []string, limit time.Duration, err error)
	// Hold, if set, keeps others from changing what lies in Dir until leave is called. A command of Preset's is looked up once more
	// within it, since what its values name may have changed.
	Hold func(ctx context.Context) (leave func(), err error)
	// Public reads addresses for confined conditions. Without it they have none.
	Public Public
	// Zone is the IANA name of the zone whose clocks an expression reads; "" means UTC.
	Zone string
	// Gauges are those that expressions may name; nil for none.
	Gauges *Gauges
	// Silent tells since when one of the heartbeat's people has said nothing. Without it there are no idle conditions.
	Silent func(ctx context.Context, person string) (time.Time, error)
	// Get makes the requests of http conditions; a plain one when nil.
	Get http.RoundTripper
	// Run runs a program; process.Run when nil.
	Run func(ctx context.Context, spec process.Spec) (process.Outcome, error)
	// Now gives the wall clock's time; time.Now when nil.
	Now func() time.Time
}

// Public makes requests to the public internet, and to nothing else.
type Public interface {
	http.RoundTripper
	// Check says what is wrong with an address as far as that needs no network.
	Check(address string) error
}

// New builds the condition of a description. It refuses a description that is not valid and kinds that are not
// available, in an error that names the key. What it gives is for one look at the world, if it is a [schedule.Personal].
func New(spec schedule.Spec, env Env) (schedule.Condition, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if env.Run == nil {
		env.Run = process.Run
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.Get == nil {
		env.Get = plainRequests
	}
	if spec.Personal() {
		return newPersonal(spec, env)
	}
	return build(spec, env, spec.Level())
}

func build(spec schedule.Spec, env Env, level bool) (schedule.Condition, error) {
	switch spec.Kind {
	case schedule.KindAlways:
		return always{}, nil
	case "command":
		return newCommand(spec, env)
	case "http":
		return newWeb(spec, env)
	case "file":
		return newFile(spec, env)
	case "expr":
		return newExpression(spec, env)
	case "idle":
		return newIdle(spec, env)
	case "all", "any":
		return newCombined(spec, env, level)
	}
	return nil, fmt.Errorf("heartbeat.condition.kind: %s is not available in this version", spec.Kind)
}

// always is true at every tick.
type always struct{}

func (always) Check(ctx context.Context, _ string) (schedule.Finding, error) {
	if err := ctx.Err(); err != nil {
		return schedule.Finding{}, fmt.Errorf("check always: %w", err)
	}
	return schedule.Finding{True: true}, nil
}

// evidence makes a text valid UTF-8 of bounded size.
func evidence(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= schedule.MaxEvidence {
		return text
	}
	cut := schedule.MaxEvidence - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
