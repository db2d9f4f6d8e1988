package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// deadAfter is how long the clock may look at nothing before it counts as dead: two of its periods.
const deadAfter = 2 * longestWait

// errStopped is why a clock is dead whose Run has returned.
var errStopped = errors.New("the clock has ended: no heartbeat wakes anybody")

// Stalled says why what falls due is not taken up; nil while it is. It asks the due index itself, not only the clock.
func (c *Clock) Stalled(ctx context.Context) error {
	c.mu.Lock()
	ended, looked, passed := c.ended, c.looked, c.passed
	c.mu.Unlock()
	switch silent := time.Since(looked); {
	case ended:
		return errStopped
	case silent > deadAfter:
		return fmt.Errorf("the clock has not looked at what is due for %s: no heartbeat wakes anybody", silent.Round(time.Second))
	}
	// What had been due for long when the clock last looked must be gone or moved.
	rows, _, err := c.due(ctx, passed.Add(-longestWait))
	switch {
	case err != nil:
		return fmt.Errorf("ask whether the clock works: %w", err)
	case len(rows) > 0:
		return fmt.Errorf("the clock passes over what is due, first %q since %s", rows[0].Key, rows[0].At.Format(time.RFC3339))
	}
	return nil
}

// Watch looks every minute whether the clock is alive until ctx ends, and tells once when it is not and once when it is again.
func (c *Clock) Watch(ctx context.Context, tell func(text string)) {
	told := false
	for {
		timer := time.NewTimer(longestWait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		err := c.Stalled(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !told:
			told = true
			tell(err.Error())
		case err == nil && told:
			told = false
			tell("the clock works again")
		}
	}
}

// alive notes that the clock has looked at all that was due at an instant of the wall clock.
func (c *Clock) alive(wall time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.looked, c.passed = false, time.Now(), wall
}

func (c *Clock) stopped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}
