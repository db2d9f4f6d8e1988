//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// dial connects to the socket of a running program.
func (p place) dial() net.Conn {
	p.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(p.dir, "data", socketName))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	return conn
}

// Connections that say nothing, or the beginning of something, keep nobody out and the program from ending.
func TestHalfOpenConnectionsHoldNothing(t *testing.T) {
	p := newPlace(t, nil, "[web]\nlisten = \"127.0.0.1:0\"\n")
	s := p.serve()
	for i := range 200 {
		conn := p.dial()
		if i%2 == 0 {
			_, _ = conn.Write([]byte(`{"command":{"args":["sessions"`)) // it may be let go of already
		}
	}
	if out, status := p.run("sessions"); status != 0 {
		t.Errorf("sessions (status %d) printed:\n%s", status, out)
	}
	if status, errs := s.end(t, syscall.SIGTERM); status != 0 || strings.Contains(errs, "panic") {
		t.Errorf("it ended with %d:\n%s", status, errs)
	}
}

// Whatever is said on the socket that is no command of those that are done for others, the connection ends, and the
// program goes on.
func TestGarbageOnTheSocket(t *testing.T) {
	p := newPlace(t, nil, "[web]\nlisten = \"127.0.0.1:0\"\n")
	s := p.serve()
	command := func(args ...string) string {
		data, err := json.Marshal(frame{Command: &remoteCommand{Args: args}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	for name, c := range map[string]struct{ say, want string }{
		"no JSON":                {"GET / HTTP/1.1\r\n\r\n", ""},
		"bytes":                  {"\x00\xff\x16\x03\x01\n", ""},
		"nothing":                {"{}\n", ""},
		"null":                   {"null\n", ""},
		"a list":                 {"[]\n", ""},
		"no arguments":           {`{"command":{"args":[]}}` + "\n", ""},
		"null as arguments":      {`{"command":{"args":null}}` + "\n", ""},
		"numbers as arguments":   {`{"command":{"args":[1]}}` + "\n", ""},
		"deep":                   {strings.Repeat("[", 100_000) + "\n", ""},
		"a line without end":     {strings.Repeat("x", 4<<20), ""},
		"a command of a MB":      {command("sessions", strings.Repeat("x", 1<<20)), ""},
		"input before all":       {`{"in":"aGVsbG8="}` + "\n" + command("sessions"), ""},
		"serve":                  {command("serve"), "not done for other processes"},
		"restore":                {command("restore", "/etc/passwd"), "not done for other processes"},
		"a flag before":          {command("--data", "/", "serve"), "not done for other processes"},
		"no command":             {command(""), "not done for other processes"},
		"with control signs":     {command("\x1b]0;x\x07"), "not done for other processes"},
		"a flag that is not":     {command("sessions", "--nosuch"), "unknown flag"},
		"somebody who cannot be": {command("chat", "--user", "../a b"), "--user"},
		"two commands":           {command("sessions", "--nosuch") + command("serve"), "unknown flag"},
		"input for nothing":      {command("sessions", "--nosuch") + strings.Repeat(`{"in":"aGVsbG8="}`+"\n", 100), "unknown flag"},
		"an empty input":         {command("sessions", "--nosuch") + `{"in":""}` + "\n", "unknown flag"},
	} {
		conn := p.dial()
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, c.say) // it may be refused in the middle
		answer, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection goes on", name)
		}
		var said strings.Builder
		for line := range strings.Lines(string(answer)) {
			var f frame
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Errorf("%s: %q is no frame: %v", name, line, err)
			}
			said.Write(f.Out)
			said.Write(f.Err)
		}
		if !strings.Contains(said.String(), c.want) || c.want == "" && said.Len() > 0 {
			t.Errorf("%s: it answers %q, want %q", name, said.String(), c.want)
		}
		conn.Close()
	}
	if out, status := p.run("sessions"); status != 0 {
		t.Errorf("then sessions (status %d) printed:\n%s", status, out)
	}
	if status, errs := s.end(t, syscall.SIGTERM); status != 0 || strings.Contains(errs, "panic") {
		t.Errorf("it ended with %d:\n%s", status, errs)
	}
}

// Who says nothing, or takes nothing, is let go of after a while, whatever else goes on.
func TestNobodyIsWaitedForForLong(t *testing.T) {
	for name, c := range map[string]struct {
		say  string
		read bool
		want time.Duration
	}{
		"says nothing":         {"", true, askTime},
		"says the half of it":  {`{"command":`, true, askTime},
		"asks and never reads": {`{"command":{"args":["nosuch"]}}` + "\n", false, takeTime},
		"asks and reads":       {`{"command":{"args":["nosuch"]}}` + "\n", true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			control := &control{program: &program{log: slog.New(slog.DiscardHandler)}}
			began, ended := time.Now(), make(chan time.Time, 1)
			go func() {
				control.command(t.Context(), ours)
				ended <- time.Now()
			}()
			_, _ = io.WriteString(theirs, c.say)
			if c.read {
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
			}
			if took := (<-ended).Sub(began); took != c.want {
				t.Errorf("%s: it is let go of after %v, want %v", name, took, c.want)
			}
			if len(control.waiting) > 0 {
				t.Errorf("%s: it is still waited for", name)
			}
			theirs.Close()
			control.serving.Wait()
		})
	}
}

// Several programs that are started at once with the same data directory: one runs, and the others say who does.
func TestManyStartAtOnce(t *testing.T) {
	p := newPlace(t, nil, "[web]\nlisten = \"127.0.0.1:0\"\n")
	type started struct {
		served
		line string
	}
	var all [5]started
	var starting sync.WaitGroup
	for i := range all {
		one := &all[i]
		one.cmd, one.errs = p.command("serve"), &strings.Builder{}
		one.cmd.Stderr = one.errs
		out, err := one.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := one.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		overdue := time.AfterFunc(patience, func() { _ = one.cmd.Process.Kill() })
		t.Cleanup(func() { overdue.Stop(); _ = one.cmd.Process.Kill() })
		starting.Go(func() {
			one.line, _ = bufio.NewReader(out).ReadString('\n')
			if one.line == "" {
				_ = one.cmd.Wait() // the status is looked at below
			}
		})
	}
	starting.Wait()
	running := 0
	for _, one := range all {
		if one.line != "" {
			running++
			if out, status := p.run("sessions"); status != 0 {
				t.Errorf("sessions (status %d) printed:\n%s", status, out)
			}
			if status, errs := one.end(t, syscall.SIGTERM); status != 0 {
				t.Errorf("the one that runs ended with %d: %s", status, errs)
			}
			continue
		}
		if status := one.cmd.ProcessState.ExitCode(); status != exitFailed || !strings.Contains(one.errs.String(), "nudge.db") {
			t.Errorf("another ended with %d: %s", status, one.errs)
		}
	}
	if running != 1 {
		t.Errorf("%d run", running)
	}
}

// Links that somebody has put into the data directory in place of what is Nudge's lead nothing of it elsewhere, and a socket that
// is another's is told nothing.
func TestLinksInTheDataDirectory(t *testing.T) {
	p := newPlace(t, nil, "[web]\nlisten = \"127.0.0.1:0\"\n")
	data := filepath.Join(p.dir, "data")
	for _, name := range []string{socketName, dataFileName + ".lock"} {
		precious := filepath.Join(p.dir, name+"-precious")
		if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(precious, filepath.Join(data, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serve()
	for _, name := range []string{socketName, dataFileName + ".lock"} {
		precious := filepath.Join(p.dir, name+"-precious")
		text, err := os.ReadFile(precious)
		info, statErr := os.Stat(precious)
		if err != nil || statErr != nil || string(text) != "precious" || info.Mode().Perm() != 0o644 {
			t.Errorf("what %s led to is %q with mode %v, %v", name, text, info.Mode(), err)
		}
		own, err := os.Lstat(filepath.Join(data, name))
		if err != nil || own.Mode()&os.ModeSymlink != 0 || own.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, own.Mode(), err)
		}
	}
	if err := os.Remove(filepath.Join(data, socketName)); err != nil {
		t.Fatal(err)
	}
	others := filepath.Join(p.dir, "o.sock")
	server, err := net.Listen("unix", others)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	heard := make(chan string, 10)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			heard <- line
			conn.Close()
		}
	}()
	if err := os.Symlink(others, filepath.Join(data, socketName)); err != nil {
		t.Fatal(err)
	}
	refused := func(how string) {
		t.Helper()
		if out, status := p.run("sessions"); status != exitFailed || !strings.Contains(out, "was not made by that process") {
			t.Errorf("%s: sessions (status %d) printed:\n%s", how, status, out)
		}
		select {
		case line := <-heard:
			t.Errorf("%s: somebody else was told %q", how, line)
		default:
		}
	}
	refused("behind a link")
	if os.Geteuid() == 0 { // only root can give it to another account
		if err := errors.Join(os.Remove(filepath.Join(data, socketName)), os.Rename(others, filepath.Join(data, socketName)), os.Lchown(filepath.Join(data, socketName), 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		refused("of another account")
	}
	if status, errs := s.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("it ended with %d: %s", status, errs)
	}
}

// TestAKilledProcessHasEndedItsInput: one that goes with words to it unread resets the connection, which is no fault of anybody's.
func TestAKilledProcessHasEndedItsInput(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	other, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("words")); err != nil {
		t.Fatal(err)
	}
	other.Close()
	if f, err := readFrame(framesOf(conn)); err != io.EOF {
		t.Errorf("it reads %+v, %v, want the end", f, err)
	}
}
