package bot

import (
	"errors"
	"sync"
	"time"
)

// Ledger is what an adapter that finds out ([FindsOut]) knows of replies that are not wholly said: which of their messages stand
// on the platform. M tells the messages of one reply apart, and is the same in every try. The zero value is ready. Its methods
// may be called concurrently.
type Ledger[M comparable] struct {
	mu    sync.Mutex
	tries map[string]*Try[M] // by key
}

// Try is a reply that is being said. It belongs to whoever says that reply: of one key there is one try at a time.
type Try[M comparable] struct {
	Said   map[M]string // where each message stands that was said
	Unsure time.Time    // when the first message was sent whose fate is not known; zero when there is none
}

// Of gives what is known of the tries of a reply. Those of an earlier process, of which nothing is known, make it unsure.
func (l *Ledger[M]) Of(d Delivery) *Try[M] {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tries[d.Key]
	if t == nil {
		t = &Try[M]{Said: map[M]string{}, Unsure: d.Doubtful}
	}
	if l.tries == nil {
		l.tries = map[string]*Try[M]{}
	}
	if d.Key != "" {
		l.tries[d.Key] = t
	}
	return t
}

// Close takes note of how a try ended. What was said, or will not be tried under this key again, is forgotten; in any other
// [SendError] it notes whether a part of the reply was said, or may have been.
func (l *Ledger[M]) Close(key string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var send *SendError
	switch {
	case err == nil, errors.As(err, &send) && (send.Gone || send.Blind):
		delete(l.tries, key)
	case send != nil:
		t := l.tries[key]
		send.Unsure = t != nil && (len(t.Said) > 0 || !t.Unsure.IsZero())
	}
}

// Doubt notes that what was sent just now may have been said in spite of an error.
func (t *Try[M]) Doubt() {
	if t.Unsure.IsZero() {
		t.Unsure = time.Now()
	}
}
