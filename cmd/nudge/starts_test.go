package main

import (
	"testing"
	"time"

	"nudge/memory/bolt"
)

// Three unclean ends within five minutes make the next start take nothing up; clean ends and old ones do not count.
func TestUncleanEndsAreCounted(t *testing.T) {
	store, err := bolt.Open(t.TempDir()+"/nudge.db", bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	start := func(after time.Duration, want bool) {
		t.Helper()
		now = now.Add(after)
		troubled, err := noteStart(t.Context(), store, now)
		if err != nil || troubled != want {
			t.Errorf("a start at %s is troubled: %v, %v; want %v", now.Format(time.TimeOnly), troubled, err, want)
		}
	}
	end := func() {
		t.Helper()
		if err := noteEnd(t.Context(), store); err != nil {
			t.Fatal(err)
		}
	}
	start(0, false)
	start(time.Minute, false)
	start(time.Minute, false)
	start(time.Minute, true) // after three that ended uncleanly
	start(time.Second, true)
	end()
	start(time.Second, false)
	for range 5 {
		start(3*time.Minute, false) // never three within five minutes
	}
	start(time.Minute, false)
	start(time.Minute, true)
	end()
	for range 5 {
		start(time.Second, false)
		end()
	}
}
