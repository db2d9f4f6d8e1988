// Package condition builds the checks that say whether a heartbeat wakes.
//
// [New] turns a description into a [schedule.Condition]. Kinds: always is true at every tick; command runs a program
// (exit status 0 is true, 1 is false, everything else an error); http asks an address; file looks at one file or folder;
// expr computes with the operator's [Gauges] and the time; idle is true when people have been silent; all and any combine
// others. A condition keeps nothing between two checks: what it must remember it is given back. A condition written in Go
// is any [schedule.Condition]; package conditiontest has the suite that every one passes.
package condition

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
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
	// Confined keeps files within Dir, also over symbolic links, and refuses commands, addresses and gauges. It is for
	// conditions that were not written by the operator.
	Confined bool
	// Zone is the IANA name of the zone whose clocks an expression reads; "" means UTC.
	Zone string
	// Gauges are those that expressions may name; nil for none.
	Gauges *Gauges
	// Silent tells since when none of the heartbeat's people has said anything. Without it there are no idle conditions.
	Silent func(ctx context.Context) (time.Time, error)
	// Get makes the requests of http conditions; a plain one when nil.
	Get http.RoundTripper
	// Run runs a program; process.Run when nil.
	Run func(ctx context.Context, spec process.Spec) (process.Outcome, error)
	// Now gives the wall clock's time; time.Now when nil.
	Now func() time.Time
}

// New builds the condition of a description. It refuses a description that is not valid and kinds that are not
// available, in an error that names the key.
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
	return build(spec, env, spec.Level())
}

func build(spec schedule.Spec, env Env, level bool) (schedule.Condition, error) {
	switch spec.Kind {
	case schedule.KindAlways:
		return always{}, nil
	case "command":
		if env.Confined {
			return nil, fmt.Errorf("heartbeat.condition.run: a command can be set in the config only")
		}
		return command{argv: spec.Run, dir: env.Dir, run: env.Run}, nil
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

// command is true when a program ends with 0 and false when it ends with 1.
type command struct {
	argv []string
	dir  string
	run  func(ctx context.Context, spec process.Spec) (process.Outcome, error)
}

func (c command) Check(ctx context.Context, _ string) (schedule.Finding, error) {
	outcome, err := c.run(ctx, process.Spec{Argv: c.argv, Dir: c.dir, Limit: schedule.MaxEvidence})
	if err != nil {
		return schedule.Finding{}, fmt.Errorf("check a command: %w", err)
	}
	name := filepath.Base(c.argv[0])
	switch {
	case outcome.TimedOut:
		return schedule.Finding{}, fmt.Errorf("check command %s: it took too long and was killed", name)
	case outcome.Cancelled:
		return schedule.Finding{}, fmt.Errorf("check command %s: it was stopped: %w", name, context.Canceled)
	case outcome.Signal != "":
		return schedule.Finding{}, fmt.Errorf("check command %s: a signal ended it: %s", name, outcome.Signal)
	case outcome.Exit != 0 && outcome.Exit != 1:
		return schedule.Finding{}, fmt.Errorf("check command %s: exit status %d is neither 0 (true) nor 1 (false)", name, outcome.Exit)
	}
	return schedule.Finding{True: outcome.Exit == 0, Evidence: evidence(string(outcome.Output))}, nil
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
