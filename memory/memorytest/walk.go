package memorytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/memory"
)

// oddNames are good names of the kinds that break careless keys, in no order.
var oddNames = []string{
	"a", "aa", "b", "a\x00", "a\x00b", "a\x00\x01", "a\x00\xff", "a\x01", "\x00", "\x00\x00", "\xff", "\xff\xff",
	"a:b", "a/b", "a/../b", "slack:T/C 1", " ", "é", "👋", "a\n", strings.Repeat("n", memory.MaxID),
	strings.Repeat("\x00", memory.MaxID), strings.Repeat("\xff", memory.MaxID),
}

// errGiveUp ends an update on purpose.
var errGiveUp = errors.New("give up")

// walker does the same random work on a store and on a model.
type walker struct {
	store memory.Store
	now   *model // what is committed
	draft *model // what the update under way has made of it
}

// randomWalk compares a store with a model of the same meaning through random transactions and reopenings.
func randomWalk(t *testing.T, open func(t *testing.T, dir string) memory.Store) {
	rapid.Check(t, func(r *rapid.T) {
		dir := Dir(t)
		w := &walker{store: open(t, dir), now: newModel()}
		defer func() {
			if err := w.store.Close(); err != nil {
				r.Errorf("close: %v", err)
			}
		}()
		r.Repeat(map[string]func(*rapid.T){
			"write":  w.write,
			"write ": w.write, // writing is what most is to be learnt from
			"read":   func(r *rapid.T) { view(r, w.store, func(tx memory.Tx) error { return w.now.compare(tx) }) },
			"reopen": func(r *rapid.T) {
				if rapid.IntRange(0, 3).Draw(r, "seldom") != 0 {
					return
				}
				if err := w.store.Close(); err != nil {
					r.Fatalf("close: %v", err)
				}
				w.store = open(t, dir)
			},
		})
		view(r, w.store, func(tx memory.Tx) error { return w.now.compare(tx) })
	})
}

// write runs one update of several steps, and now and then gives it up at its end.
func (w *walker) write(r *rapid.T) {
	steps := rapid.IntRange(1, 8).Draw(r, "steps")
	giveUp := rapid.IntRange(0, 4).Draw(r, "give up") == 0
	kinds := []func(*rapid.T) func(memory.Tx) error{w.mail, w.entries, w.parcels, w.keys, w.rows, w.tables}
	plan := make([]func(memory.Tx) error, steps)
	for i := range plan { // all that is random is drawn before, since a store may run the function again
		plan[i] = rapid.SampledFrom(kinds).Draw(r, "place")(r)
	}
	err := w.store.Update(context.Background(), func(tx memory.Tx) error {
		w.draft = w.now.clone()
		for _, step := range plan {
			if err := step(tx); err != nil {
				return err
			}
		}
		if giveUp {
			return errGiveUp
		}
		return w.draft.compare(tx)
	})
	switch {
	case giveUp && errors.Is(err, errGiveUp):
	case err != nil || giveUp:
		r.Fatalf("update: %v", err)
	default:
		w.now = w.draft
	}
}

func drawName(r *rapid.T) string { return rapid.SampledFrom(oddNames).Draw(r, "name") }

func drawData(r *rapid.T) []byte {
	size := rapid.SampledFrom([]int{0, 1, 30, 300, 1200, 5000}).Draw(r, "size")
	return []byte(strings.Repeat(rapid.SampledFrom([]string{"x", "\x00", "\xff"}).Draw(r, "byte"), size))
}

// drawTime draws instants that often meet, some before 1970, some in another zone.
func drawTime(r *rapid.T) time.Time {
	seconds := rapid.SampledFrom([]int64{-62135596800, -3_000_000_000, -1, 0, 1, 1_796_032_800, 253402300799}).Draw(r, "second")
	at := time.Unix(seconds, int64(rapid.SampledFrom([]int{0, 1, 999_999_999}).Draw(r, "nanosecond")))
	if rapid.Bool().Draw(r, "elsewhere") {
		return at.In(time.FixedZone("elsewhere", 3*3600))
	}
	return at.UTC()
}

func (w *walker) mail(r *rapid.T) func(memory.Tx) error {
	session, data := drawName(r), drawData(r)
	if rapid.IntRange(0, 2).Draw(r, "what") > 0 {
		return func(tx memory.Tx) error {
			id, err := tx.Inbox().Put(session, data)
			if n := len(w.draft.inbox); n > 0 && id <= w.draft.inbox[n-1].ID {
				return fmt.Errorf("mail %d after %d", id, w.draft.inbox[n-1].ID)
			}
			w.draft.inbox = append(w.draft.inbox, memory.Mail{ID: id, Session: session, Data: data})
			return err
		}
	}
	which := rapid.Uint64().Draw(r, "which")
	return func(tx memory.Tx) error {
		ids := []uint64{1 << 60}
		for i, m := range w.draft.inbox {
			if which>>(i%64)&1 == 1 { // also mail of other sessions, which must stay
				ids = append(ids, m.ID)
			}
		}
		w.draft.removeMail(session, ids)
		return tx.Inbox().Remove(session, ids...)
	}
}

func (w *walker) entries(r *rapid.T) func(memory.Tx) error {
	session := drawName(r)
	if rapid.IntRange(0, 6).Draw(r, "what") == 0 {
		return func(tx memory.Tx) error {
			n, err := tx.Journal().Erase(session)
			return errors.Join(err, expect("erased", n, w.draft.erase(session)))
		}
	}
	var list []memory.Entry
	for range rapid.IntRange(0, 12).Draw(r, "entries") {
		kind := rapid.SampledFrom([]string{"", "said", "é\x00"}).Draw(r, "kind")
		list = append(list, memory.Entry{Kind: kind, At: drawTime(r), Data: drawData(r)})
	}
	return func(tx memory.Tx) error {
		last, err := tx.Journal().Append(session, list...)
		return errors.Join(err, expect("last", last, w.draft.append(session, list)))
	}
}

func (w *walker) parcels(r *rapid.T) func(memory.Tx) error {
	what, which := rapid.IntRange(0, 4).Draw(r, "what"), rapid.IntRange(0, 1000).Draw(r, "which")
	fresh := memory.Parcel{Conversation: drawName(r), Data: drawData(r)}
	changed := memory.Parcel{
		Conversation: "must be ignored", Data: []byte("too"),
		State:   rapid.SampledFrom([]string{"", "tried", "\x00"}).Draw(r, "state"),
		Tries:   rapid.IntRange(0, 1000).Draw(r, "tries"),
		Receipt: strings.Repeat("r", rapid.IntRange(0, 300).Draw(r, "receipt")),
	}
	return func(tx memory.Tx) error {
		if what < 2 || len(w.draft.outbox) == 0 {
			return w.putParcel(tx, fresh)
		}
		p := changed
		p.ID = w.draft.outbox[which%len(w.draft.outbox)].ID
		if what == 2 {
			ids := []uint64{p.ID, 1 << 60}
			w.draft.removeParcels(ids)
			return tx.Outbox().Remove(ids...)
		}
		w.draft.set(p)
		return tx.Outbox().Set(p)
	}
}

func (w *walker) putParcel(tx memory.Tx, p memory.Parcel) error {
	id, err := tx.Outbox().Put(p.Conversation, p.Data)
	if n := len(w.draft.outbox); n > 0 && id <= w.draft.outbox[n-1].ID {
		return fmt.Errorf("parcel %d after %d", id, w.draft.outbox[n-1].ID)
	}
	p.ID = id
	w.draft.outbox = append(w.draft.outbox, p)
	last, err2 := tx.Outbox().Last()
	return errors.Join(err, err2, expect("the last parcel", last, id))
}

func (w *walker) keys(r *rapid.T) func(memory.Tx) error {
	key, at, limit := drawName(r), drawTime(r), rapid.IntRange(0, 10).Draw(r, "limit")
	if rapid.IntRange(0, 3).Draw(r, "what") > 0 {
		return func(tx memory.Tx) error {
			fresh, err := tx.Seen().Mark(key, at)
			return errors.Join(err, expect("fresh", fresh, w.draft.mark(key, at)))
		}
	}
	return func(tx memory.Tx) error {
		n, err := tx.Seen().Sweep(at, limit)
		old := w.draft.old(at)
		if err := errors.Join(err, expect("forgotten", n, min(limit, len(old)))); err != nil {
			return err
		}
		// Which keys a sweep with a limit forgets first is not promised; marking them again tells, and restores.
		forgotten := 0
		for _, key := range old {
			fresh, err := tx.Seen().Mark(key, w.draft.seen[key])
			if err != nil {
				return err
			}
			if fresh {
				forgotten++
			}
		}
		return expect("fresh again", forgotten, n)
	}
}

func (w *walker) rows(r *rapid.T) func(memory.Tx) error {
	d := memory.DueRow{Key: drawName(r), At: drawTime(r), Data: drawData(r)}
	remove := rapid.IntRange(0, 3).Draw(r, "what") == 0
	return func(tx memory.Tx) error {
		if remove {
			delete(w.draft.due, d.Key)
			return tx.Due().Remove(d.Key)
		}
		if err := tx.Due().Put(d); err != nil {
			return err
		}
		w.draft.due[d.Key] = memory.DueRow{Key: d.Key, At: d.At.UTC(), Data: d.Data}
		return nil
	}
}

func (w *walker) tables(r *rapid.T) func(memory.Tx) error {
	name, key, value := rapid.SampledFrom(oddNames[:6]).Draw(r, "table"), drawName(r), drawData(r)
	remove := rapid.IntRange(0, 3).Draw(r, "what") == 0
	return func(tx memory.Tx) error {
		if remove {
			delete(w.draft.tables[name], key)
			return tx.Table(name).Delete(key)
		}
		w.draft.put(name, key, value)
		return tx.Table(name).Put(key, value)
	}
}

// compare reads everything in a transaction and says what differs from the model.
func (m *model) compare(tx memory.Tx) error {
	return errors.Join(m.compareMail(tx), m.compareJournals(tx), m.compareOutbox(tx), m.compareDue(tx), m.compareTables(tx))
}

func (m *model) compareMail(tx memory.Tx) error {
	sessions, err := tx.Inbox().Sessions()
	slices.Sort(sessions)
	errs := []error{err, differ("sessions with mail", sessions, m.sessionsWithMail(), sameString)}
	for _, name := range oddNames {
		mail, err := tx.Inbox().List(name)
		errs = append(errs, err, differ("mail", mail, m.mailOf(name), sameMail))
	}
	return errors.Join(errs...)
}

func (m *model) compareJournals(tx memory.Tx) error {
	var errs []error
	for i, name := range oddNames {
		last, err := tx.Journal().Last(name)
		want := m.journal[name]
		errs = append(errs, err, expect("last", last, uint64(len(want))))
		after := min(i, len(want))
		list, err := entries(tx, name, uint64(after))
		errs = append(errs, err, differ("entries", list, want[after:], sameEntry))
	}
	for _, first := range []string{"", "a\x00", "a\x00\x02", "\xff"} {
		var wantNames []string
		var wantNewest []memory.Entry
		for _, name := range slices.Sorted(slices.Values(oddNames)) {
			if list := m.journal[name]; len(list) > 0 && name >= first {
				wantNames, wantNewest = append(wantNames, name), append(wantNewest, list[len(list)-1])
			}
		}
		names, newest, err := journals(tx, first)
		errs = append(errs, err, differ("journals", names, wantNames, sameString), differ("newest", newest, wantNewest, sameEntry))
	}
	return errors.Join(errs...)
}

func (m *model) compareOutbox(tx memory.Tx) error {
	list, err := parcels(tx, 0)
	if err := errors.Join(err, differ("parcels", list, m.outbox, sameParcel)); err != nil || len(list) == 0 {
		return err
	}
	half := len(list) / 2
	rest, err := parcels(tx, list[half].ID)
	return errors.Join(err, differ("parcels after one", rest, m.outbox[half+1:], sameParcel))
}

func (m *model) compareDue(tx memory.Tx) error {
	list, err := dueRows(tx)
	errs := []error{err, differ("due rows", list, m.dueRows(), sameDue)}
	for _, key := range oddNames {
		got, found, err := tx.Due().Get(key)
		want, there := m.due[key]
		errs = append(errs, err, expect("found", found, there))
		if found && there && !sameDue(got, want) {
			errs = append(errs, fmt.Errorf("due row: got %v, want %v", got, want))
		}
	}
	return errors.Join(errs...)
}

func (m *model) compareTables(tx memory.Tx) error {
	var errs []error
	for _, name := range oddNames[:6] {
		for _, prefix := range []string{"", "a", "a\x00", "\xff", "\xff\xff", "none", strings.Repeat("\xff", memory.MaxID)} {
			want := m.rows(name, prefix)
			got, err := tableRows(tx, name, prefix)
			errs = append(errs, err, differ("rows", got, want, sameRow))
			back, err := tableRowsBack(tx, name, prefix)
			slices.Reverse(back)
			errs = append(errs, err, differ("rows from the end", back, want, sameRow))
		}
		for _, key := range oddNames {
			got, found, err := tx.Table(name).Get(key)
			want, there := m.tables[name][key]
			errs = append(errs, err, expect("found", found, there), differ("row", got, want, func(a, b byte) bool { return a == b }))
		}
	}
	return errors.Join(errs...)
}
