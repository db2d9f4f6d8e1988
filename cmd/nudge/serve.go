package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/slack"
	"nudge/bot/terminal"
	"nudge/bot/web"
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
	platforms := p.parts.platforms()
	adapters := slices.Clone(platforms)
	ready := func() error {
		err := p.works(ctx, platforms)
		if err == nil {
			return nil
		}
		return errors.New(p.secrets.Text(err.Error())) // whoever may ask is told
	}
	told := ctx // ends when the program is told to end
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
	if err := p.resume(ctx, p.wants); err != nil {
		return err
	}
	p.mu.Lock()
	p.ready = ready
	p.mu.Unlock()
	err := errors.Join(p.hub.Serve(ctx, p.agent, adapters...), <-console)
	if told.Err() != nil {
		return nil // what ended before was told in the log, and the rest went on
	}
	return err
}

// web is the console. Its login token is kept in the data file, so that browsers stay signed in over a restart.
func (p *program) web(ctx context.Context, me agent.Person, ready func() error) (*web.Server, error) {
	var token string
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
	p.secrets.Add(token)
	server, err := web.New(web.Config{
		Listen: p.config.Web.Listen, Store: p.store, Diary: p.diary, Person: me, Token: token, APIToken: p.parts.apiToken, Ready: ready, Secrets: p.secrets, Log: p.log,
	})
	if err != nil {
		return nil, fmt.Errorf("%w; [web] listen says where, and \"127.0.0.1:0\" takes a free port", err)
	}
	return server, nil
}

// stale is an adapter that can tell when its link is not what it should be.
type stale interface{ Stale() error }

// works says why not everything does; nil when it does.
func (p *program) works(ctx context.Context, adapters []bot.Adapter) error {
	reasons := []error{p.parts.lacking, p.hub.Failed(), p.store.View(ctx, func(memory.Tx) error { return nil }), p.clock.Stalled(ctx)}
	if file, ok := p.store.(interface{ Damage() error }); ok {
		reasons = append(reasons, file.Damage())
	}
	for _, adapter := range adapters {
		if s, ok := adapter.(stale); ok {
			if err := s.Stale(); err != nil {
				reasons = append(reasons, fmt.Errorf("%s: %w", adapter.Platform(), err))
			}
		}
	}
	return errors.Join(reasons...)
}

// readiness says why the program that runs here is not ready; nil when it is. One that serves nobody but those at
// terminals is ready when its data file is.
func (p *program) readiness(ctx context.Context) error {
	p.mu.Lock()
	ready := p.ready
	p.mu.Unlock()
	switch {
	case ready != nil:
		return ready()
	case p.everyone:
		return errors.New("it has not begun to serve")
	}
	return p.works(ctx, nil)
}

// readyCommand is what another process asks through the socket: it fails when not everything works.
func (a *app) readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "ready",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.host == nil {
				return errors.New("ready is asked by other processes only; ask nudge doctor")
			}
			return failed(a.host.readiness(cmd.Context()))
		},
	}
}

func (a *app) manifestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manifest slack",
		Short: "Print the manifest of a Slack app, to be pasted into Slack's form",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] != "slack" {
				return errors.New("say which: manifest slack")
			}
			return nil
		},
		ValidArgs: []string{"slack"},
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out, slack.Manifest())
			return failed(err)
		},
	}
	return cmd
}
