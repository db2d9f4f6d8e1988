package condition_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/schedule"
	"nudge/schedule/condition"
)

// gaugesOf has a gauge for each name, whose program prints the text.
func gaugesOf(t *testing.T, list map[string]string) *condition.Gauges {
	t.Helper()
	var all []condition.Gauge
	for name, text := range list {
		all = append(all, condition.Gauge{Name: name, Run: []string{"printf", "%s", text}})
	}
	gauges, err := condition.NewGauges(all, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return gauges
}

func TestExpressions(t *testing.T) {
	at := time.Date(2026, 11, 30, 23, 30, 0, 0, time.UTC) // a Monday; in Berlin it is Tuesday
	env := condition.Env{
		Zone: "Europe/Berlin", Now: func() time.Time { return at },
		Gauges: gaugesOf(t, map[string]string{"full": " 97.5%\n", "load": "0.3", "broken": "n/a"}),
	}
	for text, want := range map[string]bool{
		"full > 97 and load < 1":                    true,
		"full > 98":                                 false,
		"min(full, load) == 0.3":                    true,
		"hour == 0 and minute == 30":                true,
		`weekday == "Tuesday"`:                      true,
		`weekday in ["Saturday", "Sunday"]`:         false,
		"year == 2026 and month == 12 and day == 1": true,
		`time >= "00:15" and date == "2026-12-01"`:  true,
		`days_since("2026-11-24") >= 7`:             true,
		`days_since("2026-11-30T12:00:00Z") == 1`:   true,
		`days_since("2026-12-03") == -2`:            true,
		"load > 1 ? broken > 1 : true":              true,
		`date matches "^2026"`:                      true,
	} {
		found, err := build(t, schedule.Spec{Kind: "expr", Expr: text}, env).Check(t.Context(), "")
		if uses := strings.Contains(text, "broken"); uses != (err != nil) {
			t.Errorf("%s: error %v", text, err)
		} else if !uses && found.True != want {
			t.Errorf("%s: %+v, want %v", text, found, want)
		}
	}
	found := check(t, build(t, schedule.Spec{Kind: "expr", Expr: "full > 90"}, env), "")
	if found.Evidence != "full is 97.5; it is Tuesday 2026-12-01 00:30 CET" {
		t.Errorf("evidence %q", found.Evidence)
	}
}

// TestExpressionsAreHeldToWhatIsDeclared refuses what is no question of gauges and time.
func TestExpressionsAreHeldToWhatIsDeclared(t *testing.T) {
	env := condition.Env{Gauges: gaugesOf(t, map[string]string{"full": "97"})}
	for text, says := range map[string]string{
		"full":                         "true or false",
		"full +":                       "character",
		"ful > 1":                      `"ful"`,
		`full > "90"`:                  "mismatched",
		"all(1..1000000, # > 0)":       "",
		"sum(map(1..1000000, #)) > 1":  "",
		`repeat("x", 1000000) == ""`:   "",
		`now().Year() > 1`:             "",
		`days_since(1) > 1`:            "",
		`env["PATH"] == ""`:            "",
		`$env.full > 1 and $env.x > 1`: "",
	} {
		_, err := condition.New(schedule.Spec{Kind: "expr", Expr: text}, env)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", text, err, says)
		}
	}
	c := build(t, schedule.Spec{Kind: "expr", Expr: `days_since("soon") > 1`}, env)
	if _, err := c.Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "days_since wants a date") {
		t.Errorf("a date that is none: %v", err)
	}
}

func TestExpressionsNeverPanic(t *testing.T) {
	env := condition.Env{Gauges: gaugesOf(t, map[string]string{"full": "97"})}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"full", "hour", "days_since", "(", ")", ">", "==", "and", "not", "1", `"a"`, "..", "[", "]", "#", "?", ":", "let", "=", ";", "min", ",", "-", "**", "%", "0", "{", "}"})
		text := strings.Join(rapid.SliceOfN(word, 1, 12).Draw(t, "words"), " ")
		c, err := condition.New(schedule.Spec{Kind: "expr", Expr: text}, env)
		if err == nil {
			_, _ = c.Check(context.Background(), "")
		}
	})
}
