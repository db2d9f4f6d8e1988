package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nudge/memory"
)

// actor owns the state of one session while there is something to do. All fields but those guarded by Agent.mu
// belong to its goroutine.
type actor struct {
	*Agent
	session string
	state   *state

	letters []letter // the mail that is not taken, as it was when last looked at

	out  writes // what is not on disk yet
	late *late  // what is about to be, before it

	stuck  int                         // compactions in a row that gained nothing
	prompt struct{ turn, text string } // the system prompt of a turn
	judged struct {                    // the last step that the hooks after it have let be
		turn string
		step int
	}
	shown []*Reply // the cards of the batch that is being judged
	fresh bool     // the batch was asked for by the last answer and nothing was decided about its calls

	// Guarded by Agent.mu.
	woken   bool                    // there may be mail that was not looked at
	looked  bool                    // the mail was looked at
	running string                  // the turn of the run under way
	stop    context.CancelCauseFunc // of that run
}

// live does what there is to do and ends.
func (a *actor) live() {
	for {
		err := a.work()
		if err != nil {
			a.tellFull(err)
			a.abandon()
			a.state = nil // the next actor of this session reads it
			a.Log.Error("session stopped working and is tried again later", "session", a.session, "error", err)
		}
		if a.rest(a, err != nil) {
			return
		}
	}
}

// tellFull says, now or never, that the turn cannot go on while the disk is full.
func (a *actor) tellFull(err error) {
	if !errors.Is(err, memory.ErrFull) || a.state == nil || a.state.turn == nil || a.state.turn.provenance == Heartbeat {
		return
	}
	t := a.state.turn
	a.Live(Reply{
		Kind: Fault, Session: a.session, Turn: t.id, Run: t.run, Address: t.address,
		Text: "My disk is full, so I cannot go on with this. I try again by myself once there is room.",
	})
}

// work brings the session to where only a new message can take it on.
func (a *actor) work() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("session %s: panic: %v", a.session, p)
		}
	}()
	if a.state == nil {
		if err := a.wake(); err != nil {
			return err
		}
	}
	for a.ctx.Err() == nil {
		acted, err := a.next()
		if err != nil || !acted {
			return err
		}
	}
	return a.commit()
}

// next does one thing that there is to do, and reports whether there was one.
func (a *actor) next() (acted bool, err error) {
	mail, err := a.mail()
	if err != nil {
		return false, err
	}
	switch t := a.state.turn; {
	case t == nil:
		return a.open(mail)
	case t.waiting:
		return a.resume()
	default:
		return true, a.run()
	}
}

// letter is mail that was read.
type letter struct {
	id uint64
	Message
}

func openLetter(mail memory.Mail) (letter, error) {
	l := letter{id: mail.ID}
	if err := json.Unmarshal(mail.Data, &l.Message); err != nil {
		return l, fmt.Errorf("read mail %d of %s: %w", mail.ID, mail.Session, err)
	}
	return l, nil
}

// mail is what lies in the session's inbox, oldest first, without what was taken out of it. It is read anew only when
// somebody has said that there may be more.
func (a *actor) mail() ([]letter, error) {
	a.mu.Lock()
	more := a.woken || !a.looked
	a.woken, a.looked = false, true
	a.mu.Unlock()
	if more {
		if err := a.Store.View(context.Background(), a.readMail); err != nil {
			return nil, err
		}
	}
	return slices.Clone(a.letters), nil
}

func (a *actor) readMail(tx memory.Tx) error {
	a.letters = a.letters[:0]
	mail, err := tx.Inbox().List(a.session)
	if err != nil {
		return err
	}
	for _, m := range mail {
		if a.out.taken[m.ID] || a.late != nil && a.late.taken[m.ID] {
			continue
		}
		l, err := openLetter(m)
		if err != nil {
			return err
		}
		a.letters = append(a.letters, l)
	}
	return nil
}

// take removes letters from the inbox with the next commit.
func (a *actor) take(letters ...letter) {
	if len(letters) == 0 {
		return
	}
	ids := make([]uint64, len(letters))
	for i, l := range letters {
		ids[i] = l.id
		a.out.take(l.id)
	}
	a.letters = slices.DeleteFunc(a.letters, func(l letter) bool { return a.out.taken[l.id] })
	a.also(func(tx memory.Tx) error { return tx.Inbox().Remove(a.session, ids...) })
}

// add applies an entry to the state and journals it with the next commit.
func (a *actor) add(e entry) error {
	at := now()
	line, err := encode(e, at)
	if err != nil {
		return err
	}
	read, err := readBack(e, line)
	if err != nil {
		return err
	}
	a.state.journal += len(line.Data)
	a.state.apply(read, at)
	a.out.entries = append(a.out.entries, line)
	return nil
}

// also does something in the transaction of the next commit.
func (a *actor) also(fn func(memory.Tx) error) { a.out.alongside = append(a.out.alongside, fn) }

// then does something once the next commit is on disk, at any time after and from any goroutine.
func (a *actor) then(fns ...func()) { a.out.after = append(a.out.after, fns...) }

// say puts a reply into the outbox with the next commit.
func (a *actor) say(r Reply) {
	r.Session = a.session
	if t := a.state.turn; t != nil {
		if r.Turn == "" {
			r.Turn, r.Run = t.id, t.run
		}
		if r.Address == "" {
			r.Address = t.address
		}
		r.Tainted = r.Tainted || r.Kind == Notice && a.tainted() // it may tell of an error in the words of strangers
	}
	a.also(r.pack()) // encoded here, since all others' writing waits for what is done in a transaction
	a.then(a.Outgoing)
}

// send puts a message into the inbox of a conversation's session, which may be this one, with the next commit.
func (a *actor) send(conversation string, m Message) {
	var session string
	a.also(func(tx memory.Tx) (err error) {
		session, err = post(tx, conversation, m)
		return err
	})
	a.then(func() { a.look(session) })
}

// post puts a message into the mail of a conversation's present session.
func post(tx memory.Tx, conversation string, m Message) (session string, err error) {
	if session, err = SessionOf(tx, conversation); err != nil {
		return "", err
	}
	data, err := plainJSON(m)
	if err != nil {
		return "", fmt.Errorf("encode a message for %s: %w", session, err)
	}
	_, err = tx.Inbox().Put(session, data)
	return session, err
}

// wake reads the mail, and the journal unless the state that it folds to was kept, and mends what a crash cut off.
func (a *actor) wake() error {
	a.mu.Lock()
	kept := a.shelf.take(a.session)
	a.woken, a.looked = false, true
	a.mu.Unlock()
	err := a.Store.View(context.Background(), func(tx memory.Tx) error {
		last, err := tx.Journal().Last(a.session)
		if err == nil && kept != nil && kept.last == last {
			a.state = kept
		} else if err == nil {
			a.state, err = load(tx, a.session)
		}
		return errors.Join(err, a.readMail(tx))
	})
	if err != nil {
		return err
	}
	a.fresh = false
	a.models[0].tokens.Resume(a.state.ratio)
	if err := a.mend(); err != nil {
		return err
	}
	return a.commit()
}

// reread takes back what was applied to the state and not committed.
func (a *actor) reread() error {
	a.abandon()
	return a.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		a.state, err = load(tx, a.session)
		return err
	})
}

// newID makes an id that nobody can guess, from 50 random bits, easy to type.
func newID(prefix string) string {
	return prefix + strings.ToLower(rand.Text()[:10])
}
