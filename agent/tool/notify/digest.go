package notify

import (
	"fmt"
	"time"

	"nudge/agent"
	"nudge/agent/compact"
	"nudge/memory"
	"nudge/schedule"
)

// DigestKey is the key of a digest's [agent.Notify], which is of no heartbeat.
const DigestKey = "digest"

// Digest says what was held back from a person whose digest falls due, in the transaction that claims its row. It gives the
// session that has mail then, "" when nothing was said: there may be nothing to say any more, or the person must not be
// spoken to now and the row is put off.
func (v Voice) Digest(tx memory.Tx, row memory.DueRow) (session string, err error) {
	account, err := schedule.DigestFor(tx, row)
	if err != nil || account == "" {
		return "", err
	}
	id := agent.PersonID(account)
	route, person, err := agent.Home(tx, id)
	if err != nil {
		return "", err
	}
	now := time.Now()
	digest, err := v.Budget.TakeDigest(tx, row, zoneOf(person), now)
	if err == nil && digest.Text != "" {
		session, err = tellDigest(tx, route, id, digest, now)
	}
	for _, w := range digest.Items {
		if err == nil {
			err = heard(tx, id, w, now)
		}
	}
	if err != nil {
		return "", fmt.Errorf("say the digest for %s: %w", id, err)
	}
	return session, nil
}

// tellDigest says a digest. One that tells of heartbeats is a card: what its person makes of it counts for each of them.
func tellDigest(tx memory.Tx, route string, id agent.PersonID, digest schedule.Told, now time.Time) (session string, err error) {
	note := agent.Note{
		Digest: true, Text: digest.Text, Evidence: digest.Seen, Origin: compact.Origin{Outside: digest.Outside, Private: digest.Private},
	}
	if of := digest.Heartbeats(); len(of) > 0 {
		if session, err = agent.SessionOf(tx, route); err != nil {
			return "", err
		}
		card, err := schedule.AddCard(tx, schedule.Card{
			Person: string(id), Digest: of, Address: route, Session: session, Text: digest.Text,
			Outside: digest.Outside != "" || digest.Seen != "", Tick: now, Told: now,
		})
		if err != nil {
			return "", err
		}
		note.Card, note.Once = card.ID, card.Once
	}
	return agent.Tell(tx, route, note, "low", DigestKey)
}

// Late decides whether somebody may be told now of something that went on without them. If not, it is in their digest.
func (v Voice) Late(tx memory.Tx, l agent.Late) (held bool, err error) {
	hold, err := v.Budget.Admit(tx, schedule.Unasked{
		Person: string(l.Person.ID), Zone: zoneOf(l.Person), Text: l.Text, Outside: l.Origin.Outside, Private: l.Origin.Private,
	}, time.Now())
	return hold.Holds(), err
}

// heard notes that a person heard of something in their digest, so that it is not said again before it changes.
func heard(tx memory.Tx, person agent.PersonID, w schedule.Withheld, now time.Time) error {
	if w.Heartbeat == "" || w.Episode == "" {
		return nil
	}
	key := w.Key
	if key == "" {
		key = w.Heartbeat
	}
	return noteTold(tx, person, w.Heartbeat, key, told{Episode: w.Episode, At: now.UTC()})
}
