package memory_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nudge/memory"
	"nudge/memory/bolt"
)

type guest struct {
	Name string `json:"name"`
	Left bool   `json:"left,omitempty"`
}

const guests memory.Rows[guest] = "guest"

// within runs fn in a transaction on a store that has three rows of guests, one of which cannot be read.
func within(t *testing.T, fn func(tx memory.Tx) error) {
	t.Helper()
	store, err := bolt.Open(filepath.Join(t.TempDir(), "data"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	err = store.Update(t.Context(), func(tx memory.Tx) error {
		err := errors.Join(
			guests.Put(tx, "a", guest{Name: "Ann"}), guests.Put(tx, "b", guest{Name: "Bo", Left: true}),
			guests.Table(tx).Put("c", []byte("{")),
		)
		if err != nil {
			return err
		}
		return fn(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// keys are those of all rows of guests, readable or not.
func keys(t *testing.T, tx memory.Tx) string {
	t.Helper()
	var all []string
	if err := guests.Table(tx).Scan("", func(key string, _ []byte) error { all = append(all, key); return nil }); err != nil {
		t.Error(err)
	}
	return strings.Join(all, "")
}

// TestRows gives values back as they were put, and names the row that is none.
func TestRows(t *testing.T) {
	within(t, func(tx memory.Tx) error {
		if g, found, err := guests.Get(tx, "b"); g != (guest{"Bo", true}) || !found || err != nil {
			t.Errorf("b is %+v, %v, %v", g, found, err)
		}
		if g, found, err := guests.Get(tx, "z"); g != (guest{}) || found || err != nil {
			t.Errorf("z is %+v, %v, %v", g, found, err)
		}
		if g, found, err := guests.Get(tx, "c"); g != (guest{}) || found || err == nil || !strings.Contains(err.Error(), `read guest "c"`) {
			t.Errorf("c is %+v, %v, %v", g, found, err)
		}
		for key, want := range map[string]bool{"a": true, "c": true, "z": false} {
			if found, err := guests.Has(tx, key); found != want || err != nil {
				t.Errorf("has %s: %v, %v", key, found, err)
			}
		}
		if all, err := guests.All(tx, "b"); !slices.Equal(all, []guest{{"Bo", true}}) || err != nil {
			t.Errorf("those with b are %+v, %v", all, err)
		}
		if _, err := guests.All(tx, ""); err == nil || !strings.Contains(err.Error(), `read guest "c"`) {
			t.Errorf("all have the error %v", err)
		}
		if err := guests.Delete(tx, "c"); err != nil || keys(t, tx) != "ab" {
			t.Errorf("%s is left: %v", keys(t, tx), err)
		}
		var order []string
		err := guests.ScanBack(tx, "", func(key string, g guest) error {
			order = append(order, key+g.Name)
			return memory.ErrStop
		})
		if err != nil || !slices.Equal(order, []string{"bBo"}) {
			t.Errorf("the last is %v: %v", order, err)
		}
		if err := (memory.Rows[func()]("guest")).Put(tx, "f", nil); err == nil || !strings.Contains(err.Error(), `write guest "f"`) {
			t.Errorf("what is no value is put: %v", err)
		}
		return nil
	})
}

// TestSweep takes out what is over and what cannot be read, and nothing else.
func TestSweep(t *testing.T) {
	within(t, func(tx memory.Tx) error {
		err := guests.Sweep(tx, func(g guest) bool { return g.Left })
		if got := keys(t, tx); got != "a" || err != nil {
			t.Errorf("%s is left: %v", got, err)
		}
		return nil
	})
}

// TestRemoveRows takes out all with a prefix, those that are meant, or none where that cannot be told.
func TestRemoveRows(t *testing.T) {
	wrong := errors.New("wrong")
	for name, c := range map[string]struct {
		prefix string
		is     func(string, []byte) (bool, error)
		gone   string
		left   string
		err    error
	}{
		"all":            {"", nil, "abc", "", nil},
		"of a prefix":    {"b", nil, "b", "ac", nil},
		"some":           {"", func(_ string, row []byte) (bool, error) { return len(row) == 1, nil }, "c", "ab", nil},
		"one is unclear": {"", func(key string, _ []byte) (bool, error) { return true, map[string]error{"b": wrong}[key] }, "", "abc", wrong},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(tx memory.Tx) error {
				gone, err := memory.RemoveRows(guests.Table(tx), c.prefix, c.is)
				if strings.Join(gone, "") != c.gone || keys(t, tx) != c.left || !errors.Is(err, c.err) {
					t.Errorf("removed %v, %s is left: %v", gone, keys(t, tx), err)
				}
				return nil
			})
		})
	}
}
