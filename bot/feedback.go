package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// Feedback is what a person says of a notify card, with one of its buttons. Adapters that have buttons put it into an
// [Event]; elsewhere people say it with commands.
type Feedback struct {
	Card string // the ID of the [agent.Notify]
	Said schedule.Feedback
	Span schedule.Span // of a snooze
}

// spanWords are the spans as a menu names them.
var spanWords = map[schedule.Span]string{
	schedule.AnHour: "for an hour", schedule.FourHours: "for 4 hours", schedule.TillTomorrow: "until tomorrow, 09:00",
}

// SpanWords names a span, as an entry of a menu under the word "Snooze".
func SpanWords(span schedule.Span) string { return spanWords[span] }

// FeedbackHint says by which commands a person tells what they make of a notify card, for places without buttons. slash is
// what stands before a command there. Of a digest, which tells of several, they are about what was told last.
func FeedbackHint(r agent.Reply, slash string) string {
	commands := []string{strings.TrimSpace("useful " + r.Heartbeat), strings.TrimSpace("less " + r.Heartbeat), "snooze 1h|4h|tomorrow"}
	if !r.TakesLess() {
		commands = slices.Delete(commands, 1, 2)
	}
	return slash + strings.Join(commands, "   "+slash)
}

// feedback takes a button of a notify card: it is carried out, and the card settled, in one transaction with the mark
// that it was heard. Where cards cannot be changed, the answer is a notice.
func (h *Hub) feedback(ctx context.Context, e Event) (Admission, error) {
	f := *e.Feedback
	reply := func(tx memory.Tx, e Event) (agent.Reply, error) {
		card, err := h.takeFeedback(tx, e, f)
		if err != nil {
			return h.feedbackFault(e, err)
		}
		if h.edits(card.Address) {
			return FeedbackMark(card), nil
		}
		return agent.Reply{Kind: agent.Notice, ID: card.ID, Text: card.Answer}, nil
	}
	return h.feedbackAnswer(ctx, e, reply)
}

// takeFeedback carries feedback out and keeps with the card what that changes.
func (h *Hub) takeFeedback(tx memory.Tx, e Event, f Feedback) (schedule.Card, error) {
	j, err := schedule.Judge(tx, f.Card, string(e.From.ID), f.Said, f.Span, e.at(), zoneOf(e.From))
	if err != nil || j.Again && j.Card.Answer != "" {
		return j.Card, err
	}
	j.Card.Answer = h.changes(j, e)
	return j.Card, schedule.KeepAnswer(tx, j.Card, j.Card.Answer)
}

// sweepReceipts forgets where notify cards stand that cannot be judged any more.
func sweepReceipts(tx memory.Tx) error {
	_, err := memory.RemoveRows(tx.Table(tableReceipts), schedule.CardPrefix, func(key string, _ []byte) (bool, error) {
		id, _, _ := strings.Cut(key, " ")
		_, found, err := schedule.LoadCard(tx, id)
		return !found, err
	})
	return err
}

// judgeBy makes the command that says something of what a heartbeat told last.
func judgeBy(said schedule.Feedback) func(*Hub, context.Context, Event, string) (Admission, error) {
	return func(h *Hub, ctx context.Context, e Event, name string) (Admission, error) {
		return h.feedbackAnswer(ctx, e, func(tx memory.Tx, e Event) (agent.Reply, error) {
			card, found, err := schedule.LastCard(tx, string(e.From.ID), name)
			switch {
			case err != nil:
				return agent.Reply{}, err
			case !found && name == "":
				return agent.Reply{Kind: agent.Fault, Text: "No heartbeat has told you anything yet."}, nil
			case !found:
				return agent.Reply{Kind: agent.Fault, Text: fmt.Sprintf("No heartbeat %q has told you anything. %s lists yours.", name, h.word(e.Address, "heartbeats"))}, nil
			}
			if card, err = ownCard(tx, card, name); err != nil {
				return agent.Reply{}, err
			}
			card, err = h.takeFeedback(tx, e, Feedback{Card: card.ID, Said: said})
			switch {
			case errors.Is(err, schedule.ErrOnce):
				return agent.Reply{Kind: agent.Fault, Text: comesOnce}, nil
			case err != nil:
				return agent.Reply{}, err
			}
			if card.Address != "" && h.edits(card.Address) {
				if err := agent.Send(tx, FeedbackMark(card)); err != nil {
					return agent.Reply{}, err
				}
			}
			return agent.Reply{Kind: agent.Notice, Text: card.Answer}, nil
		})
	}
}

// ownCard is a card of one heartbeat alone, where the last that told of it was a digest of several: it stands nowhere, and what the
// person makes of the others does not change.
func ownCard(tx memory.Tx, card schedule.Card, heartbeat string) (schedule.Card, error) {
	if heartbeat == "" || len(card.Digest) < 2 {
		return card, nil
	}
	return schedule.AddCard(tx, schedule.Card{Person: card.Person, Heartbeat: heartbeat, Session: card.Session, Tick: card.Tick, Told: card.Told})
}

// comesOnce answers who asks for less of what does not come again.
const comesOnce = "Nothing was done: it comes but once, so that there can be no less of it."

// feedbackAnswer answers in one transaction with what fn changes, and lets the clock look at that. fn gets the event with
// the person's zone, as far as it was ever known.
func (h *Hub) feedbackAnswer(ctx context.Context, e Event, fn func(tx memory.Tx, e Event) (agent.Reply, error)) (Admission, error) {
	admission, err := h.answerReply(ctx, e, func(tx memory.Tx) (agent.Reply, error) {
		if e.From.Zone == "" {
			_, known, err := agent.Home(tx, e.From.ID)
			if err != nil {
				return agent.Reply{}, err
			}
			e.From.Zone = known.Zone
		}
		r, err := fn(tx, e)
		if r.Address == "" {
			r = e.alone(r)
		}
		return r, err
	})
	if err == nil && h.Rescheduled != nil {
		h.Rescheduled()
	}
	return admission, err
}

// feedbackFault answers who cannot judge a card, where nobody else sees it. In somebody else's direct conversation there
// is no such place.
func (h *Hub) feedbackFault(e Event, err error) (agent.Reply, error) {
	r := agent.Reply{Kind: agent.Fault, ID: e.Feedback.Card, To: e.From.ID}
	switch {
	case errors.Is(err, schedule.ErrNotYours):
		r.Text = "This is not yours to decide: it was said to somebody else, and only they can say what they make of it."
		if agent.Direct(e.Address) && !isOwn(e.From.ID, e.Address) {
			r.Address = e.From.ID.Home()
		}
	case errors.Is(err, schedule.ErrNoCard):
		r.Text = fmt.Sprintf("This message is too old, or was erased, so nothing was done. %s still works.", h.word(e.Address, "snooze"))
	case errors.Is(err, schedule.ErrOnce):
		r.Text = comesOnce
	case errors.Is(err, schedule.ErrSpan), errors.Is(err, schedule.ErrFeedback):
		r.Text = "Nothing was done: " + err.Error() + "."
	default:
		return r, err
	}
	return r, nil
}

// edits reports whether what stands in a conversation can be changed.
func (h *Hub) edits(address string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	adapter := h.serves(address)
	return adapter != nil && adapter.Abilities().Edits
}

// at is when an event happened, as far as that is known.
func (e Event) at() time.Time {
	if e.At.IsZero() {
		return time.Now()
	}
	return e.At
}

// FeedbackMark is the mark that settles a notify card whose person has said what they make of it.
func FeedbackMark(c schedule.Card) agent.Reply {
	at := c.SaidAt
	return agent.Reply{
		Kind: agent.DecidedMark, ID: c.ID, Heartbeat: c.Heartbeat, Decision: agent.Verdict(c.Said), By: c.Person, At: &at,
		Text: c.Answer, Told: c.Text, Tainted: c.Outside, Session: c.Session, Address: c.Address,
	}
}

// changes says what feedback changes, and how that is taken back.
func (h *Hub) changes(j schedule.Judged, e Event) string {
	c, zone := j.Card, zoneOf(e.From)
	address := cmp.Or(c.Address, e.Address)
	var said []string
	switch c.Said {
	case schedule.Snooze:
		said = []string{
			fmt.Sprintf("Snoozed until %s: nothing is said to you unasked before that, and what is true then comes then.", localTime(c.Until, zone)),
			fmt.Sprintf("Undo: %s", h.word(address, "snooze off")),
		}
		if j.Comes {
			said = slices.Insert(said, 1, "This reminder comes again then.")
		}
	case schedule.Less:
		said = append(lessWords(j), fmt.Sprintf("Take it back: %s", h.word(address, "useful "+nameOf(c))))
	case schedule.Useful:
		said = []string{"Noted as useful."}
		for _, l := range j.Leeway {
			switch {
			case l.Least > 0:
				said = append(said, fmt.Sprintf("%s speaks to you at most %s.", l.Heartbeat, schedule.Every(l.Least)))
			case l.Back:
				said = append(said, l.Heartbeat+" speaks to you as often as it did at first.")
			}
		}
	}
	if j.Lifted {
		said = append(said, "The snooze is lifted.")
	}
	return strings.Join(said, " ")
}

// lessWords say of each heartbeat of a card how seldom it speaks now. One that comes but once is left out.
func lessWords(j schedule.Judged) (said []string) {
	before := "Less of this: "
	for _, l := range j.Leeway {
		switch {
		case l.Bounded:
			said = append(said, fmt.Sprintf("%s speaks to you at most %s already; that is the least.", l.Heartbeat, schedule.Every(l.Least)))
		case l.Least > 0:
			said = append(said, fmt.Sprintf("%s%s speaks to you at most %s.", before, l.Heartbeat, schedule.Every(l.Least)))
			before = ""
		}
	}
	return said
}

// nameOf is the heartbeat of a card in a command; "NAME" where it is one of several.
func nameOf(c schedule.Card) string {
	switch {
	case c.Heartbeat != "":
		return c.Heartbeat
	case len(c.Digest) == 1:
		return c.Digest[0]
	}
	return "NAME"
}

// localTime is an instant on the clocks of a zone, which it names.
func localTime(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("Mon 2 Jan 15:04 MST")
}

const snoozeUsage = "Say how long: %s, %s or %s, perhaps with the name of a heartbeat; %s ends it."

// snooze keeps everything, or one heartbeat, from speaking to the person for a while, or says what is snoozed.
func (h *Hub) snooze(ctx context.Context, e Event, rest string) (Admission, error) {
	word, name := cutWord(rest)
	word = strings.ToLower(word)
	return h.feedbackAnswer(ctx, e, func(tx memory.Tx, e Event) (agent.Reply, error) {
		until := time.Time{}
		switch {
		case word == "":
			text, err := h.snoozed(tx, e)
			return agent.Reply{Kind: agent.Notice, Text: text}, err
		case word != "off" && !slices.Contains(schedule.Spans(), schedule.Span(word)):
			word := func(rest string) string { return h.word(e.Address, "snooze "+rest) }
			return agent.Reply{Kind: agent.Fault, Text: fmt.Sprintf(snoozeUsage, word("1h"), word("4h"), word("tomorrow"), word("off"))}, nil
		case word != "off":
			var err error
			if until, err = schedule.Span(word).End(e.at(), zoneOf(e.From)); err != nil {
				return agent.Reply{}, err
			}
		}
		if name == "" {
			err := schedule.SnoozeAll(tx, string(e.From.ID), until, e.at())
			return agent.Reply{Kind: agent.Notice, Text: h.snoozeText(e, "", until)}, err
		}
		beat, err := schedule.Load(tx, name)
		if errors.Is(err, schedule.ErrNoHeartbeat) || err == nil && !slices.Contains(beat.For, string(e.From.ID)) {
			return agent.Reply{Kind: agent.Fault, Text: fmt.Sprintf("No heartbeat %q wakes me for you. %s lists those that do.", name, h.word(e.Address, "heartbeats"))}, nil
		}
		if err == nil {
			err = schedule.SnoozeOne(tx, string(e.From.ID), name, until, e.at())
		}
		return agent.Reply{Kind: agent.Notice, Text: h.snoozeText(e, name, until)}, err
	})
}

// snoozeText says until when everything, or one heartbeat, is snoozed now.
func (h *Hub) snoozeText(e Event, heartbeat string, until time.Time) string {
	who, what, undo := "Nothing is snoozed any more", "nothing is said to you unasked", "snooze off"
	if heartbeat != "" {
		who, what, undo = heartbeat+" may speak to you again", heartbeat+" says nothing to you", "snooze off "+heartbeat
	}
	if until.IsZero() {
		return who + "; what was held back comes now, if it is still so."
	}
	return fmt.Sprintf("Snoozed until %s: %s before that, and what is true then comes then. Undo: %s",
		localTime(until, zoneOf(e.From)), what, h.word(e.Address, undo))
}

// snoozed says what is snoozed now.
func (h *Hub) snoozed(tx memory.Tx, e Event) (string, error) {
	a, err := schedule.LoadAttention(tx, string(e.From.ID))
	if err != nil {
		return "", err
	}
	zone := zoneOf(e.From)
	var lines []string
	if until := a.SnoozedBy("", e.at()); !until.IsZero() {
		lines = append(lines, fmt.Sprintf("Nothing is said to you unasked until %s.", localTime(until, zone)))
	}
	for name := range a.Tastes {
		if until := a.SnoozedBy(name, e.at()); until.After(a.Snoozed) {
			lines = append(lines, fmt.Sprintf("%s says nothing to you until %s.", name, localTime(until, zone)))
		}
	}
	slices.Sort(lines)
	if lines == nil {
		lines = []string{"Nothing is snoozed."}
	}
	return strings.Join(lines, "\n"), nil
}
