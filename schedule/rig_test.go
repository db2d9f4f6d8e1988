package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"nudge/memory"
	"nudge/memory/memorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a clock with everything around it played by the test. Its conditions are commands whose first word names
// one of looks.
type rig struct {
	t     *testing.T
	store *memorytest.Faulty
	shift atomic.Int64 // of the wall clock against the bubble's, in nanoseconds

	mu     sync.Mutex
	looks  map[string]func(ctx context.Context, previous string) (Finding, error)
	checks map[string]int
	wakes  []Waking
	alarms []string
	ends   func(ctx context.Context, w Waking) (Ended, error)

	config Config
	clock  *Clock
	cancel context.CancelFunc
	done   chan error
}

func newRig(t *testing.T) *rig {
	r := &rig{
		t: t, store: memorytest.NewFaulty(newLedger()), checks: map[string]int{},
		looks: map[string]func(context.Context, string) (Finding, error){},
	}
	r.look("no", func() (Finding, error) { return Finding{}, nil })
	r.look("yes", func() (Finding, error) { return Finding{True: true, Evidence: "seen"}, nil })
	r.config = Config{
		Store:      r.store,
		Wake:       r.wake,
		Conditions: r.condition,
		Alarm: func(_ context.Context, _, text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.alarms = append(r.alarms, text)
		},
	}
	return r
}

func (r *rig) look(name string, look func() (Finding, error)) {
	r.looks[name] = func(context.Context, string) (Finding, error) { return look() }
}

type played struct {
	rig  *rig
	name string
}

func (p played) Check(ctx context.Context, previous string) (Finding, error) {
	p.rig.mu.Lock()
	p.rig.checks[p.name]++
	look := p.rig.looks[p.name]
	p.rig.mu.Unlock()
	return look(ctx, previous)
}

func (r *rig) condition(h Heartbeat) (Condition, error) {
	spec := h.Condition
	if spec.Always() {
		return played{r, "yes"}, nil
	}
	if len(spec.Run) == 0 {
		return nil, errors.New("not available")
	}
	return played{r, spec.Run[0]}, nil
}

func (r *rig) wake(ctx context.Context, w Waking) (Ended, error) {
	r.mu.Lock()
	r.wakes = append(r.wakes, w)
	ends := r.ends
	r.mu.Unlock()
	if ends != nil {
		return ends(ctx, w)
	}
	return Ended{OK: true, ModelCalls: 2, TokensIn: 100, TokensOut: 10, CostUSD: 0.5}, nil
}

func (r *rig) start() {
	r.clock = NewClock(r.config)
	r.clock.now = r.now
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.done = cancel, make(chan error, 1)
	go func() { r.done <- r.clock.Run(ctx) }()
	synctest.Wait()
}

func (r *rig) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.t.Error(err)
	}
}

// pass lets time pass.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.shift.Load())) }

// set sets the wall clock.
func (r *rig) set(to time.Time) { r.shift.Store(int64(time.Until(to))) }

func (r *rig) update(fn func(tx memory.Tx) error) {
	r.t.Helper()
	if err := r.store.Update(context.Background(), fn); err != nil {
		r.t.Fatal(err)
	}
	if r.clock != nil {
		r.clock.Look()
		synctest.Wait()
	}
}

func (r *rig) save(list ...Heartbeat) {
	r.t.Helper()
	r.update(func(tx memory.Tx) error {
		for _, h := range list {
			if err := Save(tx, h, r.now()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *rig) why(name string) (report Report) {
	r.t.Helper()
	err := r.store.View(context.Background(), func(tx memory.Tx) (err error) {
		report, err = Why(tx, name, r.now())
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

// words tells a heartbeat's outcomes, oldest first.
func (r *rig) words(name string) string {
	r.t.Helper()
	var words []string
	for _, outcome := range r.why(name).Outcomes {
		words = append([]string{outcome.Word}, words...)
	}
	return strings.Join(words, " ")
}

// woken tells how often each person was woken by a heartbeat.
func (r *rig) woken(name string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := map[string]int{}
	for _, w := range r.wakes {
		if w.Heartbeat == name {
			count[w.Person]++
		}
	}
	return count
}

func (r *rig) allAlarms() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.alarms, "\n")
}

func (r *rig) expect(what string, got, want any) {
	r.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// beat is a heartbeat with a played condition, every minute unless said otherwise.
func beat(name, look string) Heartbeat {
	return Heartbeat{
		Name: name, Cron: "@every 1m", For: []string{"terminal:ann"}, Prompt: "Look after " + name + ".",
		Condition: Spec{Kind: "command", Run: []string{look}},
	}
}
