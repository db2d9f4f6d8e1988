package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"nudge/agent"
	"nudge/bot/terminal"
	"nudge/memory"
	"nudge/schedule"
)

// closeGrace is how long what runs may go on after the program was told to end.
const closeGrace = 2 * time.Second

var personName = regexp.MustCompile(`^[^:~\s]{1,64}$`)

func (a *app) chatCommand() *cobra.Command {
	var name, session string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk in the terminal",
		Long: "Talk in the terminal. On a terminal, type whenever you like; what you say while it works corrects it. Piped, each line is one\n" +
			"message. With --json, lines are read at once and everything that happens is written as a line of JSON.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				name = accountName()
			}
			if !personName.MatchString(name) {
				return fmt.Errorf("--user %q: a name has no spaces and no : or ~", name)
			}
			if session != "" && !personName.MatchString(session) {
				return fmt.Errorf("--session %q: a name has no spaces and no : or ~", session)
			}
			return a.chat(cmd.Context(), name, session, asJSON)
		},
	}
	cmd.Flags().StringVar(&name, "user", "", "who is talking (default: the account's name)")
	cmd.Flags().StringVar(&session, "session", "", "a conversation of its own, by name")
	cmd.Flags().BoolVar(&asJSON, "json", false, "lines of JSON out, lines of text or commands in")
	return cmd
}

func accountName() string {
	if account, err := user.Current(); err == nil && personName.MatchString(account.Username) {
		return account.Username
	}
	return "me"
}

// chat runs the agent for one person at this terminal.
func (a *app) chat(ctx context.Context, name, session string, asJSON bool) error {
	c, dir, err := a.config()
	if err != nil {
		return err
	}
	person := agent.Person{ID: agent.PersonID("terminal:" + name), Name: name, Zone: terminal.Zone()}
	p, err := newProgram(c, dir, func(id agent.PersonID) bool { return id == person.ID }, a.log())
	if err != nil {
		return err
	}
	address := person.ID.Home()
	if session != "" {
		address += ":" + session
	}
	t := terminal.New(terminal.Config{
		In: a.in, Out: a.out, Manner: a.manner(asJSON), Person: person, Address: address, Color: a.isTerminal(a.out),
		Rest: p.rest, Waiting: func(ctx context.Context) ([]agent.Reply, error) { return p.waiting(ctx, person.ID) },
	})
	return errors.Join(failed(p.run(ctx, person, t)), failed(p.close(closeGrace)))
}

// run lets the clock tick and the terminal talk until its input ends or ctx does.
func (p *program) run(ctx context.Context, person agent.Person, t *terminal.Terminal) error {
	if err := schedule.Reconcile(ctx, p.store, p.heartbeats(person.ID), time.Now()); err != nil {
		return fmt.Errorf("take over the config's heartbeats: %w", err)
	}
	err := p.store.Update(ctx, func(tx memory.Tx) error { return agent.Greet(tx, person) })
	if err != nil {
		return fmt.Errorf("remember who is talking: %w", err)
	}
	if err := p.agent.Resume(ctx, p.wants); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var clock sync.WaitGroup
	clock.Go(func() {
		if err := p.clock.Run(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("the clock has stopped", "error", err)
		}
	})
	err = p.hub.Serve(ctx, p.agent, t)
	stop()
	clock.Wait()
	return err
}

// rest returns when nothing runs and all that can be said has been said.
func (p *program) rest(ctx context.Context) error {
	if err := p.agent.WaitIdle(ctx); err != nil {
		return err
	}
	return p.hub.Drain(ctx)
}

// waiting are the cards that wait for a person, except those that lie in the outbox and are about to be shown.
func (p *program) waiting(ctx context.Context, person agent.PersonID) ([]agent.Reply, error) {
	var cards []agent.Reply
	err := p.store.View(ctx, func(tx memory.Tx) error {
		cards = nil
		unsaid := map[string]bool{}
		err := tx.Outbox().List(0, func(parcel memory.Parcel) error {
			r, err := agent.ReadReply(parcel)
			unsaid[r.ID] = true
			return err
		})
		if err != nil {
			return err
		}
		return agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			if w.Person == person && !unsaid[w.Reply.ID] {
				cards = append(cards, w.Reply)
			}
			return nil
		})
	})
	return cards, err
}

func (a *app) manner(asJSON bool) terminal.Manner {
	switch {
	case asJSON:
		return terminal.JSON
	case a.isTerminal(a.in):
		return terminal.Typed
	}
	return terminal.Piped
}

func (a *app) isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
