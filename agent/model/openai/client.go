// Package openai asks models that speak OpenAI's Chat Completions, which is most of them.
//
// [Client.Answer] makes one POST to {base_url}/chat/completions and reads what comes back, streamed or whole. Servers
// that call themselves compatible differ in nearly everything, so the reading is lenient in form and strict in one
// thing: an answer that broke off is an error, never an answer, and a call that was cut is never handed out.
//
// To follow an answer from the wire up: events.go cuts a stream into events, chunk.go decodes one, draft.go gathers
// them, with slots.go for the tool calls and prose.go for the text; fault.go says what went wrong instead.
package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"nudge/agent/model"
)

// The times and sizes that hold when nothing else is configured.
const (
	DefaultCallTimeout = 10 * time.Minute
	DefaultIdleTimeout = 2 * time.Minute

	maxAnswer    = 32 << 20        // bytes of one answer that are read
	maxErrorBody = 64 << 10        // bytes of an error page that are read
	grace        = 5 * time.Second // silence that is borne once nothing important can follow
)

// Config says which model is asked, and how. BaseURL and Model must be set.
type Config struct {
	BaseURL string  // such as https://api.openai.com/v1; http or https, no user or password in it
	Model   string  // the name that the provider knows it by
	Key     string  // sent as a bearer token, without white space around it; none is sent when it is empty
	Profile Profile // how this server differs from others
	Stream  bool    // ask for the answer piece by piece; the profile's no_stream wins over it

	CallTimeout time.Duration // of a whole call; DefaultCallTimeout when 0
	IdleTimeout time.Duration // the longest silence in a stream; DefaultIdleTimeout when 0

	HTTP *http.Client // whose transport is used; redirects are not followed whatever it says. May be nil
}

// Client is a [model.Model]. It has no state of its own and may be used concurrently.
type Client struct {
	url     string // with the query, which may hold a key
	shown   string // the same without the query, for logs
	model   string
	key     string
	secrets []string // what must not stand in an error
	profile Profile
	stream  bool
	call    time.Duration
	idle    time.Duration
	limit   int64 // bytes of an answer that are read
	http    *http.Client
}

var _ model.Model = (*Client)(nil)

// New returns a client. Its errors say which part of the config cannot be used, and never quote the key.
func New(cfg Config) (*Client, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	key := strings.TrimSpace(cfg.Key)
	switch {
	case strings.TrimSpace(cfg.Model) == "":
		return nil, errors.New("set up the model: its name is missing")
	case strings.ContainsFunc(key, unicode.IsControl):
		return nil, errors.New("set up the model: the key holds a character that no key can have")
	case cfg.CallTimeout < 0 || cfg.IdleTimeout < 0:
		return nil, errors.New("set up the model: a timeout is negative")
	}
	if err := cfg.Profile.check(); err != nil {
		return nil, err
	}
	full := base.JoinPath("chat/completions")
	c := &Client{
		url: full.String(), model: cfg.Model, key: key, secrets: secretsOf(key, full.Query()),
		profile: cfg.Profile, stream: cfg.Stream && !cfg.Profile.NoStream,
		call: cfg.CallTimeout, idle: cfg.IdleTimeout, limit: maxAnswer, http: withoutRedirects(cfg.HTTP),
	}
	full.RawQuery = ""
	c.shown = full.String()
	if c.call == 0 {
		c.call = DefaultCallTimeout
	}
	if c.idle == 0 {
		c.idle = DefaultIdleTimeout
	}
	return c, nil
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

// withoutRedirects keeps the key, and the conversation, from going to a host that nobody configured.
func withoutRedirects(from *http.Client) *http.Client {
	var own http.Client
	if from != nil {
		own = *from
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// Answer asks once; see [model.Model]. The pieces given to said, joined, are the answer's Text, with one exception: when
// a model closes a thought that it never opened, what was said before that was thought, and only Text is right.
func (c *Client) Answer(ctx context.Context, req model.Request, said func(piece string)) (model.Answer, error) {
	if ctx.Err() != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	body, err := c.encode(ctx, req)
	if err != nil {
		return model.Answer{}, c.clean(&model.Error{
			Fault: model.FaultRefused, Say: "the request to the model could not be written", Err: err,
		})
	}
	answer, fault := c.ask(ctx, body, newDraft(req.Tools, c.profile, said))
	if ctx.Err() != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	if fault != nil {
		return model.Answer{}, c.clean(fault)
	}
	return answer, nil
}

// ask sends a request and reads the answer into d. A second context carries the two timeouts, so that they end
// whatever the call is waiting for.
func (c *Client) ask(ctx context.Context, body []byte, d *draft) (model.Answer, *model.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.call, errOverdue)
	defer cancel()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)

	resp, err := c.post(ctx, body)
	if err != nil {
		return model.Answer{}, unreachable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	heard := watch(resp.Body, func() { hangUp(errSilent) })
	defer heard.stop()

	if resp.StatusCode/100 != 2 {
		heard.idle = grace
		page, _ := io.ReadAll(io.LimitReader(heard, maxErrorBody))
		return model.Answer{}, refusal(resp.StatusCode, resp.Header, page)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/json" {
		heard.idle = c.idle
	}
	fault := d.read(ctx, heard, kind, c.limit)
	if fault == nil {
		var answer model.Answer
		if answer, fault = d.answer(); fault == nil {
			return answer, nil
		}
	}
	if fault.Status == 0 {
		fault.Status = resp.StatusCode
	}
	return model.Answer{}, fault
}

func (c *Client) post(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.stream {
		req.Header.Set("Accept", "text/event-stream, application/json")
	}
	req.Header.Set("User-Agent", "nudge")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return c.http.Do(req)
}

// watched reads a body and calls a function when a single read takes longer than idle. Only waiting counts: the time
// that the reader spends on what it has read does not.
type watched struct {
	from  io.Reader
	idle  time.Duration // 0 waits for as long as the call may last
	timer *time.Timer
}

func watch(from io.Reader, silent func()) *watched {
	timer := time.AfterFunc(time.Hour, silent)
	timer.Stop()
	return &watched{from: from, timer: timer}
}

// Read is of io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	if w.idle > 0 {
		w.timer.Reset(w.idle)
		defer w.timer.Stop()
	}
	return w.from.Read(p)
}

func (w *watched) stop() { w.timer.Stop() }
