package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"nudge/memory"
)

// ForgetHeartbeats removes the heartbeats that a person made in chat with any of the given accounts, and takes the accounts out
// of those that others made. Those of the config are left as they are, and named: who wrote it there must take it out. What the
// runs for these accounts used goes too, and that they could not be reached.
func ForgetHeartbeats(tx memory.Tx, accounts ...string) (removed int, config []string, err error) {
	all, err := List(tx)
	if err != nil {
		return 0, nil, err
	}
	theirs := func(id string) bool { return slices.Contains(accounts, id) }
	for _, h := range all {
		wakes := slices.ContainsFunc(h.For, theirs)
		switch {
		case theirs(h.By):
			removed++
			err = Remove(tx, h.Name)
		case wakes && h.By == "" && h.Ended == "":
			config = append(config, h.Name)
		case wakes:
			removed++
			err = h.without(tx, theirs)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("take %s out of heartbeat %s: %w", accounts[0], h.Name, err)
		}
	}
	for _, account := range accounts {
		if err := errors.Join(forgetAccount(tx, account), unname(tx, account)); err != nil {
			return 0, nil, fmt.Errorf("forget what heartbeats did for %s: %w", account, err)
		}
	}
	return removed, config, nil
}

func forgetAccount(tx memory.Tx, account string) error {
	_, err := memory.RemoveRows(tableUse.Table(tx), "", func(key string, _ []byte) (bool, error) {
		return strings.HasSuffix(key, "/"+account), nil
	})
	if err != nil {
		return err
	}
	return tableGone.Delete(tx, account)
}

// unname takes an account out of the reasons of ticks, which tell who was woken.
func unname(tx memory.Tx, account string) error {
	named := regexp.MustCompile(`(^|\s)` + regexp.QuoteMeta(account) + `([,;:]?(?:\s|$))`)
	changed := map[string]Outcome{}
	err := tableTicks.Table(tx).Scan("", func(key string, row []byte) error {
		var outcome Outcome
		if !bytes.Contains(row, []byte(account)) || json.Unmarshal(row, &outcome) != nil {
			return nil // one that cannot be read goes with its time
		}
		outcome.Reason = named.ReplaceAllString(outcome.Reason, "${1}somebody${2}")
		changed[key] = outcome
		return nil
	})
	for key, outcome := range changed {
		if err == nil {
			err = tableTicks.Put(tx, key, outcome)
		}
	}
	return err
}

// without takes people out of a heartbeat. One that wakes nobody else is removed.
func (h Heartbeat) without(tx memory.Tx, theirs func(id string) bool) error {
	h.For = slices.DeleteFunc(slices.Clone(h.For), theirs)
	if len(h.For) == 0 {
		return Remove(tx, h.Name)
	}
	state, err := loadState(tx, h)
	if err != nil {
		return err
	}
	for _, zone := range state.Zones {
		if zone != nil {
			zone.Owed = slices.DeleteFunc(zone.Owed, theirs)
			zone.tidyPeople(h.For)
		}
	}
	if err := state.save(tx, h.Name); err != nil {
		return err
	}
	return h.put(tx)
}
