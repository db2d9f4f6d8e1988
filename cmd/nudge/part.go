package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"nudge/agent"
	"nudge/agent/compact"
	"nudge/agent/model"
	"nudge/agent/model/anthropic"
	"nudge/agent/model/demo"
	"nudge/agent/model/openai"
	"nudge/agent/model/pace"
	"nudge/bot"
	"nudge/bot/discord"
	"nudge/bot/slack"
	"nudge/cmd/nudge/config"
	"nudge/memory/diary"
)

// parts are what the config asks for and what can be made of it without the data file and the network. Making them
// reads the secrets.
type parts struct {
	model     model.Model
	fallbacks []agent.Fallback // for the model, in order
	embedder  diary.Embedder
	slack     bot.Adapter // nil when Slack is off, or cannot be set up
	discord   bot.Adapter // nil when Discord is off, or cannot be set up
	apiToken  string      // "" turns POST /api/messages off
	lacking   error       // what was asked for and cannot be set up, while the rest goes on
	alarms    *alarms
}

// alarms takes what somebody must mend from the parts that notice it to who tells the owners, which is made after them.
type alarms struct {
	mu   sync.Mutex
	tell func(text string)
}

// raise tells the owners, if there is already somebody who can.
func (a *alarms) raise(text string) {
	a.mu.Lock()
	tell := a.tell
	a.mu.Unlock()
	if tell != nil {
		tell(text)
	}
}

// through lets alarms be told from now on.
func (a *alarms) through(tell func(text string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell = tell
}

// part makes one of them.
type part struct {
	name    string
	serving bool // only serve needs it
	spare   bool // the rest goes on without it
	make    func(c config.Config, log *slog.Logger, into *parts) (say string, err error)
}

// allParts is the one list of what is made, for those who make it and for the doctor, who looks at each.
var allParts = []part{
	{name: "model", make: makeModel},
	{name: "diary", make: makeEmbedder},
	{name: "slack", serving: true, spare: true, make: makeSlack},
	{name: "discord", serving: true, spare: true, make: makeDiscord},
	{name: "web", serving: true, make: makeWeb},
}

// assemble makes the parts, those of serve only when it is to serve. The error is that of the first that is wrong and
// cannot be spared.
func assemble(c config.Config, serving bool, log *slog.Logger) (parts, error) {
	made := parts{alarms: &alarms{}}
	for _, p := range allParts {
		if p.serving && !serving {
			continue
		}
		_, err := p.make(c, log, &made)
		switch {
		case err != nil && p.spare:
			log.Error("going on without "+p.name, "error", inFile(c, err))
			made.lacking = errors.Join(made.lacking, err)
		case err != nil:
			return parts{}, inFile(c, err)
		}
	}
	if serving && c.Web.Listen == "" && len(made.platforms()) == 0 {
		return parts{}, inFile(c, errNothingToServe)
	}
	return made, nil
}

// platforms are the adapters of the chat platforms that are there.
func (p *parts) platforms() (adapters []bot.Adapter) {
	for _, adapter := range []bot.Adapter{p.slack, p.discord} {
		if adapter != nil {
			adapters = append(adapters, adapter)
		}
	}
	return adapters
}

// claimApps keeps other processes from using the same apps, and goes on without those that one uses already. release lets
// others have them again.
func (p *parts) claimApps(c config.Config, dataDir string, log *slog.Logger) (release func() error, err error) {
	var releases []func() error
	release = func() error {
		var failed []error
		for _, release := range releases {
			failed = append(failed, release())
		}
		return errors.Join(failed...)
	}
	for _, app := range []struct {
		platform, variable, address, otherwise string
		adapter                                *bot.Adapter
	}{
		{"slack", c.Slack.AppTokenEnv, c.Slack.APIURL, "Slack would give each of them only a part of what people say. Stop that one, or make a Slack app of its own for this one", &p.slack},
		{"discord", c.Discord.TokenEnv, c.Discord.APIURL, "each of them would answer what people say. Stop that one, or make a Discord application of its own for this one", &p.discord},
	} {
		if *app.adapter == nil {
			continue
		}
		token, err := config.Secret(app.variable)
		if err != nil {
			return release, fmt.Errorf("%s: %w", app.variable, err)
		}
		claimed, err := claim(app.platform, token+" "+app.address, dataDir)
		var taken *takenError
		switch {
		case errors.As(err, &taken):
			err = fmt.Errorf("the token from %s is in use by another nudge, %w; %s", app.variable, err, app.otherwise)
			*app.adapter = nil
			if c.Web.Listen == "" && len(p.platforms()) == 0 {
				return release, inFile(c, err)
			}
			log.Error("going on without "+app.platform, "error", inFile(c, err))
			p.lacking = errors.Join(p.lacking, err)
		case err != nil:
			log.Warn("cannot make sure that no other nudge uses the same app", "platform", app.platform, "error", err)
		default:
			releases = append(releases, claimed)
		}
	}
	return release, nil
}

var errNothingToServe = errors.New("there is nothing to serve: web.listen is empty, and neither Slack nor Discord is configured")

// inFile names the config file in an error of something that it says.
func inFile(c config.Config, err error) error {
	if c.File == "" {
		return err
	}
	return fmt.Errorf("%s: %w", c.File, err)
}

func makeModel(c config.Config, log *slog.Logger, into *parts) (say string, err error) {
	if into.model, err = newModel(c.Model, log); err != nil {
		return modelName(c.Model), err
	}
	say = modelName(c.Model)
	for i, of := range c.Model.Fallbacks {
		fallback, err := newModel(of, log)
		if err != nil {
			return say, fmt.Errorf("model.fallbacks[%d]: %w", i, err)
		}
		into.fallbacks = append(into.fallbacks, agent.Fallback{Model: fallback, Spec: modelSpec(of), Counter: counter(of)})
		say += ", else " + modelName(of)
	}
	return say, nil
}

// makeSlack makes the adapter, which refuses tokens of the wrong kind. Nothing is asked of Slack yet.
func makeSlack(c config.Config, log *slog.Logger, into *parts) (say string, err error) {
	if c.Slack.BotTokenEnv == "" {
		return "off", nil
	}
	botToken, err := config.Secret(c.Slack.BotTokenEnv)
	if err != nil {
		return "", fmt.Errorf("slack.bot_token_env: %w", err)
	}
	appToken, err := config.Secret(c.Slack.AppTokenEnv)
	if err != nil {
		return "", fmt.Errorf("slack.app_token_env: %w", err)
	}
	adapter, err := slack.New(slack.Config{
		BotToken: botToken, AppToken: appToken, APIURL: c.Slack.APIURL, Log: log,
		BotTokenFrom: c.Slack.BotTokenEnv, AppTokenFrom: c.Slack.AppTokenEnv, Alarm: into.alarms.raise,
	})
	if err != nil {
		return "", err
	}
	into.slack = adapter
	return "both tokens are there and of the right kind; Slack was not asked", nil
}

// makeDiscord makes the adapter, which refuses what cannot be a token. Nothing is asked of Discord yet.
func makeDiscord(c config.Config, log *slog.Logger, into *parts) (say string, err error) {
	if c.Discord.TokenEnv == "" {
		return "off", nil
	}
	token, err := config.Secret(c.Discord.TokenEnv)
	if err != nil {
		return "", fmt.Errorf("discord.token_env: %w", err)
	}
	adapter, err := discord.New(discord.Config{
		Token: token, TokenFrom: c.Discord.TokenEnv, APIURL: c.Discord.APIURL, People: usersOf(c.Access.Allow, "discord:"),
		Alarm: into.alarms.raise, Log: log,
	})
	if err != nil {
		return "", err
	}
	into.discord = adapter
	return "the token is there; Discord was not asked", nil
}

// usersOf are the people of a platform who are let in by their very ids, without what stands before them.
func usersOf(allow []string, prefix string) (users []string) {
	for _, id := range allow {
		if user, ofIt := strings.CutPrefix(id, prefix); ofIt && !strings.HasSuffix(user, "*") {
			users = append(users, user)
		}
	}
	return users
}

func makeWeb(c config.Config, _ *slog.Logger, into *parts) (say string, err error) {
	switch {
	case c.Web.Listen == "":
		return "off", nil
	case c.Web.APITokenEnv == "":
		return c.Web.Listen + ", without POST /api/messages", nil
	}
	into.apiToken, err = config.Secret(c.Web.APITokenEnv)
	if err != nil {
		return "", fmt.Errorf("web.api_token_env: %w", err)
	}
	return c.Web.Listen + ", with POST /api/messages", nil
}

// defaultBaseURL is where provider "openai" is asked when no base_url is given.
const defaultBaseURL = "https://api.openai.com/v1"

// newModel makes a model as all sessions ask it: with a limiter, since they share what its provider allows.
func newModel(c config.Model, log *slog.Logger) (model.Model, error) {
	bare, err := newProvider(c)
	if err != nil || c.Provider == "demo" {
		return bare, err
	}
	return pace.New(bare, pace.Config{Held: func(h pace.Hold) {
		log.Warn("calls of the model are held back", "model", c.Name, "pause", h.Pause, "at_once", h.AtOnce, "error", h.Refusal)
	}}), nil
}

func newProvider(c config.Model) (model.Model, error) {
	switch c.Provider {
	case "demo":
		return demo.New(), nil
	case "anthropic":
		return newAnthropic(c)
	case "openai":
		profile, err := openai.ParseProfile(c.Profile)
		if err != nil {
			return nil, fmt.Errorf("model.profile: %w", err)
		}
		key, err := modelKey(c)
		if err != nil {
			return nil, err
		}
		base := c.BaseURL
		if base == "" {
			base = defaultBaseURL
		}
		return openai.New(openai.Config{
			BaseURL: base, Model: c.Name, Key: key, Profile: profile, Stream: true,
			CallTimeout: time.Duration(c.CallTimeout), IdleTimeout: time.Duration(c.IdleTimeout), HTTP: modelHTTP(),
		})
	}
	return nil, fmt.Errorf("model.provider: %q is not available in this version", c.Provider)
}

func newAnthropic(c config.Model) (model.Model, error) {
	profile, err := anthropic.ParseProfile(c.Profile)
	if err != nil {
		return nil, fmt.Errorf("model.profile: %w", err)
	}
	key, err := modelKey(c)
	if err != nil {
		return nil, err
	}
	return anthropic.New(anthropic.Config{
		BaseURL: c.BaseURL, Model: c.Name, Key: key, Profile: profile, Stream: true, MaxOutput: c.MaxOutput,
		CallTimeout: time.Duration(c.CallTimeout), IdleTimeout: time.Duration(c.IdleTimeout), HTTP: modelHTTP(),
	})
}

// makeEmbedder makes what turns notes into vectors.
func makeEmbedder(c config.Config, _ *slog.Logger, into *parts) (string, error) {
	if c.Diary.Embedder != "openai" {
		into.embedder = diary.Local()
		return "by words, without an embedding service", nil
	}
	key := ""
	if c.Diary.APIKeyEnv != "" {
		var err error
		if key, err = config.Secret(c.Diary.APIKeyEnv); err != nil {
			return "", fmt.Errorf("diary.api_key_env: %w", err)
		}
	}
	base := c.Diary.BaseURL
	if base == "" {
		base = defaultBaseURL
	}
	embedder, err := diary.OpenAI(diary.OpenAIConfig{BaseURL: base, Name: c.Diary.Model, Key: key})
	if err != nil {
		return "", fmt.Errorf("diary: %w", err)
	}
	into.embedder = embedder
	return c.Diary.Model, nil
}

// modelKey is the provider's key; "" when none is configured.
func modelKey(c config.Model) (string, error) {
	if c.APIKeyEnv == "" {
		return "", nil
	}
	key, err := config.Secret(c.APIKeyEnv)
	if err != nil {
		return "", fmt.Errorf("model.api_key_env: %w", err)
	}
	return key, nil
}

// counter counts tokens as the configured model does, as far as that is known.
func counter(c config.Model) compact.Counter {
	if c.Provider == "openai" && (strings.HasPrefix(c.Name, "gpt-") || strings.HasPrefix(c.Name, "o")) {
		return compact.NewCounter(compact.O200k)
	}
	return compact.NewCounter(compact.Estimate)
}

// modelConnections is how many connections to the model's server are kept for the next call. Go's own limit of two makes
// the answers of a busy hour dial anew each time.
const modelConnections = 1024

// modelBuffer is as long as most requests, so that each is one write; what does not fit Go's own 4 KiB is copied through
// a buffer that is made for it.
const modelBuffer = 16 << 10

func modelHTTP() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = modelConnections, modelConnections
	transport.WriteBufferSize = modelBuffer
	return &http.Client{Transport: transport}
}

// modelHost is the host of the model's server; "" for a model that has none.
func modelHost(c config.Model) string {
	base := c.BaseURL
	switch {
	case base == "" && c.Provider == "openai":
		base = defaultBaseURL
	case base == "" && c.Provider == "anthropic":
		base = anthropic.DefaultBaseURL
	}
	address, err := url.Parse(base)
	if err != nil || c.Provider == "demo" {
		return ""
	}
	return address.Host
}
