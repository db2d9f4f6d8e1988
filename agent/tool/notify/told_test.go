package notify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/tool/notify"
	"nudge/memory"
	"nudge/schedule"
)

// Nobody hears of the same again since an account was linked or parted.
func TestWhatWasToldStaysToldOverLinkingAndParting(t *testing.T) {
	store := open(t)
	w, _ := start(t, store)
	me, other := string(agenttest.Ann.ID), "discord:7"
	change := func(fn func(tx memory.Tx) error) {
		t.Helper()
		if err := store.Update(context.Background(), fn); err != nil {
			t.Fatal(err)
		}
	}
	link := func() {
		change(func(tx memory.Tx) error {
			joined, err := schedule.Link(tx, me, other, time.Now())
			for _, was := range joined.Was {
				err = errors.Join(err, notify.Join(tx, was, joined.Person))
			}
			return err
		})
	}
	part := func(account string) {
		change(func(tx memory.Tx) error {
			was, err := schedule.Unlink(tx, account, time.Now())
			return errors.Join(err, notify.Part(tx, was, account))
		})
	}
	said := func(key string) bool {
		wake(t, w, about(t, "disk", "1", call{Text: "Full.", Key: key}))
		return len(agenttest.Only(w.Rest(), agent.Notify)) == 1
	}
	told := []string{""}
	if !said("") {
		t.Fatal("the first is not said")
	}
	for at, step := range []func(){link, func() { part(me) }, link, func() { part(other) }, link} {
		step()
		key := string(rune('a' + at))
		for _, before := range told {
			if said(before) {
				t.Errorf("after step %d %q is told again", at, before)
			}
		}
		if !said(key) {
			t.Errorf("after step %d something new is not told", at)
		}
		told = append(told, key)
	}
}
