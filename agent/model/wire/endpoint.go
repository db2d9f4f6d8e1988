// Package wire is what the models that ask a provider over HTTP have in common: how a request is posted and its answer
// read, within which times and sizes, and what an error may say.
//
// A model sets up an [Endpoint] and gives it a request and a [Draft], which is what differs: it knows the provider's
// words. [Endpoint.Answer] posts the request, finds out whether a whole answer, a stream or something else came back,
// and feeds the draft. An answer that broke off is an error, never an answer. No error that leaves has a key in it.
//
// To follow a request: beginning.go splices it from the one before, pieces.go is how it is posted. To follow an answer:
// endpoint.go posts, body.go reads, events.go cuts a stream into events; value.go and call.go help a draft to decode
// them. fault.go says what went wrong instead, retry.go when to try again, secret.go keeps keys inside.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"nudge/agent/model"
)

// The times that hold when nothing else is configured.
const (
	DefaultCallTimeout = 10 * time.Minute
	DefaultIdleTimeout = 2 * time.Minute
)

// Grace is the silence that is borne once nothing important can follow.
const Grace = 5 * time.Second

const (
	maxAnswer    = 32 << 20 // bytes of one answer that are read
	maxErrorBody = 64 << 10 // bytes of an error page that are read
)

// Config says where requests go. BaseURL and Path must be set.
type Config struct {
	BaseURL string // http or https, no user or password in it; a query is kept
	Path    string // is added to the path of BaseURL, such as "chat/completions"

	Key       string      // sent as KeyHeader, without white space around it; none is sent when it is empty
	KeyHeader string      // such as "Authorization"
	KeyPrefix string      // stands before the key in the header, such as "Bearer "
	Header    http.Header // sent besides Content-Type, Accept, User-Agent and the key
	Stream    bool        // whether a stream is asked for, which the header Accept says too

	CallTimeout time.Duration // of a whole call; DefaultCallTimeout when 0
	IdleTimeout time.Duration // the longest silence in a stream; DefaultIdleTimeout when 0

	HTTP *http.Client // whose transport is used; redirects are not followed whatever it says. May be nil
}

// Endpoint is the address that a model's requests go to. It has no state of its own and may be used concurrently.
type Endpoint struct {
	url     string // with the query, which may hold a key
	shown   string // the same without the query, for logs
	header  http.Header
	secrets []string // what must not stand in an error
	call    time.Duration
	idle    time.Duration
	limit   int64 // bytes of an answer that are read
	http    *http.Client
}

// Write writes a request in the provider's words.
type Write func(ctx context.Context, req model.Request) (Pieces, error)

// NewEndpoint returns an endpoint. Its errors say which part of the config cannot be used, and never quote the key.
func NewEndpoint(cfg Config) (*Endpoint, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	key := strings.TrimSpace(cfg.Key)
	switch {
	case strings.ContainsFunc(key, unicode.IsControl):
		return nil, errors.New("set up the model: the key holds a character that no key can have")
	case cfg.CallTimeout < 0 || cfg.IdleTimeout < 0:
		return nil, errors.New("set up the model: a timeout is negative")
	}
	full := base.JoinPath(cfg.Path)
	e := &Endpoint{
		url: full.String(), header: headerOf(cfg, key), secrets: secretsOf(key, full.Query()),
		call: cfg.CallTimeout, idle: cfg.IdleTimeout, limit: maxAnswer, http: withoutRedirects(cfg.HTTP),
	}
	full.RawQuery = ""
	e.shown = full.String()
	if e.call == 0 {
		e.call = DefaultCallTimeout
	}
	if e.idle == 0 {
		e.idle = DefaultIdleTimeout
	}
	return e, nil
}

// parseBase checks a base URL. It does not quote it, since people paste keys into it.
func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case strings.TrimSpace(raw) == "":
		return nil, errors.New("set up the model: base_url is missing")
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, errors.New("set up the model: base_url is no http or https address")
	case u.User != nil:
		return nil, errors.New("set up the model: base_url must not hold a user or password")
	}
	u.Fragment = ""
	return u, nil
}

func headerOf(cfg Config, key string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	if cfg.Stream {
		h.Set("Accept", "text/event-stream, application/json")
	}
	h.Set("User-Agent", "nudge")
	maps.Copy(h, cfg.Header)
	if key != "" {
		h.Set(cfg.KeyHeader, cfg.KeyPrefix+key)
	}
	return h
}

// withoutRedirects keeps the key, and the conversation, from going to a host that nobody configured.
func withoutRedirects(from *http.Client) *http.Client {
	var own http.Client
	if from != nil {
		own = *from
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// Answer writes a request, posts it once and returns what d makes of the response. Its errors are those of [model.Model]: when
// ctx ends, ctx's cause, else a [*model.Error].
func (e *Endpoint) Answer(ctx context.Context, req model.Request, write Write, d Draft) (model.Answer, error) {
	if ctx.Err() != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	body, err := write(ctx, req)
	if err != nil {
		return model.Answer{}, e.clean(&model.Error{Fault: model.FaultRefused, Say: "the request to the model could not be written", Err: err})
	}
	answer, fault := e.ask(ctx, body, d)
	if ctx.Err() != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	if fault != nil {
		return model.Answer{}, e.clean(fault)
	}
	return answer, nil
}

// ask sends a request and reads the answer into d. A second context carries the two timeouts, so that they end
// whatever the call is waiting for.
func (e *Endpoint) ask(ctx context.Context, body Pieces, d Draft) (model.Answer, *model.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.call, errOverdue)
	defer cancel()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)

	resp, err := e.post(ctx, body)
	if err != nil {
		return model.Answer{}, unreachable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	heard := watch(resp.Body, func() { hangUp(errSilent) })
	defer heard.stop()

	if resp.StatusCode/100 != 2 {
		heard.idle = Grace
		page, _ := io.ReadAll(io.LimitReader(heard, maxErrorBody))
		return model.Answer{}, ParseError(page).refusal(resp.StatusCode, resp.Header)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/json" {
		heard.idle = e.idle
	}
	fault := read(ctx, heard, kind, e.limit, d)
	if fault == nil {
		var answer model.Answer
		if answer, fault = d.Answer(); fault == nil {
			return answer, nil
		}
	}
	fault.Began = fault.Began || d.Began()
	if fault.Status == 0 {
		fault.Status = resp.StatusCode
	}
	return model.Answer{}, fault
}

func (e *Endpoint) post(ctx context.Context, body Pieces) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, body.Reader())
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	// The length of a body and the way to send it again are known to net/http for its own kinds of readers only.
	req.ContentLength = int64(body.Size())
	req.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
	req.Header = e.header.Clone()
	return e.http.Do(req)
}
