package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nudge/agent/model/modeltest"
)

// The variables of TestSoak.
const (
	soakVariable     = "NUDGE_SOAK"      // how long it goes on, such as "2h"
	soakSeedVariable = "NUDGE_SOAK_SEED" // a number; the choices of an earlier soak are made again
)

// soakToken lets the soak's programs in.
const soakToken = "soak-token"

// soakConfig has short times, so that cards expire, answers are given up and turns end while the soak goes on, and a
// window so small that conversations are compacted.
const soakConfig = `[model]
provider = "openai"
base_url = %q
name = "random"
price_in = 2
price_out = 12
context_window = 9000
max_output = 600
call_timeout = "6s"
idle_timeout = "1s"
[limits]
max_steps = 8
max_tool_calls = 14
max_cost_usd = %g
user_daily_cost_usd = %g
turn_timeout = "30s"
tool_timeout = "4s"
approval_timeout = "9s"
ask_timeout = "11s"
[access]
allow = ["api:*"]
[web]
listen = "127.0.0.1:0"
api_token_env = "NUDGE_SOAK_TOKEN"
[workspace]
scope = "shared"

[[command]]
name = "note"
run = ["sh", "-c", "echo $0 >> effects", "{id}"]
parameters = { id = "fx[0-9]+" }
approve = "no"
[[command]]
name = "slow-note"
run = ["sh", "-c", "sleep 0.$(($$ %% 10)); echo $0 >> effects; sleep 0.$(($$ %% 7))", "{id}"]
parameters = { id = "fx[0-9]+" }
approve = "no"
[[command]]
name = "ask-note"
run = ["sh", "-c", "echo $0 >> effects", "{id}"]
parameters = { id = "fx[0-9]+" }
[[command]]
name = "same-note"
run = ["sh", "-c", "sleep 0.$(($$ %% 4)); echo $0 >> repeats", "{id}"]
parameters = { id = "fx[0-9]+" }
effect = "idempotent"
approve = "no"
[[command]]
name = "look"
run = ["sh", "-c", "sleep 0.$(($$ %% 4)); wc -l effects"]
effect = "read"
approve = "no"
[[command]]
name = "long"
run = ["seq", "1", "6000"]
effect = "read"
approve = "no"
[[command]]
name = "hang"
run = ["sleep", "100"]
effect = "read"
approve = "no"

[[heartbeat]]
name = "flag"
cron = "@every 1s"
for = ["terminal:ann", "terminal:bob", "api:dora"]
prompt = "Tell them that the flag is up."
tools = ["run_command"]
[heartbeat.condition]
kind = "command"
run = ["test", "-e", "flag"]
[[heartbeat]]
name = "held"
cron = "@every 1s"
for = ["terminal:carl", "api:emil"]
prompt = "Tell them that the flag is still up."
tools = ["run_command"]
[heartbeat.condition]
kind = "file"
path = "flag"
on = "true"
cooldown = "5s"
`

// The limits of soakConfig on money, in USD.
const (
	soakTurnCost  = 0.06
	soakDailyCost = 100
)

// Bounds of what a soak may take up. The program is built with the race detector as its test is, which takes much.
const (
	soakMemory = 800 << 10 // KB of a process at its most
	soakFiles  = 400       // open in a process
	soakRounds = 12        // of quiet until everything must have settled
)

// soak is one soak: a data directory, the people who talk, and what they and the provider have seen.
type soak struct {
	seed   uint64
	root   *testing.T
	dir    string
	people []*soakPerson
	model  *soakProvider

	life  int        // the number of the process that holds the data file; changed only while none does
	dice  *rand.Rand // of the lives
	kills []int      // the lives that ended by kill -9

	mu     sync.Mutex
	counts map[string]int
	logged map[string]int  // lines of the log at levels above info, by their message
	acked  map[string]bool // words that were taken, by their mark
	denied map[string]bool // words of which it was said that they were not taken
	again  map[string]bool // cards for which somebody has asked to run the call again
	lasts  map[string]uint64
	most   struct{ memory, files, size int }
}

// count counts something for the report.
func (s *soak) count(what string) { s.add(what, 1) }

func (s *soak) add(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what] += n
}

// ack notes that words were taken: from now on they must be answered.
func (s *soak) ack(mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked[mark] = true
}

// deny notes that words were not taken: they must never be answered.
func (s *soak) deny(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mark := range soakMark.FindAllString(text, -1) {
		s.denied[mark] = true
	}
}

// diceOf are the choices of a part of the soak, the same for the same seed.
func (s *soak) diceOf(part string) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(part)) // a hash takes everything
	return rand.New(rand.NewPCG(s.seed, sum.Sum64()))
}

// TestSoak runs the program at random for as long as NUDGE_SOAK says, such as "10m": people talk, correct, stop and
// decide, the model answers anything, heartbeats wake, and the process is killed again and again. What must hold is
// looked at all along, and once more when everything has settled. NUDGE_SOAK_SEED=N makes the choices of an earlier
// soak again, though not its timing. Give -timeout 0 with it; -v shows each life of the process.
func TestSoak(t *testing.T) {
	text := os.Getenv(soakVariable)
	if text == "" {
		t.Skipf("set %s to a duration, such as 10m, to run the soak", soakVariable)
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", soakVariable, err)
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(soakSeedVariable); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", soakSeedVariable, err)
		}
	}
	t.Logf("%s=%d", soakSeedVariable, seed)
	t.Setenv("NUDGE_SOAK_TOKEN", soakToken)
	s := newSoak(t, seed)
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); {
		s.life++
		t.Run(fmt.Sprint("life ", s.life), s.live)
	}
	if t.Failed() {
		t.Logf("the data file is kept as it was then, in %s", s.keep())
	}
	rec := s.settle(t)
	if rec != nil {
		rec.judge(t, s)
	}
	if t.Failed() {
		t.Logf("the data file is kept as it is at the end, in %s", s.keep())
	}
	s.report(t, rec)
}

func newSoak(t *testing.T, seed uint64) *soak {
	s := &soak{
		seed: seed, root: t, dir: t.TempDir(), counts: map[string]int{}, logged: map[string]int{}, acked: map[string]bool{}, denied: map[string]bool{},
		again: map[string]bool{}, lasts: map[string]uint64{},
	}
	s.dice, s.model = s.diceOf("lives"), newSoakProvider(s)
	for _, who := range []*soakPerson{
		{name: "ann"}, {name: "bob"}, {name: "carl", rude: true},
		{name: "dora", api: true}, {name: "emil", api: true, sessions: []string{"", "s1"}},
	} {
		who.soak, who.dice, who.cards = s, s.diceOf(who.name), map[string]line{}
		s.people = append(s.people, who)
	}
	return s
}

// keep copies the data file to a folder that outlives the test.
func (s *soak) keep() string {
	dir, err := os.MkdirTemp("", "nudge-soak-")
	if err == nil {
		var data []byte
		if data, err = os.ReadFile(place{dir: s.dir}.dataFile()); err == nil {
			err = os.WriteFile(filepath.Join(dir, dataFileName), data, 0o600)
		}
	}
	if err != nil {
		return fmt.Sprint(dir, " (without it: ", err, ")")
	}
	return dir
}

// place is the soak's, with a provider of this life's, so that what it recorded is forgotten with the life.
func (s *soak) place(t *testing.T) place {
	t.Helper()
	server := modeltest.NewServer(t, s.model.answer)
	p := place{t: t, dir: s.dir, config: filepath.Join(s.dir, "config.toml")}
	config := fmt.Sprintf(soakConfig, server.URL(), soakTurnCost, float64(soakDailyCost))
	if err := errors.Join(os.MkdirAll(p.workspace(""), 0o700), os.WriteFile(p.config, []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	return p
}

// live is one life of the process: it starts, people talk through it, and it ends, mostly badly.
func (s *soak) live(t *testing.T) {
	p := s.place(t)
	if s.life > 1 && s.dice.IntN(100) < 12 {
		s.killEarly(t, p)
		return
	}
	h := s.hold(t, p, s.dice.IntN(100) < 20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var busy sync.WaitGroup
	for _, who := range s.people {
		if !who.api || h.origin != "" {
			busy.Go(func() { who.live(ctx, h) })
		}
	}
	busy.Go(func() { s.flip(ctx, s.diceOf(fmt.Sprint("flag ", s.life))) })
	busy.Go(func() { s.look(ctx, t, h, s.diceOf(fmt.Sprint("look ", s.life))) })
	pause(ctx, time.Duration(500+s.dice.IntN(9500))*time.Millisecond)
	s.measure(t, h)
	s.choose(h)
	h.ending.Store(true)
	cancel()
	s.end(t, h)
	busy.Wait()
	s.afterwards(t, p, h)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// killEarly starts the program and kills it while it starts.
func (s *soak) killEarly(t *testing.T, p place) {
	h := &soakHolder{place: p, life: s.life}
	h.start(p.command("serve"), nil)
	pause(t.Context(), time.Duration(s.dice.IntN(400))*time.Millisecond)
	h.kill()
	<-h.ended
	s.kills = append(s.kills, s.life)
	s.count("kills while starting")
	s.afterwards(t, p, h)
}

// hold starts the process that holds the data file: serve, or ann's chat.
func (s *soak) hold(t *testing.T, p place, chat bool) *soakHolder {
	t.Helper()
	h := &soakHolder{place: p, life: s.life}
	if chat {
		h.talk = p.chat()
		h.cmd = h.talk.cmd
		h.talk.say("/status")
		h.talk.until("notice", func(l line) bool { return strings.Contains(l.Text, "The session is ") })
		s.count("lives of chat")
		return h
	}
	first := make(chan string, 1)
	h.start(p.command("serve"), first)
	select {
	case line := <-first:
		found := opening.FindStringSubmatch(line)
		if found == nil {
			t.Fatalf("serve printed %q and:\n%s", line, h.errs())
		}
		h.origin = found[1]
	case <-time.After(patience):
		t.Fatal("serve printed nothing")
	}
	s.count("lives of serve")
	return h
}

// choose says how the life's process will end.
func (s *soak) choose(h *soakHolder) {
	switch how := s.dice.IntN(100); {
	case how < 52:
		h.how = soakKill
		s.kills = append(s.kills, s.life)
	case h.talk != nil && how < 76:
		h.how = soakClose
	default:
		h.how = soakTerm
	}
	s.count("ends by " + h.how)
}

// end ends the life's process. Whoever reads what a chat prints waits for its end.
func (s *soak) end(t *testing.T, h *soakHolder) {
	t.Helper()
	switch h.how {
	case soakKill:
		h.kill()
	case soakTerm:
		if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("end the process: %v", err)
		}
	}
	if h.talk != nil {
		return
	}
	select {
	case <-h.ended:
		if status := h.cmd.ProcessState.ExitCode(); h.how == soakTerm && status != 0 {
			t.Errorf("after SIGTERM the exit status is %d:\n%s", status, h.errs())
		}
	case <-time.After(patience):
		t.Errorf("SIGTERM did not end it")
		h.kill()
		<-h.ended
	}
}

// flip puts the flag up and takes it down.
func (s *soak) flip(ctx context.Context, dice *rand.Rand) {
	flag := filepath.Join(s.dir, "data", "flag")
	for ctx.Err() == nil {
		pause(ctx, time.Duration(300+dice.IntN(3000))*time.Millisecond)
		if os.Remove(flag) != nil {
			_ = os.WriteFile(flag, nil, 0o600) // the next look tries again
		}
	}
}

// look uses the commands that look into a running program. One that the program's end cuts off may fail.
func (s *soak) look(ctx context.Context, t *testing.T, h *soakHolder, dice *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(dice.IntN(5000))*time.Millisecond)
		if ctx.Err() != nil {
			return
		}
		args := [][]string{{"check"}, {"check"}, {"backup", filepath.Join(t.TempDir(), "copy.db")}, {"sessions"}, {"why", "flag"}}[dice.IntN(5)]
		out, status := h.place.run(args...)
		switch {
		case status == 0:
			s.count(args[0] + " while running")
		case h.ending.Load():
			s.count("looks that were cut off")
		default:
			t.Errorf("%v (status %d) printed:\n%s", args, status, out)
		}
		if args[0] == "backup" {
			s.restore(t, h.place, args[1])
		}
	}
}

// restore restores a backup elsewhere, if there is one, and checks it.
func (s *soak) restore(t *testing.T, p place, backup string) {
	if _, err := os.Stat(backup); errors.Is(err, fs.ErrNotExist) {
		return // it was cut off
	}
	elsewhere := place{t: t, dir: t.TempDir(), config: p.config}
	if err := os.MkdirAll(filepath.Join(elsewhere.dir, "data"), 0o700); err != nil {
		t.Error(err)
		return
	}
	for _, args := range [][]string{{"restore", backup}, {"check"}} {
		if out, status := elsewhere.run(args...); status != 0 || args[0] == "restore" && strings.Contains(out, "problems") {
			t.Errorf("%s of a backup (status %d) printed:\n%s", args[0], status, out)
			return
		}
	}
	s.count("backups restored and checked")
}

// alarming is what no process may write.
var alarming = regexp.MustCompile(`(?m)panic|DATA RACE|fatal error|^goroutine \d+`)

// logLine is a line of the log above level info.
var logLine = regexp.MustCompile(`level=(WARN|ERROR) msg=("(?:[^"\\]|\\.)*"|\S+).*`)

// borne are the errors that a soak brings about itself.
var borne = []string{`ERROR "nothing that was unfinished is taken up"`}

// afterwards looks at what a life has left.
func (s *soak) afterwards(t *testing.T, p place, h *soakHolder) {
	t.Helper()
	errs := h.errs()
	if alarming.MatchString(errs) {
		t.Errorf("the process wrote:\n%s", errs)
	}
	for _, found := range logLine.FindAllStringSubmatch(errs, -1) {
		what := found[1] + " " + found[2]
		cutOff := h.how == soakTerm && strings.Contains(found[0], "context canceled")
		if s.logged[what]++; found[1] == "ERROR" && !slices.Contains(borne, what) && !cutOff {
			t.Errorf("the log has: %s", found[0])
		}
	}
	file := place{dir: s.dir}.dataFile()
	info, err := os.Stat(file)
	if err != nil {
		if s.counts["lives of serve"]+s.counts["lives of chat"] > 0 {
			t.Errorf("the data file is gone: %v", err)
		}
		return
	}
	s.most.size = max(s.most.size, int(info.Size()))
	if out, status := p.run("check"); status != 0 {
		t.Errorf("check after life %d (status %d) printed:\n%s", s.life, status, out)
	}
	s.count("checks at rest")
	s.readKept(t)
}

// measure notes what the process takes up.
func (s *soak) measure(t *testing.T, h *soakHolder) {
	l := loaded{cmd: h.cmd}
	s.most.memory, s.most.files = max(s.most.memory, l.status("VmHWM")), max(s.most.files, l.files())
	if s.most.memory > soakMemory || s.most.files > soakFiles {
		t.Errorf("the process has taken %d KB and has %d files open", s.most.memory, s.most.files)
	}
}

// settle lets everything come to its end while the model is calm, and reads the record of it all. It gives none when
// something does not settle.
func (s *soak) settle(t *testing.T) *soakRecord {
	s.model.calm.Store(true)
	_ = os.Remove(filepath.Join(s.dir, "data", "flag")) // it may be down
	var rec *soakRecord
	for round := range soakRounds {
		s.life++
		ok := t.Run(fmt.Sprint("quiet ", round+1), func(t *testing.T) {
			p := s.place(t)
			h := s.hold(t, p, false)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var busy sync.WaitGroup
			for _, who := range s.people {
				if !who.api {
					busy.Go(func() { who.listen(ctx, h) })
				}
			}
			pause(ctx, 13*time.Second) // longer than any card waits
			cancel()
			busy.Wait()
			h.how = soakTerm
			s.end(t, h)
			s.afterwards(t, p, h)
			rec = readSoakRecord(t, place{dir: s.dir}.dataFile())
		})
		switch {
		case !ok, rec.rest() == "":
			return rec
		}
	}
	t.Errorf("after %d rounds of quiet there is still %s", soakRounds, rec.rest())
	return rec
}

// report prints what the soak came to.
func (s *soak) report(t *testing.T, rec *soakRecord) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%d, %d lives", soakSeedVariable, s.seed, s.life)
	for _, table := range []map[string]int{s.counts, s.model.counted(), s.logged} {
		for _, what := range slices.Sorted(maps.Keys(table)) {
			fmt.Fprintf(&b, "\n%6d  %s", table[what], what)
		}
	}
	fmt.Fprintf(&b, "\nat most %d KB of memory, %d open files, a data file of %s", s.most.memory, s.most.files, megabytes(int64(s.most.size)))
	if rec != nil {
		rec.tell(&b)
	}
	t.Log(b.String())
}

// The ways in which a life ends.
const (
	soakKill  = "kill -9"
	soakTerm  = "SIGTERM"
	soakClose = "the end of the input" // of a chat
)

// soakHolder is the process that holds the data file.
type soakHolder struct {
	place  place
	life   int
	cmd    *exec.Cmd
	origin string // of the console; "" where there is none
	talk   *talk  // ann's, when it is a chat
	how    string // it ends; known once ending is true
	ending atomic.Bool
	ended  chan struct{} // closed when it has been waited for; not used of a chat

	mu      sync.Mutex
	written strings.Builder // to standard error
}

// start starts serve. The first line that it prints goes to first.
func (h *soakHolder) start(cmd *exec.Cmd, first chan<- string) {
	h.cmd, h.ended = cmd, make(chan struct{})
	cmd.Stderr = &lockedWriter{mu: &h.mu, w: &h.written}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.place.t.Fatal(err)
	}
	h.place.t.Cleanup(func() { _ = cmd.Process.Kill() }) // one that has ended needs none
	go func() {
		defer close(h.ended)
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		if first != nil {
			first <- strings.TrimSpace(line)
		}
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait() // the status is looked at by who waits
	}()
}

// killed reports whether it was killed, or is about to be.
func (h *soakHolder) killed() bool { return h.ending.Load() && h.how == soakKill }

// kill is kill -9.
func (h *soakHolder) kill() { _ = h.cmd.Process.Kill() }

// errs is what it wrote to standard error.
func (h *soakHolder) errs() string {
	if h.talk != nil {
		h.talk.mu.Lock()
		defer h.talk.mu.Unlock()
		return h.talk.errs.String()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.written.String()
}
