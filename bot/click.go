package bot

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// click takes a decision that was made with a button or in a form.
func (h *Hub) click(ctx context.Context, e Event) (Admission, error) {
	if isRequest(e.Click.Card) {
		return h.decideRequest(ctx, e)
	}
	if elsewhere, err := h.elsewhere(ctx, e); err != nil || elsewhere {
		return h.refuseClick(ctx, e, err)
	}
	if agent.Direct(e.Address) && !isOwn(e.From.ID, e.Address) {
		// Where all that waits for a person is listed, cards can be decided that stand in somebody else's direct messages.
		e.Address = e.From.ID.Home()
	}
	if e.Batch {
		return h.decideBatch(ctx, e)
	}
	decision, err := h.whole(ctx, e.Click, e.Keeps)
	if err != nil {
		return 0, err
	}
	e.Click = decision
	return h.pass(ctx, e, agent.Message{Decision: e.Click, Provenance: agent.Decided})
}

// Card gives a card that still awaits a decision, as it may be shown.
func (h *Hub) Card(ctx context.Context, id string) (card agent.Reply, waiting bool, err error) {
	err = h.Store.View(ctx, func(tx memory.Tx) error {
		if isRequest(id) {
			var q request
			q, waiting, err = loadRequest(tx, id)
			card, waiting = q.reply(""), waiting && q.waits(time.Now())
			return err
		}
		card, waiting, err = agent.WaitingCardOf(tx, id)
		return err
	})
	return Hide(card, h.Secrets), waiting, err
}

// Schema is the JSON Schema of a tool's arguments.
func (h *Hub) Schema(tool string) json.RawMessage { return h.agent.Schema(tool) }

// Weigh says what speaks against a click.
func (h *Hub) Weigh(ctx context.Context, e Event) (*agent.Objection, error) {
	if served, err := h.lets(ctx, e.From.ID, e.Standing); err != nil || !served {
		return &agent.Objection{Text: NotServed, Final: true}, err
	}
	if isRequest(e.Click.Card) {
		var against *agent.Objection
		err := h.Store.View(ctx, func(tx memory.Tx) (err error) {
			against, err = h.weighRequest(tx, e)
			return err
		})
		return against, err
	}
	if elsewhere, err := h.elsewhere(ctx, e); err != nil || elsewhere {
		return &agent.Objection{Text: cardElsewhere, Final: true}, err
	}
	decision, err := h.whole(ctx, e.Click, e.Keeps)
	if err != nil {
		return nil, err
	}
	against, err := h.agent.Weigh(ctx, e.From, *decision)
	return h.hidden(against), err
}

// cardElsewhere is what a person is told whose click is about a card that does not stand where it was made.
const cardElsewhere = "That card does not belong to this conversation, so nothing was done."

// elsewhere reports whether a click is about a card that was shown in other conversations only. One that was never asked is
// for the agent to tell.
func (h *Hub) elsewhere(ctx context.Context, e Event) (bool, error) {
	stands, err := h.agent.CardStands(ctx, e.Click.Card, e.Address)
	if errors.Is(err, agent.ErrUnknownCard) {
		return false, nil
	}
	return !stands, err
}

// refuseClick tells the person of a click, and nobody else, that its card does not stand there.
func (h *Hub) refuseClick(ctx context.Context, e Event, err error) (Admission, error) {
	if err != nil {
		return 0, err
	}
	h.Log.Warn("refused a decision about a card of another conversation", "person", e.From.ID, "card", e.Click.Card, "conversation", e.Address)
	return h.aside(ctx, e, e.Click.Card, cardElsewhere)
}
