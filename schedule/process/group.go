//go:build linux || darwin || freebsd || netbsd || openbsd

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// graceCancelled is how long Run waits for the kernel to end a killed group once its context has ended.
	graceCancelled = 30 * time.Millisecond
	// graceEnded is how long Run waits for the rest of the output of a program that has ended. It passes in full
	// only if a process that left the group still holds the output open.
	graceEnded = time.Second
)

// child is a started program and the goroutines that attend to it.
type child struct {
	cmd    *exec.Cmd
	output *os.File // the reading end
	kept   *window
	exited chan struct{} // closed when the program has ended
	reaped chan struct{} // closed when its status is known as well
	reap   chan struct{} // closed when its group was killed, so that its id may be given up
	read   chan struct{} // closed when its output has ended
}

func run(ctx context.Context, spec Spec) (Outcome, error) {
	c, err := start(spec)
	if err != nil {
		return Outcome{}, err
	}
	defer c.output.Close()
	grace, cancelled := graceEnded, false
	select {
	case <-c.exited:
	case <-ctx.Done():
		grace, cancelled = graceCancelled, true
	}
	c.killGroup()
	known := c.settle(grace)
	outcome := c.outcome(known)
	if cancelled {
		return ended(ctx, outcome), nil
	}
	return outcome, nil
}

// start starts the program with a pipe of its own as output, which unlike that of package exec can be given up
// while somebody still holds its other end.
func start(spec Spec) (*child, error) {
	reading, writing, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe: %w", err)
	}
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	cmd.Dir = spec.Dir
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = writing, writing
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	writing.Close()
	if err != nil {
		reading.Close()
		return nil, err
	}
	c := &child{
		cmd: cmd, output: reading, kept: newWindow(spec.Limit), exited: make(chan struct{}),
		reaped: make(chan struct{}), reap: make(chan struct{}), read: make(chan struct{}),
	}
	go c.attend()
	go c.listen()
	return c, nil
}

// attend waits for the program and reaps it once its group was killed: until then nobody else can get its id. Where
// the system cannot tell of an end without reaping, the group is killed a moment after.
func (c *child) attend() {
	unreaped := awaitExit(c.cmd.Process.Pid)
	if !unreaped {
		c.wait()
	}
	close(c.exited)
	<-c.reap
	if unreaped {
		c.wait()
	}
	close(c.reaped)
}

// wait reaps the program. Its status is read from ProcessState, so an exit other than 0 is no error here.
func (c *child) wait() { _ = c.cmd.Wait() }

func (c *child) listen() {
	// Any error means that there is no more output, whether it ended or was given up.
	_, _ = io.Copy(c.kept, c.output)
	close(c.read)
}

// killGroup kills the program and all that it started. That nothing of the group is left is no error.
func (c *child) killGroup() {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	close(c.reap)
}

// settle waits until the program is reaped and its output has ended, but no longer than the grace, and reports
// whether its status is known. What is still open then ends by itself: listen when the output is closed, attend
// when the kernel lets the process go.
func (c *child) settle(grace time.Duration) (known bool) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.reaped:
	case <-timer.C:
		return false
	}
	select {
	case <-c.read:
	case <-timer.C:
	}
	return true
}

func (c *child) outcome(known bool) Outcome {
	outcome := Outcome{Exit: -1}
	outcome.Output, outcome.LeftOut = c.kept.contents()
	if !known {
		return outcome
	}
	outcome.Exit = c.cmd.ProcessState.ExitCode()
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		outcome.Signal = status.Signal().String()
	}
	return outcome
}
