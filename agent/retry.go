package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"nudge/agent/model"
)

const (
	modelTries = 3                // model calls before a passing error is taken as final
	emptyTries = 3                // answers that say nothing before the person is told so
	longWait   = 60 * time.Second // a provider that asks for more is not waited for
)

// retry says whether a model call that failed for the try-th time is worth another, and after how long: what the
// provider asked for, else one, two, four … seconds, give or take a fifth so that many do not come back at once.
func retry(err error, try int) (time.Duration, bool) {
	var fault *model.Error
	if !errors.As(err, &fault) || fault.Fault != model.FaultPassing || try >= modelTries || fault.RetryAfter > longWait {
		return 0, false
	}
	if fault.RetryAfter > 0 {
		return fault.RetryAfter, true
	}
	wait := time.Second << (try - 1)
	return wait + time.Duration((rand.Float64()-0.5)*0.4*float64(wait)), true
}

// sleep waits and reports whether it was not cut short.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
