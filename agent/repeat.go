package agent

import (
	"fmt"
	"hash/maphash"
	"slices"
)

const (
	// warnAfter is the round without anything new after which the model is told so.
	warnAfter = 3
	// DefaultRepeats is the round without anything new after which a turn is ended.
	DefaultRepeats = 6
	// longestPolling is how many times in a row the same calls are made, and nothing else, whatever they give.
	longestPolling = 20
)

// repeats watches for a turn that goes round in circles. A round is one pass through the same calls: of one call it
// is a step, of a cycle of two it is two. Whoever polls and gets something new each time may go on, up to a point;
// whatever else is done in between begins the count anew.
type repeats struct {
	results circle // of calls with what they gave: a loop
	calls   circle // of calls alone: a poll
}

// circle counts the steps that brought nothing new.
type circle struct {
	known  map[uint64]bool // calls, or calls with their results, of the turn
	stale  int             // steps in a row in which all were known
	around map[uint64]bool // the different sets of them that a step had
	among  map[uint64]bool // all of them
}

// rounds is how many times the same was seen, the first time included.
func (c *circle) rounds() int {
	if c.stale == 0 {
		return 1
	}
	return 1 + c.stale/min(len(c.around), len(c.among))
}

// see takes what one step did.
func (c *circle) see(did []uint64) {
	fresh := false
	for _, key := range did {
		if !c.known[key] {
			if c.known == nil {
				c.known = map[uint64]bool{}
			}
			c.known[key], fresh = true, true
		}
	}
	if fresh {
		c.stale, c.around, c.among = 0, nil, nil
		return
	}
	if c.around == nil {
		c.around, c.among = map[uint64]bool{}, map[uint64]bool{}
	}
	c.stale++
	for _, key := range did {
		c.among[key] = true
	}
	slices.Sort(did)
	c.around[hashOf(fmt.Sprint(slices.Compact(did)))] = true
}

// see takes a step's calls and their results.
func (r *repeats) see(batch []*call) {
	calls, results := make([]uint64, len(batch)), make([]uint64, len(batch))
	for i, c := range batch {
		arguments := canonicalText(c.Arguments)
		calls[i] = hashOf(c.Name, arguments)
		results[i] = hashOf(c.Name, arguments, c.result)
	}
	r.calls.see(calls)
	r.results.see(results)
}

// warning is what the model reads after the newest result; "" while there is no need.
func (r *repeats) warning() string {
	switch {
	case r.results.rounds() >= warnAfter:
		return fmt.Sprintf("[the same calls have now given the same results %d times; that will not change by asking again: do something else, or answer with what you have]", r.results.rounds())
	case r.calls.rounds() >= longestPolling/2:
		return fmt.Sprintf("[the same calls were made %d times and nothing else in between; after %d the turn ends: do something else, or answer with what you have]", r.calls.rounds(), longestPolling)
	}
	return ""
}

// ends says to the person why the turn ends here; "" while it may go on.
func (r *repeats) ends(limit int) string {
	switch {
	case limit <= 0:
	case r.results.rounds() >= limit:
		return fmt.Sprintf("I stopped: I went round in circles, %d times the same calls with the same results.", r.results.rounds())
	case r.calls.rounds() >= longestPolling:
		return fmt.Sprintf("I stopped: I made the same calls %d times in a row and nothing else.", r.calls.rounds())
	}
	return ""
}

var hashSeed = maphash.MakeSeed()

func hashOf(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for _, part := range parts {
		maphash.WriteComparable(&h, len(part))
		_, _ = h.WriteString(part) // never fails
	}
	return h.Sum64()
}

// canonicalText is a call's arguments in one form, if they are an object at all: the order of the keys does not make
// another call.
func canonicalText(arguments string) string {
	object, err := readObject(arguments)
	if err != nil {
		return arguments
	}
	text, err := canonical(object)
	if err != nil {
		return arguments
	}
	return string(text)
}
