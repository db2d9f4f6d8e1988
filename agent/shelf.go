package agent

import "container/list"

// maxShelf is how many bytes of conversation the sessions at rest keep in memory, all together.
const maxShelf = 2 << 20

// shelf keeps the state of sessions that rest, so that the next message need not read the whole journal. The journal
// stays the truth: a state is used only if it is as long. The zero value works; the agent's lock guards it.
type shelf struct {
	states map[string]*list.Element // in order
	order  list.List                // of shelved, by how long they have rested, longest first
	bytes  int
}

// shelved is the state of a session at rest.
type shelved struct {
	session string
	of      *state
}

// put keeps the state of a session, at the expense of those that have rested longest.
func (s *shelf) put(session string, of *state) {
	if of.bytes > maxShelf/4 {
		return
	}
	if s.states == nil {
		s.states = map[string]*list.Element{}
	}
	s.take(session)
	s.states[session] = s.order.PushBack(shelved{session, of})
	for s.bytes += of.weight(); s.bytes > maxShelf; {
		s.take(s.order.Front().Value.(shelved).session)
	}
}

// take gives the state of a session, which is then the caller's; nil when there is none.
func (s *shelf) take(session string) *state {
	at := s.states[session]
	if at == nil {
		return nil
	}
	delete(s.states, session)
	of := s.order.Remove(at).(shelved).of
	s.bytes -= of.weight()
	return of
}

// weight is about how many bytes a state takes up.
func (s *state) weight() int { return s.bytes + 64*len(s.view) + 512*len(s.cards) + 1024 }
