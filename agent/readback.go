package agent

import (
	"bytes"
	"slices"

	"nudge/memory"
)

// replaced is how the encoder writes a byte that is no UTF-8; it reads back as U+FFFD.
var replaced = []byte(`\ufffd`)

// readBack gives what a restart would read of an entry that was encoded as line. Decoding the line does that for every entry,
// and takes longer than encoding it; those that stand in every turn are mostly what they read back as, and are only copied.
func readBack(e entry, line memory.Entry) (entry, error) {
	if own := owned(e); own != nil && !bytes.Contains(line.Data, replaced) {
		return own, nil
	}
	return decode(line)
}

// owned copies an entry that is what its line reads back as if all its text is UTF-8, so that nothing in it is shared with
// the caller. It is nil for an entry of which that is not so, or not known.
func owned(e entry) entry {
	switch e := e.(type) {
	case messageEntry:
		if len(e.Files) > 0 || len(e.Owed) > 0 || !e.Mark.IsZero() {
			return nil
		}
		e.IDs, e.Files, e.Owed, e.Origin.Speakers = copied(e.IDs), nil, nil, copied(e.Origin.Speakers)
		return &e
	case turnEntry:
		if e.Wake != nil {
			return nil
		}
		return &e
	case modelCallEntry:
		e.Calls = copied(e.Calls)
		return &e
	case runEntry:
		return &e
	case modelAskedEntry:
		return &e
	case toolCallEntry:
		return &e
	case toolResultEntry:
		e.Origin.Speakers = copied(e.Origin.Speakers)
		return &e
	case stoppedEntry:
		return &e
	}
	return nil
}

// copied copies a slice. An empty one is left out of the line, and reads back as none.
func copied[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return slices.Clone(s)
}
