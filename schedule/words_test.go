package schedule

import (
	"testing"
	"time"
)

// TestSpecInWords: what a condition asks is said in a clause, with no key of the config in it.
func TestSpecInWords(t *testing.T) {
	file := Spec{Kind: "file", Path: "report.txt", Test: "exists"}
	old := Spec{Kind: "file", Path: "backup.log", Test: "older_than", Age: 48 * time.Hour}
	for want, spec := range map[string]Spec{
		"":                                  {Kind: KindAlways},
		"report.txt is there":               file,
		"report.txt is not there":           {Kind: "file", Path: "report.txt", Test: "missing"},
		"report.txt has grown":              {Kind: "file", Path: "report.txt", Test: "grows"},
		"backup.log is older than 2 days":   old,
		"a program says so":                 {Kind: "command", Run: []string{"test", "-e", "x"}},
		"the answer of a.example changes":   {Kind: "http", URL: "https://a.example/x?key=1"},
		"a.example answers with status 503": {Kind: "http", URL: "https://a.example/x?key=1", Status: 503},
		"disk_full > 90":                    {Kind: "expr", Expr: "disk_full > 90"},
		"you have said nothing for 7 days":  {Kind: "idle", After: 7 * 24 * time.Hour},
		"report.txt is there and (disk_full > 90 or backup.log is older than 2 days)": {Kind: "all", Of: []Spec{
			file, {Kind: "any", Of: []Spec{{Kind: "expr", Expr: "disk_full > 90"}, old}},
		}},
	} {
		if got := spec.InWords(); got != want {
			t.Errorf("%+v: %q, want %q", spec, got, want)
		}
	}
}

// TestCounted says one thing as one.
func TestCounted(t *testing.T) {
	if got := Counted(1, "tick") + ", " + Counted(0, "wake") + ", " + Counted(2, "model call"); got != "1 tick, 0 wakes, 2 model calls" {
		t.Error(got)
	}
	if got := Lasting(time.Hour) + ", " + Lasting(90*time.Second) + ", " + Lasting(96*time.Hour); got != "1 hour, 1m30s, 4 days" {
		t.Error(got)
	}
}
