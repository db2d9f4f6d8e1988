package wire

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longest is what a wait is cut to: one that is longer is as good as this one.
const longest = 366 * 24 * time.Hour

// retryAfter returns how long the provider asks to wait, rounded up and never negative; 0 when it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if wait := inUnits(h.Get("Retry-After-Ms"), time.Millisecond); wait > 0 {
		return wait
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if at, err := http.ParseTime(value); err == nil {
		return clampWait(math.Ceil(at.Sub(now).Seconds()) * float64(time.Second))
	}
	return inUnits(value, time.Second)
}

// inUnits reads a plain decimal number of units, rounded up to a millisecond.
func inUnits(value string, unit time.Duration) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" || strings.Trim(value, "0123456789.") != "" {
		return 0
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	ms := math.Ceil(n * float64(unit) / float64(time.Millisecond))
	return clampWait(ms * float64(time.Millisecond))
}

func clampWait(ns float64) time.Duration {
	return time.Duration(min(max(ns, 0), float64(longest)))
}
