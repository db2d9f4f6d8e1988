package agent

import "slices"

// maxShelf is how many bytes of conversation the sessions at rest keep in memory, all together.
const maxShelf = 2 << 20

// shelf keeps the state of sessions that rest, so that the next message need not read the whole journal. The journal
// stays the truth: a state is used only if it is as long. The zero value works; the agent's lock guards it.
type shelf struct {
	states map[string]*state
	order  []string // by how long they have rested, longest first
	bytes  int
}

// put keeps the state of a session, at the expense of those that have rested longest.
func (s *shelf) put(session string, of *state) {
	if of.bytes > maxShelf/4 {
		return
	}
	if s.states == nil {
		s.states = map[string]*state{}
	}
	s.states[session] = of
	s.order = append(s.order, session)
	for s.bytes += of.weight(); s.bytes > maxShelf; {
		s.take(s.order[0])
	}
}

// take gives the state of a session, which is then the caller's; nil when there is none.
func (s *shelf) take(session string) *state {
	of := s.states[session]
	if of == nil {
		return nil
	}
	delete(s.states, session)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == session })
	s.bytes -= of.weight()
	return of
}

// weight is about how many bytes a state takes up.
func (s *state) weight() int { return s.bytes + 64*len(s.view) + 512*len(s.cards) + 1024 }
