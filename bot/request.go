package bot

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// request is a card of the hub's own: something that a person wants of the hub and that one other, or themselves, must agree
// to. No turn waits for it and no journal has it. Its first choice agrees, its second does not.
type request struct {
	ID   string       `json:"id"`
	Kind requestKind  `json:"kind"`
	Of   agent.Person `json:"of"`            // who wants it
	With agent.Person `json:"with,omitzero"` // whose other account it is about
	// Accounts are all that it is about, as its card says: of the one person, or of both. If they are others when it is decided
	// nothing is done.
	Accounts [][]agent.PersonID `json:"accounts,omitempty"`
	Asked    agent.PersonID     `json:"asked,omitempty"` // who alone may agree; "" for the owners
	About    string             `json:"about"`           // what it is, in the words of its outcome
	Text     string             `json:"text"`
	Choices  []string           `json:"choices"`
	Stands   []string           `json:"stands"` // the conversations in which it is shown
	At       time.Time          `json:"at"`
	Expires  time.Time          `json:"expires"`

	Decision agent.Verdict  `json:"decision,omitempty"` // approve or deny, once it is decided; withdrawn when it was asked anew
	By       agent.PersonID `json:"by,omitempty"`
	Decided  time.Time      `json:"decided,omitzero"`
}

type requestKind string

// The kinds, each with what is done when it was decided: see [Hub.carryOut].
const (
	toLink     requestKind = "link"      // who said a code is asked whether the two accounts shall be one person
	toLinkBack requestKind = "link_back" // and then who made it
	toForget   requestKind = "forget"
	toEnter    requestKind = "enter" // owners are asked about a stranger
)

// tableRequests keeps them by id. Those decided stay for a while, so that a late click gets a true answer.
const tableRequests memory.Rows[request] = "request"

const (
	requestPrefix = "q-"                // of their ids, which no card of the agent's has
	requestsFor   = 30 * 24 * time.Hour // for how long one is kept
	mostOver      = 10                  // requests of one person that are over and kept for a late click
)

func isRequest(card string) bool { return strings.HasPrefix(card, requestPrefix) }

// reply is the card in one of its conversations. The names in it are of people's own choosing.
func (q request) reply(address string) agent.Reply {
	who := string(q.Asked)
	if who == "" {
		who = "owners"
	}
	return agent.Reply{
		Kind: agent.Notice, ID: q.ID, Text: q.Text, Choices: q.Choices, Deadline: &q.Expires, MayDecide: []string{who}, Address: address, Session: address,
		Tainted: true,
	}
}

// waits reports whether it can still be decided.
func (q request) waits(now time.Time) bool { return q.Decision == "" && now.Before(q.Expires) }

// outcome is what became of it, on the clocks of a zone.
func (q request) outcome(tx memory.Tx, zone *time.Location) (string, error) {
	if q.Decision == "" {
		return fmt.Sprintf("This expired %s, so nothing was done.", localTime(q.Expires, zone)), nil
	}
	choice := q.Choices[1]
	switch q.Decision {
	case agent.Withdrawn:
		return fmt.Sprintf("This was asked anew %s; the newer card counts.", localTime(q.Decided, zone)), nil
	case agent.Approve:
		choice = q.Choices[0]
	}
	by, err := agent.NameOf(tx, q.By)
	return fmt.Sprintf("This was decided already: %s, by %s, %s.", choice, by, localTime(q.Decided, zone)), err
}

// notYours tells who may decide it.
func (q request) notYours(tx memory.Tx) (string, error) {
	who := "an owner"
	if q.Asked != "" {
		var err error
		if who, err = agent.NameOf(tx, q.Asked); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("This is not yours to decide: %s may.", who), nil
}

// verdict reads a decision as one about it; "" when it is neither choice.
func (q request) verdict(d agent.Decision) agent.Verdict {
	said := strings.TrimSpace(d.Text)
	switch {
	case d.Verdict == agent.Approve, d.Verdict == agent.AnswerIt && strings.EqualFold(said, q.Choices[0]):
		return agent.Approve
	case d.Verdict == agent.Deny, d.Verdict == agent.AnswerIt && strings.EqualFold(said, q.Choices[1]):
		return agent.Deny
	}
	return ""
}

// ask keeps a request and shows it in the given conversations. The oldest of the person's that are over make room for it.
func (q request) ask(tx memory.Tx, where ...string) error {
	if err := forgetOver(tx, q.Of.ID, q.At); err != nil {
		return err
	}
	q.ID, q.Stands = requestPrefix+strings.ToLower(rand.Text()[:16]), where
	q.At, q.Expires = q.At.UTC(), q.Expires.UTC()
	for _, address := range where {
		if err := agent.Send(tx, q.reply(address)); err != nil {
			return err
		}
	}
	return q.put(tx)
}

func (q request) put(tx memory.Tx) error { return tableRequests.Put(tx, q.ID, q) }

func loadRequest(tx memory.Tx, id string) (q request, found bool, err error) {
	if !isRequest(id) || len(id) > memory.MaxID {
		return q, false, nil
	}
	return tableRequests.Get(tx, id)
}

// requests gives those for which is holds, oldest first.
func requests(tx memory.Tx, is func(request) bool) (all []request, err error) {
	err = tableRequests.Scan(tx, "", func(_ string, q request) error {
		if is(q) {
			all = append(all, q)
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b request) int { return a.At.Compare(b.At) })
	return all, err
}

// mayBeDecidedBy reports whether a person may decide it, who may be an owner.
func (q request) mayBeDecidedBy(who agent.PersonID, owner bool) bool {
	return q.Asked == who || q.Asked == "" && owner
}

// Requests gives the hub's own cards that wait for a person's decision, who may be an owner, as they stand in a conversation.
// They are in no journal and not among [agent.WaitingCards].
func Requests(tx memory.Tx, of agent.PersonID, owner bool, address string) (cards []agent.Reply, err error) {
	now := time.Now()
	all, err := requests(tx, func(q request) bool { return q.waits(now) && q.mayBeDecidedBy(of, owner) })
	for _, q := range all {
		cards = append(cards, q.reply(address))
	}
	return cards, err
}

// weighRequest says what speaks against a click on a request; nil when nothing does.
func (h *Hub) weighRequest(tx memory.Tx, e Event) (*agent.Objection, error) {
	q, found, err := loadRequest(tx, e.Click.Card)
	text := ""
	switch {
	case err != nil:
		return nil, err
	case !found:
		text = "This was asked too long ago, so nothing was done."
	case !q.mayBeDecidedBy(e.From.ID, h.agent.Owns(e.From.ID)):
		text, err = q.notYours(tx)
	case !q.waits(e.at()):
		text, err = q.outcome(tx, zoneOf(e.From))
	case q.verdict(*e.Click) == "":
		return &agent.Objection{Text: fmt.Sprintf("Say %s or %s.", q.Choices[0], q.Choices[1])}, nil
	default:
		return nil, nil
	}
	return &agent.Objection{Text: text, Final: true}, err
}

// decideRequest takes a decision about a request. What it leads to is one transaction with it.
func (h *Hub) decideRequest(ctx context.Context, e Event) (Admission, error) {
	forgets := false
	admission, err := h.answerReply(ctx, e, func(tx memory.Tx) (agent.Reply, error) {
		against, err := h.weighRequest(tx, e)
		if err != nil {
			return agent.Reply{}, err
		}
		if against != nil {
			return agent.Reply{Kind: agent.Fault, ID: e.Click.Card, To: e.From.ID, Text: against.Text}, nil
		}
		q, _, err := loadRequest(tx, e.Click.Card)
		if err != nil {
			return agent.Reply{}, err
		}
		q.Decision, q.By, q.Decided = q.verdict(*e.Click), e.From.ID, e.at().UTC()
		if err := q.put(tx); err != nil {
			return agent.Reply{}, err
		}
		text, err := h.carryOut(tx, q)
		if err != nil {
			return agent.Reply{}, err
		}
		if err := q.mark(tx); err != nil {
			return agent.Reply{}, err
		}
		forgets = q.Kind == toForget && q.Decision == agent.Approve
		return e.alone(agent.Reply{Kind: agent.Notice, Text: text}), nil
	})
	if err == nil && forgets {
		h.Forget()
	}
	return admission, err
}

// mark shows on its card, wherever that stands, what became of it.
func (q request) mark(tx memory.Tx) error {
	for _, address := range q.Stands {
		mark := agent.Reply{Kind: agent.DecidedMark, ID: q.ID, Tool: q.About, Decision: q.Decision, By: string(q.By), At: &q.Decided, Address: address, Session: address, Tainted: true}
		if err := agent.Send(tx, mark); err != nil {
			return err
		}
	}
	return nil
}

// withdraw ends what somebody wants of the hub and nobody has decided yet, since they ask for it anew.
func withdraw(tx memory.Tx, kind requestKind, of agent.PersonID, now time.Time) error {
	old, err := requests(tx, func(q request) bool { return q.Kind == kind && q.Of.ID == of && q.waits(now) })
	for _, q := range old {
		if err != nil {
			break
		}
		q.Decision, q.By, q.Decided = agent.Withdrawn, of, now.UTC()
		if err = q.put(tx); err == nil {
			err = q.mark(tx)
		}
	}
	return err
}

// carryOut does what a decided request leads to, and says so to who decided.
func (h *Hub) carryOut(tx memory.Tx, q request) (text string, err error) {
	switch q.Kind {
	case toLink:
		return h.linkAgreed(tx, q)
	case toLinkBack:
		return h.linkDecided(tx, q)
	case toForget:
		return h.forgetDecided(tx, q)
	case toEnter:
		return h.strangerDecided(tx, q)
	}
	return "", fmt.Errorf("request %s wants %q, which this version does not know", q.ID, q.Kind)
}

// forgetOver forgets the oldest requests of a person that are over, but for the last of them: all are read whenever anybody looks
// at what waits, and one person must not make that slow for everybody.
func forgetOver(tx memory.Tx, of agent.PersonID, now time.Time) error {
	over, err := requests(tx, func(q request) bool { return q.Of.ID == of && !q.waits(now) })
	for _, q := range over[:max(0, len(over)-mostOver)] {
		if err == nil {
			err = q.remove(tx)
		}
	}
	return err
}

// remove forgets a request and where its card stands.
func (q request) remove(tx memory.Tx) error {
	err := tableRequests.Delete(tx, q.ID)
	for _, address := range q.Stands {
		if err == nil {
			err = tx.Table(tableReceipts).Delete(receiptKey(agent.Reply{ID: q.ID, Address: address}))
		}
	}
	return err
}

// sweepRequests forgets requests that are long over.
func sweepRequests(tx memory.Tx, before time.Time) error {
	old, err := requests(tx, func(q request) bool { return q.Expires.Before(before) })
	for _, q := range old {
		if err == nil {
			err = q.remove(tx)
		}
	}
	return err
}
