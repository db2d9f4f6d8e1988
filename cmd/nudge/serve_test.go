package main

import (
	"bufio"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// served is `nudge serve` running as a process of its own.
type served struct {
	cmd    *exec.Cmd
	errs   *strings.Builder // to be read when it has ended
	origin string           // of the console
}

var opening = regexp.MustCompile(`^Nudge is ready\. Open (http://127\.0\.0\.1:[1-9][0-9]*)/\?token=\S+$`)

// serve starts it, and returns when it has printed the address.
func (p place) serve() served {
	p.t.Helper()
	s := served{cmd: p.command("serve"), errs: &strings.Builder{}}
	s.cmd.Stderr = s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	lines := make(chan string, 1)
	go func() {
		first, _ := bufio.NewReader(out).ReadString('\n')
		lines <- strings.TrimSpace(first)
	}()
	select {
	case line := <-lines:
		found := opening.FindStringSubmatch(line)
		if found == nil {
			p.t.Fatalf("serve printed %q", line)
		}
		s.origin = found[1]
	case <-time.After(patience):
		p.t.Fatal("serve printed nothing")
	}
	return s
}

// end sends a signal, and returns the exit status and what was written to standard error.
func (s served) end(t *testing.T, signal syscall.Signal) (status int, errs string) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.cmd.Wait() // the status is looked at below
	}()
	select {
	case <-ended:
		return s.cmd.ProcessState.ExitCode(), s.errs.String()
	case <-time.After(patience):
		t.Fatalf("%v did not end it", signal)
		return 0, ""
	}
}

func TestServePrintsItsAddressAndEndsWithASignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := newPlace(t, nil, "[web]\nlisten = \"127.0.0.1:0\"\n")
		s := p.serve()
		resp, err := http.Get(s.origin + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("/healthz is %s", resp.Status)
		}
		if status, errs := s.end(t, signal); status != 0 || errs != "" {
			t.Errorf("%v ended it with status %d:\n%s", signal, status, errs)
		}
	}
}

func TestASecondServeSaysWhoHoldsTheDataFile(t *testing.T) {
	p := newPlace(t, nil, "[web]\nlisten = \"127.0.0.1:0\"\n")
	first := p.serve()
	out, status := p.run("serve")
	if status != exitFailed || !strings.Contains(out, "nudge.db is in use by another process: pid "+strconv.Itoa(first.cmd.Process.Pid)+",") {
		t.Errorf("a second serve (status %d, want 1) printed:\n%s", status, out)
	}
	if out, status := p.run("doctor", "--quick"); status != 0 || !strings.Contains(out, "ok     running") {
		t.Errorf("doctor (status %d) printed:\n%s", status, out)
	}
	if status, errs := first.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("the first ended with status %d:\n%s", status, errs)
	}
}

func TestAPortInUseIsSaidToBeTheConfigs(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p := newPlace(t, nil, "[web]\nlisten = \""+taken.Addr().String()+"\"\n")
	out, status := p.run("serve")
	if status != exitFailed || !strings.Contains(out, taken.Addr().String()) || !strings.Contains(out, "[web] listen") {
		t.Errorf("serve (status %d, want 1) printed:\n%s", status, out)
	}
}
