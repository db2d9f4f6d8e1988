package bolt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/memory"
	"nudge/memory/memorytest"
)

// TestSeenRuns marks and sweeps keys until runs are split, emptied and filled again and levels sink, beside a map that does
// the same. The file is whole after each commit, one that was taken back included.
func TestSeenRuns(t *testing.T) {
	s, errBack := open(t, memorytest.Dir(t), Options{}), errors.New("take it back")
	rapid.Check(t, func(r *rapid.T) {
		model := map[int]time.Time{}
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			_, err := tx.Seen().Sweep(time.Unix(1000, 0), 10000)
			return err
		})
		if err != nil {
			r.Fatal(err)
		}
		for range rapid.IntRange(1, 6).Draw(r, "commits") {
			first := rapid.SampledFrom([]int{0, 50, 300, 1000}).Draw(r, "first")
			n := rapid.SampledFrom([]int{0, 1, 31, 32, 33, 200, 200, 900}).Draw(r, "keys")
			at := time.Unix(int64(rapid.IntRange(0, 5).Draw(r, "at")), 0)
			before := time.Unix(int64(rapid.IntRange(0, 6).Draw(r, "before")), 0)
			limit := rapid.SampledFrom([]int{0, 1, 7, 100, 10000}).Draw(r, "limit")
			back := rapid.IntRange(0, 3).Draw(r, "back") == 0
			var draft map[int]time.Time
			err := s.Update(context.Background(), func(tx memory.Tx) error {
				draft = maps.Clone(model)
				for k := first; k < first+n; k++ {
					fresh, err := tx.Seen().Mark(fmt.Sprint("key", k), at)
					if _, had := draft[k]; err != nil || fresh == had {
						return fmt.Errorf("key %d is new: %t, %w", k, fresh, err)
					}
					if fresh {
						draft[k] = at
					}
				}
				if err := sweepModel(tx, draft, before, limit); err != nil {
					return err
				}
				if back {
					return errBack
				}
				return nil
			})
			switch {
			case back && errors.Is(err, errBack):
			case err != nil:
				r.Fatal(err)
			default:
				model = draft
			}
		}
		if err := s.problems(); err != nil {
			r.Fatal(err)
		}
	})
}

// sweepModel sweeps a store and a map. Which of the old ones a limit leaves is the store's affair, so each is looked up.
func sweepModel(tx memory.Tx, model map[int]time.Time, before time.Time, limit int) error {
	old := 0
	for _, at := range model {
		if at.Before(before) {
			old++
		}
	}
	n, err := tx.Seen().Sweep(before, limit)
	if err != nil || n != min(old, limit) {
		return fmt.Errorf("swept %d of %d, at most %d: %w", n, old, limit, err)
	}
	for k, at := range model {
		if !at.Before(before) {
			continue
		}
		fresh, err := tx.Seen().Mark(fmt.Sprint("key", k), at)
		if err != nil {
			return err
		}
		if fresh {
			n--
		}
	}
	if n != 0 {
		return fmt.Errorf("%d more were counted as swept than are gone", n)
	}
	return nil
}

// problems is what a check finds in a store.
func (s *Store) problems() error {
	var errs []error
	_, err := s.Check(context.Background(), func(problem string) { errs = append(errs, errors.New(problem)) }, nil)
	return errors.Join(append(errs, err)...)
}
