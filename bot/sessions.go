package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// sessionsOf lists the sessions of a conversation, oldest first.
func sessionsOf(tx memory.Tx, conversation string) (names []string, newest map[string]time.Time, err error) {
	newest = map[string]time.Time{}
	err = tx.Journal().Sessions(conversation, func(session string, last memory.Entry) error {
		if !strings.HasPrefix(session, conversation) {
			return memory.ErrStop
		}
		if session == conversation || strings.HasPrefix(session, conversation+"~") {
			names = append(names, session)
			newest[session] = last.At
		}
		return nil
	})
	slices.SortFunc(names, func(a, b string) int { return sessionNumber(a) - sessionNumber(b) })
	return names, newest, err
}

// sessionNumber is the number of a session in its conversation: the first has no suffix.
func sessionNumber(session string) int {
	_, suffix, found := strings.Cut(session, "~")
	if !found {
		return 1
	}
	n, _ := strconv.Atoi(suffix)
	return n
}

func (h *Hub) newSession(ctx context.Context, e Event, _ string) (Admission, error) {
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		names, _, err := sessionsOf(tx, e.Address)
		if err != nil {
			return "", "", err
		}
		current, err := agent.SessionOf(tx, e.Address)
		if err != nil {
			return "", "", err
		}
		// The name of one that was erased is not used again.
		if used, err := agent.HasSession(tx, current); err != nil || !used || len(names) == 0 {
			return agent.Notice, "This conversation is fresh already.", err
		}
		n := sessionNumber(names[len(names)-1]) + 1
		if err := agent.SetSession(tx, e.Address, fmt.Sprintf("%s~%d", e.Address, n)); err != nil {
			return "", "", err
		}
		return agent.Notice, fmt.Sprintf("This is a fresh conversation, number %d. %s lists the others.", n, h.word(e.Address, "sessions")), nil
	})
}

func (h *Hub) sessions(ctx context.Context, e Event, rest string) (Admission, error) {
	if word, which := cutWord(rest); strings.EqualFold(word, "erase") {
		return h.eraseSession(ctx, e, which)
	}
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		names, newest, err := sessionsOf(tx, e.Address)
		if err != nil {
			return "", "", err
		}
		current, err := agent.SessionOf(tx, e.Address)
		if err != nil {
			return "", "", err
		}
		if len(names) == 0 {
			return agent.Notice, "There is no conversation here yet.", nil
		}
		lines := make([]string, len(names))
		for i, name := range names {
			lines[i] = fmt.Sprintf("%d  last used %s", sessionNumber(name), newest[name].In(zoneOf(e.From)).Format("2006-01-02 15:04"))
			if name == current {
				lines[i] += "  (this one)"
			}
		}
		return agent.Notice, strings.Join(lines, "\n"), nil
	})
}

func (h *Hub) resumeSession(ctx context.Context, e Event, rest string) (Admission, error) {
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		names, _, err := sessionsOf(tx, e.Address)
		if err != nil {
			return "", "", err
		}
		name, n := numbered(names, rest)
		if name == "" {
			return agent.Fault, h.noSession(e, rest), nil
		}
		return agent.Notice, fmt.Sprintf("This is conversation number %d again.", n), agent.SetSession(tx, e.Address, name)
	})
}

// numbered finds the session with a number; "" when there is none.
func numbered(names []string, number string) (name string, n int) {
	n, _ = strconv.Atoi(number)
	at := slices.IndexFunc(names, func(s string) bool { return sessionNumber(s) == n })
	if at < 0 {
		return "", 0
	}
	return names[at], n
}

func (h *Hub) noSession(e Event, number string) string {
	return fmt.Sprintf("There is no conversation number %q here. %s lists them.", number, h.word(e.Address, "sessions"))
}

// isOwn reports whether an address is a direct conversation of a person's.
func isOwn(person agent.PersonID, address string) bool {
	home := person.Home()
	return address == home || strings.HasPrefix(address, home+":")
}

const onlyDirect = "Only in a direct conversation with me: others read along here."

// export answers with all that is kept of the present session.
func (h *Hub) export(ctx context.Context, e Event, _ string) (Admission, error) {
	if !isOwn(e.From.ID, e.Address) {
		return h.answer(ctx, e, agent.Fault, onlyDirect)
	}
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		session, err := agent.SessionOf(tx, e.Address)
		if err != nil {
			return "", "", err
		}
		kept, err := agent.ExportSession(tx, session)
		if errors.Is(err, agent.ErrUnknownSession) {
			return agent.Notice, "Nothing is kept of this conversation yet.", nil
		}
		return agent.Notice, kept.Markdown(zoneOf(e.From)), err
	})
}

// eraseSession erases a session of the conversation by its number, once the person has said yes.
func (h *Hub) eraseSession(ctx context.Context, e Event, rest string) (Admission, error) {
	if !isOwn(e.From.ID, e.Address) {
		return h.answer(ctx, e, agent.Fault, onlyDirect)
	}
	number, yes := cutWord(rest)
	var session string
	var n int
	err := h.Store.View(ctx, func(tx memory.Tx) error {
		names, _, err := sessionsOf(tx, e.Address)
		session, n = numbered(names, number)
		return err
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("look for conversation %s of %s: %w", number, e.From.ID, err)
	case session == "":
		return h.answer(ctx, e, agent.Fault, h.noSession(e, number))
	case !strings.EqualFold(yes, "yes"):
		return h.answer(ctx, e, agent.Notice, fmt.Sprintf("This removes conversation number %d for good: what was said, done and decided in it, and what it still waits for. To go on, say %s",
			n, h.word(e.Address, fmt.Sprintf("sessions erase %d yes", n))))
	}
	return h.eraseFor(ctx, e, session, n)
}

// errRepeat takes a transaction back in which something turned out to have been received before.
var errRepeat = errors.New("it was received before")

// eraseFor erases a session, answers, and keeps that the command was heard, in one transaction.
func (h *Hub) eraseFor(ctx context.Context, e Event, session string, n int) (Admission, error) {
	// A repeat must not stop what has begun since, so this looks first, and keeps nothing of it.
	errFresh := errors.New("it was not received before")
	err := h.Store.Update(ctx, func(tx memory.Tx) error {
		if err := mustBeNew(tx, e); err != nil {
			return err
		}
		return errFresh
	})
	switch {
	case errors.Is(err, errRepeat):
		return Repeat, nil
	case !errors.Is(err, errFresh):
		return 0, fmt.Errorf("erase conversation %d of %s: %w", n, e.From.ID, err)
	}
	_, err = eraseSession(ctx, h.agent, session, func(tx memory.Tx, removed Erased) error {
		if err := mustBeNew(tx, e); err != nil {
			return err
		}
		now, err := agent.SessionOf(tx, e.Address)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("Conversation number %d is erased: %s. Its bytes leave the data file within a minute.", n, removed)
		return agent.Send(tx, agent.Reply{Kind: agent.Notice, Session: now, Text: text, Address: e.Address})
	})
	if errors.Is(err, errRepeat) {
		return Repeat, nil
	}
	if err != nil {
		return 0, err
	}
	h.Outgoing()
	return Taken, nil
}

// mustBeNew keeps that an event was received. The error for one that was received before is errRepeat.
func mustBeNew(tx memory.Tx, e Event) error {
	fresh, err := markSeen(tx, e)
	if err == nil && !fresh {
		err = errRepeat
	}
	return err
}

// Erased is what was removed of a session.
type Erased struct {
	agent.Erased
	Told     int // notify cards; what the person said of them goes on
	Receipts int // where its cards stood on their platforms
	Kept     int // lines that an adapter had put aside
	Letters  int // dead letters whose words were blanked
}

// String is what was removed in words, in counts.
func (e Erased) String() string {
	var parts []string
	for _, of := range []struct {
		n     int
		thing string
	}{
		{e.Entries, "journal line"}, {e.Turns, "turn"}, {len(e.Cards), "card"}, {e.Mail, "waiting message"}, {e.Parcels, "undelivered parcel"},
		{e.Results, "saved result"}, {e.Rules, "rule"}, {e.Told, "notify card"}, {e.Receipts, "card receipt"}, {e.Kept, "kept line"}, {e.Letters, "dead letter"},
	} {
		if of.n > 0 {
			parts = append(parts, schedule.Counted(of.n, of.thing))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// Erase stops what an agent runs in a session and removes it with all that is kept of it, like [EraseSession]. See
// [agent.Agent.Erase] for what becomes of what comes meanwhile.
func Erase(ctx context.Context, ag *agent.Agent, session string) (Erased, error) {
	return eraseSession(ctx, ag, session, func(memory.Tx, Erased) error { return nil })
}

func eraseSession(ctx context.Context, ag *agent.Agent, session string, also func(memory.Tx, Erased) error) (removed Erased, err error) {
	began := time.Time{}
	err = ag.Store.View(ctx, func(tx memory.Tx) (err error) {
		began, err = beganAt(tx, session)
		return err
	})
	if err != nil {
		return Erased{}, fmt.Errorf("erase session %s: %w", session, err)
	}
	_, err = ag.Erase(ctx, session, func(tx memory.Tx, of agent.Erased) (err error) {
		if removed, err = eraseTraces(tx, session, began, of); err != nil {
			return err
		}
		return also(tx, removed)
	})
	if err != nil {
		return Erased{}, err
	}
	return removed, nil
}

// EraseSession removes a session within a transaction, while no agent runs: all that [agent.EraseSession] does, where its
// cards stand on their platforms, and the words of what could not be delivered in its conversation since it began. A
// conversation whose present session it was has a fresh one under the next number: the old name is not used again.
func EraseSession(tx memory.Tx, session string) (Erased, error) {
	began, err := beganAt(tx, session)
	if err != nil {
		return Erased{}, fmt.Errorf("erase session %s: %w", session, err)
	}
	of, err := agent.EraseSession(tx, session)
	if err != nil {
		return Erased{}, err
	}
	return eraseTraces(tx, session, began, of)
}

// beganAt is when a session's first entry was written; zero when it has none.
func beganAt(tx memory.Tx, session string) (began time.Time, err error) {
	err = tx.Journal().Read(session, 0, func(line memory.Entry) error {
		began = line.At
		return memory.ErrStop
	})
	return began, err
}

// eraseTraces removes what this room keeps of a session that was just removed from the agent's.
func eraseTraces(tx memory.Tx, session string, began time.Time, of agent.Erased) (Erased, error) {
	removed := Erased{Erased: of}
	told, err := schedule.RemoveCards(tx, session)
	removed.Told = len(told)
	if err == nil {
		removed.Receipts, err = eraseReceipts(tx, append(told, removed.Cards...))
	}
	if err == nil {
		removed.Kept, err = eraseKept(tx, session)
	}
	if err == nil {
		// A letter does not say of which session of its conversation it is.
		removed.Letters, err = blankLetters(tx, func(l DeadLetter) bool { return l.Conversation == conversationOf(session) && !l.At.Before(began) })
	}
	if err == nil {
		err = leaveSession(tx, session)
	}
	if err == nil {
		err = memory.Gone(tx)
	}
	if err != nil {
		return Erased{}, fmt.Errorf("erase what is left of session %s: %w", session, err)
	}
	return removed, nil
}

// TableKept is where an adapter puts aside what nobody was there to see: conversation, a space and a name that is its own →
// a JSON object with the session that it is of.
const TableKept = "web_kept"

func eraseKept(tx memory.Tx, session string) (removed int, err error) {
	keys, err := memory.RemoveRows(tx.Table(TableKept), conversationOf(session)+" ", func(key string, data []byte) (bool, error) {
		var line struct{ Session string }
		if err := json.Unmarshal(data, &line); err != nil {
			return false, fmt.Errorf("read the line put aside as %s: %w", key, err)
		}
		return line.Session == session, nil
	})
	return len(keys), err
}

func eraseReceipts(tx memory.Tx, cards []string) (removed int, err error) {
	for _, card := range cards {
		keys, err := memory.RemoveRows(tx.Table(tableReceipts), receiptKey(agent.Reply{ID: card}), nil)
		if err != nil {
			return removed, err
		}
		removed += len(keys)
	}
	return removed, nil
}

// leaveSession gives a conversation whose present session was erased a fresh one.
func leaveSession(tx memory.Tx, session string) error {
	conversation := conversationOf(session)
	current, err := agent.SessionOf(tx, conversation)
	if err != nil || current != session || agent.WakeOwner(session) != "" {
		return err
	}
	names, _, err := sessionsOf(tx, conversation)
	if err != nil {
		return err
	}
	n := sessionNumber(session)
	if len(names) > 0 {
		n = max(n, sessionNumber(names[len(names)-1]))
	}
	return agent.SetSession(tx, conversation, fmt.Sprintf("%s~%d", conversation, n+1))
}

// conversationOf is the conversation that a session is one of.
func conversationOf(session string) string {
	conversation, _, _ := strings.Cut(session, "~")
	return conversation
}
