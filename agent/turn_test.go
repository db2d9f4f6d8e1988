package agent

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// NewTurnID makes the id of a turn that begins then.
func NewTurnID(at time.Time) string { return newTurnID(at) }

// TestTurnIDs tell when their turns began, and sort so.
func TestTurnIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Custom(func(t *rapid.T) time.Time {
			return idsBegan.Add(time.Duration(rapid.Int64Range(0, 30*365*24*3600*1000).Draw(t, "ms")) * time.Millisecond)
		})
		one, other := at.Draw(t, "one"), at.Draw(t, "other")
		a, b := newTurnID(one.Add(999*time.Microsecond)), newTurnID(other)
		if began, known := TurnBegan(a); !known || !began.Equal(one) {
			t.Errorf("%s began at %v, not %v", a, began, one)
		}
		if one.Before(other) && a >= b {
			t.Errorf("%s of %v does not sort before %s of %v", a, one, b, other)
		}
	})
	if began, known := TurnBegan(newTurnID(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))); !known || !began.Equal(idsBegan) {
		t.Errorf("a turn of before ids count began at %v", began)
	}
	for _, id := range []string{"", "t1", "x3dokpyk2abcdef", "t3DOKPYK2abcdef", "t3dokpyk1abcdef", "t" + strings.Repeat("é", 7)} {
		if at, known := TurnBegan(id); known {
			t.Errorf("%q began at %v", id, at)
		}
	}
}
