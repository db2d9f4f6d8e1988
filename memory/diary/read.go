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
// about the same is the present one is told by when they were stated. account is the only one that the person had until now,
// with which all was said of which it is not known; "" when they had several.
func (d *Diary) Move(tx memory.Tx, from, to, account string) (moved int, err error) {
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
		if n.Origin.Account == "" {
			n.Origin.Account = account
			n.Origin.Also = n.Origin.but(n.Origin.Also)
		}
		if _, _, err := d.Put(tx, to, Draft{Note: n, model: t.model, vectors: t.vectors}); err != nil {
			return 0, err
		}
	}
	_, err = d.Forget(tx, from)
	return len(notes), err
}

// Part gives all notes of a person that were said with one of their accounts to whoever has that account alone, within a
// transaction, and returns how many those were. What was said with others too, or may have been, stays as well.
func (d *Diary) Part(tx memory.Tx, person, account string) (went int, err error) {
	if person == "" || account == "" || person == account {
		return 0, errors.New("part a diary: it is not said whose, or with whom it goes")
	}
	notes, err := List(tx, View{person, Private})
	if err != nil {
		return 0, err
	}
	slices.Reverse(notes) // the one stated first comes first
	for _, n := range notes {
		said, rest, others := n.Origin.of(account)
		if !said {
			continue
		}
		if err := d.part(tx, person, account, n.ID, rest, others); err != nil {
			return 0, fmt.Errorf("part note %s of %s: %w", n.ID, person, err)
		}
		went++
	}
	return went, nil
}

// part gives one note to an account; if others said it too, a copy of it, and rest is the origin of what stays.
func (d *Diary) part(tx memory.Tx, person, account, id string, rest Origin, others bool) error {
	n, _, err := load(tx, person, id) // as it is among its neighbours by now
	if err != nil {
		return err
	}
	t, err := loadTrait(tx, person, n)
	if err != nil {
		return err
	}
	goes := n
	goes.Older, goes.Newer, goes.Origin.Account, goes.Origin.Also = "", "", account, nil
	if others {
		goes.ID, n.Origin = newID(), rest // two notes from here on, which may both be edited and then be one person's again
		err = errors.Join(save(tx, person, n, t), d.changed(tx, person))
	} else {
		_, err = d.Delete(tx, View{person, Private}, n.ID)
	}
	if err != nil {
		return err
	}
	_, _, err = d.Put(tx, account, Draft{Note: goes, model: t.model, vectors: t.vectors})
	return err
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
