package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/memory"
)

// WakeSession is the session in which a heartbeat's runs for one person have their journal.
func WakeSession(heartbeat string, person PersonID) string {
	return "wake:" + heartbeat + ":" + string(person)
}

// WakeOwner is the person for whom a session of wakes runs; "" for other sessions.
func WakeOwner(session string) PersonID {
	if !strings.HasPrefix(session, "wake:") {
		return ""
	}
	_, person, _ := strings.Cut(strings.TrimPrefix(session, "wake:"), ":")
	return PersonID(person)
}

// Wake runs a small turn of its own for a person and returns when it has ended. If the last one was cut off and is
// not settled yet, it is taken on instead of another being begun; of one that has begun for the same tick before, where
// that may be, it gives what it came to. When the time of ctx is over, the run is ended; when ctx is cancelled, it is left
// to go on, as far as [Agent.Close] lets it.
func (ag *Agent) Wake(ctx context.Context, id PersonID, w Wake) (Totals, error) {
	session := WakeSession(w.Heartbeat, id)
	var person Person
	var before *Totals
	cutOff := false
	// Listen from before the look on: of a run that is settled in between nothing else would tell.
	ended := ag.awaitEnd(session)
	defer ag.forgetEnd(session)
	err := ag.Store.View(ctx, func(tx memory.Tx) (err error) {
		if w.Route, person, err = Home(tx, id); err != nil {
			return err
		}
		if cutOff, err = unsettled(tx, session); err != nil || cutOff || !w.Again {
			return err
		}
		before, err = ag.endedBefore(tx, session, w)
		return err
	})
	switch {
	case err != nil:
		return Totals{}, fmt.Errorf("wake for %s: %w", id, err)
	case before != nil:
		return *before, nil
	}
	select {
	case totals := <-ended: // what was cut off has just ended
		return totals, nil
	default:
	}
	if cutOff {
		ag.look(session)
	} else if _, err := ag.Receive(ctx, Message{
		Session: session, Provenance: Heartbeat, From: person, At: time.Now(), Address: w.Route, Wake: &w,
	}); err != nil {
		return Totals{}, err
	}
	select {
	case totals := <-ended:
		return totals, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			ag.stopWake(session)
		}
		return Totals{}, context.Cause(ctx)
	case <-ag.ctx.Done():
		return Totals{}, errClosing
	}
}

// endedBefore is what the run came to that began for the same tick; nil when none did. It reads the session's whole journal.
func (ag *Agent) endedBefore(tx memory.Tx, session string, w Wake) (before *Totals, err error) {
	s := newState(session)
	err = tx.Journal().Read(session, 0, func(line memory.Entry) error {
		e, err := decode(line)
		if err != nil || e == nil {
			return err
		}
		stopped, ended := e.(*stoppedEntry)
		if t := s.turn; ended && stopped.Reason != Waiting && t != nil && t.wake != nil && t.wake.Tick.Equal(w.Tick) && t.wake.Asked == w.Asked {
			before = t.totals(stopped.Reason)
			before.Say, before.Changed = stopped.Say, ag.changed(t)
		}
		s.apply(e, line.At)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look whether a run has begun before: %w", err)
	}
	return before, nil
}

// unsettled reports whether a session has a turn or mail from before.
func unsettled(tx memory.Tx, session string) (bool, error) {
	turn, err := OpenTurn(tx, session)
	if err != nil || turn != "" {
		return turn != "", err
	}
	mail, err := tx.Inbox().List(session)
	return len(mail) > 0, err
}

func (ag *Agent) awaitEnd(session string) <-chan Totals {
	ended := make(chan Totals, 1)
	ag.mu.Lock()
	defer ag.mu.Unlock()
	ag.ended[session] = ended
	return ended
}

func (ag *Agent) forgetEnd(session string) {
	ag.mu.Lock()
	defer ag.mu.Unlock()
	delete(ag.ended, session)
}

// stopWake ends the run of a wake that took too long, also one that has not begun.
func (ag *Agent) stopWake(session string) {
	if ag.interruptWake(session) {
		return
	}
	if _, err := ag.Receive(ag.ctx, Message{Session: session, Provenance: Timer, At: time.Now(), Stop: true}); err != nil {
		ag.Log.Error("cannot stop a wake that took too long", "session", session, "error", err)
	}
}

func (ag *Agent) interruptWake(session string) bool {
	ag.mu.Lock()
	defer ag.mu.Unlock()
	a := ag.actors[session]
	if a == nil || a.stop == nil {
		return false
	}
	a.stop(errTurn)
	return true
}

// tellEnded gives a settled turn's totals to the config's Settled and to whoever waits for them.
func (ag *Agent) tellEnded(session string, totals Totals) {
	ag.Settled(session, totals)
	ag.mu.Lock()
	defer ag.mu.Unlock()
	if ended := ag.ended[session]; ended != nil {
		select {
		case ended <- totals:
		default:
		}
	}
}

// Tell says something to a person unasked, within a transaction: the words go out to route, and the person's own
// session will know of them. It returns that session, for [Agent.Look].
func Tell(tx memory.Tx, route string, note Note, urgency, key string) (session string, err error) {
	if session, err = SessionOf(tx, route); err != nil {
		return "", err
	}
	err = Send(tx, Reply{
		Kind: Notify, Session: session, ID: note.Card, Text: note.Text, Heartbeat: note.Heartbeat, Urgency: urgency, Key: key, Once: note.Once, Address: route,
		Tainted: note.originOf().Outside != "",
	})
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(Message{Provenance: Heartbeat, Note: &note})
	if err != nil {
		return "", err
	}
	_, err = tx.Inbox().Put(session, data)
	return session, err
}

// turnOf is the turn of a run's id, or of a turn's own.
func turnOf(id string) string {
	turn, _, _ := strings.Cut(id, ".")
	return turn
}
