package bot

import (
	"context"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// queue is what one conversation has to be told, in order.
type queue struct {
	address string
	items   []*item
}

// receipts stands behind the address of a conversation in the name of a queue of its own.
const receipts = "\x00receipts"

// line names the queue of an item. Where receipts are put on the very messages that they are about, nothing that is said
// waits for them: a platform takes fewer of them than of messages.
func (it *item) line() string {
	if it.reply.Kind == agent.SteerMark && it.adapter.Abilities().Reactions {
		return it.reply.Address + receipts
	}
	return it.reply.Address
}

// Outgoing says that there may be something in the outbox. It does not block.
func (h *Hub) Outgoing() {
	h.mu.Lock()
	h.asked++
	h.mu.Unlock()
	select {
	case h.look <- struct{}{}:
	default:
	}
}

// Live says progress, in its place among what is said in the conversation: behind all that is in the outbox now. It
// does not block.
func (h *Hub) Live(r agent.Reply) {
	behind := h.newest()
	h.mu.Lock()
	h.progress++
	h.live = append(h.live, placed{r, behind, h.progress})
	h.mu.Unlock()
	h.Outgoing()
}

// placed is progress and the parcel behind which it comes.
type placed struct {
	reply  agent.Reply
	behind uint64
	number int // among all progress
}

// newest is the last parcel that is in the outbox now.
func (h *Hub) newest() (id uint64) {
	h.mu.Lock()
	id = h.cursor
	h.mu.Unlock()
	err := h.Store.View(context.Background(), func(tx memory.Tx) error {
		return tx.Outbox().List(id, func(p memory.Parcel) error {
			id = p.ID
			return nil
		})
	})
	if err != nil {
		h.Log.Error("cannot look into the outbox", "error", err)
	}
	return id
}

// enqueueLive queues the progress that comes before a parcel, and all up to a number. The caller holds mu.
func (h *Hub) enqueueLive(before uint64, number int) {
	for len(h.live) > 0 && (h.live[0].behind < before || h.live[0].number <= number) {
		r := h.live[0].reply
		h.live = h.live[1:]
		if adapter := h.serves(r.Address); adapter != nil {
			h.enqueue(&item{adapter: adapter, reply: r})
		}
	}
}

// others are the adapters besides the one that speaks that reside in a conversation, such as a second terminal.
func (h *Hub) others(address string, speaker Adapter) []Adapter {
	h.mu.Lock()
	defer h.mu.Unlock()
	var others []Adapter
	for _, a := range h.adapters {
		r, ok := a.(Resident)
		if ok && a != speaker && !h.closed[a] && r.Resides(address) {
			others = append(others, a)
		}
	}
	return others
}

// serves finds the adapter for a conversation: one that resides there before one that merely can speak there. The
// caller holds mu.
func (h *Hub) serves(address string) Adapter {
	var found Adapter
	for _, a := range h.adapters {
		if h.closed[a] || !strings.HasPrefix(address, a.Platform()+":") || !a.Serves(address) {
			continue
		}
		if r, ok := a.(Resident); ok && r.Resides(address) {
			return a
		}
		found = a
	}
	return found
}

// pump brings what lies in the outbox to its conversations' queues until ctx ends.
func (h *Hub) pump(ctx context.Context) {
	hour := time.NewTicker(time.Hour)
	defer hour.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hour.C:
			h.age(ctx) // and look, in case that failed
		case <-h.look:
		}
		h.mu.Lock()
		asked, cursor, progress, free := h.asked, h.cursor, h.progress, h.free
		h.free = nil
		h.mu.Unlock()
		var parcels []memory.Parcel
		err := h.Store.View(ctx, func(tx memory.Tx) error {
			parcels = nil
			return tx.Outbox().List(cursor, func(p memory.Parcel) error {
				parcels = append(parcels, p)
				return nil
			})
		})
		if err != nil {
			h.Log.Error("cannot look into the outbox", "error", err)
		}
		h.dispatch(cursor, parcels, free)
		h.mu.Lock()
		h.enqueueLive(0, progress) // whatever it came behind was in this look
		h.looked = asked
		h.quiet.Broadcast()
		h.mu.Unlock()
	}
}

// dispatch queues what was found in the outbox behind cursor. If an adapter came since, the cursor was set back and all
// is looked at again, so that what lay there before comes first. free are the parcels that were in no queue any more
// before the look: what the look says of them is what is so. Of those that left one during it, it may be out of date.
func (h *Hub) dispatch(cursor uint64, parcels []memory.Parcel, free []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range free {
		delete(h.taken, id)
	}
	if h.cursor != cursor {
		return
	}
	for _, p := range parcels {
		h.enqueueLive(p.ID, 0)
		h.cursor = p.ID
		adapter := h.serves(p.Conversation)
		if adapter == nil || h.taken[p.ID] {
			continue
		}
		it := &item{adapter: adapter, parcel: p.ID, fate: readFate(p.State)}
		it.reply, it.spoilt = agent.ReadReply(p)
		it.reply.Address = p.Conversation
		h.taken[p.ID] = true
		h.enqueue(it)
	}
}

// enqueue adds to a conversation's queue and lets it be worked off. The caller holds mu.
func (h *Hub) enqueue(it *item) {
	if h.ended {
		return
	}
	it.queue = it.line()
	q := h.queues[it.queue]
	if q == nil {
		q = &queue{address: it.reply.Address}
		h.queues[it.queue] = q
		h.serving.Go(func() { h.deliver(it.queue, q) })
	}
	q.items = append(q.items, it)
}

// close gives nothing more to an adapter that can say nothing more, and the item to another that can speak in the
// conversation. If there is none, it is left for one that comes later.
func (h *Hub) close(it *item) (goesOn bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(h.adapters, it.adapter) {
		h.closed[it.adapter] = true
	}
	other := h.serves(it.reply.Address)
	if other == nil {
		h.leave(it)
		return false
	}
	it.adapter = other
	return true
}

// leave lets a parcel and all that is queued behind it lie in the outbox, so that the next adapter gets them in their
// order. The caller holds mu.
func (h *Hub) leave(it *item) {
	q := h.queues[it.queue]
	h.free = append(h.free, it.parcel)
	for _, behind := range q.items {
		h.free = append(h.free, behind.parcel)
	}
	q.items = nil
}

// attached reports whether an adapter has not been taken away.
func (h *Hub) attached(adapter Adapter) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.adapters, adapter)
}

// Drain returns when everything has been said that the running adapters can say in conversations for which want is
// true, or when ctx or Serve ends. A nil want means all.
func (h *Hub) Drain(ctx context.Context, want func(address string) bool) error {
	stop := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.quiet.Broadcast()
	})
	defer stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for asked := h.asked; ctx.Err() == nil && !h.ended && (h.looked < max(asked, h.alarmed) || h.speaks(want)); {
		h.quiet.Wait()
	}
	return ctx.Err()
}

// speaks reports whether a conversation that is wanted has something to be told. The caller holds mu.
func (h *Hub) speaks(want func(address string) bool) bool {
	for _, q := range h.queues {
		if want == nil || want(q.address) {
			return true
		}
	}
	return false
}
