//go:build linux || darwin || freebsd

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// endless says the same again and again, and reads nothing of what it is told until it is closed.
type endless struct {
	says string
	done chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat(e.says, len(p)/len(e.says)+1)), nil
}

func (e *endless) Write([]byte) (int, error) {
	<-e.done
	return 0, io.ErrClosedPipe
}

func (e *endless) Close() error {
	select {
	case <-e.done:
	default:
		close(e.done)
	}
	return nil
}

func TestAProgramThatSaysTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		says       string
		most, rate int // bytes at once, and in a second
	}{
		"short lines": {"{}\n", 3 * linesAtOnce, 3 * linesPerSecond},
		"empty lines": {"\n", linesAtOnce, linesPerSecond},
		"long lines":  {strings.Repeat("x", 10_000) + "\n", bytesAtOnce, bytesPerSecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPipe(&endless{c.says, make(chan struct{})}, time.Minute)
			got, b := 0, make([]byte, 64<<10)
			const seconds = 10
			for began := time.Now(); time.Since(began) < seconds*time.Second; {
				n, err := p.Read(b)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
			// A read can be of what is still to be waited for.
			if least := c.most + (seconds-1)*c.rate; got < least || got > least+2*c.rate+readAtOnce {
				t.Errorf("%s: %d bytes were read in %d s", name, got, seconds)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if _, err := p.Read(b); err == nil {
				t.Errorf("%s: it is read on when it is closed", name)
			}
		})
	}
}

func TestAProgramThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(&endless{"{}\n", make(chan struct{})}, time.Minute)
		began := time.Now()
		_, err := p.Write([]byte("{}\n"))
		if err == nil || !strings.Contains(err.Error(), "has not read") || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A server that describes its tools anew without end is asked for them now and then, and told of once.
func TestAServerThatNeverSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newStore(t), Server{Name: "test", Tools: []string{"echo"}})
		d.servers.times.anew = time.Minute
		l := d.servers.links[0]
		server := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
		lists := 0
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					lists++
				}
				return next(ctx, method, request)
			}
		})
		describe := func(n int) {
			server.AddTool(&mcp.Tool{Name: "echo", Description: fmt.Sprint("Says it ", n, " times."), InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
		}
		describe(0)
		here, there := mcp.NewInMemoryTransports()
		serving, err := server.Connect(t.Context(), there, nil)
		if err != nil {
			t.Fatal(err)
		}
		session, err := l.client().Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- l.attend(ctx, session, make(chan error)) }()
		const minutes = 5
		for n := range minutes * 60 {
			describe(n + 1)
			time.Sleep(time.Second)
		}
		cancel()
		<-over
		_, _ = session.Close(), serving.Wait()
		if lists < minutes-1 || lists > minutes+1 {
			t.Errorf("its tools were asked for %d times in %d minutes", lists, minutes)
		}
		if len(d.told) != 1 || !strings.Contains(d.told[0], "nudge mcp agree test") {
			t.Errorf("owners are told %q", d.told)
		}
	})
}

// hanging never answers, and counts who waits for it.
type hanging struct{ waiting atomic.Int64 }

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.waiting.Add(1)
	defer h.waiting.Add(-1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A server at an address that has itself asked without end, and lets what it is told hang, takes no more than so many requests.
func TestAServerThatLetsRequestsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &hanging{}
		c := &carrier{RoundTripper: far, pace: newPace()}
		ctx, cancel := context.WithCancel(t.Context())
		var refused, ended atomic.Int64
		for range 3 * mostOpen {
			go func() {
				_, err := c.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "http://far.test/", nil))
				if ended.Add(1); err != nil && strings.Contains(err.Error(), "too many") {
					refused.Add(1)
				}
			}()
		}
		synctest.Wait()
		if far.waiting.Load() != mostOpen || refused.Load() != 2*mostOpen {
			t.Errorf("%d wait, %d were refused", far.waiting.Load(), refused.Load())
		}
		cancel()
		synctest.Wait()
		if ended.Load() != 3*mostOpen || c.open.Load() != 0 {
			t.Errorf("%d ended, %d count as open", ended.Load(), c.open.Load())
		}
	})
}

// What a server at an address says is read at the pace of a program's words.
func TestAnAnswerIsReadAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carrier{pace: newPace()}
		c.open.Add(1)
		body := &bounded{ReadCloser: &endless{"data: x\n\n", make(chan struct{})}, left: maxMessage, of: c, ctx: t.Context()}
		const seconds = 10
		began, lines := time.Now(), 0
		for b := make([]byte, 64<<10); time.Since(began) < seconds*time.Second; {
			n, err := body.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(b[:n]), "\n")
		}
		if lines > linesAtOnce+(seconds+4)*linesPerSecond {
			t.Errorf("%d lines were read in %d s", lines, seconds)
		}
		if errors.Join(body.Close(), body.Close()) != nil || c.open.Load() != 0 {
			t.Errorf("%d count as open", c.open.Load())
		}
	})
}
