package memorytest

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// model is what a store means, in plain maps: slow, plainly right, and compared with a store after random work. It
// checks no names; the walk uses good ones only.
type model struct {
	inbox   []memory.Mail // in order of id
	journal map[string][]memory.Entry
	outbox  []memory.Parcel // in order of id
	seen    map[string]time.Time
	due     map[string]memory.DueRow
	tables  map[string]map[string][]byte
}

func newModel() *model {
	return &model{
		journal: map[string][]memory.Entry{},
		seen:    map[string]time.Time{},
		due:     map[string]memory.DueRow{},
		tables:  map[string]map[string][]byte{},
	}
}

// clone copies the maps and slices, not the bytes, which nobody changes.
func (m *model) clone() *model {
	c := &model{
		inbox:   slices.Clone(m.inbox),
		journal: map[string][]memory.Entry{},
		outbox:  slices.Clone(m.outbox),
		seen:    maps.Clone(m.seen),
		due:     maps.Clone(m.due),
		tables:  map[string]map[string][]byte{},
	}
	for k, v := range m.journal {
		c.journal[k] = slices.Clone(v)
	}
	for k, v := range m.tables {
		c.tables[k] = maps.Clone(v)
	}
	return c
}

func (m *model) mailOf(session string) (mail []memory.Mail) {
	for _, x := range m.inbox {
		if x.Session == session {
			mail = append(mail, x)
		}
	}
	return mail
}

func (m *model) removeMail(session string, ids []uint64) {
	m.inbox = slices.DeleteFunc(m.inbox, func(x memory.Mail) bool {
		return x.Session == session && slices.Contains(ids, x.ID)
	})
}

func (m *model) sessionsWithMail() []string {
	set := map[string]bool{}
	for _, x := range m.inbox {
		set[x.Session] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func (m *model) append(session string, entries []memory.Entry) uint64 {
	for _, e := range entries {
		e.Seq = uint64(len(m.journal[session]) + 1)
		e.At = e.At.UTC()
		m.journal[session] = append(m.journal[session], e)
	}
	return uint64(len(m.journal[session]))
}

func (m *model) erase(session string) int {
	n := len(m.journal[session])
	delete(m.journal, session)
	return n
}

// set changes a parcel and reports whether it is there.
func (m *model) set(p memory.Parcel) bool {
	for i, x := range m.outbox {
		if x.ID == p.ID {
			m.outbox[i].State, m.outbox[i].Tries, m.outbox[i].Receipt = p.State, p.Tries, p.Receipt
			return true
		}
	}
	return false
}

func (m *model) removeParcels(ids []uint64) {
	m.outbox = slices.DeleteFunc(m.outbox, func(x memory.Parcel) bool { return slices.Contains(ids, x.ID) })
}

func (m *model) mark(key string, at time.Time) bool {
	if _, known := m.seen[key]; known {
		return false
	}
	m.seen[key] = at
	return true
}

// old returns the keys first seen before an instant.
func (m *model) old(before time.Time) (keys []string) {
	for k, at := range m.seen {
		if at.Before(before) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (m *model) dueRows() []memory.DueRow {
	return slices.SortedFunc(maps.Values(m.due), func(a, b memory.DueRow) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Key, b.Key))
	})
}

func (m *model) put(table, key string, value []byte) {
	if m.tables[table] == nil {
		m.tables[table] = map[string][]byte{}
	}
	m.tables[table][key] = value
}

// rows returns a table's rows with a prefix, in order.
func (m *model) rows(table, prefix string) (rows []row) {
	for _, k := range slices.Sorted(maps.Keys(m.tables[table])) {
		if strings.HasPrefix(k, prefix) {
			rows = append(rows, row{k, m.tables[table][k]})
		}
	}
	return rows
}

// row is one row of a table.
type row struct {
	key   string
	value []byte
}

func sameRow(a, b row) bool { return a.key == b.key && bytes.Equal(a.value, b.value) }

func sameMail(a, b memory.Mail) bool {
	return a.ID == b.ID && a.Session == b.Session && bytes.Equal(a.Data, b.Data)
}

func sameEntry(a, b memory.Entry) bool {
	return a.Seq == b.Seq && a.Kind == b.Kind && a.At == b.At && bytes.Equal(a.Data, b.Data)
}

func sameParcel(a, b memory.Parcel) bool {
	return a.ID == b.ID && a.Conversation == b.Conversation && a.State == b.State && a.Tries == b.Tries &&
		a.Receipt == b.Receipt && bytes.Equal(a.Data, b.Data)
}

func sameDue(a, b memory.DueRow) bool {
	return a.Key == b.Key && a.At == b.At && bytes.Equal(a.Data, b.Data)
}
