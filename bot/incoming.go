package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// Receive admits what an adapter heard: strangers are refused, repeats are known, commands are answered, and all
// else goes to the session of its conversation. When the disk is full nothing is taken, and the person is told so.
func (h *Hub) Receive(ctx context.Context, e Event) (Admission, error) {
	admission, err := h.admit(ctx, e)
	if errors.Is(err, memory.ErrFull) {
		h.tellFull(e)
	}
	return admission, err
}

// fullRest is how long a conversation is not told again that the disk is full: platforms deliver anew what was not taken.
const fullRest = time.Minute

// tellFull says that nothing is taken. It cannot be kept, so it is said now or never.
func (h *Hub) tellFull(e Event) {
	h.mu.Lock()
	told := time.Since(h.full[e.Address]) < fullRest
	if !told {
		if h.full == nil {
			h.full = map[string]time.Time{}
		}
		h.full[e.Address] = time.Now()
	}
	h.mu.Unlock()
	h.Log.Error("the disk is full: what was said is not taken", "conversation", e.Address)
	if !told {
		h.Live(agent.Reply{
			Kind: agent.Fault, ID: e.ID, To: e.From.ID, Address: e.Address,
			Text: "My disk is full, so I could not take what you said, and nothing was done. Say it again once there is room.",
		})
	}
}

func (h *Hub) admit(ctx context.Context, e Event) (Admission, error) {
	if e.Overheard {
		if lives, err := h.lives(ctx, e.Address); err != nil || !lives {
			return Ignored, err
		}
	}
	if !h.allowed(e.From.ID) {
		h.Log.Warn("refused somebody who is not on the allow list", "person", e.From.ID)
		return Refused, nil
	}
	text := strings.TrimSpace(e.Text)
	switch {
	case e.Stop, strings.EqualFold(text, "stop"):
		return h.pass(ctx, e, agent.Message{Stop: true, Provenance: agent.Human})
	case e.Feedback != nil:
		return h.feedback(ctx, e)
	case e.Click != nil:
		return h.pass(ctx, e, agent.Message{Decision: e.Click, Provenance: agent.Decided})
	}
	for _, words := range []string{"stop all", "go on"} {
		// Alone, these need no slash; from others than owners they are words like any.
		if strings.EqualFold(text, words) && h.agent.Owns(e.From.ID) {
			return h.obey(ctx, e, words, "")
		}
	}
	if word, rest, ok := h.command(e.Address, text); ok {
		return h.obey(ctx, e, word, rest)
	}
	if text == "" && len(e.Files) == 0 {
		return Ignored, nil
	}
	return h.pass(ctx, e, agent.Message{Text: e.Text, Files: e.Files, Provenance: agent.Human})
}

// lives reports whether a conversation of the bot's is held at an address.
func (h *Hub) lives(ctx context.Context, address string) (lives bool, err error) {
	err = h.Store.View(ctx, func(tx memory.Tx) error {
		session, err := agent.SessionOf(tx, address)
		if err != nil {
			return err
		}
		last, err := tx.Journal().Last(session)
		if err != nil {
			return err
		}
		mail, err := tx.Inbox().List(session)
		lives = last > 0 || len(mail) > 0
		return err
	})
	return lives, err
}

// Card gives a card that still awaits a decision.
func (h *Hub) Card(ctx context.Context, id string) (card agent.Reply, waiting bool, err error) {
	err = h.Store.View(ctx, func(tx memory.Tx) error {
		card, waiting, err = agent.WaitingCardOf(tx, id)
		return err
	})
	return card, waiting, err
}

// allowed reports whether a person is served.
func (h *Hub) allowed(id agent.PersonID) bool {
	if id.Local() {
		return true
	}
	for _, a := range h.Allow {
		if prefix, any := strings.CutSuffix(a, "*"); id != "" && (any && strings.HasPrefix(string(id), prefix) || a == string(id)) {
			return true
		}
	}
	return false
}

// pass gives a message to the agent.
func (h *Hub) pass(ctx context.Context, e Event, m agent.Message) (Admission, error) {
	m.Keys, m.From, m.Address, m.ID, m.At = e.Keys, e.From, e.Address, e.ID, e.At
	err := h.Store.View(ctx, func(tx memory.Tx) (err error) {
		m.Session, err = agent.SessionOf(tx, e.Address)
		return err
	})
	if err != nil {
		return 0, err
	}
	fresh, err := h.agent.Receive(ctx, m)
	if errors.Is(err, agent.ErrUnknownCard) {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("There is no card %s. %s lists those that wait.", m.Decision.Card, h.word(e.Address, "approvals")))
	}
	if err != nil || fresh {
		return Taken, err
	}
	return Repeat, nil
}

// answer answers an event at once, without the agent: what is said and the mark that it was heard are one
// transaction.
func (h *Hub) answer(ctx context.Context, e Event, kind agent.Kind, text string) (Admission, error) {
	return h.answerWith(ctx, e, func(memory.Tx) (agent.Kind, string, error) { return kind, text, nil })
}

// answerWith is answer for a text that comes out of the transaction, which may also change something.
func (h *Hub) answerWith(ctx context.Context, e Event, fn func(memory.Tx) (agent.Kind, string, error)) (Admission, error) {
	return h.admitOnce(ctx, e, func(tx memory.Tx) error {
		kind, text, err := fn(tx)
		if err != nil {
			return err
		}
		session, err := agent.SessionOf(tx, e.Address)
		if err != nil {
			return err
		}
		return agent.Send(tx, agent.Reply{Kind: kind, Session: session, Text: text, Address: e.Address})
	})
}

// admitOnce does what an event asks for, in one transaction with the mark that it was heard, unless it was heard before.
func (h *Hub) admitOnce(ctx context.Context, e Event, fn func(memory.Tx) error) (Admission, error) {
	var fresh bool
	err := h.Store.Update(ctx, func(tx memory.Tx) error {
		fresh = true
		for _, key := range e.Keys {
			isNew, err := tx.Seen().Mark(key, e.At)
			if err != nil {
				return err
			}
			fresh = fresh && isNew
		}
		if !fresh {
			return nil
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
