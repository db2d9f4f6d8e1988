package schedule

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

// TestWhoIsNotLetInAnyMore: what somebody has made in a conversation looks at nothing and wakes nobody while they are
// not let in, not even because it is asked for; what the config has stays as it is.
func TestWhoIsNotLetInAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const eve = "chat:eve"
		r := newRig(t)
		var shutOut atomic.Bool
		r.config.Admits = func(person string) bool { return person != eve || !shutOut.Load() }
		hers, everyones, reminder := beat("hers", "yes"), beat("everyones", "yes"), beat("reminder", "yes")
		for _, h := range []*Heartbeat{&hers, &everyones, &reminder} {
			h.For, h.Condition.On = []string{eve}, OnTrue
		}
		hers.By, reminder.By = eve, eve
		reminder.Cron, reminder.Prompt, reminder.Text, reminder.Condition = "@at 2000-01-01T00:02:30", "", "Call Bob.", Spec{Kind: KindAlways}
		r.save(hers, everyones, reminder)
		r.start()
		r.pass(61 * time.Second)
		r.expect("hers, let in", r.woken("hers")[eve], 1)

		shutOut.Store(true)
		looks := r.checked("yes")
		r.update(func(tx memory.Tx) error { return Ask(tx, "hers", eve, "", r.now()) })
		r.pass(2 * time.Minute)
		r.expect("hers", r.woken("hers")[eve], 1)
		r.expect("everyones", r.woken("everyones")[eve], 3)
		r.expect("the reminder", r.woken("reminder")[eve], 0)
		r.expect("looks", r.checked("yes")-looks, 2) // at what the config has
		r.expect("why", r.why("hers").Outcomes[0].Reason, "chat:eve, who made it, is not let in any more")

		shutOut.Store(false)
		r.pass(time.Minute)
		r.stop()
		r.expect("hers, let in again", r.woken("hers")[eve], 2)
	})
}
