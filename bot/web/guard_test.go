package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// send sends a request that a test has changed, without following redirects.
func send(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return res, "" // it has no end
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

const sayBody = `{"id":"abcdefgh","text":"hello"}`

// without takes headers out of a request.
func without(names ...string) func(*http.Request) {
	return func(r *http.Request) {
		for _, name := range names {
			r.Header.Del(name)
		}
	}
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func both(changes ...func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) {
		for _, change := range changes {
			change(r)
		}
	}
}

func TestGuards(t *testing.T) {
	p := startProgram(t, nil)
	_, port, _ := strings.Cut(p.server.Address(), ":")
	accept := with("Accept", "text/event-stream")
	bare := without("Origin", "Sec-Fetch-Site")
	tests := []struct {
		name, method, path, body string
		change                   func(*http.Request)
		want                     int
	}{
		{"the page's own request", "POST", "/api/say", sayBody, both(), 200},
		{"localhost", "GET", "/", "", host("localhost:" + port), 200},
		{"IPv6 loopback", "GET", "/", "", host("[::1]:" + port), 200},
		{"a port forwarded", "GET", "/", "", host("127.0.0.1:9999"), 200},
		{"a stranger's name", "GET", "/", "", host("evil.example:" + port), 403},
		{"a name that begins like ours", "GET", "/", "", host("localhost.evil.example"), 403},
		{"another address", "GET", "/", "", host("10.1.2.3"), 403},
		{"a stranger's name at the API", "POST", "/api/messages", "{}", both(host("evil.example"), with("Authorization", "Bearer "+apiToken)), 403},
		{"a stranger's name at the files", "GET", "/assets/app.js", "", host("evil.example"), 403},
		{"a probe by another name", "GET", "/healthz", "", host("pod-7"), 200},
		{"a probe of readiness", "GET", "/readyz", "", host("pod-7"), 200},

		{"no cookie", "GET", "/", "", without("Cookie"), 401},
		{"no cookie at the stream", "GET", "/api/events", "", both(accept, without("Cookie")), 401},
		{"no cookie at say", "POST", "/api/say", sayBody, without("Cookie"), 401},
		{"no cookie at the list", "GET", "/api/sessions", "", without("Cookie"), 401},
		{"a wrong cookie", "POST", "/api/stop", sayBody, with("Cookie", p.server.cookieName()+"=wrong"), 401},
		{"the token is no cookie", "GET", "/", "", with("Cookie", p.server.cookieName()+"="+p.server.Token), 401},
		{"a wrong token", "GET", "/?token=wrong", "", both(), 401},
		{"an empty token", "GET", "/?token=", "", both(), 401},

		{"another origin", "POST", "/api/say", sayBody, with("Origin", "http://evil.example"), 403},
		{"another port", "POST", "/api/say", sayBody, with("Origin", "http://127.0.0.1:1"), 403},
		{"no origin", "POST", "/api/say", sayBody, with("Origin", "null"), 403},
		{"two origins", "POST", "/api/say", sayBody, func(r *http.Request) { r.Header.Add("Origin", "http://evil.example") }, 403},
		{"an origin of a file", "POST", "/api/decide", sayBody, with("Origin", "file://"+p.server.Address()), 403},
		{"neither origin nor site", "POST", "/api/say", sayBody, bare, 403},
		{"same site only", "POST", "/api/stop", sayBody, both(without("Origin"), with("Sec-Fetch-Site", "same-site")), 403},
		{"cross site", "POST", "/api/stop", sayBody, both(without("Origin"), with("Sec-Fetch-Site", "cross-site")), 403},
		{"same origin by site", "POST", "/api/stop", `{"id":"abcdefgi"}`, without("Origin"), 200},
		{"a stream of another origin", "GET", "/api/events", "", both(accept, with("Origin", "http://evil.example")), 403},
		{"a stream of another site", "GET", "/api/events", "", both(accept, without("Origin"), with("Sec-Fetch-Site", "cross-site")), 403},
		{"a stream over plain HTTP from another machine", "GET", "/api/events", "", both(accept, bare), 200},
		{"an image of the stream", "GET", "/api/events", "", bare, 403},

		{"a form", "POST", "/api/say", sayBody, with("Content-Type", "application/x-www-form-urlencoded"), 415},
		{"plain text", "POST", "/api/say", sayBody, with("Content-Type", "text/plain"), 415},
		{"no type", "POST", "/api/say", sayBody, without("Content-Type"), 415},
		{"JSON with a charset", "POST", "/api/say", `{"id":"abcdefgj","text":"hello"}`, with("Content-Type", "application/json; charset=utf-8"), 200},
		{"too long", "POST", "/api/say", `{"id":"abcdefgh","text":"` + strings.Repeat("x", maxBody) + `"}`, both(), 413},
		{"no JSON", "POST", "/api/say", "{", both(), 400},
		{"two values", "POST", "/api/say", sayBody + sayBody, both(), 400},
		{"an unknown key", "POST", "/api/say", `{"id":"abcdefgh","text":"x","from":"web:you"}`, both(), 400},
		{"no words", "POST", "/api/say", `{"id":"abcdefgh","text":" "}`, both(), 400},
		{"no id", "POST", "/api/say", `{"text":"x"}`, both(), 400},
		{"a conversation of others", "POST", "/api/say", `{"id":"abcdefgh","text":"x","conversation":"a:b"}`, both(), 400},
		{"a session as a conversation", "GET", "/api/events?c=a~2", "", accept, 400},
		{"no card", "POST", "/api/decide", `{"id":"abcdefgh","verdict":"approve"}`, both(), 400},
		{"no verdict", "POST", "/api/decide", `{"id":"abcdefgh","card":"x"}`, both(), 400},
		{"a verdict of the clock", "POST", "/api/decide", `{"id":"abcdefgh","card":"x","verdict":"expire"}`, both(), 400},
		{"an empty answer", "POST", "/api/decide", `{"id":"abcdefgh","card":"x","verdict":"answer"}`, both(), 400},
		{"an edit without JSON", "POST", "/api/decide", `{"id":"abcdefgh","card":"x","verdict":"edit","arguments":"{"}`, both(), 422},
		{"an edit to null", "POST", "/api/decide", `{"id":"abcdefgh","card":"x","verdict":"edit","arguments":"null"}`, both(), 422},
		{"an edit to a list", "POST", "/api/decide", `{"id":"abcdefgh","card":"x","verdict":"edit","arguments":"[]"}`, both(), 422},

		{"no message", "POST", "/api/judge", `{"id":"abcdefgh","said":"less"}`, both(), 400},
		{"no feedback", "POST", "/api/judge", `{"id":"abcdefgh","card":"x"}`, both(), 400},
		{"another feedback", "POST", "/api/judge", `{"id":"abcdefgh","card":"x","said":"more"}`, both(), 400},
		{"a snooze for ever", "POST", "/api/judge", `{"id":"abcdefgh","card":"x","said":"snooze","span":"ever"}`, both(), 400},
		{"feedback of another origin", "POST", "/api/judge", `{"id":"abcdefgh","card":"x","said":"less"}`, with("Origin", "http://evil.example"), 403},

		{"GET at say", "GET", "/api/say", "", both(), 405},
		{"POST at the page", "POST", "/", "{}", both(), 405},
		{"nothing there", "GET", "/wp-admin", "", both(), 404},
		{"no such file", "GET", "/assets/none.js", "", both(), 404},
		{"a page as a file", "GET", "/assets/index.html", "", both(), 404},
		{"files need no cookie", "GET", "/assets/app.css", "", without("Cookie"), 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var body []byte
			if test.body != "" {
				body = []byte(test.body)
			}
			req := signed(t.Context(), p.server, test.method, test.path, body)
			test.change(req)
			res, answered := send(t, req)
			if res.StatusCode != test.want {
				t.Fatalf("status %d, want %d: %s", res.StatusCode, test.want, answered)
			}
			checkHeaders(t, res)
			if res.StatusCode >= 400 && strings.HasPrefix(test.path, "/api/") && (!strings.HasPrefix(answered, `{"error":"`) || strings.Count(answered, "\n") != 1) {
				t.Errorf("the error is no line of JSON: %q", answered)
			}
		})
	}
}

func checkHeaders(t *testing.T, res *http.Response) {
	t.Helper()
	csp := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'self'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q lacks %q", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") || res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("headers: %v", res.Header)
	}
}

func TestSignIn(t *testing.T) {
	p := startProgram(t, func(c *Config) { c.Token = "a token/with+signs" })
	open, err := http.NewRequest(http.MethodGet, p.server.URL()+"&c=work", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, _ := send(t, open)
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/?c=work" {
		t.Fatalf("status %d to %q", res.StatusCode, res.Header.Get("Location"))
	}
	cookies := res.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(cookies[0].Value, "token") {
		t.Fatalf("cookies: %v", cookies)
	}
	again, _ := http.NewRequest(http.MethodGet, "http://"+p.server.Address()+"/", nil)
	again.AddCookie(cookies[0])
	if res, body := send(t, again); res.StatusCode != http.StatusOK || !strings.Contains(body, "What shall I do?") {
		t.Errorf("with the cookie: status %d", res.StatusCode)
	}
	again.Header.Del("Cookie")
	if res, body := send(t, again); res.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "Open the address that Nudge printed") {
		t.Errorf("without it: status %d: %s", res.StatusCode, body)
	}
	again.Header.Set("Sec-Fetch-Site", "cross-site") // the browser keeps its cookie back once
	if _, body := send(t, again); !strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("from a link of another site: %s", body)
	}
}

func TestNewToken(t *testing.T) {
	if a, b := NewToken(), NewToken(); a == b || len(a) < 20 || url.QueryEscape(a) != a {
		t.Errorf("tokens %q and %q", a, b)
	}
}

// TestHosts holds names against listen addresses.
func TestHosts(t *testing.T) {
	tests := []struct {
		listen, name string
		want         bool
	}{
		{"127.0.0.1:0", "127.0.0.1", true},
		{"127.0.0.1:0", "127.0.0.2", false},
		{"localhost:0", "LocalHost:80", true},
		{"0.0.0.0:0", "127.0.0.1:80", true},
		{"0.0.0.0:0", "192.0.2.1", false},
		{":0", "localhost", true},
		{":0", "nudge", false},
		{":0", "", false},
	}
	for _, test := range tests {
		s, err := New(Config{Listen: test.listen, Store: emptyStore(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = test.name
		if got := s.hostAllowed(r); got != test.want {
			t.Errorf("listen %s, host %q: allowed is %v", test.listen, test.name, got)
		}
		if !strings.HasPrefix(s.URL(), "http://127.0.0.1:") && !strings.HasPrefix(s.URL(), "http://localhost:") {
			t.Errorf("listen %s gives %s", test.listen, s.URL())
		}
	}
}

func TestNewRefuses(t *testing.T) {
	store := emptyStore(t)
	if _, err := New(Config{}); err == nil {
		t.Error("no store is no error")
	}
	if _, err := New(Config{Store: store, Listen: "8484"}); err == nil || !strings.Contains(err.Error(), "web.listen") {
		t.Errorf("no port: %v", err)
	}
	s, err := New(Config{Store: store, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := New(Config{Store: store, Listen: s.Address()}); err == nil || !strings.Contains(err.Error(), s.Address()) {
		t.Errorf("a taken port: %v", err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// TestOrigins tries any origin: only that of the host itself passes.
func TestOrigins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		origin := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"http://127.0.0.1:8484", "https://127.0.0.1:8484", "http://127.0.0.1:8484@evil.example", "http://127.0.0.1:84840", "http://127.0.0.1",
		})).Draw(t, "origin")
		if isOrigin(origin, "127.0.0.1:8484") {
			u, err := url.Parse(origin)
			if err != nil || u.Host != "127.0.0.1:8484" {
				t.Fatalf("%q passes", origin)
			}
		}
	})
}

func TestReady(t *testing.T) {
	var fault error
	p := startProgram(t, func(c *Config) { c.Ready = func() error { return fault } })
	get := func(path, host string) (int, string) {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+p.server.Address()+path, nil)
		if host != "" {
			req.Host = host
		}
		res, body := send(t, req)
		return res.StatusCode, body
	}
	if status, _ := get("/readyz", ""); status != 200 {
		t.Errorf("ready: status %d", status)
	}
	fault = errors.New("slack is silent")
	if status, body := get("/readyz", ""); status != 503 || !strings.Contains(body, "slack is silent") {
		t.Errorf("not ready: status %d: %s", status, body)
	}
	if status, body := get("/readyz", "pod-7"); status != 503 || strings.Contains(body, "slack") {
		t.Errorf("not ready, by another name: status %d: %s", status, body)
	}
	if status, body := get("/healthz", ""); status != 200 || body != "ok\n" {
		t.Errorf("healthy: status %d: %s", status, body)
	}
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+p.server.Address()+"/healthz", nil)
	req.Header.Set("Accept", "application/json")
	if _, body := send(t, req); body != "{\"ok\":true,\"undelivered\":0}\n" {
		t.Errorf("healthy, as JSON: %s", body)
	}
}
