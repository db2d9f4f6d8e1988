package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/discordgo"
)

// network answers calls as a test says.
type network struct {
	calls  []string
	at     []time.Time
	answer func(n int, r *http.Request) *http.Response
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.calls, n.at = append(n.calls, r.Method+" "+r.URL.String()), append(n.at, time.Now())
	return n.answer(len(n.calls), r), nil
}

func answered(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func limitedAPI(t *testing.T, answer func(n int, r *http.Request) *http.Response) (*api, *network) {
	t.Helper()
	n := &network{answer: answer}
	address := &url.URL{Scheme: "https", Host: "proxy.example", Path: "/discord/api"}
	a, err := newAPI("token", newLimiter(address, time.Minute, n))
	if err != nil {
		t.Fatal(err)
	}
	return a, n
}

func say(a *api, channel string) error {
	_, err := a.post(context.Background(), channel, "nonce", &discordgo.MessageSend{Content: "x"})
	return err
}

// TestRefusals has answers that say that there were too many calls, and what rests after each.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		answer *http.Response
		wait   time.Duration
		others bool // rest too
	}{
		"route":            {answered(429, `{"retry_after":1.337,"global":false}`), 1337 * time.Millisecond, false},
		"global":           {answered(429, `{"retry_after":2,"global":true}`), 2 * time.Second, true},
		"global by header": {answered(429, `{"retry_after":2}`, "X-RateLimit-Global", "true"), 2 * time.Second, true},
		"shared":           {answered(429, `{"retry_after":300,"global":false}`, "X-RateLimit-Scope", "shared", "X-RateLimit-Reset-After", "1"), 300 * time.Second, false},
		"banned":           {answered(429, "<html>1015</html>", "Retry-After", "5"), time.Minute, true},
		"says nothing":     {answered(429, `{}`), 5 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, n := limitedAPI(t, func(i int, _ *http.Request) *http.Response {
					if i == 1 {
						return c.answer
					}
					return answered(200, `{"id":"1"}`)
				})
				for range 3 { // of which only the first is made
					if got := retryAfter(say(a, "1")); got != c.wait {
						t.Errorf("the wait is %s, want %s", got, c.wait)
					}
				}
				if rests := limited(say(a, "2")); rests != c.others {
					t.Errorf("another channel rests: %t", rests)
				}
				calls := len(n.calls)
				time.Sleep(c.wait - time.Millisecond)
				if err := say(a, "1"); !limited(err) || len(n.calls) != calls {
					t.Errorf("too early: %v", err)
				}
				time.Sleep(2 * time.Millisecond)
				if err := say(a, "1"); err != nil {
					t.Errorf("in time: %v", err)
				}
			})
		})
	}
}

// TestTurns has a route that takes two calls in four seconds, which Discord says with each answer.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, n := limitedAPI(t, func(i int, _ *http.Request) *http.Response {
			return answered(200, `{"id":"1"}`, "X-RateLimit-Bucket", "b", "X-RateLimit-Remaining", fmt.Sprint(i%2), "X-RateLimit-Reset-After", "4")
		})
		began := time.Now()
		for range 6 {
			if err := say(a, "1"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 8*time.Second {
			t.Errorf("six calls took %s", took)
		}
		if want := "POST https://proxy.example/discord/api/v10/channels/1/messages"; n.calls[0] != want {
			t.Errorf("called %s, want %s", n.calls[0], want)
		}
		began = time.Now()
		if err := say(a, "2"); err != nil || time.Since(began) > 0 {
			t.Errorf("another channel waited %s: %v", time.Since(began), err)
		}
	})
}

// TestWaitEndsWithItsContext has somebody give up while waiting for a turn.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := limitedAPI(t, func(int, *http.Request) *http.Response {
			return answered(200, `{"id":"1"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset-After", "9")
		})
		if err := say(a, "1"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := a.post(ctx, "1", "nonce", &discordgo.MessageSend{Content: "x"})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second || unsure(err) {
			t.Errorf("after %s, unsure %t: %v", time.Since(began), unsure(err), err)
		}
	})
}

// TestAllTogether has more calls than a bot may make in a second.
func TestAllTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, n := limitedAPI(t, func(int, *http.Request) *http.Response { return answered(200, `{"id":"1"}`) })
		for i := range 200 {
			if err := say(a, fmt.Sprint(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n.at {
			if i >= 50 && n.at[i].Sub(n.at[i-50]) < time.Second {
				t.Fatalf("calls %d to %d were made in %s", i-50, i, n.at[i].Sub(n.at[i-50]))
			}
		}
	})
}

// TestManyInteractions answers a great many: nothing is kept of any, and they wait for nothing.
func TestManyInteractions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{answer: func(int, *http.Request) *http.Response { return answered(204, "") }}
		limiter := newLimiter(&url.URL{Scheme: "https", Host: "d", Path: "/api"}, time.Minute, n)
		a, err := newAPI("token", limiter)
		if err != nil {
			t.Fatal(err)
		}
		limiter.global = time.Now().Add(time.Hour)
		for i := range 20_000 {
			if err := a.answer(context.Background(), interaction{ID: fmt.Sprint(i + 1), Token: "t"}, answer{Type: answerTaken}); err != nil {
				t.Fatal(err)
			}
			n.calls, n.at = nil, nil
		}
		if kept := len(limiter.routes) + len(limiter.buckets); kept > 0 {
			t.Errorf("%d things are kept", kept)
		}
	})
}

// TestBurstsAcrossSeconds has a burst at the end of a second that began with one call, and one after it.
func TestBurstsAcrossSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, n := limitedAPI(t, func(int, *http.Request) *http.Response { return answered(200, `{"id":"1"}`) })
		burst := func(calls int) {
			for i := range calls {
				if err := say(a, fmt.Sprint(i+1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		burst(1)
		time.Sleep(900 * time.Millisecond)
		burst(44)
		time.Sleep(100 * time.Millisecond)
		burst(60)
		for i := range n.at {
			if i >= 50 && n.at[i].Sub(n.at[i-50]) < time.Second {
				t.Fatalf("calls %d to %d were made in %s", i-50, i, n.at[i].Sub(n.at[i-50]))
			}
		}
	})
}

// slow is a network on which calls take a while, and arrive at some time within it.
type slow struct {
	mu      sync.Mutex
	arrived []time.Time
}

func (n *slow) RoundTrip(*http.Request) (*http.Response, error) {
	n.mu.Lock()
	there, back := time.Duration(rand.IntN(400))*time.Millisecond, time.Duration(rand.IntN(400))*time.Millisecond
	n.mu.Unlock()
	time.Sleep(there)
	n.mu.Lock()
	n.arrived = append(n.arrived, time.Now())
	n.mu.Unlock()
	time.Sleep(back)
	return answered(200, `{"id":"1"}`), nil
}

// TestManyAtOnceOnASlowNetwork has calls side by side that arrive closer together than they were made: no second has more than
// Discord takes.
func TestManyAtOnceOnASlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &slow{}
		a, err := newAPI("token", newLimiter(&url.URL{Scheme: "https", Host: "d", Path: "/api"}, time.Minute, n))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var group sync.WaitGroup
		for i := range 300 {
			group.Go(func() {
				if err := say(a, fmt.Sprint(i+1)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for i := range n.arrived {
			if i >= 50 && n.arrived[i].Sub(n.arrived[i-50]) < time.Second {
				t.Fatalf("calls %d to %d arrived within %s", i-50, i, n.arrived[i].Sub(n.arrived[i-50]))
			}
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestWordsComeFirst has signs that something is written and looks at channels take most of a second: words find room.
func TestWordsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, n := limitedAPI(t, func(int, *http.Request) *http.Response { return answered(200, `[]`) })
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		typed, looked := 0, 0
		for i := range 40 {
			if err := a.typing(ctx, fmt.Sprint(i+1)); err == nil {
				typed++
			} else if !limited(err) {
				t.Fatal(err)
			}
		}
		for i := range 40 {
			if err := a.page(ctx, fmt.Sprint(i+1), "1", nil); err == nil {
				looked++
			}
		}
		if typed != mostSigns || typed+looked != mostLooks {
			t.Errorf("%d signs and %d looks were let through", typed, looked)
		}
		began, before := time.Now(), len(n.calls)
		for i := range mostASecond - mostLooks {
			if _, err := a.post(context.Background(), fmt.Sprint(i+1), "nonce", &discordgo.MessageSend{Content: "x"}); err != nil && !strings.Contains(err.Error(), "read the answer") {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 0 || len(n.calls) != before+mostASecond-mostLooks {
			t.Errorf("words waited for %s", took)
		}
	})
}

// TestRefusalsAreCounted lets Discord refuse everything, as it does for a bot without permissions: long before it would ban the
// machine no call is made any more, not even one that answers an interaction, which is told once; and they go on later.
func TestRefusalsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		answer func() *http.Response
		counts bool
	}{
		"401":          {func() *http.Response { return answered(401, `{"code":0}`) }, true},
		"403":          {func() *http.Response { return answered(403, `{"code":50001}`) }, true},
		"429":          {func() *http.Response { return answered(429, `{"retry_after":0.001}`) }, true},
		"429 of a few": {func() *http.Response { return answered(429, `{"retry_after":0.001}`, "X-RateLimit-Scope", "shared") }, false},
		"404":          {func() *http.Response { return answered(404, `{"code":10003}`) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{answer: func(int, *http.Request) *http.Response { return c.answer() }}
				l := newLimiter(&url.URL{Scheme: "https", Host: "d", Path: "/api"}, time.Minute, n)
				alarms := 0
				l.alarm = func(string) { alarms++ }
				a, err := newAPI("token", l)
				if err != nil {
					t.Fatal(err)
				}
				for range mostInvalid - 100 { // so many before these
					l.count(c.answer())
				}
				for i := range 200 {
					_ = say(a, fmt.Sprint(i+1))
				}
				made, want := len(n.calls), 200
				if c.counts {
					want = 100
				}
				if made != want || alarms > 0 != c.counts || alarms > 1 {
					t.Fatalf("%d calls were made, and there were %d alarms", made, alarms)
				}
				if !c.counts {
					return
				}
				err = a.answer(context.Background(), interaction{ID: "1", Token: "t"}, answer{Type: answerTaken})
				if retryAfter(err) == 0 || len(n.calls) != made {
					t.Errorf("an interaction was answered: %v", err)
				}
				time.Sleep(10 * time.Minute)
				if _ = say(a, "1"); len(n.calls) != made+1 {
					t.Error("no call is made any more")
				}
			})
		})
	}
}
