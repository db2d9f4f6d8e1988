package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"nudge/memory"
)

// Erased is what was removed of a session. What is counted is gone from use; for its bytes to leave the data
// file as well, the transaction says [memory.Gone].
type Erased struct {
	Entries int      // lines of its journal
	Turns   int      // that could be found by their ids
	Cards   []string // their ids
	Mail    int      // messages that it had not taken up
	Parcels int      // replies that lay in the outbox
	Results int      // long ones that were saved whole, and attached files that were read
	Rules   int      // saved with its cards
}

// EraseSession removes a session within a transaction, from every place where the agent keeps something of it: journal,
// inbox, outbox, cards with their time-outs and the rules saved with them, turns, the rows that a start looks at, saved
// results. What was spent and what is known of its person stay, and the audit keeps who decided what, without a word. A
// session of which there is nothing is no error.
//
// No agent may run on the store; where one does, [Agent.Erase] is the way.
func EraseSession(tx memory.Tx, session string) (Erased, error) {
	e := erasure{tx: tx, session: session}
	return e.all()
}

// Erase stops what runs in a session, and removes it like [EraseSession]. Nothing of it can begin meanwhile: what comes
// before it is done goes too, and what comes later begins a conversation that knows nothing. The marks that turns have
// ended stay in the outbox: they have no words, and whoever looks at the conversation would wait for them. also, if not
// nil, goes on in the same transaction; it may be called more than once, and with an error of its nothing is removed.
//
// Erase returns when it is done; a tool that does not stop holds it up for two seconds. When ctx ends before, or after
// another error, the session is still there, but what ran in it may have been stopped and its mail dropped.
func (ag *Agent) Erase(ctx context.Context, session string, also func(tx memory.Tx, removed Erased) error) (removed Erased, err error) {
	place, err := ag.seize(ctx, session)
	if err != nil {
		return Erased{}, fmt.Errorf("erase session %s: %w", session, err)
	}
	defer ag.release(place)
	err = ag.Store.Update(ctx, func(tx memory.Tx) (err error) {
		e := erasure{tx: tx, session: session, keepsEnds: true}
		if removed, err = e.all(); err != nil || also == nil {
			return err
		}
		return also(tx, removed)
	})
	if err != nil {
		return Erased{}, fmt.Errorf("erase session %s: %w", session, err)
	}
	ag.tellEnded(session, Totals{Reason: Cancelled}) // of a wake that had not begun, nothing else tells
	ag.Outgoing()
	ag.Rescheduled()
	return removed, nil
}

// seize takes a session's place among those that do something, once nothing of it runs any more. Until release, whoever has
// something for the session wakes the place instead of an actor.
func (ag *Agent) seize(ctx context.Context, session string) (place *actor, err error) {
	defer context.AfterFunc(ctx, func() {
		ag.mu.Lock()
		defer ag.mu.Unlock()
		ag.idle.Broadcast()
	})()
	place = &actor{Agent: ag, session: session}
	for {
		ag.mu.Lock()
		old := ag.actors[session]
		ag.actors[session] = place
		if old == nil {
			ag.shelf.take(session)
			ag.mu.Unlock()
			return place, nil
		}
		ag.mu.Unlock()
		if err := ag.oust(ctx, old, place); err != nil {
			ag.giveBack(place, old)
			return nil, err
		}
	}
}

// oust stops an actor in whose place another stands already, and waits for its end. It gets no mail but a Stop: what lies in
// the inbox would begin its next turn.
func (ag *Agent) oust(ctx context.Context, old, place *actor) error {
	data, err := json.Marshal(Message{Provenance: Timer, At: now(), Stop: true})
	if err != nil {
		return err
	}
	err = ag.Store.Update(ctx, func(tx memory.Tx) error {
		if _, err := removeMail(tx, old.session); err != nil {
			return err
		}
		_, err := tx.Inbox().Put(old.session, data)
		return err
	})
	if err != nil {
		return fmt.Errorf("stop what runs in it: %w", err)
	}
	ag.mu.Lock()
	defer ag.mu.Unlock()
	old.woken = true
	if old.stop != nil {
		old.stop(errStop)
	}
	// An actor that comes to rest takes whatever stands in its place away.
	for ctx.Err() == nil && ag.actors[old.session] == place {
		ag.idle.Wait()
	}
	if ag.actors[old.session] == place {
		return fmt.Errorf("stop what runs in it: %w", context.Cause(ctx))
	}
	return nil
}

// giveBack lets an actor that was not ousted go on.
func (ag *Agent) giveBack(place, old *actor) {
	ag.mu.Lock()
	there := ag.actors[place.session] == place
	if there {
		ag.actors[place.session] = old
	}
	ag.mu.Unlock()
	if there || place.wasWoken() {
		ag.look(place.session)
	}
}

// release lets the session live again, and at once if there is something for it.
func (ag *Agent) release(place *actor) {
	ag.mu.Lock()
	delete(ag.actors, place.session)
	ag.idle.Broadcast()
	ag.mu.Unlock()
	if place.wasWoken() {
		ag.look(place.session)
	}
}

func (a *actor) wasWoken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.woken
}

// erasure is the removal of one session in one transaction.
type erasure struct {
	tx        memory.Tx
	session   string
	keepsEnds bool // the marks that turns have ended stay in the outbox
	removed   Erased
}

func (e *erasure) all() (Erased, error) {
	for _, step := range []func() error{e.audit, e.cards, e.timers, e.turns, e.rows, e.parcels, e.rest} {
		if err := step(); err != nil {
			return Erased{}, fmt.Errorf("remove session %s: %w", e.session, err)
		}
	}
	return e.removed, nil
}

// audit keeps who decided what, without a word of it.
func (e *erasure) audit() error { return keepAudit(e.tx, e.session) }

// cards go by the table that says whose they are, so that a journal that cannot be read is no hindrance.
func (e *erasure) cards() (err error) {
	e.removed.Cards, err = memory.RemoveRows(e.tx.Table(tableCards), "", func(_ string, of []byte) (bool, error) { return string(of) == e.session, nil })
	if err != nil {
		return err
	}
	_, err = memory.RemoveRows(e.tx.Table(tableWaiting), "", func(_ string, data []byte) (bool, error) {
		var w WaitingCard
		return json.Unmarshal(data, &w) == nil && w.Reply.Session == e.session, nil
	})
	return err
}

func (e *erasure) timers() error {
	var keys []string
	err := e.tx.Due().Scan(func(row memory.DueRow) error {
		if strings.HasPrefix(row.Key, TimerPrefix) && string(row.Data) == e.session {
			keys = append(keys, row.Key)
		}
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = e.tx.Due().Remove(key)
		}
	}
	return err
}

func (e *erasure) turns() error {
	err := e.tx.Journal().Read(e.session, 0, func(line memory.Entry) error {
		if line.Kind == kindTurn {
			e.removed.Turns++
		}
		return nil
	})
	return errors.Join(err, sweepAllTurns(e.tx))
}

// rows are those that stand under the session's own name.
func (e *erasure) rows() error {
	for _, table := range []string{tableOpen, tableOwed, tableCheckpoints} {
		if err := e.tx.Table(table).Delete(e.session); err != nil {
			return err
		}
	}
	return nil
}

func (e *erasure) parcels() error {
	var ids []uint64
	err := e.tx.Outbox().List(0, func(p memory.Parcel) error {
		r, err := ReadReply(p)
		if err == nil && r.Session == e.session && !(e.keepsEnds && r.Kind == SettledMark) {
			ids = append(ids, p.ID)
		}
		return nil // of what cannot be read nobody knows whose it is
	})
	if err != nil {
		return err
	}
	e.removed.Parcels = len(ids)
	return e.tx.Outbox().Remove(ids...)
}

// rest are the places that know the session by its name.
func (e *erasure) rest() (err error) {
	if e.removed.Mail, err = removeMail(e.tx, e.session); err != nil {
		return err
	}
	if e.removed.Results, err = EraseSaved(e.tx, e.session); err != nil {
		return err
	}
	if err = eraseFiles(e.tx, e.session); err != nil {
		return err
	}
	if e.removed.Rules, err = removeRules(e.tx, "", func(r Rule) bool { return r.Session == e.session }); err != nil {
		return err
	}
	e.removed.Entries, err = e.tx.Journal().Erase(e.session)
	return err
}

func removeMail(tx memory.Tx, session string) (removed int, err error) {
	mail, err := tx.Inbox().List(session)
	if err != nil {
		return 0, err
	}
	ids := make([]uint64, len(mail))
	for i, m := range mail {
		ids[i] = m.ID
	}
	return len(ids), tx.Inbox().Remove(session, ids...)
}
