package modeltest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"nudge/agent/model"
)

// Line is how a provider's answers stand on the line. They are written by hand, so that the tests do not believe the code.
type Line struct {
	// Connect returns a model without quirks that asks for streams.
	Connect func(Connection) (model.Model, error)
	BaseURL string // of no real provider, and with no query
	Path    string // what a request's address has behind it
	Prefix  string // what keys begin with
	Begins  string // the beginning of a stream, of which nothing is an answer yet; may be ""
	Says    func(text string) string
	Ends    string
	Whole   func(text string) string // a whole answer
	Error   func(text string) string // a whole error, of a key that is not accepted
}

// Connection is where a model asks, and as whom. A field that is zero has no value in the model's own config.
type Connection struct {
	BaseURL, Model, Key      string
	CallTimeout, IdleTimeout time.Duration
	HTTP                     *http.Client
}

// RunLine checks what a model does about what goes over the line besides answers: keys, redirects, silence, and lines that break.
func RunLine(t *testing.T, l Line) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Line)
	}{
		{"address and key", runAddress},
		{"wrong config", runWrongConfig},
		{"what cannot be written", runUnwritable},
		{"no answer", runNoAnswer},
		{"whole answer to a streaming request", runWholeAnyway},
		{"broken line", runBroken},
		{"unreachable", runUnreachable},
		{"redirects", runRedirects},
		{"retry after", runRetryAfter},
		{"keys stay inside", runKeys},
		{"cancel", runCancelled},
		{"timeouts", runTimeouts},
		{"listening is no silence", runListening},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, l) })
	}
}

func (l Line) key() string { return l.Prefix + "test-AAAABBBBCCCCDDDD0001" }

// connect returns a model with a good config but for what a test changes.
func (l Line) connect(t *testing.T, change func(*Connection)) model.Model {
	t.Helper()
	m, err := l.Connect(l.connection(change))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (l Line) connection(change func(*Connection)) Connection {
	c := Connection{BaseURL: l.BaseURL, Model: "test-model", Key: l.key()}
	change(&c)
	return c
}

// over returns a model whose provider answers so.
func (l Line) over(t *testing.T, in *Canned) model.Model {
	t.Helper()
	return l.connect(t, func(c *Connection) { c.HTTP = in.HTTP() })
}

func runAddress(t *testing.T, l Line) {
	in := Whole(l.Whole("ok"))
	m := l.connect(t, func(c *Connection) { c.BaseURL, c.Key, c.HTTP = " "+l.BaseURL+"/?k=v ", " "+l.key()+"\n", in.HTTP() })
	AnswerOf(t, m, hello())
	r := in.Requests[0]
	if got, want := r.URL.String(), l.BaseURL+"/"+l.Path+"?k=v"; got != want || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s with %v, want %s", r.Method, got, r.Header, want)
	}
	keys := 0
	for _, values := range r.Header {
		for _, v := range values {
			if strings.TrimPrefix(v, "Bearer ") == l.key() {
				keys++
			}
		}
	}
	if keys != 1 {
		t.Errorf("the key stands in %d headers: %v", keys, r.Header)
	}
}

func runWrongConfig(t *testing.T, l Line) {
	for name, change := range map[string]func(*Connection){
		"no scheme":     func(c *Connection) { c.BaseURL = "llm.test/v1" },
		"other scheme":  func(c *Connection) { c.BaseURL = "ftp://llm.test/v1" },
		"password":      func(c *Connection) { c.BaseURL = "https://me:" + l.key() + "@llm.test" },
		"key in a mess": func(c *Connection) { c.BaseURL = "https://llm.test/%zz" + l.key() },
		"no model":      func(c *Connection) { c.Model = " " },
		"key in two":    func(c *Connection) { c.Key = l.key() + "\n" + l.key() },
		"negative time": func(c *Connection) { c.IdleTimeout = -1 },
	} {
		if _, err := l.Connect(l.connection(change)); err == nil || strings.Contains(err.Error(), l.key()) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func runUnwritable(t *testing.T, l Line) {
	for name, req := range map[string]model.Request{
		"schema":      {Tools: []model.Tool{{Name: "x", Schema: json.RawMessage(`{`)}}},
		"schema kind": {Tools: []model.Tool{{Name: "x", Schema: json.RawMessage(`[]`)}}},
		"role":        {Messages: []model.Message{{Role: "robot"}}},
	} {
		in := &Canned{}
		if fault := FaultOf(t, l.over(t, in), req); fault.Fault != model.FaultRefused || len(in.Requests) != 0 {
			t.Errorf("%s: fault is %+v after %d requests", name, fault, len(in.Requests))
		}
	}
}

func runNoAnswer(t *testing.T, l Line) {
	for _, body := range []string{
		"", " \n", "<html>Sign in</html>", "{}", "[]", "null", "Hello!", `{"id":"x"`, "data: {not json}\n\n", "data: [1]\n\n", "\x00\x01",
	} {
		in := Whole(body)
		in.Header["Content-Type"] = "application/octet-stream"
		if fault := FaultOf(t, l.over(t, in), hello()); fault.Fault != model.FaultMalformed || fault.Status != 200 {
			t.Errorf("%q: fault is %+v, want malformed", body, fault)
		}
	}
}

func runWholeAnyway(t *testing.T, l Line) {
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", eventStream, "text/plain", ""} {
		for _, blank := range []string{"", "\ufeff", "\n \n"} {
			for name, in := range map[string]*Canned{"whole": Whole(blank + l.Whole("ok")), "stream": Streamed(blank, l.Begins, l.Says("ok"), l.Ends)} {
				in.Header["Content-Type"] = kind
				if got := AnswerOf(t, l.over(t, in), hello()); got.Text != "ok" || got.Finish != model.FinishStop {
					t.Errorf("%s as type %q behind %q: answer is %+v", name, kind, blank, got)
				}
			}
		}
	}
}

func runBroken(t *testing.T, l Line) {
	for name, c := range map[string]struct {
		sent  string
		began bool
	}{
		"at once": {"", false}, "after a comment": {": hi\n\n", false}, "after text": {l.Begins + l.Says("I will"), true},
		"in an event": {l.Begins + l.Says("I will") + "data: {\"cho", true},
	} {
		in := Streamed()
		in.Body = io.MultiReader(strings.NewReader(c.sent), iotest.ErrReader(io.ErrUnexpectedEOF))
		fault := FaultOf(t, l.over(t, in), hello())
		if fault.Fault != model.FaultPassing || fault.Began != c.began || !errors.Is(fault, io.ErrUnexpectedEOF) {
			t.Errorf("%s: fault is %+v", name, fault)
		}
	}
}

func runUnreachable(t *testing.T, l Line) {
	down := &Canned{Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	fault := FaultOf(t, l.over(t, down), hello())
	if fault.Fault != model.FaultPassing || fault.Say != "cannot reach the model's server" || fault.Status != 0 || !errors.Is(fault, syscall.ECONNREFUSED) {
		t.Errorf("fault is %+v", fault)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	stranger := &http.Transport{}
	defer stranger.CloseIdleConnections()
	at := func(address string) *model.Error {
		return FaultOf(t, l.connect(t, func(c *Connection) { c.BaseURL, c.HTTP = address, &http.Client{Transport: stranger} }), hello())
	}
	if fault := at(server.URL); fault.Fault != model.FaultRefused || !strings.Contains(fault.Say, "certificate") {
		t.Errorf("fault is %+v", fault)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if fault := at(strings.Replace(plain.URL, "http:", "https:", 1)); fault.Fault != model.FaultRefused || !strings.Contains(fault.Say, "https") {
		t.Errorf("fault is %+v", fault)
	}
}

func runRedirects(t *testing.T, l Line) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/"+l.Path, status))
		fault := FaultOf(t, l.connect(t, func(c *Connection) { c.BaseURL, c.HTTP = server.URL, server.Client() }), hello())
		if fault.Fault != model.FaultRefused || fault.Status != status {
			t.Errorf("%d: fault is %+v", status, fault)
		}
		server.Close()
	}
}

func runRetryAfter(t *testing.T, l Line) {
	in := Whole("{}")
	in.Status, in.Header["Retry-After"] = 429, "7"
	if fault := FaultOf(t, l.over(t, in), hello()); fault.RetryAfter != 7*time.Second || len(in.Requests) != 1 {
		t.Errorf("fault is %+v after %d requests", fault, len(in.Requests))
	}
}

// runKeys: neither a key nor a piece or another form of it is in an error, wherever the provider put it.
func runKeys(t *testing.T, l Line) {
	const urlKey = "AIza/TEST KEY0003"
	key := l.key()
	at := func(in *Canned) model.Model {
		return l.connect(t, func(c *Connection) { c.BaseURL, c.HTTP = l.BaseURL+"?key="+url.QueryEscape(urlKey), in.HTTP() })
	}
	forms := []string{
		key, key[:20], key[:24], key[5:17], key[9:21], url.QueryEscape(urlKey), urlKey, l.Prefix + "test...0001", l.Prefix + "other-1", l.Prefix + "other...0001",
		base64.StdEncoding.EncodeToString([]byte(key)),
	}
	for _, form := range forms {
		for _, status := range []int{200, 401, 500} {
			for _, pad := range []int{0, 380, 4080} {
				in := Whole(l.Error(strings.Repeat(".", pad) + form + " is no good"))
				in.Status = status
				for err := error(FaultOf(t, at(in), hello())); err != nil; err = errors.Unwrap(err) {
					for _, secret := range append(forms, key[:12], key[len(key)-12:]) {
						if strings.Contains(err.Error(), secret) {
							t.Errorf("%q shows %q", err, secret)
						}
					}
				}
			}
		}
	}
	down := &Canned{Err: errors.New("no such host")}
	if fault := FaultOf(t, at(down), hello()); strings.Contains(fault.Error(), "AIza") || strings.Contains(fault.Error(), "Post ") || !strings.Contains(fault.Error(), "no such host") {
		t.Errorf("error is %v", fault)
	}
	if got := down.Requests[0].URL.Query().Get("key"); got != urlKey {
		t.Errorf("the query was sent as %q", got)
	}
}

// runCancelled: who stops in the middle gets the cause itself, and the provider is hung up on.
func runCancelled(t *testing.T, l Line) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", eventStream)
		_, _ = io.WriteString(w, l.Begins+l.Says("hello"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	m := l.connect(t, func(c *Connection) { c.BaseURL, c.HTTP = server.URL, server.Client() })
	if _, err := m.Answer(ctx, hello(), func(string) { cancel(stop) }); err != stop {
		t.Errorf("error is %v, want the cause itself", err)
	}
	<-gone
}

// timed returns a model whose provider takes its time. A call may last ten minutes, and a silence one.
func (l Line) timed(t *testing.T, s Slow) model.Model {
	t.Helper()
	return l.connect(t, func(c *Connection) { c.CallTimeout, c.IdleTimeout, c.HTTP = 10*time.Minute, time.Minute, s.HTTP() })
}

func runTimeouts(t *testing.T, l Line) {
	says := l.Says("x")
	many := strings.Split(strings.Repeat(says+"|", 30), "|")[:30]
	many[0] = l.Begins + many[0]
	for name, c := range map[string]struct {
		slow  Slow
		after time.Duration
		say   string
		began bool
	}{
		"no response":           {Slow{}, 10 * time.Minute, "took too long", false},
		"silent stream":         {Slow{eventStream, time.Second, nil}, time.Minute, "silent", false},
		"silent in the middle":  {Slow{eventStream, 50 * time.Second, []string{l.Begins + says}}, 110 * time.Second, "silent", true},
		"slow but never silent": {Slow{eventStream, 50 * time.Second, many}, 10 * time.Minute, "took too long", true},
		"whole and slow":        {Slow{"application/json", time.Second, nil}, 10 * time.Minute, "took too long", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				fault := FaultOf(t, l.timed(t, c.slow), hello())
				if fault.Fault != model.FaultPassing || !strings.Contains(fault.Say, c.say) || fault.Began != c.began {
					t.Errorf("fault is %+v", fault)
				}
				if took := time.Since(begin); took != c.after {
					t.Errorf("took %v, want %v", took, c.after)
				}
			})
		})
	}
}

// runListening: the time that the listener takes is not the provider's silence.
func runListening(t *testing.T, l Line) {
	synctest.Test(t, func(t *testing.T) {
		m := l.timed(t, Slow{eventStream, time.Second, []string{l.Begins + l.Says("x"), l.Ends}})
		got, err := m.Answer(t.Context(), hello(), func(string) { time.Sleep(5 * time.Minute) })
		if err != nil || got.Text != "x" {
			t.Errorf("answer is %+v, %v", got, err)
		}
	})
}
