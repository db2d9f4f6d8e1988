package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"nudge/bot/wire"
)

// Discord's limits (docs.discord.com/developers/topics/rate-limits). Those of a route come with each answer.
const (
	mostASecond = 48               // calls of a bot in all; Discord takes 50
	mostLooks   = 20               // of these, to read what was said; what people wait for comes first
	mostSigns   = 10               // of these, to show that something is being written; those for which there is no room are left out
	mostInvalid = 5000             // answers in ten minutes that Discord counts; for 10,000 it bans the address of the machine
	mostWait    = 10 * time.Second // for a route's turn; what has to wait longer is refused, and tried again later
	banned      = time.Minute      // the least wait after an answer that is not the API's, which comes from what stands in front of it
	unsaidWait  = 5 * time.Second  // after a refusal that does not say for how long
	mostRoutes  = 5000             // that are remembered
)

// limiter stands between discordgo and the network. It sends calls to where the API is, lets each wait until its route takes
// one, and makes errors of answers that say that there were too many calls or that Discord is out of order. discordgo's own
// limiter waits without regard to contexts, and keeps a lock for each path for ever.
type limiter struct {
	next    http.RoundTripper
	alarm   func(text string) // told when so much is refused that no call is made for a while; nil for nobody
	api     *url.URL          // such as https://discord.com/api
	timeout time.Duration

	mu      sync.Mutex
	routes  map[string]*budget // by bucket and place, or by route while its bucket is not known
	buckets map[string]string  // route → bucket and place
	global  time.Time          // until when Discord takes no call
	calls   calls
	invalid invalid // answers of the last ten minutes
}

// calls are those under way, and when those of the last second were answered: Discord has counted a call somewhere between its
// beginning and its answer.
type calls struct {
	underWay int
	answered []time.Time
}

// wait is how long there is no room for one more call, if a second may have so many; a guess while that depends on an answer.
func (c *calls) wait(now time.Time, most int) time.Duration {
	for len(c.answered) > 0 && now.Sub(c.answered[0]) >= time.Second {
		c.answered = c.answered[1:]
	}
	switch over := c.underWay + len(c.answered) - most + 1; {
	case over <= 0:
		return 0
	case over <= len(c.answered):
		return c.answered[over-1].Add(time.Second).Sub(now)
	}
	return 20 * time.Millisecond
}

// invalid counts answers that Discord calls invalid: 401, 403 and 429, but for those of a limit that others share
// (docs.discord.com/developers/topics/rate-limits#invalid-request-limit-aka-cloudflare-bans).
type invalid struct {
	counts [10]int // by minute
	minute int64   // of the last one
	told   bool
}

func (c *invalid) add(now time.Time) {
	c.turn(now)
	c.counts[c.minute%10]++
}

// turn lets the counts of minutes that are over go.
func (c *invalid) turn(now time.Time) {
	minute := now.Unix() / 60
	for ; c.minute < minute; c.minute++ {
		if minute-c.minute > 10 {
			c.counts, c.minute = [10]int{}, minute-1
		}
		c.counts[(c.minute+1)%10] = 0
	}
}

// tooMany reports whether no call may be made any more.
func (c *invalid) tooMany(now time.Time) bool {
	c.turn(now)
	sum := 0
	for _, n := range c.counts {
		sum += n
	}
	return sum >= mostInvalid
}

// budget is what is left of a route's calls.
type budget struct {
	left    int
	reset   time.Time // when there are more
	refused time.Time // until when Discord refuses
}

func newLimiter(api *url.URL, timeout time.Duration, next http.RoundTripper) *limiter {
	return &limiter{next: next, api: api, timeout: timeout, routes: map[string]*budget{}, buckets: map[string]string{}}
}

// limitedError is of a call that was refused because there were too many, by Discord or before it was made.
type limitedError struct {
	route  string
	wait   time.Duration
	global bool
}

func (e *limitedError) Error() string {
	what := e.route
	if e.global {
		what = "everything"
	}
	return fmt.Sprintf("too many calls: discord takes none of %s for %s", what, e.wait.Round(time.Millisecond))
}

// brokenError is of a call that Discord could not answer, so that nobody knows whether it was done.
type brokenError struct{ status string }

func (e *brokenError) Error() string { return "discord is out of order: " + e.status }

// RoundTrip sends a request on, when its turn has come.
func (l *limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, libraryPath)
	route, place, free := routeOf(r.Method, path)
	if err := l.await(r.Context(), route, place, free); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	if !free {
		defer l.answered()
	}
	answer, err := wire.Send(l.next, l.redirected(r, path), l.timeout)
	if err != nil {
		return nil, err
	}
	if err := l.learn(answer, route, place, free); err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// redirected is a request to where the API is, in the version that is spoken here.
func (l *limiter) redirected(r *http.Request, path string) *http.Request {
	r = r.Clone(r.Context())
	to := *l.api
	to.Path = strings.TrimSuffix(to.Path, "/") + "/v" + apiVersion + path
	if raw := r.URL.RawPath; raw != "" {
		to.RawPath = strings.TrimSuffix(l.api.EscapedPath(), "/") + "/v" + apiVersion + strings.TrimPrefix(raw, libraryPath)
	}
	to.RawQuery = r.URL.RawQuery
	r.URL, r.Host = &to, to.Host
	return r
}

// routeOf names the route of a call and the place that it is counted for. Answers to interactions are free: they are not
// counted with a bot's other calls, and each has a token of its own.
func routeOf(method, path string) (route, place string, free bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case parts[0] == "interactions", parts[0] == "webhooks":
		return method + " " + parts[0], "", true
	case len(parts) > 1 && (parts[0] == "channels" || parts[0] == "guilds"):
		place = parts[1]
	}
	for i, part := range parts {
		if isID(part) {
			parts[i] = "*"
		}
	}
	if len(parts) > 5 && parts[4] == "reactions" {
		parts[5] = "*"
	}
	return method + " /" + strings.Join(parts, "/"), place, false
}

// await waits until a route takes a call. It does not wait while Discord refuses, nor for long: then the error is a
// [*limitedError] that says for how long.
func (l *limiter) await(ctx context.Context, route, place string, free bool) error {
	for {
		wait, err := l.turn(route, place, free)
		if err != nil {
			return err
		}
		if err := wire.Sleep(ctx, wait); err != nil {
			return &wire.UnsentError{Err: err}
		}
		if wait <= 0 {
			return nil
		}
	}
}

// turn takes a call of a route's, or says how long there is none.
func (l *limiter) turn(route, place string, free bool) (wait time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.invalid.tooMany(now) {
		return 0, &limitedError{route: route, wait: time.Minute, global: true}
	}
	if free {
		return 0, nil
	}
	if wait = l.global.Sub(now); wait > 0 {
		return 0, &limitedError{route: route, wait: wait, global: true}
	}
	b := l.budget(route, place)
	if b != nil {
		if wait = b.refused.Sub(now); wait > 0 {
			return 0, &limitedError{route: route, wait: wait}
		}
		if wait = b.reset.Sub(now); b.left <= 0 && wait > 0 {
			if wait > mostWait {
				return 0, &limitedError{route: route, wait: wait}
			}
			return wait, nil
		}
	}
	switch wait = l.calls.wait(now, mostOf(route)); {
	case wait > 0 && route == routeTyping:
		return 0, &limitedError{route: route, wait: wait}
	case wait > 0:
		return wait, nil
	}
	if b != nil {
		b.left--
	}
	l.calls.underWay++
	return 0, nil
}

// answered notes that a call is under way no more.
func (l *limiter) answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls.underWay--
	l.calls.answered = append(l.calls.answered, time.Now())
}

// The routes of calls for which nobody waits.
const (
	routeTyping = "POST /channels/*/typing"
	routeLook   = "GET /channels/*/messages"
)

// mostOf is how many calls there may have been in a second for one more of a route.
func mostOf(route string) int {
	switch route {
	case routeTyping:
		return mostSigns
	case routeLook:
		return mostLooks
	}
	return mostASecond
}

// budget is that of a route in a place; nil while nothing is known of it. The caller holds mu.
func (l *limiter) budget(route, place string) *budget {
	if bucket, known := l.buckets[route+" "+place]; known {
		return l.routes[bucket]
	}
	return l.routes[route+" "+place]
}

// learn reads what an answer says of the limits. The error is that of an answer that was no answer to what was asked.
func (l *limiter) learn(answer *http.Response, route, place string, free bool) error {
	l.count(answer)
	switch {
	case answer.StatusCode == http.StatusTooManyRequests:
		return l.refuse(answer, route, place, free)
	case answer.StatusCode >= http.StatusInternalServerError:
		return &brokenError{answer.Status}
	case free:
		return nil
	}
	left, err := strconv.Atoi(answer.Header.Get("X-RateLimit-Remaining"))
	after, fault := strconv.ParseFloat(answer.Header.Get("X-RateLimit-Reset-After"), 64)
	if err != nil || fault != nil || after < 0 || after > 1e6 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.known(route, place, answer.Header.Get("X-RateLimit-Bucket"))
	b.left, b.reset = left, time.Now().Add(time.Duration(after*float64(time.Second)))
	return nil
}

// count counts an answer that Discord calls invalid, and tells when there are too many.
func (l *limiter) count(answer *http.Response) {
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
	default:
		return
	}
	if answer.Header.Get("X-RateLimit-Scope") == "shared" {
		return
	}
	now := time.Now()
	l.mu.Lock()
	l.invalid.add(now)
	tell := l.invalid.tooMany(now) && !l.invalid.told
	l.invalid.told = l.invalid.tooMany(now)
	l.mu.Unlock()
	if tell && l.alarm != nil {
		l.alarm(tooManyRefusals)
	}
}

const tooManyRefusals = "Discord has refused thousands of my calls within ten minutes. I make none for a while, since it would ban this machine's " +
	"address for more. The log says which; does the bot lack permissions, or does another program use its token?"

// known gives the budget of a route in a place, and makes it. The caller holds mu.
func (l *limiter) known(route, place, bucket string) *budget {
	name := route + " " + place
	if bucket != "" {
		if len(l.buckets) >= mostRoutes {
			clear(l.buckets)
		}
		l.buckets[name] = bucket + " " + place
		name = bucket + " " + place
	} else if other, known := l.buckets[name]; known {
		name = other
	}
	if len(l.routes) >= mostRoutes {
		now := time.Now()
		maps.DeleteFunc(l.routes, func(_ string, b *budget) bool { return b.reset.Before(now) && b.refused.Before(now) })
	}
	b := l.routes[name]
	if b == nil {
		b = &budget{}
		l.routes[name] = b
	}
	return b
}

// refuse lets a route rest, or everything, for as long as Discord says.
func (l *limiter) refuse(answer *http.Response, route, place string, free bool) error {
	var said struct {
		After  float64 `json:"retry_after"`
		Global bool    `json:"global"`
	}
	raw, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	e := &limitedError{route: route, wait: unsaidWait}
	header, err := strconv.ParseFloat(answer.Header.Get("Retry-After"), 64)
	if err == nil {
		e.wait = time.Duration(header * float64(time.Second))
	}
	if json.Unmarshal(raw, &said) != nil {
		e.global, e.wait, free = true, max(e.wait, banned), false
	} else if said.After > 0 {
		e.wait = time.Duration(said.After * float64(time.Second))
	}
	e.global = e.global || said.Global || answer.Header.Get("X-RateLimit-Global") == "true"
	if free {
		return e
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	until := time.Now().Add(e.wait)
	if e.global {
		l.global = until
		return e
	}
	l.known(route, place, answer.Header.Get("X-RateLimit-Bucket")).refused = until
	return e
}

// retryAfter is how long Discord asked to wait; 0 when it did not.
func retryAfter(err error) time.Duration {
	var limited *limitedError
	if errors.As(err, &limited) {
		return limited.wait
	}
	return 0
}

// limited reports whether a call was refused because there were too many.
func limited(err error) bool {
	var limited *limitedError
	return errors.As(err, &limited)
}
