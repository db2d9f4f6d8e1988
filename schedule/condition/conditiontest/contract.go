// Package conditiontest has the suite that every condition of heartbeats passes, whatever its kind.
package conditiontest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"nudge/schedule"
)

// soon is how long a check may go on after its context has ended.
const soon = 2 * time.Second

// maxState bounds in bytes what a condition may have the clock remember: it is written at every look.
const maxState = 4 << 10

// Contract holds a condition to what [schedule.Condition] asks. What it looks at must be there, give the same at every look
// and take a moment at most.
func Contract(t *testing.T, c schedule.Condition) {
	t.Helper()
	first := look(t, c, "")
	if len(first.Evidence) > schedule.MaxEvidence || !utf8.ValidString(first.Evidence) {
		t.Errorf("evidence of %d bytes, valid UTF-8: %v", len(first.Evidence), utf8.ValidString(first.Evidence))
	}
	if len(first.State) > maxState {
		t.Errorf("a state of %d bytes", len(first.State))
	}
	if again := look(t, c, first.State); again.State != first.State || again.True != (first.True && first.State == "") {
		t.Errorf("nothing changed and the second look gave %+v after %+v", again, first)
	}
	// What another condition had remembered, or one of another version, must not break it.
	for _, foreign := range []string{`what another condition "kept"`, "[]", "null", "-1", strings.Repeat("x", maxState)} {
		look(t, c, foreign)
	}
	Ends(t, c)
	var together sync.WaitGroup
	for range 4 {
		together.Go(func() {
			if again, err := c.Check(t.Context(), first.State); err != nil || again.State != first.State {
				t.Errorf("one of several looks at once: %+v, error %v", again, err)
			}
		})
	}
	together.Wait()
}

// Watches holds a condition that does nothing but watch for a change to seeing none at the first look.
func Watches(t *testing.T, c schedule.Condition) {
	t.Helper()
	if first := look(t, c, ""); first.True || first.State == "" {
		t.Errorf("the first look of a condition that watches gave %+v", first)
	}
}

// Ends holds a condition to finding nothing once its context has ended.
func Ends(t *testing.T, c schedule.Condition) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := c.Check(ended, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %+v, error %v", found, err)
	}
}

// Hangs holds a condition whose look never ends by itself to being out of time soon after its context is. What it says
// then is that nothing is known.
func Hangs(t *testing.T, c schedule.Condition) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if found, err := c.Check(ctx, ""); err == nil {
		t.Errorf("a look that never ends: %+v and no error", found)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("it went on for %s after its time", took)
	}
}

func look(t *testing.T, c schedule.Condition, previous string) schedule.Finding {
	t.Helper()
	found, err := c.Check(t.Context(), previous)
	if err != nil {
		t.Fatalf("a look: %v", err)
	}
	return found
}
