package web

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
)

// mostKept is how many lines of one conversation are kept; older ones go first.
const mostKept = 50

// isKept is true for what is said outside of turns or after them, such as an alarm, or that a card has expired.
func isKept(r agent.Reply) bool {
	return r.Kind == agent.Notice || r.Kind == agent.Fault || r.Kind == agent.Final && r.Turn == ""
}

func keptPrefix(address string) string { return address + " " }

// keep puts a reply aside for the next tab, under its conversation and parcel: it was said while no tab was open, and no
// journal tells it. The caller holds the gate.
func (s *Server) keep(ctx context.Context, c *conversation, d bot.Delivery) error {
	l := lineOf(d.Reply, d.Key)
	at := time.Now().UTC()
	l.At = &at
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode a %s to keep it for %s: %w", d.Kind, c.address, err)
	}
	c.kept = true
	err = s.Store.Update(ctx, func(tx memory.Tx) error {
		table := tx.Table(bot.TableKept)
		var keys []string
		err := table.Scan(keptPrefix(c.address), func(key string, _ []byte) error {
			keys = append(keys, key)
			return nil
		})
		if err != nil {
			return err
		}
		for len(keys) >= mostKept {
			if err := table.Delete(keys[0]); err != nil {
				return err
			}
			keys = keys[1:]
		}
		// Parcels are numbered, so the longer name is the later one.
		return table.Put(fmt.Sprintf("%s%03d %s", keptPrefix(c.address), len(d.Key), d.Key), data)
	})
	if err != nil {
		return fmt.Errorf("keep a %s for %s: %w", d.Kind, c.address, err)
	}
	return nil
}

// keptLines are those put aside for a conversation, oldest first.
func keptLines(tx memory.Tx, address string) ([]line, error) {
	var lines []line
	err := tx.Table(bot.TableKept).Scan(keptPrefix(address), func(key string, data []byte) error {
		var l line
		if err := json.Unmarshal(data, &l); err != nil {
			return fmt.Errorf("read the kept line %s: %w", key, err)
		}
		lines = append(lines, l)
		return nil
	})
	return lines, err
}

// forgetKept drops what was put aside: its person has been at the page since. The caller holds the gate.
func (s *Server) forgetKept(ctx context.Context, c *conversation) {
	if !c.kept {
		return
	}
	err := s.Store.Update(ctx, func(tx memory.Tx) error {
		var keys []string
		table := tx.Table(bot.TableKept)
		err := table.Scan(keptPrefix(c.address), func(key string, _ []byte) error {
			keys = append(keys, key)
			return nil
		})
		for _, key := range keys {
			if err == nil {
				err = table.Delete(key)
			}
		}
		return err
	})
	if err != nil {
		s.Log.Warn("kept lines could not be dropped; they are shown once more", "conversation", c.address, "error", err)
		return
	}
	c.kept = false
}
