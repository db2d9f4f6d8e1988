package workspace

import (
	"context"
	"errors"

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

// errBusy is for the model.
var errBusy = errors.New("something else has run in the workspace for long; try again later")

// Enter waits until a folder may be looked into, or be changed by who is alone then. The caller calls leave once it is
// done. The error is for the model, or that of ctx where it was cancelled.
func (g *Gate) Enter(ctx context.Context, folder string, alone bool) (leave func(), err error) {
	places := int64(1)
	if alone {
		places = everybody
	}
	leave, err = g.folders.Enter(ctx, folder, places)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errBusy
	}
	return leave, err
}
