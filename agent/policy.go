package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"nudge/memory"
	"nudge/schedule"
)

// Policy says who must agree before a call runs.
type Policy string

// The policies, from the freest to the strictest.
const (
	PolicyNo     Policy = "no"     // nobody
	PolicyAsk    Policy = "ask"    // the turn's person
	PolicyOwner  Policy = "owner"  // an owner
	PolicySecond Policy = "second" // somebody else than the turn's person
)

// policy says who must agree to a call: what the config says of it, else what the tool does.
func (a *actor) policy(c *call, arguments json.RawMessage) (Policy, error) {
	return a.policyOf(c.tool, a.invocation(c, arguments))
}

func (ag *Agent) policyOf(tool *Tool, in Invocation) (Policy, error) {
	policy, err := ag.judgedPolicy(tool, in)
	if err != nil {
		return "", err
	}
	if policy == "" {
		policy = PolicyNo
	}
	if caution(tool, in) != "" || exposes(tool, in) {
		policy = stricter(policy, PolicyAsk)
	}
	return policy, nil
}

// judgedPolicy is what the config and the tool say of a call.
func (ag *Agent) judgedPolicy(tool *Tool, in Invocation) (Policy, error) {
	set, isSet := ag.Approve[tool.Name]
	if tool.Judge == nil {
		if isSet {
			return set, nil
		}
		return tool.Policy, nil
	}
	policy, as, err := tool.Judge(in)
	if err != nil {
		return "", err
	}
	if as != "" && as != tool.Name {
		if ofThis, ok := ag.Approve[as]; ok {
			return ofThis, nil
		}
	}
	if isSet {
		// What the tool says of this very call cannot be loosened by what the config says of all its calls.
		policy = stricter(policy, set)
	}
	return policy, nil
}

// stricter is the one of two policies that asks more.
func stricter(a, b Policy) Policy {
	order := []Policy{"", PolicyNo, PolicyAsk, PolicyOwner, PolicySecond}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

// deciders say who may decide about a card.
func (ag *Agent) deciders(k cardEntry) []string {
	switch k.Policy {
	case PolicyOwner:
		owners := make([]string, len(ag.Owners))
		for i, o := range ag.Owners {
			owners[i] = string(o)
		}
		if len(owners) == 0 {
			return []string{"an owner"}
		}
		return owners
	case PolicySecond:
		return []string{"anyone but " + string(k.Asked)}
	}
	return []string{string(k.Asked)}
}

// entitled reports whether a person may decide about a card under a policy, when asked is whose turn it is. Nobody is somebody
// else by another account that is linked to theirs, or was lately.
func (ag *Agent) entitled(tx memory.Tx, asked PersonID, policy Policy, by PersonID) (bool, error) {
	switch policy {
	case PolicyOwner:
		return ag.owns(by), nil
	case PolicySecond:
		if by == "" || by == asked {
			return false, nil
		}
		same, err := schedule.SamePerson(tx, string(asked), string(by), now())
		return !same && err == nil, err
	}
	return by == asked, nil
}

// entitledNow is entitled outside of transactions.
func (ag *Agent) entitledNow(asked PersonID, policy Policy, by PersonID) (may bool, err error) {
	err = ag.Store.View(context.Background(), func(tx memory.Tx) error {
		may, err = ag.entitled(tx, asked, policy, by)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look whether %s may decide: %w", by, err)
	}
	return may, nil
}

// MayDecide reports whether a person may decide about a card that waits.
func (ag *Agent) MayDecide(tx memory.Tx, w WaitingCard, by PersonID) (bool, error) {
	return ag.entitled(tx, w.Person, w.Policy, by)
}

// strictestOf is the policy by which a call of a card is decided and run: that by which it was asked, or a stricter one that
// the config, the tool or the taint has brought since.
func (ag *Agent) strictestOf(k cardEntry, tool *Tool, in Invocation) (Policy, error) {
	policy, err := ag.policyOf(tool, in)
	return stricter(k.Policy, policy), err
}

// stillMay refuses a call when who approved it might not do so any more.
func (ag *Agent) stillMay(k *card, tool *Tool, in Invocation) error {
	policy, err := ag.strictestOf(k.cardEntry, tool, in)
	if err != nil {
		return fmt.Errorf("not run: %w", err)
	}
	may, err := ag.entitledNow(k.Asked, policy, k.by.ID)
	if err == nil && !may {
		err = errors.New("not run: who must agree to it has changed since it was approved; ask anew")
	}
	return err
}
