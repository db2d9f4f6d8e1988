package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"nudge/memory"
)

const (
	// longestWait is how long the timer is armed at most: timers do not count the time that a machine sleeps.
	longestWait = time.Minute
	// onTime is how late a tick may be and not count as missed.
	onTime = time.Minute
	// batch is how many due rows are claimed in one transaction.
	batch = 256

	defaultWorkers = 16
	slowChecks     = 256
	defaultRuns    = 256
)

// Waking is one person to be woken.
type Waking struct {
	Heartbeat  string
	Person     string
	Episode    string // the same while the condition stays true; for always, another at each tick
	Evidence   string // what the check saw; written by others
	Public     bool   // as in [Finding]
	Outside    bool   // as in [Heartbeat], of Prompt and Text
	Private    bool
	Prompt     string
	Text       string // what is to be said, with no model; "" where there is a prompt
	Tools      []string
	BreakQuiet bool
	Asked      bool          // the person asked for this tick, so that what it says is not unasked
	Again      bool          // the tick was cut off, so that the person's run for it may have begun, and ended
	Tick       time.Time     // the instant for which the tick was due
	Timeout    time.Duration // of the run; 0 leaves it to the agent's limits
}

// Ended is how a woken run ended and what it used.
type Ended struct {
	OK         bool
	Reason     string // why it is not OK
	ModelCalls int
	TokensIn   int
	TokensOut  int
	CostUSD    float64
	// Refused says that the model's provider does not accept the key or the account: no other run can end well.
	Refused bool
	// Changed says that the run did more than look and speak, so that the condition may see what it did itself.
	Changed bool
}

// Config is what a [Clock] needs. Store, Wake and Conditions must be set. All functions may be called by several
// goroutines at once and outside any transaction unless they are given one.
type Config struct {
	Store memory.Store
	// Wake wakes one person and returns when the run has ended. An error is a run that did not end well. After a
	// failure it is called again with the same heartbeat, person and episode, so that these three tell a repeat. When the
	// program stopped in the middle it is called again with the same tick too, and Again: a run that began for that tick
	// must not begin twice. When ctx is cancelled it should return soon; the tick is then cut off.
	Wake func(ctx context.Context, waking Waking) (Ended, error)
	// Conditions builds the condition of a heartbeat, whose Zone is that of the people for whom it falls due, for one look at it:
	// a [Personal] one if [Spec.Personal] says so. Who made the heartbeat may bound what it can look at.
	Conditions func(Heartbeat) (Condition, error)
	// Zone gives a person's IANA time zone, "" when unknown, which counts as UTC.
	Zone func(person string) string
	// Only, if set, says whom this clock serves. Other people are left out, and a heartbeat's due row of whose
	// people none is left stays as it is.
	Only func(person string) bool
	// Admits, if set, says who is let in, by the account that has made a heartbeat in a conversation. What others have made
	// looks at nothing and wakes nobody while they are not.
	Admits func(person string) bool
	// Budget bounds what is said to each person unasked. Ticks that it holds back wake nobody.
	Budget Budget
	// Alarm, if set, tells the owners of a heartbeat in trouble, in one sentence.
	Alarm func(ctx context.Context, heartbeat, text string)
	// Troubled records ticks that were cut off as unknown, and takes none up: one of them may be what ends the program.
	Troubled bool
	// Jitter is the longest that a person is woken after a tick, so that not all are at once; 0 for none.
	Jitter time.Duration
	// Workers is how many conditions are checked at once, besides those that take long; 0 means 16.
	Workers int
	// Runs is how many people are woken at once; 0 means 256.
	Runs int
	// Timers gives what to do with due rows of other kinds, by the prefix of their keys. The function is called in
	// the claiming transaction, perhaps more than once, and must change nothing else. The row is removed unless the
	// function moved it. A row whose function fails is tried again a minute later.
	Timers map[string]func(ctx context.Context, tx memory.Tx, row memory.DueRow) error
	// Fired, if set, is called after the commit when any timer fired.
	Fired func()
	// Log is silent when nil.
	Log *slog.Logger
}

// Clock is the one place where time passes: it claims what is due and carries it out. For each heartbeat and time zone
// at most one tick is carried out at a time. Its methods may be called concurrently; [Clock.Run] by one caller.
type Clock struct {
	config Config
	now    func() time.Time // the wall clock
	look   chan struct{}
	checks chan struct{} // a place in it is held during a check
	slow   chan struct{} // or in this one, during one that takes long
	runs   chan struct{} // a place in it is held during a woken run
	begun  sync.WaitGroup

	mu    sync.Mutex
	going map[string]bool // the keys of the due rows whose ticks are carried out; guarded by mu

	refused string // why the model refuses every run; "" while it does not; guarded by mu

	// When the clock last looked at what is due, also guarded by mu.
	ended  bool      // Run has returned
	looked time.Time // with its monotonic reading, which stands still while a machine sleeps
	passed time.Time // by the wall clock; zero before the first look
}

// NewClock makes a clock. It does nothing before [Clock.Run].
func NewClock(config Config) *Clock {
	if config.Workers <= 0 {
		config.Workers = defaultWorkers
	}
	if config.Runs <= 0 {
		config.Runs = defaultRuns
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Clock{
		config: config,
		now:    time.Now,
		look:   make(chan struct{}, 1),
		checks: make(chan struct{}, config.Workers),
		slow:   make(chan struct{}, slowChecks),
		runs:   make(chan struct{}, config.Runs),
		going:  map[string]bool{},
		looked: time.Now(),
	}
}

// Look makes the clock look at the due index at once. Call it after a transaction that changed the index.
func (c *Clock) Look() {
	select {
	case c.look <- struct{}{}:
	default:
	}
}

// Add saves a heartbeat as [Save] does, in a transaction of its own, and wakes the clock.
func (c *Clock) Add(ctx context.Context, h Heartbeat) error {
	err := c.config.Store.Update(ctx, func(tx memory.Tx) error { return Save(tx, h, c.wall()) })
	if err != nil {
		return fmt.Errorf("add heartbeat: %w", err)
	}
	c.Look()
	return nil
}

// wall gives the wall clock's time without the monotonic reading, which stands still while a machine sleeps.
func (c *Clock) wall() time.Time { return c.now().Round(0) }

// Run lets time pass until ctx ends and returns when all that it began has ended. Ticks that were cut off, when a program
// stopped or was killed, are brought back first. A store that fails is tried again; Run's error is that of a clock that was
// given too little, nil otherwise.
func (c *Clock) Run(ctx context.Context) error {
	if c.config.Store == nil || c.config.Wake == nil || c.config.Conditions == nil {
		return errors.New("run the clock: a store, a wake function and conditions are needed")
	}
	defer c.begun.Wait()
	defer c.stopped()
	pause, recovered := time.Second, false
	for ctx.Err() == nil {
		if !recovered {
			err := c.recover(ctx)
			if recovered = err == nil; !recovered && ctx.Err() == nil {
				c.config.Log.Error("bring back the ticks that were cut off", "error", err)
			}
		}
		next, err := c.pass(ctx)
		wait := longestWait
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			c.config.Log.Error("carry out what is due", "error", err)
			wait, pause = pause, min(2*pause, longestWait)
		default:
			pause = time.Second
			if !next.IsZero() {
				wait = min(max(0, next.Sub(c.wall())), longestWait)
			}
		}
		c.sleep(ctx, wait)
	}
	return nil
}

func (c *Clock) sleep(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-c.look:
	case <-timer.C:
	}
}

// pass carries out what is due now and gives the instant at which to look again, zero when nothing is to come.
func (c *Clock) pass(ctx context.Context) (next time.Time, err error) {
	now := c.wall()
	rows, next, err := c.due(ctx, now)
	if err != nil {
		return time.Time{}, err
	}
	defer func() {
		if err == nil {
			c.alive(now)
		}
	}()
	if len(rows) > 0 {
		next = now // what is claimed may fall due again before what was next
	}
	for len(rows) > 0 {
		some := rows[:min(batch, len(rows))]
		rows = rows[len(some):]
		if err := c.carryOut(ctx, some, now); err != nil {
			return time.Time{}, err
		}
	}
	return next, nil
}

// carryOut claims the rows and begins their ticks.
func (c *Clock) carryOut(ctx context.Context, rows []*dueRow, now time.Time) error {
	claimed, err := c.claim(ctx, rows, now)
	c.begin(ctx, claimed.ticks)
	if claimed.fired && c.config.Fired != nil {
		c.config.Fired()
	}
	return err
}

// begin starts the claimed ticks, the late ones a second apart: after a downtime everything is due at once.
func (c *Clock) begin(ctx context.Context, ticks []*tick) {
	late := 0
	for _, t := range ticks {
		c.hold(t.key)
		var wait time.Duration
		if t.late {
			wait = time.Duration(late%60) * time.Second
			late++
		}
		c.begun.Go(func() {
			if wait > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(wait):
				}
			}
			c.finish(ctx, t, c.take(ctx, t))
		})
	}
}

func (c *Clock) hold(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.going[key] = true
}

func (c *Clock) release(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.going, key)
}

func (c *Clock) isGoing(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.going[key]
}
