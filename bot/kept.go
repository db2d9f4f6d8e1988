package bot

import (
	"context"
	"fmt"
	"strings"

	"nudge/memory"
)

// tableKept is what adapters keep: platform, name → text.
const tableKept = "adapter"

func keptKey(platform, name string) string { return platform + " " + name }

// Kept gives what the adapters of a platform have kept.
func (h *Hub) Kept(ctx context.Context, platform string) (kept map[string]string, err error) {
	err = h.Store.View(ctx, func(tx memory.Tx) error {
		kept = map[string]string{}
		return tx.Table(tableKept).Scan(keptKey(platform, ""), func(key string, value []byte) error {
			kept[strings.TrimPrefix(key, keptKey(platform, ""))] = string(value)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read what is kept for %s: %w", platform, err)
	}
	return kept, nil
}

// Keep keeps texts for a platform's adapters.
func (h *Hub) Keep(ctx context.Context, platform string, changes map[string]string) error {
	err := h.Store.Update(ctx, func(tx memory.Tx) error {
		for name, text := range changes {
			err := tx.Table(tableKept).Put(keptKey(platform, name), []byte(text))
			if text == "" {
				err = tx.Table(tableKept).Delete(keptKey(platform, name))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep something for %s: %w", platform, err)
	}
	return nil
}

// ForgetKept takes out what adapters have kept about a person, or about a conversation, and returns how much that was.
func ForgetKept(tx memory.Tx, about string) (forgotten int, err error) {
	keys, err := memory.RemoveRows(tx.Table(tableKept), "", func(key string, _ []byte) (bool, error) { return strings.HasSuffix(key, " "+about), nil })
	return len(keys), err
}
