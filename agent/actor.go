package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"nudge/memory"
)

// actor owns the state of one session while there is something to do. All fields but those guarded by Agent.mu
// belong to its goroutine.
type actor struct {
	*Agent
	session string
	state   *state

	// What was applied to the state and is not on disk yet, with what shall be written in the same transaction.
	pending   []memory.Entry
	alongside []func(memory.Tx) error
	after     []func()        // run once that transaction is on disk
	taken     map[uint64]bool // the mail that leaves the inbox with it

	stuck int  // compactions in a row that gained nothing
	fresh bool // the batch was asked for by the last answer and nothing was decided about its calls

	// Guarded by Agent.mu.
	woken   bool                    // there may be mail that was not looked at
	running string                  // the turn of the run under way
	stop    context.CancelCauseFunc // of that run
}

// live does what there is to do and ends.
func (a *actor) live() {
	for {
		err := a.work()
		if err != nil {
			// What is on disk is the truth; the next actor of this session reads it.
			a.state, a.pending, a.alongside, a.after, a.taken = nil, nil, nil, nil, nil
			a.Log.Error("session stopped working and is tried again later", "session", a.session, "error", err)
		}
		if a.rest(a, err != nil) {
			return
		}
	}
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
	return nil
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

// mail looks at the session's inbox without taking anything out.
func (a *actor) mail() ([]letter, error) {
	var letters []letter
	err := a.Store.View(context.Background(), func(tx memory.Tx) error {
		letters = letters[:0]
		mail, err := tx.Inbox().List(a.session)
		if err != nil {
			return err
		}
		for _, m := range mail {
			l, err := openLetter(m)
			if err != nil {
				return err
			}
			if a.taken[l.id] {
				continue
			}
			letters = append(letters, l)
		}
		return nil
	})
	return letters, err
}

// take removes letters from the inbox with the next commit.
func (a *actor) take(letters ...letter) {
	if len(letters) == 0 {
		return
	}
	ids := make([]uint64, len(letters))
	if a.taken == nil {
		a.taken = map[uint64]bool{}
	}
	for i, l := range letters {
		ids[i] = l.id
		a.taken[l.id] = true
	}
	a.also(func(tx memory.Tx) error { return tx.Inbox().Remove(a.session, ids...) })
}

// add applies an entry to the state and journals it with the next commit.
func (a *actor) add(e entry) error {
	now := time.Now().UTC()
	line, err := encode(e, now)
	if err != nil {
		return err
	}
	// The state takes what a restart would read back: the decoded line, not the value.
	read, err := decode(line)
	if err != nil {
		return err
	}
	a.state.apply(read, now)
	a.pending = append(a.pending, line)
	return nil
}

// also does something in the transaction of the next commit.
func (a *actor) also(fn func(memory.Tx) error) { a.alongside = append(a.alongside, fn) }

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
	}
	a.also(func(tx memory.Tx) error { return Send(tx, r) })
	a.after = append(a.after, a.Outgoing)
}

// commit puts everything that is pending on disk, all or nothing. After an error the state is ahead of the disk, so
// the actor must end.
func (a *actor) commit() error {
	if len(a.pending) == 0 && len(a.alongside) == 0 {
		return nil
	}
	last := a.state.last
	// Nothing may cut a commit short: a Stop would leave the state ahead of the disk.
	err := a.Store.Update(context.Background(), func(tx memory.Tx) (err error) {
		if len(a.pending) > 0 {
			if last, err = tx.Journal().Append(a.session, a.pending...); err != nil {
				return err
			}
		}
		for _, fn := range a.alongside {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write to session %s: %w", a.session, err)
	}
	a.state.last = last
	after := a.after
	a.pending, a.alongside, a.after, a.taken = nil, nil, nil, nil
	for _, fn := range after {
		fn()
	}
	return nil
}

// wake reads the journal, unless the state that it folds to was kept, and mends what a crash cut off.
func (a *actor) wake() error {
	a.mu.Lock()
	kept := a.shelf.take(a.session)
	a.mu.Unlock()
	err := a.Store.View(context.Background(), func(tx memory.Tx) error {
		last, err := tx.Journal().Last(a.session)
		if err == nil && kept != nil && kept.last == last {
			a.state = kept
			return nil
		}
		a.state, err = load(tx, a.session)
		return err
	})
	if err != nil {
		return err
	}
	a.fresh = false
	if err := a.mend(); err != nil {
		return err
	}
	return a.commit()
}

// reread takes back what was applied to the state and not committed.
func (a *actor) reread() error {
	a.pending, a.alongside, a.after, a.taken = nil, nil, nil, nil
	return a.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		a.state, err = load(tx, a.session)
		return err
	})
}

// newID makes an id that nobody can guess, from 50 random bits, easy to type.
func newID(prefix string) string {
	return prefix + strings.ToLower(rand.Text()[:10])
}
