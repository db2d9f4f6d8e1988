package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/memory"
)

// fire does what the clock does with the agent's due rows.
func fire(t *testing.T, w *agenttest.World) {
	t.Helper()
	var sessions []string
	err := w.Config.Store.Update(context.Background(), func(tx memory.Tx) error {
		sessions = nil
		var due []memory.DueRow
		err := tx.Due().Scan(func(row memory.DueRow) error {
			if strings.HasPrefix(row.Key, agent.TimerPrefix) && !row.At.After(time.Now()) {
				due = append(due, row)
			}
			return nil
		})
		for _, row := range due {
			session, fault := agent.Expired(tx, row)
			if fault != nil {
				return fault
			}
			sessions = append(sessions, session)
			if fault := tx.Due().Remove(row.Key); fault != nil {
				return fault
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Agent.Look(sessions...)
}
