package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/memory"
)

// KeptFor is how long the outcome of a tick is remembered, and a heartbeat after it has ended.
const KeptFor = 90 * 24 * time.Hour

// mostForgotten bounds how many old outcomes are forgotten with one new one.
const mostForgotten = 8

// forgetOld forgets outcomes of ticks before an instant, the oldest first, but not the newest few. The state must be saved
// afterwards.
func (s *State) forgetOld(tx memory.Tx, name string, before time.Time) error {
	table := tableTicks.Table(tx)
	for range mostForgotten {
		oldest := s.oldest()
		if s.Seq-oldest < keptAnyway {
			return nil
		}
		key := tickKey(name, oldest)
		row, _, err := table.Get(key)
		if err != nil || !tickOf(row).Before(before) {
			return err
		}
		if err := table.Delete(key); err != nil {
			return fmt.Errorf("forget an old tick of heartbeat %s: %w", name, err)
		}
		s.First = oldest + 1
	}
	return nil
}

// tickOf is the tick of which a row tells; zero when it cannot be read.
func tickOf(row []byte) time.Time {
	var o Outcome
	if err := json.Unmarshal(row, &o); err != nil {
		return time.Time{}
	}
	return o.Tick
}

// endedTime is how the key of a row of [tableEnded] begins, so that they lie in order.
const endedTime = "2006-01-02T15:04:05Z"

func (h Heartbeat) endedKey() string { return h.EndedAt.UTC().Format(endedTime) + "/" + h.Name }

// begin takes back that a heartbeat has ended.
func (h Heartbeat) begin(tx memory.Tx) error {
	if h.Ended == "" {
		return nil
	}
	if err := tx.Table(tableEnded).Delete(h.endedKey()); err != nil {
		return fmt.Errorf("forget that heartbeat %s had ended: %w", h.Name, err)
	}
	return nil
}

// dateEnd notes when a heartbeat ended of which an earlier version did not keep that: with its last tick, as far as is known.
func (h Heartbeat) dateEnd(tx memory.Tx) error {
	h.EndedAt = h.Since
	err := tableTicks.Table(tx).ScanBack(h.Name+"/", func(_ string, row []byte) error {
		h.EndedAt = latest(h.EndedAt, tickOf(row))
		return memory.ErrStop
	})
	if err != nil {
		return fmt.Errorf("find out when heartbeat %s ended: %w", h.Name, err)
	}
	return h.put(tx)
}

// SweepEnded forgets at most limit heartbeats that ended before an instant, and gives them: fewer than limit when no more
// ended then. They are taken away as [Remove] does, with what their people make of them. Of one that still stands in the config
// only the outcomes go, so that it does not begin anew.
func SweepEnded(tx memory.Tx, before time.Time, limit int) (swept []Heartbeat, err error) {
	var keys []string
	until := before.UTC().Format(endedTime)
	err = tx.Table(tableEnded).Scan("", func(key string, _ []byte) error {
		if len(keys) >= limit || key >= until {
			return memory.ErrStop
		}
		keys = append(keys, key)
		return nil
	})
	for _, key := range keys {
		_, name, _ := strings.Cut(key, "/")
		h, found, e := find(tx, name)
		if err = errors.Join(err, e, tx.Table(tableEnded).Delete(key)); err != nil {
			break
		}
		if found && h.Ended != "" && h.endedKey() == key { // else the row is of an end that was taken back
			swept, err = append(swept, h), h.forget(tx, before)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("forget heartbeats that ended: %w", err)
	}
	return swept, nil
}

// staysWhenOld reports whether a heartbeat that has ended is one that would begin anew if it were forgotten: the config has it.
func (h Heartbeat) staysWhenOld() bool { return h.By == "" && h.Ended != endRemoved }

// forget takes a heartbeat away that ended before an instant, as [SweepEnded] says. What its people said holds as of that instant:
// a snooze that has run out since then is left to whatever saves next.
func (h Heartbeat) forget(tx memory.Tx, before time.Time) error {
	if h.staysWhenOld() {
		return h.forgetOutcomes(tx)
	}
	for _, person := range h.For {
		a, err := LoadAttention(tx, person)
		if err != nil {
			return err
		}
		if a.Tastes[h.Name] == nil {
			continue
		}
		delete(a.Tastes, h.Name)
		if err := a.save(tx, person, before); err != nil {
			return err
		}
	}
	return Remove(tx, h.Name)
}

func (h Heartbeat) forgetOutcomes(tx memory.Tx) error {
	state, err := loadState(tx, h)
	if err != nil {
		return err
	}
	for ; state.oldest() <= state.Seq; state.First = state.oldest() + 1 {
		if err := tableTicks.Table(tx).Delete(tickKey(h.Name, state.oldest())); err != nil {
			return err
		}
	}
	return state.save(tx, h.Name)
}
