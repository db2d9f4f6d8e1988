// Package wire is what lies between an adapter and the API of its platform, whichever that is: how long a call may take, the
// wait for its turn, and whether the platform can have got it. What a platform's limits and errors are is the adapter's to know.
// Everything here may be used concurrently.
package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// UnsentError is of a call that was never made.
type UnsentError struct{ Err error }

// Error says why.
func (e *UnsentError) Error() string { return "not sent: " + e.Err.Error() }

// Unwrap returns why.
func (e *UnsentError) Unwrap() error { return e.Err }

// Unsent reports whether a call that failed cannot have come to its platform: it was not made, or there was no connection.
func Unsent(err error) bool {
	var unsent *UnsentError
	var op *net.OpError
	return errors.As(err, &unsent) || errors.As(err, &op) && op.Op == "dial"
}

// Send makes a call over next. Its answer must have come, and be read and closed, in time.
func Send(next http.RoundTripper, r *http.Request, timeout time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	answer, err := next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = &timed{answer.Body, cancel}
	return answer, nil
}

// timed is the body of an answer, whose time ends when it is closed.
type timed struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (t *timed) Close() error {
	defer t.cancel()
	return t.ReadCloser.Close()
}

// Sleep waits, or returns the error of a context that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
