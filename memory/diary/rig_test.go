package diary

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudge/memory"
	"nudge/memory/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// day is an instant of November 2026.
func day(n int) time.Time { return time.Date(2026, 11, n, 9, 0, 0, 0, time.UTC) }

const ann = "slack:T1:U1"

var annPrivate = View{ann, Private}

// openStore opens a data file in a folder of the test's own and closes it at the end.
func openStore(t testing.TB, path string) memory.Store {
	t.Helper()
	store, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func newDiary(t testing.TB, c Config) *Diary {
	t.Helper()
	if c.Store == nil {
		c.Store = openStore(t, filepath.Join(t.TempDir(), "nudge.db"))
	}
	return New(c)
}

// remember writes a note and fails the test if that fails.
func remember(t testing.TB, d *Diary, person string, n Note) (Note, Change) {
	t.Helper()
	if n.Scope == "" {
		n.Scope = Private
	}
	written, change, err := d.Remember(t.Context(), person, n)
	if err != nil {
		t.Fatalf("remember %.60q: %v", n.Text, err)
	}
	return written, change
}

// recall gives the texts that were found, best first.
func recall(t testing.TB, d *Diary, v View, queries ...string) []string {
	t.Helper()
	hits, err := d.Recall(t.Context(), v, queries, 10)
	if err != nil {
		t.Fatalf("recall %q: %v", queries, err)
	}
	texts := []string{}
	for _, h := range hits {
		texts = append(texts, h.Text)
	}
	return texts
}

func notesOf(t testing.TB, d *Diary, v View) []Note {
	t.Helper()
	var notes []Note
	err := d.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		notes, err = List(tx, v)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return notes
}

func remove(t testing.TB, d *Diary, v View, id string) error {
	t.Helper()
	return d.Store.Update(context.Background(), func(tx memory.Tx) error {
		_, err := d.Delete(tx, v, id)
		return err
	})
}

// left counts the notes without a vector of the diary's model.
func left(t testing.TB, d *Diary) (n int) {
	t.Helper()
	err := d.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		n, err = Left(tx, d.Embedder.Model())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
