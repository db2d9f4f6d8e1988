package pace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent/model"
)

// plan is what one call does, and what the provider does with it.
type plan struct {
	comes  time.Duration // after the beginning; no two come together
	cancel time.Duration // after it came; 0 is never
	takes  time.Duration
	end    error
}

var errStop = errors.New("the person said stop")

func drawPlans(t *rapid.T) []plan {
	ends := []error{
		nil, nil, nil, passing(429, 0), passing(503, 0), passing(500, 0), errors.New("x"),
		&model.Error{Fault: model.FaultRefused, Status: 401}, &model.Error{Fault: model.FaultTooLong, RetryAfter: time.Hour},
	}
	takes := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond
	})
	comes := time.Duration(0)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) plan {
		comes += 1 + rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 20 * time.Millisecond, time.Second}).Draw(t, "gap")
		p := plan{comes: comes, takes: takes.Draw(t, "takes"), end: rapid.SampledFrom(ends).Draw(t, "end")}
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			p.cancel = takes.Draw(t, "cancel")
		case 1:
			status := rapid.SampledFrom([]int{0, 429, 503, 529}).Draw(t, "status")
			wait := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, 7 * time.Second, 60 * time.Second, 61 * time.Second, 90 * time.Second}).Draw(t, "wait")
			p.end = passing(status, wait)
		}
		return p
	}), 1, 60).Draw(t, "calls")
}

// walk plays plans and holds what happens against what was promised. It knows the pauses and MaxParallel by itself; the
// bound of the moment, whose numbers have tests of their own, is the Model's.
type walk struct {
	m    *Model
	most int

	mu    sync.Mutex
	found []string
	out   int
	gates []gate
	loose loose
	went  []time.Time // by call; zero when it never went out
}

// gate is a pause that the provider asked for.
type gate struct{ asked, until time.Time }

// loose is the highest bound of an instant: what was let out just before the bound shrank arrives just after.
type loose struct {
	at    time.Time
	bound int64
}

func (w *walk) failf(format string, args ...any) {
	w.found = append(w.found, fmt.Sprintf(format, args...))
}

// boundNow is the bound that holds, or held at any time in this instant.
func (w *walk) boundNow() int64 {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if now := time.Now(); w.loose.at.Equal(now) {
		w.loose.bound = max(w.loose.bound, w.m.bound)
	} else {
		w.loose = loose{now, w.m.bound}
	}
	return w.loose.bound
}

// last is the instant before which no call may go out, as far as it was known before this one.
func (w *walk) last(now time.Time) (until time.Time) {
	for _, g := range w.gates {
		if g.asked.Before(now) && g.until.After(until) {
			until = g.until
		}
	}
	return until
}

// provide is the provider's side of a call.
func (w *walk) provide(ctx context.Context, i int, p plan) error {
	w.mu.Lock()
	now := time.Now()
	w.went[i] = now
	w.out++
	if until := w.last(now); now.Before(until) {
		w.failf("call %d went out %v before its time", i, until.Sub(now))
	}
	if bound := w.boundNow(); int64(w.out) > bound || w.most > 0 && w.out > w.most {
		w.failf("call %d is one of %d at once, but the bound is %d", i, w.out, bound)
	}
	w.mu.Unlock()

	end := p.end
	timer := time.NewTimer(p.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		end = context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out--
	w.boundNow()
	var fault *model.Error
	if errors.As(end, &fault) && fault.Fault == model.FaultPassing && fault.RetryAfter > 0 {
		w.gates = append(w.gates, gate{time.Now(), time.Now().Add(fault.RetryAfter)})
	}
	return end
}

// call is the caller's side.
func (w *walk) call(i int, p plan) {
	time.Sleep(p.comes)
	came := time.Now()
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	if p.cancel > 0 {
		defer time.AfterFunc(p.cancel, func() { stop(errStop) }).Stop()
	}
	_, err := w.m.Answer(ctx, model.Request{MaxOutput: i}, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	var fault *model.Error
	switch {
	case errors.Is(err, errStop) && p.cancel > 0:
		if took := now.Sub(came); took != p.cancel {
			w.failf("call %d was stopped after %v, and ended after %v", i, p.cancel, took)
		}
	case !w.went[i].IsZero():
		if err != p.end {
			w.failf("call %d ended with %v, not with the provider's %v", i, err, p.end)
		}
	case !errors.As(err, &fault) || fault.Fault != model.FaultPassing || fault.RetryAfter <= longest:
		w.failf("call %d never went out and ended with %v", i, err)
	default:
		if until := w.last(now.Add(1)); !now.Add(fault.RetryAfter).Equal(until) {
			w.failf("call %d is told to wait %v, but the pause has %v to go", i, fault.RetryAfter, until.Sub(now))
		}
	}
}

func (w *walk) play(plans []plan) {
	w.went = make([]time.Time, len(plans))
	var all sync.WaitGroup
	for i, p := range plans {
		all.Go(func() { w.call(i, p) })
	}
	all.Wait()
	var newest time.Time
	for i, at := range w.went {
		if at.IsZero() {
			continue
		}
		if at.Before(newest) {
			w.failf("call %d overtook one that had come before it", i)
		}
		newest = at
	}
	w.rest()
}

// rest checks that nothing is left, and that the provider is asked without bound again once it was well for long enough.
func (w *walk) rest() {
	if n, waiting := w.m.flying.Load(), w.m.queue.Len(); n != 0 || waiting != 0 {
		w.failf("%d calls are out and %d wait after all ended", n, waiting)
	}
	time.Sleep(90*time.Second + spread + maxGap)
	w.m.provider = provider(func(context.Context, model.Request, func(string)) (model.Answer, error) { return model.Answer{}, nil })
	for range enough + 1 {
		begin := time.Now()
		if _, err := w.m.Answer(context.Background(), model.Request{}, nil); err != nil || time.Since(begin) > 0 {
			w.failf("a call after all ended took %v: %v", time.Since(begin), err)
		}
	}
	if w.m.bound != w.m.most || w.m.open.Load() != (w.most == 0) {
		w.failf("the bound is still %d", w.m.bound)
	}
}

func TestWalks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plans, most := drawPlans(rt), rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(rt, "most")
		w := &walk{most: most}
		synctest.Test(t, func(*testing.T) {
			w.m = New(provider(func(ctx context.Context, req model.Request, _ func(string)) (model.Answer, error) {
				return model.Answer{}, w.provide(ctx, req.MaxOutput, plans[req.MaxOutput])
			}), Config{MaxParallel: most, Held: func(Hold) {}})
			w.play(plans)
		})
		if len(w.found) > 0 {
			rt.Fatalf("%s", strings.Join(w.found, "\n"))
		}
	})
}
