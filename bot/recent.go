package bot

import (
	"maps"
	"slices"
	"sync"
)

// Recent remembers the last names that an adapter has told it, with a value for each. It may be used concurrently.
type Recent[V any] struct {
	mu   sync.Mutex
	ring []string // in order; "" where there is room
	at   int      // where the next name is put
	in   map[string]V
}

// NewRecent returns one with room for so many names, at least one. "" is no name.
func NewRecent[V any](size int) *Recent[V] {
	return &Recent[V]{ring: make([]string, size), in: map[string]V{}}
}

// Get gives what is remembered under a name.
func (r *Recent[V]) Get(name string) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, known = r.in[name]
	return value, known
}

// Has reports whether a name is remembered.
func (r *Recent[V]) Has(name string) bool {
	_, known := r.Get(name)
	return known
}

// Put remembers a value under a name, in the place of the one before, and reports whether the name is new.
func (r *Recent[V]) Put(name string, value V) (fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.in[name]; !known {
		fresh = true
		delete(r.in, r.ring[r.at])
		r.ring[r.at] = name
		r.at = (r.at + 1) % len(r.ring)
	}
	r.in[name] = value
	return fresh
}

// Take gives what is remembered under a name, and forgets it.
func (r *Recent[V]) Take(name string) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, known = r.in[name]; known {
		delete(r.in, name)
		r.ring[slices.Index(r.ring, name)] = "" // or its old place would take it away when it is remembered anew
	}
	return value, known
}

// All are the names that are remembered, with their values.
func (r *Recent[V]) All() map[string]V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.in)
}
