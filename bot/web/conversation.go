package web

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// How much of a conversation is held for tabs that were cut off for a while. Older lines are in the store.
const (
	heldLines = 512
	heldBytes = 4 << 20
	// heldIdle is how many conversations that nobody looks at are held.
	heldIdle = 32
)

// conversation is what was said lately in one conversation, in order, for those who follow it.
//
// Three things must not overlap: that words are admitted and shown to the tabs, that a reply is shown, and that the
// store is read for a tab that comes in. So each happens behind the gate. What a snapshot holds was then either
// shown before it, or is in the outbox and known by its parcel when it is shown.
type conversation struct {
	address string
	epoch   string // tells numbers of this server's lines from those of another
	users   int    // guarded by the server's mu

	gate sync.Mutex
	kept bool // there may be kept lines in the store; guarded by gate

	mu      sync.Mutex // guards what follows; held for moments
	lines   []held
	bytes   int
	last    uint64 // number of the newest line
	readers map[*reader]struct{}
}

// held is a line, its number and its JSON.
type held struct {
	number uint64
	line   line
	data   []byte
}

// enter gives the conversation at an address. The caller calls leave when it is done with it.
func (s *Server) enter(address string) (c *conversation, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.conversations[address]
	if c == nil {
		c = &conversation{address: address, epoch: rand.Text()[:12], kept: true, readers: map[*reader]struct{}{}}
		s.conversations[address] = c
	}
	c.users++
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.users--
		if c.users == 0 && (s.programs.Serves(address) || len(s.conversations) > heldIdle) {
			delete(s.conversations, address)
		}
	}
}

// publish adds a line and wakes those who follow. It does not wait for them.
func (c *conversation) publish(l line) error {
	data, err := l.encoded()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.lines = append(c.lines, held{c.last, l, data})
	c.bytes += len(data)
	for len(c.lines) > heldLines || c.bytes > heldBytes && len(c.lines) > 1 {
		c.bytes -= len(c.lines[0].data)
		c.lines[0] = held{}
		c.lines = c.lines[1:]
	}
	for r := range c.readers {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// watched reports whether anybody follows.
func (c *conversation) watched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.readers) > 0
}

// reader follows a conversation.
type reader struct {
	of    *conversation
	after uint64        // the number of the last line that was read
	wake  chan struct{} // there may be more
}

// errBehind is the error of a reader that was too slow: what it should read next is not held any more.
var errBehind = errors.New("the reader has fallen too far behind")

// follow begins to read after the newest line.
func (c *conversation) follow() *reader {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &reader{of: c, after: c.last, wake: make(chan struct{}, 1)}
	c.readers[r] = struct{}{}
	return r
}

// followFrom goes on where a tab was cut off, if what came after is still held.
func (c *conversation) followFrom(mark string) (*reader, bool) {
	epoch, number, _ := strings.Cut(mark, "-")
	after, err := strconv.ParseUint(number, 10, 64)
	if err != nil || epoch != c.epoch {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if after > c.last || after < c.last-uint64(len(c.lines)) {
		return nil, false
	}
	r := &reader{of: c, after: after, wake: make(chan struct{}, 1)}
	r.wake <- struct{}{}
	c.readers[r] = struct{}{}
	return r, true
}

// next gives what came since, which may be nothing.
func (r *reader) next() ([]held, error) {
	c := r.of
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := c.last - r.after
	if fresh > uint64(len(c.lines)) {
		return nil, errBehind
	}
	r.after = c.last
	return append([]held(nil), c.lines[len(c.lines)-int(fresh):]...), nil
}

// stop ends the reading.
func (r *reader) stop() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	delete(r.of.readers, r)
}

// mark names a line's place to a tab, for followFrom.
func (c *conversation) mark(number uint64) string { return fmt.Sprintf("%s-%d", c.epoch, number) }
