// Package stage is what things that behave like a platform have in common, for tests: somebody waits until something is so
// there, and calls go wrong as a test says.
package stage

import (
	"sync"
	"time"
)

// Stage is the part of such a thing that tests play on. F is how a call goes wrong. The zero value works, and all methods may be
// called concurrently, also by who holds a lock of the thing's own.
type Stage[F any] struct {
	mu      sync.Mutex
	changed chan struct{}  // closed when something happens; nil while nobody awaits that
	faults  map[string][]F // by the name of the call
	disturb func(call string, number int) *F
}

// Await waits until something is so, and reports whether it came to be before the time was up. It looks again whenever
// something happens here.
func (s *Stage[F]) Await(patience time.Duration, so func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		changed := s.change()
		if so() {
			return true
		}
		select {
		case <-changed:
		case <-deadline.C:
			return so()
		}
	}
}

// change is closed when something happens after this.
func (s *Stage[F]) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// Happened wakes those who await.
func (s *Stage[F]) Happened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Fail lets the next calls of a name go wrong, each in its way.
func (s *Stage[F]) Fail(call string, faults ...F) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults == nil {
		s.faults = map[string][]F{}
	}
	s.faults[call] = append(s.faults[call], faults...)
}

// Disturb lets each call go wrong as a function says, which is called with its name and its number among all, and returns nil
// for one that goes well. What [Stage.Fail] says comes before. The function must call nothing of what it disturbs.
func (s *Stage[F]) Disturb(how func(call string, number int) *F) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disturb = how
}

// Spoil says how a call that is made goes wrong; nil for one that goes well.
func (s *Stage[F]) Spoil(call string, number int) *F {
	s.mu.Lock()
	defer s.mu.Unlock()
	if faults := s.faults[call]; len(faults) > 0 {
		s.faults[call] = faults[1:]
		return &faults[0]
	}
	if s.disturb == nil {
		return nil
	}
	return s.disturb(call, number)
}
