package diary

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// The numbers of BM25, and how much a gram counts against a stem.
const (
	saturation = 1.2
	lengthBias = 0.5
	gramWeight = 0.15
)

// background is how many notes about other things a diary counts as having besides its own, so that words are rare or
// common also where there are only a few.
const background = 100

// fuseFrom is the constant of reciprocal rank fusion: how little the first places differ. A place counts as much as what
// speaks for it: a note that shares a few letters with a query has a place too, and that must not add up.
const fuseFrom = 60

// depth is how far down each order is read.
const depth = 50

// ranked is a note, by its place in the index, and what it is ordered by.
type ranked struct {
	note int
	by   float64
	// covers is how much of what was asked for the note has, from 0 to 1: the part of a query's features, or the cosine.
	covers float64
}

// match orders the notes that have something of a query, by BM25.
func (w *wordIndex) match(query []term) []ranked {
	if len(w.notes) == 0 {
		return nil
	}
	type sum struct{ by, covers float32 }
	sums := make([]sum, len(w.notes))
	var whole float32
	for _, q := range query {
		list := w.of(q.feature)
		in := 0
		for _, p := range list {
			if p.feature == q.feature {
				in++
			}
		}
		weight := rarity(in, len(w.notes))
		if q.feature.isGram() {
			weight *= gramWeight
		}
		whole += weight
		if in == 0 {
			continue
		}
		for _, p := range list {
			if p.feature == q.feature {
				s := &sums[p.note>>8]
				s.by += weight * w.frequency(p)
				s.covers += weight
			}
		}
	}
	var found []ranked
	for i, s := range sums {
		if s.by > 0 {
			found = append(found, ranked{note: i, by: float64(s.by), covers: float64(s.covers / whole)})
		}
	}
	return first(found, depth)
}

// rarity is the weight of a feature that so many of the notes have.
func rarity(in, notes int) float32 {
	n := float64(notes + background)
	return float32(math.Log(1 + (n-float64(in)+0.5)/(float64(in)+0.5)))
}

// frequency is how much a note's having a feature several times counts.
func (w *wordIndex) frequency(p posting) float32 {
	has, usual := w.notes[p.note>>8].stems, w.mean.stems
	if p.feature.isGram() {
		has, usual = w.notes[p.note>>8].grams, w.mean.grams
	}
	count := float32(p.note & 0xff)
	return count * (saturation + 1) / (count + saturation*(1-lengthBias+lengthBias*has/usual))
}

// first are the best of a list, in order. Those that are equal stay as they were. The list is changed.
func first(list []ranked, most int) []ranked {
	best := list[:0]
	for _, r := range list {
		if len(best) == most && r.by <= best[most-1].by {
			continue
		}
		at := len(best)
		for at > 0 && best[at-1].by < r.by {
			at--
		}
		if len(best) == most {
			best = best[:most-1]
		}
		best = slices.Insert(best, at, r)
	}
	return best
}

// found is a note that a search came upon.
type found struct {
	id    string
	score float64
	fused float64
}

// tally is what several orders say of one note.
type tally struct {
	fused float64
	most  float64 // that it covers of a query
	sum   float64 // of what it covers of each
	near  float64 // the score of its vector
}

// score is half by the query that fits best and half by all of them, so that a word which only one of the wordings shares
// with a note is not enough.
func (t *tally) score(queries int) float64 {
	return max((t.most+t.sum/float64(queries))/2, t.near)
}

// search orders the notes of an index for some queries, which mean the same in other words, and a vector of them, which may
// be nil.
func (x *index) search(ctx context.Context, queries [][]term, vector []float32, e Embedder) ([]found, error) {
	tallies := map[int]*tally{}
	take := func(list []ranked, count func(*tally, ranked)) {
		for place, r := range list {
			t := tallies[r.note]
			if t == nil {
				t = &tally{}
				tallies[r.note] = t
			}
			t.fused += max(r.covers, 0) / float64(fuseFrom+place+1)
			count(t, r)
		}
	}
	for _, query := range queries {
		take(x.words.match(query), func(t *tally, r ranked) {
			t.most = max(t.most, r.covers)
			t.sum += r.covers
		})
	}
	near, err := x.near(ctx, vector, depth)
	if err != nil {
		return nil, err
	}
	take(near, func(t *tally, r ranked) { t.near = e.Score(r.by) })
	order := make([]found, 0, len(tallies))
	for note, t := range tallies {
		order = append(order, found{id: x.ids[note], score: t.score(len(queries)), fused: t.fused})
	}
	slices.SortFunc(order, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.fused, a.fused), cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	return order, nil
}
