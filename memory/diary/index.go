package diary

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/philippgille/chromem-go"

	"nudge/memory"
)

// index is what one person may be shown in one place, in memory. It is made of the rows and never changed: after the rows
// have, another is made. It has no words of the notes, only what they are found by.
type index struct {
	stamp   string // of the rows that it was made of
	ids     []string
	words   *wordIndex
	vectors *chromem.Collection // nil when no note has any
	owners  []int               // of each vector, its note
	size    int                 // bytes, about
}

// What each costs in memory besides its contents, about; the figures were taken from heap profiles.
const (
	indexSize  = 2 << 10
	noteSize   = 96
	vectorSize = 400 // chromem's document, its name and its place in a map
)

// readIndex makes an index of a person's rows for a view. Vectors of another model than the given one are left out.
func readIndex(tx memory.Tx, v View, model string) (*index, error) {
	stamp, err := stampOf(tx, v.Person)
	if err != nil {
		return nil, err
	}
	x := &index{stamp: stamp.changed, size: indexSize}
	var traits []trait
	var vectors [][]float32
	prefix := key(v.Person, "")
	err = tx.Table(tableTrait).Scan(prefix, func(name string, row []byte) error {
		t, err := decodeTrait(row)
		id := name[len(prefix):]
		if err != nil { // found by its words again at once, by its vector after the next embedding
			n, found, err := load(tx, v.Person, id)
			if err != nil || !found {
				return err
			}
			t = n.trait()
		}
		if !v.shows(t.scope) {
			return nil
		}
		if t.model == model {
			for _, vector := range t.vectors {
				vectors = append(vectors, vector)
				x.owners = append(x.owners, len(x.ids))
			}
		}
		x.ids = append(x.ids, id)
		traits = append(traits, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the notes of %s: %w", v.Person, err)
	}
	x.words = newWordIndex(traits)
	x.size += x.words.size() + noteSize*len(x.ids)
	return x, x.keep(vectors)
}

// keep puts vectors into a collection of their own. Those that do not fit the others are left out.
func (x *index) keep(vectors [][]float32) error {
	if len(vectors) == 0 {
		return nil
	}
	c, err := chromem.NewDB().CreateCollection("notes", nil, refuseToEmbed)
	if err != nil {
		return fmt.Errorf("index vectors: %w", err)
	}
	dims := len(vectors[0])
	for i, v := range vectors {
		if len(v) != dims || !normalize(v) {
			continue
		}
		if err := c.AddDocument(context.Background(), chromem.Document{ID: strconv.Itoa(i), Embedding: v}); err != nil {
			return fmt.Errorf("index a vector: %w", err)
		}
	}
	if c.Count() == 0 {
		return nil
	}
	x.vectors = c
	x.size += len(vectors) * (4*dims + vectorSize)
	return nil
}

// refuseToEmbed stands where chromem would else ask a server that nobody chose.
func refuseToEmbed(context.Context, string) ([]float32, error) {
	return nil, errors.New("the index makes no vectors")
}

// near are the notes whose vectors are nearest to one, the nearest first, each with its cosine.
func (x *index) near(ctx context.Context, vector []float32, most int) ([]ranked, error) {
	if x.vectors == nil || vector == nil {
		return nil, nil
	}
	// Nothing is ever taken out of the collection, so the count still holds.
	results, err := x.vectors.QueryEmbedding(ctx, vector, min(most, x.vectors.Count()), nil, nil)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, nil // of another length than those here: the words remain
	}
	var found []ranked
	had := map[int]bool{}
	for _, r := range results {
		at, err := strconv.Atoi(r.ID)
		if err != nil || at < 0 || at >= len(x.owners) || had[x.owners[at]] {
			continue // another piece of a note that is here already
		}
		had[x.owners[at]] = true
		found = append(found, ranked{note: x.owners[at], by: float64(r.Similarity), covers: float64(r.Similarity)})
	}
	return found, nil
}
