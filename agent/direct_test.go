package agent_test

import (
	"testing"

	"nudge/agent"
)

// A rule holds, and a name is left out, only where nobody else reads along, so that no other address may pass for such.
func TestDirect(t *testing.T) {
	for address, want := range map[string]bool{
		"terminal:local:dm:ann":         true,
		"slack:T1:dm:U1":                true,
		"slack:T1:dm:U1:1700000000.1":   true,
		"slack:T1:C1:1700000000.1":      false,
		"slack:T1:C1:dm":                false,
		"slack:dm:C1:1700000000.1":      false,
		"slack:T1:dm":                   false,
		"dm:T1:C1:1700000000.1":         false,
		"":                              false,
		agent.PersonID("web:me").Home(): true,
		agent.PersonID("api:dm").Home(): true,
	} {
		if agent.Direct(address) != want {
			t.Errorf("%q is direct: %v, want %v", address, !want, want)
		}
	}
}
