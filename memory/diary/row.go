package diary

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"nudge/memory"
)

// The tables of the diary. Names of their rows begin with the person and a zero byte, so that of two persons' rows none can
// be taken for the other's.
const (
	tableTrait = "note_trait" // person, id → what it is found by; see [trait]
	tableName  = "note_name"  // person, scope, a digest of the text → id; or of the subject → ids, the one written last at the end
	tableStamp = "note_stamp" // person → stamp

	tableNote memory.Rows[Note] = "note" // by person and id
)

const stampSize = 16

// key is the name of a row.
func key(parts ...string) string { return strings.Join(parts, "\x00") }

// trait is what a note is found by, as it stands in the data file: everything that an index needs without reading the note.
type trait struct {
	scope   string
	older   bool // another note came in its place
	terms   []term
	model   string // that made the vectors; "" when there are none yet
	vectors [][]float32
}

// traitVersion begins a row; one of another version is made anew.
const traitVersion = 1

var errTrait = errors.New("it is damaged")

func (t trait) encode() []byte {
	dims := 0
	if len(t.vectors) > 0 {
		dims = len(t.vectors[0])
	}
	row := make([]byte, 0, 32+len(t.scope)+len(t.model)+5*len(t.terms)+4*dims*len(t.vectors))
	older := byte(0)
	if t.older {
		older = 1
	}
	row = append(row, traitVersion, older)
	row = appendText(row, t.scope)
	row = binary.AppendUvarint(row, uint64(len(t.terms)))
	for _, term := range t.terms {
		row = binary.LittleEndian.AppendUint32(row, uint32(term.feature))
	}
	for _, term := range t.terms {
		row = append(row, term.count)
	}
	row = appendText(row, t.model)
	row = binary.AppendUvarint(row, uint64(dims))
	row = binary.AppendUvarint(row, uint64(len(t.vectors)))
	for _, v := range t.vectors {
		for _, x := range v {
			row = binary.LittleEndian.AppendUint32(row, math.Float32bits(x))
		}
	}
	return row
}

func appendText(row []byte, text string) []byte {
	return append(binary.AppendUvarint(row, uint64(len(text))), text...)
}

// decodeTrait reads a row. Nothing in the trait shares memory with it.
func decodeTrait(row []byte) (t trait, err error) {
	r := rowReader{row: row}
	if r.byte() != traitVersion {
		return t, errTrait
	}
	t.older = r.byte() == 1
	t.scope = string(r.bytes(r.number()))
	count := r.number()
	t.terms = make([]term, min(count, len(r.row)/5))
	features, counts := r.bytes(4*len(t.terms)), r.bytes(len(t.terms))
	if r.short || len(t.terms) < count {
		return t, errTrait
	}
	for i := range t.terms {
		t.terms[i] = term{feature(binary.LittleEndian.Uint32(features[4*i:])), counts[i]}
	}
	t.model = string(r.bytes(r.number()))
	dims, many := r.number(), r.number()
	for range many {
		if r.short || dims == 0 || dims > len(r.row)/4 {
			return t, errTrait
		}
		t.vectors = append(t.vectors, floats(r.bytes(4*dims)))
	}
	if r.short || len(r.row) > 0 {
		return t, errTrait
	}
	return t, nil
}

func floats(bytes []byte) []float32 {
	v := make([]float32, len(bytes)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	return v
}

// rowReader takes a row apart; short says that it ended too early.
type rowReader struct {
	row   []byte
	short bool
}

func (r *rowReader) bytes(n int) []byte {
	if n < 0 || n > len(r.row) {
		r.short, r.row = true, nil
		return nil
	}
	part := r.row[:n]
	r.row = r.row[n:]
	return part
}

func (r *rowReader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *rowReader) number() int {
	n, size := binary.Uvarint(r.row)
	if size <= 0 || n > math.MaxInt32 {
		r.short, r.row = true, nil
		return 0
	}
	r.row = r.row[size:]
	return int(n)
}

// load reads one note.
func load(tx memory.Tx, person, id string) (n Note, found bool, err error) {
	return tableNote.Get(tx, key(person, id))
}

// loadTrait reads what a note is found by; one that is missing or damaged is made of the note.
func loadTrait(tx memory.Tx, person string, n Note) (trait, error) {
	row, found, err := tx.Table(tableTrait).Get(key(person, n.ID))
	if err != nil {
		return trait{}, err
	}
	if found {
		if t, err := decodeTrait(row); err == nil {
			return t, nil
		}
	}
	return n.trait(), nil
}

// trait is what a note is found by, without vectors.
func (n Note) trait() trait {
	return trait{scope: n.Scope, older: n.Newer != "", terms: termsOf(append([]string{n.Text, n.About}, n.Aliases...)...)}
}

// save writes a note and what it is found by.
func save(tx memory.Tx, person string, n Note, t trait) error {
	if err := tableNote.Put(tx, key(person, n.ID), n); err != nil {
		return err
	}
	t.scope, t.older = n.Scope, n.Newer != ""
	return tx.Table(tableTrait).Put(key(person, n.ID), t.encode())
}

// stamp is what is known of a person's whole diary.
type stamp struct {
	changed string // different after each change: what was made of the rows before is of no more use
	model   string // of which every note has vectors; "" when some note has none
}

// stampOf reads it; its changed is "" when the person has no notes.
func stampOf(tx memory.Tx, person string) (stamp, error) {
	row, _, err := tx.Table(tableStamp).Get(person)
	if err != nil || len(row) < stampSize {
		return stamp{}, err
	}
	return stamp{string(row[:stampSize]), string(row[stampSize:])}, nil
}

// touch notes that a person's diary has changed, and of which model every note has vectors now.
func touch(tx memory.Tx, person, model string) error {
	row := make([]byte, stampSize, stampSize+len(model))
	_, _ = rand.Read(row) // it never fails
	return tx.Table(tableStamp).Put(person, append(row, model...))
}
