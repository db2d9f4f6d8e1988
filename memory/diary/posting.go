package diary

import "math/bits"

// wordIndex tells which notes have a feature. Its postings lie in buckets by the feature's last bits, one behind the other
// in one array, which takes two passes over the notes to make and no sorting.
type wordIndex struct {
	starts   []uint32 // of each bucket in postings; one more for the end of the last
	postings []posting
	notes    []length
	mean     length
}

// posting says that a note has a feature.
type posting struct {
	feature feature
	note    uint32 // and, in the lowest 8 bits, how often
}

// length is how many stems and grams a note has.
type length struct{ stems, grams float32 }

func (l *length) add(t term) {
	if t.feature.isGram() {
		l.grams += float32(t.count)
	} else {
		l.stems += float32(t.count)
	}
}

// perBucket is how many postings a bucket has on average, about.
const perBucket = 4

func newWordIndex(traits []trait) *wordIndex {
	total := 0
	for _, t := range traits {
		total += len(t.terms)
	}
	buckets := 1 << bits.Len(uint(total/perBucket))
	w := &wordIndex{starts: make([]uint32, buckets+1), postings: make([]posting, total), notes: make([]length, len(traits))}
	for i, t := range traits {
		for _, term := range t.terms {
			w.starts[w.bucket(term.feature)+1]++
			w.notes[i].add(term)
		}
		w.mean.stems += w.notes[i].stems / float32(len(traits))
		w.mean.grams += w.notes[i].grams / float32(len(traits))
	}
	for i := range buckets {
		w.starts[i+1] += w.starts[i]
	}
	next := make([]uint32, buckets)
	copy(next, w.starts)
	for i, t := range traits {
		for _, term := range t.terms {
			b := w.bucket(term.feature)
			w.postings[next[b]] = posting{term.feature, uint32(i)<<8 | uint32(term.count)}
			next[b]++
		}
	}
	return w
}

func (w *wordIndex) bucket(f feature) int { return int(f>>1) & (len(w.starts) - 2) }

// of are the postings among which those of a feature are.
func (w *wordIndex) of(f feature) []posting {
	b := w.bucket(f)
	return w.postings[w.starts[b]:w.starts[b+1]]
}

// size is about how many bytes it takes.
func (w *wordIndex) size() int { return 4*len(w.starts) + 8*len(w.postings) + 8*len(w.notes) }
