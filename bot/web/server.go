// Package web is the adapter of the browser, and of programs that talk over HTTP.
//
// A [Server] answers on one address. Its page at / is what a newcomer meets first: one conversation with cards,
// receipts and pings, live in every tab that is open. `POST /api/messages` is the same for programs, if there is a
// token for it. The two are adapters of their own, which [Server.Adapters] returns for the Hub.
//
// A tab first gets a snapshot, which is read from the store, then every line as it is said; conversation.go says how
// the two meet without a gap and without a repeat. Beside it the page shows the person's diary (diary.go) and what wakes for them
// (heartbeats.go). guard.go says who may come in.
package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/diary"
)

// Bounds of what browsers and programs may take up.
const (
	maxBody        = 1 << 20          // bytes of a request's body
	maxConnections = 4096             // open at once, each a file and some 20 KB
	maxTabs        = 64               // streams to browsers at once
	maxCalls       = 2048             // requests of programs that wait for an answer at once
	headerTime     = 10 * time.Second // for the head of a request, and then for its body
	writeTime      = 10 * time.Second // for one piece of a stream; who takes longer is cut off
	beat           = 20 * time.Second // between signs of life on a silent stream
	closeTime      = time.Second      // for what is being answered when the server ends
)

// DefaultListen is where the server listens when nothing is said.
const DefaultListen = "127.0.0.1:8484"

// Config is what a Server is made of. Store must be set.
type Config struct {
	// Listen is host:port; port 0 takes a free one. Empty means [DefaultListen].
	Listen string
	Store  memory.Store
	// Diary is what people's notes are kept in; nil where there is none.
	Diary *diary.Diary
	// Person is who sits at the browser; its zone is also that of the people of the API. Without an id it is web:me.
	Person agent.Person
	// Token lets a browser in. Empty means a new one, which is forgotten at the end: see [NewToken].
	Token string
	// APIToken lets programs in. Empty means that none may.
	APIToken string
	// Ready tells why the program is not ready to work; nil when it is, and when Ready itself is nil.
	Ready func() error
	// Secrets are not on the page, whatever is kept of what was said. Nil hides none.
	Secrets *secret.Redactor
	Log     *slog.Logger
}

// Server is the HTTP server of the console and of the API. Its methods may be called concurrently.
type Server struct {
	Config
	listener net.Listener
	host     string // of the listen address, as the config has it
	port     string
	page     pages
	browser  *adapter
	programs *adapter
	tabs     chan struct{} // a place for each open stream
	calls    chan struct{}
	closing  chan struct{} // closed when Serve ends
	once     sync.Once
	titles   titles

	mu            sync.Mutex
	conversations map[string]*conversation
}

// NewToken returns a new random token, which is good in addresses and headers. A caller that keeps it lets browsers
// stay signed in over a restart.
func NewToken() string { return rand.Text() }

// New takes the listen address and returns a server that answers once [Server.Serve] is called. One that never is
// must be closed.
func New(c Config) (*Server, error) {
	if c.Store == nil {
		return nil, errors.New("make the web server: there is no store")
	}
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Person.ID == "" {
		c.Person.ID = "web:me"
	}
	if c.Token == "" {
		c.Token = NewToken()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("web.listen = %q: write it as host:port: %w", c.Listen, err)
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	s := &Server{
		Config: c, host: host, listener: bounded(listener, maxConnections), page: readPages(),
		tabs: make(chan struct{}, maxTabs), calls: make(chan struct{}, maxCalls), closing: make(chan struct{}),
		titles: titles{of: map[string]string{}}, conversations: map[string]*conversation{},
	}
	_, s.port, _ = net.SplitHostPort(listener.Addr().String())
	s.browser = &adapter{server: s, platform: "web"}
	s.programs = &adapter{server: s, platform: "api"}
	return s, nil
}

// Adapters are the two that speak through this server: that of the browser and that of programs.
func (s *Server) Adapters() []bot.Adapter { return []bot.Adapter{s.browser, s.programs} }

// Address is the host and port that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// URL is the address to open in a browser, with the login token in it. It is a secret.
func (s *Server) URL() string {
	host := s.host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, s.port) + "/?token=" + url.QueryEscape(s.Token)
}

// Serve answers until ctx ends, then lets what is being answered end within seconds. It may be called once, and
// leaves the address free.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: headerTime, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.listener) }()
	var failed error
	select {
	case <-ctx.Done():
	case err := <-ended:
		failed = fmt.Errorf("serve %s: %w", s.Address(), err)
		ended <- nil
	}
	s.once.Do(func() { close(s.closing) })
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if server.Shutdown(grace) != nil {
		_ = server.Close() // who did not end in time is cut off
	}
	<-ended
	return failed
}

// Close leaves the address of a server that was never served.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.closing) })
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close %s: %w", s.Address(), err)
	}
	return nil
}

// routes says which address is answered by what, and behind which guard.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.only(http.MethodGet, s.openPage))
	mux.HandleFunc("/assets/{name}", s.only(http.MethodGet, s.asset))
	mux.HandleFunc("/api/events", s.only(http.MethodGet, s.own(s.events)))
	mux.HandleFunc("/api/sessions", s.only(http.MethodGet, s.signedIn(s.sessions)))
	mux.HandleFunc("/api/diary", s.only(http.MethodGet, s.signedIn(s.diary)))
	mux.HandleFunc("/api/diary/note", s.only(http.MethodPost, s.own(s.changeNote)))
	mux.HandleFunc("/api/heartbeats", s.only(http.MethodGet, s.signedIn(s.heartbeats)))
	mux.HandleFunc("/api/say", s.only(http.MethodPost, s.own(s.say)))
	mux.HandleFunc("/api/decide", s.only(http.MethodPost, s.own(s.decide)))
	mux.HandleFunc("/api/judge", s.only(http.MethodPost, s.own(s.judge)))
	mux.HandleFunc("/api/stop", s.only(http.MethodPost, s.own(s.stop)))
	mux.HandleFunc("/api/messages", s.bearer(s.message))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is nothing at this address")
	})
	outer := http.NewServeMux()
	outer.HandleFunc("/healthz", s.healthy)
	outer.HandleFunc("/readyz", s.ready)
	outer.Handle("/", s.knownHost(mux))
	return headers(outer)
}

// healthy says that the process answers and, to those who want JSON, how many replies could not be delivered lately.
func (s *Server) healthy(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") != "application/json" {
		fmt.Fprintln(w, "ok")
		return
	}
	health := struct {
		OK          bool `json:"ok"`
		Undelivered int  `json:"undelivered"`
	}{OK: true}
	err := s.Store.View(r.Context(), func(tx memory.Tx) (err error) {
		health.Undelivered, _, err = bot.DeadLetters(tx, 0)
		return err
	})
	if err != nil {
		s.Log.Error("cannot count what could not be delivered", "error", err)
		health.OK = false
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(health) // who asked may be gone
}

// ready says whether the program can work, and why not to those who name this host rightly: probes often use another
// name, and need no reason.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.Ready == nil {
		fmt.Fprintln(w, "ready")
		return
	}
	err := s.Ready()
	if err == nil {
		fmt.Fprintln(w, "ready")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	if s.hostAllowed(r) {
		fmt.Fprintf(w, "not ready: %s\n", bot.Visible(err.Error()))
		return
	}
	fmt.Fprintln(w, "not ready")
}
