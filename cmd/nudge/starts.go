package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nudge/memory"
)

// A program that ends in the middle of something, is started again and takes that up may end of it again, and so on for
// ever. After some such ends within a short time a start takes nothing up by itself.

const (
	mostEnds   = 3               // unclean ends that are borne
	endsWithin = 5 * time.Minute // of the next start
)

// The rows of the table "start".
const (
	tableStart  = "start"
	rowRunning  = "running" // when the process that holds the file began; none after a clean end
	rowTroubled = "unclean" // when the processes began that did not end cleanly, as a JSON list
)

// noteStart keeps that this process has begun, and reports whether those before it have ended uncleanly so often that it
// should take nothing up.
func noteStart(ctx context.Context, store memory.Store, now time.Time) (troubled bool, err error) {
	err = store.Update(ctx, func(tx memory.Tx) error {
		ends, err := uncleanEnds(tx)
		if err != nil {
			return err
		}
		before, running, err := tx.Table(tableStart).Get(rowRunning)
		if err != nil {
			return err
		}
		if running {
			began, err := time.Parse(time.RFC3339Nano, string(before))
			if err != nil {
				began = now // the row cannot be read, and tells only that there was a process
			}
			ends = append(ends, began)
		}
		ends = slices.DeleteFunc(ends, func(began time.Time) bool { return now.Sub(began) > endsWithin })
		troubled = len(ends) >= mostEnds
		data, err := json.Marshal(ends)
		if err != nil {
			return err
		}
		if err := tx.Table(tableStart).Put(rowTroubled, data); err != nil {
			return err
		}
		return tx.Table(tableStart).Put(rowRunning, []byte(now.UTC().Format(time.RFC3339Nano)))
	})
	if err != nil {
		return false, fmt.Errorf("note the start: %w", err)
	}
	return troubled, nil
}

func uncleanEnds(tx memory.Tx) (ends []time.Time, err error) {
	data, found, err := tx.Table(tableStart).Get(rowTroubled)
	if err != nil || !found {
		return nil, err
	}
	if json.Unmarshal(data, &ends) != nil {
		return nil, nil // what cannot be read is no reason not to start
	}
	return ends, nil
}

// noteEnd keeps that this process ends cleanly.
func noteEnd(ctx context.Context, store memory.Store) error {
	err := store.Update(ctx, func(tx memory.Tx) error {
		if err := tx.Table(tableStart).Delete(rowTroubled); err != nil {
			return err
		}
		return tx.Table(tableStart).Delete(rowRunning)
	})
	if err != nil {
		return fmt.Errorf("note the end: %w", err)
	}
	return nil
}

// troubledLine is what owners hear of a start that took nothing up.
var troubledLine = fmt.Sprintf("I ended in the middle of something %d times within %s, so I have not taken up what was unfinished. "+
	"Say something in a conversation to have me go on there; the log says how I ended.", mostEnds, "five minutes")
