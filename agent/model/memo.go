package model

// Memo is what a client has made of the conversation's beginning, so that the next request of the same conversation is
// spliced from it. The zero value is empty. It belongs to one conversation and is not for concurrent use; but a client
// touches it only until it sends the request, and what is being sent stays as it is whatever becomes of the memo. It may
// be thrown away at any time: the next request has the same bytes, and takes as long to write as the first.
//
// A client finds out by itself what still is as it was. For that to hold, the bytes of a tool's schema must not be
// changed in place; all else may be.
type Memo struct {
	// Kept belongs to the client that left it, which knows it by its type and puts its own in place of another's. It
	// is nil when there is nothing.
	Kept Kept
}

// Kept is what a client keeps in a [Memo].
type Kept interface {
	// Size returns the bytes of memory that it holds, but for the texts that it has in common with the conversation.
	Size() int
}

// Size returns the bytes of memory that the memo holds, but for the texts that it has in common with the conversation.
// A nil memo holds none.
func (m *Memo) Size() int {
	if m == nil || m.Kept == nil {
		return 0
	}
	return m.Kept.Size()
}
