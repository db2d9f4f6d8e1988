package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/memory"
	"nudge/memory/bolt"
)

// load is how much TestLoad asks for.
type load struct {
	rounds             int
	sessions, messages int           // at once, and how many each says a round
	people             int           // at once
	beside             int           // of them, those who ask each floor
	latency            time.Duration // of one model call of theirs
}

// sized is the load that is measured with NUDGE_LOAD=1, and otherwise one that only shows that so many are served. With what the
// floors take nothing is compared then.
func sized() load {
	if os.Getenv("NUDGE_LOAD") != "" {
		return load{rounds: 5, sessions: 64, messages: 20, people: 1000, beside: 1000, latency: time.Second}
	}
	return load{rounds: 1, sessions: 4, messages: 2, people: 300, beside: 8, latency: time.Millisecond}
}

// asking is how many people ask the program, which is the first, or a floor.
func (l load) asking(which int) int {
	if which == 0 {
		return l.people
	}
	return l.beside
}

// loadToken lets the test's requests in.
const loadToken = "load-token"

// loadModel speaks as much of Chat Completions as load needs. Before its answer it asks for a tool for each "again" of
// the message.
type loadModel struct {
	*httptest.Server
	latency time.Duration // changed only while nothing is asked
}

func newLoadModel(t *testing.T) *loadModel {
	m := &loadModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(func() { m.CloseClientConnections(); m.Close() })
	return m
}

// loadRequest is what the model and the floor read and write of Chat Completions.
type loadRequest struct {
	Model    string        `json:"model"`
	Stream   bool          `json:"stream,omitempty"`
	Messages []loadMessage `json:"messages"`
}

type loadMessage struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Calls   []loadCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

type loadCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (m *loadModel) answer(w http.ResponseWriter, r *http.Request) {
	var req loadRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	results, steps := 0, 0
	for _, message := range req.Messages {
		switch message.Role {
		case "user":
			results, steps = 0, strings.Count(message.Content, "again")
		case "tool":
			results++
		}
	}
	reply, reason := loadMessage{Role: "assistant", Content: "done"}, "stop"
	if results < steps {
		c := loadCall{ID: fmt.Sprint("call_", len(req.Messages)), Type: "function"}
		c.Function.Name, c.Function.Arguments = "read_file", fmt.Sprintf(`{"path":"%d.txt"}`, results)
		reply.Content, reply.Calls, reason = "", []loadCall{c}, "tool_calls"
	}
	select {
	case <-time.After(m.latency):
	case <-r.Context().Done():
		return
	}
	part := map[bool]string{true: "delta", false: "message"}[req.Stream]
	data, _ := json.Marshal(map[string]any{
		"model": "m", "choices": []any{map[string]any{"index": 0, part: reply, "finish_reason": reason}},
		"usage": map[string]int{"prompt_tokens": 100, "completion_tokens": 10},
	})
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data) // who went away needs no answer
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", data)
}

// loaded is a process under load.
type loaded struct {
	name    string
	cmd     *exec.Cmd
	address string // http://host:port
	client  *http.Client
}

// startLoaded starts a process that prints its address, and ends it when the test ends.
func startLoaded(t *testing.T, name string, cmd *exec.Cmd) *loaded {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	l := &loaded{name: name, cmd: cmd, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}}
	t.Cleanup(func() {
		l.client.CloseIdleConnections()
		_ = cmd.Process.Kill() // one that has ended already needs none
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, errs.String())
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if l.address = regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text()); l.address != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return l
		}
	}
	t.Fatalf("%s did not start", name)
	return nil
}

func startNudge(t *testing.T, m *loadModel) *loaded {
	t.Helper()
	p := place{t: t, dir: t.TempDir()}
	p.config = filepath.Join(p.dir, "config.toml")
	config := fmt.Sprintf("[model]\nprovider = \"openai\"\nbase_url = %q\nname = \"m\"\n[web]\nlisten = \"127.0.0.1:0\"\napi_token_env = \"NUDGE_LOAD_TOKEN\"\n"+
		"[access]\nallow = [\"api:*\"]\n[workspace]\nscope = \"shared\"\n", m.URL+"/v1")
	err := errors.Join(os.MkdirAll(p.workspace(""), 0o700), os.WriteFile(p.config, []byte(config), 0o600))
	for _, file := range []string{"0.txt", "1.txt"} {
		err = errors.Join(err, os.WriteFile(p.workspace(file), []byte("words"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := p.command("serve")
	if program := os.Getenv("NUDGE_LOAD_PROGRAM"); program != "" {
		cmd.Path = program
	}
	cmd.Env = append(cmd.Env, "NUDGE_LOAD_TOKEN="+loadToken)
	return startLoaded(t, "nudge", cmd)
}

// floorVariable tells a test process that it is the floor, where its data file is, whom it asks, and whether it pays.
const floorVariable = "NUDGE_LOAD_FLOOR"

func startFloor(t *testing.T, m *loadModel, name string, paid bool) *loaded {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^TestLoadFloor$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %t", floorVariable, filepath.Join(t.TempDir(), "floor.db"), m.URL, paid))
	return startLoaded(t, name, cmd)
}

// post says something to a process and waits for the answer.
func (l *loaded) post(user, text string) error {
	body := fmt.Sprintf(`{"user":%q,"text":%q}`, user, text)
	req, err := http.NewRequest(http.MethodPost, l.address+"/api/messages", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+loadToken)
	answer, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(data, []byte(`"done"`)) {
		return fmt.Errorf("%s answers %s: %s (%w)", l.name, answer.Status, data, err)
	}
	return nil
}

// sideBySide does something n times at once and gives, shortest first, after how long each was done.
func sideBySide(t *testing.T, n int, do func(i int) error) []time.Duration {
	t.Helper()
	took := make([]time.Duration, n)
	var group sync.WaitGroup
	began := time.Now()
	for i := range n {
		group.Go(func() {
			if err := do(i); err != nil {
				t.Error(err)
			}
			took[i] = time.Since(began)
		})
	}
	group.Wait()
	slices.Sort(took)
	return took
}

// status is a figure in KB of a process's status.
func (l *loaded) status(name string) int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.cmd.Process.Pid))
	found := regexp.MustCompile(name + `:\s+(\d+)`).FindSubmatch(data)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// files is how many files a process has open.
func (l *loaded) files() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", l.cmd.Process.Pid))
	return len(entries)
}

// TestLoad measures messages through POST /api/messages of the program, beside two floors: the smallest server that
// loses nothing, and one that also commits before the model is asked, since that costs money. All are processes of
// their own and take turns, so that a busy machine is as unfair to each. NUDGE_LOAD_PROGRAM names another program to
// measure than this one.
func TestLoad(t *testing.T) {
	size, m := sized(), newLoadModel(t)
	all := []*loaded{startNudge(t, m), startFloor(t, m, "the floor", false), startFloor(t, m, "the floor that pays", true)}
	measureMessages(t, size, all)
	m.latency = size.latency
	measurePeople(t, size, all)
}

// measureMessages lets sessions say one-step messages, one after the other in each.
func measureMessages(t *testing.T, size load, all []*loaded) {
	took := make([]time.Duration, len(all))
	for round := range size.rounds {
		for i, l := range all {
			each := sideBySide(t, size.sessions, func(s int) error {
				for range size.messages {
					if err := l.post(fmt.Sprintf("p%d-%d", s, round), "hello"); err != nil {
						return err
					}
				}
				return nil
			})
			took[i] += each[len(each)-1]
		}
	}
	n := size.sessions * size.messages * size.rounds
	for i, l := range all {
		t.Logf("%-20s %5d messages of %d sessions: %5.0f a second; nudge is at %.2f of it",
			l.name, n, size.sessions, float64(n)/took[i].Seconds(), took[i].Seconds()/took[0].Seconds())
	}
}

// measurePeople lets people say a message of three steps at the same moment.
func measurePeople(t *testing.T, size load, all []*loaded) {
	model := 3 * size.latency
	last, files := make([][]time.Duration, len(all)), make([]int, len(all))
	for round := range size.rounds {
		for i, l := range all {
			most, stop := make(chan int), make(chan struct{})
			go l.watch(stop, most)
			each := sideBySide(t, size.asking(i), func(i int) error { return l.post(fmt.Sprintf("q%d-%d", i, round), "do it again and again") })
			close(stop)
			last[i], files[i] = append(last[i], each[len(each)-1]), max(files[i], <-most)
		}
	}
	for i, l := range all {
		slices.Sort(last[i])
		ratio := func(d time.Duration) float64 { return d.Seconds() / model.Seconds() }
		t.Logf("%-20s %5d people × 3 steps × %v: last answer after %.2f × the model's time (%.2f to %.2f); %d MB and %d files at most",
			l.name, size.asking(i), size.latency, ratio(last[i][len(last[i])/2]), ratio(last[i][0]), ratio(last[i][len(last[i])-1]), l.status("VmHWM")>>10, files[i])
	}
}

// watch counts a process's open files until stop is closed, and then tells the highest number.
func (l *loaded) watch(stop <-chan struct{}, most chan<- int) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	n := 0
	for {
		n = max(n, l.files())
		select {
		case <-stop:
			most <- n
			return
		case <-look.C:
		}
	}
}

// TestLoadFloor is a floor, in a process that TestLoad started for it.
func TestLoadFloor(t *testing.T) {
	config := strings.Fields(os.Getenv(floorVariable))
	if len(config) != 3 {
		return
	}
	store, err := bolt.Open(config[0], bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &floor{store: store, url: config[1], paid: config[2] == "true", sessions: map[string]*floorSession{}}
	f.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	t.Fatal(http.Serve(listener, f))
}

// floor is the smallest server that loses nothing: it commits the message, before every effect, and at the end. With
// paid, a model call counts as an effect.
type floor struct {
	store  memory.Store
	client *http.Client
	url    string
	paid   bool

	mu       sync.Mutex
	sessions map[string]*floorSession
}

type floorSession struct {
	mu      sync.Mutex // held during a turn
	name    string
	history []loadMessage
	fresh   []loadMessage // not committed yet
	spoken  uint64        // the parcel of the last answer, which leaves the outbox with the next message
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var said struct{ User, Text string }
	if err := json.NewDecoder(r.Body).Decode(&said); err != nil || r.Header.Get("Authorization") != "Bearer "+loadToken {
		http.Error(w, "no message", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	s := f.sessions[said.User]
	if s == nil {
		s = &floorSession{name: said.User}
		f.sessions[said.User] = s
	}
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := f.turn(r.Context(), s, said.Text)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"kind": "final", "text": text}) // who is gone gets no answer
}

// turn receives a message and answers it.
func (f *floor) turn(ctx context.Context, s *floorSession, text string) (answer string, err error) {
	var mail uint64
	err = f.store.Update(ctx, func(tx memory.Tx) (err error) {
		if s.spoken > 0 {
			if err := tx.Outbox().Remove(s.spoken); err != nil {
				return err
			}
		}
		mail, err = tx.Inbox().Put(s.name, []byte(text))
		return err
	})
	if err != nil {
		return "", err
	}
	s.fresh = append(s.fresh, loadMessage{Role: "user", Content: text})
	also := func(tx memory.Tx) error { return tx.Inbox().Remove(s.name, mail) }
	for {
		if f.paid {
			if err := f.keep(ctx, s, also); err != nil {
				return "", err
			}
			also = func(memory.Tx) error { return nil }
		}
		reply, err := f.ask(ctx, append(slices.Clone(s.history), s.fresh...))
		if err != nil {
			return "", err
		}
		s.fresh = append(s.fresh, reply)
		before := also
		if len(reply.Calls) == 0 {
			also = func(tx memory.Tx) (err error) {
				s.spoken, err = tx.Outbox().Put(s.name, []byte(reply.Content))
				return errors.Join(err, before(tx))
			}
		}
		if err := f.keep(ctx, s, also); err != nil {
			return "", err
		}
		if len(reply.Calls) == 0 {
			return reply.Content, nil
		}
		also = func(memory.Tx) error { return nil }
		for _, c := range reply.Calls {
			s.fresh = append(s.fresh, loadMessage{Role: "tool", CallID: c.ID, Content: "words"})
		}
	}
}

// keep commits what is fresh.
func (f *floor) keep(ctx context.Context, s *floorSession, also func(memory.Tx) error) error {
	err := f.store.Update(ctx, func(tx memory.Tx) error {
		var entries []memory.Entry
		for _, l := range s.fresh {
			data, err := json.Marshal(l)
			if err != nil {
				return err
			}
			entries = append(entries, memory.Entry{Kind: l.Role, At: time.Now(), Data: data})
		}
		if len(entries) > 0 {
			if _, err := tx.Journal().Append(s.name, entries...); err != nil {
				return err
			}
		}
		return also(tx)
	})
	if err == nil {
		s.history, s.fresh = append(s.history, s.fresh...), nil
	}
	return err
}

func (f *floor) ask(ctx context.Context, messages []loadMessage) (loadMessage, error) {
	body, err := json.Marshal(loadRequest{Model: "m", Messages: messages})
	if err != nil {
		return loadMessage{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return loadMessage{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return loadMessage{}, err
	}
	defer resp.Body.Close()
	var answer struct {
		Choices []struct{ Message loadMessage } `json:"choices"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Choices) == 0 {
		return loadMessage{}, fmt.Errorf("read the answer: %w", err)
	}
	return answer.Choices[0].Message, nil
}
