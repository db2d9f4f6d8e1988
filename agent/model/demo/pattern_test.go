package demo

import "testing"

// TestPatterns compiles them all, which nothing does at the start.
func TestPatterns(t *testing.T) {
	if len(patterns) < 100 {
		t.Fatalf("there are %d patterns", len(patterns))
	}
	for _, p := range patterns {
		p.compiled()
	}
}
