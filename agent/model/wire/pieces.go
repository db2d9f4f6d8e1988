package wire

import (
	"bytes"
	"io"
)

// Pieces is the body of a request, cut where what was written before ends and what is new begins, so that a long history
// need not be copied together. Nobody changes the bytes any more. It may be read concurrently.
type Pieces [][]byte

// joined is the size in bytes up to which pieces are copied together to be sent. net/http sends a body that it knows to
// lie in memory in one write with the header, and any other through a buffer of half this size, after the header.
const joined = 64 << 10

// Size returns how many bytes there are.
func (p Pieces) Size() int {
	n := 0
	for _, piece := range p {
		n += len(piece)
	}
	return n
}

// Reader reads the pieces as one, from the beginning. Closing it does nothing.
func (p Pieces) Reader() io.ReadCloser {
	if p.Size() <= joined {
		return io.NopCloser(bytes.NewReader(bytes.Join(p, nil)))
	}
	readers := make([]io.Reader, len(p))
	for i, piece := range p {
		readers[i] = bytes.NewReader(piece)
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// upTo returns the first n bytes of those there are. If that is not all, they have no room behind them, so that what
// is added goes to other memory. It changes the list of the pieces, but none of their bytes.
func (p Pieces) upTo(n int) Pieces {
	for i, piece := range p {
		if n < len(piece) {
			p[i] = piece[:n:n]
			clear(p[i+1:])
			return p[:i+1]
		}
		n -= len(piece)
	}
	return p
}
