// Package anthropic asks models that speak Anthropic's Messages API.
//
// [Client.Answer] makes one POST to {base_url}/v1/messages and reads what comes back, streamed or whole. The provider
// is strict about conversations: speakers alternate, beginning and ending with the user; each call has its result in
// the very next message; no text is blank; ids are plain and unique. Whatever the conversation, what is sent keeps
// that. Marks for the provider's cache stand at the end of the system prompt and of the conversation.
//
// Package wire posts the request and cuts the stream into events. To follow a request: request.go writes it, turns.go
// the conversation. To follow an answer: event.go decodes an event and draft.go gathers them, with speech.go for the
// text and thought.go for what the model thought, which goes back to it as it came.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// What holds when nothing else is configured.
const (
	DefaultBaseURL     = "https://api.anthropic.com"
	DefaultMaxOutput   = 4096 // tokens
	DefaultCallTimeout = wire.DefaultCallTimeout
	DefaultIdleTimeout = wire.DefaultIdleTimeout
)

// version is the one of the API that this package speaks.
const version = "2023-06-01"

// Config says which model is asked, and how. Model must be set.
type Config struct {
	BaseURL   string  // with or without /v1 at its end; no user or password in it; DefaultBaseURL when empty
	Model     string  // the name that the provider knows it by
	Key       string  // sent without white space around it; none is sent when it is empty
	Profile   Profile // how this server differs from Anthropic's
	Stream    bool    // ask for the answer piece by piece; the profile's no_stream wins over it
	MaxOutput int     // tokens that an answer may have when the request sets no limit; DefaultMaxOutput when 0

	CallTimeout time.Duration // of a whole call; DefaultCallTimeout when 0
	IdleTimeout time.Duration // the longest silence in a stream; DefaultIdleTimeout when 0

	HTTP *http.Client // whose transport is used; redirects are not followed whatever it says. May be nil
}

// Client is a [model.Model]. It has no state of its own and may be used concurrently.
type Client struct {
	endpoint  *wire.Endpoint
	model     string
	profile   Profile
	stream    bool
	maxOutput int
}

var _ model.Model = (*Client)(nil)

// New returns a client. Its errors say which part of the config cannot be used, and never quote the key.
func New(cfg Config) (*Client, error) {
	switch {
	case strings.TrimSpace(cfg.Model) == "":
		return nil, errors.New("set up the model: its name is missing")
	case cfg.MaxOutput < 0:
		return nil, errors.New("set up the model: the output limit is negative")
	}
	c := &Client{
		model: cfg.Model, profile: cfg.Profile, stream: cfg.Stream && !cfg.Profile.NoStream, maxOutput: cfg.MaxOutput,
	}
	if c.maxOutput == 0 {
		c.maxOutput = DefaultMaxOutput
	}
	base := cfg.BaseURL
	if strings.TrimSpace(base) == "" {
		base = DefaultBaseURL
	}
	at := wire.Config{
		BaseURL: base, Path: pathAfter(base), Header: http.Header{"Anthropic-Version": {version}},
		Key: cfg.Key, KeyHeader: "X-Api-Key", Stream: c.stream,
		CallTimeout: cfg.CallTimeout, IdleTimeout: cfg.IdleTimeout, HTTP: cfg.HTTP,
	}
	if cfg.Profile.Bearer {
		at.KeyHeader, at.KeyPrefix = "Authorization", "Bearer "
	}
	endpoint, err := wire.NewEndpoint(at)
	if err != nil {
		return nil, err
	}
	c.endpoint = endpoint
	return c, nil
}

// pathAfter returns what follows a base URL, which people write with the version and without.
func pathAfter(base string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1") {
		return "messages"
	}
	return "v1/messages"
}

// Answer asks once; see [model.Model]. The pieces given to said, joined, are the answer's Text.
func (c *Client) Answer(ctx context.Context, req model.Request, said func(piece string)) (model.Answer, error) {
	return c.endpoint.Answer(ctx, req, c.encode, newDraft(c.model, said))
}
