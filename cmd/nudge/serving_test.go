package main

import (
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// endTime is how long the program may take to end after SIGINT, whatever runs.
const endTime = 10 * time.Second

// serving is `nudge serve` as a process of its own, and as the next one after that has ended.
type serving struct {
	cmd    *exec.Cmd     // nil while none runs
	exited chan struct{} // closed when cmd has ended

	mu   sync.Mutex
	said strings.Builder // what the processes printed
}

// serve starts a process.
func (s *serving) serve(t *testing.T, p place, env ...string) {
	t.Helper()
	s.cmd = p.command("serve")
	s.cmd.Env = append(s.cmd.Env, env...)
	out := &lockedWriter{mu: &s.mu, w: &s.said}
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, exited := s.cmd, make(chan struct{})
	s.exited = exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is in the process's state
	}()
}

// printed is what was printed so far.
func (s *serving) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

// signal ends the process, and waits for that. The error is that of one that has ended before.
func (s *serving) signal(by syscall.Signal) error {
	err := s.cmd.Process.Signal(by)
	<-s.exited
	s.cmd = nil
	return err
}

// interrupt sends SIGINT, which must end the process well and in time.
func (s *serving) interrupt(t *testing.T) {
	t.Helper()
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-s.exited:
	case <-deadline.C:
		t.Fatal("the program did not end after SIGINT")
	}
	if took, status := time.Since(began), s.cmd.ProcessState.ExitCode(); took > endTime || status != 0 {
		t.Errorf("the program ended after %s with %d", took, status)
	}
	s.cmd = nil
}
