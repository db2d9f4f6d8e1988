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

// writing is one note's way into the data file.
type writing struct {
	tx     memory.Tx
	person string
	note   Note
	trait  trait
	model  string // of the vectors that notes are to have
}

func (w *writing) put() (Change, error) {
	change, err := w.merge()
	if err != nil {
		return "", err
	}
	if placed, err := w.place(); err != nil {
		return "", err
	} else if change == Added {
		change = placed
	}
	return change, w.save()
}

// merge takes the place of the same note in other spelling, if there is one.
func (w *writing) merge() (Change, error) {
	id, found, err := w.named(textName(w.note.Text))
	if err != nil || !found {
		return Added, err
	}
	same, found, err := load(w.tx, w.person, id)
	if err != nil || !found || plain(same.Text) != plain(w.note.Text) {
		return Added, err
	}
	n := &w.note
	n.ID, n.Older, n.Newer = same.ID, same.Older, same.Newer
	n.Aliases = mergeAliases(slices.Clone(n.Aliases), same.Aliases)
	if n.About == "" {
		n.About = same.About
	}
	if plain(n.About) != plain(same.About) {
		if err := w.unlink(); err != nil {
			return "", err
		}
	}
	if same.Said.After(n.Said) {
		n.Said = same.Said
	}
	return Same, nil
}

// place puts the note among those about the same: the one stated last is the present one.
func (w *writing) place() (Change, error) {
	n := &w.note
	if n.About == "" {
		return Added, nil
	}
	id, found, err := w.named(aboutName(n.About))
	if err != nil || !found || id == n.ID {
		return Added, err
	}
	present, found, err := load(w.tx, w.person, id)
	if err != nil || !found || plain(present.About) != plain(n.About) {
		return Added, err
	}
	if err := w.unlink(); err != nil { // of what was said before, said again
		return "", err
	}
	if present, _, err = load(w.tx, w.person, id); err != nil {
		return "", err
	}
	if !n.Said.Before(present.Said) {
		n.Older, n.Newer = present.ID, ""
		present.Newer = n.ID
		return Replaced, w.resave(present)
	}
	return Late, w.insert(present)
}

// insert puts the note behind those that were stated after it.
func (w *writing) insert(newer Note) error {
	n := &w.note
	for range longestChain {
		older, found, err := load(w.tx, w.person, newer.Older)
		if err != nil {
			return err
		}
		if !found || !older.Said.After(n.Said) {
			n.Newer, n.Older = newer.ID, ""
			if found {
				n.Older, older.Newer = older.ID, n.ID
				if err := w.resave(older); err != nil {
					return err
				}
			}
			newer.Older = n.ID
			return w.resave(newer)
		}
		newer = older
	}
	n.Newer = newer.ID
	return nil
}

// unlink takes the note out from between its older and its newer.
func (w *writing) unlink() error {
	n := &w.note
	older, hasOlder, err := load(w.tx, w.person, n.Older)
	if err != nil {
		return err
	}
	newer, hasNewer, err := load(w.tx, w.person, n.Newer)
	if err != nil {
		return err
	}
	if hasOlder {
		older.Newer = n.Newer
		if err := w.resave(older); err != nil {
			return err
		}
	}
	if hasNewer {
		newer.Older = n.Older
		if err := w.resave(newer); err != nil {
			return err
		}
	}
	n.Older, n.Newer = "", ""
	return nil
}

// resave writes another note of the person's that has only got other neighbours.
func (w *writing) resave(n Note) error {
	t, err := loadTrait(w.tx, w.person, n)
	if err != nil {
		return err
	}
	return save(w.tx, w.person, n, t)
}

// save writes the note, and the names under which it is found by the next one like it.
func (w *writing) save() error {
	n := w.note
	w.trait.terms = n.trait().terms
	if err := save(w.tx, w.person, n, w.trait); err != nil {
		return err
	}
	names := []string{textName(n.Text)}
	if n.About != "" && n.Newer == "" {
		names = append(names, aboutName(n.About))
	}
	for _, name := range names {
		if err := w.tx.Table(tableName).Put(key(w.person, n.Scope, name), []byte(n.ID)); err != nil {
			return err
		}
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

func (w *writing) named(name string) (id string, found bool, err error) {
	row, found, err := w.tx.Table(tableName).Get(key(w.person, w.note.Scope, name))
	return string(row), found, err
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

// Rewrite puts a draft that [Diary.Redraft] made in the note's place.
func (d *Diary) Rewrite(tx memory.Tx, v View, id string, draft Draft) (Note, error) {
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
	if err := w.unlink(); err != nil {
		return Note{}, err
	}
	for name, heir := range map[string]string{textName(n.Text): "", aboutName(n.About): n.Older} {
		if id, found, err := w.named(name); err != nil || !found || id != n.ID {
			if err != nil {
				return Note{}, err
			}
			continue
		}
		row := key(v.Person, n.Scope, name)
		if heir == "" {
			err = tx.Table(tableName).Delete(row)
		} else {
			err = tx.Table(tableName).Put(row, []byte(heir))
		}
		if err != nil {
			return Note{}, err
		}
	}
	for _, table := range []string{tableNote, tableTrait} {
		if err := tx.Table(table).Delete(key(v.Person, n.ID)); err != nil {
			return Note{}, err
		}
	}
	return n, d.changed(tx, v.Person)
}

// changed is touch, or the end of a diary that has no note left.
func (d *Diary) changed(tx memory.Tx, person string) error {
	d.shelf.drop(person)
	left := false
	err := tx.Table(tableNote).Scan(key(person, ""), func(string, []byte) error {
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
