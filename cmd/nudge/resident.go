package main

import (
	"context"
	"runtime/debug"
	"time"
)

// settledAfter is when all that only a start needs has been done.
const settledAfter = time.Second

// slim gives the memory back, once, that only starting needed.
func (p *program) slim(ctx context.Context) {
	started := time.NewTimer(settledAfter)
	defer started.Stop()
	select {
	case <-started.C:
	case <-ctx.Done():
		return
	}
	debug.FreeOSMemory()
	if err := releaseProgram(); err != nil {
		p.log.Debug("what only starting needed stays in memory", "error", err)
	}
}
