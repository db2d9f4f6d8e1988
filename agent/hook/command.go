// Package hook lets the operator's programs be hooks: checks that are asked at a point of every step.
//
// [Command] makes an [agent.Hook] of a program. The program reads one [agent.HookQuestion] as JSON from its standard
// input and prints one [agent.Ruling] as JSON, or nothing, which lets everything be. Whatever else happens is an error:
// an exit status other than 0, a field that is not known, more output than a ruling needs, no end in time. The agent
// takes an error for a refusal, so a hook that is broken holds things up and never lets one through.
//
// A hook in Go is an [agent.Hook] as it stands.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nudge/agent"
	"nudge/schedule/process"
)

// How long a hook's program may take.
const (
	DefaultTimeout = 5 * time.Second
	MaxTimeout     = time.Minute // every step waits for its hooks
)

// MaxOutput is how many bytes a hook's program may print: 1 MiB.
const MaxOutput = 1 << 20

// Command is a hook that asks a program. The name is for people and the log. run is the program, found in PATH or
// relative to dir if it has a slash in it, and its arguments, which no shell sees. It runs in dir with nothing but PATH,
// HOME, LANG and TZ in its environment. timeout is [DefaultTimeout] when 0 or less, and never more than [MaxTimeout].
//
// For each question a program of its own is started, in a process group that is killed when the program ends, its time
// is up or the context of Rule ends; Rule returns within milliseconds of that. If a process that left the group holds
// the input or an output open, Rule waits for it up to a second and fails. What the program leaves unread is no error.
//
// An error of Rule is one line with the name in it and, where there is any, the end of the program's error output; it
// wraps the error of a context that ended. Rule may be called concurrently.
func Command(name string, at agent.HookPoint, run []string, dir string, timeout time.Duration) agent.Hook {
	return agent.Hook{Name: name, At: at, Rule: newCommand(name, at, run, dir, timeout).rule}
}

type command struct {
	name    string
	at      agent.HookPoint
	run     []string
	dir     string
	timeout time.Duration
	limit   func(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc)
}

func newCommand(name string, at agent.HookPoint, run []string, dir string, timeout time.Duration) command {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return command{name: name, at: at, run: slices.Clone(run), dir: dir, timeout: min(timeout, MaxTimeout), limit: limit}
}

func limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, errTime)
}

func (c command) rule(ctx context.Context, asked agent.HookQuestion) (agent.Ruling, error) {
	ruling, err := c.ask(ctx, asked)
	if err != nil {
		return agent.Ruling{}, fmt.Errorf("ask %s: %w", c.name, err)
	}
	return ruling, nil
}

func (c command) ask(ctx context.Context, asked agent.HookQuestion) (agent.Ruling, error) {
	question, err := encode(asked)
	if err != nil {
		return agent.Ruling{}, fmt.Errorf("write the question: %w", err)
	}
	limited, stop := c.limit(ctx, c.timeout)
	defer stop()
	outcome, err := process.Ask(limited, process.Spec{Argv: c.run, Dir: c.dir, Limit: MaxOutput, Input: question})
	if err != nil {
		return agent.Ruling{}, err
	}
	if err := ending(limited, outcome); err != nil {
		return agent.Ruling{}, fmt.Errorf("%w%s", err, complaint(outcome.Errors))
	}
	ruling, err := decode(outcome.Output)
	if err != nil {
		return agent.Ruling{}, err
	}
	return ruling, ruling.Fits(c.at)
}

// encode writes a question on one line, so that a shell can read it, and without escaping <, > and &, so that arguments
// keep their bytes.
func encode(asked agent.HookQuestion) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(asked)
	return line.Bytes(), err
}
