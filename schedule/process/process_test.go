//go:build linux || darwin || freebsd || netbsd || openbsd

package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should end by itself; no test waits for it to pass.
const patience = 2 * time.Minute

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func sh(script string, arguments ...string) Spec {
	return Spec{Argv: append([]string{"sh", "-c", script, "sh"}, arguments...)}
}

// long is more than a pipe holds.
var long = strings.Repeat("x", 1<<20)

// given is a script with something to read.
func given(input, script string) Spec {
	spec := sh(script)
	spec.Input = []byte(input)
	return spec
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   Spec
		exit   int
		signal string
		output string
	}{
		{"success", sh("echo hello"), 0, "", "hello\n"},
		{"both outputs in order", sh("echo one; echo two >&2; echo three"), 0, "", "one\ntwo\nthree\n"},
		{"failure", sh("echo no >&2; exit 7"), 7, "", "no\n"},
		{"a signal", sh("kill -TERM $$"), -1, "terminated", ""},
		{"arguments are not split", sh(`printf '<%s>' "$@"`, "a b", "$(id)", "", "*"), 0, "", "<a b><$(id)><><*>"},
		{"nothing to read", sh("cat; echo end"), 0, "", "end\n"},
		{"an input", given("hello", "cat; echo end"), 0, "", "helloend\n"},
		{"more than a pipe holds", given(long, "wc -c | tr -d ' '"), 0, "", strconv.Itoa(len(long)) + "\n"},
		{"an input that is not read", given(long, "echo end; exit 3"), 3, "", "end\n"},
		{"an input that is turned away", given(long, "exec <&-; echo end"), 0, "", "end\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Run(patient(t), c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got.Exit != c.exit || got.Signal != c.signal || string(got.Output) != c.output || got.LeftOut != 0 || got.Partial || got.TimedOut || got.Cancelled {
				t.Errorf("got %+v, output %q", got, got.Output)
			}
		})
	}
}

func TestEnvironmentAndFolder(t *testing.T) {
	t.Setenv("NUDGE_TEST_KEY", "secret")
	t.Setenv("TZ", "Europe/Kyiv")
	t.Setenv("LANG", "C")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Run(patient(t), Spec{Argv: []string{"env"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(got.Output)) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"HOME", "LANG", "PATH", "TZ"}; os.Getenv("HOME") != "" && !slices.Equal(names, want) {
		t.Errorf("the environment has %v, want %v", names, want)
	}
	if strings.Contains(string(got.Output), "secret") {
		t.Error("a key was passed on")
	}
	if got, err = Run(patient(t), Spec{Argv: []string{"pwd"}, Dir: dir}); err != nil || strings.TrimSpace(string(got.Output)) != dir {
		t.Errorf("pwd says %q, %v; want %s", got.Output, err, dir)
	}
}

func TestEnvironmentsAsAsked(t *testing.T) {
	t.Setenv("LANG", "C")
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Argv: []string{"env"}, Bare: true}, ""},
		{Spec{Argv: []string{"env"}, Bare: true, Env: []string{"A=b"}}, "A=b\n"},
		{Spec{Path: "/bin/sh", Argv: []string{"other", "-c", `echo "$0"`}, Bare: true}, "other\n"},
	} {
		if got, err := Run(patient(t), c.spec); err != nil || string(got.Output) != c.want {
			t.Errorf("%+v gave %q, %v", c.spec, got.Output, err)
		}
	}
	if got, err := Run(patient(t), Spec{Argv: []string{"env"}, Env: []string{"A=b"}}); err != nil || !strings.Contains(string(got.Output), "A=b\n") || !strings.Contains(string(got.Output), "LANG=C\n") {
		t.Errorf("got %q, %v", got.Output, err)
	}
}

// TestTalks has a program answer, and ends it with what it has started, whether it wants to end or not.
func TestTalks(t *testing.T) {
	for _, script := range []string{
		`echo complaint >&2; while read line; do echo "heard $line"; done`,
		`trap "" TERM; sleep 1000 & echo complaint >&2; while true; do read line && echo "heard $line"; done`,
	} {
		talk, err := Start(sh(script))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(talk, "one\n"); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 100)
		n, err := talk.Read(answer)
		if err != nil || string(answer[:n]) != "heard one\n" {
			t.Errorf("it answers %q, %v", answer[:n], err)
		}
		if err := errors.Join(talk.Close(), talk.Close()); err != nil {
			t.Error(err)
		}
		if _, err := talk.Read(answer); err == nil {
			t.Error("it still answers")
		}
		if talk.Complaints() != "complaint\n" {
			t.Errorf("it complained %q", talk.Complaints())
		}
	}
	if _, err := Start(Spec{}); err == nil {
		t.Error("no program was started")
	}
	if _, err := Start(Spec{Argv: []string{"no-such-program-at-all"}}); err == nil || !strings.Contains(err.Error(), `start "no-such-program-at-all"`) {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotStart(t *testing.T) {
	for _, spec := range []Spec{{}, {Argv: []string{"no-such-program-at-all"}}, {Argv: []string{"sh"}, Dir: filepath.Join(t.TempDir(), "none")}, {Argv: []string{"echo", "a\x00b"}}} {
		if got, err := Run(patient(t), spec); err == nil {
			t.Errorf("%q ran: %+v", spec.Argv, got)
		}
	}
	_, err := Run(patient(t), Spec{Argv: []string{"no-such-program-at-all"}})
	if err == nil || !strings.Contains(err.Error(), `start "no-such-program-at-all"`) {
		t.Errorf("the error is %v", err)
	}
}

func TestFloodIsBounded(t *testing.T) {
	spec := sh("head -c 30000000 /dev/zero | tr '\\000' x; echo the end")
	spec.Limit = 2000
	got, err := Run(patient(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	marker := []byte("\n[… 29998008 bytes left out …]\n")
	if got.Exit != 0 || got.LeftOut != 29998008 || !bytes.Contains(got.Output, marker) || !bytes.HasSuffix(got.Output, []byte("x\nthe end\n")) && !bytes.HasSuffix(got.Output, []byte("xthe end\n")) {
		t.Errorf("exit %d, %d left out, output ends %q", got.Exit, got.LeftOut, got.Output[max(0, len(got.Output)-40):])
	}
	if len(got.Output) != 2000+len(marker) {
		t.Errorf("%d bytes were kept", len(got.Output))
	}
}

func TestAnswers(t *testing.T) {
	const limit = 4001 // odd, so that no half of it is the whole
	for _, c := range []struct {
		name   string
		spec   Spec
		exit   int
		output string
		errors string
	}{
		{"both outputs", given("three\n", "echo one; echo two >&2; cat"), 0, "one\nthree\n", "two\n"},
		{"a failure", sh("echo one; echo no >&2; exit 7"), 7, "one\n", "no\n"},
		{"as long as may be", given(long[:limit], "cat"), 0, long[:limit], ""},
		{"a flood of errors", given(long[:2*limit], "cat >&2; echo end"), 0, "end\n", long[:limit-limit/2] + "\n[… 4001 bytes left out …]\n" + long[:limit/2]},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Limit = limit
			got, err := Ask(patient(t), c.spec)
			if err != nil || got.Exit != c.exit || string(got.Output) != c.output || string(got.Errors) != c.errors || got.LeftOut != 0 || got.Partial || got.Cancelled || got.TimedOut {
				t.Errorf("got %+v, output %q, errors %q, %v", got, got.Output, got.Errors, err)
			}
		})
	}
	t.Run("a byte too many", func(t *testing.T) {
		spec := given(long[:limit+1], "cat")
		spec.Limit = limit
		if got, err := Ask(patient(t), spec); err != nil || got.LeftOut != 1 || got.Cancelled || got.TimedOut {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// TestAnEndlessAnswerIsKilled has a program print for ever, with a grandchild.
func TestAnEndlessAnswerIsKilled(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pids")
	got, err := Ask(patient(t), sh(`sleep 1000 & echo $$ $! > "$1"; echo no >&2; exec yes`, note))
	if err != nil || got.LeftOut == 0 || got.Exit != -1 || got.Signal != "killed" || got.Cancelled || got.TimedOut || string(got.Errors) != "no\n" {
		t.Errorf("got exit %d, signal %q, %d left out, errors %q, %v", got.Exit, got.Signal, got.LeftOut, got.Errors, err)
	}
	pids := readPIDs(t, note)
	if len(pids) != 2 {
		t.Fatalf("there were %v", pids)
	}
	for _, pid := range pids {
		gone(t, pid)
	}
}

// started is a program that runs until it is killed, with a grandchild, and whose ids are known.
func started(t *testing.T, ctx context.Context, script string) (pids []int, outcome <-chan Outcome) {
	t.Helper()
	note := filepath.Join(t.TempDir(), "pids")
	done := make(chan Outcome, 1)
	go func() {
		got, err := Run(ctx, sh(script, note))
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	give := patient(t)
	for len(pids) == 0 {
		select {
		case got := <-done:
			t.Fatalf("it ended early: %+v %q", got, got.Output)
		case <-give.Done():
			t.Fatal("it never started")
		case <-time.After(time.Millisecond):
		}
		pids = readPIDs(t, note)
	}
	return pids, done
}

func readPIDs(t *testing.T, file string) []int {
	raw, err := os.ReadFile(file)
	if err != nil || !bytes.HasSuffix(raw, []byte("\n")) {
		return nil
	}
	var pids []int
	for _, field := range strings.Fields(string(raw)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// gone waits until a process no longer runs; a dead one that its new parent has not reaped yet counts as gone.
func gone(t *testing.T, pid int) {
	t.Helper()
	give := patient(t)
	for alive(pid) {
		select {
		case <-give.Done():
			t.Fatalf("process %d lives on", pid)
		case <-time.After(time.Millisecond):
		}
	}
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

func TestCancelKillsTheGroup(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"a grandchild", `sleep 1000 & echo $$ $! > "$1.new"; mv "$1.new" "$1"; wait`},
		{"deaf to polite signals", `trap '' TERM INT HUP; sleep 1000 & echo $$ $! > "$1.new"; mv "$1.new" "$1"; while :; do wait; done`},
		{"a flood", `yes & echo $$ $! > "$1.new"; mv "$1.new" "$1"; wait`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			pids, outcome := started(t, ctx, c.script)
			cancel()
			got := <-outcome
			if !got.Cancelled || got.TimedOut || got.Exit != -1 {
				t.Errorf("got %+v", got)
			}
			if len(got.Output) > DefaultLimit+100 {
				t.Errorf("%d bytes were kept", len(got.Output))
			}
			for _, pid := range pids {
				gone(t, pid)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	got, err := Run(ctx, sh("sleep 1000"))
	if err != nil || !got.TimedOut || got.Cancelled || got.Exit != -1 {
		t.Errorf("got %+v, %v", got, err)
	}
	// The context has ended by now, so this one must not start at all.
	note := filepath.Join(t.TempDir(), "ran")
	if got, err = Run(ctx, sh(`: > "$1"`, note)); err != nil || !got.TimedOut {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := os.Stat(note); err == nil {
		t.Error("a program was started after the deadline")
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pids")
	got, err := Run(patient(t), sh(`sleep 1000 & echo $! > "$1"; echo done; exit 3`, note))
	if err != nil || got.Exit != 3 || string(got.Output) != "done\n" || got.Cancelled || got.TimedOut {
		t.Fatalf("got %+v %q, %v", got, got.Output, err)
	}
	for _, pid := range readPIDs(t, note) {
		gone(t, pid)
	}
}

// TestAnEscapedProcessHoldsNothingUp has a process leave the group with the output or the input still open.
func TestAnEscapedProcessHoldsNothingUp(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Log("setsid is not installed, so there is nothing that could leave the group")
		return
	}
	const script = ` & while ! [ -e "$1" ]; do :; done; echo done`
	const escape = `setsid sh -c 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 1000' sh "$1" `
	for _, c := range []struct {
		name, script, input string
		partial             bool
	}{
		{"the output", escape + script, "", true},
		{"the input", "exec 3<&0; " + escape + "<&3 >/dev/null 2>&1" + script, long, true},
		{"an input that was taken", "exec 3<&0; " + escape + "<&3 >/dev/null 2>&1" + script, "short", false},
		{"nothing", escape + ">/dev/null 2>&1" + script, long, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			note := filepath.Join(t.TempDir(), "pids")
			spec := sh(c.script, note)
			spec.Input = []byte(c.input)
			got, err := Run(patient(t), spec)
			for _, pid := range readPIDs(t, note) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Errorf("the escaped process is gone: %v", err)
				}
			}
			if err != nil || got.Exit != 0 || string(got.Output) != "done\n" || got.Partial != c.partial {
				t.Errorf("got %+v %q, %v", got, got.Output, err)
			}
		})
	}
}

// TestTheEndOfTheContextIsTheEnd has a program that is never reaped, as one that an escaped process holds up.
func TestTheEndOfTheContextIsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c := &child{reaped: make(chan struct{})}
		before := time.Now()
		if known := c.settle(ctx); known || time.Since(before) != time.Hour+graceKilled {
			t.Errorf("known %t after %v", known, time.Since(before))
		}
	})
}

// TestWindow compares with keeping everything.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		pieces := rapid.SliceOf(rapid.OneOf(rapid.StringN(0, 8, 30), rapid.Just("😀"), rapid.Just(strings.Repeat("é", 30)))).Draw(t, "pieces")
		w := newWindow(limit)
		w.over = make(chan struct{})
		for _, piece := range pieces {
			if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("Write gave %d, %v", n, err)
			}
		}
		whole := strings.Join(pieces, "")
		output, leftOut := w.contents()
		if over := len(whole) > limit; over != (leftOut > 0) || over != closed(w.over) {
			t.Fatalf("of %d bytes %d are left out, over %t", len(whole), leftOut, closed(w.over))
		}
		if leftOut == 0 {
			if string(output) != whole {
				t.Fatalf("%q became %q", whole, output)
			}
			return
		}
		head, tail, found := strings.Cut(string(output), "\n[… "+strconv.FormatInt(leftOut, 10)+" bytes left out …]\n")
		if !found || len(head)+len(tail) > limit || !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(head)+len(tail)+int(leftOut) != len(whole) {
			t.Fatalf("%q became %q with %d left out", whole, output, leftOut)
		}
		if utf8.ValidString(whole) && !utf8.Valid(output) {
			t.Fatalf("%q tears a rune", output)
		}
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
