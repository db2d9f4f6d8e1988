package slack

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answers is a network that answers each opening.
type answers struct {
	at     []time.Time
	status int
	after  string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/apps.connections.open") {
		a.at = append(a.at, time.Now())
	}
	h := http.Header{}
	if a.after != "" {
		h.Set("Retry-After", a.after)
	}
	return &http.Response{StatusCode: max(a.status, 200), Header: h, Body: io.NopCloser(strings.NewReader(`{"ok":true}`))}, nil
}

// openOnce asks for a link.
func openOnce(t *testing.T, ctx context.Context, o *opening) error {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://slack.example/api/apps.connections.open", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := o.RoundTrip(r)
	if err == nil {
		_ = answer.Body.Close()
	}
	return err
}

// seconds are the times of the openings after a start.
func (a *answers) seconds(start time.Time) []int {
	var out []int
	for _, at := range a.at {
		out = append(out, int(at.Sub(start)/time.Second))
	}
	return out
}

func TestOpeningsAreSpaced(t *testing.T) {
	for _, c := range []struct {
		name string
		step func(o *opening) // after each opening
		want []int
	}{
		{"links that never come to be", func(*opening) {}, []int{0, 1, 3, 8, 18, 38, 68}},
		{"too many links, each after its hello", func(o *opening) { o.hello(); o.told(reasonCrowded) }, []int{0, 1, 3, 8, 18, 38, 68}},
		{"links that end in their first second", func(o *opening) { o.hello(); o.told("refresh_requested") }, []int{0, 1, 3, 8, 18, 38, 68}},
		{"links that live for an hour and are refreshed", func(o *opening) { live(o, time.Hour); o.told("refresh_requested") }, []int{0, 3600, 7200, 10800, 14400, 18000, 21600}},
		{"links that live for an hour and break", func(o *opening) { live(o, time.Hour) }, []int{0, 3600, 7200, 10800, 14400, 18000, 21600}},
		{"socket mode is switched off", func(o *opening) { o.hello(); o.told(reasonDisabled) }, []int{0, 600, 1200, 1800, 2400, 3000, 3600}},
		{"socket mode is switched off after an hour", func(o *opening) { live(o, time.Hour); o.told(reasonDisabled) }, []int{0, 4200, 8400, 12600, 16800, 21000, 25200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &answers{}
				o := newOpening(Timing{}.withDefaults(), network)
				start := time.Now()
				for range c.want {
					if err := openOnce(t, t.Context(), o); err != nil {
						t.Fatal(err)
					}
					c.step(o)
				}
				got := network.seconds(start)
				for i := range c.want {
					if got[i] != c.want[i] {
						t.Fatalf("opened after %v seconds, want %v", got, c.want)
					}
				}
			})
		})
	}
}

// live lets a link live for a while, with pings.
func live(o *opening, d time.Duration) {
	o.hello()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(10 * time.Second)
		o.heard()
	}
}

func TestAStormIsForgottenAfterALongLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &answers{}
		o := newOpening(Timing{}.withDefaults(), network)
		for range 8 {
			_ = openOnce(t, t.Context(), o)
			o.hello()
			o.told(reasonCrowded)
		}
		_ = openOnce(t, t.Context(), o)
		live(o, time.Hour)
		start := time.Now()
		_ = openOnce(t, t.Context(), o)
		if wait := time.Since(start); wait > 0 {
			t.Errorf("the opening after an hour waited %s", wait)
		}
	})
}

func TestRetryAfterIsHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &answers{status: http.StatusTooManyRequests, after: "70"}
		o := newOpening(Timing{}.withDefaults(), network)
		start := time.Now()
		for range 3 {
			_ = openOnce(t, t.Context(), o)
		}
		if got := network.seconds(start); got[1] != 70 || got[2] != 140 {
			t.Errorf("opened after %v seconds", got)
		}
	})
}

func TestWaitingForAnOpeningEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOpening(Timing{}.withDefaults(), &answers{})
		_ = openOnce(t, t.Context(), o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := openOnce(t, ctx, o); err == nil {
			t.Error("the opening did not end")
		}
	})
}

func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{BotToken: "xoxb-1", AppToken: "xapp-1"})
		if err != nil {
			t.Fatal(err)
		}
		if s.Stale() == nil {
			t.Error("what was never linked is not stale")
		}
		s.opening.hello()
		time.Sleep(74 * time.Second)
		if err := s.Stale(); err != nil {
			t.Errorf("stale too soon: %v", err)
		}
		time.Sleep(2 * time.Second)
		if s.Stale() == nil {
			t.Error("a silent link is not stale")
		}
		s.opening.heard()
		if err := s.Stale(); err != nil {
			t.Errorf("stale after a ping: %v", err)
		}
		s.opening.told(reasonDisabled)
		if err := s.Stale(); err != errDisabled {
			t.Errorf("switched off, and stale says %v", err)
		}
	})
}
