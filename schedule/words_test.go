package schedule

import (
	"path/filepath"
	"testing"
	"time"

	"nudge/memory"
	"nudge/memory/bolt"
)

func TestWords(t *testing.T) {
	for spec, want := range map[string]string{
		"0 9 * * *":        "every day at 09:00",
		"30 7 * * 1-5":     "on Monday to Friday at 07:30",
		"0 9,17 * * MON":   "on Monday at 09:00 and 17:00",
		"0 9 * * 0,6":      "on Sunday and Saturday at 09:00",
		"*/5 * * * *":      "every 5 minutes",
		"*/5 * * * 1-5":    "every 5 minutes on Monday to Friday",
		"* * * * *":        "every minute",
		"0 * * * *":        "every hour",
		"15 * * * *":       "every hour at minute 15",
		"0 8 1,15 * *":     "on day 1 and 15 of every month at 08:00",
		"0 8 1 1,7 *":      "on day 1 of January and July at 08:00",
		"0 8 * 12 *":       "every day in December at 08:00",
		"@every 90m":       "every 1h30m",
		"@every 45s":       "every 45 seconds",
		"@daily":           "every day at 00:00",
		"@hourly":          "every hour",
		"0 8 1 * 1":        "at cron 0 8 1 * 1",
		"7-50/9 3 * * *":   "at cron 7-50/9 3 * * *",
		"0 */2 * * *":      "at cron 0 */2 * * *",
		"0 9-17 * * 1-5":   "at cron 0 9-17 * * 1-5",
		"  0  9  *  *  * ": "every day at 09:00",
		"no cron":          "no cron",
	} {
		if got := Words(spec); got != want {
			t.Errorf("%q in words is %q, want %q", spec, got, want)
		}
	}
}

func TestNextFor(t *testing.T) {
	store, err := bolt.Open(filepath.Join(t.TempDir(), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h := Heartbeat{Name: "h", Cron: "0 9 * * *", For: []string{"slack:T:U"}, Prompt: "p", Condition: Spec{Kind: KindAlways}}
	err = store.Update(t.Context(), func(tx memory.Tx) error {
		next, err := NextFor(tx, h, "Europe/Berlin")
		if err != nil {
			return err
		}
		if next.Hour() != 9 || next.Location().String() != "Europe/Berlin" || next.Before(time.Now()) {
			t.Errorf("before the clock has met the zone it is %s", next)
		}
		due := time.Date(2030, 1, 2, 8, 0, 0, 0, time.UTC)
		if err := tx.Due().Put(memory.DueRow{Key: heartbeatKey("h", "Europe/Berlin"), At: due}); err != nil {
			return err
		}
		if next, err = NextFor(tx, h, "Europe/Berlin"); err != nil || !next.Equal(due) {
			t.Errorf("the row of the index is not believed: %s", next)
		}
		h.Until = due.Add(-time.Hour)
		if next, err = NextFor(tx, h, "Europe/Berlin"); err == nil && !next.IsZero() {
			t.Errorf("after its end it falls due at %s", next)
		}
		h.Until, h.Paused = time.Time{}, "stop all"
		if next, err = NextFor(tx, h, "Europe/Berlin"); err == nil && !next.IsZero() {
			t.Errorf("while it is paused it falls due at %s", next)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSpecInWords: what a condition asks is said in a clause, with no key of the config in it.
func TestSpecInWords(t *testing.T) {
	file := Spec{Kind: "file", Path: "report.txt", Test: "exists"}
	old := Spec{Kind: "file", Path: "backup.log", Test: "older_than", Age: 48 * time.Hour}
	for want, spec := range map[string]Spec{
		"":                                 {Kind: KindAlways},
		"report.txt is there":              file,
		"report.txt is not there":          {Kind: "file", Path: "report.txt", Test: "missing"},
		"report.txt has grown":             {Kind: "file", Path: "report.txt", Test: "grows"},
		"backup.log is older than 2 days":  old,
		"a program says so":                {Kind: "command", Run: []string{"test", "-e", "x"}},
		"the command `builds` ends with 0": {Kind: "command", Command: "builds"},
		"the command `builds` with branch \"ma in\", depth \"2\" ends with 0": {Kind: "command", Command: "builds", Parameters: map[string]string{"depth": "2", "branch": "ma in"}},
		"the answer of a.example changes":                                     {Kind: "http", URL: "https://a.example/x?key=1"},
		"a.example answers with status 503":                                   {Kind: "http", URL: "https://a.example/x?key=1", Status: 503},
		"disk_full > 90":                                                      {Kind: "expr", Expr: "disk_full > 90"},
		"you have said nothing for 7 days":                                    {Kind: "idle", After: 7 * 24 * time.Hour},
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
