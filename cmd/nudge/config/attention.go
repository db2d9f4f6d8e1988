package config

import (
	"fmt"

	"nudge/schedule"
)

// checkAttention holds the budget against the rules of the schedule, which the clock will go by.
func checkAttention(c Attention, at *place, f *faults) {
	if _, err := schedule.ParseQuiet(c.Quiet); err != nil {
		f.add(at.key("quiet"), "attention.quiet", "%s", err)
	}
	if _, err := schedule.ParseDigest(c.Digest); err != nil {
		f.add(at.key("digest"), "attention.digest", "%s", err)
	}
	if f.in("attention") {
		return // what was found wrong holds its default now
	}
	if _, err := c.Budget(); err != nil {
		f.refused(at, "attention", err)
	}
}

// Budget is what the table says as the schedule takes it. A Config from Load gives no error.
func (c Attention) Budget() (schedule.Budget, error) {
	quiet, err := schedule.ParseQuiet(c.Quiet)
	if err != nil {
		return schedule.Budget{}, fmt.Errorf("attention.quiet: %w", err)
	}
	digest, err := schedule.ParseDigest(c.Digest)
	if err != nil {
		return schedule.Budget{}, fmt.Errorf("attention.digest: %w", err)
	}
	budget := schedule.Budget{Quiet: quiet, DailyCap: c.DailyCap, Digest: digest}
	return budget, budget.Check()
}
