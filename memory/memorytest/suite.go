// Package memorytest has what tests of and with stores need: [Run], the suite that every [memory.Store] passes, and
// [Faulty], a store that crashes on demand.
package memorytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/memory"
)

// Run tests a store against the contract of package memory. open opens the store that is kept in the directory and
// makes it when there is none; the suite closes it, and opens it again to see what was kept. Each test has a
// directory of its own.
func Run(t *testing.T, open func(t *testing.T, dir string) memory.Store) {
	tests := []struct {
		name string
		test func(t *testing.T, store memory.Store)
	}{
		{"inbox", testInbox},
		{"journal", testJournal},
		{"journal sessions", testSessions},
		{"outbox", testOutbox},
		{"seen", testSeen},
		{"due", testDue},
		{"table", testTable},
		{"table emptied", testTableEmptied},
		{"names", testNames},
		{"bad names", testBadNames},
		{"scans end", testScansEnd},
		{"copies", testCopies},
		{"failure keeps nothing", testFailure},
		{"view only reads", testViewReads},
		{"view sees one state", testIsolation},
		{"context", testContext},
		{"writers at once", testWriters},
		{"failure among others", testFailureAmongOthers},
		{"closed", testClosed},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			store := open(t, Dir(t))
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.test(t, store)
		})
	}
	t.Run("reopen", func(t *testing.T) { testReopen(t, open) })
	t.Run("random walk", func(t *testing.T) { randomWalk(t, open) })
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)

func testInbox(t *testing.T, store memory.Store) {
	var ids []uint64
	update(t, store, func(tx memory.Tx) error {
		ids = nil
		for _, put := range []string{"a 1", "b 2", "a 3"} {
			id, err := tx.Inbox().Put(put[:1], []byte(put))
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
	if ids[0] == 0 || ids[0] >= ids[1] || ids[1] >= ids[2] {
		t.Errorf("ids do not grow: %v", ids)
	}
	update(t, store, func(tx memory.Tx) error { // the id of b's mail is not a's to remove
		return tx.Inbox().Remove("a", ids[0], ids[1], 1<<50)
	})
	view(t, store, func(tx memory.Tx) error {
		a, err := tx.Inbox().List("a")
		none, err2 := tx.Inbox().List("none")
		sessions, err3 := tx.Inbox().Sessions()
		slices.Sort(sessions)
		return errors.Join(err, err2, err3,
			differ("mail of a", a, []memory.Mail{{ID: ids[2], Session: "a", Data: []byte("a 3")}}, sameMail),
			differ("mail of nobody", none, nil, sameMail),
			differ("sessions", sessions, []string{"a", "b"}, sameString))
	})
	update(t, store, func(tx memory.Tx) error {
		return errors.Join(tx.Inbox().Remove("a", ids...), tx.Inbox().Remove("b", ids...), tx.Inbox().Remove("b"))
	})
	update(t, store, func(tx memory.Tx) error {
		sessions, err := tx.Inbox().Sessions()
		id, err2 := tx.Inbox().Put("a", nil)
		return errors.Join(err, err2, differ("sessions", sessions, nil, sameString), expect("id grows on", id > ids[2], true))
	})
}

func testJournal(t *testing.T, store memory.Store) {
	far := time.Date(1969, 7, 20, 20, 17, 40, 999999999, time.FixedZone("houston", -5*3600))
	update(t, store, func(tx memory.Tx) error {
		none, err := tx.Journal().Append("a")
		last, err2 := tx.Journal().Append("a", memory.Entry{Seq: 77, Kind: "said", At: noon, Data: []byte("one")}, memory.Entry{At: far})
		return errors.Join(err, err2, expect("no entries", none, 0), expect("last", last, 2))
	})
	update(t, store, func(tx memory.Tx) error {
		last, err := tx.Journal().Append("a", memory.Entry{Kind: "é", Data: []byte{0}})
		other, err2 := tx.Journal().Append("b", memory.Entry{})
		return errors.Join(err, err2, expect("last", last, 3), expect("last of b", other, 1))
	})
	want := []memory.Entry{{Seq: 1, Kind: "said", At: noon, Data: []byte("one")}, {Seq: 2, At: far.UTC()}, {Seq: 3, Kind: "é", Data: []byte{0}}}
	view(t, store, func(tx memory.Tx) error {
		var errs []error
		for after := range uint64(5) {
			list, err := entries(tx, "a", after)
			errs = append(errs, err, differ(fmt.Sprint("after ", after), list, want[min(after, 3):], sameEntry))
		}
		none, err := entries(tx, "a", 1<<64-1)
		last, err2 := tx.Journal().Last("a")
		empty, err3 := tx.Journal().Last("none")
		return errors.Join(append(errs, err, err2, err3, differ("after all", none, nil, sameEntry),
			expect("last", last, 3), expect("last of none", empty, 0))...)
	})
	update(t, store, func(tx memory.Tx) error {
		n, err := tx.Journal().Erase("a")
		again, err2 := tx.Journal().Erase("a")
		list, err3 := entries(tx, "a", 0)
		last, err4 := tx.Journal().Append("a", memory.Entry{Kind: "new"})
		b, err5 := tx.Journal().Last("b")
		return errors.Join(err, err2, err3, err4, err5, expect("erased", n, 3), expect("erased again", again, 0),
			differ("after erasing", list, nil, sameEntry), expect("first again", last, 1), expect("last of b", b, 1))
	})
}

func testSessions(t *testing.T, store memory.Store) {
	update(t, store, func(tx memory.Tx) error {
		for i, name := range []string{"b", "a", "a\x00", "c"} {
			for n := range i + 1 {
				if _, err := tx.Journal().Append(name, memory.Entry{Kind: fmt.Sprint(name, n)}); err != nil {
					return err
				}
			}
		}
		_, err := tx.Journal().Erase("c")
		return err
	})
	view(t, store, func(tx memory.Tx) error {
		all, newest, err := journals(tx, "")
		some, _, err2 := journals(tx, "a\x00")
		none, _, err3 := journals(tx, strings.Repeat("z", memory.MaxID+1))
		return errors.Join(err, err2, err3,
			differ("all", all, []string{"a", "a\x00", "b"}, sameString),
			differ("newest", newest, []memory.Entry{{Seq: 2, Kind: "a1"}, {Seq: 3, Kind: "a\x002"}, {Seq: 1, Kind: "b0"}}, sameEntry),
			differ("from a\\0 on", some, []string{"a\x00", "b"}, sameString),
			differ("from the end on", none, nil, sameString))
	})
}

func testOutbox(t *testing.T, store memory.Store) {
	var first, second uint64
	view(t, store, func(tx memory.Tx) error {
		last, err := tx.Outbox().Last()
		return errors.Join(err, expect("the last of none", last, uint64(0)))
	})
	update(t, store, func(tx memory.Tx) (err error) {
		if first, err = tx.Outbox().Put("dm", []byte("hello")); err != nil {
			return err
		}
		second, err = tx.Outbox().Put("room", nil)
		return err
	})
	update(t, store, func(tx memory.Tx) error {
		p := memory.Parcel{ID: first, Conversation: "not this", State: "sent", Tries: 3, Receipt: "r", Data: []byte("nor this")}
		return tx.Outbox().Set(p)
	})
	view(t, store, func(tx memory.Tx) error {
		all, err := parcels(tx, 0)
		rest, err2 := parcels(tx, first)
		none, err3 := parcels(tx, 1<<64-1)
		last, err4 := tx.Outbox().Last()
		want := []memory.Parcel{
			{ID: first, Conversation: "dm", State: "sent", Tries: 3, Receipt: "r", Data: []byte("hello")},
			{ID: second, Conversation: "room"},
		}
		return errors.Join(err, err2, err3, err4, expect("ids grow", 0 < first && first < second, true),
			expect("the last is", last, second), differ("all", all, want, sameParcel),
			differ("after the first", rest, want[1:], sameParcel), differ("after all", none, nil, sameParcel))
	})
	update(t, store, func(tx memory.Tx) error { return tx.Outbox().Remove(first, 1<<50) })
	err := store.Update(context.Background(), func(tx memory.Tx) error { return tx.Outbox().Set(memory.Parcel{ID: first}) })
	if err == nil {
		t.Error("setting a parcel that is gone: no error")
	}
	update(t, store, func(tx memory.Tx) error {
		err := tx.Outbox().Remove(second)
		last, err2 := tx.Outbox().Last()
		id, err3 := tx.Outbox().Put("dm", nil)
		after, err4 := tx.Outbox().Last()
		return errors.Join(err, err2, err3, err4, expect("the last when it is gone", last, second),
			expect("id grows on", id > second, true), expect("the last after that", after, id))
	})
}

func testSeen(t *testing.T, store memory.Store) {
	mark := func(key string, at time.Time, want bool) {
		t.Helper()
		update(t, store, func(tx memory.Tx) error {
			fresh, err := tx.Seen().Mark(key, at)
			return errors.Join(err, expect(key+" fresh", fresh, want))
		})
	}
	sweep := func(before time.Time, limit, want int) {
		t.Helper()
		update(t, store, func(tx memory.Tx) error {
			n, err := tx.Seen().Sweep(before, limit)
			return errors.Join(err, expect("swept", n, want))
		})
	}
	mark("a", noon, true)
	mark("a", noon.Add(time.Hour), false)
	mark("b", noon.Add(1), true)
	mark("c", time.Unix(-5, 5), true)
	mark("d", time.Time{}, true)
	sweep(noon, 0, 0)
	sweep(noon, -1, 0)
	sweep(time.Unix(-5, 5), 10, 1) // d; what was seen at the instant itself stays
	sweep(noon.Add(1), 1, 1)       // c or a
	sweep(noon.Add(1), 10, 1)      // the other: a repeat did not make a younger
	mark("b", noon, false)
	mark("a", noon, true)
	mark("c", noon, true)
}

func testDue(t *testing.T, store memory.Store) {
	old := time.Date(1900, 1, 1, 0, 0, 0, 1, time.UTC)
	update(t, store, func(tx memory.Tx) error {
		d := tx.Due()
		return errors.Join(
			d.Put(memory.DueRow{Key: "b", At: noon}),
			d.Put(memory.DueRow{Key: "a", At: noon, Data: []byte("x")}),
			d.Put(memory.DueRow{Key: "c", At: noon.Add(-1).In(time.FixedZone("east", 7200))}),
			d.Put(memory.DueRow{Key: "d", At: old}),
			d.Put(memory.DueRow{Key: "e", At: noon.Add(time.Hour), Data: []byte("first")}))
	})
	update(t, store, func(tx memory.Tx) error {
		d := tx.Due()
		return errors.Join(d.Put(memory.DueRow{Key: "e", At: time.Unix(-1, 0), Data: []byte("moved")}), d.Remove("b"), d.Remove("none"))
	})
	view(t, store, func(tx memory.Tx) error {
		list, err := dueRows(tx)
		e, found, err2 := tx.Due().Get("e")
		_, gone, err3 := tx.Due().Get("b")
		want := []memory.DueRow{
			{Key: "d", At: old},
			{Key: "e", At: time.Unix(-1, 0).UTC(), Data: []byte("moved")},
			{Key: "c", At: noon.Add(-1)},
			{Key: "a", At: noon, Data: []byte("x")},
		}
		return errors.Join(err, err2, err3, differ("rows", list, want, sameDue), expect("found", found, true),
			expect("gone row found", gone, false), differ("e", []memory.DueRow{e}, want[1:2], sameDue))
	})
	update(t, store, func(tx memory.Tx) error { // the same row again, with other data
		err := tx.Due().Put(memory.DueRow{Key: "a", At: noon, Data: []byte("y")})
		a, _, err2 := tx.Due().Get("a")
		list, err3 := dueRows(tx)
		return errors.Join(err, err2, err3, expect("a", string(a.Data), "y"), expect("rows", len(list), 4))
	})
}

func testTable(t *testing.T, store memory.Store) {
	view(t, store, func(tx memory.Tx) error {
		_, found, err := tx.Table("none").Get("k")
		list, err2 := tableRows(tx, "none", "")
		back, err3 := tableRowsBack(tx, "none", "")
		return errors.Join(err, err2, err3, expect("found", found, false), differ("rows", append(list, back...), nil, sameRow))
	})
	update(t, store, func(tx memory.Tx) error {
		one, other := tx.Table("one"), tx.Table("other")
		err := errors.Join(one.Put("k1", []byte("v")), one.Put("k2", nil), one.Put("k\xff", []byte("ff")), one.Put("l", []byte("l")),
			one.Put("k1", []byte("w")), one.Delete("l"), one.Delete("none"), other.Put("k1", []byte("other")), tx.Table("third").Delete("k"))
		value, found, err2 := one.Get("k2") // an empty row is there, also before the commit
		return errors.Join(err, err2, expect("found", found, true), expect("length", len(value), 0))
	})
	view(t, store, func(tx memory.Tx) error {
		value, found, err := tx.Table("one").Get("k2")
		list, err2 := tableRows(tx, "one", "k")
		back, err3 := tableRowsBack(tx, "one", "k\xff")
		all, err4 := tableRowsBack(tx, "one", "")
		want := []row{{"k1", []byte("w")}, {"k2", nil}, {"k\xff", []byte("ff")}}
		errs := []error{err, err2, err3, err4, expect("found", found, true), expect("length", len(value), 0),
			differ("rows", list, want, sameRow), differ("rows from the end", back, want[2:], sameRow)}
		slices.Reverse(want)
		return errors.Join(append(errs, differ("all from the end", all, want, sameRow))...)
	})
}

// testTableEmptied deletes stretches of a long table and lists what is left in the same transaction, from both ends.
func testTableEmptied(t *testing.T, store memory.Store) {
	const rows = 1000
	name := func(i int) string { return fmt.Sprintf("%04d", i) }
	for _, gone := range []struct{ from, to int }{{500, rows}, {0, 500}, {200, 800}, {0, rows}, {1, rows}, {0, rows - 1}} {
		update(t, store, func(tx memory.Tx) error {
			var errs []error
			for i := range rows {
				errs = append(errs, tx.Table("long").Put(name(i), make([]byte, 100)))
			}
			return errors.Join(errs...)
		})
		update(t, store, func(tx memory.Tx) error {
			var errs []error
			var want []row
			for i := range rows {
				if i >= gone.from && i < gone.to {
					errs = append(errs, tx.Table("long").Delete(name(i)))
				} else {
					want = append(want, row{name(i), make([]byte, 100)})
				}
			}
			list, err := tableRows(tx, "long", "")
			back, err2 := tableRowsBack(tx, "long", "")
			slices.Reverse(back)
			what := fmt.Sprintf("without %d to %d, ", gone.from, gone.to)
			return errors.Join(append(errs, err, err2, differ(what+"forwards", list, want, sameRow), differ(what+"backwards", back, want, sameRow))...)
		})
	}
}

// testNames puts every odd name everywhere; the places must tell them apart and give them back.
func testNames(t *testing.T, store memory.Store) {
	update(t, store, func(tx memory.Tx) error {
		var errs []error
		for _, name := range oddNames {
			_, err := tx.Inbox().Put(name, []byte(name))
			_, err2 := tx.Journal().Append(name, memory.Entry{Kind: name, At: noon, Data: []byte(name)})
			_, err3 := tx.Outbox().Put(name, []byte(name))
			fresh, err4 := tx.Seen().Mark(name, noon)
			errs = append(errs, err, err2, err3, err4, expect("fresh", fresh, true), tx.Due().Put(memory.DueRow{Key: name, At: noon}),
				tx.Table(name).Put(name, []byte(name)))
		}
		return errors.Join(errs...)
	})
	sorted := slices.Sorted(slices.Values(oddNames))
	view(t, store, func(tx memory.Tx) error {
		var errs []error
		for _, name := range oddNames {
			mail, err := tx.Inbox().List(name)
			list, err2 := entries(tx, name, 0)
			rows, err3 := tableRows(tx, name, "")
			errs = append(errs, err, err2, err3, expect("mail", len(mail), 1), expect("entries", len(list), 1),
				expect("entry", list[0].Kind+string(list[0].Data), name+name), differ("rows", rows, []row{{name, []byte(name)}}, sameRow))
		}
		withMail, err := tx.Inbox().Sessions()
		slices.Sort(withMail)
		withEntries, _, err2 := journals(tx, "")
		due, err3 := dueRows(tx)
		sent, err4 := parcels(tx, 0)
		return errors.Join(append(errs, err, err2, err3, err4,
			differ("sessions with mail", withMail, sorted, sameString), differ("journals", withEntries, sorted, sameString),
			differ("due", names(due, func(d memory.DueRow) string { return d.Key }), sorted, sameString),
			differ("parcels", names(sent, func(p memory.Parcel) string { return p.Conversation }), oddNames, sameString))...)
	})
}

func names[T any](list []T, name func(T) string) (names []string) {
	for _, x := range list {
		names = append(names, name(x))
	}
	return names
}

func testBadNames(t *testing.T, store memory.Store) {
	calls := map[string]func(tx memory.Tx, name string) error{
		"inbox put":      func(tx memory.Tx, n string) error { _, err := tx.Inbox().Put(n, nil); return err },
		"inbox list":     func(tx memory.Tx, n string) error { _, err := tx.Inbox().List(n); return err },
		"inbox remove":   func(tx memory.Tx, n string) error { return tx.Inbox().Remove(n, 1) },
		"journal append": func(tx memory.Tx, n string) error { _, err := tx.Journal().Append(n, memory.Entry{}); return err },
		"journal read":   func(tx memory.Tx, n string) error { _, err := entries(tx, n, 0); return err },
		"journal last":   func(tx memory.Tx, n string) error { _, err := tx.Journal().Last(n); return err },
		"journal erase":  func(tx memory.Tx, n string) error { _, err := tx.Journal().Erase(n); return err },
		"outbox put":     func(tx memory.Tx, n string) error { _, err := tx.Outbox().Put(n, nil); return err },
		"seen mark":      func(tx memory.Tx, n string) error { _, err := tx.Seen().Mark(n, noon); return err },
		"due put":        func(tx memory.Tx, n string) error { return tx.Due().Put(memory.DueRow{Key: n}) },
		"due get":        func(tx memory.Tx, n string) error { _, _, err := tx.Due().Get(n); return err },
		"due remove":     func(tx memory.Tx, n string) error { return tx.Due().Remove(n) },
		"table get":      func(tx memory.Tx, n string) error { _, _, err := tx.Table(n).Get("k"); return err },
		"table put":      func(tx memory.Tx, n string) error { return tx.Table(n).Put("k", nil) },
		"table delete":   func(tx memory.Tx, n string) error { return tx.Table(n).Delete("k") },
		"table scan":     func(tx memory.Tx, n string) error { _, err := tableRows(tx, n, ""); return err },
		"table back":     func(tx memory.Tx, n string) error { _, err := tableRowsBack(tx, n, ""); return err },
		"row get":        func(tx memory.Tx, n string) error { _, _, err := tx.Table("t").Get(n); return err },
		"row put":        func(tx memory.Tx, n string) error { return tx.Table("t").Put(n, nil) },
		"row delete":     func(tx memory.Tx, n string) error { return tx.Table("t").Delete(n) },
	}
	for what, call := range calls {
		for _, name := range []string{"", strings.Repeat("x", memory.MaxID+1), strings.Repeat("x", 40000)} {
			err := store.Update(context.Background(), func(tx memory.Tx) error { return call(tx, name) })
			if !errors.Is(err, memory.ErrBadID) {
				t.Errorf("%s with a name of %d bytes: %v", what, len(name), err)
			} else if strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
				t.Errorf("%s: the error is too long: %v", what, err)
			}
		}
	}
}

// testScansEnd has each scan end at ErrStop without and at another error with that error.
func testScansEnd(t *testing.T, store memory.Store) {
	update(t, store, func(tx memory.Tx) error {
		for _, name := range []string{"a", "b"} {
			_, err := tx.Journal().Append(name, memory.Entry{}, memory.Entry{})
			_, err2 := tx.Outbox().Put(name, nil)
			if err := errors.Join(err, err2, tx.Due().Put(memory.DueRow{Key: name}), tx.Table("t").Put(name, nil)); err != nil {
				return err
			}
		}
		return nil
	})
	scans := map[string]func(tx memory.Tx, end func() error) error{
		"journal read": func(tx memory.Tx, end func() error) error {
			return tx.Journal().Read("a", 0, func(memory.Entry) error { return end() })
		},
		"journal sessions": func(tx memory.Tx, end func() error) error {
			return tx.Journal().Sessions("", func(string, memory.Entry) error { return end() })
		},
		"outbox list": func(tx memory.Tx, end func() error) error {
			return tx.Outbox().List(0, func(memory.Parcel) error { return end() })
		},
		"due scan": func(tx memory.Tx, end func() error) error {
			return tx.Due().Scan(func(memory.DueRow) error { return end() })
		},
		"table scan": func(tx memory.Tx, end func() error) error {
			return tx.Table("t").Scan("", func(string, []byte) error { return end() })
		},
		"table back": func(tx memory.Tx, end func() error) error {
			return tx.Table("t").ScanBack("", func(string, []byte) error { return end() })
		},
	}
	for name, scan := range scans {
		for result, want := range map[error]error{nil: nil, memory.ErrStop: nil, fmt.Errorf("enough: %w", memory.ErrStop): nil, errGiveUp: errGiveUp} {
			calls, wantCalls := 0, 1
			if result == nil {
				wantCalls = 2
			}
			err := store.View(context.Background(), func(tx memory.Tx) error {
				return scan(tx, func() error { calls++; return result })
			})
			if !errors.Is(err, want) || calls != wantCalls {
				t.Errorf("%s, its function returning %v: %v after %d calls", name, result, err, calls)
			}
		}
	}
}

// testCopies sees that a store keeps no bytes of its caller's and lends none of its own.
func testCopies(t *testing.T, store memory.Store) {
	data := []byte("kept")
	update(t, store, func(tx memory.Tx) error {
		copy(data, "kept")
		_, err := tx.Inbox().Put("s", data)
		_, err2 := tx.Journal().Append("s", memory.Entry{Data: data})
		_, err3 := tx.Outbox().Put("s", data)
		err4 := errors.Join(tx.Due().Put(memory.DueRow{Key: "s", At: noon, Data: data}), tx.Table("s").Put("s", data))
		copy(data, "gone")
		return errors.Join(err, err2, err3, err4)
	})
	var got [][]byte
	read := func(tx memory.Tx) error {
		mail, err := tx.Inbox().List("s")
		list, err2 := entries(tx, "s", 0)
		_, newest, err3 := journals(tx, "")
		sent, err4 := parcels(tx, 0)
		due, err5 := dueRows(tx)
		one, _, err6 := tx.Due().Get("s")
		value, _, err7 := tx.Table("s").Get("s")
		rows, err8 := tableRows(tx, "s", "")
		back, err9 := tableRowsBack(tx, "s", "")
		got = [][]byte{mail[0].Data, list[0].Data, newest[0].Data, sent[0].Data, due[0].Data, one.Data, value, rows[0].value, back[0].value}
		return errors.Join(err, err2, err3, err4, err5, err6, err7, err8, err9)
	}
	view(t, store, read)
	kept := got
	update(t, store, func(tx memory.Tx) error {
		if err := read(tx); err != nil {
			return err
		}
		for _, b := range got {
			copy(b, "gone") // must not reach the store
		}
		return tx.Table("other").Put("s", nil)
	})
	for i := range 200 { // what was read before stays as it was, whatever is written
		update(t, store, func(tx memory.Tx) error {
			return errors.Join(tx.Table("s").Put("s", fmt.Append(nil, "new", i)), tx.Table("s").Put("s", []byte("kept")))
		})
	}
	view(t, store, read)
	for i, b := range append(kept, got...) {
		if string(b) != "kept" {
			t.Errorf("bytes %d are %q", i, b)
		}
	}
}

func testFailure(t *testing.T, store memory.Store) {
	write := func(tx memory.Tx, n string) error {
		_, err := tx.Inbox().Put("s", []byte(n))
		_, err2 := tx.Journal().Append("s", memory.Entry{Kind: n})
		_, err3 := tx.Outbox().Put("s", []byte(n))
		_, err4 := tx.Seen().Mark(n, noon)
		return errors.Join(err, err2, err3, err4, tx.Due().Put(memory.DueRow{Key: n, At: noon}), tx.Table("s").Put(n, nil))
	}
	count := func() (counts [6]int) {
		view(t, store, func(tx memory.Tx) error {
			mail, err := tx.Inbox().List("s")
			last, err2 := tx.Journal().Last("s")
			sent, err3 := parcels(tx, 0)
			due, err4 := dueRows(tx)
			rows, err5 := tableRows(tx, "s", "")
			counts = [6]int{len(mail), int(last), len(sent), 0, len(due), len(rows)}
			return errors.Join(err, err2, err3, err4, err5)
		})
		update(t, store, func(tx memory.Tx) error {
			n, err := tx.Seen().Sweep(noon.Add(1), 100)
			counts[3] = n
			return err
		})
		return counts
	}
	fails := map[string]func(tx memory.Tx) error{
		"error": func(tx memory.Tx) error { return errors.Join(write(tx, "1"), errGiveUp) },
		"panic": func(tx memory.Tx) error { panic(errors.Join(write(tx, "2"), errGiveUp)) },
		"panic in a scan": func(tx memory.Tx) error {
			if err := write(tx, "3"); err != nil {
				return err
			}
			return tx.Due().Scan(func(memory.DueRow) error { panic(errGiveUp) })
		},
	}
	for name, fn := range fails {
		err := store.Update(context.Background(), fn)
		if err == nil || name == "error" && !errors.Is(err, errGiveUp) || errors.Is(err, memory.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if got := count(); got != [6]int{} {
			t.Errorf("%s: kept %v", name, got)
		}
	}
	update(t, store, func(tx memory.Tx) error { return errors.Join(write(tx, "4"), write(tx, "5")) })
	if got := count(); got != [6]int{2, 2, 2, 2, 2, 2} {
		t.Errorf("after success: %v", got)
	}
}

func testViewReads(t *testing.T, store memory.Store) {
	update(t, store, func(tx memory.Tx) error {
		_, err := tx.Journal().Append("s", memory.Entry{})
		return err
	})
	writes := map[string]func(tx memory.Tx) error{
		"inbox":   func(tx memory.Tx) error { _, err := tx.Inbox().Put("s", nil); return err },
		"journal": func(tx memory.Tx) error { _, err := tx.Journal().Append("s", memory.Entry{}); return err },
		"erase":   func(tx memory.Tx) error { _, err := tx.Journal().Erase("s"); return err },
		"outbox":  func(tx memory.Tx) error { _, err := tx.Outbox().Put("s", nil); return err },
		"seen":    func(tx memory.Tx) error { _, err := tx.Seen().Mark("s", noon); return err },
		"due":     func(tx memory.Tx) error { return tx.Due().Put(memory.DueRow{Key: "s"}) },
		"table":   func(tx memory.Tx) error { return tx.Table("s").Put("s", nil) },
	}
	for name, write := range writes {
		if err := store.View(context.Background(), write); err == nil {
			t.Errorf("writing to the %s in a view: no error", name)
		}
	}
	if err := store.View(context.Background(), func(memory.Tx) error { return errGiveUp }); !errors.Is(err, errGiveUp) {
		t.Errorf("a view's own error: %v", err)
	}
}

// testIsolation has a view that goes on while updates commit: it sees none of them, the next view all.
func testIsolation(t *testing.T, store memory.Store) {
	put := func(n int) {
		update(t, store, func(tx memory.Tx) error {
			_, err := tx.Journal().Append("s", memory.Entry{Data: make([]byte, 3000)})
			return errors.Join(err, tx.Table("s").Put("n", fmt.Append(nil, n)))
		})
	}
	put(1)
	check := func(tx memory.Tx, n int) error {
		value, _, err := tx.Table("s").Get("n")
		list, err2 := entries(tx, "s", 0)
		return errors.Join(err, err2, expect("row", string(value), fmt.Sprint(n)), expect("entries", len(list), n))
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var early error
	var group sync.WaitGroup
	group.Go(func() {
		early = store.View(context.Background(), func(tx memory.Tx) error {
			err := check(tx, 1)
			close(begun)
			<-goOn
			return errors.Join(err, check(tx, 1))
		})
	})
	<-begun
	for n := 2; n <= 20; n++ {
		put(n)
	}
	close(goOn)
	group.Wait()
	if early != nil {
		t.Errorf("the view that was there before: %v", early)
	}
	view(t, store, func(tx memory.Tx) error { return check(tx, 20) })
}

func testContext(t *testing.T, store memory.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ran := false
	if err := store.Update(ctx, func(memory.Tx) error { ran = true; return nil }); !errors.Is(err, context.Canceled) || ran {
		t.Errorf("update with a context that has ended: %v, run: %t", err, ran)
	}
	if err := store.View(ctx, func(memory.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("view with a context that has ended: %v", err)
	}
	// A context that ends while the function runs ends nothing.
	ctx, cancel = context.WithCancel(context.Background())
	err := store.Update(ctx, func(tx memory.Tx) error { cancel(); return tx.Table("t").Put("k", nil) })
	if err != nil {
		t.Errorf("update whose context ended on the way: %v", err)
	}
	view(t, store, func(tx memory.Tx) error {
		_, found, err := tx.Table("t").Get("k")
		return errors.Join(err, expect("found", found, true))
	})
}

// testWriters has many writers count in one row and one journal each; none of their updates may be lost or doubled.
func testWriters(t *testing.T, store memory.Store) {
	const writers, each = 16, 12
	atOnce(writers, func(i int) {
		for range each {
			err := store.Update(context.Background(), func(tx memory.Tx) error {
				return errors.Join(increase(tx), appendOne(tx, fmt.Sprint("s", i)))
			})
			err2 := store.View(context.Background(), func(tx memory.Tx) error {
				_, _, err := journals(tx, "")
				return err
			})
			if err := errors.Join(err, err2); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		}
	})
	view(t, store, func(tx memory.Tx) error {
		value, _, err := tx.Table("t").Get("count")
		names, newest, err2 := journals(tx, "")
		errs := []error{err, err2, expect("count", len(value), writers*each), expect("journals", len(names), writers)}
		for _, e := range newest {
			errs = append(errs, expect("newest", e.Seq, each))
		}
		return errors.Join(errs...)
	})
}

// testFailureAmongOthers has every third of many concurrent updates fail after writing: the others lose nothing.
func testFailureAmongOthers(t *testing.T, store memory.Store) {
	const writers, each = 12, 9
	atOnce(writers, func(i int) {
		for n := range each {
			err := store.Update(context.Background(), func(tx memory.Tx) error {
				if err := errors.Join(increase(tx), appendOne(tx, fmt.Sprint("s", i))); err != nil {
					return err
				}
				switch {
				case n%3 == 0 && i%2 == 0:
					panic("on purpose")
				case n%3 == 0:
					return errGiveUp
				}
				return nil
			})
			if (err != nil) != (n%3 == 0) {
				t.Errorf("writer %d, update %d: %v", i, n, err)
			}
		}
	})
	view(t, store, func(tx memory.Tx) error {
		value, _, err := tx.Table("t").Get("count")
		_, newest, err2 := journals(tx, "")
		errs := []error{err, err2, expect("count", len(value), writers*each*2/3), expect("journals", len(newest), writers)}
		for _, e := range newest {
			errs = append(errs, expect("newest", e.Seq, each*2/3))
		}
		return errors.Join(errs...)
	})
}

// increase makes a row one byte longer, which tells lost and doubled updates.
func increase(tx memory.Tx) error {
	value, _, err := tx.Table("t").Get("count")
	return errors.Join(err, tx.Table("t").Put("count", append(value, 'x')))
}

func appendOne(tx memory.Tx, session string) error {
	_, err := tx.Journal().Append(session, memory.Entry{Kind: "k", At: noon, Data: []byte("data")})
	return err
}

// atOnce runs fn n times at once and waits.
func atOnce(n int, fn func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { fn(i) })
	}
	group.Wait()
}

func testClosed(t *testing.T, store memory.Store) {
	atOnce(8, func(i int) { // each call comes before the closing or after it
		if i == 4 {
			if err := store.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			return
		}
		err := store.Update(context.Background(), func(tx memory.Tx) error { return appendOne(tx, "s") })
		if err != nil && !errors.Is(err, memory.ErrClosed) {
			t.Errorf("update around the closing: %v", err)
		}
	})
	if err := store.Update(context.Background(), func(memory.Tx) error { return nil }); !errors.Is(err, memory.ErrClosed) {
		t.Errorf("update after the closing: %v", err)
	}
	if err := store.View(context.Background(), func(memory.Tx) error { return nil }); !errors.Is(err, memory.ErrClosed) {
		t.Errorf("view after the closing: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// testReopen sees that all is kept over a closing, and that ids are not given twice after it.
func testReopen(t *testing.T, open func(t *testing.T, dir string) memory.Store) {
	dir := Dir(t)
	var mail, parcel uint64
	for round := range uint64(3) {
		store := open(t, dir)
		update(t, store, func(tx memory.Tx) error {
			id, err := tx.Inbox().Put("s", nil)
			id2, err2 := tx.Outbox().Put("s", nil)
			last, err3 := tx.Journal().Append("s", memory.Entry{At: noon})
			fresh, err4 := tx.Seen().Mark("k", noon)
			rows, err5 := tableRows(tx, "t", "")
			due, err6 := dueRows(tx)
			errs := []error{err, err2, err3, err4, err5, err6,
				expect("mail id grows", id > mail, true), expect("parcel id grows", id2 > parcel, true),
				expect("last", last, round+1), expect("fresh", fresh, round == 0),
				expect("rows", len(rows), int(round)), expect("due rows", len(due), int(round)),
				tx.Inbox().Remove("s", id), tx.Outbox().Remove(id2),
				tx.Table("t").Put(fmt.Sprint(round), nil), tx.Due().Put(memory.DueRow{Key: fmt.Sprint(round), At: noon})}
			mail, parcel = id, id2
			return errors.Join(errs...)
		})
		if err := store.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
}
