package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/memory"
)

// TestATurnIsFoundWhereverItBegan draws sessions with turns among other lines, their clock set back now and then, and asks for each
// turn, for a run of it, and for turns that there are not.
func TestATurnIsFoundWhereverItBegan(t *testing.T) {
	store := open(t)
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		clock := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		where := map[string]string{}
		update(t, store, func(tx memory.Tx) error {
			for range rapid.IntRange(0, 12).Draw(t, "lines") {
				clock = clock.Add(time.Duration(rapid.IntRange(-90, 300).Draw(t, "seconds")) * time.Second)
				session := fmt.Sprintf("s%d-%d", round, rapid.IntRange(1, 3).Draw(t, "session"))
				line := memory.Entry{Kind: "message", At: clock, Data: []byte(`{"turn":"t","text":"see ` + anyOf(where) + `"}`)}
				if rapid.Bool().Draw(t, "begins") {
					id := agent.NewTurnID(clock)
					where[id] = session
					line.Kind, line.Data = "turn_started", []byte(`{"turn":"`+id+`"}`)
				}
				if _, err := tx.Journal().Append(session, line); err != nil {
					return err
				}
			}
			return nil
		})
		view(t, store, func(tx memory.Tx) error {
			for id, want := range where {
				for _, name := range []string{id, id + ".1"} {
					if session, found, err := agent.FindTurn(tx, name); err != nil || !found || session != want {
						t.Errorf("%s is in %q, found %v, %v; it began in %s", name, session, found, err, want)
					}
				}
			}
			for _, id := range []string{agent.NewTurnID(clock), "t", "", "turn_started"} {
				if session, found, err := agent.FindTurn(tx, id); err != nil || found {
					t.Errorf("%q, which there is not, is in %q, found %v, %v", id, session, found, err)
				}
			}
			return nil
		})
	})
}

func anyOf(ids map[string]string) string {
	for id := range ids {
		return id
	}
	return ""
}

// TestPlacesOfTurnsOfBeforeGo: what an earlier version has kept of where turns were names people. It goes in steps, and all of it
// with the first session that is erased.
func TestPlacesOfTurnsOfBeforeGo(t *testing.T) {
	store := open(t)
	row, err := json.Marshal(map[string]string{"session": "slack:T1:dm:U1", "person": "slack:T1:U1"})
	if err != nil {
		t.Fatal(err)
	}
	fill := func() {
		update(t, store, func(tx memory.Tx) error {
			for i := range 5 {
				if err := tx.Table("turn").Put(fmt.Sprint("t", i), row); err != nil {
					return err
				}
			}
			return nil
		})
	}
	left := func() (n int) {
		view(t, store, func(tx memory.Tx) error {
			return tx.Table("turn").Scan("", func(string, []byte) error { n++; return nil })
		})
		return n
	}
	fill()
	for _, want := range []struct{ removed, left int }{{2, 3}, {2, 1}, {1, 0}, {0, 0}} {
		update(t, store, func(tx memory.Tx) error {
			removed, err := agent.SweepTurns(tx, time.Time{}, 2)
			if removed != want.removed {
				t.Errorf("%d were removed in a step, not %d", removed, want.removed)
			}
			return err
		})
		if n := left(); n != want.left {
			t.Errorf("%d are left, not %d", n, want.left)
		}
	}
	fill()
	eraseAtRest(t, store, "slack:T1:dm:U2")
	if n := left(); n != 0 {
		t.Errorf("%d are left when a session was erased", n)
	}
}

type fataler interface{ Fatal(...any) }

func update(t fataler, store memory.Store, fn func(memory.Tx) error) {
	if err := store.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t fataler, store memory.Store, fn func(memory.Tx) error) {
	if err := store.View(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}
