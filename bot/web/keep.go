package web

import (
	"context"
	"fmt"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
)

// tableKept has the lines that are put aside, by conversation and parcel.
const tableKept memory.Rows[line] = bot.TableKept

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
	c.kept = true
	err := s.Store.Update(ctx, func(tx memory.Tx) error {
		var keys []string
		err := tableKept.Table(tx).Scan(keptPrefix(c.address), func(key string, _ []byte) error {
			keys = append(keys, key)
			return nil
		})
		if err != nil {
			return err
		}
		for len(keys) >= mostKept {
			if err := tableKept.Delete(tx, keys[0]); err != nil {
				return err
			}
			keys = keys[1:]
		}
		// Parcels are numbered, so the longer name is the later one.
		return tableKept.Put(tx, fmt.Sprintf("%s%03d %s", keptPrefix(c.address), len(d.Key), d.Key), l)
	})
	if err != nil {
		return fmt.Errorf("keep a %s for %s: %w", d.Kind, c.address, err)
	}
	return nil
}

// keptLines are those put aside for a conversation, oldest first.
func keptLines(tx memory.Tx, address string) ([]line, error) {
	return tableKept.All(tx, keptPrefix(address))
}

// forgetKept drops what was put aside: its person has been at the page since. The caller holds the gate.
func (s *Server) forgetKept(ctx context.Context, c *conversation) {
	if !c.kept {
		return
	}
	err := s.Store.Update(ctx, func(tx memory.Tx) error {
		_, err := memory.RemoveRows(tableKept.Table(tx), keptPrefix(c.address), nil)
		return err
	})
	if err != nil {
		s.Log.Warn("kept lines could not be dropped; they are shown once more", "conversation", c.address, "error", err)
		return
	}
	c.kept = false
}
