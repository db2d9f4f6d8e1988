// Package secret keeps secrets out of what is shown, logged, exported or sent to a model.
//
// A [Redactor] knows the secrets that the operator configured, also in pieces and as other programs write them
// (piece.go), and what keys of well-known services look like (shape.go). It is asked wherever text leaves: for logs there
// is [Redactor.Handler], for JSON [Redactor.JSON]. It is the last of several walls: secrets are not given to tools,
// programs and models to begin with.
package secret

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark stands in the place of a secret.
const Mark = "[secret]"

// Shortest is how many bytes a secret has at least. What is shorter is a placeholder, and would be found in every word.
const Shortest = 8

// Redactor hides secrets. Its methods may be called concurrently, and on nil, which hides nothing.
type Redactor struct {
	adding sync.Mutex
	known  atomic.Pointer[pieces]
}

// New returns a redactor that knows the shapes of secrets, and the given ones. White space around one counts as no part of
// it; what is shorter than Shortest is left out.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	r.known.Store(&pieces{})
	r.Add(secrets...)
	return r
}

// Add makes more secrets known.
func (r *Redactor) Add(secrets ...string) {
	r.adding.Lock()
	defer r.adding.Unlock()
	r.known.Store(r.known.Load().with(secrets))
}

// Text is a text with Mark in the place of each secret in it. What is hidden of a known secret is at least every piece of
// 12 bytes, and what is hidden stands within a run of text: nothing else of the text changes.
func (r *Redactor) Text(text string) string {
	if r == nil {
		return text
	}
	found := append(r.known.Load().find(text), shapesIn(text)...)
	if len(found) == 0 {
		return text
	}
	return replaced(text, found)
}

// span is a part of a text, in bytes.
type span struct{ start, end int }

// replaced puts Mark in the place of spans, those that touch as one.
func replaced(text string, spans []span) string {
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	var out strings.Builder
	written := 0
	for i := 0; i < len(spans); {
		joined := spans[i]
		for i++; i < len(spans) && spans[i].start <= joined.end; i++ {
			joined.end = max(joined.end, spans[i].end)
		}
		out.WriteString(text[written:joined.start])
		out.WriteString(Mark)
		written = joined.end
	}
	out.WriteString(text[written:])
	return out.String()
}
