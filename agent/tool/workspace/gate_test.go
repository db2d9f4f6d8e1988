package workspace

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
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
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Enter(impatient, "a", false); err == nil || !strings.Contains(err.Error(), "what else runs in the workspace") || !in {
			t.Errorf("beside who is alone one gets in: %v; in: %v", err, in)
		}
		leaves[3]()
	})
}
