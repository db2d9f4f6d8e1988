package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/agent/tool/workspace"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/diary"
)

func (a *app) forgetCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "forget USER",
		Short: "Remove all that is kept of a person",
		Long: "Remove all that is kept of a person, with whichever of their accounts: sessions, files, heartbeats, rules and what was remembered; what\n" +
			"runs for them is stopped first. Where others took part, their words are blanked and the rest stays. When the command ends, no byte of it\n" +
			"is left in the data file. Cut short, it goes on at the next start, or when it is given again. Backups that were made before and what\n" +
			"stands on the platforms are not touched. USER is an id such as slack:T1:U1; a name alone is one at a terminal.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && !a.canAsk() {
				return errors.New("nobody can be asked here whether to forget; --yes forgets without asking")
			}
			return a.forget(cmd.Context(), personNamed(args[0]), yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// forget removes a person from the program that runs here, through the process that holds the data file, or by holding it.
func (a *app) forget(ctx context.Context, person agent.PersonID, yes bool) error {
	if p := a.host; p != nil {
		return failed(a.forgetIn(ctx, p.oblivious(), &p.forgetting, person, yes))
	}
	c, dir, err := a.config()
	if err != nil {
		return err
	}
	store, err := openStore(dir, a.log())
	var locked *memory.LockedError
	if errors.As(err, &locked) {
		return a.overSocket(ctx, dir, locked, []string{"forget", fmt.Sprintf("--yes=%t", yes), string(person)})
	}
	if err != nil {
		return failed(err)
	}
	resting := oblivious{store: store, diary: diary.New(diary.Config{Store: store}), folders: workspaces(c, dir)}
	return failed(errors.Join(a.forgetIn(ctx, resting, &sync.Mutex{}, person, yes), store.Close()))
}

// forgetIn forgets a person while it holds alone, so that nobody else does.
func (a *app) forgetIn(ctx context.Context, with oblivious, alone sync.Locker, person agent.PersonID, yes bool) error {
	if !yes {
		if err := a.confirm(fmt.Sprintf("Forget %s and all that is kept of them, for good? [y/N] ", person), "nobody was forgotten"); err != nil {
			return err
		}
	}
	alone.Lock()
	defer alone.Unlock()
	var o bot.Oblivion
	err := with.store.Update(ctx, func(tx memory.Tx) (err error) {
		o, err = bot.BeginForget(tx, person, "", "", time.Now())
		return err
	})
	if err != nil {
		return err
	}
	receipt, err := with.forget(ctx, o)
	if err != nil {
		return fmt.Errorf("%s is not forgotten yet: %w; give the command again, or leave it to the next start", person, err)
	}
	_, err = fmt.Fprintln(a.out, receipt)
	return err
}

// oblivious forgets people in a store and in their folders.
type oblivious struct {
	store   memory.Store
	agent   *agent.Agent // that runs on the store; nil when none does
	diary   *diary.Diary
	folders workspace.Dirs
}

func (p *program) oblivious() oblivious {
	return oblivious{store: p.store, agent: p.agent, diary: p.diary, folders: p.dirs()}
}

// forget goes on to forget somebody, from however far that is, and returns the receipt when all is done.
func (f oblivious) forget(ctx context.Context, o bot.Oblivion) (receipt string, err error) {
	if f.agent != nil {
		o, err = o.Remove(ctx, f.agent, f.diary)
	} else {
		err = f.store.Update(ctx, func(tx memory.Tx) (err error) {
			o, err = o.RemoveAtRest(tx, f.diary)
			return err
		})
	}
	if err != nil {
		return "", err
	}
	more, err := f.removeFiles(o.Accounts)
	if err != nil {
		return "", err
	}
	if w, ok := f.store.(wipeable); ok {
		if _, err := w.Wipe(ctx); err != nil {
			return "", fmt.Errorf("all is gone from use, but its bytes may still be in the data file: %w", err)
		}
		more += " No byte of what was removed is left in the data file; backups made before still have it, and so has the platform."
	}
	err = f.store.Update(ctx, func(tx memory.Tx) (err error) {
		receipt, err = o.Done(tx, strings.TrimSpace(more))
		return err
	})
	return receipt, err
}

// removeFiles removes the folders of people, and says what was removed.
func (f oblivious) removeFiles(accounts []agent.PersonID) (said string, err error) {
	if f.folders.Shared {
		return "The folder of files is everybody's and stays.", nil
	}
	files := 0
	for _, id := range accounts {
		n, err := f.folders.Forget(id)
		if err != nil {
			return "", err
		}
		files += n
	}
	if files == 1 {
		return "Their folder went with 1 file.", nil
	}
	return fmt.Sprintf("Their folder went with %d files.", files), nil
}

// forgetAsked forgets all who are to be forgotten, and says so to those who asked for it.
func (p *program) forgetAsked(ctx context.Context) {
	p.forgetting.Lock()
	defer p.forgetting.Unlock()
	var waiting []bot.Oblivion
	err := p.store.View(ctx, func(tx memory.Tx) (err error) {
		waiting, err = bot.Oblivions(tx)
		return err
	})
	for _, o := range waiting {
		if err == nil {
			_, err = p.oblivious().forget(ctx, o)
		}
	}
	if err != nil && ctx.Err() == nil {
		p.log.Error("somebody who is to be forgotten is not yet; it is tried again later", "error", err)
	}
	p.hub.Outgoing()
}

// forgetRest is how long after a failure it is tried again to forget who is to be forgotten.
const forgetRest = 5 * time.Minute

// keepForgetting forgets those of whom that is asked, and those with whom an earlier process was not done, until ctx ends.
func (p *program) keepForgetting(ctx context.Context) {
	again := time.NewTicker(forgetRest)
	defer again.Stop()
	for {
		p.forgetAsked(ctx)
		select {
		case <-p.forgotten:
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// toForget says that there is somebody to forget.
func (p *program) toForget() {
	select {
	case p.forgotten <- struct{}{}:
	default: // it is looked for already
	}
}
