package diary

import (
	"context"
	"strings"
)

// localDims is how many numbers a local vector has.
const localDims = 96

// Local is the embedder that needs no network: a vector counts a text's features, each at a place that its hash gives. It
// brings texts together that have word parts in common, and knows no meaning.
func Local() Embedder { return local{} }

type local struct{}

// Model changes whenever the vectors do.
func (local) Model() string { return "local-1" }

// Score is always 0: what such a cosine says, the words have said already.
func (local) Score(float64) float64 { return 0 }

func (local) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		terms := termsOf(text)
		if terms == nil { // nothing but empty words, which then count
			terms = []term{{hash(strings.ToLower(text)), 1}}
		}
		vectors[i] = scatter(terms)
	}
	return vectors, nil
}

// scatter adds features up. The sign of each is in its hash too, so that those which meet at a place cancel out in the
// long run.
func scatter(terms []term) []float32 {
	v := make([]float32, localDims)
	for _, t := range terms {
		h := uint32(t.feature) >> 1
		sign := float32(1)
		if h&1 == 1 {
			sign = -1
		}
		v[(h>>1)%localDims] += sign
	}
	if !normalize(v) { // they all cancelled out
		v[0] = 1
	}
	return v
}
