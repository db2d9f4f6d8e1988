package openai

import (
	"bytes"
	"strings"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// slots gathers tool calls from the pieces that a stream sends them in. The call's id says which call a piece
// belongs to, where it has one; the index alone does not, since some servers send none and some send 0 for every call.
type slots struct {
	all []*slot // in the order in which they were opened
}

type slot struct {
	index *int // as the provider numbered it; nil when it did not
	id    string
	name  string
	args  []byte
}

// whole says whether the arguments are complete.
func (s *slot) whole() bool {
	return bytes.HasSuffix(bytes.TrimRight(s.args, " \t\r\n"), []byte("}")) && wire.IsObject(string(s.args))
}

// add takes in a piece of a stream.
func (s *slots) add(d callDelta) {
	id, name, args := string(d.ID), string(d.Function.Name), string(d.Function.Arguments)
	if id == "" && name == "" && args == "" && d.Index == nil {
		return
	}
	at := s.find(d)
	if at == nil {
		at = &slot{index: d.Index, id: id}
		s.all = append(s.all, at)
	} else if s.sentAgain(at, d) {
		return
	}
	if at.id == "" {
		at.id = id
	}
	if at.name != name {
		at.name += name
	}
	at.args = append(at.args, args...)
}

// find returns the slot that a piece continues, or nil if it opens one.
func (s *slots) find(d callDelta) *slot {
	if d.ID != "" {
		return s.findByID(d)
	}
	var at *slot
	for _, one := range s.all {
		if d.Index == nil || one.index != nil && *one.index == *d.Index {
			at = one
		}
	}
	if at != nil && s.opensNext(at, d) {
		return nil
	}
	return at
}

func (s *slots) findByID(d callDelta) *slot {
	for i := len(s.all) - 1; i >= 0; i-- {
		one := s.all[i]
		sameIndex := d.Index == nil || one.index == nil || *d.Index == *one.index
		if one.id == string(d.ID) && sameIndex {
			return one
		}
		if one.id == "" && d.Index != nil && one.index != nil && sameIndex {
			return one // its id comes late
		}
	}
	return nil
}

// opensNext says whether a piece without an id begins a new call although its place is taken: it has a name, and the
// call before it is done or has another name.
func (s *slots) opensNext(at *slot, d callDelta) bool {
	name := string(d.Function.Name)
	if name == "" || at.name == "" {
		return false
	}
	return at.whole() && strings.TrimSpace(string(d.Function.Arguments)) != "" || d.Index == nil && at.name != name
}

// sentAgain says whether a piece repeats a call that is done, as some gateways do when they close it.
func (s *slots) sentAgain(at *slot, d callDelta) bool {
	if d.ID == "" || !at.whole() {
		return false
	}
	last := s.all[len(s.all)-1]
	return at != last || string(d.Function.Arguments) == string(at.args)
}

// addWhole takes in a call of an answer that came in one piece.
func (s *slots) addWhole(d callDelta) {
	s.all = append(s.all, &slot{
		id: string(d.ID), name: string(d.Function.Name), args: []byte(d.Function.Arguments),
	})
}

// calls returns the calls, each with an id of its own; only those with complete arguments if the answer was cut off.
// It reports whether each of them has a name.
func (s *slots) calls(cutOff bool) ([]model.Call, bool) {
	var out []model.Call
	seen := map[model.Call]bool{}
	for _, one := range s.all {
		if cutOff && (!one.whole() || one.name == "") {
			continue
		}
		if one.name == "" {
			return nil, false
		}
		call := model.Call{ID: one.id, Name: one.name, Arguments: string(one.args)}
		if call.ID != "" && seen[call] {
			continue
		}
		seen[call] = true
		out = append(out, call)
	}
	wire.NameCalls(out)
	return out, true
}
