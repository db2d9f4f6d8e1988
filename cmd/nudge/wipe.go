package main

import (
	"context"
	"fmt"
	"time"

	"nudge/memory"
)

// wipeable is a store whose free space can be written over.
type wipeable interface {
	Wipe(ctx context.Context) (bytes int64, err error)
}

const (
	wipeEvery = 20 * time.Second // how often it is looked whether something was deleted
	wipeGrace = 5 * time.Second  // how long the end of the process waits for it
)

// wipe writes over the bytes of what somebody wanted deleted, if there is any; see [memory.Gone].
func wipe(ctx context.Context, store memory.Store) error {
	w, ok := store.(wipeable)
	if !ok {
		return nil
	}
	mark := ""
	err := store.View(ctx, func(tx memory.Tx) (err error) {
		mark, err = memory.GoneSince(tx)
		return err
	})
	if err != nil || mark == "" {
		return err
	}
	if _, err := w.Wipe(ctx); err != nil {
		return err
	}
	if err := store.Update(ctx, func(tx memory.Tx) error { return memory.Wiped(tx, mark) }); err != nil {
		return fmt.Errorf("note that what was deleted is wiped: %w", err)
	}
	return nil
}

// keepWiped wipes again and again what was deleted, also what an earlier process has left, until ctx ends.
func (p *program) keepWiped(ctx context.Context) {
	again := time.NewTicker(wipeEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			p.wipeNow(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// wipeNow wipes what was deleted. What fails is done again later.
func (p *program) wipeNow(ctx context.Context) {
	if err := wipe(ctx, p.store); err != nil && ctx.Err() == nil {
		p.log.Error("what was deleted may still be in the data file; it is tried again", "error", err)
	}
}
