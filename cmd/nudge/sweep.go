package main

import (
	"context"
	"time"

	"nudge/agent"
	"nudge/agent/tool/notify"
	"nudge/memory"
	"nudge/schedule"
)

// ageing is something that is kept for a while. It goes in small steps, since each is a write.
type ageing struct {
	what  string
	kept  time.Duration
	sweep func(tx memory.Tx, before time.Time, limit int) (removed int, err error)
	limit int // removed in one step
}

// ages are all that age. The keys of what was received are kept longer than any platform delivers again.
var ages = []ageing{
	{"the keys of old messages", 72 * time.Hour, func(tx memory.Tx, before time.Time, limit int) (int, error) { return tx.Seen().Sweep(before, limit) }, 500},
	{"rules that have ended", 0, agent.SweepRules, 100},
	{"old results", 7 * 24 * time.Hour, agent.SweepSaved, 50},
	{"the places of turns, of an earlier version", 0, agent.SweepTurns, 1000},
	{"heartbeats that ended long ago", schedule.KeptFor, notify.SweepEnded, 20},
}

const sweepEvery = time.Hour

// sweep removes what is old from time to time until ctx ends.
func (p *program) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for _, age := range ages {
			p.sweepOnce(ctx, age)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *program) sweepOnce(ctx context.Context, age ageing) {
	for more := true; more && ctx.Err() == nil; {
		err := p.store.Update(ctx, func(tx memory.Tx) error {
			removed, err := age.sweep(tx, time.Now().Add(-age.kept), age.limit)
			more = removed == age.limit
			return err
		})
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			p.log.Warn("cannot remove "+age.what, "error", err)
		}
		return
	}
}
