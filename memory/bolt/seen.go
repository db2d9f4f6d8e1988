package bolt

import (
	"fmt"
	"time"
)

// seen keeps each key with its instant, and an index by instant for sweeping.
type seen struct{ tx *tx }

func (s seen) Mark(key string, at time.Time) (fresh bool, err error) {
	defer s.tx.guard(s.tx.enter(), &err)
	if err := checkName("key", key); err != nil {
		return false, fmt.Errorf("mark as seen: %w", err)
	}
	b, err := s.tx.reading(seenBucket)
	if err != nil {
		return false, fmt.Errorf("mark %q as seen: %w", key, err)
	}
	if _, found := get(b, []byte(key)); found {
		return false, nil
	}
	if b, err = s.tx.writing(seenBucket); err != nil {
		return false, fmt.Errorf("mark %q as seen: %w", key, err)
	}
	byTime, err := s.tx.writing(seenTimeBucket)
	if err != nil {
		return false, fmt.Errorf("mark %q as seen: %w", key, err)
	}
	byTime.FillPercent = appendFill // what arrives later is seen later
	instant := appendTime(nil, at)
	if err = b.Put([]byte(key), instant); err == nil {
		err = byTime.Put(append(clone(instant), key...), clone(nil))
	}
	if err != nil {
		return false, fmt.Errorf("mark %q as seen: %w", key, err)
	}
	return true, nil
}

func (s seen) Sweep(before time.Time, limit int) (count int, err error) {
	defer s.tx.guard(s.tx.enter(), &err)
	old, err := s.firstSeen(before, limit)
	if err != nil {
		return 0, fmt.Errorf("sweep what was seen: %w", err)
	}
	if len(old) == 0 {
		return 0, nil
	}
	b, err := s.tx.writing(seenBucket)
	if err != nil {
		return 0, fmt.Errorf("sweep what was seen: %w", err)
	}
	byTime, err := s.tx.writing(seenTimeBucket)
	if err != nil {
		return 0, fmt.Errorf("sweep what was seen: %w", err)
	}
	for _, row := range old {
		if err = b.Delete(row[timeSize:]); err == nil {
			err = byTime.Delete(row)
		}
		if err != nil {
			return 0, fmt.Errorf("sweep what was seen: %w", err)
		}
	}
	return len(old), nil
}

// firstSeen returns copies of the oldest index rows, at most limit.
func (s seen) firstSeen(before time.Time, limit int) (rows [][]byte, err error) {
	byTime, err := s.tx.reading(seenTimeBucket)
	if err != nil {
		return nil, err
	}
	c := byTime.Cursor()
	for k, v := c.First(); k != nil && len(rows) < limit; k, v = c.Next() {
		touch(k, v)
		at, _, err := cutTime(k)
		if err != nil {
			return nil, s.tx.damagedBy(err)
		}
		if !at.Before(before) {
			break
		}
		rows = append(rows, clone(k))
	}
	return rows, nil
}
