package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"nudge/agent"
	"nudge/memory"
)

// verdict makes the command that decides a card. Without an id it is the one card that waits for the person.
func verdict(v agent.Verdict) func(*Hub, context.Context, Event, string) (Admission, error) {
	return func(h *Hub, ctx context.Context, e Event, rest string) (Admission, error) {
		if ids, err := h.several(ctx, rest); err != nil || ids != nil {
			return h.decideAll(ctx, e, v, ids, err)
		}
		id, text := cutWord(rest)
		if v == agent.Approve && strings.EqualFold(id, onceAndAlways) {
			id, text = "", rest
		}
		waiting, known, err := h.waitingFor(ctx, e.From.ID, id)
		if err != nil {
			return 0, err
		}
		switch {
		case known:
		case len(waiting) == 1 && (id == "" || v != agent.Approve):
			id, text = waiting[0], rest
		case id == "" && len(waiting) == 0:
			return h.answer(ctx, e, agent.Fault, NothingWaits)
		case id == "":
			return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say which card: %s ID. %s lists those that wait.", h.word(e.Address, string(v)), h.word(e.Address, "approvals")))
		}
		if v == agent.AnswerIt && text == "" {
			return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say the answer too: %s %s your words.", h.word(e.Address, "answer"), id))
		}
		d := &agent.Decision{Card: id, Verdict: v, Text: text}
		word, names := cutWord(text)
		switch isAlways := strings.EqualFold(word, onceAndAlways); {
		case v == agent.Approve && isAlways:
			open, ok := opened(names)
			if !ok {
				approve := h.word(e.Address, "approve") + " " + id
				return h.answer(ctx, e, agent.Fault, fmt.Sprintf("After always comes nothing, or the word any and the names of what to leave open: %s always, or %s always any NAME. Nothing was decided.", approve, approve))
			}
			d.Verdict, d.Text, d.Open = agent.Always, "", open
		case v == agent.Approve && word != "":
			return h.answer(ctx, e, agent.Fault, notAll(word, h.word(e.Address, "approvals")))
		}
		return h.decide(ctx, e, d)
	}
}

// notAll is what is answered where not all that an approval names is a card.
func notAll(word, approvals string) string {
	return fmt.Sprintf("There is no card %.40q; %s is said of one card at a time. Nothing was decided. %s lists those that wait.", word, onceAndAlways, approvals)
}

// opened reads what stands behind "always": nothing, or "any" and the names of what is left open, with blanks or commas between.
func opened(words string) (names []string, ok bool) {
	if words == "" {
		return nil, true
	}
	word, rest := cutWord(words)
	names = strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	return names, strings.EqualFold(word, "any") && len(names) > 0
}

// several are the cards that words name, if they name more than one and nothing else.
func (h *Hub) several(ctx context.Context, words string) (ids []string, err error) {
	ids = strings.Fields(words)
	if len(ids) < 2 || len(ids) > mostAtOnce {
		return nil, nil
	}
	err = h.Store.View(ctx, func(tx memory.Tx) error {
		for _, id := range ids {
			if _, err := agent.FindCard(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, agent.ErrUnknownCard) {
		return nil, nil
	}
	return ids, err
}

// mostAtOnce is how many cards one command decides.
const mostAtOnce = 50

// decideAll takes the same decision about several cards, each as if it had been made alone.
func (h *Hub) decideAll(ctx context.Context, e Event, v agent.Verdict, ids []string, err error) (Admission, error) {
	if err != nil {
		return 0, err
	}
	if v == agent.AnswerIt {
		return h.answer(ctx, e, agent.Fault, "Questions are answered one at a time; nothing was decided.")
	}
	var keys []string
	for _, key := range e.Keys {
		keys = append(keys, key+"/")
	}
	admission, against, err := h.decideEach(ctx, e, v, ids, keys)
	if err != nil {
		return 0, err
	}
	told, err := h.tellDecider(ctx, e, batchTold(ids, against))
	if told == Taken {
		admission = Taken
	}
	return admission, err
}

// decide takes a decision about a card that was typed.
func (h *Hub) decide(ctx context.Context, e Event, d *agent.Decision) (Admission, error) {
	if isRequest(d.Card) {
		e.Click = d
		return h.decideRequest(ctx, e)
	}
	d, err := h.whole(ctx, d, false)
	if err != nil {
		return 0, err
	}
	return h.pass(ctx, e, agent.Message{Provenance: agent.Decided, Decision: d})
}

// onceAndAlways, behind a card's id, also lets the same call run from now on. Names behind it say which arguments may differ then.
const onceAndAlways = "always"

// waitingFor looks for a card by its id; when there is none, for the cards that a person may decide.
func (h *Hub) waitingFor(ctx context.Context, person agent.PersonID, id string) (waiting []string, known bool, err error) {
	err = h.Store.View(ctx, func(tx memory.Tx) (err error) {
		if known, err = isCard(tx, id); err != nil || known {
			return err
		}
		waiting, err = h.decidable(tx, person)
		return err
	})
	return waiting, known, err
}

// isCard reports whether there is, or may have been, a card of an id.
func isCard(tx memory.Tx, id string) (bool, error) {
	if isRequest(id) {
		return true, nil
	}
	if id == "" || len(id) > memory.MaxID {
		return false, nil
	}
	_, err := agent.FindCard(tx, id)
	if errors.Is(err, agent.ErrUnknownCard) {
		return false, nil
	}
	return err == nil, err
}

// decidable are the cards that a person may decide. That a turn may go on is meant only where nothing else waits.
func (h *Hub) decidable(tx memory.Tx, person agent.PersonID) (cards []string, err error) {
	var offers []string
	err = agent.WaitingCards(tx, func(w agent.WaitingCard) error {
		may, err := h.agent.MayDecide(tx, w, person)
		switch {
		case err != nil || !may:
		case w.Reply.IsContinuation():
			offers = append(offers, w.Reply.ID)
		default:
			cards = append(cards, w.Reply.ID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	own, err := Requests(tx, person, h.agent.Owns(person), "")
	for _, q := range own {
		cards = append(cards, q.ID)
	}
	if len(cards) == 0 {
		cards = offers
	}
	return cards, err
}

// edit decides a card with other arguments.
func (h *Hub) edit(ctx context.Context, e Event, rest string) (Admission, error) {
	id, arguments := cutWord(rest)
	if id == "" || arguments == "" {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say which card and its new arguments: %s ID {\"path\": \"…\"}.", h.word(e.Address, "edit")))
	}
	if !json.Valid([]byte(arguments)) {
		return h.answer(ctx, e, agent.Fault, "The arguments are not JSON, so nothing was decided. Write them as {\"name\": \"value\"}.")
	}
	return h.pass(ctx, e, agent.Message{
		Provenance: agent.Decided, Decision: &agent.Decision{Card: id, Verdict: agent.Edit, Arguments: json.RawMessage(arguments)},
	})
}
