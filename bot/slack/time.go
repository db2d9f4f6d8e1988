package slack

import "time"

// timeSource tells the time and lets things be done later. Tests have one that they move.
type timeSource interface {
	Now() time.Time
	AfterFunc(d time.Duration, do func()) timer
}

// timer is a *time.Timer, as far as it is needed.
type timer interface{ Stop() bool }

type wallTime struct{}

func (wallTime) Now() time.Time { return time.Now() }

func (wallTime) AfterFunc(d time.Duration, do func()) timer { return time.AfterFunc(d, do) }
