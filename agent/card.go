package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent/compact"
	"nudge/memory"
)

// digest stands for one exact call: an approval is bound to it.
func (a *actor) digest(tool *Tool, in Invocation) string {
	depends := ""
	if tool.Digest != nil {
		depends = tool.Digest(in)
	}
	return digestOf(in.Session, in.Turn, in.Call, tool.Name, string(in.Arguments), depends)
}

// askCard asks a person about a call. The turn waits if it is the turn's own person who decides; otherwise the call
// is parked: it is answered now, and run if and when somebody agrees.
func (a *actor) askCard(c *call, policy Policy, question bool) error {
	return a.askWith(c, policy, question, c.arguments)
}

func (a *actor) askWith(c *call, policy Policy, question bool, arguments json.RawMessage) error {
	t := a.state.turn
	in := a.invocation(c, arguments)
	k := cardEntry{
		Turn: t.id, Run: t.run, Card: newID(""), Call: c.ID, Tool: c.Name, Arguments: arguments, Digest: a.digest(c.tool, in),
		Policy: policy, Asked: t.person.ID, Question: question, Wake: t.wake, Address: t.address,
		Expires: now().Add(a.Limits.Approval), Origin: in.origin, Why: a.why(c.tool, in),
	}
	if question {
		k.Expires = now().Add(a.Limits.Question)
	}
	k.Parked = !question && (t.provenance == Heartbeat || policy == PolicySecond || policy == PolicyOwner && !a.owns(t.person.ID))
	if k.Parked {
		switch waiting, err := a.parkedFor(t.person.ID); {
		case err != nil:
			return err
		case waiting >= mostParked:
			return a.answer(c, fmt.Sprintf("not run: %d calls of this person's wait for others to decide, which is the most; it can be asked for again when some are decided", waiting), true)
		}
	}
	a.offersRule(&k, c.tool, in)
	if err := a.add(k); err != nil {
		return err
	}
	if err := a.show(k, c.tool, in); err != nil {
		return err
	}
	if !k.Parked {
		return nil
	}
	return a.answer(c, fmt.Sprintf("waiting for %s, id %s: it is run if and when that is approved; go on without it and do not ask for it again", strings.Join(a.deciders(k), " or "), k.Card), false)
}

// mostParked is how many calls of one person wait for others to decide, but for those of the batch that reaches it: whoever looks
// at what waits reads them all.
const mostParked = 100

// parkedFor is how many calls of a person wait for others to decide.
func (ag *Agent) parkedFor(person PersonID) (waiting int, err error) {
	err = ag.Store.View(context.Background(), func(tx memory.Tx) error {
		waiting = 0
		return tx.Table(tableWaiting).Scan("", func(id string, data []byte) error {
			var w struct {
				Person PersonID `json:"person"`
				Reply  struct {
					Parked bool `json:"parked"`
				} `json:"reply"`
			}
			if err := json.Unmarshal(data, &w); err != nil {
				return fmt.Errorf("read the waiting card %s: %w", id, err)
			}
			if w.Person == person && w.Reply.Parked {
				waiting++
			}
			return nil
		})
	})
	return waiting, err
}

// show puts a card into the outbox, and where it can be found again: by its id, and among those that wait.
func (a *actor) show(k cardEntry, tool *Tool, in Invocation) error {
	reply := Reply{
		Kind: Approval, Session: a.session, Turn: k.Turn, Run: k.Run, ID: k.Card, Address: k.Address,
		Tool: k.Tool, Arguments: k.Arguments, MayDecide: a.deciders(k), Expires: &k.Expires,
		Parked: k.Parked, Always: k.always(), Open: k.Open, Why: k.Why,
	}
	if tool.Card != nil {
		reply.Text = tool.Card(in)
	}
	if k.Question {
		var q questionArguments
		if err := in.Decode(&q); err != nil {
			return fmt.Errorf("read a question: %w", err)
		}
		reply = Reply{
			Kind: Ask, Session: a.session, Turn: k.Turn, Run: k.Run, ID: k.Card, Address: k.Address,
			Text: q.Question, Choices: q.Choices, Deadline: &k.Expires, Tainted: in.Tainted,
		}
	}
	return a.register(k, reply)
}

// always is until when the rule would hold that can be saved with a card; nil when none can be.
func (k cardEntry) always() *time.Time {
	if k.Rule == "" {
		return nil
	}
	return &k.Until
}

// register puts a card's reply into the outbox, and the card where it can be found again.
func (a *actor) register(k cardEntry, reply Reply) error {
	if reply.Kind == Approval {
		a.shown = append(a.shown, &reply)
	}
	addresses, asked := a.showAt(k), now()
	a.also(func(tx memory.Tx) error {
		data, err := plainJSON(reply) // once it is known which others go out with it
		if err != nil {
			return err
		}
		waiting, err := plainJSON(WaitingCard{Reply: reply, Conversation: k.Address, Person: k.Asked, Policy: k.Policy, Asked: asked, Origin: k.Origin})
		if err != nil {
			return err
		}
		if err := tx.Table(tableCards).Put(k.Card, []byte(a.session)); err != nil {
			return err
		}
		if err := tx.Table(tableWaiting).Put(k.Card, waiting); err != nil {
			return err
		}
		expiry := memory.DueRow{Key: timerKey(k.Card), At: k.Expires, Data: []byte(a.session)}
		if err := tx.Due().Put(expiry); err != nil {
			return err
		}
		for _, address := range addresses {
			if _, err := tx.Outbox().Put(address, data); err != nil {
				return err
			}
		}
		return nil
	})
	a.then(a.Outgoing, a.Rescheduled)
	return nil
}

// gather lets the last of several like cards of a batch, which are yet to be shown, decide all of them. Alike are those that
// the same people decide, and that differ in their calls alone.
func (a *actor) gather() {
	like := map[string][]*Reply{}
	for _, reply := range a.shown {
		key := digestOf(append([]string{reply.Tool, reply.Why}, reply.MayDecide...)...)
		like[key] = append(like[key], reply)
	}
	for _, cards := range like {
		cards[len(cards)-1].together(cards)
	}
	a.shown = nil
}

// showAt are the conversations where a card stands: where the conversation is, and for a card of owners also with
// each of them.
func (ag *Agent) showAt(k cardEntry) []string {
	addresses := []string{k.Address}
	if k.Policy != PolicyOwner {
		return addresses
	}
	owners := ag.Owners
	if len(owners) == 0 {
		owners = []PersonID{"web:me"}
	}
	for _, owner := range owners {
		if home := owner.Home(); !slices.Contains(addresses, home) && k.Asked != owner {
			addresses = append(addresses, home)
		}
	}
	return addresses
}

// WaitingCard is a card that awaits a decision.
type WaitingCard struct {
	Reply        Reply     `json:"reply"`
	Conversation string    `json:"conversation"`
	Person       PersonID  `json:"person"` // whose turn asked
	Policy       Policy    `json:"policy"`
	Asked        time.Time `json:"asked"`
	// Origin is what the model had before it when it asked for the call.
	Origin compact.Origin `json:"origin,omitzero"`
}

// WaitingCards calls fn for each card that awaits a decision, in the order in which they were asked.
func WaitingCards(tx memory.Tx, fn func(WaitingCard) error) error {
	var cards []WaitingCard
	err := tx.Table(tableWaiting).Scan("", func(_ string, data []byte) error {
		var w WaitingCard
		if err := json.Unmarshal(data, &w); err != nil {
			return fmt.Errorf("read a waiting card: %w", err)
		}
		w.Reply.Address = w.Conversation
		cards = append(cards, w)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(cards, func(a, b WaitingCard) int { return a.Asked.Compare(b.Asked) })
	for _, w := range cards {
		if err := fn(w); err != nil {
			return err
		}
	}
	return nil
}

// WaitingCardOf gives the card with an id, if it awaits a decision.
func WaitingCardOf(tx memory.Tx, id string) (Reply, bool, error) {
	w, waiting, err := waitingCard(tx, id)
	return w.Reply, waiting, err
}

// FindCard is the session that a card belongs to. A card that was never asked gives ErrUnknownCard.
func FindCard(tx memory.Tx, card string) (string, error) {
	if card == "" || len(card) > memory.MaxID {
		return "", fmt.Errorf("card %.20q: %w", card, ErrUnknownCard)
	}
	session, found, err := tx.Table(tableCards).Get(card)
	if err == nil && !found {
		err = fmt.Errorf("card %q: %w", card, ErrUnknownCard)
	}
	return string(session), err
}

// TimerPrefix begins the keys of the due rows that are the agent's: cards that expire.
const TimerPrefix = "timer/"

func timerKey(card string) string { return TimerPrefix + "card/" + card }

// Expired puts the news that a due row of the agent's fell due into its session's inbox, in the transaction that
// takes the row out. It returns that session, for [Agent.Look] once that is on disk.
func Expired(tx memory.Tx, row memory.DueRow) (session string, err error) {
	data, err := json.Marshal(Message{
		Provenance: Timer, At: row.At, Decision: &Decision{Card: strings.TrimPrefix(row.Key, timerKey("")), Verdict: Expire},
	})
	if err != nil {
		return "", err
	}
	session = string(row.Data)
	_, err = tx.Inbox().Put(session, data)
	return session, err
}
