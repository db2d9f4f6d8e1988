package main

import (
	"encoding/json"
	"strings"
	"testing"

	"nudge/bot/terminal"
)

// Nothing that somebody wrote steers the terminal of whoever reads it, and JSON says the same as before.
func TestShownSteersNothing(t *testing.T) {
	hostile := "a\x1b[2K\x1b]0;title\x07 b\u009b1A \u202eevil\u202c \u2028 \r é 👩‍👩‍👧\n\tend\x7f"
	var out strings.Builder
	a := &app{out: &out}
	if _, err := a.shown().Write([]byte(hostile)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `a\u001b[2K\u001b]0;title\u0007 b\u009b1A \u202eevil\u202c \u2028 \u000d é 👩‍👩‍👧`+"\n\tend"+`\u007f`; got != want {
		t.Errorf("shown is %q, want %q", got, want)
	}
	out.Reset()
	if err := json.NewEncoder(a.shown()).Encode(hostile + "\U000E0001"); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back != hostile+"\U000E0001" || strings.ContainsFunc(strings.TrimSpace(out.String()), terminal.Steers) {
		t.Errorf("%q comes back as %q, %v", out.String(), back, err)
	}
}
