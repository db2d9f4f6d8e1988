package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 10, 0, 0, 200e6, time.UTC)
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "Mon, 30 Nov 2026 10:00:07 GMT": 7 * time.Second, "1.5": 1500 * time.Millisecond, " 3 ": 3 * time.Second,
		"3600": time.Hour, "0.0001": time.Millisecond, "9223372036854775807": longest, strings.Repeat("9", 400): longest,
		"0": 0, "-5": 0, "soon": 0, "Mon, 30 Nov 2026 09:00:00 GMT": 0, "": 0, "NaN": 0, "Inf": 0, "0x10": 0, "1e3": 0, ".": 0, "1.2.3": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("Retry-After %q: got %v, want %v", value, got, want)
		}
	}
	both := http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"2"}}
	if got := retryAfter(both, now); got != 1500*time.Millisecond {
		t.Errorf("both headers: got %v, want the finer one", got)
	}
}

func TestRetryAfterIsSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{"Retry-After": {rapid.String().Draw(t, "s")}, "Retry-After-Ms": {rapid.StringMatching(`-?[0-9.]{0,30}`).Draw(t, "ms")}}
		if got := retryAfter(h, time.Unix(0, 0)); got < 0 || got > longest {
			t.Fatalf("got %v", got)
		}
	})
}
