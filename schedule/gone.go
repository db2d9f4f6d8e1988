package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// tableGone keeps who cannot be reached, by account. Accounts are kept apart, since each is a place of its own.
const tableGone memory.Rows[goneRow] = "gone"

type goneRow struct {
	Reason string    `json:"reason"` // one line
	Since  time.Time `json:"since"`
}

func (g goneRow) String() string {
	return fmt.Sprintf("cannot be reached since %s: %s", g.Since.UTC().Format(time.RFC3339), g.Reason)
}

// nobodyLeft begins the reason why a heartbeat is paused none of whose people can be reached.
const nobodyLeft = "nobody can be reached: "

// Lose notes that what a heartbeat said to a person did not reach them and nothing will: they have left, or take no messages.
// Until [Found] they are woken for no more, and heartbeats for nobody else are paused; it gives their names. The tick that said
// it did not end well. Telling the owners is for the caller.
func Lose(tx memory.Tx, person, heartbeat, reason string, now time.Time) (paused []string, err error) {
	row := goneRow{clip(oneLine(reason), maxReason), now.UTC().Round(0)}
	if err := tableGone.Put(tx, person, row); err != nil {
		return nil, fmt.Errorf("note that %s cannot be reached: %w", person, err)
	}
	if err := spoil(tx, heartbeat, person, row); err != nil {
		return nil, err
	}
	all, err := List(tx)
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		if h.resting() != "" || !slices.Contains(h.For, person) {
			continue
		}
		left, err := withoutGone(tx, h.For)
		if err != nil {
			return nil, err
		}
		if len(left) > 0 {
			continue
		}
		if err := Pause(tx, h.Name, nobodyLeft+person+" "+row.String()); err != nil {
			return nil, err
		}
		paused = append(paused, h.Name)
	}
	return paused, nil
}

// spoil makes the newest tick that woke somebody one that did not end well.
func spoil(tx memory.Tx, heartbeat, person string, row goneRow) error {
	var key string
	var newest Outcome
	err := tableTicks.ScanBack(tx, heartbeat+"/", func(k string, o Outcome) error {
		if o.Word != Woke {
			return nil
		}
		key, newest = k, o
		return memory.ErrStop
	})
	if err != nil || key == "" {
		return err
	}
	newest.Word = Failed
	newest.Reason = clip(newest.Reason+"; "+person+" "+row.String(), maxReason)
	return tableTicks.Put(tx, key, newest)
}

// unreached makes a tick one that did not end well when a person whose run did is known not to have heard of it by now.
func (v *verdict) unreached(tx memory.Tx) error {
	for _, person := range v.well {
		row, gone, err := loadGone(tx, person)
		if err != nil {
			return err
		}
		if gone {
			v.word, v.reason = Failed, clip(v.reason+"; "+person+" "+row.String(), maxReason)
		}
	}
	return nil
}

// Found notes that a person was heard of. Heartbeats that were paused since they could not be reached fall due again: a clock
// that runs must be told by [Clock.Look] after the transaction if found is true.
func Found(tx memory.Tx, person string, now time.Time) (found bool, err error) {
	if person == "" || len(person) > memory.MaxID {
		return false, nil
	}
	if found, err = tableGone.Has(tx, person); err != nil || !found {
		return false, err
	}
	if err := tableGone.Delete(tx, person); err != nil {
		return false, err
	}
	all, err := List(tx)
	if err != nil {
		return false, err
	}
	for _, h := range all {
		if h.Ended == "" && strings.HasPrefix(h.Paused, nobodyLeft) && slices.Contains(h.For, person) {
			if err := Resume(tx, h.Name, now); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// loadGone tells whether a person cannot be reached, and why.
func loadGone(tx memory.Tx, person string) (row goneRow, gone bool, err error) {
	if person == "" || len(person) > memory.MaxID {
		return row, false, nil
	}
	return tableGone.Get(tx, person)
}

// withoutGone are those of people who can be reached.
func withoutGone(tx memory.Tx, people []string) (left []string, err error) {
	for _, person := range people {
		_, gone, err := loadGone(tx, person)
		if err != nil {
			return nil, err
		}
		if !gone {
			left = append(left, person)
		}
	}
	return left, nil
}
