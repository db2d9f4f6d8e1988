//go:build linux || darwin || freebsd || netbsd || openbsd

package process

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

const (
	// graceKilled is how long run waits for the kernel to end a killed group once its context has ended.
	graceKilled = 30 * time.Millisecond
	// graceEnded is how long run waits for the rest of the output of a program that has ended. It passes in full
	// only if a process that left the group still holds the input or an output open.
	graceEnded = time.Second
)

// child is a started program and the goroutine that attends to it.
type child struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the program has ended
	reap   chan struct{} // closed when its group was killed, so that its id may be given up
	reaped chan struct{} // closed when err is known and nothing is written any more
	err    error
}

func run(ctx context.Context, spec Spec, output, complaint *window) (Outcome, error) {
	c, err := start(spec, output, complaint)
	if err != nil {
		return Outcome{}, err
	}
	cancelled := false
	select {
	case <-c.exited:
	case <-output.over:
	case <-ctx.Done():
		cancelled = true
	}
	c.killGroup()
	var outcome Outcome
	settled := c.settle(ctx)
	if settled {
		outcome = c.outcome()
	}
	if cancelled || !settled {
		return ended(ctx, outcome), nil
	}
	return outcome, nil
}

// graceClosed is how long a program may take to end by itself once its input has ended.
const graceClosed = 500 * time.Millisecond

func talk(spec Spec) (*Talk, error) {
	cmd := command(spec)
	t := &Talk{complain: newWindow(0)}
	cmd.Stderr = t.complain
	var err error
	if t.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if t.output, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	c, err := begin(cmd)
	if err != nil {
		return nil, err
	}
	t.finish = func() {
		_ = t.input.Close() // it may have ended
		timer := time.NewTimer(graceClosed)
		defer timer.Stop()
		select {
		case <-c.exited:
		case <-timer.C:
		}
		c.killGroup()
		<-c.reaped
	}
	return t, nil
}

// command is a program that is ready to be started, in a group of its own.
func command(spec Spec) *exec.Cmd {
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	if spec.Path != "" {
		cmd = exec.Command(spec.Path, spec.Argv[1:]...)
		cmd.Args[0] = spec.Argv[0]
	}
	cmd.Dir = spec.Dir
	if cmd.Env = environment(); spec.Bare {
		cmd.Env = []string{}
	}
	cmd.Env = append(cmd.Env, spec.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = graceEnded
	return cmd
}

func start(spec Spec, output, complaint *window) (*child, error) {
	cmd := command(spec)
	if spec.Input != nil {
		cmd.Stdin = bytes.NewReader(spec.Input)
	}
	cmd.Stdout, cmd.Stderr = output, complaint // one pipe, which keeps the order, if they are one
	return begin(cmd)
}

// begin starts a program and attends to it.
func begin(cmd *exec.Cmd) (*child, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, exited: make(chan struct{}), reap: make(chan struct{}), reaped: make(chan struct{})}
	go c.attend()
	return c, nil
}

// attend waits for the program and reaps it once its group was killed: until then nobody else can get its id. Where
// the system cannot tell of an end without reaping, the group is killed after that, and after the outputs have ended
// or the grace has.
func (c *child) attend() {
	unreaped := awaitExit(c.cmd.Process.Pid)
	if !unreaped {
		c.err = c.cmd.Wait()
	}
	close(c.exited)
	<-c.reap
	if unreaped {
		c.err = c.cmd.Wait()
	}
	close(c.reaped)
}

// killGroup kills the program and all that it started. That nothing of the group is left is no error.
func (c *child) killGroup() {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	close(c.reap)
}

// settle waits until the program is reaped and nothing is written any more, or until the context has ended and the
// grace is over, and reports whether err is known. What is still open then ends by itself, in attend.
func (c *child) settle(ctx context.Context) (known bool) {
	select {
	case <-c.reaped:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(graceKilled)
	defer timer.Stop()
	select {
	case <-c.reaped:
		return true
	case <-timer.C:
		return false
	}
}

func (c *child) outcome() Outcome {
	// An exit status other than 0 is told as that. Any other error means that something was not copied whole.
	_, exit := errors.AsType[*exec.ExitError](c.err)
	outcome := Outcome{Exit: c.cmd.ProcessState.ExitCode(), Partial: c.err != nil && !exit}
	if c.cmd.ProcessState == nil { // somebody else reaped it
		return outcome
	}
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		outcome.Signal = status.Signal().String()
	}
	return outcome
}
