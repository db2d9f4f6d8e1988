package condition_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"nudge/schedule"
	"nudge/schedule/condition"
)

func TestIdle(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	var last time.Time
	var fails error
	c := build(t, schedule.Spec{Kind: "idle", After: time.Hour}, condition.Env{
		Now: func() time.Time { return now },
		Silent: func(_ context.Context, person string) (time.Time, error) {
			if person != "terminal:ann" {
				t.Errorf("%q was asked for", person)
			}
			return last, fails
		},
	})
	if _, err := c.Check(t.Context(), ""); err == nil {
		t.Error("something was found of nobody")
	}
	c = c.(schedule.Personal).For("terminal:ann")
	for ago, want := range map[time.Duration]bool{0: false, 59 * time.Minute: false, time.Hour: true, 48 * time.Hour: true, -time.Hour: false} {
		last = now.Add(-ago)
		if found := check(t, c, ""); found.True != want || found.State != "" || found.Evidence == "" {
			t.Errorf("%s ago: %+v", ago, found)
		}
	}
	fails = errors.New("no answer")
	if _, err := c.Check(t.Context(), ""); !errors.Is(err, fails) {
		t.Errorf("when nobody knows: %v", err)
	}
}
