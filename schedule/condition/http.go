package condition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nudge/schedule"
)

const (
	maxBody      = 4 << 20 // bytes of an answer; a longer one is an error
	maxSelected  = 1 << 20 // of one from which something is selected: it takes a hundred times as much while it is read
	maxRedirects = 5
)

// selecting has a place for each answer from which something is being selected, since hundreds of conditions can look at once.
var selecting = make(chan struct{}, 2)

// web looks at one address. With a status and no path it is true while the answer has that status; otherwise it watches
// what the path selects, or the whole answer, and an answer of another status than the wanted one says nothing.
//
// It sends no cookies and no keys, and follows redirects on the same host only: an address that the operator wrote may be
// one of this machine or network, one that somebody else's server names may not, nor one of a confined condition.
type web struct {
	url    *url.URL
	part   *selection        // nil for the whole answer
	status int               // 0 for any from 200 to 299
	public http.RoundTripper // reads the public internet and nothing else; nil where that is known not to do
	get    http.RoundTripper // for what it does not read; nil for nothing
}

func newWeb(spec schedule.Spec, env Env) (schedule.Condition, error) {
	w := web{status: spec.Status, get: env.Get}
	if env.Confined {
		if env.Public == nil {
			return nil, errors.New("heartbeat.condition.url: an address can be set in the config only")
		}
		if err := env.Public.Check(spec.URL); err != nil {
			return nil, fmt.Errorf("heartbeat.condition.url: %w", err)
		}
		w.get = nil
	}
	address, err := url.Parse(spec.URL)
	switch {
	case err != nil || address.Host == "":
		return nil, errors.New("heartbeat.condition.url: cannot be read; write it like https://example.com/status")
	case address.User != nil:
		return nil, errors.New("heartbeat.condition.url: must hold no user or password")
	}
	w.url = address
	if env.Public != nil && env.Public.Check(spec.URL) == nil && (env.Confined || !proxied(address)) {
		w.public = env.Public
	}
	if spec.Select != "" {
		if w.part, err = parseSelection(spec.Select); err != nil {
			return nil, fmt.Errorf("heartbeat.condition.select: %w", err)
		}
	}
	return w, nil
}

// plainRequests makes a connection for each look, since the next is minutes away.
var plainRequests = &http.Transport{
	Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
}

// proxied reports whether plain requests for an address go to a proxy. Then it is the proxy that knows where the address leads.
func proxied(address *url.URL) bool {
	proxy, err := plainRequests.Proxy(&http.Request{URL: address})
	return proxy != nil || err != nil
}

// bare is the address without what may be a key in it.
func (w web) bare() string {
	return (&url.URL{Scheme: w.url.Scheme, Host: w.url.Host, Path: w.url.Path}).String()
}

func (w web) Check(ctx context.Context, previous string) (schedule.Finding, error) {
	a, err := w.ask(ctx)
	if err != nil {
		return schedule.Finding{}, fmt.Errorf("check %s: %w", w.bare(), err)
	}
	seen := fmt.Sprintf("%s answered %d", w.bare(), a.status)
	if w.part == nil && w.status != 0 {
		return schedule.Finding{True: a.status == w.status, Evidence: evidence(seen), Public: a.public}, nil
	}
	if !w.wants(a.status) {
		return schedule.Finding{}, fmt.Errorf("check %s: it answered %d", w.bare(), a.status)
	}
	found := schedule.Finding{State: a.digest, Public: a.public}
	found.True = previous != "" && found.State != previous
	found.Evidence = evidence(seen + ": " + a.head)
	return found, nil
}

// wants reports whether an answer of a status says something of what is watched.
func (w web) wants(status int) bool {
	return status == w.status || w.status == 0 && status/100 == 2
}

// answered is what came of a request.
type answered struct {
	status int
	digest string // of what was selected, or of the whole body
	head   string // as much of that as is told
	public bool   // it is known to be of the public internet
}

// ask asks for the address. That a name of the operator's looks like one of the public internet does not tell that it
// is: names of a company's own network do too.
func (w web) ask(ctx context.Context) (a answered, err error) {
	if w.public != nil {
		a, err = w.askBy(ctx, w.public)
		if a.public = err == nil; err == nil || w.get == nil || ctx.Err() != nil {
			return a, err
		}
	}
	return w.askBy(ctx, w.get)
}

func (w web) askBy(ctx context.Context, get http.RoundTripper) (a answered, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), nil)
	if err != nil {
		return a, plainURL(err)
	}
	request.Header.Set("User-Agent", "nudge")
	client := http.Client{Transport: get, CheckRedirect: w.follow}
	answer, err := client.Do(request)
	if err != nil {
		return a, plainURL(err)
	}
	defer answer.Body.Close()
	a.status = answer.StatusCode
	if w.part == nil || !w.wants(a.status) {
		a.digest, a.head, err = digested(answer.Body)
		return a, err
	}
	selected, err := w.selected(ctx, answer.Body)
	if err != nil {
		return a, err
	}
	a.digest, a.head, err = digested(bytes.NewReader(selected))
	return a, err
}

// digested reads a body of which no more is kept than is told.
func digested(body io.Reader) (digest, head string, err error) {
	sum := sha256.New()
	body = io.TeeReader(io.LimitReader(body, maxBody+1), sum)
	start, err := io.ReadAll(io.LimitReader(body, schedule.MaxEvidence))
	if err != nil {
		return "", "", fmt.Errorf("read the answer: %w", err)
	}
	rest, err := io.Copy(io.Discard, body)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("read the answer: %w", err)
	case int64(len(start))+rest > maxBody:
		return "", "", fmt.Errorf("its answer is longer than %d MiB", maxBody>>20)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), string(start), nil
}

// selected is what the path selects of a body.
func (w web) selected(ctx context.Context, from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxSelected+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case len(body) > maxSelected:
		return nil, fmt.Errorf("its answer is longer than %d MiB, of which nothing is selected", maxSelected>>20)
	}
	select {
	case selecting <- struct{}{}:
		defer func() { <-selecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return w.part.from(body)
}

func (w web) follow(next *http.Request, before []*http.Request) error {
	switch {
	case len(before) > maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	case !strings.EqualFold(next.URL.Hostname(), w.url.Hostname()):
		return fmt.Errorf("it redirects to %s; if that is right, write that address", next.URL.Hostname())
	}
	return nil
}

// plainURL leaves the address out of an error: it may hold a key.
func plainURL(err error) error {
	var whole *url.Error
	if errors.As(err, &whole) {
		return whole.Err
	}
	return err
}
