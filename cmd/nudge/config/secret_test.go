package config

import (
	"slices"
	"testing"
)

// What may be a key in an address is a secret, wherever the address stands, and its plain parts are none.
func TestKeysInAddresses(t *testing.T) {
	c := Default()
	c.MCP = []MCP{{Name: "wiki", URL: "https://mcp.example.com/v1/s/AbCd0123456789efgh/mcp"}}
	c.Heartbeats = []Heartbeat{{Condition: Condition{URL: "https://status.example.com/api/v2/a-long-path-of-plain-words?token=k9k9k9k9k9k9k9k9k9&view=short"}}}
	c.Model.BaseURL = "https://api.example.com/v1"
	got := c.Secrets()
	if slices.Sort(got); !slices.Equal(got, []string{"AbCd0123456789efgh", "k9k9k9k9k9k9k9k9k9"}) {
		t.Errorf("secrets are %q", got)
	}
	for _, address := range []string{"", "::", "http://[", "https://x.test", "https://x.test/2026-11-30-12-00-00"} {
		if keys := keysIn(address); len(keys) > 0 {
			t.Errorf("%q has the keys %q", address, keys)
		}
	}
}
