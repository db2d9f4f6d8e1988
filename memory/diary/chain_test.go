package diary

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"nudge/memory"
)

// Whatever is written, written again, edited and deleted, in whatever order it was stated: notes about the same are one chain
// by when they were stated, each pointing to its neighbours, and everything is found.
func TestChainsOfAnything(t *testing.T) {
	d := newDiary(t, Config{})
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		who := View{fmt.Sprintf("terminal:run%d", run), Private}
		steps := rapid.SliceOfN(rapid.Custom(drawChange), 1, 12).Draw(rt, "steps")
		var notes []Note
		err := d.Store.Update(t.Context(), func(tx memory.Tx) (err error) {
			for _, step := range steps {
				if err := step.do(d, tx, who, notes); err != nil {
					return err
				}
				if notes, err = List(tx, who); err != nil {
					return err
				}
				if fault := chainFault(notes); fault != "" {
					return errors.New(fault)
				}
			}
			var problems []error
			err = Check(tx, func(problem string) { problems = append(problems, errors.New(problem)) })
			return errors.Join(append(problems, err)...)
		})
		if err != nil {
			rt.Fatal(err)
		}
		for _, n := range notes {
			hits, err := d.Search(t.Context(), who, n.Text, 20)
			if err != nil || len(hits) == 0 {
				rt.Fatalf("%q is not found: %v", n.Text, err)
			}
		}
	})
}

// change is a note that is written, in the place of another or not, or another that is deleted.
type change struct {
	note            Note
	which           int
	deletes, writes bool
}

func drawChange(t *rapid.T) change {
	what := rapid.IntRange(0, 9).Draw(t, "what")
	return change{
		note: Note{
			Text: fmt.Sprintf("fact %d", rapid.IntRange(0, 7).Draw(t, "text")), Said: day(rapid.IntRange(1, 28).Draw(t, "day")),
			About: rapid.SampledFrom([]string{"", "a", "A ", "b"}).Draw(t, "about"), Scope: Private,
		},
		which: rapid.IntRange(0, 100).Draw(t, "which"), deletes: what < 2, writes: what > 0,
	}
}

func (c change) do(d *Diary, tx memory.Tx, who View, notes []Note) error {
	n := c.note
	if c.deletes && len(notes) > 0 {
		n.ID = notes[c.which%len(notes)].ID
		if _, err := d.Delete(tx, who, n.ID); err != nil || !c.writes {
			return err
		}
	}
	draft, err := d.Draft(context.Background(), n)
	if err == nil {
		_, _, err = d.Put(tx, who.Person, draft)
	}
	return err
}

// chainFault says what is wrong with how notes point to each other; "" when nothing is.
func chainFault(notes []Note) string {
	byID, texts, present := map[string]Note{}, map[string]bool{}, map[string]bool{}
	for _, n := range notes {
		byID[n.ID] = n
		if texts[plain(n.Text)] {
			return fmt.Sprintf("%q is there twice", n.Text)
		}
		texts[plain(n.Text)] = true
		if n.About != "" && n.Newer == "" {
			if present[plain(n.About)] {
				return fmt.Sprintf("about %q there are several present notes", n.About)
			}
			present[plain(n.About)] = true
		}
	}
	for _, n := range notes {
		older, newer := byID[n.Older], byID[n.Newer]
		if n.Older != "" && (older.Newer != n.ID || older.Said.After(n.Said) || plain(older.About) != plain(n.About)) {
			return fmt.Sprintf("%+v comes after %+v", n, older)
		}
		if n.Newer != "" && newer.Older != n.ID {
			return fmt.Sprintf("%+v comes before %+v", n, newer)
		}
	}
	return ""
}
