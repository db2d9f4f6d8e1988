package bot

import (
	"context"
	"fmt"

	"nudge/agent"
	"nudge/memory"
)

// answer answers an event at once, without the agent: what is said and the mark that it was heard are one
// transaction.
func (h *Hub) answer(ctx context.Context, e Event, kind agent.Kind, text string) (Admission, error) {
	return h.answerWith(ctx, e, func(memory.Tx) (agent.Kind, string, error) { return kind, text, nil })
}

// aside tells an event's person alone, where others listen, why nothing was done. card is what it is about; "" for no card.
func (h *Hub) aside(ctx context.Context, e Event, card, text string) (Admission, error) {
	return h.answerReply(ctx, e, func(memory.Tx) (agent.Reply, error) {
		return agent.Reply{Kind: agent.Fault, ID: card, To: e.From.ID, Text: text}, nil
	})
}

// answerWith is answer for a text that comes out of the transaction, which may also change something.
func (h *Hub) answerWith(ctx context.Context, e Event, fn func(memory.Tx) (agent.Kind, string, error)) (Admission, error) {
	return h.answerReply(ctx, e, func(tx memory.Tx) (r agent.Reply, err error) {
		r.Kind, r.Text, err = fn(tx)
		return r, err
	})
}

// answerAlone is answerWith for what is nobody's business but the person's.
func (h *Hub) answerAlone(ctx context.Context, e Event, fn func(memory.Tx) (agent.Kind, string, error)) (Admission, error) {
	return h.answerReply(ctx, e, func(tx memory.Tx) (r agent.Reply, err error) {
		r.Kind, r.Text, err = fn(tx)
		return e.alone(r), err
	})
}

// alone is an answer to an event that its person reads alone where others read along.
func (e Event) alone(r agent.Reply) agent.Reply {
	if !agent.Direct(e.Address) {
		r.To = e.From.ID
	}
	return r
}

// answerReply is answerWith for a reply that has more than a text. One without an address goes to where the event came from.
func (h *Hub) answerReply(ctx context.Context, e Event, fn func(memory.Tx) (agent.Reply, error)) (Admission, error) {
	return h.admitOnce(ctx, e, func(tx memory.Tx) error {
		r, err := fn(tx)
		if err != nil {
			return err
		}
		if r.Address == "" {
			r.Address = e.Address
		}
		if r.Session == "" {
			if r.Session, err = agent.SessionOf(tx, r.Address); err != nil {
				return err
			}
		}
		return agent.Send(tx, r)
	})
}

// admitOnce does what an event asks for, in one transaction with the mark that it was heard, unless it was heard before.
func (h *Hub) admitOnce(ctx context.Context, e Event, fn func(memory.Tx) error) (Admission, error) {
	var fresh bool
	err := h.Store.Update(ctx, func(tx memory.Tx) (err error) {
		if fresh, err = markSeen(tx, e); err != nil || !fresh {
			return err
		}
		return fn(tx)
	})
	if err != nil {
		return 0, fmt.Errorf("answer %s: %w", e.From.ID, err)
	}
	h.Outgoing()
	if !fresh {
		return Repeat, nil
	}
	return Taken, nil
}

// markSeen keeps under all its keys that an event was received, and reports whether none of them was known.
func markSeen(tx memory.Tx, e Event) (fresh bool, err error) {
	fresh = true
	for _, key := range e.Keys {
		isNew, err := tx.Seen().Mark(key, e.At)
		if err != nil {
			return false, err
		}
		fresh = fresh && isNew
	}
	return fresh, nil
}
