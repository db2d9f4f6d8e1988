package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// queue is what one conversation has to be told, in order.
type queue struct {
	items []item
}

// item is a parcel of the outbox, or progress, which is in none.
type item struct {
	adapter Adapter
	parcel  uint64 // 0 for progress
	reply   agent.Reply
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
			h.enqueue(item{adapter: adapter, reply: r})
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

// pump brings what lies in the outbox to its conversations' queues until ctx ends; then it waits for what is being said.
func (h *Hub) pump(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.look:
		}
		h.mu.Lock()
		asked, cursor, progress := h.asked, h.cursor, h.progress
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
		h.dispatch(cursor, parcels)
		h.mu.Lock()
		h.enqueueLive(0, progress) // whatever it came behind was in this look
		h.looked = asked
		h.quiet.Broadcast()
		h.mu.Unlock()
	}
}

// dispatch queues what was found in the outbox behind cursor. If an adapter came since, the cursor was set back and all
// is looked at again, so that what lay there before comes first.
func (h *Hub) dispatch(cursor uint64, parcels []memory.Parcel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cursor != cursor {
		return
	}
	for _, p := range parcels {
		h.enqueueLive(p.ID, 0)
		h.cursor = p.ID
		adapter := h.serves(p.Conversation)
		if adapter == nil || p.State == stateDead || h.taken[p.ID] {
			continue
		}
		r, err := agent.ReadReply(p)
		if err != nil {
			h.Log.Error("cannot read what lies in the outbox", "error", err)
			continue
		}
		h.taken[p.ID] = true
		h.enqueue(item{adapter, p.ID, r})
	}
}

// enqueue adds to a conversation's queue and lets it be worked off. The caller holds mu.
func (h *Hub) enqueue(it item) {
	if h.ended {
		return
	}
	q := h.queues[it.reply.Address]
	if q == nil {
		q = &queue{}
		h.queues[it.reply.Address] = q
		h.serving.Go(func() { h.deliver(it.reply.Address, q) })
	}
	q.items = append(q.items, it)
}

// deliver says what a conversation's queue holds until it is empty. What was said leaves the outbox as soon as
// nothing else waits behind it.
func (h *Hub) deliver(address string, q *queue) {
	var said []spoken
	for {
		h.mu.Lock()
		if h.ended {
			q.items = nil
		}
		if len(q.items) == 0 && len(said) == 0 {
			delete(h.queues, address)
			h.quiet.Broadcast()
			h.mu.Unlock()
			return
		}
		var next *item
		if len(q.items) > 0 {
			next = &q.items[0]
			q.items = q.items[1:]
		}
		h.mu.Unlock()
		// A mark about a card needs the card's receipt, which is kept when the card leaves the outbox.
		if next == nil || len(said) >= 16 || next.reply.Kind == agent.DecidedMark && len(said) > 0 {
			h.settle(said)
			said = nil
		}
		if next == nil {
			continue
		}
		if receipt, ok := h.say(*next); ok && next.parcel != 0 {
			said = append(said, spoken{*next, receipt})
		}
	}
}

// spoken is what was said and is still in the outbox.
type spoken struct {
	item
	receipt string
}

// tableReceipts keeps where cards stand: conversation and card → the platform's name for the message.
const tableReceipts = "receipt"

func receiptKey(r agent.Reply) string { return r.ID + " " + r.Address }

// settle takes what was said out of the outbox, and keeps the receipts of cards for the marks about them.
func (h *Hub) settle(said []spoken) {
	err := h.Store.Update(context.Background(), func(tx memory.Tx) error {
		for _, s := range said {
			if err := tx.Outbox().Remove(s.parcel); err != nil {
				return err
			}
			if s.receipt == "" || s.reply.ID == "" || !s.reply.IsCard() {
				continue
			}
			if err := tx.Table(tableReceipts).Put(receiptKey(s.reply), []byte(s.receipt)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.Log.Error("what was said could not be taken out of the outbox; it may be said again", "error", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range said {
		delete(h.taken, s.parcel)
	}
}

// earlier is the receipt of the card that a mark is about.
func (h *Hub) earlier(r agent.Reply) (receipt string) {
	if r.Kind != agent.DecidedMark || r.ID == "" {
		return ""
	}
	err := h.Store.View(context.Background(), func(tx memory.Tx) error {
		data, _, err := tx.Table(tableReceipts).Get(receiptKey(r))
		receipt = string(data)
		return err
	})
	if err != nil {
		h.Log.Error("cannot look up where a card stands", "card", r.ID, "error", err)
	}
	return receipt
}

// stateDead marks a parcel that was given up.
const stateDead = "dead"

// say says one thing, with as many tries as it takes, and reports whether it was said.
func (h *Hub) say(it item) (receipt string, said bool) {
	d := Delivery{Reply: it.reply, Earlier: h.earlier(it.reply)}
	if it.parcel != 0 {
		d.Key = fmt.Sprint("parcel-", it.parcel)
	}
	wait := h.FirstWait
	for began := time.Now(); ; {
		receipt, err := it.adapter.Say(context.Background(), d)
		if err == nil {
			for _, other := range h.others(it.reply.Address, it.adapter) {
				if _, err := other.Say(context.Background(), d); err != nil {
					h.Log.Warn("another place of a conversation could not be told", "conversation", it.reply.Address, "error", err)
				}
			}
			return receipt, true
		}
		var send *SendError
		errors.As(err, &send)
		switch {
		case it.parcel == 0:
			return "", false // progress may be dropped
		case send != nil && send.Closed, !h.attached(it.adapter):
			if it.adapter = h.close(it); it.adapter == nil {
				return "", false
			}
			continue
		case send != nil && send.Gone, time.Since(began) >= sayFor:
			h.Log.Error("gave up saying something", "kind", it.reply.Kind, "conversation", it.reply.Address, "error", err)
			h.bury(it)
			return "", false
		}
		if send != nil && send.RetryAfter > 0 {
			wait = send.RetryAfter
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-h.ending: // the parcel stays in the outbox for the next start
			pause.Stop()
			return "", false
		}
		wait = min(2*wait, longest)
	}
}

// close gives nothing more to an adapter that can say nothing more. It returns another that can speak in the
// conversation; nil if there is none, and then the parcel is left for one that comes later.
func (h *Hub) close(it item) (other Adapter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(h.adapters, it.adapter) {
		h.closed[it.adapter] = true
	}
	if other = h.serves(it.reply.Address); other == nil {
		h.leave(it)
	}
	return other
}

// leave lets a parcel and all that is queued behind it lie in the outbox, so that the next adapter gets them in their
// order. The caller holds mu.
func (h *Hub) leave(it item) {
	delete(h.taken, it.parcel)
	q := h.queues[it.reply.Address]
	for _, behind := range q.items {
		delete(h.taken, behind.parcel)
	}
	q.items = nil
}

// attached reports whether an adapter has not been taken away.
func (h *Hub) attached(adapter Adapter) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.adapters, adapter)
}

// bury keeps what could not be said, marked as given up.
func (h *Hub) bury(it item) {
	err := h.Store.Update(context.Background(), func(tx memory.Tx) error {
		return tx.Outbox().List(it.parcel-1, func(p memory.Parcel) error {
			if p.ID != it.parcel {
				return memory.ErrStop
			}
			p.State = stateDead
			return errors.Join(tx.Outbox().Set(p), memory.ErrStop)
		})
	})
	if err != nil {
		h.Log.Error("cannot mark what was given up", "error", err)
	}
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
	for asked := h.asked; ctx.Err() == nil && !h.ended && (h.looked < asked || h.speaks(want)); {
		h.quiet.Wait()
	}
	return ctx.Err()
}

// speaks reports whether a conversation that is wanted has something to be told. The caller holds mu.
func (h *Hub) speaks(want func(address string) bool) bool {
	for address := range h.queues {
		if want == nil || want(address) {
			return true
		}
	}
	return false
}
