package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nudge/memory"
)

// Objection is what speaks against a decision about a card.
type Objection struct {
	Text string // for the person
	// Fields is what does not fit of edited arguments, by the property at the top of the arguments that it is about. It may
	// have less than Text.
	Fields map[string]string
	// Final is true when no other arguments would help.
	Final bool
}

func final(text string) *Objection { return &Objection{Text: text, Final: true} }

// Weigh says what speaks against a decision of a person's; nil when nothing does. It is for forms, whose faults are shown in
// place: nothing is decided, and until the decision is received another one may come before it. An edit without arguments
// asks whether the card can be edited at all.
func (ag *Agent) Weigh(ctx context.Context, by Person, d Decision) (*Objection, error) {
	var w WaitingCard
	var in Invocation
	var against *Objection
	waiting := false
	err := ag.Store.View(ctx, func(tx memory.Tx) (err error) {
		if w, waiting, err = waitingCard(tx, d.Card); err != nil {
			return err
		}
		if !waiting {
			settled, err := settledCard(tx, d.Card, by.Zone)
			against = final(settled)
			return err
		}
		if against, err = ag.barred(tx, w, by); err != nil || against != nil {
			return err
		}
		in = Invocation{
			Session: w.Reply.Session, Turn: w.Reply.Turn, Address: w.Conversation, Progress: func(string) {}, Given: func(string) bool { return false },
			Tainted: ag.taints(w.Origin, w.Person), origin: w.Origin,
		}
		_, in.Person, err = Home(tx, w.Person)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("weigh a decision about card %s: %w", d.Card, err)
	}
	switch {
	case against != nil:
		return against, nil
	case d.Verdict == Edit:
		return ag.weighEdit(w, in, by, d.Arguments), nil
	case d.Verdict == Always && w.Reply.Always == nil:
		return final("This can be approved once, and not always; nothing was decided."), nil
	case d.Verdict == Always:
		if _, fault := chosen(w.Reply.Open, d.Open); fault != "" {
			return &Objection{Text: fault}, nil
		}
	}
	return nil, nil
}

// barred says why a person can decide nothing about a card that waits; nil when they can.
func (ag *Agent) barred(tx memory.Tx, w WaitingCard, by Person) (*Objection, error) {
	ends := w.Reply.Expires
	if ends == nil {
		ends = w.Reply.Deadline
	}
	switch {
	case ends != nil && !now().Before(*ends):
		return final(fmt.Sprintf("It expired at %s, which counts as denied.", local(*ends, by.Zone))), nil
	}
	may, err := ag.MayDecide(tx, w, by.ID)
	if err != nil || may {
		return nil, err
	}
	text, err := ag.notYours(tx, cardEntry{Policy: w.Policy, Asked: w.Person})
	return final(text), err
}

// notYours tells who may decide about a card, by the names that people know.
func (ag *Agent) notYours(tx memory.Tx, k cardEntry) (string, error) {
	people := []PersonID{k.Asked}
	if k.Policy == PolicyOwner {
		people = ag.Owners
	}
	var names []string
	for _, id := range people {
		name, err := NameOf(tx, id)
		if err != nil {
			return "", err
		}
		names = append(names, name)
	}
	who := strings.Join(names, " or ")
	switch {
	case who == "":
		who = "an owner"
	case k.Policy == PolicySecond:
		who = "anyone but " + who
	}
	return fmt.Sprintf("This is not yours to decide: %s may.", who), nil
}

// weighEdit is weigh for other arguments.
func (ag *Agent) weighEdit(w WaitingCard, in Invocation, by Person, arguments json.RawMessage) *Objection {
	tool := ag.box().named[w.Reply.Tool]
	switch {
	case w.Reply.Kind != Approval:
		return final("There is nothing here to edit.")
	case tool == nil:
		return final(toolGone(w.Reply.Tool))
	case w.Reply.Parked:
		return final(parkedEdit)
	case len(arguments) == 0:
		return nil
	}
	checked, err := tool.schema.Check(string(arguments))
	if unfit, ok := errors.AsType[*UnfitError](err); ok {
		return &Objection{Text: unfit.Error(), Fields: unfit.Fields}
	}
	if err != nil {
		return &Objection{Text: err.Error()}
	}
	in.Arguments = checked
	policy, err := ag.policyOf(tool.Tool, in)
	if err != nil {
		return &Objection{Text: "This cannot be run: " + err.Error()}
	}
	if may, err := ag.entitledNow(w.Person, policy, by.ID); err != nil || policy != PolicyNo && !may {
		return &Objection{Text: "With these arguments it is not yours to decide."}
	}
	return nil
}

const parkedEdit = "A parked call can be approved or denied, not edited."

func toolGone(tool string) string {
	return "The tool " + tool + " is no longer there, so this cannot be edited."
}

// settledCard is what became of a card that waits no more, in words.
func settledCard(tx memory.Tx, id, zone string) (string, error) {
	session, err := FindCard(tx, id)
	if errors.Is(err, ErrUnknownCard) {
		return "I do not know that card.", nil
	}
	if err != nil {
		return "", err
	}
	k, err := oldCard(tx, session, id)
	if err != nil || k == nil {
		return "I do not know that card.", err
	}
	return k.outcome(zone), nil
}

// CardStands reports whether a card, waiting or decided, was shown in a conversation.
func (ag *Agent) CardStands(ctx context.Context, id, conversation string) (stands bool, err error) {
	err = ag.Store.View(ctx, func(tx memory.Tx) error {
		stands = false
		w, waiting, err := waitingCard(tx, id)
		k := cardEntry{Address: w.Conversation, Policy: w.Policy, Asked: w.Person}
		if err != nil {
			return err
		}
		if !waiting {
			session, err := FindCard(tx, id)
			if err != nil {
				return err
			}
			old, err := oldCard(tx, session, id)
			if err != nil || old == nil {
				return err
			}
			k = old.cardEntry
		}
		stands = slices.Contains(ag.showAt(k), conversation)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look where card %s stands: %w", id, err)
	}
	return stands, nil
}

// Schema is the JSON Schema of a tool's arguments; nil when there is no such tool any more.
func (ag *Agent) Schema(tool string) json.RawMessage {
	if t := ag.box().named[tool]; t != nil {
		return t.Schema
	}
	return nil
}

// waitingCard gives the row of a card that awaits a decision.
func waitingCard(tx memory.Tx, id string) (w WaitingCard, waiting bool, err error) {
	if id == "" || len(id) > memory.MaxID {
		return w, false, nil
	}
	data, found, err := tx.Table(tableWaiting).Get(id)
	if err != nil || !found {
		return w, false, err
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return w, false, fmt.Errorf("read the waiting card %s: %w", id, err)
	}
	w.Reply.Address = w.Conversation
	return w, true, nil
}

// UnfitError says that arguments do not fit a schema.
type UnfitError struct {
	Text string
	// Fields are the faults by the property at the top of the arguments that they are about. Faults of the whole are not
	// among them.
	Fields map[string]string
}

// Error is one sentence that names every fault.
func (e *UnfitError) Error() string { return e.Text }
