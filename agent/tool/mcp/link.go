package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nudge/memory"
	"nudge/schedule/process"
)

const (
	connectTime = 20 * time.Second // to connect, and to list the tools
	longestWait = 5 * time.Minute
	lookEvery   = 10 * time.Minute // for tools that describe themselves anew
	tellEvery   = 24 * time.Hour   // of one tool that does so
	maxListed   = 1000             // tools that are read of a list
	maxMessage  = 4 << 20          // bytes of what a server says at once
)

// link keeps the connection to one server.
type link struct {
	Server
	all   *Servers
	asked chan struct{} // closed when the server was asked for its tools once, or could not be
	once  sync.Once
	renew chan struct{} // the server says that its tools have changed
	doubt chan struct{} // a call was not answered in time

	mu      sync.Mutex
	session *mcp.ClientSession // nil while there is no connection
	up      chan struct{}      // closed when there is one
	pins    map[string]pin     // by tool; what was agreed to
	told    map[string]telling // by tool: when owners were told last that it describes itself anew
	faults  map[string]string  // by tool: why the server's own is not offered
	down    string             // why there is no connection
}

func newLink(all *Servers, server Server) *link {
	return &link{
		Server: server, all: all, asked: make(chan struct{}), renew: make(chan struct{}, 1), doubt: make(chan struct{}, 1),
		up: make(chan struct{}), pins: map[string]pin{}, told: map[string]telling{}, faults: map[string]string{},
	}
}

// run keeps the connection until ctx ends.
func (l *link) run(ctx context.Context) {
	said := "" // of the last failure, which is not told again each time
	for wait := l.all.times.first; ctx.Err() == nil; wait = min(2*wait, longestWait) {
		began := time.Now()
		err := l.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longestWait {
			wait = l.all.times.first
		}
		l.lost(err)
		l.once.Do(func() { close(l.asked) }) // now it is known why it could not be
		level := slog.LevelWarn
		if said == err.Error() {
			level = slog.LevelDebug
		}
		said = err.Error()
		l.all.Log.Log(ctx, level, "an MCP server cannot be used; it is tried again and again", "server", l.Name, "error", err, "wait", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// serve connects and keeps what the server offers up to date, until the connection ends.
func (l *link) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	session, end, err := l.connect(ctx, cancel)
	defer end()
	if err != nil {
		return err
	}
	if err := l.list(ctx, session); err != nil {
		return err
	}
	l.found(session)
	defer l.lost(nil)
	l.once.Do(func() { close(l.asked) })
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	defer func() {
		end()
		<-ended
	}()
	return l.attend(ctx, session, ended)
}

// attend keeps what the server offers up to date. How often it says that its tools have changed does not count: they are
// asked for now and then.
func (l *link) attend(ctx context.Context, session *mcp.ClientSession, ended chan error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var again <-chan time.Time
	listed := time.Now()
	list := func() error {
		again, listed = nil, time.Now()
		return l.list(ctx, session)
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			ended <- err
			return fmt.Errorf("it has ended: %w", errors.Join(err, io.EOF))
		case <-l.doubt:
			err = within(ctx, l.all.times.ping, func(ctx context.Context) error { return session.Ping(ctx, nil) })
		case <-l.renew:
			if again == nil {
				again = time.After(time.Until(listed.Add(l.all.times.anew)))
			}
		case <-again:
			err = list()
		case <-tick.C:
			err = list()
		}
		if err != nil {
			return fmt.Errorf("it does not answer: %w", err)
		}
	}
}

func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// connect begins a session. end closes it, and ends what was started for it; it is never nil.
func (l *link) connect(ctx context.Context, cancel context.CancelFunc) (session *mcp.ClientSession, end func(), err error) {
	transport, release, err := l.transport()
	if err != nil {
		return nil, func() {}, err
	}
	// The context of Connect is that of the session, so it cannot have the deadline.
	late := time.AfterFunc(connectTime, cancel)
	session, err = l.client().Connect(ctx, transport, nil)
	if !late.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	end = func() {
		if session != nil {
			_ = session.Close() // it may have ended
		}
		release()
	}
	if err != nil {
		return nil, end, fmt.Errorf("connect: %w", err)
	}
	return session, end, nil
}

// client is this side of a session.
func (l *link) client() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "nudge", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, // nothing can be asked of this side
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case l.renew <- struct{}{}:
			default:
			}
		},
	})
}

// transport starts the server's program, or prepares to ask its address.
func (l *link) transport() (transport mcp.Transport, release func(), err error) {
	if l.URL != "" {
		client, release := newHTTP(l.Token)
		return &mcp.StreamableClientTransport{Endpoint: l.URL, HTTPClient: client, DisableStandaloneSSE: true, MaxRetries: -1, MaxEventSize: maxMessage}, release, nil
	}
	talk, err := process.Start(process.Spec{Argv: l.Command, Dir: l.Dir, Env: l.Env})
	if err != nil {
		return nil, nil, err
	}
	pipe := newPipe(talk, l.Timeout+2*l.all.times.back) // one that works for one call may leave the next unread
	release = func() {
		_ = pipe.Close() // a Talk's has no error
		if said := talk.Complaints(); said != "" {
			l.all.Log.Debug("an MCP server wrote to its standard error", "server", l.Name, "text", said)
		}
	}
	return &mcp.IOTransport{Reader: pipe, Writer: pipe, MaxLineLength: maxMessage}, release, nil
}

// newHTTP is a client that shows the token to the server alone, and does not read on for ever.
func newHTTP(token string) (client *http.Client, release func()) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &http.Client{
		Transport:     &carrier{RoundTripper: transport, token: token, pace: newPace()},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, transport.CloseIdleConnections
}

// mostOpen is how many answers of one server's are awaited or read at once. Each of its own questions is answered by a request, so
// one that asked without end and let them hang would take all there is.
const mostOpen = 100

type carrier struct {
	http.RoundTripper
	token string
	pace  pace
	open  atomic.Int64
}

// RoundTrip asks with the token, and bounds the answer.
func (c *carrier) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.open.Add(1) > mostOpen {
		c.open.Add(-1)
		return nil, fmt.Errorf("the server leaves %d requests unanswered, which is too many", mostOpen)
	}
	if c.token != "" {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.RoundTripper.RoundTrip(request)
	if err != nil {
		c.open.Add(-1)
		return nil, err
	}
	answer.Body = &bounded{ReadCloser: answer.Body, left: maxMessage, of: c, ctx: request.Context()}
	return answer, nil
}

// bounded is an answer that is read at a pace, and fails where it is too long.
type bounded struct {
	io.ReadCloser
	left   int
	of     *carrier
	ctx    context.Context // of its request
	closed sync.Once
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxMessage)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left, readAtOnce)])
	b.left -= n
	if err := b.of.pace.wait(b.ctx, p[:n]); err != nil {
		return n, err
	}
	return n, err
}

// Close ends the answer. It may be called more than once.
func (b *bounded) Close() error {
	b.closed.Do(func() { b.of.open.Add(-1) })
	return b.ReadCloser.Close()
}

// list asks for the tools, keeps how they describe themselves, and offers those that may be.
func (l *link) list(ctx context.Context, session *mcp.ClientSession) error {
	listed, faults, err := listTools(ctx, session)
	if err != nil {
		return err
	}
	changed, err := l.see(ctx, listed, faults)
	if err != nil {
		return fmt.Errorf("keep how its tools describe themselves: %w", err)
	}
	l.mu.Lock()
	l.faults = faults
	l.mu.Unlock()
	for name, fault := range faults {
		if slices.Contains(l.Tools, name) {
			l.all.Log.Warn("a tool of an MCP server is not offered", "server", l.Name, "tool", name, "why", fault)
		}
	}
	if err := l.readPins(ctx); err != nil {
		return err
	}
	l.all.offer()
	for _, name := range l.untold(changed) {
		l.all.Tell(fmt.Sprintf("The tool %s of the MCP server %s describes itself anew, and is not offered until somebody agrees: `nudge mcp agree %s` shows what it says and asks.", name, l.Name, l.Name))
	}
	return nil
}

// telling is that owners were told of a tool that describes itself anew.
type telling struct {
	at    time.Time
	known string // digest of how it described itself before
}

// untold returns the tools of which owners are to be told that they describe themselves anew: of each once a day, and again
// when somebody has agreed to how it did before.
func (l *link) untold(changed []string) (tools []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range changed {
		now := telling{time.Now(), l.pins[name].Digest}
		if last, found := l.told[name]; found && last.known == now.known && now.at.Sub(last.at) < tellEvery {
			continue
		}
		l.told[name] = now
		tools = append(tools, name)
	}
	return tools
}

// listTools asks a server for its tools, by name. faults says of which it cannot be told which of two is meant.
func listTools(ctx context.Context, session *mcp.ClientSession) (listed map[string]*mcp.Tool, faults map[string]string, err error) {
	listed, faults = map[string]*mcp.Tool{}, map[string]string{}
	err = within(ctx, connectTime, func(ctx context.Context) error {
		count := 0
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				return fmt.Errorf("list its tools: %w", err)
			}
			if count++; count > maxListed {
				return fmt.Errorf("list its tools: there are more than %d", maxListed)
			}
			if listed[tool.Name] != nil {
				faults[tool.Name] = "its server lists two of that name"
			}
			listed[tool.Name] = tool
		}
		return nil
	})
	return listed, faults, err
}

// see keeps how the tools that are wanted describe themselves, and gives those that do so anew. It adds to faults why one cannot
// be offered.
func (l *link) see(ctx context.Context, listed map[string]*mcp.Tool, faults map[string]string) (changed []string, err error) {
	err = l.all.Store.Update(ctx, func(tx memory.Tx) error {
		changed = nil
		for _, name := range l.Tools {
			if listed[name] == nil {
				faults[name] = "its server does not have it"
			}
			if faults[name] != "" {
				continue
			}
			now, err := lookOf(listed[name])
			if err != nil {
				faults[name] = err.Error()
				continue
			}
			_, fresh, err := see(tx, l.Name, name, now)
			if err != nil {
				return err
			}
			if fresh {
				changed = append(changed, name)
			}
		}
		return nil
	})
	return changed, err
}

func (l *link) readPins(ctx context.Context) error {
	pins := map[string]pin{}
	err := l.all.Store.View(ctx, func(tx memory.Tx) error {
		clear(pins)
		for _, name := range l.Tools {
			p, found, err := tablePins.Get(tx, pinKey(l.Name, name))
			if err != nil {
				return err
			}
			if found {
				pins[name] = p
			}
		}
		return nil
	})
	if err != nil {
		clear(pins)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pins = pins
	return err
}

// known reports whether all tools were seen before.
func (l *link) known() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pins) == len(l.Tools)
}

func (l *link) found(session *mcp.ClientSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.down = session, ""
	close(l.up)
}

// lost notes that there is no connection, and why if that is known.
func (l *link) lost(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil {
		l.session, l.up = nil, make(chan struct{})
	}
	if why != nil {
		l.down = why.Error()
	}
}
