package diary

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Embedder turns texts into vectors, of which near ones mean similar things. It may be called concurrently.
type Embedder interface {
	// Model names what makes the vectors. Those of different models are never held against each other.
	Model() string
	// Embed gives a vector for each text, in their order, all of one length. It heeds ctx. An error that wraps
	// [ErrTooLong] says that one of the texts is too long.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Score is how far a cosine speaks for two texts meaning the same, from 0 to 1. 0 is that of texts with nothing in common.
	Score(cosine float64) float64
}

// ErrTooLong is wrapped by the error of an [Embedder] for a text that it cannot take.
var ErrTooLong = errors.New("the text is too long for the embedder")

// Long texts are cut into pieces, which have a vector each.
const (
	pieceLength  = 4000 // runes
	pieceOverlap = 200  // runes, so that no phrase is only in halves
	mostPieces   = 64   // of one note; what comes after is found by its words alone
	mostHalvings = 6    // of the length, where the embedder takes less
)

// errNoVector is wrapped by the error for vectors that cannot be used.
var errNoVector = errors.New("the embedder gave no usable vector")

// embed gives the vectors of one text: of each of its pieces. Where a piece is too long for the embedder, all are made
// shorter, a few times at most.
func embed(ctx context.Context, e Embedder, text string) ([][]float32, error) {
	length := pieceLength
	for try := 0; ; try++ {
		vectors, err := embedAll(ctx, e, pieces(text, length))
		if err == nil || !errors.Is(err, ErrTooLong) || try == mostHalvings {
			return vectors, err
		}
		length = min(length, utf8.RuneCountInString(text)) / 2
		if length == 0 {
			return nil, err
		}
	}
}

// embedAll is an embedder's Embed, with what it gives looked at.
func embedAll(ctx context.Context, e Embedder, texts []string) ([][]float32, error) {
	vectors, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("%w: %d for %d texts", errNoVector, len(vectors), len(texts))
	}
	for _, v := range vectors {
		if len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("%w: they have %d and %d numbers", errNoVector, len(vectors[0]), len(v))
		}
		if !normalize(v) {
			return nil, fmt.Errorf("%w: one is zero or no number", errNoVector)
		}
	}
	return vectors, nil
}

// normalize gives a vector the length 1. It reports false for one that has no direction.
func normalize(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return true
}

// mean is the direction between vectors of one length; nil when there is none.
func mean(vectors [][]float32) []float32 {
	if len(vectors) == 0 {
		return nil
	}
	sum := make([]float32, len(vectors[0]))
	for _, v := range vectors {
		for i, x := range v {
			sum[i] += x
		}
	}
	if !normalize(sum) {
		return nil
	}
	return sum
}

// pieces cuts a text into overlapping parts of at most length runes.
func pieces(text string, length int) []string {
	runes := []rune(text)
	if len(runes) <= length {
		return []string{text}
	}
	step := max(length-min(pieceOverlap, length/4), 1)
	var parts []string
	for at := 0; at < len(runes) && len(parts) < mostPieces; at += step {
		end := min(at+length, len(runes))
		parts = append(parts, string(runes[at:end]))
		if end == len(runes) {
			break
		}
	}
	return parts
}
