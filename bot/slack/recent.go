package slack

import (
	"slices"
	"sync"
)

// recent remembers the last names that it was told.
type recent struct {
	mu   sync.Mutex
	ring []string
	at   int
	in   map[string]bool
}

func newRecent(size int) *recent { return &recent{ring: make([]string, size), in: map[string]bool{}} }

// has reports whether a name is among them.
func (r *recent) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in[name]
}

// add reports whether a name is new, and remembers it.
func (r *recent) add(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in[name] {
		return false
	}
	delete(r.in, r.ring[r.at])
	r.ring[r.at], r.in[name] = name, true
	r.at = (r.at + 1) % len(r.ring)
	return true
}

// take reports whether a name is remembered, and forgets it.
func (r *recent) take(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.in[name] {
		return false
	}
	delete(r.in, name)
	r.ring[slices.Index(r.ring, name)] = "" // or its old place would take it away when it is remembered anew
	return true
}
