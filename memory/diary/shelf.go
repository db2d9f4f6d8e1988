package diary

import (
	"container/list"
	"strings"
	"sync"
)

// shelf keeps the indexes that were asked last, as many as there is room for. Its methods may be called concurrently.
type shelf struct {
	mu    sync.Mutex
	room  int // bytes
	used  int
	order *list.List // of *shelved, the one asked last first
	named map[string]*list.Element
}

type shelved struct {
	name  string
	index *index
}

func newShelf(room int) *shelf {
	return &shelf{room: room, order: list.New(), named: map[string]*list.Element{}}
}

// get is the index of a view, if it is here and was made of rows with this stamp.
func (s *shelf) get(v View, stamp string) *index {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.named[key(v.Person, v.Scope)]
	if at == nil {
		return nil
	}
	x := at.Value.(*shelved).index
	if x.stamp != stamp {
		s.remove(at)
		return nil
	}
	s.order.MoveToFront(at)
	return x
}

// put keeps an index. Those that were not asked for longest go until there is room; one that has no room at all is not kept.
func (s *shelf) put(v View, x *index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := key(v.Person, v.Scope)
	if at := s.named[name]; at != nil {
		s.remove(at)
	}
	if x.size > s.room {
		return
	}
	for s.used+x.size > s.room {
		s.remove(s.order.Back())
	}
	s.used += x.size
	s.named[name] = s.order.PushFront(&shelved{name, x})
}

// drop lets all indexes of a person go.
func (s *shelf) drop(person string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, at := range s.named {
		if strings.HasPrefix(name, key(person, "")) {
			s.remove(at)
		}
	}
}

// clear lets all go.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.named {
		s.remove(at)
	}
}

// remove is for who holds mu.
func (s *shelf) remove(at *list.Element) {
	gone := s.order.Remove(at).(*shelved)
	delete(s.named, gone.name)
	s.used -= gone.index.size
}
