package main

import (
	"strings"
	"testing"

	"nudge/cmd/nudge/config"
)

func TestTheDoctorTellsWhatCouldCarryDataOut(t *testing.T) {
	mail := config.Command{Name: "mail", Run: []string{"true"}, Effect: "effect"}
	for _, c := range []struct {
		name string
		set  func(*config.Config)
		text []string // parts of it
	}{
		{"as it comes", func(*config.Config) {}, []string{"recall", "fetch_page, create_heartbeat may send something out"}},
		{"no way out", func(c *config.Config) { c.Tools.Deny = []string{"fetch_page"} }, []string{"none of them"}},
		{"nothing private", func(c *config.Config) { c.Tools.Only = []string{"fetch_page"} }, []string{"none of them"}},
		{"a command", func(c *config.Config) { c.Commands, c.Tools.Deny = []config.Command{mail}, []string{"fetch_page"} }, []string{"and run_command may send"}},
		{"a server", func(c *config.Config) {
			c.MCP, c.Tools.Only = []config.MCP{{Name: "crm", Tools: []string{"look", "add"}}}, []string{"read_file", "crm__look"}
		}, []string{"by read_file", "and crm__look may send"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config.Default()
			c.set(&cfg)
			f := triangleFinding(cfg, t.TempDir())
			if f.mark != fine {
				t.Errorf("it is %s %s", f.mark, f.text)
			}
			for _, part := range c.text {
				if !strings.Contains(f.text, part) {
					t.Errorf("%q is not in %q", part, f.text)
				}
			}
		})
	}
}
