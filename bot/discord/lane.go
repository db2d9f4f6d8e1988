package discord

import (
	"log/slog"
	"sync"
)

// lanes does things side by side, but those of one lane in the order in which they came. log must be set.
type lanes struct {
	log     *slog.Logger
	mu      sync.Mutex
	waiting map[string][]func() // by lane; a lane that is there has a goroutine
	running sync.WaitGroup
}

// do does something after all that came before it in its lane. It does not block.
func (l *lanes) do(lane string, fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[string][]func(){}
	}
	queue, runs := l.waiting[lane]
	l.waiting[lane] = append(queue, fn)
	if !runs {
		l.running.Go(func() { l.work(lane) })
	}
}

func (l *lanes) work(lane string) {
	for {
		l.mu.Lock()
		queue := l.waiting[lane]
		if len(queue) == 0 {
			delete(l.waiting, lane)
			l.mu.Unlock()
			return
		}
		l.waiting[lane] = queue[1:]
		l.mu.Unlock()
		l.safely(lane, queue[0])
	}
}

// safely does something that reads what came from outside. Whatever is wrong with that ends nothing else.
func (l *lanes) safely(lane string, fn func()) {
	defer func() {
		if fault := recover(); fault != nil {
			l.log.Error("something that came from discord could not be taken", "lane", lane, "fault", fault)
		}
	}()
	fn()
}

// wait returns when everything was done. Nothing may be added meanwhile.
func (l *lanes) wait() { l.running.Wait() }

// recent remembers the last names that it was told, with a value for each.
type recent[V any] struct {
	mu   sync.Mutex
	ring []string
	at   int
	in   map[string]V
}

func newRecent[V any](size int) *recent[V] {
	return &recent[V]{ring: make([]string, size), in: map[string]V{}}
}

// get gives what is remembered under a name.
func (r *recent[V]) get(name string) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, known = r.in[name]
	return value, known
}

// put remembers a value under a name.
func (r *recent[V]) put(name string, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.in[name]; !known {
		delete(r.in, r.ring[r.at])
		r.ring[r.at] = name
		r.at = (r.at + 1) % len(r.ring)
	}
	r.in[name] = value
}

// forget forgets a name.
func (r *recent[V]) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.in, name)
}

// all are the names and values that are remembered.
func (r *recent[V]) all() map[string]V {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]V, len(r.in))
	for name, value := range r.in {
		out[name] = value
	}
	return out
}
