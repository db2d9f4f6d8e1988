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
	"nudge/bot"
	"nudge/bot/terminal"
	"nudge/memory"
	"nudge/schedule"
)

// closeGrace is how long what runs may go on after the program was told to end.
const closeGrace = 2 * time.Second

var personName = regexp.MustCompile(`^[^:~\s]{1,64}$`)

// chatFlags are those of `nudge chat`.
type chatFlags struct {
	user, session string
	json          bool
}

func (a *app) chatCommand() *cobra.Command {
	var flags chatFlags
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk in the terminal",
		Long: "Talk in the terminal. On a terminal, type whenever you like; what you say while it works corrects it. Piped, each line is one\n" +
			"message. With --json, lines are read at once and everything that happens is written as a line of JSON.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.user == "" {
				flags.user = accountName()
			}
			if !personName.MatchString(flags.user) {
				return fmt.Errorf("--user %q: a name has no spaces and no : or ~", flags.user)
			}
			if flags.session != "" && !personName.MatchString(flags.session) {
				return fmt.Errorf("--session %q: a name has no spaces and no : or ~", flags.session)
			}
			return a.chat(cmd.Context(), flags)
		},
	}
	cmd.Flags().StringVar(&flags.user, "user", "", "who is talking (default: the account's name)")
	cmd.Flags().StringVar(&flags.session, "session", "", "a conversation of its own, by name")
	cmd.Flags().BoolVar(&flags.json, "json", false, "lines of JSON out, lines of text or commands in")
	return cmd
}

func accountName() string {
	if account, err := user.Current(); err == nil && personName.MatchString(account.Username) {
		return account.Username
	}
	return "me"
}

// chat talks with one person: through the process that holds the data file, or by holding it.
func (a *app) chat(ctx context.Context, flags chatFlags) error {
	person := agent.Person{ID: agent.PersonID("terminal:" + flags.user), Name: flags.user, Zone: terminal.Zone()}
	if a.host != nil {
		return failed(a.host.talk(ctx, person, a.terminal(a.host, person, flags), a.attach))
	}
	c, dir, err := a.config()
	if err != nil {
		return err
	}
	p, err := newProgram(c, dir, false, a.log())
	var locked *memory.LockedError
	if errors.As(err, &locked) {
		args := []string{"chat", "--user", flags.user}
		if flags.session != "" {
			args = append(args, "--session", flags.session)
		}
		if flags.json {
			args = append(args, "--json")
		}
		return a.overSocket(ctx, dir, locked, args)
	}
	if err != nil {
		return err
	}
	serve := func(ctx context.Context, adapter bot.Adapter) error { return p.hub.Serve(ctx, p.agent, adapter) }
	return errors.Join(failed(p.run(ctx, person.ID, func(ctx context.Context) error {
		return p.talk(ctx, person, &hosting{a.terminal(p, person, flags), p}, serve)
	})), failed(p.close(closeGrace)))
}

// hosting is the terminal of a process through which others talk too: it stays until they have ended.
type hosting struct {
	*terminal.Terminal
	program *program
}

// Listen is the terminal's, and then waits for the guests unless ctx ends.
func (h *hosting) Listen(ctx context.Context, in bot.Receiver) error {
	if err := h.Terminal.Listen(ctx, in); err != nil || ctx.Err() != nil {
		return err
	}
	h.program.waitForGuests(ctx)
	return nil
}

// terminal is the adapter for a person at this terminal.
func (a *app) terminal(p *program, person agent.Person, flags chatFlags) *terminal.Terminal {
	address := person.ID.Home()
	if flags.session != "" {
		address += ":" + flags.session
	}
	return terminal.New(terminal.Config{
		In: a.in, Out: a.out, Manner: a.manner(flags.json), Person: person, Address: address, Color: a.isTerminal(a.out),
		Rest:    func(ctx context.Context) error { return p.rest(ctx, person.ID) },
		Waiting: func(ctx context.Context) ([]agent.Reply, error) { return p.waiting(ctx, person.ID) },
	})
}

// run does something while the clock ticks and other commands are served through the socket. Heartbeats of the config
// that name nobody are for the given person.
func (p *program) run(ctx context.Context, person agent.PersonID, do func(context.Context) error) error {
	beats, err := p.heartbeats(person)
	if err != nil {
		return err
	}
	for _, beat := range beats {
		for _, warning := range schedule.Warnings(beat.Cron) {
			p.log.Warn("a heartbeat of the config may not do what is meant", "heartbeat", beat.Name, "why", warning)
		}
	}
	if err := schedule.Reconcile(ctx, p.store, beats, time.Now()); err != nil {
		return fmt.Errorf("take over the config's heartbeats: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	control, err := p.listen()
	if err != nil {
		p.log.Warn("other commands cannot reach this process", "error", err)
	} else {
		beside.Go(func() { control.serve(ctx) })
	}
	beside.Go(func() { p.sweep(ctx) })
	beside.Go(func() { p.slim(ctx) })
	beside.Go(func() { p.diary.Run(ctx) })
	beside.Go(func() { p.keepForgetting(ctx) })
	beside.Go(func() { p.keepWiped(ctx) })
	beside.Go(func() { p.servers.Run(ctx) })
	p.servers.Settle(ctx, serverWait)
	beside.Go(func() {
		if err := p.clock.Run(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("the clock has stopped", "error", err)
		}
	})
	beside.Go(func() {
		p.clock.Watch(ctx, func(text string) {
			p.log.Error("the clock is watched", "text", text)
			p.tellOwners(ctx, "", text)
		})
	})
	return do(ctx)
}

// talk lets a person talk at a terminal, which serve gives to the hub, until its input ends or ctx does.
func (p *program) talk(ctx context.Context, person agent.Person, t bot.Adapter, serve func(context.Context, bot.Adapter) error) error {
	leave, err := p.arrive(ctx, person)
	if err != nil {
		return err
	}
	defer leave()
	return serve(ctx, t)
}

// rest returns when nothing of a person's runs and all that can be said to them has been said.
func (p *program) rest(ctx context.Context, person agent.PersonID) error {
	if err := p.agent.WaitIdle(ctx, of(person)); err != nil {
		return err
	}
	p.forgetAsked(ctx)
	return p.hub.Drain(ctx, of(person))
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
		err = agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			may, err := p.agent.MayDecide(tx, w, person)
			if may && !unsaid[w.Reply.ID] {
				cards = append(cards, bot.Hide(w.Reply, p.secrets))
			}
			return err
		})
		if err != nil {
			return err
		}
		own, err := bot.Requests(tx, person, p.agent.Owns(person), person.Home())
		for _, q := range own {
			if !unsaid[q.ID] {
				cards = append(cards, q)
			}
		}
		return err
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
	if a.remote != nil {
		return a.remote.Terminal
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
