package condition

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"nudge/schedule/process"
)

// Once gives the same environment for playing time through: each program runs and each address is asked once, however
// often conditions look, and their answers stay what they were. Files and the time are looked at each time.
func (e Env) Once() Env {
	if e.Run == nil {
		e.Run = process.Run
	}
	if e.Get == nil {
		e.Get = plainRequests
	}
	e.Run, e.Get, e.Gauges = runOnce(e.Run), newGetOnce(e.Get), e.Gauges.once()
	if e.Public != nil {
		e.Public = publicOnce{newGetOnce(e.Public), e.Public.Check}
	}
	return e
}

func runOnce(run func(context.Context, process.Spec) (process.Outcome, error)) func(context.Context, process.Spec) (process.Outcome, error) {
	type ended struct {
		outcome process.Outcome
		err     error
	}
	var mu sync.Mutex
	known := map[string]ended{}
	return func(ctx context.Context, spec process.Spec) (process.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		key := spec.Dir + "\x00" + strings.Join(spec.Argv, "\x00")
		if e, found := known[key]; found && ctx.Err() == nil {
			return e.outcome, e.err
		}
		outcome, err := run(ctx, spec)
		known[key] = ended{outcome, err}
		return outcome, err
	}
}

// getOnce keeps the answers to requests.
type getOnce struct {
	of    http.RoundTripper
	mu    sync.Mutex
	known map[string]*kept // by address
}

func newGetOnce(of http.RoundTripper) *getOnce { return &getOnce{of: of, known: map[string]*kept{}} }

// publicOnce keeps the answers of the public internet.
type publicOnce struct {
	*getOnce
	check func(address string) error
}

func (p publicOnce) Check(address string) error { return p.check(address) }

type kept struct {
	answer http.Response
	body   []byte
	err    error
}

func (g *getOnce) RoundTrip(request *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.known[request.URL.String()]
	if k == nil {
		k = ask(g.of, request)
		g.known[request.URL.String()] = k
	}
	if k.err != nil {
		return nil, k.err
	}
	answer := k.answer
	answer.Request, answer.Body = request, io.NopCloser(bytes.NewReader(k.body))
	return &answer, nil
}

func ask(of http.RoundTripper, request *http.Request) *kept {
	answer, err := of.RoundTrip(request)
	if err != nil {
		return &kept{err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	return &kept{*answer, body, err}
}

// once gives gauges whose programs run once.
func (g *Gauges) once() *Gauges {
	if g == nil {
		return nil
	}
	same := &Gauges{dir: g.dir, run: runOnce(g.run), now: g.now, list: map[string]*dial{}}
	for name, d := range g.list {
		same.list[name] = &dial{Gauge: d.Gauge, turn: make(chan struct{}, 1)}
	}
	return same
}
