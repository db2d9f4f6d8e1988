package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nudge/memory"
	"nudge/schedule"
)

// Forgetting a person removes the sessions that are theirs, and takes their words out of those that are not (blank.go).
// What else is kept by person goes too, and in the journals and the audit an opaque id stands for each of theirs.

// Forgotten is what was removed of a person.
type Forgotten struct {
	Erased          // of all their own sessions together
	Opaque   string // what stands for the person from now on
	Sessions []Erasing
	Shared   int // sessions with others from which their words were taken
	Blanked  int // lines of those that were blanked or changed
	Days     int // on which it was kept what they had spent
	Known    int // accounts of which a name or a time zone was kept
}

// Erasing is one session that is removed.
type Erasing struct {
	Session string
	Began   time.Time // its first entry; zero when it had none
	Erased
}

// Forgetting says whom to forget.
type Forgetting struct {
	Accounts []PersonID                // all that the person has
	Own      func(session string) bool // the sessions that are theirs alone
}

const (
	forgottenPrefix = "forgotten:"
	// sharedWait is how long at most a turn of somebody else's in a shared session is waited for.
	sharedWait = 30 * time.Second
)

// errMoreSessions takes a transaction back that met a session of the person's of which something may run.
var errMoreSessions = errors.New("another session has begun")

// Forget stops what runs for a person and removes all that the agent keeps of them, in one transaction, in which also, if not
// nil, goes on: it may be called more than once. Until it is done nothing of theirs can begin. A turn of somebody else's in a
// session that they share is waited for. After an error nothing was removed, but what ran may have been stopped.
func (ag *Agent) Forget(ctx context.Context, f Forgetting, also func(tx memory.Tx, removed Forgotten) error) (removed Forgotten, err error) {
	places := map[string]*actor{}
	defer func() {
		for _, place := range places {
			ag.release(place)
		}
	}()
	for {
		sessions, err := ag.sessionsOf(ctx, f)
		if err != nil {
			return Forgotten{}, err
		}
		for _, session := range sessions {
			if places[session] != nil {
				continue
			}
			place, err := ag.quiet(ctx, f, session)
			if err != nil {
				return Forgotten{}, fmt.Errorf("forget %s: %w", f.Accounts[0], err)
			}
			places[session] = place
		}
		err = ag.Store.Update(ctx, func(tx memory.Tx) (err error) {
			if removed, err = f.remove(tx, func(session string) bool { return places[session] != nil }); err != nil || also == nil {
				return err
			}
			return also(tx, removed)
		})
		if errors.Is(err, errMoreSessions) {
			continue
		}
		if err != nil {
			return Forgotten{}, fmt.Errorf("forget %s: %w", f.Accounts[0], err)
		}
		for session := range places {
			if f.Own(session) {
				ag.tellEnded(session, Totals{Reason: Cancelled})
			}
		}
		ag.Outgoing()
		ag.Rescheduled()
		return removed, nil
	}
}

// ForgetAtRest is [Agent.Forget] within a transaction, while no agent runs on the store.
func ForgetAtRest(tx memory.Tx, f Forgetting) (Forgotten, error) {
	return f.remove(tx, func(string) bool { return true })
}

func (ag *Agent) sessionsOf(ctx context.Context, f Forgetting) (sessions []string, err error) {
	err = ag.Store.View(ctx, func(tx memory.Tx) error {
		own, shared, err := f.sessions(tx)
		sessions = append(own, shared...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for the sessions of %s: %w", f.Accounts[0], err)
	}
	return sessions, nil
}

// quiet takes the place of a session once nothing of it runs. The person's own turns are stopped.
func (ag *Agent) quiet(ctx context.Context, f Forgetting, session string) (*actor, error) {
	if f.Own(session) {
		return ag.seize(ctx, session)
	}
	var turn *turnEntry
	err := ag.Store.View(ctx, func(tx memory.Tx) (err error) {
		turn, err = openTurnOf(tx, session)
		return err
	})
	if err != nil {
		return nil, err
	}
	if turn != nil && slices.Contains(f.Accounts, turn.Person.ID) {
		stop := Message{Keys: []string{"forget " + rand.Text()}, Session: session, Provenance: Timer, At: now(), Address: turn.Address, Stop: true}
		if _, err := ag.Receive(ctx, stop); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		ag.mu.Lock()
		defer ag.mu.Unlock()
		ag.idle.Broadcast()
	})()
	ag.mu.Lock()
	defer ag.mu.Unlock()
	for ctx.Err() == nil && ag.actors[session] != nil {
		ag.idle.Wait()
	}
	if ag.actors[session] != nil {
		return nil, fmt.Errorf("a turn of somebody else's is under way in %s; try again when it has ended", session)
	}
	place := &actor{Agent: ag, session: session}
	ag.actors[session] = place
	ag.shelf.take(session)
	return place, nil
}

// openTurnOf is the turn that is under way in a session; nil for none.
func openTurnOf(tx memory.Tx, session string) (turn *turnEntry, err error) {
	open, err := OpenTurn(tx, session)
	if err != nil || open == "" {
		return nil, err
	}
	err = readEntries(tx, session, func(e entry, _ time.Time) {
		if begun, ok := e.(*turnEntry); ok && begun.Turn == open {
			turn = begun
		}
	}, kindTurn)
	return turn, err
}

// sessions are those of which the person has anything: their own, and others that name them.
func (f Forgetting) sessions(tx memory.Tx) (own, shared []string, err error) {
	all := map[string]bool{}
	mailed, err := tx.Inbox().Sessions()
	if err != nil {
		return nil, nil, err
	}
	for _, session := range mailed {
		all[session] = true
	}
	err = tx.Journal().Sessions("", func(session string, _ memory.Entry) error {
		all[session] = true
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, session := range slices.Sorted(maps.Keys(all)) {
		if f.Own(session) {
			own = append(own, session)
			continue
		}
		names, err := f.named(tx, session)
		if err != nil {
			return nil, nil, err
		}
		if names {
			shared = append(shared, session)
		}
	}
	return own, shared, nil
}

// named reports whether a session's journal or mail has one of the person's ids in it.
func (f Forgetting) named(tx memory.Tx, session string) (found bool, err error) {
	err = tx.Journal().Read(session, 0, func(line memory.Entry) error {
		if f.in(line.Data) {
			found = true
			return memory.ErrStop
		}
		return nil
	})
	if err != nil || found {
		return found, err
	}
	mail, err := tx.Inbox().List(session)
	return slices.ContainsFunc(mail, func(m memory.Mail) bool { return f.in(m.Data) }), err
}

// in reports whether JSON has one of the person's ids as a string.
func (f Forgetting) in(data []byte) bool {
	return slices.ContainsFunc(f.Accounts, func(id PersonID) bool { return bytes.Contains(data, quotedID(id)) })
}

func quotedID(id PersonID) []byte {
	data, err := plainJSON(string(id))
	if err != nil { // strings always encode
		return nil
	}
	return data
}

// remove does all of it in one transaction. held tells of which sessions nothing runs.
func (f Forgetting) remove(tx memory.Tx, held func(session string) bool) (Forgotten, error) {
	r := forgetting{Forgetting: f, tx: tx, of: Forgotten{Opaque: forgottenPrefix + strings.ToLower(rand.Text()[:16])}}
	var pairs []string
	for _, id := range f.Accounts {
		was, is := string(quotedID(id)), string(quotedID(PersonID(r.of.Opaque)))
		pairs = append(pairs, was, is, was[:len(was)-1]+"/", is[:len(is)-1]+"/") // the latter begins a day of spending
	}
	r.hide = strings.NewReplacer(pairs...)
	own, shared, err := f.sessions(tx)
	if err != nil {
		return Forgotten{}, err
	}
	for _, session := range append(own[:len(own):len(own)], shared...) {
		if !held(session) {
			return Forgotten{}, errMoreSessions
		}
	}
	for _, session := range own {
		if err := r.erase(session); err != nil {
			return Forgotten{}, err
		}
	}
	for _, session := range shared {
		if err := r.blank(session); err != nil {
			return Forgotten{}, fmt.Errorf("take their words out of %s: %w", session, err)
		}
	}
	for _, step := range []func() error{r.outbox, func() error { return sweepAllTurns(tx) }, r.rows, func() error { return hideInAudit(tx, r.hide) }} {
		if err := step(); err != nil {
			return Forgotten{}, err
		}
	}
	return r.of, nil
}

// forgetting is the removal of one person in one transaction.
type forgetting struct {
	Forgetting
	tx   memory.Tx
	hide *strings.Replacer // their ids, as JSON
	of   Forgotten
}

// erase removes a session of their own.
func (r *forgetting) erase(session string) error {
	s := Erasing{Session: session}
	err := r.tx.Journal().Read(session, 0, func(line memory.Entry) error {
		s.Began = line.At
		return memory.ErrStop
	})
	if err != nil {
		return err
	}
	e := erasure{tx: r.tx, session: session, keepsEnds: true}
	if s.Erased, err = e.all(); err != nil {
		return err
	}
	r.of.Sessions = append(r.of.Sessions, s)
	r.of.Erased.add(s.Erased)
	return nil
}

// add sums up what was removed of several sessions.
func (e *Erased) add(more Erased) {
	e.Entries += more.Entries
	e.Turns += more.Turns
	e.Cards = append(e.Cards, more.Cards...)
	e.Mail += more.Mail
	e.Parcels += more.Parcels
	e.Results += more.Results
	e.Rules += more.Rules
}

// mail takes out what they said to a session and it has not taken up.
func (r *forgetting) mail(session string) error {
	mail, err := r.tx.Inbox().List(session)
	if err != nil {
		return err
	}
	var ids []uint64
	for _, m := range mail {
		if r.in(m.Data) {
			ids = append(ids, m.ID)
		}
	}
	r.of.Mail += len(ids)
	return r.tx.Inbox().Remove(session, ids...)
}

// outbox takes out what is about to be said to them alone, and their words from receipts.
func (r *forgetting) outbox() error {
	var ids []uint64
	err := r.tx.Outbox().List(0, func(p memory.Parcel) error {
		reply, err := ReadReply(p)
		if err != nil {
			return nil // of what cannot be read nobody knows whose it is
		}
		if r.Own(p.Conversation) && reply.Kind != SettledMark || slices.Contains(r.Accounts, reply.To) || reply.Kind == SteerMark && r.Own(reply.Session) {
			ids = append(ids, p.ID)
		}
		return nil
	})
	r.of.Parcels += len(ids)
	if err != nil {
		return err
	}
	return r.tx.Outbox().Remove(ids...)
}

// rows are those that are kept by person.
func (r *forgetting) rows() error {
	for _, id := range r.Accounts {
		if known, err := tablePeople.Has(r.tx, string(id)); err != nil {
			return err
		} else if known {
			r.of.Known++
		}
		rules, err := removeRules(r.tx, "", func(rule Rule) bool { return rule.Person == id })
		if err == nil {
			err = tablePeople.Delete(r.tx, string(id))
		}
		if err == nil {
			err = r.spent(id)
		}
		if err != nil {
			return err
		}
		r.of.Rules += rules
	}
	return nil
}

// spent forgets what was spent, but for the amounts of today, which keep each account within its cap.
func (r *forgetting) spent(id PersonID) error {
	person, err := schedule.PersonOf(r.tx, string(id))
	if err != nil {
		return err
	}
	var old []string
	err = scanSpending(r.tx, person, func(date string, _ spending) {
		if !isRecent(date) {
			old = append(old, date)
		}
	})
	for _, date := range old {
		if err == nil {
			r.of.Days++
			err = r.tx.Table(tableSpend).Delete(person + "/" + date)
		}
	}
	if err != nil || person == string(id) {
		return err
	}
	return PartSpent(r.tx, person, string(id))
}
