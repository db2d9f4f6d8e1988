package agent

import (
	"time"

	"nudge/memory"
)

// TakesPart reports whether a person has said something in a session, as far as is known by whom each message was. It reads
// the session's whole journal, so it is for what people do by hand.
func TakesPart(tx memory.Tx, session string, who PersonID) (bool, error) {
	mail, err := tx.Inbox().List(session)
	if err != nil {
		return false, err
	}
	for _, letter := range mail {
		m, err := openLetter(letter)
		if err != nil {
			return false, err
		}
		if m.From.ID == who && m.Provenance == Human && !m.Stop {
			return true, nil
		}
	}
	found := false
	err = readEntries(tx, session, func(e entry, _ time.Time) {
		switch e := e.(type) {
		case *turnEntry:
			found = found || e.Person.ID == who
		case *messageEntry:
			found = found || e.From == who
		}
	}, kindTurn, kindMessage)
	return found, err
}
