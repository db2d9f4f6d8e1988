package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
)

// asked is a request of a program.
func asked(ctx context.Context, s *Server, user, session, text string) *http.Request {
	body, _ := json.Marshal(map[string]string{"user": user, "session": session, "text": text})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Address()+"/api/messages", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+apiToken)
	return req
}

// ask is the answer to a request of a program.
func (p *program) ask(user, text string) agent.Reply {
	p.t.Helper()
	res, body := send(p.t, asked(p.t.Context(), p.server, user, "", text))
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("%q: status %d: %s", text, res.StatusCode, body)
	}
	var r agent.Reply
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		p.t.Fatalf("%q: %v in %s", text, err, body)
	}
	return r
}

func TestMessages(t *testing.T) {
	p := startProgram(t, nil)
	p.write("notes.md", "buy milk")
	if r := p.ask("ci", "how full is the disk?"); r.Kind != agent.Final || !strings.Contains(r.Text, "43%") {
		t.Errorf("the answer is %+v", r)
	}
	card := p.ask("ci", "delete notes.md")
	if card.Kind != agent.Approval || card.Tool != "delete_file" || len(card.MayDecide) != 1 || card.MayDecide[0] != "api:ci" {
		t.Fatalf("the answer is %+v", card)
	}
	if r := p.ask("ci", "/status"); r.Kind != agent.Notice || !strings.Contains(r.Text, "Waiting for you: 1 card.") {
		t.Errorf("the answer to a command is %+v", r)
	}
	if r := p.ask("eve", "/approve "+card.ID); r.Kind != agent.Fault || !strings.Contains(r.Text, "not yours") {
		t.Errorf("a stranger is told %+v", r)
	}
	if r := p.ask("ci", "/approve nonsense"); r.Kind != agent.Fault {
		t.Errorf("an unknown card gives %+v", r)
	}
	if r := p.ask("ci", "/approve "+card.ID); r.Kind != agent.Final || !strings.Contains(r.Text, "notes.md") {
		t.Errorf("the answer to an approval is %+v", r)
	}
	if p.exists("notes.md") {
		t.Error("an approved call did not run")
	}
	if r := p.ask("ci", "/approve "+card.ID); r.Kind != agent.Notice || !strings.Contains(r.Text, "already approved") {
		t.Errorf("a late approval gives %+v", r)
	}
	if r := p.ask("ci", "/nonsense"); r.Kind != agent.Fault {
		t.Errorf("an unknown command gives %+v", r)
	}
	if r := p.ask("ci", "stop"); r.Kind != agent.Notice {
		t.Errorf("a stop of nothing gives %+v", r)
	}
}

// TestWaitingMessages decides while more than one thing waits: every request ends.
func TestWaitingMessages(t *testing.T) {
	p := startProgram(t, nil)
	p.write("a.md", "a")
	p.write("b.md", "b")
	card := p.ask("ci", "delete a.md and delete b.md")
	if card.Kind != agent.Approval {
		t.Fatalf("the answer is %+v", card)
	}
	if r := p.ask("ci", "/edit "+card.ID+` {"nonsense": 1}`); r.Kind != agent.Fault || !strings.Contains(r.Text, "do not fit") {
		t.Errorf("an edit that does not fit gives %+v", r)
	}
	if r := p.ask("ci", "never mind, how full is the disk?"); r.Kind != agent.Final {
		t.Errorf("words instead of a decision give %+v", r)
	}
	if r := p.ask("ci", "/approve "+card.ID); r.Kind != agent.Notice || !strings.Contains(r.Text, "withdrawn") {
		t.Errorf("a late approval gives %+v", r)
	}
	if !p.exists("a.md") || !p.exists("b.md") {
		t.Error("a withdrawn call ran")
	}
}

// TestDecidingForOthers decides cards of another person's session: the request ends with what was decided, however it was said
// and is answered, and holds no place after.
func TestDecidingForOthers(t *testing.T) {
	p := startProgram(t, nil)
	p.end()
	p.policy = map[string]agent.Policy{"delete_file": agent.PolicySecond}
	p.start()
	for i, test := range []struct{ name, command, kind string }{
		{"by its id", "/approve ID", "application/json"},
		{"denied with words", "/deny ID keep it", "application/json"},
		{"the only one", "/approve", "application/json"},
		{"as a stream", "/approve ID", "text/event-stream"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p.write("notes.md", "buy milk")
			p.ask("ci"+strconv.Itoa(i), "delete notes.md") // parked: its turn goes on
			id := p.waits(t)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // reached only where the request never ends
			defer cancel()
			req := asked(ctx, p.server, "eve", "", strings.Replace(test.command, "ID", id, 1))
			req.Header.Set("Accept", test.kind)
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			res, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body) // to its end
			if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"kind":"decided"`) || !strings.Contains(string(body), id) {
				t.Errorf("status %d: %s (error %v)", res.StatusCode, body, err)
			}
			await(t, "no place is held", func() bool { return len(p.server.calls) == 0 })
			await(t, "what was decided is done", func() bool { return strings.HasPrefix(test.command, "/deny") == p.exists("notes.md") })
		})
	}
}

// waits is the id of the one card that waits.
func (p *program) waits(t *testing.T) (id string) {
	t.Helper()
	err := p.store.View(context.Background(), func(tx memory.Tx) error {
		return agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			id = w.Reply.ID
			return nil
		})
	})
	if err != nil || id == "" {
		t.Fatalf("no card waits (error %v)", err)
	}
	return id
}

// TestSteeringMessage sends words while an earlier request waits: both are answered, by the same turn.
func TestSteeringMessage(t *testing.T) {
	p := startProgram(t, nil)
	lines := p.stream(t, "ci", "wait 10 seconds")
	p.until(lines, agent.Progress)
	second := p.stream(t, "ci", "no, write better.md saying keep it")
	if mark := p.until(second, agent.SteerMark); mark.State != agent.Stored {
		t.Errorf("the receipt is %+v", mark)
	}
	p.write("go", "")
	for _, lines := range []<-chan agent.Reply{lines, second} {
		if r := p.until(lines, agent.Final); !strings.Contains(r.Text, "better.md") {
			t.Errorf("the answer is %+v", r)
		}
		p.until(lines, agent.SettledMark)
		if _, more := <-lines; more {
			t.Error("the stream goes on after the turn was settled")
		}
	}
}

// stream begins a request that is answered line by line.
func (p *program) stream(t *testing.T, user, text string) <-chan agent.Reply {
	t.Helper()
	req := asked(t.Context(), p.server, user, "", text)
	req.Header.Set("Accept", "text/event-stream")
	transport := &http.Transport{}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan agent.Reply, 1000)
	go func() {
		defer transport.CloseIdleConnections()
		defer close(lines)
		defer res.Body.Close()
		for e := range events(res.Body) {
			var r agent.Reply
			if err := json.Unmarshal([]byte(e.data), &r); err != nil {
				t.Errorf("a line cannot be read: %v", err)
			}
			lines <- r
		}
	}()
	return lines
}

// until is the next line of a kind.
func (p *program) until(lines <-chan agent.Reply, kind agent.Kind) agent.Reply {
	p.t.Helper()
	for r := range lines {
		if r.Kind == kind {
			return r
		}
	}
	p.t.Fatalf("the stream ended without a %s", kind)
	return agent.Reply{}
}

// TestGone goes away in the middle of a turn, which goes on.
func TestGone(t *testing.T) {
	p := startProgram(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	req := asked(ctx, p.server, "ci", "nightly", "wait 10 seconds and then write done.md saying done")
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	for e := range events(res.Body) {
		if strings.Contains(e.data, `"progress"`) {
			break
		}
	}
	leave()
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	p.write("go", "")
	await(t, "the turn is done", func() bool { return p.exists("done.md") })
}

func TestMessageGuards(t *testing.T) {
	p := startProgram(t, nil)
	tests := []struct {
		name string
		body string
		with func(*http.Request)
		want int
	}{
		{"no token", "", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"a wrong token", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") }, 401},
		{"another scheme", "", func(r *http.Request) { r.Header.Set("Authorization", "Basic "+apiToken) }, 401},
		{"the login token", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+p.server.Token) }, 401},
		{"a cookie only", "", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.AddCookie(&http.Cookie{Name: p.server.cookieName(), Value: p.server.cookieValue()})
		}, 401},
		{"a page of others", "", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"a scheme in small letters", "", func(r *http.Request) { r.Header.Set("Authorization", "bearer "+apiToken) }, 400},
		{"no body", "", func(*http.Request) {}, 400},
		{"no user", `{"text":"hello"}`, func(*http.Request) {}, 400},
		{"another's name space", `{"user":"a:b","text":"hello"}`, func(*http.Request) {}, 400},
		{"another session's name", `{"user":"a","session":"b~2","text":"hello"}`, func(*http.Request) {}, 400},
		{"a name with a break", `{"user":"a\nb","text":"hello"}`, func(*http.Request) {}, 400},
		{"no text", `{"user":"a"}`, func(*http.Request) {}, 400},
		{"unknown keys", `{"user":"a","text":"hello","role":"owner"}`, func(*http.Request) {}, 400},
		{"no JSON", `user=a`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		{"GET", "", func(r *http.Request) { r.Method = http.MethodGet }, 405},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := asked(t.Context(), p.server, "", "", "")
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(test.body)), int64(len(test.body))
			test.with(req)
			res, body := send(t, req)
			if res.StatusCode != test.want || !strings.HasPrefix(body, `{"error":"`) {
				t.Errorf("status %d, want %d: %s", res.StatusCode, test.want, body)
			}
		})
	}
}

func TestAPIOff(t *testing.T) {
	p := startProgram(t, func(c *Config) { c.APIToken = "" })
	req := asked(t.Context(), p.server, "ci", "", "hello")
	req.Header.Set("Authorization", "Bearer ")
	if res, body := send(t, req); res.StatusCode != http.StatusNotFound {
		t.Errorf("status %d: %s", res.StatusCode, body)
	}
}

func TestTooManyMessages(t *testing.T) {
	p := startProgram(t, nil)
	for range maxCalls {
		p.server.calls <- struct{}{}
	}
	if res, body := send(t, asked(t.Context(), p.server, "ci", "", "hello")); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", res.StatusCode, body)
	}
	for range maxCalls {
		<-p.server.calls
	}
}

// TestMessagesOfMany lets users talk at once: each gets the answer to what they said.
func TestMessagesOfMany(t *testing.T) {
	p := startProgram(t, nil)
	p.end()
	p.model = &agenttest.Model{T: t, Script: func(req model.Request) model.Answer {
		said := agenttest.LastUser(req)
		return agenttest.Say("you said " + said[strings.LastIndexByte(said, '\n')+1:])
	}}
	p.start()
	var all sync.WaitGroup
	for _, user := range []string{"ann", "bob", "eve", "dan"} {
		all.Go(func() {
			for _, word := range []string{"one", "two", "three"} {
				text := user + " " + word
				res, err := http.DefaultTransport.RoundTrip(asked(t.Context(), p.server, user, "", text))
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if !strings.Contains(string(body), "you said "+text) {
					t.Errorf("%s got %s", text, body)
				}
			}
		})
	}
	all.Wait()
}

// TestTake goes through what a request may see, in the orders in which it may come.
func TestTake(t *testing.T) {
	kind := func(k agent.Kind, turn string) agent.Reply { return agent.Reply{Kind: k, Turn: turn} }
	steer := func(state string) agent.Reply {
		return agent.Reply{Kind: agent.SteerMark, Turn: "x", ID: "m", State: state}
	}
	other := agent.Reply{Kind: agent.SteerMark, Turn: "x", ID: "n", State: agent.SeenAt}
	tests := []struct {
		name, text, earlier string
		lines               []agent.Reply
		want                int // how many lines it takes
	}{
		{"a fresh turn", "hello", "", []agent.Reply{kind(agent.Progress, "y"), kind(agent.Final, "y"), kind(agent.SettledMark, "y")}, 3},
		{"an earlier turn ends first", "hello", "x", []agent.Reply{kind(agent.Final, "x"), kind(agent.SettledMark, "x"), kind(agent.Final, "y"), kind(agent.SettledMark, "y")}, 4},
		{"it steers", "hello", "x", []agent.Reply{steer(agent.Stored), steer(agent.SeenAt), kind(agent.Final, "x"), kind(agent.SettledMark, "x")}, 4},
		{"it comes too late to steer", "hello", "x", []agent.Reply{
			steer(agent.Stored), kind(agent.Final, "x"), kind(agent.SettledMark, "x"), steer(agent.NextTurn), kind(agent.Final, "y"), kind(agent.SettledMark, "y"),
		}, 6},
		{"another's words are seen", "hello", "x", []agent.Reply{
			steer(agent.Stored), other, kind(agent.SettledMark, "x"), steer(agent.NextTurn), kind(agent.WaitingMark, "y"),
		}, 5},
		{"it waits", "hello", "", []agent.Reply{kind(agent.Approval, "y"), kind(agent.WaitingMark, "y")}, 2},
		{"a command", "/status", "x", []agent.Reply{kind(agent.Notice, "")}, 1},
		{"a command during a turn's end", "/status", "x", []agent.Reply{kind(agent.Final, "x"), kind(agent.Notice, "")}, 2},
		{"a decision", "/approve c", "x", []agent.Reply{kind(agent.DecidedMark, "x"), kind(agent.Final, "x"), kind(agent.SettledMark, "x")}, 3},
		{"a late decision while a turn runs", "/approve c", "x", []agent.Reply{{Kind: agent.Notice, Turn: "x", ID: "c"}}, 1},
		{"a stop", "stop", "x", []agent.Reply{kind(agent.Notice, "x"), kind(agent.SettledMark, "x")}, 2},
		{"a stop of nothing", "/stop", "", []agent.Reply{kind(agent.Notice, "")}, 1},
	}
	for _, test := range tests {
		c := &call{earlier: test.earlier}
		c.event.ID, c.event.Text = "m", test.text
		took := 0
		for _, r := range test.lines {
			took++
			if c.take(r) {
				break
			}
		}
		if took != test.want || c.last == nil {
			t.Errorf("%s: took %d lines, want %d; the answer is %+v", test.name, took, test.want, c.last)
		}
	}
}
