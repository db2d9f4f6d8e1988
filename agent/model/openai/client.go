// Package openai asks models that speak OpenAI's Chat Completions, which is most of them.
//
// [Client.Answer] makes one POST to {base_url}/chat/completions and reads what comes back, streamed or whole. Servers
// that call themselves compatible differ in nearly everything, so the reading is lenient in form and strict in one
// thing: an answer that broke off is an error, never an answer, and a call that was cut is never handed out.
//
// Package wire posts the request and cuts the stream into events. To follow an answer from there: chunk.go decodes an
// event, draft.go gathers them, with slots.go for the tool calls and prose.go for the text.
package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// The times that hold when nothing else is configured.
const (
	DefaultCallTimeout = wire.DefaultCallTimeout
	DefaultIdleTimeout = wire.DefaultIdleTimeout
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
	endpoint *wire.Endpoint
	model    string
	profile  Profile
	stream   bool
}

var _ model.Model = (*Client)(nil)

// New returns a client. Its errors say which part of the config cannot be used, and never quote the key.
func New(cfg Config) (*Client, error) {
	if strings.TrimSpace(cfg.Model) == "" {
		return nil, errors.New("set up the model: its name is missing")
	}
	if err := cfg.Profile.check(); err != nil {
		return nil, err
	}
	c := &Client{model: cfg.Model, profile: cfg.Profile, stream: cfg.Stream && !cfg.Profile.NoStream}
	endpoint, err := wire.NewEndpoint(wire.Config{
		BaseURL: cfg.BaseURL, Path: "chat/completions",
		Key: cfg.Key, KeyHeader: "Authorization", KeyPrefix: "Bearer ", Stream: c.stream,
		CallTimeout: cfg.CallTimeout, IdleTimeout: cfg.IdleTimeout, HTTP: cfg.HTTP,
	})
	if err != nil {
		return nil, err
	}
	c.endpoint = endpoint
	return c, nil
}

// Answer asks once; see [model.Model]. The pieces given to said, joined, are the answer's Text, with one exception: when
// a model closes a thought that it never opened, what was said before that was thought, and only Text is right.
func (c *Client) Answer(ctx context.Context, req model.Request, said func(piece string)) (model.Answer, error) {
	return c.endpoint.Answer(ctx, req, c.encode, newDraft(req.Tools, c.profile, said))
}
