package diary

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nudge/memory"
)

// Get is a note of the person's that a view shows. The error for one that it does not show wraps [ErrUnknownNote].
func Get(tx memory.Tx, v View, id string) (Note, error) {
	if err := v.sound(); err != nil {
		return Note{}, err
	}
	if strings.ContainsRune(id, 0) || len(id) > memory.MaxID/2 {
		return Note{}, ErrUnknownNote
	}
	n, found, err := load(tx, v.Person, id)
	if err == nil && (!found || !v.shows(n.Scope)) {
		err = fmt.Errorf("look for note %.40q: %w", id, ErrUnknownNote)
	}
	return n, err
}

// List are the notes of the person's that a view shows, the one stated last first.
func List(tx memory.Tx, v View) ([]Note, error) {
	if err := v.sound(); err != nil {
		return nil, err
	}
	var notes []Note
	err := tableNote.Scan(tx, key(v.Person, ""), func(_ string, n Note) error {
		if v.shows(n.Scope) {
			notes = append(notes, n)
		}
		return nil
	})
	slices.SortStableFunc(notes, func(a, b Note) int { return b.Said.Compare(a.Said) })
	return notes, err
}

// Forgotten is what was removed of a person's diary.
type Forgotten struct {
	Notes   int
	Vectors int // that notes were found by
}

// Forget removes all that a person's diary has, within a transaction: notes, what they are found by, and the indexes in
// memory. For its bytes to leave the data file as well, the transaction says
// [memory.Gone].
func (d *Diary) Forget(tx memory.Tx, person string) (Forgotten, error) {
	var gone Forgotten
	if person == "" {
		return gone, errors.New("forget a diary: it is not said whose")
	}
	err := tx.Table(tableTrait).Scan(key(person, ""), func(_ string, row []byte) error {
		if t, err := decodeTrait(row); err == nil {
			gone.Vectors += len(t.vectors)
		}
		return nil
	})
	for _, table := range []string{string(tableNote), tableTrait, tableName} {
		if err != nil {
			break
		}
		var removed []string
		removed, err = memory.RemoveRows(tx.Table(table), key(person, ""), nil)
		if table == string(tableNote) {
			gone.Notes = len(removed)
		}
	}
	if err == nil {
		err = tx.Table(tableStamp).Delete(person)
	}
	if err != nil {
		return Forgotten{}, fmt.Errorf("forget the diary of %s: %w", person, err)
	}
	d.shelf.drop(person)
	return gone, nil
}

// Move gives all notes of a person to another, within a transaction, and returns how many those were. Which of two notes
// about the same is the present one is told by when they were stated.
func (d *Diary) Move(tx memory.Tx, from, to string) (moved int, err error) {
	if from == "" || to == "" || from == to {
		return 0, errors.New("move a diary: it is not said whose, or to whom")
	}
	notes, err := List(tx, View{from, Private})
	if err != nil {
		return 0, err
	}
	slices.Reverse(notes) // the one stated first comes first
	for _, n := range notes {
		t, err := loadTrait(tx, from, n)
		if err != nil {
			return 0, err
		}
		n.Older, n.Newer = "", ""
		if _, _, err := d.Put(tx, to, Draft{Note: n, model: t.model, vectors: t.vectors}); err != nil {
			return 0, err
		}
	}
	_, err = d.Forget(tx, from)
	return len(notes), err
}

// Check looks whether what the tables of the diary say agrees, and calls report with each problem: one line that says what
// is wrong and what to do.
func Check(tx memory.Tx, report func(problem string)) error {
	err := tableNote.Table(tx).Scan("", func(name string, row []byte) error {
		person, id, _ := strings.Cut(name, "\x00")
		var n Note
		if err := json.Unmarshal(row, &n); err != nil {
			report(fmt.Sprintf("note %s of %s cannot be read; delete it", id, person))
			return nil
		}
		found, there, err := tx.Table(tableTrait).Get(name)
		if err != nil {
			return err
		}
		if t, err := decodeTrait(found); !there || err != nil || t.scope != n.Scope {
			report(fmt.Sprintf("what note %s of %s is found by is missing or wrong; edit the note to have it made anew", id, person))
		}
		if stamp, err := stampOf(tx, person); err != nil {
			return err
		} else if stamp.changed == "" {
			report(fmt.Sprintf("the diary of %s counts as empty and has note %s; remember something to mend that", person, id))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Table(tableTrait).Scan("", func(name string, _ []byte) error {
		there, err := tableNote.Has(tx, name)
		if person, id, _ := strings.Cut(name, "\x00"); err == nil && !there {
			report(fmt.Sprintf("note %s of %s is gone and what it was found by is not; forget the diary of that person", id, person))
		}
		return err
	})
}
