package bot_test

import (
	"context"
	"maps"
	"testing"

	"nudge/bot"
	"nudge/memory"
)

// TestKept keeps texts of two platforms, and forgets what is about one person.
func TestKept(t *testing.T) {
	h, ctx := bot.NewHub(bot.Config{Store: openStore(t)}), context.Background()
	first := map[string]string{"heard discord:local:dm:1": "5", "heard discord:local:dm:11": "6", "zone discord:1": "asked"}
	for platform, changes := range map[string]map[string]string{"discord": first, "slack": {"heard x": "7"}} {
		if err := h.Keep(ctx, platform, changes); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Keep(ctx, "discord", map[string]string{"zone discord:1": "", "heard discord:local:dm:1": "8"}); err != nil {
		t.Fatal(err)
	}
	want := func(want map[string]string) {
		t.Helper()
		if got, err := h.Kept(ctx, "discord"); err != nil || !maps.Equal(got, want) {
			t.Errorf("kept is %v, want %v: %v", got, want, err)
		}
	}
	want(map[string]string{"heard discord:local:dm:1": "8", "heard discord:local:dm:11": "6"})
	err := h.Store.Update(ctx, func(tx memory.Tx) error {
		n, err := bot.ForgetKept(tx, "discord:local:dm:1")
		if n != 1 {
			t.Errorf("%d were forgotten", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want(map[string]string{"heard discord:local:dm:11": "6"})
}
