package agent

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"nudge/memory"
)

// open looks for something to do in a session that has no turn under way: a parked call that was approved, then
// the mail in its order.
func (a *actor) open(letters []letter) (acted bool, err error) {
	if k := a.state.owed(); k != nil {
		return true, a.runParked(k)
	}
	for _, l := range letters {
		switch {
		case l.Note != nil:
			a.take(l)
			err = a.add(notedEntry{*l.Note})
		case l.Stop:
			a.take(l)
			if l.Address != "" { // a Stop of everything asks for no answer of each
				a.say(Reply{Kind: Notice, Address: l.Address, Text: "Nothing is running."})
			}
		case a.continues(l):
			k := a.state.continuation()
			if l.Steer {
				a.receive(a.receipt(l), NextTurn, 0)
			}
			l.Decision = &Decision{Card: k.Card, Verdict: Approve}
			err = a.decide(l, k)
		case l.Decision != nil:
			var k *card
			if k, err = a.card(l.Decision.Card); err == nil {
				err = a.decide(l, k)
			}
		default:
			return true, a.beginTurn(l, letters)
		}
		if err != nil {
			return false, err
		}
		if a.state.turn != nil {
			return true, a.commit() // the last one goes on
		}
	}
	if err := a.commit(); err != nil {
		return false, err
	}
	return a.state.owed() != nil, nil
}

// ordered writes bytes in the letters of ids so that they sort as the bytes do.
var ordered = base32.NewEncoding("234567abcdefghijklmnopqrstuvwxyz").WithPadding(base32.NoPadding)

// idsBegan is from when ids of turns count.
var idsBegan = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// newTurnID makes an id from the milliseconds since 2020 and 30 random bits. Those of turns that begin one after the other
// sort so too.
func newTurnID(at time.Time) string {
	since := max(at.Sub(idsBegan).Milliseconds(), 0)
	return "t" + ordered.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(since))[3:]) + newID("")[:6]
}

// TurnBegan is when a turn began, to the millisecond, as its id tells; false for an id that does not.
func TurnBegan(id string) (time.Time, bool) {
	const letters = 8 // of the time, which has five bytes
	if len(id) != len("t")+letters+6 || id[0] != 't' {
		return time.Time{}, false
	}
	since, err := ordered.DecodeString(id[1 : 1+letters])
	if err != nil {
		return time.Time{}, false
	}
	ms := binary.BigEndian.Uint64(append(make([]byte, 3), since...))
	return idsBegan.Add(time.Duration(ms) * time.Millisecond), true
}

// beginTurn begins the turn of a message, joined by what else its person has said since.
func (a *actor) beginTurn(first letter, letters []letter) error {
	id := newTurnID(now())
	begins := turnEntry{Turn: id, Provenance: first.Provenance, Person: first.From, Address: first.Address, Wake: first.Wake}
	if first.Wake != nil {
		begins.Address = first.Wake.Route
	}
	if err := a.overtake(first.From); err != nil {
		return err
	}
	if err := a.add(begins); err != nil {
		return err
	}
	a.also(func(tx memory.Tx) error { return tx.Table(tableOpen).Put(a.session, []byte(id)) })
	if err := a.beginRun("message"); err != nil {
		return err
	}
	switch {
	case first.Wake != nil:
		return a.beginWake(first)
	case first.Provenance != Human:
		a.take(first)
		return a.add(messageEntry{Turn: id, Provenance: first.Provenance, From: first.From.ID, Text: first.Text, Origin: first.Origin})
	}
	words := []letter{first}
	for _, l := range letters {
		if l.id != first.id && l.says() && l.From.ID == first.From.ID {
			words = append(words, l)
		}
	}
	return a.carry(words, true)
}

func (a *actor) beginWake(l letter) error {
	a.take(l)
	t := a.state.turn
	if err := a.add(wokeEntry{Turn: t.id, Run: t.run, Heartbeat: l.Wake.Heartbeat, Episode: l.Wake.Episode}); err != nil {
		return err
	}
	return a.add(messageEntry{
		Turn: t.id, Provenance: Heartbeat, From: l.From.ID, Text: l.Wake.words(local(now(), l.From.Zone), a.state.told),
		Origin: l.Wake.originOf().With(a.state.toldOrigin),
	})
}

// resume takes a waiting turn on if the mail has what it waits for, or something else from its person.
func (a *actor) resume() (acted bool, err error) {
	heard, err := a.listen()
	if err != nil {
		return false, err
	}
	t := a.state.turn
	switch {
	case heard.stop:
		_, err := a.cancelled()
		return true, err
	case len(heard.words) > 0:
		err = a.beginRun("message")
		if err == nil {
			err = a.interject(heard.words)
		}
	case t.next() == nil || t.next().card == nil || t.next().card.verdict != "":
		err = a.beginRun("decision")
	default:
		return false, a.commit()
	}
	if err != nil {
		return false, err
	}
	return true, a.commit()
}

// FindTurn gives the session of a turn, named by its own id or by that of one of its runs. It looks for the entry with
// which the turn began, first in the journals that have grown since then: that is seldom asked, and an index would be
// written at every turn.
func FindTurn(tx memory.Tx, id string) (session string, found bool, err error) {
	turn := turnOf(id)
	began, _ := TurnBegan(turn)
	var since, before []string // before are left for a clock that was set back
	err = tx.Journal().Sessions("", func(session string, newest memory.Entry) error {
		if newest.At.Before(began) {
			before = append(before, session)
		} else {
			since = append(since, session)
		}
		return nil
	})
	for _, session := range slices.Concat(since, before) {
		if err == nil {
			found, err = beganIn(tx, session, turn)
		}
		if err != nil || found {
			return session, found, err
		}
	}
	return "", false, err
}

// beganIn reports whether a turn began in a session.
func beganIn(tx memory.Tx, session, turn string) (found bool, err error) {
	err = tx.Journal().Read(session, 0, func(line memory.Entry) error {
		if line.Kind != kindTurn || !bytes.Contains(line.Data, []byte(turn)) {
			return nil
		}
		e, err := decode(line)
		if began, ok := e.(*turnEntry); err == nil && ok && began.Turn == turn {
			found = true
			return memory.ErrStop
		}
		return err
	})
	return found, err
}

// tableTurns is of earlier versions, which kept there for each turn where it was to be found, and whose it was.
const tableTurns = "turn"

// SweepTurns removes at most limit rows that an earlier version has left, and returns how many it removed.
func SweepTurns(tx memory.Tx, _ time.Time, limit int) (removed int, err error) {
	var some []string
	table := tx.Table(tableTurns)
	err = table.Scan("", func(key string, _ []byte) error {
		if len(some) == limit {
			return memory.ErrStop
		}
		some = append(some, key)
		return nil
	})
	for _, key := range some {
		if err == nil {
			err = table.Delete(key)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("remove the places of turns: %w", err)
	}
	return len(some), nil
}

// sweepAllTurns leaves nothing that could name a person.
func sweepAllTurns(tx memory.Tx) error {
	_, err := SweepTurns(tx, time.Time{}, math.MaxInt)
	return err
}

// Busy reports whether there is something to stop in a session: a turn, a call that was approved late, or mail.
func Busy(tx memory.Tx, session string) (bool, error) {
	for _, table := range []string{tableOpen, tableOwed} {
		if _, found, err := tx.Table(table).Get(session); err != nil || found {
			return found, err
		}
	}
	mail, err := tx.Inbox().List(session)
	return len(mail) > 0, err
}

// OpenTurn is the turn that is under way in a session; "" when there is none.
func OpenTurn(tx memory.Tx, session string) (string, error) {
	turn, _, err := tx.Table(tableOpen).Get(session)
	return string(turn), err
}
