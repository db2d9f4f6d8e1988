package workspace

import (
	"context"
	"fmt"

	"nudge/agent/tool/queue"
)

// Gate lets calls into people's folders: those that only look together, one that changes something alone. So what a call was
// found to be, or approved as, is what runs, whatever its person does in other conversations meanwhile. Its method may be called
// concurrently.
type Gate struct{ folders *queue.Queues }

// NewGate makes a gate behind which nobody is.
func NewGate() *Gate { return &Gate{queue.New(everybody)} }

// everybody is more than ever look into a folder at once.
const everybody = 1 << 30

// Enter waits until a folder may be looked into, or be changed by who is alone then. The caller calls leave once it is
// done. The error is that of ctx.
func (g *Gate) Enter(ctx context.Context, folder string, alone bool) (leave func(), err error) {
	places := int64(1)
	if alone {
		places = everybody
	}
	if leave, err = g.folders.Enter(ctx, folder, places); err != nil {
		return nil, fmt.Errorf("wait until what else runs in the workspace has ended: %w", err)
	}
	return leave, nil
}
