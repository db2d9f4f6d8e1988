package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent"
)

// patience is how long something may take that takes milliseconds on an idle machine.
const patience = 30 * time.Second

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// tab is a browser's tab: it follows the stream as the page does, and does what its buttons do.
type tab struct {
	t      *testing.T
	name   string // begins the ids of what is done in it
	client *http.Client
	stop   context.CancelFunc
	ended  chan struct{}

	mu        sync.Mutex
	server    *Server // as the browser knows it; changes with a restart
	last      string  // the newest event's id
	cut       context.CancelFunc
	lines     []line
	snapshots int
	shot      snapshot
	acts      int
}

// openTab opens a tab on a server, which may be nil until at is called.
func openTab(t *testing.T, s *Server) *tab {
	ctx, stop := context.WithCancel(context.Background())
	b := &tab{t: t, name: rand.Text(), client: &http.Client{Transport: &http.Transport{}}, stop: stop, ended: make(chan struct{}), server: s}
	go b.follow(ctx)
	t.Cleanup(b.close)
	return b
}

func (b *tab) close() {
	b.stop()
	<-b.ended
	b.client.CloseIdleConnections()
}

func (b *tab) at(s *Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.server = s
}

func (b *tab) where() *Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server
}

// signed is a request as the page of a server makes it.
func signed(ctx context.Context, s *Server, method, path string, body []byte) *http.Request {
	base := "http://" + s.Address()
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.AddCookie(&http.Cookie{Name: s.cookieName(), Value: s.cookieValue()})
	req.Header.Set("Origin", base)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

// follow reads the stream and begins again when it ends, as browsers do.
func (b *tab) follow(ctx context.Context) {
	defer close(b.ended)
	for ctx.Err() == nil {
		b.read(ctx)
		again := time.NewTimer(2 * time.Millisecond)
		select {
		case <-ctx.Done():
		case <-again.C:
		}
		again.Stop()
	}
}

func (b *tab) read(ctx context.Context) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	b.mu.Lock()
	s, last := b.server, b.last
	b.cut = cut
	b.mu.Unlock()
	if s == nil {
		return
	}
	req := signed(ctx, s, http.MethodGet, "/api/events", nil)
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return
	}
	for e := range events(res.Body) {
		if !b.take(e) {
			return
		}
	}
}

// event is a server-sent event.
type event struct{ id, kind, data string }

// events reads events until the stream ends.
func events(body io.Reader) func(func(event) bool) {
	return func(yield func(event) bool) {
		in := bufio.NewReader(body)
		var e event
		for {
			text, err := in.ReadString('\n')
			if err != nil {
				return
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ": ")
			switch {
			case name == "id":
				e.id = value
			case name == "event":
				e.kind = value
			case name == "data":
				e.data = value
			case text == "\n":
				if e.data != "" && !yield(e) {
					return
				}
				e = event{}
			}
		}
	}
}

// take shows an event as the page does, and reports whether the stream goes on.
func (b *tab) take(e event) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = e.id
	if e.kind == "snapshot" {
		b.shot, b.lines = snapshot{}, nil
		b.snapshots++
		if err := json.Unmarshal([]byte(e.data), &b.shot); err != nil {
			b.t.Errorf("a snapshot cannot be read: %v", err)
		}
		for _, l := range b.shot.Lines {
			b.show(l)
		}
		return true
	}
	var l line
	if err := json.Unmarshal([]byte(e.data), &l); err != nil {
		b.t.Errorf("a line cannot be read: %v", err)
	}
	if l.Kind == reload {
		b.last = ""
		return false
	}
	b.show(l)
	return true
}

func (b *tab) show(l line) {
	known := func(other line) bool {
		return l.Parcel != "" && other.Parcel == l.Parcel || (l.Kind == agent.Approval || l.Kind == agent.Ask) && other.Kind == l.Kind && other.ID == l.ID
	}
	if !slices.ContainsFunc(b.lines, known) {
		b.lines = append(b.lines, l)
	}
}

// shown is what stands in the tab, of the given kinds or all.
func (b *tab) shown(kinds ...agent.Kind) []line {
	b.mu.Lock()
	defer b.mu.Unlock()
	var only []line
	for _, l := range b.lines {
		if len(kinds) == 0 || slices.Contains(kinds, l.Kind) {
			only = append(only, l)
		}
	}
	return only
}

// texts are the texts of lines.
func texts(lines []line) []string {
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.Text)
	}
	return texts
}

// sees waits until a line of a kind holds a text.
func (b *tab) sees(kind agent.Kind, text string) (found line) {
	b.t.Helper()
	await(b.t, fmt.Sprintf("a %s with %q is shown", kind, text), func() bool {
		for _, l := range b.shown(kind) {
			if strings.Contains(l.Text+l.Tool+l.Shown, text) {
				found = l
				return true
			}
		}
		return false
	})
	return found
}

func (b *tab) snapshotsSeen() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.snapshots
}

// drop cuts the stream.
func (b *tab) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut != nil {
		b.cut()
	}
}

// newID names the next act of the tab.
func (b *tab) newID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acts++
	return fmt.Sprintf("%s-%d", b.name, b.acts)
}

// post does what a button does, and tries again while the server is away or starting, as the page does.
func (b *tab) post(path string, body map[string]any) (status int, answered string) {
	data, err := json.Marshal(body)
	if err != nil {
		b.t.Error(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		res, err := b.client.Do(signed(context.Background(), b.where(), http.MethodPost, path, data))
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.Header.Get("Retry-After") == "" {
			return res.StatusCode, string(text)
		}
	}
	return 0, "the server stayed away"
}

// must is post for what has to be taken.
func (b *tab) must(path string, body map[string]any) {
	b.t.Helper()
	if body["id"] == nil {
		body["id"] = b.newID()
	}
	if status, answered := b.post(path, body); status != http.StatusOK {
		b.t.Fatalf("%s %v: status %d: %s", path, body, status, answered)
	}
}

func (b *tab) say(text string) {
	b.t.Helper()
	b.must("/api/say", map[string]any{"text": text})
}
