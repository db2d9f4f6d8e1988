package condition

import (
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
	maxRedirects = 5
)

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
	status, body, public, err := w.ask(ctx)
	if err != nil {
		return schedule.Finding{}, fmt.Errorf("check %s: %w", w.bare(), err)
	}
	seen := fmt.Sprintf("%s answered %d", w.bare(), status)
	if w.part == nil && w.status != 0 {
		return schedule.Finding{True: status == w.status, Evidence: evidence(seen), Public: public}, nil
	}
	if w.status == 0 && status/100 != 2 || w.status != 0 && status != w.status {
		return schedule.Finding{}, fmt.Errorf("check %s: it answered %d", w.bare(), status)
	}
	selected := body
	if w.part != nil {
		if selected, err = w.part.from(body); err != nil {
			return schedule.Finding{}, fmt.Errorf("check %s: %w", w.bare(), err)
		}
	}
	sum := sha256.Sum256(selected)
	found := schedule.Finding{State: hex.EncodeToString(sum[:16]), Public: public}
	found.True = previous != "" && found.State != previous
	found.Evidence = evidence(seen + ": " + string(selected))
	return found, nil
}

// ask gives the status and the whole body, and whether they are known to be of the public internet. That a name of the operator's
// looks like one of it does not tell: names of a company's own network do too.
func (w web) ask(ctx context.Context) (status int, body []byte, public bool, err error) {
	if w.public != nil {
		status, body, err = w.askBy(ctx, w.public)
		if err == nil || w.get == nil || ctx.Err() != nil {
			return status, body, err == nil, err
		}
	}
	status, body, err = w.askBy(ctx, w.get)
	return status, body, false, err
}

func (w web) askBy(ctx context.Context, get http.RoundTripper) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), nil)
	if err != nil {
		return 0, nil, plainURL(err)
	}
	request.Header.Set("User-Agent", "nudge")
	client := http.Client{Transport: get, CheckRedirect: w.follow}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, plainURL(err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	case len(body) > maxBody:
		return 0, nil, fmt.Errorf("its answer is longer than %d MiB", maxBody>>20)
	}
	return answer.StatusCode, body, nil
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
