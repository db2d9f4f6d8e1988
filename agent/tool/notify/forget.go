package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// SweepEnded forgets at most limit heartbeats that ended before an instant, as [schedule.SweepEnded] does, with what they told, and
// returns how many it forgot.
func SweepEnded(tx memory.Tx, before time.Time, limit int) (removed int, err error) {
	ended, err := schedule.SweepEnded(tx, before, limit)
	for _, h := range ended {
		for _, person := range h.For {
			if err == nil {
				err = forgetHeartbeat(tx, agent.PersonID(person), h.Name)
			}
		}
	}
	if err != nil {
		return 0, fmt.Errorf("forget what heartbeats told that ended: %w", err)
	}
	return len(ended), nil
}

// forgetHeartbeat removes what is known of what a heartbeat told a person.
func forgetHeartbeat(tx memory.Tx, person agent.PersonID, heartbeat string) error {
	one, err := rowKey(tx, person, heartbeat, "")
	if err != nil {
		return err
	}
	_, err = memory.RemoveRows(tableTold.Table(tx), strings.TrimSuffix(one, `""]`), nil)
	return err
}

// Forget removes what is known of what a person was told, who is named as schedule.PersonOf has them.
func Forget(tx memory.Tx, person string) (removed int, err error) {
	rows, err := memory.RemoveRows(tableTold.Table(tx), "", func(row string, _ []byte) (bool, error) {
		var name []string
		err := json.Unmarshal([]byte(row), &name)
		return err == nil && len(name) > 0 && name[0] == person, nil
	})
	return len(rows), err
}
