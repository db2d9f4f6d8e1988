package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"nudge/agent"
	"nudge/memory"
)

// BatchText is what a card says of the calls that can be decided with it, each on a line of its own; "" where there are none.
func BatchText(r agent.Reply) string {
	var lines []string
	for i, call := range r.Calls {
		lines = append(lines, fmt.Sprintf("%d) %s", i+1, callLine(call.Arguments)))
		if call.Text != "" {
			lines = append(lines, "   "+strings.ReplaceAll(Visible(call.Text), "\n", "\n   "))
		}
	}
	if words := mixedIn(r.Calls); words != nil {
		lines = append(lines, careful(words))
	}
	return strings.Join(lines, "\n")
}

// BatchHead stands before [BatchText].
func BatchHead(r agent.Reply) string { return fmt.Sprintf("All %d of these at once:", len(r.Batch)) }

// BatchWords are what the buttons are called with which all cards of a batch are decided.
func BatchWords(r agent.Reply) (approve, deny string) {
	approve, deny = ButtonWords(r)
	all := fmt.Sprintf(" all %d", len(r.Batch))
	return approve + all, deny + all
}

// callLine is a call's arguments on a line, with nothing hidden in them.
func callLine(arguments json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, arguments) != nil {
		return strings.ReplaceAll(Visible(string(arguments)), "\n", `\u{A}`)
	}
	return Visible(b.String())
}

func mixedIn(calls []agent.BatchCall) (words []string) {
	for _, call := range calls {
		words = append(words, mixed(call.Arguments)...)
	}
	return words
}

// decideBatch takes one decision about all cards of a batch, by a button of the last of them. A second press of it decides
// nothing.
func (h *Hub) decideBatch(ctx context.Context, e Event) (Admission, error) {
	last, waiting, err := h.Card(ctx, e.Click.Card)
	if err != nil {
		return 0, err
	}
	ids := last.Batch
	switch {
	case e.Click.Verdict != agent.Approve && e.Click.Verdict != agent.Deny, waiting && len(ids) == 0:
		return h.aside(ctx, e, e.Click.Card, "These cannot be decided at once, so nothing was done.")
	case !waiting:
		ids = []string{e.Click.Card} // what became of it is told; it is not known any more which the others are
	}
	pressed := fmt.Sprintf("batch/%s/%s/%s/", e.Click.Card, e.Click.Verdict, e.From.ID)
	admission, against, err := h.decideEach(ctx, e, e.Click.Verdict, ids, []string{pressed})
	if err != nil {
		return 0, err
	}
	text := batchTold(ids, against)
	if !waiting && text != "" {
		text += " If others of these still wait, decide each on its own card."
	}
	told, err := h.tellDecider(ctx, e, text)
	if told == Taken {
		admission = Taken
	}
	return admission, err
}

// decideEach takes the same decision about several cards, each as if it had been made alone and under keys of its own: those
// given, with its id. It gives, by card, what speaks against it where it was not taken.
func (h *Hub) decideEach(ctx context.Context, e Event, v agent.Verdict, ids, keys []string) (all Admission, against map[string]string, err error) {
	all, against = Repeat, map[string]string{}
	for _, id := range ids {
		d := agent.Decision{Card: id, Verdict: v}
		objection, err := h.agent.Weigh(ctx, e.From, d)
		if err != nil {
			return 0, nil, err
		}
		if objection != nil {
			against[id] = objection.Text
			continue
		}
		one := e
		one.Click, one.Keys = nil, nil
		for _, key := range keys {
			one.Keys = append(one.Keys, key+id)
		}
		admission, err := h.decide(ctx, one, &d)
		if err != nil {
			return 0, nil, err // what was decided is known again when the event comes once more
		}
		if admission == Taken {
			all = Taken
		}
	}
	return all, against, nil
}

// batchTold says why some of several cards were not decided; "" when all were. What they ask for stands on them.
func batchTold(ids []string, against map[string]string) string {
	var reasons []string
	times := map[string]int{}
	for _, id := range ids {
		why, refused := against[id]
		if !refused {
			continue
		}
		if times[why]++; times[why] == 1 {
			reasons = append(reasons, why)
		}
	}
	if len(reasons) == 1 && len(against) == len(ids) {
		return reasons[0]
	}
	for i, why := range reasons {
		reasons[i] = fmt.Sprintf("%d of the %d: %s", times[why], len(ids), why)
	}
	return strings.Join(reasons, "\n")
}

// tellDecider tells whoever decided several cards, and nobody else, what could not be; "" tells nothing. Either way the event
// is known from then on.
func (h *Hub) tellDecider(ctx context.Context, e Event, text string) (Admission, error) {
	if text == "" {
		return h.admitOnce(ctx, e, func(memory.Tx) error { return nil })
	}
	return h.answerReply(ctx, e, func(memory.Tx) (agent.Reply, error) {
		return agent.Reply{Kind: agent.Notice, To: e.From.ID, Text: text}, nil
	})
}
