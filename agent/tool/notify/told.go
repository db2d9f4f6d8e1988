package notify

import (
	"encoding/json"
	"fmt"

	"nudge/memory"
)

// Join gives what somebody was told to the person whose account they have become, so that it is not told again.
func Join(tx memory.Tx, was, person string) error {
	if err := copyTold(tx, was, person); err != nil {
		return fmt.Errorf("keep what %s was told as told to %s: %w", was, person, err)
	}
	_, err := Forget(tx, was)
	return err
}

// Part lets what a person was told count as told to an account that was parted from theirs as well.
func Part(tx memory.Tx, person, account string) error {
	if err := copyTold(tx, person, account); err != nil {
		return fmt.Errorf("keep what %s was told as told to %s: %w", person, account, err)
	}
	return nil
}

// copyTold keeps what one was told as told to another, of whom the later counts.
func copyTold(tx memory.Tx, from, to string) error {
	rows := map[string]told{}
	err := tableTold.Scan(tx, "", func(row string, t told) error {
		var name []string
		if json.Unmarshal([]byte(row), &name) != nil || len(name) != 3 || name[0] != from {
			return nil // no row of theirs
		}
		copied, err := json.Marshal([]string{to, name[1], name[2]})
		rows[string(copied)] = t
		return err
	})
	for row, t := range rows {
		had, _, getErr := tableTold.Get(tx, row)
		if err == nil {
			err = getErr
		}
		if err == nil && t.At.After(had.At) {
			err = tableTold.Put(tx, row, t)
		}
	}
	return err
}
