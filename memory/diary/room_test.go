package diary

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"nudge/memory"
)

// TestADiaryHasSoMuchRoom fills a diary with words, and then one with notes.
func TestADiaryHasSoMuchRoom(t *testing.T) {
	d := newDiary(t, Config{})
	fits := func(n Note) (err error) {
		t.Helper()
		viewErr := d.Store.View(context.Background(), func(tx memory.Tx) error {
			err = Room(tx, ann, n)
			return nil
		})
		if viewErr != nil {
			t.Fatal(viewErr)
		}
		return err
	}
	long := func(i int) Note {
		return Note{ID: fmt.Sprint("n", i), Text: fmt.Sprint(i, strings.Repeat(" ha", 40_000)), Scope: Private}
	}
	written := 0
	for ; written < 60 || written < 1000 && fits(long(written)) == nil; written++ {
		err := d.Store.Update(context.Background(), func(tx memory.Tx) error { // by itself, since words take long to be looked at
			return tableNote.Put(tx, key(ann, long(written).ID), long(written))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if bytes := written * 120_000; bytes > MostBytes || bytes < MostBytes*9/10 {
		t.Errorf("%d bytes were taken", bytes)
	}
	if written, err := d.Edit(context.Background(), annPrivate, "n0", "short"); err != nil || written.Text != "short" {
		t.Errorf("shorter: %v", err)
	}
	remember(t, d, ann, long(written))
	if _, err := d.Edit(context.Background(), annPrivate, "n0", long(-1).Text); !errors.Is(err, ErrFull) {
		t.Errorf("longer again: %v", err)
	}
	if err := fits(Note{Text: long(written).Text, Scope: Private}); err != nil {
		t.Errorf("what is known already: %v", err)
	}
	if err := fits(Note{Text: "small", Scope: Private}); err != nil {
		t.Errorf("a small one: %v", err)
	}
	err := d.Store.Update(context.Background(), func(tx memory.Tx) error {
		for i := range MostNotes {
			if err := tx.Table(string(tableNote)).Put(key("slack:T1:U2", fmt.Sprint(i)), []byte("{}")); err != nil {
				return err
			}
		}
		if err := Room(tx, "slack:T1:U2", Note{ID: "7", Text: "in its place", Scope: Private}); err != nil {
			t.Errorf("in the place of one: %v", err)
		}
		if err := Room(tx, "slack:T1:U2", Note{ID: "new", Text: "small", Scope: Private}); !errors.Is(err, ErrFull) {
			t.Errorf("too many: %v", err)
		}
		return errors.New("none of it is kept")
	})
	if err == nil {
		t.Error("it was kept")
	}
}
