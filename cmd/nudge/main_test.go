package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

func TestMain(m *testing.M) {
	testscript.Main(patient{m}, map[string]func(){
		"nudge":    func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"mcp-echo": echoServer,
	})
}

// patient runs more of the parallel tests at once than there are processors: what they do is wait.
type patient struct{ *testing.M }

func (p patient) Run() int {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", fmt.Sprint(runtime.GOMAXPROCS(0)+2)); err != nil {
			panic(err)
		}
	}
	return p.M.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: func(env *testscript.Env) error {
		env.Setenv("GORACE", raceOptions)
		return nil
	}})
}

// raceOptions shorten the second that the race detector waits at the end of each process.
const raceOptions = "atexit_sleep_ms=50"

// patience is how long a test waits for what must come. It is never waited for when all is well.
const patience = 60 * time.Second

// talk is `nudge chat --json` running as a process of its own.
type talk struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan line

	mu   sync.Mutex
	seen []line
	errs strings.Builder
}

// line is a line of its output.
type line struct {
	Kind      string          `json:"kind"`
	Session   string          `json:"session"`
	Turn      string          `json:"turn"`
	Run       string          `json:"run"`
	ID        string          `json:"id"`
	To        string          `json:"to"`
	Text      string          `json:"text"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Decision  string          `json:"decision"`
	By        string          `json:"by"`
	State     string          `json:"state"`
	Step      int             `json:"step"`
	Reason    string          `json:"reason"`
	Steps     int             `json:"steps"`
	ToolCalls int             `json:"tool_calls"`
	TokensIn  int             `json:"tokens_in"`
	TokensOut int             `json:"tokens_out"`
	CostUSD   float64         `json:"cost_usd"`
	Heartbeat string          `json:"heartbeat"`
	Choices   []string        `json:"choices"`
	raw       string
}

// place is a folder with a config and a data directory.
type place struct {
	t           *testing.T
	dir, config string
}

// newPlace writes a config, with the server as its model when there is one.
func newPlace(t *testing.T, server *modeltest.Server, config string) place {
	t.Helper()
	p := place{t: t, dir: t.TempDir()}
	p.config = filepath.Join(p.dir, "config.toml")
	if server != nil {
		config = fmt.Sprintf("[model]\nprovider = \"openai\"\nbase_url = %q\nname = \"scripted\"\nprice_in = 2\nprice_out = 12\n\n%s", server.URL(), config)
	}
	config += "\n[workspace]\nscope = \"shared\"\n"
	if err := os.MkdirAll(p.workspace(""), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// command is the program with this place's config and data.
func (p place) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	nudge := filepath.Join(p.dir, "nudge")
	if _, err := os.Lstat(nudge); err != nil {
		if err := os.Symlink(self, nudge); err != nil {
			p.t.Fatal(err)
		}
	}
	cmd := exec.Command(nudge, append([]string{"--config", p.config, "--data", filepath.Join(p.dir, "data")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "GORACE="+raceOptions)
	return cmd
}

// run runs a command to its end and returns what it printed and its exit status, which is -1 when it had to be killed.
func (p place) run(args ...string) (out string, status int) {
	p.t.Helper()
	cmd := p.command(args...)
	var printed strings.Builder
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	overdue := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer overdue.Stop()
	_ = cmd.Wait() // the status says how it ended
	return printed.String(), cmd.ProcessState.ExitCode()
}

// here runs a command that is to end at once in the test's own process: to start another takes most of the time that a look at a
// config takes.
func (p place) here(args ...string) (out string, status int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	var printed strings.Builder
	a := &app{in: strings.NewReader(""), out: &printed, errs: &printed}
	status = a.run(ctx, append([]string{"--config", p.config, "--data", filepath.Join(p.dir, "data")}, args...))
	return printed.String(), status
}

// workspace is a file in the one workspace.
func (p place) workspace(name string) string { return filepath.Join(p.dir, "data", "workspace", name) }

// chat starts a chat of ann's.
func (p place) chat(args ...string) *talk {
	p.t.Helper()
	k := &talk{t: p.t, cmd: p.command(append([]string{"chat", "--user", "ann", "--json"}, args...)...), lines: make(chan line, 1000)}
	var err error
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	k.cmd.Stderr = &lockedWriter{mu: &k.mu, w: &k.errs}
	if err := k.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(k.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			l := line{raw: scanner.Text()}
			if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
				l.Kind = "not JSON"
			}
			k.lines <- l
		}
	}()
	p.t.Cleanup(k.kill)
	return k
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// say types a line.
func (k *talk) say(text string) {
	k.t.Helper()
	if _, err := io.WriteString(k.in, text+"\n"); err != nil {
		k.t.Fatalf("type %q: %v\n%s", text, err, k.so())
	}
}

// until reads on to the first line of a kind that fits.
func (k *talk) until(kind string, fits ...func(line) bool) line {
	k.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case l, open := <-k.lines:
			if !open {
				k.t.Fatalf("the output ended before a %s\n%s", kind, k.so())
			}
			k.seen = append(k.seen, l)
			if l.Kind == kind && (len(fits) == 0 || fits[0](l)) {
				return l
			}
		case <-deadline.C:
			k.t.Fatalf("no %s came\n%s", kind, k.so())
		}
	}
}

// so is what was printed so far.
func (k *talk) so() string {
	var b strings.Builder
	for _, l := range k.seen {
		b.WriteString(l.raw + "\n")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return b.String() + k.errs.String()
}

// end ends the input and waits for the program to end by itself.
func (k *talk) end() {
	k.t.Helper()
	k.in.Close()
	for l := range k.lines {
		k.seen = append(k.seen, l)
	}
	if err := k.cmd.Wait(); err != nil {
		k.t.Fatalf("the chat ended with %v\n%s", err, k.so())
	}
}

// kill is kill -9.
func (k *talk) kill() {
	if k.cmd.ProcessState == nil {
		_ = k.cmd.Process.Signal(syscall.SIGKILL)
		_ = k.cmd.Wait()
	}
}

// kinds are the lines of some kinds, in short.
func (k *talk) kinds(kinds ...string) string {
	var parts []string
	for _, l := range k.seen {
		for _, kind := range kinds {
			if l.Kind == kind {
				parts = append(parts, strings.TrimSpace(kind+" "+l.State+l.Decision+l.Reason))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// results are the tool messages at the end of a request, by call.
func results(req modeltest.ChatRequest) map[string]string {
	found := map[string]string{}
	for i := len(req.Messages) - 1; i >= 0; i-- {
		switch m := req.Messages[i]; m.Role {
		case "tool":
			found[m.ToolCallID] = m.Content
		case "user":
			return found
		}
	}
	return found
}

func call(id, name, arguments string) model.Call {
	return model.Call{ID: id, Name: name, Arguments: arguments}
}

var usage = model.Usage{In: 1000, Out: 100, Known: true}
