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
	if err == nil && admission == Taken && e.Zoneless && agent.Direct(e.Address) {
		h.askZone(ctx, e)
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

// admit takes an event in: who may not be heard, or says too much, is turned away, and each kind of event goes its way.
func (h *Hub) admit(ctx context.Context, e Event) (Admission, error) {
	if e.Overheard {
		if lives, err := h.lives(ctx, e.Address); err != nil || !lives {
			return Ignored, err
		}
	}
	served, err := h.lets(ctx, e.From.ID, e.Standing)
	if err != nil {
		return 0, err
	}
	if !served {
		return h.refuse(ctx, e)
	}
	e.zoneTold = e.From.Zone != ""
	if e.From, err = h.known(ctx, e.From); err != nil {
		return 0, err
	}
	stops := strings.EqualFold(strings.TrimSpace(e.Text), "stop")
	if !stops {
		if tooMuch, err := h.tooMuch(ctx, e); err != nil || tooMuch {
			return Declined, err
		}
	}
	switch {
	case e.Stop:
		return h.stop(ctx, e)
	case e.Quote != nil:
		return h.pass(ctx, e, agent.Message{Text: e.Text + "\n\n" + e.Quote.words(), Provenance: agent.Human, Origin: e.Quote.origin()})
	case stops:
		return h.pass(ctx, e, agent.Message{Stop: true, Provenance: agent.Human})
	case e.Feedback != nil:
		return h.feedback(ctx, e)
	case e.Click != nil:
		return h.click(ctx, e)
	}
	return h.hear(ctx, e)
}

// hear takes words: those that are a command are obeyed, all others are for the agent.
func (h *Hub) hear(ctx context.Context, e Event) (Admission, error) {
	text := strings.TrimSpace(e.Text)
	// From others than owners these are words like any.
	if words := ownersWords(text); words != "" && h.agent.Owns(e.From.ID) {
		return h.obey(ctx, e, words, "")
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

// NotServed is what a person is told who is not let in, by platforms that can tell them alone.
const NotServed = "You are not on the list of people whom I serve, so nothing was done."

// lets reports whether a person is served: whom the config lets in, and whom an owner has.
func (h *Hub) lets(ctx context.Context, id agent.PersonID, standing Standing) (bool, error) {
	served, why := h.allowed(id, standing)
	if served || standing == Automaton {
		return served, why
	}
	granted, err := h.granted(ctx, id)
	if granted || err != nil {
		return granted, err
	}
	return false, why
}

// LetsIn reports whether a person is served, as far as that can be told without a word of theirs: one whom a pattern
// lets in may have become a guest since. Where it cannot be told, they are not.
func (h *Hub) LetsIn(id agent.PersonID) bool {
	if served, _ := h.allowed(id, Member); served {
		return true
	}
	granted, err := h.granted(context.Background(), id)
	if err != nil {
		h.Log.Error("cannot look whether somebody is let in", "person", id, "error", err)
	}
	return granted
}

// allowed reports whether the config lets a person in. The error is that of one of whom it cannot be told.
func (h *Hub) allowed(id agent.PersonID, standing Standing) (bool, error) {
	byName, byPattern := id.Local(), false
	for _, a := range h.Allow {
		prefix, any := strings.CutSuffix(a, "*")
		byName = byName || id != "" && a == string(id)
		byPattern = byPattern || id != "" && any && strings.HasPrefix(string(id), prefix)
	}
	switch {
	case standing == Automaton:
		return false, nil
	case byName || standing == Member:
		return byName || byPattern, nil
	case standing == Unknown && byPattern:
		return false, fmt.Errorf("let %s in: the platform does not say whether they are a guest or of another organisation", id)
	}
	return false, nil
}

// stop passes a pressed Stop button on, if there is something to stop and its person takes part in the conversation. A
// button that is pressed twice, or after the end, has nothing more to say.
func (h *Hub) stop(ctx context.Context, e Event) (Admission, error) {
	var runs, partakes bool
	err := h.Store.View(ctx, func(tx memory.Tx) error {
		session, err := agent.SessionOf(tx, e.Address)
		if err != nil {
			return err
		}
		if runs, err = agent.Busy(tx, session); err != nil {
			return err
		}
		if partakes = !runs || isOwn(e.From.ID, e.Address) || h.agent.Owns(e.From.ID); partakes {
			return nil
		}
		partakes, err = agent.TakesPart(tx, session, e.From.ID)
		return err
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("look what %s would stop: %w", e.From.ID, err)
	case !runs:
		return h.admitOnce(ctx, e, func(memory.Tx) error { return nil })
	case !partakes:
		admission, err := h.aside(ctx, e, "", "Only those who take part in this conversation may stop what I do in it, so I go on.")
		if admission == Taken {
			admission = Declined
		}
		return admission, err
	}
	return h.pass(ctx, e, agent.Message{Stop: true, Provenance: agent.Human})
}

// Renew keeps what has changed of a person, if anything is kept of them.
func (h *Hub) Renew(ctx context.Context, p agent.Person) error {
	err := h.Store.Update(ctx, func(tx memory.Tx) error { return agent.Renew(tx, p) })
	if err != nil {
		return fmt.Errorf("keep what has changed of %s: %w", p.ID, err)
	}
	return nil
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
