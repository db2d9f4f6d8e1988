package diary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// Change says what became of a draft.
type Change string

// The changes.
const (
	Added    Change = "added"
	Same     Change = "same"     // there was the same note already, which is newer now
	Replaced Change = "replaced" // it took the place of an older one about the same
	Late     Change = "late"     // it was stated before one about the same that is there, and stands behind that
)

// Draft makes a note fit to be written and asks for its vectors. Where there are none to be had the note is found by its
// words, and [Diary.Run] asks again. It is not called within a transaction.
func (d *Diary) Draft(ctx context.Context, n Note) (Draft, error) {
	if err := n.check(); err != nil {
		return Draft{}, fmt.Errorf("write a note: %w", err)
	}
	if n.Said.IsZero() {
		n.Said = time.Now()
	}
	n.Said, n.Older, n.Newer = n.Said.UTC(), "", ""
	draft := Draft{Note: n}
	if d.isDown() {
		return draft, nil
	}
	asking, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	vectors, err := embed(asking, d.Embedder, n.spoken())
	if err != nil {
		d.fail(ctx, err)
		return draft, nil
	}
	draft.vectors, draft.model = vectors, d.Embedder.Model()
	return draft, nil
}

// spoken is the text that an embedder reads of a note.
func (n Note) spoken() string {
	return strings.Join(append([]string{n.Text, n.About}, n.Aliases...), "\n")
}

// Remember writes a note of a person's in a transaction of its own; see [Diary.Put].
func (d *Diary) Remember(ctx context.Context, person string, n Note) (written Note, change Change, err error) {
	draft, err := d.Draft(ctx, n)
	if err != nil {
		return Note{}, "", err
	}
	err = d.Store.Update(ctx, func(tx memory.Tx) (err error) {
		written, change, err = d.Put(tx, person, draft)
		return err
	})
	return written, change, err
}

// Put writes a draft within a transaction. The same words in another spelling are the same note, which is only made newer. A
// note about the same as another takes its place if it was stated later, and points to it; nothing is lost thereby.
func (d *Diary) Put(tx memory.Tx, person string, draft Draft) (Note, Change, error) {
	if err := (View{person, draft.Scope}).sound(); err != nil {
		return Note{}, "", err
	}
	w := writing{tx: tx, person: person, note: draft.Note, trait: trait{model: draft.model, vectors: draft.vectors}, model: d.Embedder.Model()}
	w.note.Written = time.Now().UTC()
	change, err := w.put()
	if err != nil {
		return Note{}, "", fmt.Errorf("write a note of %s: %w", person, err)
	}
	if draft.model != w.model {
		d.wake()
	}
	return w.note, change, nil
}

// writing is one note's way into the data file, or out of it.
type writing struct {
	tx     memory.Tx
	person string
	note   Note
	trait  trait
	model  string // of the vectors that notes are to have
}

func (w *writing) put() (Change, error) {
	same, err := w.merge()
	if err != nil {
		return "", err
	}
	n := &w.note
	n.Older, n.Newer = "", ""
	if err := w.save(); err != nil {
		return "", err
	}
	if n.About != "" {
		if err := w.order(n.About, n.ID); err != nil {
			return "", err
		}
	}
	switch {
	case same:
		return Same, nil
	case n.Newer != "":
		return Late, nil
	case n.Older != "":
		return Replaced, nil
	}
	return Added, nil
}

// merge takes the place of the same note in other spelling, if there is one.
func (w *writing) merge() (bool, error) {
	id, found, err := w.named(textName(w.note.Text))
	if err != nil || !found {
		return false, err
	}
	same, found, err := load(w.tx, w.person, id)
	if err != nil || !found || plain(same.Text) != plain(w.note.Text) {
		return false, err
	}
	n := &w.note
	n.ID = same.ID
	n.Origin.meet(same.Origin)
	n.Aliases = mergeAliases(slices.Clone(n.Aliases), same.Aliases)
	if n.About == "" {
		n.About = same.About
	}
	if same.Said.After(n.Said) {
		n.Said = same.Said
	}
	if plain(same.About) != plain(n.About) {
		return true, w.leave(same)
	}
	return true, nil
}

// save writes the note, and the name under which the next one like it finds it.
func (w *writing) save() error {
	w.trait.terms = w.note.trait().terms
	if err := save(w.tx, w.person, w.note, w.trait); err != nil {
		return err
	}
	if err := w.name(textName(w.note.Text), w.note.ID); err != nil {
		return err
	}
	before, err := stampOf(w.tx, w.person)
	if err != nil {
		return err
	}
	all := w.model
	if w.trait.model != w.model || before.changed != "" && before.model != w.model {
		all = ""
	}
	return touch(w.tx, w.person, all)
}

// leave takes a note out from among those about the same.
func (w *writing) leave(n Note) error {
	if n.About == "" {
		return nil
	}
	return w.order(n.About, "", n.ID)
}

// order lets the notes about a subject point to each other by when they were stated: the one stated last is the present one.
// Of two stated at one instant that is the one written last. added joins them, if it is not "", and gone do not stay.
func (w *writing) order(about, added string, gone ...string) error {
	name := aboutName(about)
	row, _, err := w.named(name)
	if err != nil {
		return err
	}
	ids := slices.DeleteFunc(strings.Fields(row), func(id string) bool { return id == added || slices.Contains(gone, id) })
	if added != "" {
		ids = append(ids, added)
	}
	var notes []Note
	var kept []string
	for _, id := range ids {
		n, found, err := load(w.tx, w.person, id)
		if err != nil {
			return err
		}
		if found && plain(n.About) == plain(about) {
			notes, kept = append(notes, n), append(kept, id)
		}
	}
	slices.SortStableFunc(notes, func(a, b Note) int { return a.Said.Compare(b.Said) })
	for i, n := range notes {
		was := n
		n.Older, n.Newer = "", ""
		if i > 0 {
			n.Older = notes[i-1].ID
		}
		if i+1 < len(notes) {
			n.Newer = notes[i+1].ID
		}
		if n.ID == w.note.ID {
			w.note.Older, w.note.Newer = n.Older, n.Newer
		}
		if n.Older != was.Older || n.Newer != was.Newer {
			if err := w.resave(n); err != nil {
				return err
			}
		}
	}
	return w.name(name, kept...)
}

// resave writes a note that has only got other neighbours.
func (w *writing) resave(n Note) error {
	t, err := loadTrait(w.tx, w.person, n)
	if err != nil {
		return err
	}
	return save(w.tx, w.person, n, t)
}

func (w *writing) named(name string) (ids string, found bool, err error) {
	row, found, err := w.tx.Table(tableName).Get(key(w.person, w.note.Scope, name))
	return string(row), found, err
}

// name lets a name lead to notes, or to nothing.
func (w *writing) name(name string, ids ...string) error {
	row := key(w.person, w.note.Scope, name)
	if len(ids) == 0 {
		return w.tx.Table(tableName).Delete(row)
	}
	return w.tx.Table(tableName).Put(row, []byte(strings.Join(ids, " ")))
}

// textName and aboutName are names that texts have in whatever spelling. They say nothing of the words.
func textName(text string) string   { return "t" + digest(text) }
func aboutName(about string) string { return "a" + digest(about) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(plain(text)))
	return hex.EncodeToString(sum[:16])
}

// Redraft makes a draft of a note of the person's that a view shows, with another text. The error for one that it does not
// show wraps [ErrUnknownNote].
func (d *Diary) Redraft(ctx context.Context, v View, id, text string) (Draft, error) {
	var n Note
	err := d.Store.View(ctx, func(tx memory.Tx) (err error) {
		n, err = Get(tx, v, id)
		return err
	})
	if err != nil {
		return Draft{}, err
	}
	n.Text, n.Said = text, time.Now()
	return d.Draft(ctx, n)
}

// Rewrite puts a draft that [Diary.Redraft] made in the note's place. The error for one that is too long for the diary wraps
// [ErrFull]; nothing was changed then.
func (d *Diary) Rewrite(tx memory.Tx, v View, id string, draft Draft) (Note, error) {
	if err := Room(tx, v.Person, draft.Note); err != nil {
		return Note{}, err
	}
	if _, err := d.Delete(tx, v, id); err != nil {
		return Note{}, err
	}
	n, _, err := d.Put(tx, v.Person, draft)
	return n, err
}

// Edit is both in a transaction of its own.
func (d *Diary) Edit(ctx context.Context, v View, id, text string) (written Note, err error) {
	draft, err := d.Redraft(ctx, v, id, text)
	if err != nil {
		return Note{}, err
	}
	err = d.Store.Update(ctx, func(tx memory.Tx) (err error) {
		written, err = d.Rewrite(tx, v, id, draft)
		return err
	})
	return written, err
}

// Delete removes a note of the person's that a view shows, and what it is found by. The error for one that it does not show
// wraps [ErrUnknownNote]. The note in whose place it had come is the present one again.
func (d *Diary) Delete(tx memory.Tx, v View, id string) (Note, error) {
	n, err := Get(tx, v, id)
	if err != nil {
		return Note{}, err
	}
	w := writing{tx: tx, person: v.Person, note: n}
	for _, table := range []string{string(tableNote), tableTrait} {
		if err := tx.Table(table).Delete(key(v.Person, n.ID)); err != nil {
			return Note{}, err
		}
	}
	if err := w.leave(n); err != nil {
		return Note{}, err
	}
	if id, _, err := w.named(textName(n.Text)); err != nil {
		return Note{}, err
	} else if id == n.ID {
		if err := w.name(textName(n.Text)); err != nil {
			return Note{}, err
		}
	}
	if err := memory.Gone(tx); err != nil {
		return Note{}, err
	}
	return n, d.changed(tx, v.Person)
}

// changed is touch, or the end of a diary that has no note left.
func (d *Diary) changed(tx memory.Tx, person string) error {
	d.shelf.drop(person)
	left := false
	err := tableNote.Table(tx).Scan(key(person, ""), func(string, []byte) error {
		left = true
		return memory.ErrStop
	})
	if err != nil {
		return err
	}
	if !left {
		return tx.Table(tableStamp).Delete(person)
	}
	before, err := stampOf(tx, person)
	if err != nil {
		return err
	}
	return touch(tx, person, before.model)
}

// Same finds the note that a draft says again; false when it says something new.
func (d *Diary) Same(ctx context.Context, person string, draft Draft) (same Note, found bool, err error) {
	err = d.Store.View(ctx, func(tx memory.Tx) error {
		w := writing{tx: tx, person: person, note: draft.Note}
		id, named, err := w.named(textName(draft.Text))
		if err != nil || !named {
			found = false
			return err
		}
		same, found, err = load(tx, person, id)
		found = found && plain(same.Text) == plain(draft.Text)
		return err
	})
	return same, found, err
}
