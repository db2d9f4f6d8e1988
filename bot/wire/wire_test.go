package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/bot/wire"
)

type network func(*http.Request) (*http.Response, error)

func (n network) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

// TestUnsent tells calls that cannot have come anywhere from those that may have.
func TestUnsent(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		unsent bool
	}{
		"never made":        {fmt.Errorf("post: %w", &wire.UnsentError{Err: context.Canceled}), true},
		"no connection":     {fmt.Errorf("post: %w", &net.OpError{Op: "dial", Err: io.EOF}), true},
		"broken off":        {&net.OpError{Op: "read", Err: io.EOF}, false},
		"no answer in time": {context.DeadlineExceeded, false},
	} {
		if got := wire.Unsent(c.err); got != c.unsent {
			t.Errorf("%s: unsent is %v", name, got)
		}
	}
	if err := error(&wire.UnsentError{Err: context.Canceled}); !errors.Is(err, context.Canceled) {
		t.Error("the cause is lost")
	}
}

// slow is a body of which the second half comes after a while.
type slow struct {
	ctx  context.Context
	wait time.Duration
	half int
}

func (s *slow) Read(into []byte) (int, error) {
	switch s.half++; s.half {
	case 1:
		return copy(into, "half"), nil
	case 2:
		if err := wire.Sleep(s.ctx, s.wait); err != nil {
			return 0, err
		}
		return copy(into, " half"), nil
	}
	return 0, io.EOF
}

func (s *slow) Close() error { return nil }

// TestSend counts the wait for an answer and the reading of it as one time, which ends with the body.
func TestSend(t *testing.T) {
	for name, c := range map[string]struct {
		answer, rest time.Duration
		read         string
		late         bool
	}{
		"in time":        {4 * time.Second, 5 * time.Second, "half half", false},
		"no answer":      {11 * time.Second, 0, "", true},
		"half an answer": {4 * time.Second, 7 * time.Second, "half", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ctx context.Context
				next := network(func(r *http.Request) (*http.Response, error) {
					ctx = r.Context()
					if err := wire.Sleep(ctx, c.answer); err != nil {
						return nil, err
					}
					return &http.Response{StatusCode: http.StatusOK, Body: &slow{ctx: ctx, wait: c.rest}}, nil
				})
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com", strings.NewReader("words"))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := wire.Send(next, r, 10*time.Second)
				read := []byte(nil)
				if err == nil {
					read, err = io.ReadAll(answer.Body)
					_ = answer.Body.Close()
				}
				if string(read) != c.read || errors.Is(err, context.DeadlineExceeded) != c.late {
					t.Errorf("read %q: %v", read, err)
				}
				if ctx.Err() == nil {
					t.Error("the call's time goes on after its end")
				}
			})
		})
	}
}

// TestSleep waits as long as its context lasts.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		if err := wire.Sleep(ctx, 2*time.Second); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := wire.Sleep(ctx, 2*time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := wire.Sleep(ctx, 0); err == nil {
			t.Error("no wait is refused no context that has ended")
		}
	})
}
