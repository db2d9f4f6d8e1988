package schedule

import (
	"strings"
	"testing"
)

func TestNamesThatPartOtherNamesAreRefused(t *testing.T) {
	for _, name := range []string{"a:b", "a~b", "a/b", ":", "~", "/", " a", "a ", "", "a\nb", "a\xffb", strings.Repeat("a", maxName+1)} {
		h := beat(name, "no")
		if err := h.Validate(); err == nil || !strings.HasPrefix(err.Error(), "heartbeat.name: ") {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "disk full", "nightly-backup_2", "Straße", strings.Repeat("a", maxName)} {
		if err := beat(name, "no").Validate(); err != nil {
			t.Errorf("the name %q: %v", name, err)
		}
	}
}
