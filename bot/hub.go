package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/memory"
	"nudge/memory/diary"
)

// Config is what a Hub is made of. Store must be set.
type Config struct {
	Store memory.Store
	// Allow are the people who are served besides the local ones: ids, or a prefix and "*" as in "api:*".
	Allow  []string
	Owners []agent.PersonID
	Model  string // the name that people are told
	// Diary is what people's notes are kept in; nil where there is none.
	Diary *diary.Diary
	// FirstWait is the time before the second try to say something that could not be said; it doubles with each try
	// after that, up to a minute. 0 means a second.
	FirstWait time.Duration
	// Grace is for how long at the end what is left is still said. 0 means three seconds.
	Grace time.Duration
	// Ending, if set, is called by Serve when nobody listens any more: it lets what runs come to an end.
	Ending func()
	// Left, if set, is called in the transaction in which a reply is given up whose person or place is not there any more. It
	// gives what follows from that, in a sentence for the owners; "" for nothing.
	Left func(tx memory.Tx, r agent.Reply, reason string) (follows string, err error)
	// Rescheduled, if set, is called after heartbeats were resumed, or somebody said what they want to hear of them. It must
	// not block.
	Rescheduled func()
	// Secrets are in nothing that is said. Nil hides none.
	Secrets *secret.Redactor
	// Forget, if set, is called when somebody is to be forgotten; see [Oblivions]. It must not block.
	Forget func()
	Log    *slog.Logger
}

// Hub connects adapters with the agent. Its methods may be called concurrently.
type Hub struct {
	Config
	agent  *agent.Agent
	look   chan struct{} // there may be something in the outbox
	began  chan struct{} // closed when Serve has its adapters
	ending chan struct{} // closed when Serve stops

	mu       sync.Mutex
	quiet    *sync.Cond
	adapters []Adapter
	closed   map[Adapter]bool
	failed   error             // of adapters that ended with one
	queues   map[string]*queue // by conversation, those of receipts by another name; only those with something to say
	cursor   uint64            // the last parcel that was looked at
	live     []placed          // progress that is not queued yet
	progress int               // how much there has been
	taken    map[uint64]bool   // parcels that are in a queue or being said, and those of free
	free     []uint64          // parcels that left their queue since the last look at the outbox
	asked    int               // looks asked for
	looked   int               // of these, how many were begun and have ended
	alarmed  int               // the look that was asked for by the hub's own last words
	ended    bool              // nothing more is queued
	pace     pace
	full     map[string]time.Time // when conversations were told that the disk is full
	serving  sync.WaitGroup
}

// The times between tries to say something, and how long it is tried before it is given up: platforms are down for hours.
const (
	firstWait = time.Second
	longest   = time.Minute
	sayFor    = 24 * time.Hour
	endGrace  = 3 * time.Second
)

// NewHub returns a Hub that does nothing yet. Its [Hub.Outgoing], [Hub.Live] and [Hub.Fetch] are for the agent's config.
func NewHub(c Config) *Hub {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.FirstWait <= 0 {
		c.FirstWait = firstWait
	}
	if c.Grace <= 0 {
		c.Grace = endGrace
	}
	h := &Hub{Config: c, look: make(chan struct{}, 1), began: make(chan struct{}), ending: make(chan struct{}), queues: map[string]*queue{}, taken: map[uint64]bool{}, closed: map[Adapter]bool{}}
	h.quiet = sync.NewCond(&h.mu)
	return h
}

// Serve lets adapters listen and speak for the agent until each has ended, or ctx does. It may be called once.
func (h *Hub) Serve(ctx context.Context, ag *agent.Agent, adapters ...Adapter) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h.mu.Lock()
	h.agent = ag
	h.mu.Unlock()
	// What is said outlives the listening: what runs at the end has answers too.
	speaking, hush := context.WithCancel(context.WithoutCancel(ctx))
	defer hush()
	h.serving.Go(func() { h.pump(speaking) })
	ended := make(chan error, len(adapters))
	for _, adapter := range adapters {
		h.attach(adapter)
		go func() { ended <- h.listen(ctx, adapter) }()
	}
	close(h.began)
	var failed []error
	for range adapters {
		failed = append(failed, <-ended)
	}
	if h.Ending != nil {
		h.Ending()
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.Grace)
	defer cancel()
	if err := h.Drain(grace, nil); err != nil {
		h.Log.Warn("not everything could be said before the end; it is kept for the next start")
	}
	hush()
	h.end()
	h.settled(grace)
	return errors.Join(failed...)
}

// settled waits for what is being said to end. An output that nobody reads cannot be waited for.
func (h *Hub) settled(grace context.Context) {
	done := make(chan struct{})
	go func() {
		h.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-grace.Done():
		h.Log.Warn("something is still being said and is not waited for")
	}
}

// end lets queues finish what they are saying. The rest stays in the outbox for the next start.
func (h *Hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	close(h.ending)
	h.quiet.Broadcast()
}

// Attach lets one more adapter listen and speak while the Hub serves, until it ends or ctx does.
func (h *Hub) Attach(ctx context.Context, adapter Adapter) error {
	h.attach(adapter)
	defer h.detach(adapter)
	return h.listen(ctx, adapter)
}

// Failed is the errors with which adapters have ended; nil while each listens.
func (h *Hub) Failed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

func (h *Hub) listen(ctx context.Context, adapter Adapter) error {
	if err := adapter.Listen(ctx, h); err != nil && ctx.Err() == nil {
		h.mu.Lock()
		h.failed = errors.Join(h.failed, fmt.Errorf("%s: %w", adapter.Platform(), err))
		h.mu.Unlock()
		// Other adapters may serve on for long, so this is told now.
		h.Log.Error("an adapter has ended", "platform", adapter.Platform(), "error", err)
		return fmt.Errorf("listen to %s: %w", adapter.Platform(), err)
	}
	return nil
}

// attach lets an adapter speak. What waits in the outbox for its conversations is looked for from the start.
func (h *Hub) attach(adapter Adapter) {
	h.mu.Lock()
	h.adapters = append(h.adapters, adapter)
	h.cursor = 0
	h.mu.Unlock()
	h.Outgoing()
}

func (h *Hub) detach(adapter Adapter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.adapters = slices.DeleteFunc(h.adapters, func(a Adapter) bool { return a == adapter })
	delete(h.closed, adapter)
}
