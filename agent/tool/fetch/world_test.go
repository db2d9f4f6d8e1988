package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"nudge/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an internet of one server, which has all addresses. It is made of pipes, so that nothing leaves the test.
type world struct {
	t      *testing.T
	names  map[string][]string // the answers to each question for a name, one after the other; the last one stays
	server *http.Server

	conns chan net.Conn
	ended chan struct{}
	end   sync.Once

	mu    sync.Mutex
	dials []string
}

func newWorld(t *testing.T, handler http.HandlerFunc) *world {
	w := &world{t: t, names: map[string][]string{}, conns: make(chan net.Conn), ended: make(chan struct{})}
	w.server = &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = w.server.Serve(w)
	}()
	t.Cleanup(func() {
		w.server.Close()
		<-served
	})
	return w
}

func (w *world) Accept() (net.Conn, error) {
	select {
	case conn := <-w.conns:
		return conn, nil
	case <-w.ended:
		return nil, net.ErrClosed
	}
}

func (w *world) Close() error {
	w.end.Do(func() { close(w.ended) })
	return nil
}

func (w *world) Addr() net.Addr { return &net.TCPAddr{} }

func (w *world) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.names[name]
	if len(answers) == 0 {
		return nil, errors.New("no such host")
	}
	if len(answers) > 1 {
		w.names[name] = answers[1:]
	}
	var found []netip.Addr
	var list []string
	if err := json.Unmarshal([]byte(answers[0]), &list); err != nil {
		list = []string{answers[0]}
	}
	for _, one := range list {
		found = append(found, netip.MustParseAddr(one))
	}
	return found, nil
}

func (w *world) dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, address.String())
	w.mu.Unlock()
	here, there := net.Pipe()
	select {
	case w.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *world) tool(hosts ...string) agent.Tool {
	w.t.Helper()
	tool, err := New(Config{Hosts: hosts, Lookup: w.lookup, Dial: w.dial})
	if err != nil {
		w.t.Fatal(err)
	}
	return tool
}

func call(address string) agent.Invocation {
	arguments, _ := json.Marshal(map[string]string{"url": address})
	return agent.Invocation{Arguments: arguments, Given: func(address string) bool { return address == "http://given.test/a?b=c" }}
}

// fetch has a page fetched as the agent would.
func (w *world) fetch(address string, hosts ...string) (agent.Result, error) {
	w.t.Helper()
	tool := w.tool(hosts...)
	if _, _, err := tool.Judge(call(address)); err != nil {
		return agent.Result{}, err
	}
	return tool.Run(w.t.Context(), call(address))
}
