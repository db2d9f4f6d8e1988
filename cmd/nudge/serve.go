package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/slack"
	"nudge/bot/terminal"
	"nudge/bot/web"
	"nudge/cmd/nudge/config"
	"nudge/memory"
)

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run every configured adapter, the clock and the web console (the default)",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
}

// serve runs until ctx ends: then nothing more is taken up, and what runs has a while to end.
func (a *app) serve(ctx context.Context) error {
	c, dir, err := a.config()
	if err != nil {
		return err
	}
	p, err := newProgram(c, dir, true, a.log())
	if err != nil {
		return err
	}
	me := agent.Person{ID: "web:me", Name: ownName(), Zone: terminal.Zone()}
	return errors.Join(failed(p.run(ctx, me.ID, func(ctx context.Context) error {
		return a.serveAdapters(ctx, p, me)
	})), failed(p.close(closeGrace)))
}

// ownName is what the person at the browser is called.
func ownName() string {
	account, err := user.Current()
	if err != nil {
		return ""
	}
	if account.Name != "" && account.Name != "root" {
		return account.Name
	}
	return account.Username
}

func (a *app) serveAdapters(ctx context.Context, p *program, me agent.Person) error {
	adapters, err := p.platforms()
	if err != nil {
		return err
	}
	if p.config.Web.Listen == "" && len(adapters) == 0 {
		return errors.New("there is nothing to serve: web.listen is empty and neither Slack nor Discord is configured")
	}
	ready := func() error { return p.ready(ctx, adapters) }
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	console := make(chan error, 1)
	if p.config.Web.Listen == "" {
		console <- nil
	} else {
		server, err := p.web(ctx, me, ready)
		if err != nil {
			return err
		}
		adapters = append(adapters, server.Adapters()...)
		fmt.Fprintf(a.out, "Nudge is ready. Open %s\n", server.URL())
		go func() {
			console <- server.Serve(ctx)
			stop()
		}()
	}
	if err := p.agent.Resume(ctx, p.wants); err != nil {
		return err
	}
	return errors.Join(p.hub.Serve(ctx, p.agent, adapters...), <-console)
}

// platforms are the adapters of the platforms that are configured.
func (p *program) platforms() ([]bot.Adapter, error) {
	var adapters []bot.Adapter
	if c := p.config.Slack; c.BotTokenEnv != "" {
		botToken, err := config.Secret(c.BotTokenEnv)
		if err != nil {
			return nil, fmt.Errorf("slack.bot_token_env: %w", err)
		}
		appToken, err := config.Secret(c.AppTokenEnv)
		if err != nil {
			return nil, fmt.Errorf("slack.app_token_env: %w", err)
		}
		adapter, err := slack.New(slack.Config{BotToken: botToken, AppToken: appToken, APIURL: c.APIURL, Log: p.log})
		if err != nil {
			return nil, err
		}
		adapters = append(adapters, adapter)
	}
	if p.config.Discord.TokenEnv != "" {
		p.log.Warn("discord is configured, and not available in this version")
	}
	return adapters, nil
}

// web is the console. Its login token is kept in the data file, so that browsers stay signed in over a restart.
func (p *program) web(ctx context.Context, me agent.Person, ready func() error) (*web.Server, error) {
	var token, apiToken string
	err := p.store.Update(ctx, func(tx memory.Tx) error {
		if err := agent.Greet(tx, me); err != nil {
			return err
		}
		settings := tx.Table("setting")
		kept, found, err := settings.Get("web.token")
		if token = string(kept); err != nil || found {
			return err
		}
		token = web.NewToken()
		return settings.Put("web.token", []byte(token))
	})
	if err != nil {
		return nil, fmt.Errorf("read the login token: %w", err)
	}
	if ref := p.config.Web.APITokenEnv; ref != "" {
		if apiToken, err = config.Secret(ref); err != nil {
			return nil, fmt.Errorf("web.api_token_env: %w", err)
		}
	}
	return web.New(web.Config{
		Listen: p.config.Web.Listen, Store: p.store, Person: me, Token: token, APIToken: apiToken, Ready: ready, Log: p.log,
	})
}

// stale is an adapter that can tell when its link is not what it should be.
type stale interface{ Stale() error }

// ready says why not everything works; nil when it does.
func (p *program) ready(ctx context.Context, adapters []bot.Adapter) error {
	reasons := []error{p.hub.Failed(), p.store.View(ctx, func(memory.Tx) error { return nil })}
	for _, adapter := range adapters {
		if s, ok := adapter.(stale); ok {
			if err := s.Stale(); err != nil {
				reasons = append(reasons, fmt.Errorf("%s: %w", adapter.Platform(), err))
			}
		}
	}
	return errors.Join(reasons...)
}

func (a *app) manifestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:       "manifest slack",
		Short:     "Print the manifest of a Slack app, to be pasted into Slack's form",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"slack"},
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out, slack.Manifest())
			return failed(err)
		},
	}
	return cmd
}
