package bolt

import (
	"bytes"
	"fmt"

	"nudge/memory"
)

// inbox keeps mail under its session's name and its id, so that a session's mail lies together in order.
type inbox struct{ tx *tx }

func (i inbox) Put(session string, data []byte) (id uint64, err error) {
	defer i.tx.guard(i.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return 0, fmt.Errorf("put mail: %w", err)
	}
	b, err := i.tx.writing(inboxBucket)
	if err != nil {
		return 0, fmt.Errorf("put mail for session %q: %w", session, err)
	}
	if id, err = b.NextSequence(); err == nil {
		err = b.Put(appendNumber(appendName(nil, session), id), clone(data))
	}
	if err != nil {
		return 0, fmt.Errorf("put mail for session %q: %w", session, err)
	}
	return id, nil
}

func (i inbox) List(session string) (mail []memory.Mail, err error) {
	defer i.tx.guard(i.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return nil, fmt.Errorf("list mail: %w", err)
	}
	b, err := i.tx.reading(inboxBucket)
	if err != nil {
		return nil, fmt.Errorf("list mail of session %q: %w", session, err)
	}
	prefix := appendName(nil, session)
	c := b.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		touch(k, v)
		id, _, err := cutNumber(k[len(prefix):])
		if err != nil {
			return nil, i.tx.damagedBy(err)
		}
		mail = append(mail, memory.Mail{ID: id, Session: session, Data: clone(v)})
	}
	return mail, nil
}

func (i inbox) Remove(session string, ids ...uint64) (err error) {
	defer i.tx.guard(i.tx.enter(), &err)
	if err := checkName("session", session); err != nil {
		return fmt.Errorf("remove mail: %w", err)
	}
	b, err := i.tx.writing(inboxBucket)
	if err != nil {
		return fmt.Errorf("remove mail of session %q: %w", session, err)
	}
	prefix := appendName(nil, session)
	for _, id := range ids {
		if err := b.Delete(appendNumber(prefix, id)); err != nil {
			return fmt.Errorf("remove mail %d of session %q: %w", id, session, err)
		}
	}
	return nil
}

func (i inbox) Sessions() (sessions []string, err error) {
	defer i.tx.guard(i.tx.enter(), &err)
	b, err := i.tx.reading(inboxBucket)
	if err != nil {
		return nil, fmt.Errorf("list sessions with mail: %w", err)
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; {
		touch(k, v)
		session, rest, err := cutName(k)
		if err != nil {
			return nil, i.tx.damagedBy(err)
		}
		sessions = append(sessions, session)
		// One seek for each session, however much mail it has. No id is as high as this one.
		k, v = c.Seek(append(clone(k[:len(k)-len(rest)]), bytes.Repeat([]byte{0xff}, numberSize+1)...))
	}
	return sessions, nil
}
