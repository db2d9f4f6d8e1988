package schedule

import (
	"fmt"
	"time"

	"nudge/memory"
)

// A reminder is a heartbeat of one instant that was made in a conversation, for the one who made it. Once it was told, nothing
// of it would be true when a snooze ends; so a snooze of what it told sets its instant anew.

// isReminder reports whether a heartbeat is one.
func (h Heartbeat) isReminder() bool { return h.hasOneInstant() && h.By != "" && len(h.For) == 1 }

func (h Heartbeat) hasOneInstant() bool {
	timed, err := h.timed(h.Zone)
	return err == nil && !timed.Once().IsZero()
}

// wakesOnce reports whether a heartbeat wakes but once.
func (h Heartbeat) wakesOnce() bool { return h.MaxTicks == 1 || h.hasOneInstant() }

// snoozeReminder lets a reminder come again when the snooze of its card ends, and no more once that is taken back. before
// and after are the card as it was judged before and is now.
func snoozeReminder(tx memory.Tx, before, after Card, now time.Time) (comes bool, err error) {
	if after.Heartbeat == "" {
		return false, nil // a digest told of it, which is not brought again
	}
	h, found, err := find(tx, after.Heartbeat)
	if err != nil || !found || !h.isReminder() || before.Said != Snooze && after.Said != Snooze {
		return false, err
	}
	if after.Said == Snooze {
		h.Cron = onceWord + after.Until.UTC().Format(time.RFC3339)
		return true, Save(tx, h, now)
	}
	if h.Cron != onceWord+before.Until.UTC().Format(time.RFC3339) {
		return false, nil // it was set to another time since
	}
	if err := End(tx, h.Name, "its snooze was taken back", now); err != nil {
		return false, fmt.Errorf("end reminder %s: %w", h.Name, err)
	}
	return false, nil
}
