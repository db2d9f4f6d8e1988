package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

func (h *Hub) approvals(ctx context.Context, e Event, rest string) (Admission, error) {
	if word, id := cutWord(rest); strings.EqualFold(word, "revoke") {
		return h.revoke(ctx, e, id)
	}
	return h.answerReply(ctx, e, func(tx memory.Tx) (agent.Reply, error) {
		var lines []string
		slash := h.slash(e.Address)
		elsewhere := 0 // cards that are not shown, since others read along
		err := agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			may, err := h.agent.MayDecide(tx, w, e.From.ID)
			switch {
			case err != nil:
				return err
			case w.Person != e.From.ID && !may:
			case w.Conversation != e.Address && !agent.Direct(e.Address):
				elsewhere++
			default:
				lines = append(lines, CardText(Hide(w.Reply, h.Secrets), slash))
			}
			return nil
		})
		if err != nil {
			return agent.Reply{}, err
		}
		own, err := Requests(tx, e.From.ID, h.agent.Owns(e.From.ID), e.Address)
		if err != nil {
			return agent.Reply{}, err
		}
		for _, q := range own {
			if agent.Direct(e.Address) {
				lines = append(lines, CardText(q, slash))
			} else {
				elsewhere++
			}
		}
		if elsewhere > 0 {
			lines = append(lines, fmt.Sprintf("Waiting elsewhere: %s. Ask me in direct messages which.", schedule.Counted(elsewhere, "card")))
		}
		if lines == nil {
			lines = []string{NothingWaits}
		}
		rules, err := h.alwaysAllowed(tx, e)
		if rules != "" {
			lines = append(lines, rules)
		}
		// As on the cards themselves, no platform is to make links of what the calls would do.
		return agent.Reply{Kind: agent.Notice, Text: strings.Join(lines, "\n\n"), Tainted: true}, err
	})
}

// alwaysAllowed says what a person always allows. Where others read along it says only how much that is.
func (h *Hub) alwaysAllowed(tx memory.Tx, e Event) (string, error) {
	rules, err := agent.Rules(tx, e.From.ID, time.Now())
	if err != nil || len(rules) == 0 {
		return "", err
	}
	if !agent.Direct(e.Address) {
		return fmt.Sprintf("You always allow %s. Ask me in direct messages which.", schedule.Counted(len(rules), "call")), nil
	}
	lines := []string{"You always allow, in direct messages:"}
	for _, rule := range rules {
		lines = append(lines, RuleText(rule))
	}
	return strings.Join(append(lines, h.word(e.Address, "approvals revoke ID")+" ends one of these."), "\n"), nil
}

// revoke ends one of a person's rules, or all of them.
func (h *Hub) revoke(ctx context.Context, e Event, id string) (Admission, error) {
	if id == "" {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say which: %s. %s lists them.", h.word(e.Address, "approvals revoke ID"), h.word(e.Address, "approvals")))
	}
	which := id
	if strings.EqualFold(id, "all") {
		which = ""
	}
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		ended, err := agent.RevokeRules(tx, e.From.ID, which)
		if ended == 0 {
			return agent.Fault, fmt.Sprintf("You have no such rule. %s lists those that you have.", h.word(e.Address, "approvals")), err
		}
		return agent.Notice, fmt.Sprintf("Revoked: %s. I ask again from now on.", schedule.Counted(ended, "rule")), err
	})
}
