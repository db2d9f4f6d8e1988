package memorytest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"nudge/memory"
	"nudge/memory/memorytest"
)

// counter is a store that only counts what reaches it, and that runs each update's function outside its lock.
type counter struct {
	mu      sync.Mutex
	updates int
	views   int
	closed  bool
}

func (c *counter) View(context.Context, func(memory.Tx) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views++
	return nil
}

func (c *counter) Update(_ context.Context, fn func(memory.Tx) error) error {
	if err := fn(nil); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates++
	return nil
}

func (c *counter) Close() error {
	c.closed = true
	return nil
}

func nothing(memory.Tx) error { return nil }

func TestFaultyCrashes(t *testing.T) {
	ctx := context.Background()
	for _, after := range []bool{false, true} {
		inner := &counter{}
		f := memorytest.NewFaulty(inner)
		f.FailAt(2, after)
		crashed := f.Crashed()
		if err := f.Update(ctx, nothing); err != nil {
			t.Errorf("first update: %v", err)
		}
		select {
		case <-crashed:
			t.Error("crashed before its time")
		default:
		}
		ran := false
		if err := f.Update(ctx, func(memory.Tx) error { ran = true; return nil }); !errors.Is(err, memorytest.ErrCrash) {
			t.Fatalf("second update: %v", err)
		}
		<-crashed
		want := 1
		if after {
			want = 2
		}
		if ran != after || inner.updates != want {
			t.Errorf("after %t: second update run %t, %d committed", after, ran, inner.updates)
		}
		if err := f.Update(ctx, nothing); !errors.Is(err, memorytest.ErrCrash) {
			t.Errorf("update of the dead: %v", err)
		}
		if err := f.View(ctx, nothing); !errors.Is(err, memorytest.ErrCrash) || inner.views != 0 {
			t.Errorf("view of the dead: %v", err)
		}
		if f.Count() != 2 || inner.updates != want {
			t.Errorf("counted %d, %d committed", f.Count(), inner.updates)
		}
	}
}

func TestFaultyRevives(t *testing.T) {
	ctx := context.Background()
	inner := &counter{}
	f := memorytest.NewFaulty(inner)
	f.FailAt(1, false)
	if err := f.Update(ctx, nothing); !errors.Is(err, memorytest.ErrCrash) {
		t.Fatal(err)
	}
	f.Revive()
	if err := errors.Join(f.Update(ctx, nothing), f.View(ctx, nothing)); err != nil {
		t.Errorf("after reviving: %v", err)
	}
	f.FailAt(f.Count()+1, true)
	if err := f.Update(ctx, nothing); !errors.Is(err, memorytest.ErrCrash) {
		t.Fatalf("second crash: %v", err)
	}
	<-f.Crashed()
	if inner.updates != 2 || f.Count() != 3 {
		t.Errorf("%d committed, %d counted", inner.updates, f.Count())
	}
	if err := f.Close(); err != nil || !inner.closed {
		t.Errorf("closing the dead: %v", err)
	}
}

// What is under way at a crash is not answered, and what has not run yet does not run.
func TestFaultyUnderWay(t *testing.T) {
	ctx := context.Background()
	f := memorytest.NewFaulty(&counter{})
	f.FailAt(2, false)
	begun := make(chan struct{})
	result := make(chan error)
	go func() {
		result <- f.Update(ctx, func(memory.Tx) error {
			close(begun)
			<-f.Crashed()
			return nil
		})
	}()
	<-begun
	if err := f.Update(ctx, nothing); !errors.Is(err, memorytest.ErrCrash) {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, memorytest.ErrCrash) {
		t.Errorf("update under way: %v", err)
	}
}
