package slack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"nudge/bot/wire"
)

// allowances are how often methods may be called in a minute, per workspace, by all conversations together. Slack
// promises these tiers at the least (docs.slack.dev/apis/web-api/rate-limits and the methods' own pages). Posting has
// no tier: it is a message a second in each channel, for which see pace, and "several hundred" a minute in all.
var allowances = map[string]int{
	"chat.postMessage":             300,
	"auth.test":                    300,
	"assistant.threads.setStatus":  600,
	"reactions.remove":             20,
	"chat.startStream":             20,
	"chat.stopStream":              20,
	"chat.appendStream":            100,
	"chat.postEphemeral":           100,
	"users.info":                   100,
	"views.open":                   100,
	"views.push":                   100,
	"views.update":                 100,
	"views.publish":                100,
	"files.info":                   100,
	"files.getUploadURLExternal":   100,
	"files.completeUploadExternal": 100,
}

// fleeting are methods whose calls are of no use later: those that show that something is done, those that Slack takes
// only for some seconds after a click, and what a message would have to wait for.
var fleeting = []string{
	"assistant.threads.setStatus", "agents.sessions.setStatus", "chat.startStream", "chat.appendStream", "views.open", "views.push", "users.info",
}

// usual is the allowance of all other methods, such as chat.update and conversations.replies: the third tier.
const usual = 50

const (
	spareShare   = 5                // one of so many calls of a method is kept for what cannot be left out
	unsaidRefuse = 10 * time.Second // how long a method rests when Slack refuses it without saying for how long
)

// limiter stands between slack-go and the network. It lets each method be called as often as Slack allows it, and not at
// all for as long as Slack has said. What people wait for goes before what only shows that something is done ([inPassing]).
type limiter struct {
	next    http.RoundTripper
	pace    *pace
	host    string // of the API
	path    string // of the API, in front of the method
	minute  time.Duration
	timeout time.Duration // of a call, the wait for its turn not counted

	mu      sync.Mutex
	budgets map[string]*budget // by method
}

// budget is what is left of a method's calls.
type budget struct {
	limit   int
	calls   []time.Time // those of the last minute, oldest first
	passing time.Time   // when the last call was made that was in passing
	blocked time.Time   // until when Slack refuses
	waiting []*turn     // in the order in which they came
	timer   *time.Timer // runs while somebody waits
}

// turn is a call that waits.
type turn struct {
	passing bool
	come    chan error // nil when it may be made
}

func newLimiter(timing Timing, api string, next http.RoundTripper, pace *pace) *limiter {
	l := &limiter{next: next, pace: pace, minute: timing.Minute, timeout: timing.Timeout, budgets: map[string]*budget{}}
	if u, err := url.Parse(api); err == nil {
		l.host, l.path = u.Host, u.Path
	}
	return l
}

// rank is what a context says of the calls made with it.
type rank int

const (
	passing rank = iota + 1 // they may wait for all others
	atOnce                  // they are refused rather than made to wait
)

type (
	rankKey  struct{}
	leaveKey struct{} // holds the method that may be called now
)

// inPassing marks calls that can wait for all others, such as edits of progress.
func inPassing(ctx context.Context) context.Context {
	return context.WithValue(ctx, rankKey{}, passing)
}

// nowOrNever marks calls that are of no use later, as those of the fleeting methods are in any case. When there is no room
// for one it is refused as Slack would.
func nowOrNever(ctx context.Context) context.Context {
	return context.WithValue(ctx, rankKey{}, atOnce)
}

// leave waits until a method may be called once, and returns a context with which it is. Who has to put together what is
// said only after the wait, asks for leave before.
func (l *limiter) leave(ctx context.Context, method string) (context.Context, error) {
	if err := l.await(ctx, method); err != nil {
		return nil, err
	}
	return context.WithValue(ctx, leaveKey{}, method), nil
}

// RoundTrip sends a request on, when its turn has come.
func (l *limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	method := l.method(r.URL)
	if method != "" && r.Context().Value(leaveKey{}) != method {
		if err := l.await(r.Context(), method); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			var limited *slack.RateLimitedError
			if errors.As(err, &limited) {
				return tooMany(r, limited.RetryAfter), nil
			}
			return nil, &wire.UnsentError{Err: err}
		}
	}
	answer, err := wire.Send(l.next, r, l.timeout)
	if err != nil {
		return nil, err
	}
	if method != "" && answer.StatusCode == http.StatusTooManyRequests {
		l.refused(r, method, answer)
	}
	return answer, nil
}

// method is what a request calls; "" when it goes elsewhere, such as to where files are uploaded.
func (l *limiter) method(u *url.URL) string {
	method, ok := strings.CutPrefix(u.Path, l.path)
	if !ok || u.Host != l.host {
		return ""
	}
	return method
}

// tooMany is what Slack would answer.
func tooMany(r *http.Request, wait time.Duration) *http.Response {
	answer := &http.Response{
		Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: r,
	}
	answer.Header.Set("Retry-After", wholeSeconds(wait))
	return answer
}

func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// refused lets a method rest after Slack has refused it. A refused message may mean its channel or the whole workspace,
// and Slack does not tell which. The other channels go on until one of them is refused as well.
func (l *limiter) refused(r *http.Request, method string, answer *http.Response) {
	wait := unsaidRefuse
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else {
		answer.Header.Set("Retry-After", wholeSeconds(wait))
	}
	if method == "chat.postMessage" && !l.pace.hold(formValue(r, "channel"), wait) {
		return
	}
	l.block(method, wait)
}

// formValue is a field of a request's form; "" when there is none.
func formValue(r *http.Request, name string) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer func() { _ = body.Close() }()
	raw, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return ""
	}
	return form.Get(name)
}

// block lets a method rest. Those who wait for it are refused, since they would wait too long.
func (l *limiter) block(method string, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budget(method)
	if until := time.Now().Add(wait); until.After(b.blocked) {
		b.blocked = until
	}
	for _, t := range b.waiting {
		t.come <- &slack.RateLimitedError{RetryAfter: wait}
	}
	b.waiting = nil
	l.admit(b)
}

// await waits until a method may be called. It does not wait while Slack refuses the method: then the error is a
// [*slack.RateLimitedError] that says for how long.
func (l *limiter) await(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rank, marked := ctx.Value(rankKey{}).(rank)
	if !marked && slices.Contains(fleeting, method) {
		rank = atOnce
	}
	l.mu.Lock()
	b := l.budget(method)
	now := time.Now()
	wait := b.blocked.Sub(now)
	if rank == atOnce {
		wait = max(wait, b.wait(now, l.minute, false))
	}
	if wait > 0 {
		l.mu.Unlock()
		return &slack.RateLimitedError{RetryAfter: wait}
	}
	t := &turn{passing: rank == passing, come: make(chan error, 1)}
	b.waiting = append(b.waiting, t)
	l.admit(b)
	l.mu.Unlock()
	select {
	case err := <-t.come:
		return err
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		b.waiting = slices.DeleteFunc(b.waiting, func(other *turn) bool { return other == t })
		l.admit(b)
		return ctx.Err()
	}
}

// budget is that of a method. The caller holds mu.
func (l *limiter) budget(method string) *budget {
	b := l.budgets[method]
	if b == nil {
		b = &budget{limit: usual}
		if limit, ok := allowances[method]; ok {
			b.limit = limit
		}
		l.budgets[method] = b
	}
	return b
}

// admit lets all go whose turn it is, and comes back when it is the next one's. The caller holds mu.
func (l *limiter) admit(b *budget) {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	for len(b.waiting) > 0 {
		first := max(0, slices.IndexFunc(b.waiting, func(t *turn) bool { return !t.passing }))
		t, now := b.waiting[first], time.Now()
		if wait := b.wait(now, l.minute, t.passing); wait > 0 {
			b.timer = time.AfterFunc(wait, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.admit(b)
			})
			return
		}
		b.calls = append(b.calls, now)
		if t.passing {
			b.passing = now
		}
		b.waiting = slices.Delete(b.waiting, first, first+1)
		t.come <- nil
	}
}

// wait is how long the next call has to wait. What is in passing leaves some room, and is spread over what is left of the
// minute when half of it is used up. Slack counts when calls arrive, so that a minute is taken to be a little longer.
func (b *budget) wait(now time.Time, minute time.Duration, passing bool) time.Duration {
	minute += minute / 20
	for len(b.calls) > 0 && now.Sub(b.calls[0]) >= minute {
		b.calls = b.calls[1:]
	}
	limit, wait := b.limit, time.Duration(0)
	if passing {
		limit -= b.limit / spareShare
		if n := len(b.calls); n >= limit/2 {
			gap := minute / time.Duration(limit)
			if n < limit {
				gap = max(gap, b.calls[0].Add(minute).Sub(now)/time.Duration(limit-n))
			}
			wait = b.passing.Add(gap).Sub(now)
		}
	}
	if n := len(b.calls); n >= limit {
		wait = max(wait, b.calls[n-limit].Add(minute).Sub(now))
	}
	return wait
}
