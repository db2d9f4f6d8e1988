package notify

import (
	"encoding/json"

	"nudge/memory"
)

// Forget removes what is known of what a person was told, who is named as schedule.PersonOf has them.
func Forget(tx memory.Tx, person string) (removed int, err error) {
	var rows []string
	err = tx.Table(table).Scan("", func(row string, _ []byte) error {
		var name []string
		if err := json.Unmarshal([]byte(row), &name); err == nil && len(name) > 0 && name[0] == person {
			rows = append(rows, row)
		}
		return nil
	})
	for _, row := range rows {
		if err == nil {
			err = tx.Table(table).Delete(row)
		}
	}
	return len(rows), err
}
