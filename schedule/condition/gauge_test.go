package condition_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nudge/schedule"
	"nudge/schedule/condition"
)

// counted is a program that notes each of its runs in a file and prints a number.
func counted(file string, number string) []string {
	return []string{"sh", "-c", fmt.Sprintf("echo x >> %s; echo %s", file, number)}
}

func runs(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "x")
}

func TestAGaugeIsReadWhenItIsAskedForAndKept(t *testing.T) {
	dir := t.TempDir()
	gauges, err := condition.NewGauges([]condition.Gauge{
		{Name: "kept", Run: counted("kept", "1"), Every: time.Hour},
		{Name: "each", Run: counted("each", "2")},
		{Name: "never", Run: counted("never", "3"), Every: time.Hour},
		{Name: "fails", Run: []string{"sh", "-c", "echo x >> fails; exit 3"}, Every: time.Hour},
	}, dir)
	if err != nil {
		t.Fatal(err)
	}
	env := condition.Env{Dir: dir, Gauges: gauges}
	for range 3 {
		check(t, build(t, schedule.Spec{Kind: "expr", Expr: "kept == 1 and each == 2"}, env), "")
		_, err := build(t, schedule.Spec{Kind: "expr", Expr: "fails > 0"}, env).Check(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("a program that failed: %v", err)
		}
	}
	for name, want := range map[string]int{"kept": 1, "each": 3, "never": 0, "fails": 1} {
		if got := runs(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s ran %d times, want %d", name, got, want)
		}
	}
}

func TestWhatIsNoNumber(t *testing.T) {
	for text, says := range map[string]string{
		"": "no number", "many": "no number", "1 2": "no number", "NaN": "no number", "Inf": "no number",
		strings.Repeat("1", 5000): "more than a number",
	} {
		env := condition.Env{Gauges: gaugesOf(t, map[string]string{"g": text})}
		_, err := build(t, schedule.Spec{Kind: "expr", Expr: "g > 0"}, env).Check(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), says) || len(err.Error()) > 200 {
			t.Errorf("%.20q: error %v", text, err)
		}
	}
}

func TestGaugesAreRefused(t *testing.T) {
	run := []string{"echo", "1"}
	for says, list := range map[string][]condition.Gauge{
		"gauge.name: \"1st\"":  {{Name: "1st", Run: run}},
		"meaning of its own":   {{Name: "hour", Run: run}},
		"gauge.name: \"a-b\"":  {{Name: "a-b", Run: run}},
		"stands twice":         {{Name: "a", Run: run}, {Name: "a", Run: run}},
		"gauge.run":            {{Name: "a"}},
		"gauge.every":          {{Name: "a", Run: run, Every: -1}},
		"gauge.name: \"days_s": {{Name: "days_since", Run: run}},
	} {
		if _, err := condition.NewGauges(list, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: error %v, want %q", list, err, says)
		}
	}
}
