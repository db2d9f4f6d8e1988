package bot

import "sync"

// Lanes does what adapters hear side by side, but what is of one lane, such as a channel, in the order in which it came.
// What panics ends nothing else. Lanes may be used concurrently, and the zero value works.
type Lanes struct {
	// Fault, if set, is told what panicked. It may be called concurrently, and must be set before Do is called.
	Fault func(lane string, fault any)

	mu      sync.Mutex
	waiting map[string][]func() // by lane; a lane that is there has a goroutine
	running sync.WaitGroup
}

// Do does something after all that came before it in its lane. It does not block.
func (l *Lanes) Do(lane string, fn func()) {
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

// Beside does something at once, beside all lanes. The name is for Fault.
func (l *Lanes) Beside(name string, fn func()) {
	l.running.Go(func() { l.safely(name, fn) })
}

// Wait returns when everything was done. Nothing may be added meanwhile but by what is still done.
func (l *Lanes) Wait() { l.running.Wait() }

func (l *Lanes) work(lane string) {
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

func (l *Lanes) safely(lane string, fn func()) {
	defer func() {
		if fault := recover(); fault != nil && l.Fault != nil {
			l.Fault(lane, fault)
		}
	}()
	fn()
}
