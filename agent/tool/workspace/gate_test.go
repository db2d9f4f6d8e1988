package workspace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Those who look are together, and who changes something is alone, in each folder.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		var leaves []func()
		for range 3 {
			leave, err := g.Enter(t.Context(), "a", false)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		in := false
		go func() {
			leave, err := g.Enter(t.Context(), "a", true)
			if err != nil {
				t.Error(err)
				return
			}
			in = true
			leaves = append(leaves, leave)
		}()
		other, err := g.Enter(t.Context(), "b", true)
		if err != nil {
			t.Fatal(err)
		}
		other()
		for _, leave := range leaves {
			if synctest.Wait(); in {
				t.Error("one changes a folder that others look into")
			}
			leave()
		}
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.Enter(impatient, "a", false); !errors.Is(err, errBusy) || !in {
			t.Errorf("beside who is alone one gets in: %v; in: %v", err, in)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if _, err := g.Enter(stopped, "a", false); !errors.Is(err, context.Canceled) {
			t.Errorf("who was stopped is told %v", err)
		}
		leaves[3]()
	})
}
