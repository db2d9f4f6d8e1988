// Package process runs one outside program with a clean environment and bounded output, and leaves nothing of it
// behind.
//
// Conditions of heartbeats and the commands that an operator prepared run through [Run], which keeps what people read;
// hooks run through [Ask], which keeps an answer that a program reads; [Start] is for programs that go on. There is no
// shell: a program gets exactly the arguments listed. It runs in a process group of its own, and the whole group is
// killed when the program ends or its context does.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// DefaultLimit is how many bytes of output are kept when a [Spec] does not say: 128 KiB, half of it from the start
// and half from the end.
const DefaultLimit = 128 << 10

// Spec says what to run.
type Spec struct {
	Argv  []string // the program, found in PATH, and its arguments; at least one
	Path  string   // the program's file, where that is not what Argv begins with
	Bare  bool     // its environment is empty
	Env   []string // NAME=value, added to its environment
	Dir   string   // the working directory; the current one when empty
	Limit int      // bytes of output to keep; DefaultLimit when 0 or less
	Input []byte   // its standard input, which need not be read; empty when nil
}

// Outcome says how a program ended.
type Outcome struct {
	Exit   int    // exit status; -1 when a signal or the context ended it
	Signal string // what ended it, in words such as "killed"; "" when it ended by itself
	// Output is what it wrote, standard output and error in the order of writing; after Ask standard output alone.
	// Where more than the limit came, a line in the middle says how many bytes are missing. It need not be text.
	Output    []byte
	LeftOut   int64  // bytes missing from Output
	Errors    []byte // after Ask: what it wrote to standard error, bounded as Output is
	Partial   bool   // it ended with 0, but a process that left its group holds the input or an output open
	TimedOut  bool   // the context's deadline ended it
	Cancelled bool   // the context was cancelled otherwise
}

// ErrUnsupported is wrapped by the errors of Run and Ask on systems without process groups.
var ErrUnsupported = errors.New("programs cannot be run on this system")

// Run runs a program and waits for it. Its environment is PATH, HOME, LANG and TZ of this process and nothing else, or
// nothing at all.
//
// When ctx ends, the program and everything in its group are killed and Run returns within milliseconds, with an
// outcome that says so and no error. What a program leaves running in its group when it ends is killed as well; for
// what left the group and holds the input or an output open Run waits up to a second. An error means that the program
// was never started. Run may be called concurrently.
func Run(ctx context.Context, spec Spec) (Outcome, error) {
	joined := newWindow(spec.Limit)
	return checked(ctx, spec, joined, joined)
}

// Ask is [Run] for a program whose standard output is an answer: it is kept apart from standard error, and either whole
// or good for nothing. A program that writes more of it than the limit is killed; LeftOut is more than 0 then and only
// then.
func Ask(ctx context.Context, spec Spec) (Outcome, error) {
	output, complaint := newWindow(spec.Limit), newWindow(spec.Limit)
	output.over = make(chan struct{})
	outcome, err := checked(ctx, spec, output, complaint)
	outcome.Errors, _ = complaint.contents()
	return outcome, err
}

func checked(ctx context.Context, spec Spec, output, complaint *window) (Outcome, error) {
	if len(spec.Argv) == 0 {
		return Outcome{}, errors.New("start a program: none is named")
	}
	if ctx.Err() != nil {
		return ended(ctx, Outcome{}), nil
	}
	outcome, err := run(ctx, spec, output, complaint)
	if err != nil {
		return Outcome{}, fmt.Errorf("start %q: %w", spec.Argv[0], err)
	}
	outcome.Output, outcome.LeftOut = output.contents()
	return outcome, nil
}

// Talk is a program that goes on running and is talked to over its input and its output. One goroutine may read, one write,
// and any close.
type Talk struct {
	input    io.WriteCloser
	output   io.Reader
	closing  sync.Once
	finish   func()
	complain *window
}

// Start starts a program to talk to; Spec.Input and Spec.Limit have no meaning for it. Whoever calls it closes the Talk.
func Start(spec Spec) (*Talk, error) {
	if len(spec.Argv) == 0 {
		return nil, errors.New("start a program: none is named")
	}
	t, err := talk(spec)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", spec.Argv[0], err)
	}
	return t, nil
}

// Read reads what the program writes; io.EOF when it has ended.
func (t *Talk) Read(p []byte) (int, error) { return t.output.Read(p) }

// Write writes to the program's input.
func (t *Talk) Write(p []byte) (int, error) { return t.input.Write(p) }

// Close ends the input, gives the program a moment to end by itself, and kills what is left of its group. It may be called
// more than once.
func (t *Talk) Close() error {
	t.closing.Do(t.finish)
	return nil
}

// Complaints is what the program wrote to standard error, bounded as Output is.
func (t *Talk) Complaints() string {
	said, _ := t.complain.contents()
	return string(said)
}

// ended marks an outcome as that of a program that its context ended.
func ended(ctx context.Context, outcome Outcome) Outcome {
	outcome.Exit = -1
	outcome.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	outcome.Cancelled = !outcome.TimedOut
	return outcome
}

// environment is all that a program learns of this process: no key or token is among it.
func environment() []string {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
