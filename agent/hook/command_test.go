//go:build linux || darwin || freebsd || netbsd || openbsd

package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"nudge/agent"
)

// asProgram as the first argument makes the test binary one of the programs below.
const asProgram = "as-program"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asProgram {
		programs[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// programs are hooks, well and badly made. Their environment is clean, so all that they are told is in the arguments.
var programs = map[string]func(args []string){
	"print":  func(args []string) { unread(); fmt.Print(args[0]) },
	"ignore": func(args []string) { fmt.Print(args[0]) },
	"close": func(args []string) {
		_ = os.Stdin.Close()
		fmt.Print(args[0])
	},
	"save": func(args []string) {
		question, err := io.ReadAll(os.Stdin)
		must(err)
		must(os.WriteFile(args[0], question, 0o600))
	},
	"turn": func([]string) {
		var asked agent.HookQuestion
		must(json.NewDecoder(os.Stdin).Decode(&asked))
		must(json.NewEncoder(os.Stdout).Encode(agent.Ruling{Stop: asked.Turn}))
	},
	"exit": func(args []string) {
		unread()
		fmt.Print(args[2])
		fmt.Fprint(os.Stderr, args[1])
		status, err := strconv.Atoi(args[0])
		must(err)
		os.Exit(status)
	},
	"moan": func([]string) { fmt.Fprint(os.Stderr, strings.Repeat("é moan\n", 100_000)+"at last\n"); os.Exit(1) },
	"kill": func([]string) { must(syscall.Kill(os.Getpid(), syscall.SIGKILL)); forever() },
	"exact": func(args []string) {
		n, err := strconv.Atoi(args[0])
		must(err)
		fmt.Print(strings.Repeat(" ", n-2), "{}")
	},
	"flood": func([]string) {
		signal.Ignore(syscall.SIGPIPE)
		for range 1 << 10 {
			_, _ = os.Stdout.Write(make([]byte, 1<<16)) // deaf to what becomes of it
		}
		forever()
	},
	"where": func(args []string) {
		dir, err := os.Getwd()
		must(err)
		must(os.WriteFile(args[0], []byte(strings.Join(append(os.Environ(), dir), "\n")), 0o600))
	},
	"forever": func([]string) { forever() },
	"tree": func(args []string) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		note(args[0], os.Getpid(), start("forever", false))
		forever()
	},
	"leave": func(args []string) {
		note(args[0], start("forever", false))
		fmt.Print(args[1])
	},
	"escape": func(args []string) { note(args[0], start("forever", true)) },
	"late": func(args []string) { // opening the pipe waits for the test to open its other end
		_, err := os.ReadFile(args[0])
		must(err)
		question, err := io.ReadAll(os.Stdin)
		must(err)
		fmt.Printf(`{"stop":"%d bytes"}`, len(question))
	},
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the program failed:", err)
		os.Exit(99)
	}
}

func unread() { _, _ = io.Copy(io.Discard, os.Stdin) }

// forever lasts until it is killed.
func forever() { time.Sleep(24 * time.Hour) }

// start starts another program that holds the outputs of this one, in its group or outside of it.
func start(program string, escaped bool) (pid int) {
	cmd := exec.Command(os.Args[0], asProgram, program)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: escaped}
	must(cmd.Start())
	return cmd.Process.Pid
}

// note writes ids into a file that is complete once it is there.
func note(file string, pids ...int) {
	must(os.WriteFile(file+".new", []byte(fmt.Sprintln(pids)), 0o600))
	must(os.Rename(file+".new", file))
}

func argv(t *testing.T, args ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Programs with the race detector sleep for a second before they end, unless they are told not to.
	return append([]string{"env", "GORACE=atexit_sleep_ms=0", self, asProgram}, args...)
}

// hookOf is a hook of one of the programs, before each tool and with all the time that it may have.
func hookOf(t *testing.T, args ...string) agent.Hook {
	t.Helper()
	return Command("hook 1 (test)", agent.BeforeTool, argv(t, args...), t.TempDir(), MaxTimeout)
}

// call is a question before a tool; it is long when it has more than a pipe takes at once.
func call(long bool) agent.HookQuestion {
	asked := agent.HookQuestion{
		At: agent.BeforeTool, Session: "s", Turn: "t", Person: "terminal:ann", Tool: "write_file", Effect: agent.Effectful,
		Arguments: json.RawMessage(`{"path":"<a>&b","n":1.50}`),
	}
	if long {
		asked.Text = strings.Repeat("x", 1<<20)
	}
	return asked
}

// patience bounds what should end by itself; no test waits for it to pass.
const patience = time.Minute

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestProgramsRule(t *testing.T) {
	const refusal = `{"refuse":"not here"}`
	exact := strconv.Itoa(MaxOutput)
	for _, c := range []struct {
		name string
		args []string
		want agent.Ruling
	}{
		{"a ruling", []string{"print", refusal + "\n"}, agent.Ruling{Refuse: "not here"}},
		{"nothing", []string{"print", ""}, agent.Ruling{}},
		{"the question is not read", []string{"ignore", refusal}, agent.Ruling{Refuse: "not here"}},
		{"the question is turned away", []string{"close", refusal}, agent.Ruling{Refuse: "not here"}},
		{"complaints beside it", []string{"exit", "0", "careful", refusal}, agent.Ruling{Refuse: "not here"}},
		{"as long as may be", []string{"exact", exact}, agent.Ruling{}},
	} {
		for _, long := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/long %t", c.name, long), func(t *testing.T) {
				got, err := hookOf(t, c.args...).Rule(patient(t), call(long))
				if err != nil || !reflect.DeepEqual(got, c.want) {
					t.Errorf("got %+v, %v", got, err)
				}
			})
		}
	}
}

func TestProgramsThatDoNotRule(t *testing.T) {
	over := strconv.Itoa(MaxOutput + 1)
	for _, c := range []struct {
		name string
		args []string
		want string // "…" stands for anything
	}{
		{"a failure", []string{"exit", "3", "no\n\x1b[31m such\tthing\n", "{}"}, "it must end with exit status 0 to rule: exit status 3; its error output: no [31m such thing"},
		{"a failure without a word", []string{"exit", "1", "", ""}, "it must end with exit status 0 to rule: exit status 1"},
		{"a failure with many words", []string{"moan"}, "it must end with exit status 0 to rule: exit status 1; the end of its error output: …moan at last"},
		{"a signal", []string{"kill"}, "it must end with exit status 0 to rule: signal: killed"},
		{"a flood", []string{"flood"}, "it printed more than 1 MiB, and was killed"},
		{"a byte too many", []string{"exact", over}, "it printed more than 1 MiB, and was killed"},
		{"garbage", []string{"print", "Traceback"}, "what it printed is not one JSON object: invalid character 'T' looking for beginning of value"},
		{"half a ruling", []string{"print", `{"refuse":"no`}, "what it printed is not one JSON object: unexpected end of JSON input"},
		{"another point's ruling", []string{"print", `{"result":"x"}`}, `the ruling has "result", which a hook at before_tool cannot rule`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := hookOf(t, c.args...).Rule(patient(t), call(true))
			if err == nil || !reflect.DeepEqual(got, agent.Ruling{}) {
				t.Fatalf("got %+v, %v", got, err)
			}
			before, after, _ := strings.Cut("ask hook 1 (test): "+c.want, "…")
			if said := err.Error(); !strings.HasPrefix(said, before) || !strings.HasSuffix(said, after) || strings.ContainsAny(said, "\n\x1b") || len(said) > 600 {
				t.Errorf("the error is %q", said)
			}
		})
	}
}

func TestWhatCannotStart(t *testing.T) {
	for _, c := range []struct {
		name string
		hook agent.Hook
		want string
	}{
		{"no program", Command("h", agent.BeforeTool, nil, "", 0), "ask h: start a program: none is named"},
		{"an absent program", Command("h", agent.BeforeTool, []string{"no-such-program-at-all"}, "", 0), `ask h: start "no-such-program-at-all": `},
		{"an absent folder", Command("h", agent.BeforeTool, argv(t, "print", ""), filepath.Join(t.TempDir(), "none"), 0), `ask h: start "env": `},
		{"a NUL", Command("h", agent.BeforeTool, argv(t, "print", "a\x00b"), "", 0), `ask h: start "env": `},
	} {
		if got, err := c.hook.Rule(patient(t), call(false)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	asked := call(false)
	asked.Arguments = json.RawMessage(`{"half`)
	if got, err := hookOf(t, "print", "").Rule(patient(t), asked); err == nil || !strings.Contains(err.Error(), "write the question") {
		t.Errorf("arguments that are no JSON: %+v, %v", got, err)
	}
}

func TestTheProgramReadsTheQuestion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "question")
	for _, long := range []bool{false, true} {
		if _, err := hookOf(t, "save", file).Rule(patient(t), call(long)); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got agent.HookQuestion
		if err := json.Unmarshal(raw, &got); err != nil || !reflect.DeepEqual(got, call(long)) {
			t.Errorf("it read %.200q, %v", raw, err)
		}
		if bytes.Count(raw, []byte("\n")) != 1 || !bytes.HasSuffix(raw, []byte("}\n")) || !bytes.Contains(raw, call(long).Arguments) {
			t.Errorf("it read %.200q, not one line with the arguments as they are", raw)
		}
	}
}

func TestEnvironmentAndFolder(t *testing.T) {
	t.Setenv("NUDGE_TEST_KEY", "s3cret")
	t.Setenv("HOME", "/home/ann")
	t.Setenv("TZ", "Europe/Kyiv")
	t.Setenv("LANG", "C")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Command("h", agent.AfterStep, argv(t, "where", "seen"), dir, MaxTimeout).Rule(patient(t), call(false)); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	var names []string
	for _, line := range lines[:len(lines)-1] {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(name string) bool { return name == "GORACE" }) // from argv above
	if want := []string{"HOME", "LANG", "PATH", "TZ"}; !slices.Equal(names, want) || lines[len(lines)-1] != dir {
		t.Errorf("it has %v in %s", names, lines[len(lines)-1])
	}
}

// begun waits for the ids that a program notes, and stops waiting when it has ended.
func begun(t *testing.T, file string, ended <-chan error) []int {
	t.Helper()
	give := patient(t)
	for {
		if pids := noted(t, file); pids != nil {
			return pids
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended early: %v", err)
		case <-give.Done():
			t.Fatal("it never began")
		case <-time.After(time.Millisecond):
		}
	}
}

func noted(t *testing.T, file string) []int {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var pids []int
	for _, field := range strings.Fields(strings.Trim(string(raw), "[]\n")) {
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

// TestTheWholeGroupIsKilled ends a program that is deaf to polite signals and has a child, by its time and by the
// caller's context.
func TestTheWholeGroupIsKilled(t *testing.T) {
	for name, cause := range map[string]error{"time": errTime, "caller": nil} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pids")
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			limited := make(chan context.CancelCauseFunc, 1)
			c := command{name: "h", at: agent.BeforeTool, run: argv(t, "tree", file), timeout: 7 * time.Second}
			c.limit = func(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
				if timeout != 7*time.Second {
					t.Errorf("the time is %v", timeout)
				}
				ctx, cancel := context.WithCancelCause(ctx)
				limited <- cancel
				return ctx, func() { cancel(nil) }
			}
			ended := make(chan error, 1)
			go func() {
				_, err := c.rule(ctx, call(true))
				ended <- err
			}()
			pids := begun(t, file, ended)
			if cause == nil {
				cancel()
				cause = context.Canceled
			} else {
				(<-limited)(cause)
			}
			if err := <-ended; !errors.Is(err, cause) {
				t.Errorf("the error is %v, want %v", err, cause)
			}
			if len(pids) != 2 {
				t.Fatalf("there were %v", pids)
			}
			for _, pid := range pids {
				gone(t, pid)
			}
		})
	}
}

func TestTimeIsUp(t *testing.T) {
	h := Command("h", agent.BeforeTool, argv(t, "forever"), "", 20*time.Millisecond)
	got, err := h.Rule(patient(t), call(true))
	if !errors.Is(err, errTime) || !strings.HasPrefix(err.Error(), "ask h: it had not decided when its time was up, and was killed") {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	file := filepath.Join(t.TempDir(), "ran")
	if got, err := hookOf(t, "save", file).Rule(ctx, call(false)); !errors.Is(err, context.Canceled) {
		t.Errorf("asked after the end, got %+v, %v", got, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a program was started after the end")
	}
}

func TestTimeouts(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		0: DefaultTimeout, -1: DefaultTimeout, time.Second: time.Second, MaxTimeout: MaxTimeout, time.Hour: MaxTimeout,
	} {
		before := time.Now()
		ctx, cancel := limit(context.Background(), given)
		cancel()
		if deadline, ok := ctx.Deadline(); !ok || deadline.Before(before.Add(given)) {
			t.Errorf("the deadline for %v is %v", given, deadline)
		}
		if got := newCommand("h", agent.BeforeTool, nil, "", given).timeout; got != want {
			t.Errorf("%v is taken for %v, want %v", given, got, want)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	got, err := hookOf(t, "leave", file, `{"refuse":"no"}`).Rule(patient(t), call(false))
	if err != nil || got.Refuse != "no" {
		t.Errorf("got %+v, %v", got, err)
	}
	pids := noted(t, file)
	if len(pids) != 1 {
		t.Fatalf("there were %v", pids)
	}
	gone(t, pids[0])
}

// TestWhoeverLeavesTheGroupHasNotDecided has a process leave the group with the outputs still open: what it may yet say
// cannot be known.
func TestWhoeverLeavesTheGroupHasNotDecided(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	got, err := hookOf(t, "escape", file).Rule(patient(t), call(false))
	for _, pid := range noted(t, file) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("the escaped process is gone: %v", err)
		}
	}
	if !errors.Is(err, errHeld) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestASlowStarterIsWaitedFor has a program read its question, which no pipe holds at once, only when the test lets it.
func TestASlowStarterIsWaitedFor(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		// This waits for the program to open the other end; closing it lets the program go on.
		file, err := os.OpenFile(gate, os.O_WRONLY, 0)
		opened <- errors.Join(err, file.Close())
	}()
	question, err := encode(call(true))
	if err != nil {
		t.Fatal(err)
	}
	got, err := hookOf(t, "late", gate).Rule(patient(t), call(true))
	if want := fmt.Sprintf("%d bytes", len(question)); err != nil || got.Stop != want {
		t.Fatalf("got %+v, %v; want %s", got, err, want)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestManyAskAtOnce(t *testing.T) {
	h := hookOf(t, "turn")
	ctx := patient(t)
	var asking sync.WaitGroup
	for i := range 8 {
		asking.Go(func() {
			asked := call(i%2 == 0)
			asked.Turn = fmt.Sprint("turn ", i)
			if got, err := h.Rule(ctx, asked); err != nil || got.Stop != asked.Turn {
				t.Errorf("%s got %+v, %v", asked.Turn, got, err)
			}
		})
	}
	asking.Wait()
}
