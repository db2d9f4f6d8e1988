package diary

import (
	"errors"
	"fmt"

	"nudge/memory"
)

// The bounds of what is noted of one person, so that nobody fills the memory of the program for everybody. What comes with an
// account that is linked, or goes with one that is parted, is not held to them.
const (
	MostNotes = 10_000
	MostBytes = 8 << 20 // of their rows
)

// ErrFull is wrapped by the error for a note for which there is no room any more.
var ErrFull = errors.New("no more fits into the diary")

// Room says whether a note may be added to those of a person, or take the place of the one with its id. The error for one that may
// not wraps [ErrFull]. One that says what another says already, or gets shorter, always may. It reads all the person's rows and
// decodes none.
func Room(tx memory.Tx, person string, n Note) error {
	w := writing{tx: tx, person: person, note: n}
	if _, known, err := w.named(textName(n.Text)); err != nil || known {
		return err
	}
	notes, bytes, was := 1, n.size(), 0
	err := tableNote.Table(tx).Scan(key(person, ""), func(name string, row []byte) error {
		if name == key(person, n.ID) {
			was = len(row)
			return nil
		}
		notes++
		bytes += len(row)
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("look what room the diary of %s has: %w", person, err)
	case was == 0 && notes > MostNotes:
		return fmt.Errorf("%w: %d notes are remembered, which is the most; delete some first", ErrFull, notes-1)
	case bytes > MostBytes && n.size() > was:
		return fmt.Errorf("%w: with this note it would have %d bytes and may have %d; delete some notes first", ErrFull, bytes, MostBytes)
	}
	return nil
}

// size is how many bytes a note takes, about.
func (n Note) size() int {
	const fields = 200
	size := fields + len(n.Text) + len(n.About)
	for _, alias := range n.Aliases {
		size += len(alias) + len(`"",`)
	}
	return size
}
