package agent

import (
	"context"
	"slices"
	"strings"
	"time"
)

// heard is what a look at the mail brought that the step must heed.
type heard struct {
	stop  bool
	words []letter // said by those who steer the turn; still in the inbox
}

// listen looks at the mail, and does at once what is meant for the turn as it stands: decisions and time-outs about
// its cards, answers to its questions. Words stay in the inbox until a request carries them.
func (a *actor) listen() (heard, error) {
	var h heard
	letters, err := a.mail()
	if err != nil {
		return h, err
	}
	for _, l := range letters {
		switch {
		case l.Stop:
			h.stop = true // whoever is let into a conversation may stop what goes on in it
		case l.Decision != nil:
			k, err := a.card(l.Decision.Card)
			if err != nil {
				return h, err
			}
			if k != nil && k.Parked && k.verdict == "" {
				continue // runs a call and begins a turn: after this one
			}
			if err := a.decide(l, k); err != nil {
				return h, err
			}
		case a.steers(l):
			if k := a.state.turn.question(); k != nil {
				err = a.answerQuestion(l, k, a.saying(l))
			} else {
				h.words = append(h.words, l)
			}
			if err != nil {
				return h, err
			}
		}
	}
	return h, nil
}

// steers reports whether a letter is words of somebody who may steer the turn: its person, or an owner.
func (a *actor) steers(l letter) bool {
	t := a.state.turn
	return t != nil && l.says() && (l.From.ID == t.person.ID || a.owns(l.From.ID))
}

// owns reports whether a person is an owner: named as one by the config, or at this machine.
func (ag *Agent) owns(id PersonID) bool {
	return id.Platform() == "terminal" || id == "web:me" || slices.Contains(ag.Owners, id)
}

// attend is the look at the mail between two calls. If the person has said something, no call that has not begun
// is run.
func (a *actor) attend(ctx context.Context) error {
	heard, err := a.listen()
	if err != nil {
		return err
	}
	if err := a.cut(ctx, heard); err != nil {
		return err
	}
	return a.interject(heard.words)
}

// interject answers every call that has not begun with what the person said instead.
func (a *actor) interject(words []letter) error {
	if len(words) == 0 {
		return nil
	}
	said := make([]string, len(words))
	for i, l := range words {
		said[i] = a.saying(l)
	}
	if c := a.state.turn.unknownCall(); c != nil { // said instead of a choice about it
		return a.withdraw(c, strings.Join(said, "\n"), words[0].From)
	}
	for _, c := range a.state.turn.open() {
		if err := a.withdraw(c, "not run: the person said: "+strings.Join(said, "\n"), words[0].From); err != nil {
			return err
		}
	}
	return nil
}

// words are the letters that the next request of the turn shall carry.
func (a *actor) words() ([]letter, error) {
	letters, err := a.mail()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(letters, func(l letter) bool { return !a.steers(l) && l.Note == nil }), nil
}

// carry moves letters into the journal, joined into one message. begins says that they begin the turn: then the
// receipts of those that came after the first are owed until a request carries them.
func (a *actor) carry(letters []letter, begins bool) error {
	var joined messageEntry
	var texts []string
	a.take(letters...)
	for i, l := range letters {
		if l.Note != nil {
			if err := a.add(notedEntry{*l.Note}); err != nil {
				return err
			}
			continue
		}
		joined.IDs = append(joined.IDs, l.ID)
		texts = append(texts, a.spoken(l))
		joined.Files = append(joined.Files, l.Files...)
		joined.From, joined.Provenance = l.From.ID, l.Provenance
		switch {
		case !l.Steer:
		case begins && i == 0, l.During != "" && l.During != a.state.turn.id:
			a.receive(a.receipt(l), NextTurn, 0)
		default:
			joined.Owed = append(joined.Owed, a.receipt(l))
		}
	}
	if texts == nil {
		return nil
	}
	joined.Turn, joined.Origin = a.state.turn.id, originOf(letters)
	joined.Text, joined.Mark = a.dated(strings.Join(texts, "\n\n"))
	return a.add(joined)
}

func (a *actor) receipt(l letter) receipt {
	r := receipt{ID: l.ID, Text: l.Text, Address: l.Address}
	if len(l.Files) > 0 {
		r.Journaled = a.saying(l)
	}
	return r
}

// receive tells the person what became of words said during a turn.
func (a *actor) receive(r receipt, state string, step int) {
	a.say(Reply{Kind: SteerMark, ID: r.ID, Text: r.Text, State: state, Step: step, Address: r.Address})
}

// see gives the receipts that are owed: the request of step carries the words.
func (a *actor) see(step int) error {
	t := a.state.turn
	if t.owed == nil {
		return nil
	}
	ids := make([]string, len(t.owed))
	for i, r := range t.owed {
		ids[i] = r.ID
		a.receive(r, SeenAt, step)
	}
	return a.add(steerEntry{Turn: t.id, Run: t.run, Step: step, IDs: ids})
}

// keep journals words without a turn: said before a Stop, read with the next message.
func (a *actor) keep(l letter) error {
	a.take(l)
	if l.Steer {
		a.receive(a.receipt(l), NextTurn, 0)
	}
	return a.add(messageEntry{Turn: a.state.turn.id, Provenance: l.Provenance, From: l.From.ID, IDs: []string{l.ID}, Text: a.spoken(l), Files: l.Files, Origin: originOf([]letter{l})})
}

// spoken is what a letter says, with its speaker's name where several speak.
func (a *actor) spoken(l letter) string {
	if Direct(l.Address) || l.From.Name == "" {
		return a.saying(l)
	}
	return l.From.Name + ": " + a.saying(l)
}

// dated puts the person's date and time before words when the conversation has not told it for a while. The system
// prompt, which tells when the conversation began, must not change.
func (a *actor) dated(text string) (string, time.Time) {
	at := now()
	if at.Sub(a.state.marked) < 10*time.Minute {
		return text, time.Time{}
	}
	return "[" + local(at, a.state.turn.person.Zone) + "]\n" + text, at
}

// undated is a text without the date that [actor.dated] may have put before it.
func undated(text string) string {
	if mark, words, ok := strings.Cut(text, "]\n"); ok && strings.HasPrefix(mark, "[") && !strings.Contains(mark, "\n") {
		return words
	}
	return text
}

// local is an instant in words, in a person's time.
func local(at time.Time, zone string) string {
	where, err := time.LoadLocation(zone)
	if err != nil || zone == "" {
		where = time.UTC
	}
	return at.In(where).Format("Monday 2006-01-02 15:04 MST")
}
