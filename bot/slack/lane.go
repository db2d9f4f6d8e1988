package slack

import "sync"

// lanes does things side by side, but those of one lane in the order in which they came. The zero value works.
type lanes struct {
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
		queue[0]()
	}
}

// wait returns when everything was done. Nothing may be added meanwhile.
func (l *lanes) wait() { l.running.Wait() }
